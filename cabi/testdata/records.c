/* Appending and reading, in stores of every kind and codec. */
#include "smoke.h"

/* ---- dense stores ---- */

static void append_in_parts(lx_handle store) {
    lx_handle batch = 0;
    int64_t first = -1;
    OK(lx_append_begin(store, &batch, &err));
    CHECK(batch != 0);
    add_dense(batch, 0, 100);
    add_dense(batch, 100, 1);
    add_dense(batch, 101, 899);
    CHECK(length_of(store) == 0); /* not before the commit */
    OK(lx_append_commit(batch, &first, &err));
    CHECK(first == 0 && length_of(store) == 1000);
    CHECK(info_of(store).unsynced == 1);
    OK(lx_store_sync(store, &err));
    CHECK(info_of(store).unsynced == 0);
    append_dense(store, 1000, 24);
}

/* A part was refused: the batch takes no more, with the same answer to a good
   part and to a commit. Either end of it ends the handle. */
static void end_refused(lx_handle batch, int commit) {
    unsigned char record[WIDTH] = {0};
    int64_t first = -7;
    char refused[sizeof err.message];
    memcpy(refused, err.message, sizeof refused);
    FAILS(LX_ARGUMENT, lx_append_dense(batch, record, WIDTH, 1, &err));
    CHECK(strcmp(err.message, refused) == 0);
    if (commit) {
        FAILS(LX_ARGUMENT, lx_append_commit(batch, &first, &err));
        CHECK(strcmp(err.message, refused) == 0 && first == -7);
    } else {
        OK(lx_append_abort(batch, &err));
    }
    FAILS(LX_CLOSED, lx_append_dense(batch, record, WIDTH, 1, &err));
    FAILS(LX_CLOSED, lx_append_commit(batch, &first, &err));
    FAILS(LX_CLOSED, lx_append_abort(batch, &err));
}

/* A commit with no place for its result publishes nothing, and ends the handle
   like any other: the next batch need not wait for it. */
static void commit_nowhere(lx_handle store) {
    lx_handle batch = 0;
    OK(lx_append_begin(store, &batch, &err));
    add_dense(batch, 0, 5);
    FAILS(LX_ARGUMENT, lx_append_commit(batch, NULL, &err));
    FAILS(LX_CLOSED, lx_append_abort(batch, &err));
    FAILS(LX_ARGUMENT, lx_append_begin(store, NULL, &err));
}

/* Whatever an aborted or failed batch was given, nothing is changed. */
static void abort_batches(lx_handle store, int64_t length) {
    unsigned char records[3 * WIDTH] = {0};
    lx_handle batch = 0;
    OK(lx_append_begin(store, &batch, &err));
    add_dense(batch, 0, 500);
    OK(lx_append_abort(batch, &err));
    check_whole_dense(store, length);
    for (int wrong = 0; wrong < 5; wrong++) {
        OK(lx_append_begin(store, &batch, &err));
        add_dense(batch, 0, 2);
        if (wrong == 0) FAILS(LX_ARGUMENT, lx_append_dense(batch, records, 3 * WIDTH - 1, 3, &err));
        if (wrong == 1) FAILS(LX_ARGUMENT, lx_append_dense(batch, records, 3 * WIDTH, 2, &err));
        if (wrong == 2) FAILS(LX_ARGUMENT, lx_append_dense(batch, records, 3 * WIDTH, -3, &err));
        if (wrong == 3) FAILS(LX_ARGUMENT, lx_append_dense(batch, NULL, 3 * WIDTH, 3, &err));
        if (wrong == 4) {
            int64_t offsets[2] = {0, WIDTH}, dims[1] = {WIDTH}, dim_offsets[2] = {0, 1};
            FAILS(LX_ARGUMENT, lx_append_ragged(batch, records, WIDTH, offsets, dims, dim_offsets, 1, 1, &err));
        }
        end_refused(batch, wrong % 2);
        check_whole_dense(store, length);
    }
    commit_nowhere(store);
    check_whole_dense(store, length);
    append_dense(store, length, 1); /* the next batch is as good as any */
}

