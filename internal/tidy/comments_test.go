package tidy

import (
	"go/ast"
	"slices"
	"testing"
)

// Exactly one file of a package has its comment: two would be joined in an
// order that nobody chose, and a blank line below one loses it unnoticed.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	documented := map[string][]string{}
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		if _, seen := documented[file.folder()]; !seen {
			documented[file.folder()] = nil
		}
		if file.tree.Doc != nil {
			documented[file.folder()] = append(documented[file.folder()], file.path)
		}
	}
	for folder, files := range documented {
		if len(files) != 1 {
			t.Errorf("%s: expected one file with a package comment, got %q", folder, files)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		for _, decl := range file.tree.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s:%d: %s has no comment", file.path, file.line(name.Pos()), name.Name)
			}
		}
	}
}

// undocumented returns the exported functions and types of a declaration that
// have no comment. Constants and variables speak through their type, and the
// methods of a type that is not exported through the interface they are for.
func undocumented(decl ast.Decl) []*ast.Ident {
	var names []*ast.Ident
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Doc == nil && decl.Name.IsExported() && isReachable(decl) {
			names = append(names, decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			spec, ok := spec.(*ast.TypeSpec)
			if ok && decl.Doc == nil && spec.Doc == nil && spec.Comment == nil &&
				spec.Name.IsExported() {
				names = append(names, spec.Name)
			}
		}
	}
	return names
}

// isReachable reports whether a function is one, or a method of an exported
// type that its name alone does not explain.
func isReachable(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	receiver := fn.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	familiar := []string{"Error", "Unwrap", "String", "Is", "As"}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported() && !slices.Contains(familiar, fn.Name.Name)
}
