/* How stores are opened, created and refused. */
#include "smoke.h"

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

void check_opening(void) {
    check_open();
    check_open_arguments();
    check_mismatch();
}
