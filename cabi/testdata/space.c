/* Deleting, and what a store takes on the disk before and after. */
#include "smoke.h"

static lx_store_stats stats_of(lx_handle store) {
    lx_store_stats stats;
    memset(&stats, 'x', sizeof stats);
    OK(lx_store_stats_of(store, &stats, &err));
    return stats;
}

static void check_stats(lx_handle store, int64_t records, int64_t live, int64_t chunks, int64_t reclaimable) {
    lx_store_stats s = stats_of(store);
    CHECK(s.records == records && s.live_bytes == live);
    CHECK(s.chunk_bytes == chunks && s.reclaimable == reclaimable);
}

/* ---- deleting ---- */

/* Ten records without 8, 2 and 0: each hole takes the last of those that are
   left, the highest hole first. */
static void check_swaps(lx_handle store) {
    int64_t gone[] = {2, -2, 0, 8, 2}; /* two of them twice */
    OK(lx_store_delete(store, gone, 5, &err));
    int64_t origin[] = {7, 1, 9, 3, 4, 5, 6};
    /* 8 <- 9, then 2 <- 9 (which lies at 8), then 0 <- 7 */
    check_origins(store, origin, 7);
}

static void check_delete(void) {
    lx_handle store = open_store("deleted", dense_options(LX_CODEC_RAW)), none = 0;
    append_dense(store, 0, 10);
    check_stats(store, 10, 10 * WIDTH, 10 * WIDTH, 0);
    int64_t wrong[] = {10, -11, INT64_MIN};
    for (int k = 0; k < 3; k++) {
        int64_t gone[] = {1, wrong[k], 2};
        FAILS(LX_INDEX, lx_store_delete(store, gone, 3, &err));
        CHECK(err.index == wrong[k]);
        CHECK(lx_store_delete(store, gone, 3, NULL) == LX_INDEX);
    }
    FAILS(LX_ARGUMENT, lx_store_delete(store, NULL, 3, &err));
    FAILS(LX_ARGUMENT, lx_store_delete(store, wrong, -1, &err));
    FAILS(LX_ARGUMENT, lx_store_stats_of(store, NULL, &err));
    OK(lx_store_delete(store, NULL, 0, &err));
    check_whole_dense(store, 10);

    check_swaps(store);
    CHECK(info_of(store).unsynced == 0);
    check_stats(store, 7, 7 * WIDTH, 10 * WIDTH, 3 * WIDTH);
    OK(lx_store_close(store, &err));

    store = open_store("deleted", dense_options(LX_CODEC_ANY));
    int64_t origin[] = {7, 1, 9, 3, 4, 5, 6}, gone[] = {0, 1, 2, 3, 4, 5, 6};
    check_origins(store, origin, 7);
    lx_handle reader = open_reader("deleted", LX_DENSE);
    FAILS(LX_READ_ONLY, lx_store_delete(reader, gone, 1, &err));
    FAILS(LX_BUSY, lx_store_delete(store, gone, 1, &err)); /* the reader has it open */
    FAILS(LX_BUSY, lx_compact_begin(store, &none, &err));
    CHECK(none == 0);
    check_origins(store, origin, 7);
    OK(lx_store_close(reader, &err));
    OK(lx_store_delete(store, gone, 7, &err));
    check_stats(store, 0, 0, 10 * WIDTH, 10 * WIDTH);
    append_dense(store, 0, 3);
    check_whole_dense(store, 3);
    OK(lx_store_close(store, &err));
    passed("deleting dense records");
}

/* Payload and shape go together. Records 0 to 6 have payloads of 6, 4, 18, 8,
   30, 2 and 2 bytes and shapes of 24, 16, 24, 16, 24, 16 and 8. */
