#include "../loaderx.h"

#include "version.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

int loaderx_runtime_missing;

/* Not in Go: a call into a runtime that was not started would wait for ever. */
EXPORT int32_t lx_abi_version(void) { return loaderx_runtime_missing ? 0 : LX_ABI_VERSION; }
