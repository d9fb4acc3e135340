// Package exports gives the engine and the sampler the C interface of
// loaderx.h, and does nothing but translate. The header is included by every
// file that exports, so that an export which drifts from it does not compile.
package exports

// #include "../loaderx.h"
import "C"

import "loaderx/engine"

//export lx_parallelism
func lx_parallelism() C.int32_t { return C.int32_t(engine.Parallelism()) }
