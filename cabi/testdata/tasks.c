/* Work on whole stores in steps: verifications, snapshots, upgrades, and tasks
   that are ended before they are done. */
#include "smoke.h"

lx_progress run_task(lx_handle task) {
    lx_progress now = {0, 0, 0, 0}, before = now;
    do {
        before = now;
        OK(lx_task_step(task, &now, &err));
        CHECK(now.at >= before.at && now.at <= now.total && now.bad >= before.bad);
        CHECK(before.total == 0 || now.total == before.total);
    } while (!now.done);
    CHECK(now.done == 1 && now.at == now.total);
    OK(lx_task_end(task, &err));
    FAILS(LX_CLOSED, lx_task_step(task, &now, &err));
    FAILS(LX_CLOSED, lx_task_end(task, &err));
    return now;
}

/* ---- verifying ---- */

/* Changes a byte of a file of a store. */
static void damage(const char *name, long at) {
    FILE *file = fopen(in_folder(name), "r+b");
    CHECK(file != NULL && fseek(file, at, SEEK_SET) == 0);
    int byte = fgetc(file);
    CHECK(byte != EOF && fseek(file, at, SEEK_SET) == 0 && fputc(byte ^ 0x10, file) != EOF);
    CHECK(fclose(file) == 0);
}

/* Verifies to the end, and finds as many bad records as wanted, the indices and
   offsets of which it writes. */
static void verify(lx_handle store, int64_t item_bytes, int32_t want, int64_t *index, int64_t *offset) {
    lx_handle task = 0;
    lx_progress now;
    lx_error bad;
    OK(lx_verify_begin(store, item_bytes, &task, &err));
    do OK(lx_task_step(task, &now, &err));
    while (!now.done);
    CHECK(now.bad == want && now.at == now.total);
    for (int32_t i = 0; i < want; i++) {
        OK(lx_task_bad(task, i, &bad, &err));
        CHECK(bad.status == LX_CORRUPT_RECORD && bad.message[0] != 0);
        CHECK(strstr(bad.path, "0.chunk") != NULL);
        index[i] = bad.index;
        offset[i] = bad.offset;
    }
    FAILS(LX_ARGUMENT, lx_task_bad(task, want, &bad, &err));
    FAILS(LX_ARGUMENT, lx_task_bad(task, -1, &bad, &err));
    FAILS(LX_ARGUMENT, lx_task_bad(task, 0, NULL, &err));
    OK(lx_task_end(task, &err));
    FAILS(LX_CLOSED, lx_task_bad(task, 0, &bad, &err));
}

static void check_verify(void) {
    lx_handle store = open_store("verified", dense_options(LX_CODEC_RAW)), task = 0;
    int64_t index[2], offset[2];
    append_dense(store, 0, 1000);
    verify(store, 1, 0, index, offset);
    FAILS(LX_ARGUMENT, lx_verify_begin(store, 0, &task, &err));
    FAILS(LX_ARGUMENT, lx_verify_begin(store, 1, NULL, &err));
    OK(lx_store_close(store, &err));
    damage("verified/0.chunk", 7 * WIDTH + 3);
    damage("verified/0.chunk", 999 * WIDTH + WIDTH - 1);
    store = open_reader("verified", LX_DENSE);
    verify(store, 1, 2, index, offset);
    int first = index[0] == 7 ? 0 : 1; /* in either order */
    CHECK(index[first] == 7 && offset[first] == 7 * WIDTH);
    CHECK(index[1 - first] == 999 && offset[1 - first] == 999 * WIDTH);
    OK(lx_store_close(store, &err));
    passed("verifying dense records");
}

static void check_verify_ragged(void) {
    lx_handle store = open_store("verified ragged", ragged_options(LX_CODEC_RAW));
    int64_t index[7], offset[7];
    append_ragged(store, 0, 7); /* payloads and shapes: see check_delete_ragged */
    verify(store, 2, 0, index, offset);
    verify(store, 4, 7, index, offset); /* elements of twice the size would not fit */
    OK(lx_store_close(store, &err));
    damage("verified ragged/0.chunk", 30 + 20 + 18 + 8); /* within the shape of record 2 */
    store = open_reader("verified ragged", LX_RAGGED);
    verify(store, 2, 1, index, offset);
    CHECK(index[0] == 2 && offset[0] == 30 + 20 + 18);
    OK(lx_store_close(store, &err));
    passed("verifying ragged records");
}

/* ---- snapshots ---- */

static int is_missing(const char *name, int32_t kind) {
    lx_handle none = 0;
    lx_open_options o = options(kind, LX_MODE_READ, LX_CODEC_ANY);
    return lx_store_open(in_folder(name), &o, &none, &err) == LX_NOT_A_STORE;
}

static lx_handle begin_snapshot(lx_handle store, const char *name) {
    lx_handle task = 0;
    OK(lx_snapshot_begin(store, in_folder(name), &task, &err));
    return task;
}