static void gather_wrongly(lx_handle store, int64_t length) {
    unsigned char dst[4 * WIDTH];
    int64_t wrong[] = {length, -length - 1, INT64_MAX, INT64_MIN};
    for (int k = 0; k < 4; k++) {
        int64_t index[4] = {0, -1, wrong[k], 1};
        FAILS(LX_INDEX, lx_dense_gather(store, index, 4, dst, sizeof dst, 0, &err));
        CHECK(err.index == wrong[k]);
        CHECK(lx_dense_gather(store, index, 4, dst, sizeof dst, 0, NULL) == LX_INDEX);
    }
    int64_t index[4] = {0, 1, 2, 3}, offsets[5], dims[4], dim_offsets[5];
    FAILS(LX_ARGUMENT, lx_dense_gather(store, index, 4, dst, sizeof dst - 1, 0, &err));
    FAILS(LX_ARGUMENT, lx_dense_gather(store, index, 3, dst, sizeof dst, 0, &err));
    FAILS(LX_ARGUMENT, lx_dense_gather(store, index, -1, dst, sizeof dst, 0, &err));
    FAILS(LX_ARGUMENT, lx_dense_gather(store, NULL, 4, dst, sizeof dst, 0, &err));
    FAILS(LX_ARGUMENT, lx_dense_gather(store, index, 4, NULL, sizeof dst, 0, &err));
    FAILS(LX_ARGUMENT, lx_ragged_gather(store, index, 4, 1, dst, sizeof dst, offsets, dims, 4, dim_offsets, 0, &err));
}

static void check_dense_store(const char *name, int32_t codec) {
    lx_handle store = open_store(name, dense_options(codec));
    append_in_parts(store);
    abort_batches(store, 1024);
    int64_t index[] = {0, -1, 1024, 1024, 7, -1025, 512, 0}, origin[] = {0, 1024, 1024, 1024, 7, 0, 512, 0};
    for (int32_t threads = 0; threads <= 3; threads++) check_gathered(store, index, origin, 8, threads);
    OK(lx_dense_gather(store, NULL, 0, NULL, 0, 0, &err)); /* no records */
    gather_wrongly(store, 1025);
    OK(lx_store_close(store, &err));

    lx_handle reader = open_reader(name, LX_DENSE);
    lx_store_info info = info_of(reader);
    CHECK(info.codec == codec && info.mode == LX_MODE_READ && info.dirty == 0 && info.records == 1025);
    check_whole_dense(reader, 1025);
    lx_handle batch = 0;
    FAILS(LX_READ_ONLY, lx_append_begin(reader, &batch, &err));
    CHECK(batch == 0);
    OK(lx_store_close(reader, &err));
    passed(name);
}

/* Chunks, table segments and records far below the format's limits. */
static void check_small_limits(void) {
    lx_open_options o = dense_options(LX_CODEC_RAW), one = ragged_options(LX_CODEC_ZSTD);
    o.chunk_limit = 5 * WIDTH + 3;
    o.segment_limit = 8;
    lx_handle store = open_store("small", o);
    append_dense(store, 0, 33);
    append_dense(store, 33, 40);
    check_whole_dense(store, 73);
    OK(lx_store_close(store, &err));
    store = open_store("small", o);
    check_whole_dense(store, 73);
    OK(lx_store_close(store, &err));

    one.record_limit = 6;
    store = open_store("small records", one);
    lx_handle batch = 0;
    int64_t offsets[2] = {0, 8}, dims[1] = {4}, dim_offsets[2] = {0, 1};
    OK(lx_append_begin(store, &batch, &err));
    FAILS(LX_ARGUMENT, lx_append_ragged(batch, "abcdefgh", 8, offsets, dims, dim_offsets, 1, 2, &err));
    OK(lx_append_abort(batch, &err));
    OK(lx_store_close(store, &err));
    passed("lowered limits");
}

/* ---- ragged stores ---- */

/* Each of these parts is refused, and the store is as it was. */
static void refuse_ragged(lx_handle store, int64_t length) {
    unsigned char payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int wrong = 0; wrong < 9; wrong++) {
        int64_t offsets[3] = {0, 4, 8}, dims[2] = {2, 2}, dim_offsets[3] = {0, 1, 2};
        int64_t count = 2, item = 2, bytes = 8;
        if (wrong == 0) offsets[1] = 9;
        if (wrong == 1) offsets[1] = -1;
        if (wrong == 2) dims[1] = 3; /* more than there is */
        if (wrong == 3) dims[1] = -2;
        if (wrong == 4) item = 0;
        if (wrong == 5) count = -1;
        if (wrong == 6) bytes = 7;
        if (wrong == 7) offsets[1] = 8, dims[0] = 4, dims[1] = 0; /* a record of zero bytes */
        if (wrong == 8) dim_offsets[2] = -1;
        lx_handle batch = 0;
        OK(lx_append_begin(store, &batch, &err));
        add_ragged(batch, length, 3);
        FAILS(LX_ARGUMENT, lx_append_ragged(batch, payload, bytes, offsets, dims, dim_offsets, count, item, &err));
        end_refused(batch, wrong % 2);
        CHECK(length_of(store) == length);
    }
    lx_handle batch = 0;
    OK(lx_append_begin(store, &batch, &err));
    FAILS(LX_ARGUMENT, lx_append_ragged(batch, NULL, 0, NULL, NULL, NULL, 1, 2, &err));
    OK(lx_append_abort(batch, &err));
    OK(lx_append_begin(store, &batch, &err));
    FAILS(LX_ARGUMENT, lx_append_dense(batch, payload, 8, 1, &err));
    OK(lx_append_abort(batch, &err));
}

