/*
 * A client of loaderx.h in C11, and nothing else of loaderx: it calls every
 * function of the header and holds the answers against what the header says.
 * smoke_test.go builds and runs it. Its argument is an empty folder; it prints
 * a line for each group of checks and ends with 1, naming the line, at the first
 * that fails.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaderx.h"

static const char *folder;

/* One error for each thread, so that threads can check at the same time. */
static _Thread_local lx_error err;

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) fail(__LINE__, #condition, "is not so");                \
    } while (0)

/* The call succeeds. */
#define OK(call)                                                                  \
    do {                                                                          \
        if ((call) != LX_OK) fail(__LINE__, #call, err.message);                  \
    } while (0)

/* The call fails with the status, and says so in words. */
#define FAILS(want, call)                                                         \
    do {                                                                          \
        memset(&err, 'x', sizeof err);                                            \
        int32_t got_ = (call);                                                    \
        if (got_ != (want)) wrong_status(__LINE__, #call, (want), got_);          \
        CHECK(err.status == (want));                                              \
        CHECK(err.message[0] != 0 && memchr(err.message, 0, sizeof err.message)); \
        CHECK(memchr(err.path, 0, sizeof err.path));                              \
    } while (0)

static _Noreturn void fail(int line, const char *what, const char *why) {
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, what, why);
    exit(1);
}

static _Noreturn void wrong_status(int line, const char *what, int32_t want, int32_t got) {
    char why[sizeof err.message + 80];
    err.message[sizeof err.message - 1] = 0;
    snprintf(why, sizeof why, "expected status %d, got %d (%s)", want, got, got == LX_OK ? "" : err.message);
    fail(line, what, why);
}

static void passed(const char *group) {
    printf("ok %s\n", group);
    fflush(stdout);
}

/* ---- what the groups share ---- */

#define DENSE_ID "{\"dtype\": \"|u1\", \"item_shape\": [24]}"
#define RAGGED_ID "{\"dtype\": \"<u2\"}"

enum { WIDTH = 24 };

/* Byte j of record i, so that any record can be checked by itself. */
static unsigned char byte_of(int64_t i, int64_t j) { return (unsigned char)(i * 31 + j * 7 + (i >> 8)); }

static lx_open_options options(int32_t kind, int32_t mode, int32_t codec) {
    lx_open_options o;
    memset(&o, 0, sizeof o);
    o.struct_bytes = sizeof o;
    o.kind = kind;
    o.mode = mode;
    o.codec = codec;
    return o;
}

static lx_open_options dense_options(int32_t codec) {
    lx_open_options o = options(LX_DENSE, LX_MODE_APPEND, codec);
    o.identity = DENSE_ID;
    o.width = WIDTH;
    return o;
}

static lx_open_options ragged_options(int32_t codec) {
    lx_open_options o = options(LX_RAGGED, LX_MODE_APPEND, codec);
    o.identity = RAGGED_ID;
    return o;
}

/* A path in the folder, good until the thread asks for the next. */
static const char *in_folder(const char *name) {
    static _Thread_local char path[4096];
    CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    return path;
}

static lx_handle open_store(const char *name, lx_open_options o) {
    lx_handle store = 0;
    OK(lx_store_open(in_folder(name), &o, &store, &err));
    CHECK(store != 0);
    return store;
}

static int64_t length_of(lx_handle store) {
    int64_t records = -1;
    OK(lx_store_len(store, &records, &err));
    return records;
}

static lx_store_info info_of(lx_handle store) {
    lx_store_info info;
    memset(&info, 'x', sizeof info);
    OK(lx_store_info_of(store, &info, &err));
    return info;
}

/* Adds records first to first + count - 1 to a batch. */
static void add_dense(lx_handle batch, int64_t first, int64_t count) {
    unsigned char *records = malloc((size_t)(count * WIDTH));
    CHECK(records != NULL);
    for (int64_t i = 0; i < count * WIDTH; i++) records[i] = byte_of(first + i / WIDTH, i % WIDTH);
    OK(lx_append_dense(batch, records, count * WIDTH, count, &err));
    free(records);
}

static void append_dense(lx_handle store, int64_t first, int64_t count) {
    lx_handle batch = 0;
    int64_t got = -1;
    OK(lx_append_begin(store, &batch, &err));
    add_dense(batch, first, count);
    OK(lx_append_commit(batch, &got, &err));
    CHECK(got == first);
}

/* Gathers and compares; negative indices count from length. */
static void check_dense(lx_handle store, int64_t *index, int64_t count, int64_t length, int32_t threads) {
    void *buffer = NULL;
    OK(lx_buffer_new(count * WIDTH, &buffer, &err));
    memset(buffer, 0xa5, (size_t)(count * WIDTH));
    OK(lx_dense_gather(store, index, count, buffer, count * WIDTH, threads, &err));
    for (int64_t i = 0; i < count * WIDTH; i++) {
        int64_t record = index[i / WIDTH];
        if (record < 0) record += length;
        CHECK(((unsigned char *)buffer)[i] == byte_of(record, i % WIDTH));
    }
    lx_buffer_free(buffer);
}

static void check_whole_dense(lx_handle store, int64_t length) {
    CHECK(length_of(store) == length);
    int64_t *index = malloc((size_t)length * sizeof *index);
    CHECK(index != NULL);
    for (int64_t i = 0; i < length; i++) index[i] = i % 2 ? i : i - length;
    check_dense(store, index, length, length, 0);
    free(index);
}

/* ---- the library ---- */

static void check_library(void) {
    CHECK(lx_abi_version() == LX_ABI_VERSION);
    CHECK(lx_parallelism() >= 1);
    for (int64_t bytes = 1; bytes <= 64 << 20; bytes = bytes * 5 + 3) {
        void *buffer = NULL;
        OK(lx_buffer_new(bytes, &buffer, &err));
        CHECK(buffer != NULL && (uintptr_t)buffer % 64 == 0);
        memset(buffer, 0x5a, (size_t)bytes);
        lx_buffer_free(buffer);
    }
    void *buffer = NULL;
    FAILS(LX_ARGUMENT, lx_buffer_new(-1, &buffer, &err));
    FAILS(LX_ARGUMENT, lx_buffer_new(64, NULL, &err));
    FAILS(LX_MEMORY, lx_buffer_new(INT64_MAX, &buffer, &err));
    CHECK(buffer == NULL);
    lx_buffer_free(NULL);
    passed("library and buffers");
}

/* ---- opening ---- */

static void check_identity(lx_handle store, lx_str dtype) {
    lx_store_info info = info_of(store);
    char json[256] = {0};
    CHECK(info.identity_bytes > 0 && info.identity_bytes < (int64_t)sizeof json);
    CHECK(lx_store_identity(store, json, info.identity_bytes - 1, &err) == LX_ROOM);
    CHECK(lx_store_identity(store, NULL, 0, NULL) == LX_ROOM);
    memset(json, '#', sizeof json - 1);
    OK(lx_store_identity(store, json, sizeof json, &err));
    CHECK(json[info.identity_bytes] == '#'); /* not terminated, nothing beyond */
    json[info.identity_bytes] = 0;
    CHECK(strstr(json, dtype) != NULL);

    /* What the library says is also what it takes. */
    lx_open_options o = options(info.kind, LX_MODE_READ, info.codec);
    o.identity = json;
    lx_handle same = open_store(info.kind == LX_DENSE ? "opened/here/dense" : "opened/here/ragged", o);
    OK(lx_store_close(same, &err));
}

static void check_open(void) {
    lx_handle none = 0;
    lx_open_options o = options(LX_DENSE, LX_MODE_READ, LX_CODEC_ANY);
    FAILS(LX_NOT_A_STORE, lx_store_open(in_folder("missing"), &o, &none, &err));
    CHECK(strstr(err.path, "missing") != NULL);
    o.mode = LX_MODE_APPEND; /* but no identity: nothing to create */
    FAILS(LX_NOT_A_STORE, lx_store_open(in_folder("missing"), &o, &none, &err));
    CHECK(lx_store_open(in_folder("missing"), &o, &none, NULL) == LX_NOT_A_STORE);

    /* Parent folders are made. */
    lx_handle dense = open_store("opened/here/dense", dense_options(LX_CODEC_RAW));
    lx_handle ragged = open_store("opened/here/ragged", ragged_options(LX_CODEC_ANY));
    lx_store_info info = info_of(dense);
    CHECK(info.records == 0 && info.width == WIDTH && info.kind == LX_DENSE && info.mode == LX_MODE_APPEND);
    CHECK(info.codec == LX_CODEC_RAW && info.version == 5 && info.allow_empty == 0 && info.unsynced == 0);
    CHECK(info.dirty == 0 && info.lockable == 1 && info.store_id != 0);
    info = info_of(ragged);
    CHECK(info.width == 0 && info.kind == LX_RAGGED && info.codec == LX_CODEC_ZSTD);
    check_identity(dense, "|u1");
    check_identity(ragged, "<u2");

    FAILS(LX_ARGUMENT, lx_store_open(NULL, &o, &none, &err));
    FAILS(LX_ARGUMENT, lx_store_open(in_folder("missing"), NULL, &none, &err));
    FAILS(LX_ARGUMENT, lx_store_open(in_folder("missing"), &o, NULL, &err));
    FAILS(LX_ARGUMENT, lx_store_info_of(dense, NULL, &err));
    FAILS(LX_ARGUMENT, lx_store_len(dense, NULL, &err));
    FAILS(LX_ARGUMENT, lx_store_identity(dense, NULL, 10, &err));
    CHECK(none == 0);
    OK(lx_store_close(dense, NULL));
    OK(lx_store_close(ragged, NULL));
    passed("opening, information, identity");
}

/* Options that no store can be opened with. */
static void check_open_arguments(void) {
    for (int wrong = 0; wrong < 10; wrong++) {
        lx_handle none = 0;
        lx_open_options o = dense_options(LX_CODEC_RAW);
        if (wrong == 0) o.struct_bytes = 0;
        if (wrong == 1) o.kind = 3;
        if (wrong == 2) o.mode = 2;
        if (wrong == 3) o.codec = 7;
        if (wrong == 4) o.width = 0;
        if (wrong == 5) o.identity = "{\"dtype\": \"|u1\"}"; /* no item_shape */
        if (wrong == 6) o.identity = "not JSON";
        if (wrong == 7) o.segment_limit = 3;
        if (wrong == 8) o.dict_bytes = 4; /* at NULL */
        if (wrong == 9) o.codec = LX_CODEC_ZSTD_DICT; /* without a dictionary */
        FAILS(LX_ARGUMENT, lx_store_open(in_folder("refused"), &o, &none, &err));
        CHECK(none == 0);
    }
    lx_open_options o = options(LX_DENSE, LX_MODE_READ, LX_CODEC_ANY);
    lx_handle none = 0;
    FAILS(LX_NOT_A_STORE, lx_store_open(in_folder("refused"), &o, &none, &err));
    passed("options that no store can have");
}

static void check_mismatch(void) {
    lx_handle store = open_store("matched", dense_options(LX_CODEC_RAW)), none = 0;
    append_dense(store, 0, 5);
    OK(lx_store_close(store, &err));
    for (int wrong = 0; wrong < 4; wrong++) {
        lx_open_options o = dense_options(LX_CODEC_RAW);
        if (wrong == 0) o.identity = "{\"dtype\": \"|i1\", \"item_shape\": [24]}";
        if (wrong == 1) o.identity = "{\"dtype\": \"|u1\", \"item_shape\": [4, 6]}";
        if (wrong == 2) o.codec = LX_CODEC_ZSTD;
        if (wrong == 3) o = ragged_options(LX_CODEC_RAW);
        FAILS(LX_MISMATCH, lx_store_open(in_folder("matched"), &o, &none, &err));
        CHECK(strstr(err.path, "matched") != NULL && none == 0);
    }
    store = open_store("matched", dense_options(LX_CODEC_ANY));
    check_whole_dense(store, 5);
    OK(lx_store_close(store, &err));

    lx_handle ragged = open_store("matched ragged", ragged_options(LX_CODEC_RAW));
    OK(lx_store_close(ragged, &err));
    lx_open_options o = ragged_options(LX_CODEC_RAW);
    o.allow_empty = 1; /* which it was made without */
    FAILS(LX_MISMATCH, lx_store_open(in_folder("matched ragged"), &o, &none, &err));
    passed("stores of another identity");
}

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
        OK(lx_append_abort(batch, &err));
        check_whole_dense(store, length);
    }
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
    int64_t index[] = {0, -1, 1024, 1024, 7, -1025, 512, 0};
    for (int32_t threads = 0; threads <= 3; threads++) check_dense(store, index, 8, 1025, threads);
    OK(lx_dense_gather(store, NULL, 0, NULL, 0, 0, &err)); /* no records */
    gather_wrongly(store, 1025);
    OK(lx_store_close(store, &err));

    lx_handle reader = open_store(name, options(LX_DENSE, LX_MODE_READ, LX_CODEC_ANY));
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

