/* Calls from several threads at the same time. */
#include <pthread.h>

#include "smoke.h"

enum { READERS = 4, APPENDS = 60, PER_APPEND = 50 };

static lx_handle busy_store;

/* Gathers from all that is there, until all of it is. */
static void *read_along(void *unused) {
    int64_t length = 0, index[64];
    uint64_t random = 88172645463325252u;
    while (length < APPENDS * PER_APPEND) {
        int64_t now = length_of(busy_store);
        CHECK(now >= length && now % PER_APPEND == 0); /* whole batches only */
        length = now;
        if (length == 0) continue;
        for (int k = 0; k < 64; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            index[k] = (int64_t)((random >> 33) % (uint64_t)length);
        }
        check_gathered(busy_store, index, index, 64, 2);
    }
    return unused;
}

static void *append_along(void *unused) {
    for (int64_t i = 0; i < APPENDS; i++) append_dense(busy_store, i * PER_APPEND, PER_APPEND);
    OK(lx_store_sync(busy_store, &err));
    return unused;
}

static void check_threads_of(const char *name, int32_t codec) {
    pthread_t threads[READERS + 1];
    busy_store = open_store(name, dense_options(codec));
    for (int i = 0; i < READERS; i++) CHECK(pthread_create(&threads[i], NULL, read_along, NULL) == 0);
    CHECK(pthread_create(&threads[READERS], NULL, append_along, NULL) == 0);
    for (int i = 0; i <= READERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    check_whole_dense(busy_store, APPENDS * PER_APPEND);
    OK(lx_store_close(busy_store, &err));
    passed(name);
}

/* Appends a record whose place depends on who is first. */
static void *append_second(void *first) {
    lx_handle batch = 0;
    OK(lx_append_begin(busy_store, &batch, &err));
    add_dense(batch, 2, 1);
    OK(lx_append_commit(batch, first, &err));
    return NULL;
}

/* A second batch on a store waits for the first. */
static void check_turns(void) {
    lx_handle batch = 0;
    int64_t first = -1, second = -1;
    pthread_t other;
    busy_store = open_store("turns", dense_options(LX_CODEC_RAW));
    OK(lx_append_begin(busy_store, &batch, &err));
    CHECK(pthread_create(&other, NULL, append_second, &second) == 0);
    add_dense(batch, 0, 2);
    OK(lx_append_commit(batch, &first, &err));
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(first == 0 && second == 2);
    check_whole_dense(busy_store, 3);
    OK(lx_store_close(busy_store, &err));
    passed("batches take turns");
}

void check_threads(void) {
    check_threads_of("threads raw", LX_CODEC_RAW);
    check_threads_of("threads zstd", LX_CODEC_ZSTD);
    check_turns();
}