static void check_delete_ragged(void) {
    lx_handle store = open_store("deleted ragged", ragged_options(LX_CODEC_RAW));
    append_ragged(store, 0, 7);
    check_stats(store, 7, 198, 198, 0);
    int64_t gone[] = {0, -5}, index[] = {0, 1, 2, 3, 4}, origin[] = {5, 1, 6, 3, 4};
    OK(lx_store_delete(store, gone, 2, &err));
    check_stats(store, 5, 126, 198, 72);
    check_ragged(store, index, origin, 5, 0);

    lx_handle task = 0;
    OK(lx_compact_begin(store, &task, &err));
    lx_progress last = run_task(task);
    CHECK(last.total == 126 && last.bad == 0);
    check_stats(store, 5, 126, 126, 0);
    check_ragged(store, index, origin, 5, 0);
    OK(lx_store_close(store, &err));
    store = open_reader("deleted ragged", LX_RAGGED);
    check_ragged(store, index, origin, 5, 0);
    OK(lx_store_close(store, &err));
    passed("deleting ragged records");
}

/* ---- compacting ---- */

/* While a compaction runs, its handle reads but is not changed, and nobody else
   gets in. */
static void check_during_compaction(lx_handle store, lx_str name, const int64_t *origin) {
    lx_handle none = 0;
    int64_t gone[] = {0};
    lx_open_options o = options(LX_DENSE, LX_MODE_READ, LX_CODEC_ANY);
    check_origins(store, origin, 40);
    FAILS(LX_BUSY, lx_append_begin(store, &none, &err));
    FAILS(LX_BUSY, lx_store_delete(store, gone, 1, &err));
    FAILS(LX_BUSY, lx_store_open(in_folder(name), &o, &none, &err));
    CHECK(none == 0);
}

static void check_compact(lx_str name, int32_t codec) {
    lx_open_options o = dense_options(codec);
    o.chunk_limit = 1600; /* so that there are several chunks */
    lx_handle store = open_store(name, o), task = 0;
    append_dense(store, 0, 100);
    int64_t gone[60], origin[41];
    for (int64_t i = 0; i < 60; i++) gone[i] = i ? 39 + i : 0; /* record 99 goes into the hole */
    for (int64_t i = 0; i < 41; i++) origin[i] = i ? i : 99;
    OK(lx_store_delete(store, gone, 60, &err));
    lx_store_stats before = stats_of(store);
    CHECK(before.records == 40 && before.reclaimable > 0 && before.chunk_bytes > before.live_bytes);

    FAILS(LX_ARGUMENT, lx_compact_begin(store, NULL, &err));
    OK(lx_compact_begin(store, &task, &err));
    FAILS(LX_ARGUMENT, lx_task_step(task, NULL, &err));
    if (codec == LX_CODEC_RAW) check_during_compaction(store, name, origin);
    lx_progress last = run_task(task);
    CHECK(last.total == before.live_bytes && last.bad == 0);
    check_stats(store, 40, before.live_bytes, before.chunk_bytes - before.reclaimable, 0);
    check_origins(store, origin, 40);
    append_dense(store, 40, 1);
    OK(lx_store_close(store, &err));

    store = open_store(name, o);
    check_origins(store, origin, 41);
    OK(lx_compact_begin(store, &task, &err)); /* with nothing to do */
    run_task(task);
    check_origins(store, origin, 41);
    OK(lx_store_close(store, &err));
    passed(name);
}

/* The store is closed before the task that compacts it has ended. */
static void check_closed_compaction(void) {
    lx_handle store = open_store("closed while compacted", dense_options(LX_CODEC_RAW)), task = 0;
    int64_t gone[] = {0}, origin[] = {3, 1, 2};
    lx_progress progress;
    append_dense(store, 0, 4);
    OK(lx_store_delete(store, gone, 1, &err));
    OK(lx_compact_begin(store, &task, &err));
    OK(lx_store_close(store, &err));
    FAILS(LX_CLOSED, lx_task_step(task, &progress, &err));
    OK(lx_task_end(task, &err));
    store = open_store("closed while compacted", dense_options(LX_CODEC_RAW));
    check_origins(store, origin, 3);
    OK(lx_store_delete(store, gone, 1, &err));
    OK(lx_store_close(store, &err));
    passed("closing while compacting");
}

void check_space(void) {
    check_delete();
    check_delete_ragged();
    check_compact("compacting raw", LX_CODEC_RAW);
    check_compact("compacting zstd", LX_CODEC_ZSTD);
    check_closed_compaction();
}