/* Record i has i % 5 + 1 rows of 3 in even places, and is a lone element in
   every seventh. */
static int64_t ragged_dims(int64_t i, int64_t dims[2]) {
    if (i % 7 == 6) return 0;
    dims[0] = i % 5 + 1;
    dims[1] = 3;
    return i % 2 ? 1 : 2;
}

static int64_t ragged_bytes(int64_t i) {
    int64_t dims[2] = {1, 1}, count = ragged_dims(i, dims);
    return 2 * (count > 0 ? dims[0] : 1) * (count > 1 ? dims[1] : 1);
}

static void add_ragged(lx_handle batch, int64_t first, int64_t count) {
    int64_t offsets[65] = {0}, dim_offsets[65] = {0}, dims[128];
    unsigned char payload[64 * 30];
    CHECK(count <= 64);
    for (int64_t i = 0; i < count; i++) {
        int64_t bytes = ragged_bytes(first + i);
        for (int64_t j = 0; j < bytes; j++) payload[offsets[i] + j] = byte_of(first + i, j);
        offsets[i + 1] = offsets[i] + bytes;
        dim_offsets[i + 1] = dim_offsets[i] + ragged_dims(first + i, dims + dim_offsets[i]);
    }
    OK(lx_append_ragged(batch, payload, offsets[count], offsets, dims, dim_offsets, count, 2, &err));
}

