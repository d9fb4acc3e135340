// Package tidy holds the rules of CONTRIBUTING.md that no linter knows, as
// tests over the sources: how long a file and a function may be, which package
// may import which, where files may be touched, and that every package and
// exported name says what it is. The Python functions are measured by
// scripts/tidy.py, which has Python's parser.
package tidy