static void check_ragged_store(const char *name, int32_t codec) {
    lx_handle store = open_store(name, ragged_options(codec)), batch = 0;
    int64_t first = -1;
    OK(lx_append_begin(store, &batch, &err));
    add_ragged(batch, 0, 1);
    add_ragged(batch, 1, 64);
    add_ragged(batch, 65, 35);
    CHECK(length_of(store) == 0);
    OK(lx_append_commit(batch, &first, &err));
    CHECK(first == 0);
    check_whole_ragged(store, 100);
    refuse_ragged(store, 100);
    check_whole_ragged(store, 100);

    int64_t index[3] = {0, 100, 1}, offsets[4], dims[8], dim_offsets[4];
    unsigned char dst[256];
    FAILS(LX_INDEX, lx_ragged_gather(store, index, 3, 2, dst, 256, offsets, dims, 8, dim_offsets, 0, &err));
    CHECK(err.index == 100);
    index[1] = -101;
    FAILS(LX_INDEX, lx_ragged_gather(store, index, 3, 2, dst, 256, offsets, dims, 8, dim_offsets, 0, &err));
    CHECK(err.index == -101);
    index[1] = 2;
    FAILS(LX_ARGUMENT, lx_ragged_gather(store, index, 3, 0, dst, 256, offsets, dims, 8, dim_offsets, 0, &err));
    FAILS(LX_ARGUMENT, lx_ragged_gather(store, index, 3, 2, dst, 256, NULL, dims, 8, dim_offsets, 0, &err));
    FAILS(LX_ARGUMENT, lx_ragged_gather(store, index, 3, 2, dst, 256, offsets, dims, 8, NULL, 0, &err));
    FAILS(LX_ARGUMENT, lx_ragged_gather(store, NULL, 3, 2, dst, 256, offsets, dims, 8, dim_offsets, 0, &err));
    FAILS(LX_ARGUMENT, lx_dense_gather(store, index, 3, dst, 256, 0, &err));
    OK(lx_ragged_gather(store, NULL, 0, 2, NULL, 0, offsets, NULL, 0, dim_offsets, 0, &err));
    CHECK(offsets[0] == 0 && dim_offsets[0] == 0);
    OK(lx_store_close(store, &err));

    store = open_reader(name, LX_RAGGED);
    CHECK(info_of(store).codec == codec);
    check_whole_ragged(store, 100);
    OK(lx_store_close(store, &err));
    passed(name);
}

static void check_allow_empty(void) {
    lx_open_options o = ragged_options(LX_CODEC_RAW);
    o.allow_empty = 1;
    lx_handle store = open_store("empty", o), batch = 0;
    int64_t offsets[4] = {0, 0, 2, 2}, dims[4] = {0, 1, 3, 0}, dim_offsets[4] = {0, 1, 2, 4}, first;
    CHECK(info_of(store).allow_empty == 1);
    OK(lx_append_begin(store, &batch, &err));
    OK(lx_append_ragged(batch, "ab", 2, offsets, dims, dim_offsets, 3, 2, &err));
    OK(lx_append_commit(batch, &first, &err));
    int64_t index[4] = {2, 0, 1, -1}, got[5], got_dims[6], got_dim_offsets[5];
    char dst[2] = {0};
    OK(lx_ragged_gather(store, index, 4, 2, dst, 2, got, got_dims, 6, got_dim_offsets, 0, &err));
    CHECK(got[1] == 0 && got[2] == 0 && got[3] == 2 && got[4] == 2 && memcmp(dst, "ab", 2) == 0);
    int64_t want[6] = {3, 0, 0, 1, 3, 0};
    CHECK(got_dim_offsets[4] == 6 && memcmp(got_dims, want, sizeof want) == 0);
    OK(lx_store_close(store, &err));
    passed("records of zero bytes");
}

/* ---- dictionaries ---- */