/* Asks for the room first, as a caller does who does not know the sizes. */
static void check_ragged(lx_handle store, int64_t *index, int64_t count, int64_t length, int32_t threads) {
    int64_t *offsets = malloc((size_t)(count + 1) * 8), *dim_offsets = malloc((size_t)(count + 1) * 8);
    CHECK(offsets != NULL && dim_offsets != NULL);
    CHECK(lx_ragged_gather(store, index, count, 2, NULL, 0, offsets, NULL, 0, dim_offsets, threads, &err) == LX_ROOM);
    int64_t bytes = offsets[count], room = dim_offsets[count];
    int64_t *dims = malloc((size_t)(room + 1) * 8);
    void *dst = NULL;
    OK(lx_buffer_new(bytes, &dst, &err));
    CHECK(lx_ragged_gather(store, index, count, 2, dst, bytes - 1, offsets, dims, room, dim_offsets, threads, &err) == LX_ROOM);
    if (room > 0)
        CHECK(lx_ragged_gather(store, index, count, 2, dst, bytes, offsets, dims, room - 1, dim_offsets, threads, &err) == LX_ROOM);
    memset(offsets, 0xa5, (size_t)(count + 1) * 8);
    memset(dim_offsets, 0xa5, (size_t)(count + 1) * 8);
    OK(lx_ragged_gather(store, index, count, 2, dst, bytes, offsets, dims, room, dim_offsets, threads, &err));
    CHECK(offsets[0] == 0 && dim_offsets[0] == 0 && offsets[count] == bytes && dim_offsets[count] == room);
    for (int64_t k = 0; k < count; k++) {
        int64_t i = index[k] < 0 ? index[k] + length : index[k], want[2];
        int64_t ndim = ragged_dims(i, want);
        CHECK(offsets[k + 1] - offsets[k] == ragged_bytes(i));
        CHECK(dim_offsets[k + 1] - dim_offsets[k] == ndim);
        CHECK(memcmp(dims + dim_offsets[k], want, (size_t)ndim * 8) == 0);
        for (int64_t j = offsets[k]; j < offsets[k + 1]; j++)
            CHECK(((unsigned char *)dst)[j] == byte_of(i, j - offsets[k]));
    }
    lx_buffer_free(dst);
    free(dims);
    free(offsets);
    free(dim_offsets);
}

