/* Memory for destinations. In C, and not in Go, because a garbage collector gives
   buffers back at any moment: in a forked child too, where Go no longer runs. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../loaderx.h"

#ifdef _WIN32
#include <malloc.h>
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Suits the widest vector loads, and JAX, which takes memory without a copy from
   64 bytes on. */
enum { ALIGN = 64 };

static atomic_llong live;

static void *aligned(int64_t bytes) {
#ifdef _WIN32
    return _aligned_malloc((size_t)bytes, ALIGN);
#else
    void *p;
    return posix_memalign(&p, ALIGN, (size_t)bytes) == 0 ? p : NULL;
#endif
}

static int32_t refuse(lx_error *error, int32_t status, const char *format, int64_t bytes) {
    if (error != NULL) {
        *error = (lx_error){.status = status, .index = -1, .offset = -1};
        snprintf(error->message, sizeof error->message, format, (long long)bytes);
    }
    return status;
}

EXPORT int32_t lx_buffer_new(int64_t bytes, void **buffer, lx_error *error) {
    if (bytes < 1 || buffer == NULL)
        return refuse(error, LX_ARGUMENT, "a buffer: expected at least 1 byte and a place for the pointer, got %lld bytes", bytes);
    void *p = aligned(bytes);
    if (p == NULL)
        return refuse(error, LX_MEMORY, "no memory for a buffer of %lld bytes", bytes);
    atomic_fetch_add(&live, 1);
    *buffer = p;
    return LX_OK;
}

EXPORT void lx_buffer_free(void *buffer) {
    if (buffer == NULL)
        return;
    atomic_fetch_sub(&live, 1);
#ifdef _WIN32
    _aligned_free(buffer);
#else
    free(buffer);
#endif
}

EXPORT int64_t lx_buffer_count(void) { return atomic_load(&live); }
