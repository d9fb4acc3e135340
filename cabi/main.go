// Command cabi is the shared library. Build it with -buildmode=c-shared;
// scripts/build_native.py knows how.
//
// The exports are a package of their own: a main package that itself uses cgo
// makes the go command compile the C sources of zstd again for every build.
package main

import _ "loaderx/cabi/exports"

func main() {}
