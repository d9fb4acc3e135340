/*
 * Starts Go's runtime in a library that musl loads. Go expects the arguments of
 * main in its initializer, as glibc passes them, and finds its g by an access
 * that musl refuses to relocate in a library. The link step has the accesses
 * call the thunks beside this file, and the initializer below run first.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#define HIDDEN __attribute__((visibility("hidden")))

extern char **environ;

/* Names that the link step adds to Go's object: runtime.tlsg and the runtime's
   own initializer. */
extern HIDDEN __thread void *go_tlsg __attribute__((tls_model("global-dynamic")));
extern HIDDEN void go_rt0_lib(int argc, char **argv, char **envp);

/* What cabi/exports/version.c reports. */
extern HIDDEN int loaderx_runtime_missing;

/* Where the thunks find g: 8 times the number of the library's TLS block, and
   the place of g in it. */
HIDDEN uintptr_t go_tls_slot;
HIDDEN uintptr_t go_tls_offset;

/* Finds the number of the TLS block of the library that has this variable. */
static int find_block(struct dl_phdr_info *info, size_t size, void *out) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)&go_tls_slot - start < info->dlpi_phdr[i].p_memsz) {
            *(uintptr_t *)out = info->dlpi_tls_modid;
            return 1;
        }
    }
    return 0;
}

static uintptr_t *tls_blocks(void) {
    uintptr_t *blocks;
#if defined(__x86_64__)
    __asm__("mov %%fs:8,%0" : "=r"(blocks));
#elif defined(__aarch64__)
    uintptr_t **thread;
    __asm__("mrs %0,tpidr_el0" : "=r"(thread));
    blocks = thread[-1];
#else
#error "no thunks for this processor"
#endif
    return blocks;
}

/* Whether this libc keeps TLS blocks as musl's __tls_get_addr finds them. */
static int find_g(void) {
    enum { MOST = 1 << 16 };
    uintptr_t *blocks = tls_blocks(), block = 0;
    dl_iterate_phdr(find_block, &block);
    if (block == 0 || blocks == NULL || block > blocks[0]) return 0;
    if ((uintptr_t)&go_tlsg - blocks[block] > MOST) return 0;
    go_tls_slot = block * sizeof *blocks;
    go_tls_offset = (uintptr_t)&go_tlsg - blocks[block];
    return 1;
}

/* argc's successors as the kernel lays them out: argv, envp and the auxiliary
   vector. Go keeps pointers into it for the life of the process. */
static char **make_arguments(void) {
    static const unsigned long keys[] = {AT_PAGESZ, AT_HWCAP, AT_HWCAP2, AT_RANDOM,
                                         AT_SECURE, AT_SYSINFO_EHDR, AT_CLKTCK};
    enum { KEYS = sizeof keys / sizeof *keys };
    size_t n = 0, i = 0;
    while (environ && environ[n]) n++;
    uintptr_t *block = malloc((2 + n + 1 + 2 * KEYS + 2) * sizeof *block);
    if (block == NULL) return NULL;
    block[i++] = (uintptr_t) "lib";
    block[i++] = 0;
    for (size_t k = 0; k < n; k++) {
        /* A copy, as the program may free or change its own. */
        size_t bytes = 0;
        while (environ[k][bytes++]) {
        }
        char *copy = malloc(bytes);
        if (copy == NULL) return NULL;
        for (size_t b = 0; b < bytes; b++) copy[b] = environ[k][b];
        block[i++] = (uintptr_t)copy;
    }
    block[i++] = 0;
    for (size_t k = 0; k < KEYS; k++) {
        errno = 0;
        unsigned long value = getauxval(keys[k]);
        if (value == 0 && errno != 0) continue;
        block[i++] = keys[k];
        block[i++] = value;
    }
    block[i++] = AT_NULL;
    block[i++] = 0;
    return (char **)block;
}

HIDDEN void go_musl_libinit(void) {
    char **arguments = find_g() ? make_arguments() : NULL;
    if (arguments == NULL) {
        loaderx_runtime_missing = 1;
        return;
    }
    go_rt0_lib(1, arguments, arguments + 2);
}
