/* Stores that several handles have open, and the ends of handles. */
#include "smoke.h"

static void check_second_writer(void) {
    lx_handle one = open_store("shared", dense_options(LX_CODEC_RAW));
    lx_handle two = open_store("shared", dense_options(LX_CODEC_RAW));
    lx_handle batch = 0;
    append_dense(one, 0, 10); /* makes it the writer */
    FAILS(LX_BUSY, lx_append_begin(two, &batch, &err));
    CHECK(batch == 0 && length_of(two) == 0); /* a reader's length is fixed */
    lx_handle reader = open_reader("shared", LX_DENSE);
    check_whole_dense(reader, 10);
    OK(lx_store_close(reader, &err));
    OK(lx_store_close(one, &err));
    append_dense(two, 10, 10); /* now it can be */
    check_whole_dense(two, 20);
    OK(lx_store_close(two, &err));
    passed("a second writer");
}

/* A reader sees a fixed length until it asks for more. */
static void check_refresh(void) {
    lx_handle writer = open_store("refreshed", dense_options(LX_CODEC_RAW)), batch = 0;
    append_dense(writer, 0, 10);
    lx_handle reader = open_reader("refreshed", LX_DENSE);
    append_dense(writer, 10, 5);
    check_whole_dense(reader, 10); /* a length that is fixed */
    int64_t index[] = {10}, first = -1;
    char record[WIDTH];
    FAILS(LX_INDEX, lx_dense_gather(reader, index, 1, record, WIDTH, 0, &err));
    OK(lx_store_refresh(reader, &err));
    check_whole_dense(reader, 15);

    OK(lx_append_begin(writer, &batch, &err));
    add_dense(batch, 15, 5);
    OK(lx_store_refresh(reader, &err));
    OK(lx_store_refresh(writer, &err));
    check_whole_dense(reader, 15); /* not before the commit */
    OK(lx_append_commit(batch, &first, &err));
    check_whole_dense(writer, 20);
    OK(lx_store_refresh(reader, &err));
    check_whole_dense(reader, 20);
    OK(lx_store_close(reader, &err));
    OK(lx_store_close(writer, &err));
    passed("refreshing");
}

/* Closing takes back an open batch and ends its handle. */
static void check_close_with_batch(void) {
    lx_handle store = open_store("closed early", dense_options(LX_CODEC_ZSTD)), batch = 0;
    int64_t first = -1;
    append_dense(store, 0, 10);
    OK(lx_append_begin(store, &batch, &err));
    add_dense(batch, 10, 200);
    OK(lx_store_close(store, &err));
    unsigned char record[WIDTH] = {0};
    FAILS(LX_CLOSED, lx_append_dense(batch, record, WIDTH, 1, &err));
    FAILS(LX_CLOSED, lx_append_commit(batch, &first, &err));
    FAILS(LX_CLOSED, lx_append_abort(batch, &err));
    FAILS(LX_CLOSED, lx_store_close(store, &err));
    store = open_store("closed early", dense_options(LX_CODEC_ZSTD));
    CHECK(info_of(store).dirty == 0);
    check_whole_dense(store, 10);
    append_dense(store, 10, 3);
    check_whole_dense(store, 13);
    OK(lx_store_close(store, &err));
    passed("closing with an open batch");
}

