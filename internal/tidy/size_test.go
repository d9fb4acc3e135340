package tidy

import (
	"go/ast"
	"strings"
	"testing"
)

const (
	maxSourceLines   = 400
	maxTestLines     = 800
	maxFunctionLines = 70
)

func TestFilesAreShort(t *testing.T) {
	for _, src := range sources(t, ".go", ".py", ".c", ".h", ".s") {
		limit := maxSourceLines
		if src.isTest() {
			limit = maxTestLines
		}
		if len(src.lines) > limit {
			t.Errorf("%s has %d lines, the limit is %d: give it one idea less",
				src.path, len(src.lines), limit)
		}
	}
}

func TestGoFunctionsAreShort(t *testing.T) {
	for _, file := range goFiles(t) {
		for _, decl := range file.tree.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first := file.line(fn.Pos())
			if n := file.line(fn.End()) - first + 1; n > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines, the limit is %d",
					file.path, first, fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// A C function is taken to begin at the last line with a name at its left margin
// before a body opens, and to end at the next line that is a lone brace, which is
// how ours are written.
func TestCFunctionsAreShort(t *testing.T) {
	functions := 0
	for _, src := range sources(t, ".c") {
		head, open := 0, false
		for i, line := range src.lines {
			switch {
			case open && line == "}":
				functions++
				if n := i - head + 1; n > maxFunctionLines {
					t.Errorf("%s:%d: a function of %d lines, the limit is %d",
						src.path, head+1, n, maxFunctionLines)
				}
				open = false
			case !open:
				if beginsDeclaration(line) {
					head = i
				}
				open = line == "{" || strings.HasSuffix(line, ") {")
			}
		}
	}
	if functions == 0 {
		t.Error("no C function was found: the rule no longer sees how they are written")
	}
}

// beginsDeclaration reports whether a line of C has a name at the left margin,
// rather than white space, a directive, a comment or a brace.
func beginsDeclaration(line string) bool {
	return line != "" && !strings.ContainsRune(" \t#/*{}", rune(line[0]))
}
