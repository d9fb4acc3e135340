/*
 * What the files of the client share: checks that end it at the first that does
 * not hold, naming the line, and the stores and records that it makes.
 */
#ifndef SMOKE_H
#define SMOKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaderx.h"

/* The groups of checks, one function for each file. */
void check_opening(void);
void check_records(void);
void check_space(void);
void check_tasks(void);
void check_handles(void);
void check_samplers(void);
void check_threads(void);

/* ---- checks ---- */

/* One error for each thread, so that threads can check at the same time. */
extern _Thread_local lx_error err;

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) fail(__FILE__, __LINE__, #condition, "is not so");      \
    } while (0)

/* The call succeeds. */
#define OK(call)                                                                  \
    do {                                                                          \
        if ((call) != LX_OK) fail(__FILE__, __LINE__, #call, err.message);        \
    } while (0)

/* The call fails with the status, and says so in words. */
#define FAILS(want, call)                                                         \
    do {                                                                          \
        memset(&err, 'x', sizeof err);                                            \
        int32_t got_ = (call);                                                    \
        if (got_ != (want)) wrong_status(__FILE__, __LINE__, #call, (want), got_); \
        CHECK(err.status == (want));                                              \
        CHECK(err.message[0] != 0 && memchr(err.message, 0, sizeof err.message)); \
        CHECK(memchr(err.path, 0, sizeof err.path));                              \
    } while (0)

_Noreturn void fail(const char *file, int line, const char *what, const char *why);
_Noreturn void wrong_status(const char *file, int line, const char *what, int32_t want, int32_t got);

/* Says that a group of checks held. */
void passed(const char *group);

/* ---- stores ---- */

#define DENSE_ID "{\"dtype\": \"|u1\", \"item_shape\": [24]}"
#define RAGGED_ID "{\"dtype\": \"<u2\"}"

enum { WIDTH = 24 };

/* Byte j of record i, so that any record can be checked by itself. */
static inline unsigned char byte_of(int64_t i, int64_t j) {
    return (unsigned char)(i * 31 + j * 7 + (i >> 8));
}

lx_open_options options(int32_t kind, int32_t mode, int32_t codec);
lx_open_options dense_options(int32_t codec);
lx_open_options ragged_options(int32_t codec);

/* A path in the folder, good until the thread asks for the next. */
const char *in_folder(const char *name);

lx_handle open_store(const char *name, lx_open_options o);
lx_handle open_reader(const char *name, int32_t kind);
int64_t length_of(lx_handle store);
lx_store_info info_of(lx_handle store);

/* ---- dense records ---- */

/* Adds records first to first + count - 1 to a batch. */
void add_dense(lx_handle batch, int64_t first, int64_t count);
void append_dense(lx_handle store, int64_t first, int64_t count);

/* Gathers, and finds record origin[k] at index[k]. */
void check_gathered(lx_handle store, int64_t *index, const int64_t *origin, int64_t count, int32_t threads);

/* The store holds records origin[0], origin[1] and so on. */
void check_origins(lx_handle store, const int64_t *origin, int64_t count);

/* The store holds records 0 to length - 1 in their places. */
void check_whole_dense(lx_handle store, int64_t length);

/* ---- ragged records ---- */

/* Record i has i % 5 + 1 rows of 3 in even places, and is a lone element in
   every seventh. Returns how many dims it has. */
int64_t ragged_dims(int64_t i, int64_t dims[2]);
int64_t ragged_bytes(int64_t i);

/* As for dense stores; at most 64 at a time. */
void add_ragged(lx_handle batch, int64_t first, int64_t count);
void append_ragged(lx_handle store, int64_t first, int64_t count);

/* Gathers, and finds record origin[k] at index[k]. */
void check_ragged(lx_handle store, int64_t *index, const int64_t *origin, int64_t count, int32_t threads);
void check_whole_ragged(lx_handle store, int64_t length);

/* ---- tasks ---- */

/* Takes a task's steps to the last, ends it, and returns how far it came. */
lx_progress run_task(lx_handle task);

#endif