/* Whatever is done with a number that is no handle of that kind. */
static void refuse_handle(lx_handle h) {
    int64_t index[2] = {0, 0}, offsets[2] = {0, 1}, dims[1] = {1}, dim_offsets[2] = {0, 1}, n = -7;
    int32_t source[1] = {0};
    unsigned char room[WIDTH] = {0};
    lx_handle batch = 0, task = 0;
    lx_store_info info;
    lx_store_stats stats;
    lx_progress progress;
    lx_error bad;
    FAILS(LX_CLOSED, lx_store_info_of(h, &info, &err));
    FAILS(LX_CLOSED, lx_store_identity(h, room, sizeof room, &err));
    FAILS(LX_CLOSED, lx_store_len(h, &n, &err));
    FAILS(LX_CLOSED, lx_store_sync(h, &err));
    FAILS(LX_CLOSED, lx_store_refresh(h, &err));
    FAILS(LX_CLOSED, lx_store_stats_of(h, &stats, &err));
    FAILS(LX_CLOSED, lx_store_delete(h, index, 1, &err));
    FAILS(LX_CLOSED, lx_append_begin(h, &batch, &err));
    FAILS(LX_CLOSED, lx_append_dense(h, room, WIDTH, 1, &err));
    FAILS(LX_CLOSED, lx_append_ragged(h, room, 1, offsets, dims, dim_offsets, 1, 1, &err));
    FAILS(LX_CLOSED, lx_append_commit(h, &n, &err));
    FAILS(LX_CLOSED, lx_append_abort(h, &err));
    FAILS(LX_CLOSED, lx_compact_begin(h, &task, &err));
    FAILS(LX_CLOSED, lx_verify_begin(h, 1, &task, &err));
    FAILS(LX_CLOSED, lx_snapshot_begin(h, in_folder("no copy"), &task, &err));
    FAILS(LX_CLOSED, lx_upgrade_begin(h, &task, &err));
    FAILS(LX_CLOSED, lx_task_step(h, &progress, &err));
    FAILS(LX_CLOSED, lx_task_bad(h, 0, &bad, &err));
    FAILS(LX_CLOSED, lx_task_end(h, &err));
    FAILS(LX_CLOSED, lx_dense_gather(h, index, 1, room, WIDTH, 0, &err));
    FAILS(LX_CLOSED, lx_ragged_gather(h, index, 1, 1, room, 1, offsets, dims, 1, dim_offsets, 0, &err));
    FAILS(LX_CLOSED, lx_sampler_fill(h, 0, 1, index, 1, &err));
    FAILS(LX_CLOSED, lx_sampler_free(h, &err));
    FAILS(LX_CLOSED, lx_mix_fill(h, 0, 1, source, index, 1, &err));
    FAILS(LX_CLOSED, lx_mix_drawn(h, 0, index, 1, &err));
    FAILS(LX_CLOSED, lx_mix_free(h, &err));
    FAILS(LX_CLOSED, lx_budget_batches(h, &n, &err));
    FAILS(LX_CLOSED, lx_budget_counts(h, 0, 1, index, &err));
    FAILS(LX_CLOSED, lx_budget_fill(h, 0, 1, index, 1, &err));
    FAILS(LX_CLOSED, lx_budget_free(h, &err));
    FAILS(LX_CLOSED, lx_store_close(h, &err));
    CHECK(n == -7 && batch == 0 && task == 0);
    CHECK(lx_store_len(h, &n, NULL) == LX_CLOSED && lx_store_close(h, NULL) == LX_CLOSED);
    CHECK(lx_append_abort(h, NULL) == LX_CLOSED && lx_sampler_free(h, NULL) == LX_CLOSED);
    CHECK(lx_task_step(h, &progress, NULL) == LX_CLOSED && lx_task_end(h, NULL) == LX_CLOSED);
}

static void check_ended_handles(void) {
    lx_handle store = open_store("handles", dense_options(LX_CODEC_RAW)), batch = 0, sampler = 0, task = 0;
    int64_t first = -1, n = 0;
    OK(lx_append_begin(store, &batch, &err));
    add_dense(batch, 0, 4);
    FAILS(LX_CLOSED, lx_store_len(batch, &n, &err)); /* a handle of another kind */
    FAILS(LX_CLOSED, lx_append_commit(store, &first, &err));
    OK(lx_append_commit(batch, &first, &err));
    OK(lx_verify_begin(store, 1, &task, &err));
    FAILS(LX_CLOSED, lx_store_len(task, &n, &err));
    FAILS(LX_CLOSED, lx_task_end(store, &err));
    OK(lx_task_end(task, &err));
    OK(lx_sampler_new(LX_IID, 4, 1, 0, 0, 1, &sampler, &err));
    FAILS(LX_CLOSED, lx_store_close(sampler, &err));
    OK(lx_sampler_free(sampler, &err));
    OK(lx_store_close(store, &err));
    refuse_handle(0);
    refuse_handle(store);
    refuse_handle(batch);
    refuse_handle(task);
    refuse_handle(sampler);
    refuse_handle(UINT64_MAX);
    passed("stale and zero handles");
}

void check_handles(void) {
    check_second_writer();
    check_refresh();
    check_close_with_batch();
    check_ended_handles();
}