static void check_snapshot(void) {
    lx_handle store = open_store("copied", dense_options(LX_CODEC_ZSTD)), none = 0;
    append_dense(store, 0, 50);
    lx_handle task = begin_snapshot(store, "copies/one");
    append_dense(store, 50, 50); /* which the copy does not show */
    CHECK(is_missing("copies/one", LX_DENSE));
    run_task(task);
    lx_handle copy = open_store("copies/one", dense_options(LX_CODEC_ANY));
    lx_store_info info = info_of(copy);
    CHECK(info.codec == LX_CODEC_ZSTD && info.dirty == 0 && info.unsynced == 0);
    CHECK(info.store_id != 0 && info.store_id != info_of(store).store_id);
    check_whole_dense(copy, 50);
    append_dense(copy, 50, 1); /* a store like any other */
    check_whole_dense(copy, 51);
    OK(lx_store_close(copy, &err));
    check_whole_dense(store, 100);

    FAILS(LX_ARGUMENT, lx_snapshot_begin(store, in_folder("copies/one"), &none, &err));
    FAILS(LX_ARGUMENT, lx_snapshot_begin(store, in_folder("copies"), &none, &err)); /* not empty */
    FAILS(LX_ARGUMENT, lx_snapshot_begin(store, NULL, &none, &err));
    FAILS(LX_ARGUMENT, lx_snapshot_begin(store, in_folder("copies/two"), NULL, &err));
    CHECK(none == 0);
    task = begin_snapshot(store, "copies/three");
    OK(lx_task_end(task, &err));
    CHECK(is_missing("copies/three", LX_DENSE));
    run_task(begin_snapshot(store, "copies/three")); /* the folder is empty again */
    OK(lx_store_close(store, &err));
    passed("snapshots");
}

/* ---- upgrading ---- */