static void check_whole_ragged(lx_handle store, int64_t length) {
    int64_t index[512];
    CHECK(length_of(store) == length && length <= 512);
    for (int64_t i = 0; i < length; i++) index[i] = i % 2 ? i : i - length;
    for (int32_t threads = 0; threads <= 2; threads++) check_ragged(store, index, length, length, threads);
}

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
        OK(lx_append_abort(batch, &err));
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

    store = open_store(name, options(LX_RAGGED, LX_MODE_READ, LX_CODEC_ANY));
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

/* ---- sharing and the ends of handles ---- */

static void check_second_writer(void) {
    lx_handle one = open_store("shared", dense_options(LX_CODEC_RAW));
    lx_handle two = open_store("shared", dense_options(LX_CODEC_RAW));
    lx_handle batch = 0;
    append_dense(one, 0, 10); /* makes it the writer */
    FAILS(LX_BUSY, lx_append_begin(two, &batch, &err));
    CHECK(batch == 0 && length_of(two) == 0); /* a reader's length is fixed */
    lx_handle reader = open_store("shared", options(LX_DENSE, LX_MODE_READ, LX_CODEC_ANY));
    check_whole_dense(reader, 10);
    OK(lx_store_close(reader, &err));
    OK(lx_store_close(one, &err));
    append_dense(two, 10, 10); /* now it can be */
    check_whole_dense(two, 20);
    OK(lx_store_close(two, &err));
    passed("a second writer");
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
    unsigned char room[WIDTH] = {0};
    lx_handle batch = 0;
    lx_store_info info;
    FAILS(LX_CLOSED, lx_store_info_of(h, &info, &err));
    FAILS(LX_CLOSED, lx_store_identity(h, room, sizeof room, &err));
    FAILS(LX_CLOSED, lx_store_len(h, &n, &err));
    FAILS(LX_CLOSED, lx_store_sync(h, &err));
    FAILS(LX_CLOSED, lx_append_begin(h, &batch, &err));
    FAILS(LX_CLOSED, lx_append_dense(h, room, WIDTH, 1, &err));
    FAILS(LX_CLOSED, lx_append_ragged(h, room, 1, offsets, dims, dim_offsets, 1, 1, &err));
    FAILS(LX_CLOSED, lx_append_commit(h, &n, &err));
    FAILS(LX_CLOSED, lx_append_abort(h, &err));
    FAILS(LX_CLOSED, lx_dense_gather(h, index, 1, room, WIDTH, 0, &err));
    FAILS(LX_CLOSED, lx_ragged_gather(h, index, 1, 1, room, 1, offsets, dims, 1, dim_offsets, 0, &err));
    FAILS(LX_CLOSED, lx_sampler_fill(h, 0, 1, index, 1, &err));
    FAILS(LX_CLOSED, lx_sampler_free(h, &err));
    FAILS(LX_CLOSED, lx_store_close(h, &err));
    CHECK(n == -7 && batch == 0);
    CHECK(lx_store_len(h, &n, NULL) == LX_CLOSED && lx_store_close(h, NULL) == LX_CLOSED);
    CHECK(lx_append_abort(h, NULL) == LX_CLOSED && lx_sampler_free(h, NULL) == LX_CLOSED);
}

