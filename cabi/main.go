// Command cabi is the shared library: it gives the engine and the sampler the
// C interface of loaderx.h, and does nothing but translate. Build it with
// -buildmode=c-shared; scripts/build_native.py knows how.
//
// The header is included by every file that exports, so that an export which
// drifts from it does not compile.
package main

// #include "loaderx.h"
import "C"

import "loaderx/engine"

func main() {}

//export lx_abi_version
func lx_abi_version() C.int32_t { return C.LX_ABI_VERSION }

//export lx_parallelism
func lx_parallelism() C.int32_t { return C.int32_t(engine.Parallelism()) }
