package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A package main in tests cannot import "C", so a client in C does the testing:
// all files of testdata as one program, against the library as users get it.

// compiler is the C compiler's command line: $CC, or the first one there is.
// The cgo of this package needs one too, so only an odd host has none.
func compiler(t *testing.T) []string {
	t.Helper()
	if command := strings.Fields(os.Getenv("CC")); len(command) > 0 {
		return command
	}
	for _, name := range []string{"gcc", "cc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}
		}
	}
	t.Skip("no C compiler: $CC is empty, and there is no gcc, cc or clang")
	return nil
}

func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	command := exec.Command(name, arguments...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	return string(output)
}

// TestLibrary builds the shared library as scripts/build_native.py does, and
// looks at it from outside.
func TestLibrary(t *testing.T) {
	cc, folder := compiler(t), t.TempDir()
	exports, err := filepath.Abs("exports.map")
	if err != nil {
		t.Fatal(err)
	}
	flags := "-s -w"
	if runtime.GOOS == "linux" {
		flags += ` "-extldflags=-Xlinker '--version-script=` + exports + `'"`
	}
	library := filepath.Join(folder, "libloaderx.so")
	run(t, "go", "build", "-buildmode=c-shared", "-ldflags="+flags, "-o", library, ".")
	t.Run("serves a client in C", func(t *testing.T) { testClient(t, cc, folder) })
	t.Run("exports the header and nothing else", func(t *testing.T) { testExports(t, library) })
}

func testClient(t *testing.T, cc []string, folder string) {
	program := filepath.Join(t.TempDir(), "smoke")
	arguments := append(slices.Clone(cc[1:]), "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-I.",
		"-o", program)
	arguments = append(arguments, clientFiles(t)...)
	arguments = append(arguments, "-L"+folder, "-lloaderx", "-Wl,-rpath,"+folder)
	run(t, cc[0], arguments...)
	t.Log("\n" + run(t, program, t.TempDir()))
}

func clientFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.c")
	if err != nil || len(files) == 0 {
		t.Fatalf("expected the client's sources in testdata, got %q, %v", files, err)
	}
	return files
}

// None of the names of the zstd inside may be seen: another zstd in the process
// would take their place.
func testExports(t *testing.T, library string) {
	if runtime.GOOS != "linux" {
		t.Skip("exports are limited by a version script, which is for linux")
	}
	nm, err := exec.LookPath("nm")
	if err != nil {
		t.Skip("no nm to list the exported symbols with")
	}
	var exported []string
	for line := range strings.Lines(run(t, nm, "-D", "--defined-only", library)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			exported = append(exported, fields[len(fields)-1])
		}
	}
	slices.Sort(exported)
	if header := functions(t, declared, "loaderx.h"); !slices.Equal(exported, header) {
		t.Errorf("the library exports\n%q, expected what loaderx.h declares,\n%q", exported, header)
	}
}

var (
	declared = regexp.MustCompile(`(?m)^\w[\w ]*\b(lx_\w+)\(`)
	called   = regexp.MustCompile(`\b(lx_\w+)\(`)
	comment  = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// functions are the names that a pattern finds in C files, sorted.
func functions(t *testing.T, pattern *regexp.Regexp, paths ...string) []string {
	t.Helper()
	var names []string
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range pattern.FindAllSubmatch(comment.ReplaceAll(source, nil), -1) {
			names = append(names, string(match[1]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Every function of the header is called by the client, and the header is all
// that it calls.
func TestClientCallsEveryFunction(t *testing.T) {
	header := functions(t, declared, "loaderx.h")
	if len(header) < 10 || !slices.Contains(header, "lx_store_open") {
		t.Fatalf("the functions of the header were not recognized: got %q", header)
	}
	if client := functions(t, called, clientFiles(t)...); !slices.Equal(client, header) {
		t.Errorf("testdata/*.c call\n%q, expected what loaderx.h declares,\n%q", client, header)
	}
}