static void check_handles(void) {
    lx_handle store = open_store("handles", dense_options(LX_CODEC_RAW)), batch = 0, sampler = 0;
    int64_t first = -1, n = 0;
    OK(lx_append_begin(store, &batch, &err));
    add_dense(batch, 0, 4);
    FAILS(LX_CLOSED, lx_store_len(batch, &n, &err)); /* a handle of another kind */
    FAILS(LX_CLOSED, lx_append_commit(store, &first, &err));
    OK(lx_append_commit(batch, &first, &err));
    OK(lx_sampler_new(LX_IID, 4, 1, 0, 0, 1, &sampler, &err));
    FAILS(LX_CLOSED, lx_store_close(sampler, &err));
    OK(lx_sampler_free(sampler, &err));
    OK(lx_store_close(store, &err));
    refuse_handle(0);
    refuse_handle(store);
    refuse_handle(batch);
    refuse_handle(sampler);
    refuse_handle(UINT64_MAX);
    passed("stale and zero handles");
}

/* ---- the sampler ---- */

static void check_cycle(lx_handle sampler, int64_t length, int64_t batch, int64_t cycle) {
    int64_t steps = length / batch, *index = malloc((size_t)(steps * batch) * 8);
    char *seen = calloc((size_t)length, 1);
    CHECK(index != NULL && seen != NULL);
    OK(lx_sampler_fill(sampler, cycle * steps, steps, index, steps * batch, &err));
    for (int64_t i = 0; i < steps * batch; i++) {
        CHECK(index[i] >= 0 && index[i] < length && !seen[index[i]]);
        seen[index[i]] = 1;
    }
    free(seen);
    free(index);
}