/* Sample i: lines of a log, of 60 to 160 bytes. */
static int64_t sample_of(int64_t i, char *text) {
    static const char *const verbs[] = {"opened", "closed", "appended to", "refreshed", "compacted"};
    int length = 0;
    for (int line = 0; line <= i % 3; line++)
        length += sprintf(text + length, "{\"step\": %lld, \"event\": \"store %lld was %s\", \"ok\": true}\n",
                          (long long)(i * 7919 % 10007), (long long)(i % 13), verbs[(i + line) % 5]);
    return length;
}

/* Trains on count samples into room bytes; returns the size, or 0 if refused. */
static int64_t train(int64_t count, void *dict, int64_t room) {
    char *samples = malloc((size_t)count * 512);
    int64_t *sizes = malloc((size_t)count * 8), bytes = 0, written = -7;
    CHECK(samples != NULL && sizes != NULL);
    for (int64_t i = 0; i < count; i++) bytes += sizes[i] = sample_of(i, samples + bytes);
    int32_t status = lx_train_dict(samples, bytes, sizes, count, dict, room, &written, &err);
    CHECK(status == LX_OK || (status == LX_ARGUMENT && written == -7));
    if (status == LX_OK) {
        FAILS(LX_ARGUMENT, lx_train_dict(samples, bytes, sizes, count, dict, room, NULL, &err));
        FAILS(LX_ARGUMENT, lx_train_dict(samples, bytes - 1, sizes, count, dict, room, &written, &err));
        FAILS(LX_ARGUMENT, lx_train_dict(NULL, bytes, sizes, count, dict, room, &written, &err));
        FAILS(LX_ARGUMENT, lx_train_dict(samples, bytes, NULL, count, dict, room, &written, &err));
        sizes[3] = -1;
        FAILS(LX_ARGUMENT, lx_train_dict(samples, bytes, sizes, count, dict, room, &written, &err));
    }
    free(sizes);
    free(samples);
    return status == LX_OK ? written : 0;
}

/* Bytes that 200 samples beyond those trained on take in a store. */
static int64_t stored_samples(const char *name, lx_open_options o) {
    lx_handle store = open_store(name, o), batch = 0;
    lx_store_stats stats;
    int64_t first = -1, at[1] = {0}, offsets[2], dims[1], dim_offsets[2];
    OK(lx_append_begin(store, &batch, &err));
    for (int64_t i = 5000; i < 5200; i++) {
        char text[512];
        int64_t bytes = sample_of(i, text), from[2] = {0, bytes}, shape[1] = {bytes}, shape_at[2] = {0, 1};
        OK(lx_append_ragged(batch, text, bytes, from, shape, shape_at, 1, 1, &err));
    }
    OK(lx_append_commit(batch, &first, &err));
    OK(lx_store_close(store, &err));

    store = open_reader(name, LX_RAGGED); /* a dictionary is not asked for again */
    CHECK(info_of(store).codec == o.codec && length_of(store) == 200);
    for (at[0] = 0; at[0] < 200; at[0]++) {
        char want[512], got[512];
        int64_t bytes = sample_of(5000 + at[0], want);
        OK(lx_ragged_gather(store, at, 1, 1, got, sizeof got, offsets, dims, 1, dim_offsets, 0, &err));
        CHECK(offsets[1] == bytes && dims[0] == bytes && memcmp(got, want, (size_t)bytes) == 0);
    }
    OK(lx_store_stats_of(store, &stats, &err));
    OK(lx_store_close(store, &err));
    return stats.live_bytes;
}

static void check_dictionary(void) {
    enum { ROOM = 16 << 10 };
    char dict[ROOM];
    CHECK(train(3, dict, ROOM) == 0); /* too little to learn from */
    CHECK(strstr(err.message, "3") != NULL);
    CHECK(train(2000, dict, 16) == 0); /* too little room */
    int64_t size = train(2000, dict, ROOM);
    CHECK(size > 0 && size <= ROOM);

    lx_open_options o = ragged_options(LX_CODEC_ZSTD);
    o.identity = "{\"dtype\": \"|u1\"}";
    int64_t without = stored_samples("without dictionary", o);
    o.codec = LX_CODEC_ZSTD_DICT;
    o.dict = dict;
    o.dict_bytes = size;
    CHECK(stored_samples("with dictionary", o) < without * 2 / 3);
    passed("dictionaries");
}

void check_records(void) {
    check_dense_store("dense raw", LX_CODEC_RAW);
    check_dense_store("dense zstd", LX_CODEC_ZSTD);
    check_small_limits();
    check_ragged_store("ragged raw", LX_CODEC_RAW);
    check_ragged_store("ragged zstd", LX_CODEC_ZSTD);
    check_allow_empty();
    check_dictionary();
}
