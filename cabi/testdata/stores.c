/* The stores and records that the checks are made with. */
#include "smoke.h"

/* ---- opening ---- */

lx_open_options options(int32_t kind, int32_t mode, int32_t codec) {
    lx_open_options o;
    memset(&o, 0, sizeof o);
    o.struct_bytes = sizeof o;
    o.kind = kind;
    o.mode = mode;
    o.codec = codec;
    return o;
}

lx_open_options dense_options(int32_t codec) {
    lx_open_options o = options(LX_DENSE, LX_MODE_APPEND, codec);
    o.identity = DENSE_ID;
    o.width = WIDTH;
    return o;
}

lx_open_options ragged_options(int32_t codec) {
    lx_open_options o = options(LX_RAGGED, LX_MODE_APPEND, codec);
    o.identity = RAGGED_ID;
    return o;
}

lx_handle open_store(const char *name, lx_open_options o) {
    lx_handle store = 0;
    OK(lx_store_open(in_folder(name), &o, &store, &err));
    CHECK(store != 0);
    return store;
}

lx_handle open_reader(const char *name, int32_t kind) {
    return open_store(name, options(kind, LX_MODE_READ, LX_CODEC_ANY));
}

int64_t length_of(lx_handle store) {
    int64_t records = -1;
    OK(lx_store_len(store, &records, &err));
    return records;
}

lx_store_info info_of(lx_handle store) {
    lx_store_info info;
    memset(&info, 'x', sizeof info);
    OK(lx_store_info_of(store, &info, &err));
    return info;
}

/* ---- dense records ---- */

void add_dense(lx_handle batch, int64_t first, int64_t count) {
    unsigned char *records = malloc((size_t)(count * WIDTH));
    CHECK(records != NULL);
    for (int64_t i = 0; i < count * WIDTH; i++) records[i] = byte_of(first + i / WIDTH, i % WIDTH);
    OK(lx_append_dense(batch, records, count * WIDTH, count, &err));
    free(records);
}

void append_dense(lx_handle store, int64_t first, int64_t count) {
    lx_handle batch = 0;
    int64_t got = -1;
    OK(lx_append_begin(store, &batch, &err));
    add_dense(batch, first, count);
    OK(lx_append_commit(batch, &got, &err));
    CHECK(got == first);
}

void check_gathered(lx_handle store, int64_t *index, const int64_t *origin, int64_t count, int32_t threads) {
    void *buffer = NULL;
    OK(lx_buffer_new(count * WIDTH, &buffer, &err));
    memset(buffer, 0xa5, (size_t)(count * WIDTH));
    OK(lx_dense_gather(store, index, count, buffer, count * WIDTH, threads, &err));
    for (int64_t i = 0; i < count * WIDTH; i++)
        CHECK(((unsigned char *)buffer)[i] == byte_of(origin[i / WIDTH], i % WIDTH));
    OK(lx_dense_one(store, index[count - 1], buffer, WIDTH, &err));
    for (int64_t i = 0; i < WIDTH; i++)
        CHECK(((unsigned char *)buffer)[i] == byte_of(origin[count - 1], i));
    FAILS(LX_ARGUMENT, lx_dense_one(store, 0, buffer, WIDTH - 1, &err));
    OK(lx_store_ahead(store, index, count, &err));
    FAILS(LX_INDEX, lx_store_ahead(store, &(int64_t){INT64_MAX}, 1, &err));
    lx_buffer_free(buffer);
}

void check_origins(lx_handle store, const int64_t *origin, int64_t count) {
    CHECK(length_of(store) == count);
    int64_t *index = malloc((size_t)(count + 1) * sizeof *index);
    CHECK(index != NULL);
    for (int64_t i = 0; i < count; i++) index[i] = i % 2 ? i : i - count;
    if (count > 0) check_gathered(store, index, origin, count, 0);
    free(index);
}

void check_whole_dense(lx_handle store, int64_t length) {
    int64_t *origin = malloc((size_t)(length + 1) * sizeof *origin);
    CHECK(origin != NULL);
    for (int64_t i = 0; i < length; i++) origin[i] = i;
    check_origins(store, origin, length);
    free(origin);
}

/* ---- ragged records ---- */

int64_t ragged_dims(int64_t i, int64_t dims[2]) {
    if (i % 7 == 6) return 0;
    dims[0] = i % 5 + 1;
    dims[1] = 3;
    return i % 2 ? 1 : 2;
}

int64_t ragged_bytes(int64_t i) {
    int64_t dims[2] = {1, 1}, count = ragged_dims(i, dims);
    return 2 * (count > 0 ? dims[0] : 1) * (count > 1 ? dims[1] : 1);
}

void add_ragged(lx_handle batch, int64_t first, int64_t count) {
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

void append_ragged(lx_handle store, int64_t first, int64_t count) {
    lx_handle batch = 0;
    int64_t got = -1;
    OK(lx_append_begin(store, &batch, &err));
    add_ragged(batch, first, count);
    OK(lx_append_commit(batch, &got, &err));
    CHECK(got == first);
}

/* Asks for the room first, as a caller does who does not know the sizes. */
void check_ragged(lx_handle store, int64_t *index, const int64_t *origin, int64_t count, int32_t threads) {
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
        int64_t i = origin[k], want[2], ndim = ragged_dims(i, want);
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

void check_whole_ragged(lx_handle store, int64_t length) {
    int64_t index[512], origin[512];
    CHECK(length_of(store) == length && length <= 512);
    for (int64_t i = 0; i < length; i++) origin[i] = i, index[i] = i % 2 ? i : i - length;
    for (int32_t threads = 0; threads <= 2; threads++) check_ragged(store, index, origin, length, threads);
}