static void check_sampler(void) {
    int64_t whole[12], part[6];
    lx_handle sampler = 0;
    for (int32_t mode = LX_SEQUENTIAL; mode <= LX_CYCLIC; mode++) {
        OK(lx_sampler_new(mode, 50, 6, 42, 0, 1, &sampler, &err));
        OK(lx_sampler_fill(sampler, 7, 2, whole, 12, &err));
        OK(lx_sampler_free(sampler, &err));
        for (int32_t rank = 0; rank < 2; rank++) { /* contiguous parts of each batch */
            OK(lx_sampler_new(mode, 50, 6, 42, rank, 2, &sampler, &err));
            OK(lx_sampler_fill(sampler, 7, 2, part, 6, &err));
            for (int i = 0; i < 6; i++) CHECK(part[i] == whole[i / 3 * 6 + rank * 3 + i % 3]);
            OK(lx_sampler_free(sampler, &err));
        }
        if (mode == LX_SEQUENTIAL)
            for (int i = 0; i < 12; i++) CHECK(whole[i] == (42 + i) % 50);
    }
    OK(lx_sampler_new(LX_CYCLIC, 1000, 64, 1, 0, 1, &sampler, &err));
    for (int64_t cycle = 0; cycle < 3; cycle++) check_cycle(sampler, 1000, 64, cycle);
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, -1, 1, whole, 12, &err));
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, 0, -1, whole, 12, &err));
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, 0, 1, whole, 12, &err)); /* 64 are due */
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, 0, 1, NULL, 64, &err));
    OK(lx_sampler_fill(sampler, INT64_MAX, 0, NULL, 0, &err));
    OK(lx_sampler_free(sampler, NULL));
    OK(lx_sampler_new(LX_CYCLIC, 70000, 7, 1, 0, 1, &sampler, &err));
    check_cycle(sampler, 70000, 7, 5);
    OK(lx_sampler_free(sampler, &err));

    sampler = 0;
    FAILS(LX_ARGUMENT, lx_sampler_new(3, 10, 2, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 0, 2, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 0, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 2, 0, 2, 2, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 2, 0, 0, 0, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 256, 0, 0, 3, &sampler, &err));
    CHECK(strstr(err.message, "256") != NULL && strstr(err.message, "3") != NULL);
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_CYCLIC, 10, 11, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 2, 0, 0, 1, NULL, &err));
    CHECK(sampler == 0);
    passed("sampler");
}

/* ---- threads ---- */

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
        check_dense(busy_store, index, 64, length, 2);
    }
    return unused;
}

static void *append_along(void *unused) {
    for (int64_t i = 0; i < APPENDS; i++) append_dense(busy_store, i * PER_APPEND, PER_APPEND);
    OK(lx_store_sync(busy_store, &err));
    return unused;
}

static void check_threads(const char *name, int32_t codec) {
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

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER (empty)\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    check_library();
    check_open();
    check_open_arguments();
    check_mismatch();
    check_dense_store("dense raw", LX_CODEC_RAW);
    check_dense_store("dense zstd", LX_CODEC_ZSTD);
    check_small_limits();
    check_ragged_store("ragged raw", LX_CODEC_RAW);
    check_ragged_store("ragged zstd", LX_CODEC_ZSTD);
    check_allow_empty();
    check_second_writer();
    check_close_with_batch();
    check_handles();
    check_sampler();
    check_threads("threads raw", LX_CODEC_RAW);
    check_threads("threads zstd", LX_CODEC_ZSTD);
    check_turns();
    return 0;
}
