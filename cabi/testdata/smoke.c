/*
 * A client of loaderx.h in C11, and nothing else of loaderx: it calls every
 * function of the header and holds the answers against what the header says.
 * smoke_test.go builds all files of this folder into one program and runs it.
 * Its argument is an empty folder; it prints a line for each group of checks
 * and ends with 1, naming the line, at the first that fails.
 *
 * This file has the checks of the library itself, and what is reported where.
 */
#include "smoke.h"

_Thread_local lx_error err;

_Noreturn void fail(const char *file, int line, const char *what, const char *why) {
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
    exit(1);
}

_Noreturn void wrong_status(const char *file, int line, const char *what, int32_t want, int32_t got) {
    char why[sizeof err.message + 80];
    err.message[sizeof err.message - 1] = 0;
    snprintf(why, sizeof why, "expected status %d, got %d (%s)", want, got, got == LX_OK ? "" : err.message);
    fail(file, line, what, why);
}

void passed(const char *group) {
    printf("ok %s\n", group);
    fflush(stdout);
}

static const char *folder;

const char *in_folder(const char *name) {
    static _Thread_local char path[4096];
    CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    return path;
}

static void check_library(void) {
    CHECK(lx_abi_version() == LX_ABI_VERSION);
    CHECK(lx_parallelism() >= 1);
    for (int64_t bytes = 1; bytes <= 64 << 20; bytes = bytes * 5 + 3) {
        void *buffer = NULL;
        OK(lx_buffer_new(bytes, &buffer, &err));
        CHECK(buffer != NULL && (uintptr_t)buffer % 64 == 0);
        memset(buffer, 0x5a, (size_t)bytes);
        CHECK(lx_buffer_count() == 1);
        lx_buffer_free(buffer);
        CHECK(lx_buffer_count() == 0);
    }
    void *buffer = NULL;
    FAILS(LX_ARGUMENT, lx_buffer_new(-1, &buffer, &err));
    FAILS(LX_ARGUMENT, lx_buffer_new(64, NULL, &err));
    FAILS(LX_MEMORY, lx_buffer_new(INT64_MAX, &buffer, &err));
    CHECK(buffer == NULL);
    lx_buffer_free(NULL);
    passed("library and buffers");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER (empty)\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    check_library();
    check_opening();
    check_records();
    check_space();
    check_tasks();
    check_handles();
    check_samplers();
    check_threads();
    return 0;
}
