package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the top folder of the checkout.
var root = filepath.Join("..", "..")

// sourceFolders are the top folders with sources of our own. What the tools
// make stands in others.
var sourceFolders = []string{"cabi", "engine", "internal", "python", "sampler", "scripts"}

// generated are files that nobody wrote, relative to the root.
var generated = []string{"python/loaderx/_cdef.py"}

// skippedFolders hold data, or the leftovers of builds.
var skippedFolders = []string{"build", "golden", "__pycache__"}

// source is one file of the checkout; its path is relative to the root and has
// forward slashes.
type source struct {
	path  string
	lines []string
}

func (s source) isTest() bool {
	base := path.Base(s.path)
	return strings.HasSuffix(base, "_test.go") ||
		strings.Contains(s.path, "/testdata/") || strings.Contains(s.path, "/tests/")
}

// sources returns every source file with one of the extensions, and fails if
// there is none: a walk that finds nothing would pass every rule.
func sources(t *testing.T, extensions ...string) []source {
	t.Helper()
	var found []source
	visit := func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if slices.Contains(skippedFolders, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(extensions, path.Ext(rel)) || slices.Contains(generated, rel) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		found = append(found, source{path: rel, lines: lines})
		return nil
	}
	for _, folder := range sourceFolders {
		if err := filepath.WalkDir(filepath.Join(root, folder), visit); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no file with extension %v under %v", extensions, sourceFolders)
	}
	return found
}

// goFile is a Go source with its syntax tree.
type goFile struct {
	source
	set  *token.FileSet
	tree *ast.File
}

// folder is the package's folder, which is also its import path below loaderx.
func (f goFile) folder() string { return path.Dir(f.path) }

func (f goFile) line(pos token.Pos) int { return f.set.Position(pos).Line }

// goFiles parses every Go source of the module. Those for other platforms are
// among them: build constraints are not looked at.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, src := range sources(t, ".go") {
		set := token.NewFileSet()
		text := strings.Join(src.lines, "\n")
		tree, err := parser.ParseFile(set, src.path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, goFile{source: src, set: set, tree: tree})
	}
	return files
}