static void put(unsigned char *at, int bytes, uint64_t value) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static void write_file(const char *store, const char *name, const void *bytes, size_t count) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", store, name);
    FILE *file = fopen(in_folder(path), "wb");
    CHECK(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

enum { OLD = 20, OLD_SEGMENT = 8 };

/* A store as loaderx 1.7.7 leaves it (FORMAT 1 to 4): 20 raw records, tables of
   8 entries, and past the end an entry and bytes that a delete left behind. */
static void write_version_4(const char *name) {
    unsigned char typed[32 + 24] = "LXST\1\1", meta[32] = "ZREC\4", table[16 * OLD_SEGMENT];
    unsigned char chunk[(OLD + 1) * WIDTH];
    put(typed + 8, 8, WIDTH);
    put(typed + 16, 8, 24);
    memcpy(typed + 32, "\x82\xa5" "dtype\xa3" "|u1\xaa" "item_shape\x91\x18", 24);
    put(meta + 10, 4, OLD * WIDTH); /* the tail, in chunk 0 */
    put(meta + 14, 8, OLD);
    for (int64_t i = 0; i < (int64_t)sizeof chunk; i++) chunk[i] = byte_of(i / WIDTH, i % WIDTH);

    write_file(name, "0.chunk", chunk, sizeof chunk);
    for (int segment = 0; segment < 3; segment++) {
        int count = segment < 2 ? OLD_SEGMENT : OLD + 1 - 2 * OLD_SEGMENT;
        char file[16];
        memset(table, 0, sizeof table);
        for (int k = 0; k < count; k++) {
            put(table + 16 * k, 4, (uint64_t)(segment * OLD_SEGMENT + k) * WIDTH);
            put(table + 16 * k + 4, 4, WIDTH);
            put(table + 16 * k + 8, 4, WIDTH);
        }
        snprintf(file, sizeof file, "%d.loc", segment);
        write_file(name, file, table, 16 * (size_t)count);
    }
    write_file(name, "meta.zr", meta, sizeof meta);
    write_file(name, "store.zr", typed, sizeof typed);
}

static lx_handle open_old(int32_t mode, int32_t version) {
    lx_open_options o = options(LX_DENSE, mode, LX_CODEC_ANY);
    o.segment_limit = OLD_SEGMENT;
    lx_handle store = open_store("old", o);
    lx_store_info info = info_of(store);
    CHECK(info.version == version && info.codec == LX_CODEC_RAW && info.width == WIDTH);
    CHECK((info.store_id != 0) == (version == 5) && (info.epoch != 0) == (version == 5));
    return store;
}

static void check_upgrade(void) {
    lx_handle store = open_store("old", dense_options(LX_CODEC_RAW)), task = 0;
    OK(lx_store_close(store, &err)); /* for the folder */
    for (int i = 0; i < 3; i++) CHECK(remove(in_folder((const char *[]){"old/journal.zr", "old/0.sum", "old/0.loc"}[i])) == 0);
    write_version_4("old");

    store = open_old(LX_MODE_READ, 4);
    check_whole_dense(store, OLD);
    FAILS(LX_READ_ONLY, lx_upgrade_begin(store, &task, &err));
    OK(lx_store_close(store, &err));

    lx_progress now;
    store = open_old(LX_MODE_APPEND, 4);
    FAILS(LX_ARGUMENT, lx_upgrade_begin(store, NULL, &err));
    OK(lx_upgrade_begin(store, &task, &err));
    OK(lx_task_step(task, &now, &err));
    CHECK(now.at > 0 && now.at < OLD && now.total == OLD && now.done == 0);
    check_whole_dense(store, OLD);
    OK(lx_task_end(task, &err)); /* early */
    OK(lx_store_close(store, &err));
    store = open_old(LX_MODE_READ, 4);
    check_whole_dense(store, OLD);
    OK(lx_store_close(store, &err));

    store = open_old(LX_MODE_APPEND, 4);
    OK(lx_upgrade_begin(store, &task, &err));
    CHECK(run_task(task).total == OLD);
    CHECK(info_of(store).version == 5);
    check_whole_dense(store, OLD);
    OK(lx_upgrade_begin(store, &task, &err)); /* nothing is left to do */
    OK(lx_task_step(task, &now, &err));
    CHECK(now.done == 1);
    OK(lx_task_end(task, &err));
    append_dense(store, OLD, 5);
    OK(lx_store_close(store, &err));
    store = open_old(LX_MODE_READ, 5);
    check_whole_dense(store, OLD + 5);
    OK(lx_verify_begin(store, 1, &task, &err));
    CHECK(run_task(task).bad == 0);
    OK(lx_store_close(store, &err));
    passed("upgrading");
}

/* ---- tasks that are ended early ---- */

enum { MEBIBYTE = 1 << 20, BIG = 80 };

static void *big_record(int64_t i, unsigned char *record) {
    for (int64_t j = 0; j < MEBIBYTE; j++) record[j] = byte_of(i, j);
    return record;
}

/* Record 0 is gone, the last in its place. */
static void check_big(lx_handle store) {
    unsigned char *want = malloc(MEBIBYTE), *got = malloc(MEBIBYTE);
    CHECK(want != NULL && got != NULL && length_of(store) == BIG - 1);
    for (int64_t i = 0; i < BIG - 1; i++) {
        OK(lx_dense_gather(store, &i, 1, got, MEBIBYTE, 0, &err));
        CHECK(memcmp(got, big_record(i ? i : BIG - 1, want), MEBIBYTE) == 0);
    }
    free(got);
    free(want);
}

/* A step is of at most 64 MiB, so that this store takes more than one. */
static lx_handle make_big(void) {
    lx_open_options o = options(LX_DENSE, LX_MODE_APPEND, LX_CODEC_RAW);
    o.identity = "{\"dtype\": \"|u1\", \"item_shape\": [1048576]}";
    o.width = MEBIBYTE;
    lx_handle store = open_store("big", o), batch = 0;
    unsigned char *record = malloc(MEBIBYTE);
    int64_t first = -1, gone[] = {0};
    CHECK(record != NULL);
    OK(lx_append_begin(store, &batch, &err));
    for (int64_t i = 0; i < BIG; i++) OK(lx_append_dense(batch, big_record(i, record), MEBIBYTE, 1, &err));
    OK(lx_append_commit(batch, &first, &err));
    OK(lx_store_delete(store, gone, 1, &err));
    free(record);
    return store;
}

static void step_and_end(lx_handle task) {
    lx_progress now;
    OK(lx_task_step(task, &now, &err));
    CHECK(now.at > 0 && now.at < now.total && now.total >= (int64_t)(BIG - 1) * MEBIBYTE && now.done == 0);
    OK(lx_task_end(task, &err));
}

static void check_early_ends(void) {
    lx_handle store = make_big(), task = 0;
    OK(lx_snapshot_begin(store, in_folder("big copy"), &task, &err));
    step_and_end(task);
    CHECK(is_missing("big copy", LX_DENSE));
    OK(lx_snapshot_begin(store, in_folder("big copy"), &task, &err)); /* nothing was left there */
    OK(lx_task_end(task, &err));
    OK(lx_verify_begin(store, 1, &task, &err));
    step_and_end(task);

    lx_store_stats before, after;
    OK(lx_store_stats_of(store, &before, &err));
    CHECK(before.reclaimable == MEBIBYTE);
    OK(lx_compact_begin(store, &task, &err));
    step_and_end(task);
    OK(lx_store_stats_of(store, &after, &err));
    CHECK(after.chunk_bytes == before.chunk_bytes && after.live_bytes == before.live_bytes);
    OK(lx_store_close(store, &err));

    store = open_store("big", options(LX_DENSE, LX_MODE_APPEND, LX_CODEC_ANY));
    check_big(store);
    OK(lx_compact_begin(store, &task, &err)); /* goes on from there */
    run_task(task);
    check_big(store);
    OK(lx_store_stats_of(store, &after, &err));
    CHECK(after.chunk_bytes == after.live_bytes && after.reclaimable == 0);
    OK(lx_store_close(store, &err));
    passed("tasks ended early");
}

void check_tasks(void) {
    check_verify();
    check_verify_ragged();
    check_snapshot();
    check_upgrade();
    check_early_ends();
}
