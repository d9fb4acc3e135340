package tidy

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports returns the paths that a file imports.
func imports(t *testing.T, file goFile) []string {
	t.Helper()
	var paths []string
	for _, spec := range file.tree.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", file.path, err)
		}
		paths = append(paths, name)
	}
	return paths
}

// within reports whether a package is the folder or stands below it.
func within(pkg, folder string) bool {
	return pkg == folder || strings.HasPrefix(pkg, folder+"/")
}

// layers says for each folder which packages of loaderx it may import (itself
// and what stands below it is not asked for here). The first folder that a
// package is within counts, so inner ones come first.
var layers = []struct {
	folder string
	may    []string
}{
	{"engine/internal/disk", nil},
	{"engine/internal/zstd", nil},
	{"engine/internal/fan", nil},
	{"engine/internal/move", nil},
	{"engine/internal/invariants", nil},
	{"engine/internal", []string{"engine/internal"}},
	{"engine", []string{"engine/internal"}},
	{"sampler", nil},
	{"cabi/exports", []string{"engine", "sampler"}},
	{"cabi", []string{"cabi/exports"}},
	{"internal/tidy", nil},
}

// The imports point one way: ARCHITECTURE.md, "Layers". The engine and the
// sampler never meet but in cabi, and what stands in engine/internal does not
// know the engine.
func TestImportsPointOneWay(t *testing.T) {
	const module = "loaderx/"
	for _, file := range goFiles(t) {
		may := slices.IndexFunc(layers, func(l struct {
			folder string
			may    []string
		}) bool {
			return within(file.folder(), l.folder)
		})
		if may < 0 {
			t.Errorf("%s: its package has no place in the table of layers", file.path)
			continue
		}
		layer := layers[may]
		for _, name := range imports(t, file) {
			pkg, ours := strings.CutPrefix(name, module)
			if !ours || within(pkg, layer.folder) {
				continue
			}
			allowed := slices.ContainsFunc(layer.may, func(folder string) bool {
				// The engine's inside is for the engine alone.
				return within(pkg, folder) && (folder != "engine" || pkg == "engine")
			})
			if !allowed {
				t.Errorf("%s imports %s: %s may import only %q of loaderx",
					file.path, name, layer.folder, layer.may)
			}
		}
	}
}

// system are the packages by which the operating system is reached.
var system = []string{"os", "syscall", "golang.org/x/sys/unix", "golang.org/x/sys/windows"}

// Faults are injected in engine/internal/vfs, which works only if no file of
// the engine is touched in another way.
func TestOnlyVFSTouchesFiles(t *testing.T) {
	touching := append([]string{"io/ioutil"}, system...)
	for _, file := range goFiles(t) {
		if file.isTest() || !within(file.folder(), "engine") ||
			within(file.folder(), "engine/internal/vfs") {
			continue
		}
		for _, name := range imports(t, file) {
			if slices.ContainsFunc(touching, func(pkg string) bool { return within(name, pkg) }) {
				t.Errorf("%s imports %q: in the engine only engine/internal/vfs touches files",
					file.path, name)
			}
		}
	}
}

// The sampler is an order of numbers: it has no business with C or files.
func TestSamplerKnowsNoFilesAndNoC(t *testing.T) {
	foreign := append([]string{"C", "io"}, system...)
	for _, file := range goFiles(t) {
		if file.isTest() || !within(file.folder(), "sampler") {
			continue
		}
		for _, name := range imports(t, file) {
			if slices.ContainsFunc(foreign, func(pkg string) bool { return within(name, pkg) }) {
				t.Errorf("%s imports %q: the sampler knows neither files nor C", file.path, name)
			}
		}
	}
}
