/* What the host calls beside the client's main: an allocation in the library, a
   call into Go, and the library's version. */
#include <stddef.h>

#include "loaderx.h"

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

int client_main(int argc, char **argv);

/* main of the client, which is compiled under another name. */
EXPORTED int client_main(int argc, char **argv) {
    int client(int argc, char **argv);
    return client(argc, argv);
}

EXPORTED int32_t client_probe(void) {
    void *buffer = NULL;
    if (lx_abi_version() != LX_ABI_VERSION || lx_parallelism() < 1) return 1;
    if (lx_buffer_new(1 << 16, &buffer, NULL) != LX_OK) return 2;
    ((char *)buffer)[0] = 1;
    lx_buffer_free(buffer);
    return lx_store_close(12345678, NULL) == LX_CLOSED ? 0 : 3;
}
