/*
 * loaderx.h: the C interface of loaderx. Written by hand, it is the contract:
 * the Go exports include it, so a drift between the two does not compile, and
 * Python reads its declarations from between the two marks below.
 *
 * Status     Every function that can fail returns LX_OK or another status and
 *            writes its results through pointers, only when it returns LX_OK.
 *            A lx_error, which may be NULL, then says what was wrong.
 * Handles    64-bit numbers. 0 is never one, and a stale one is LX_CLOSED.
 * Memory     The caller owns every buffer. The library keeps no pointer that
 *            it was given after the call that gave it.
 * Threads    Every function may be called from any thread, and any two at the
 *            same time, unless its comment says otherwise.
 * Fork       After fork(), the child must not call any function but
 *            lx_buffer_free: a Go runtime does not survive it. The locks of the stores that were open are
 *            closed in the child by the library itself.
 */
#ifndef LOADERX_H
#define LOADERX_H

#include <stdint.h>

#ifdef __APPLE__
#pragma GCC visibility push(default) /* what is not declared here is hidden */
#endif

/* cdef begins */

enum { LX_ABI_VERSION = 1 };

/* A status is also the kind of the error. */
enum {
    LX_OK = 0,
    LX_INDEX = 1,           /* an index outside the store; .index is it */
    LX_BUSY = 2,            /* another handle holds the lock that is needed */
    LX_CLOSED = 3,          /* the handle is closed, or never was one */
    LX_NOT_A_STORE = 4,     /* no store at that path */
    LX_MISMATCH = 5,        /* the store is of another kind, type or codec */
    LX_CORRUPT_STORE = 6,   /* the store as a whole cannot be trusted */
    LX_CORRUPT_RECORD = 7,  /* one record cannot be read; .index is it */
    LX_UNSUPPORTED = 8,     /* a version or codec this library does not do */
    LX_FULL = 9,            /* no room on the disk */
    LX_READ_ONLY = 10,      /* opened for reading, or the files forbid writing */
    LX_ARGUMENT = 11,       /* an argument outside what the function takes */
    LX_IO = 12,             /* the operating system failed; .os_errno says how */
    LX_MEMORY = 13,         /* no memory for a buffer */
    LX_ROOM = 14,           /* the caller's buffer is too small: not an error */
    LX_INTERNAL = 15        /* a bug in the library, caught */
};

enum { LX_DENSE = 1, LX_RAGGED = 2 };
enum { LX_MODE_READ = 0, LX_MODE_APPEND = 1 };
enum { LX_CODEC_ANY = -1, LX_CODEC_RAW = 0, LX_CODEC_ZSTD = 1, LX_CODEC_ZSTD_DICT = 2 };
enum { LX_SEQUENTIAL = 0, LX_IID = 1, LX_CYCLIC = 2 };

typedef uint64_t lx_handle;
typedef const char *lx_str;     /* NUL-terminated UTF-8 (a path: the system's bytes) */

typedef struct lx_error {
    int32_t status;         /* as returned */
    int32_t os_errno;       /* 0 if no system call failed */
    int64_t index;          /* the record concerned, or -1 */
    int64_t offset;         /* where in the file, or -1 */
    char path[1024];        /* the file concerned, or "" */
    char message[2048];     /* a sentence: expected, got, where */
} lx_error;

/* How a store is opened. Zero the struct, then set what you need. */
typedef struct lx_open_options {
    int64_t struct_bytes;   /* sizeof(lx_open_options) */
    int32_t kind;           /* LX_DENSE or LX_RAGGED */
    int32_t mode;           /* LX_MODE_READ never writes */
    int32_t codec;          /* LX_CODEC_ANY: the store's; on creation zstd */
    int32_t allow_empty;    /* 1: the store must take records of zero bytes */
    lx_str identity;        /* JSON {"dtype": ..., "item_shape": [...]} (ragged:
                               dtype only). NULL: open what is there. Otherwise
                               create what is missing, refuse what differs. */
    int64_t width;          /* with an identity, dense: bytes in a record */
    void *dict;             /* the dictionary of a new zstd_dict store, or NULL */
    int64_t dict_bytes;
    int64_t chunk_limit;    /* 0: the format's. Tests lower these three. */
    int64_t segment_limit;  /* table entries in a segment, a power of two */
    int64_t record_limit;   /* bytes in a record */
} lx_open_options;

typedef struct lx_store_info {
    int64_t records;
    int64_t width;          /* dense: bytes in a record; ragged: 0 */
    int64_t identity_bytes; /* length of the JSON of lx_store_identity */
    int32_t kind;
    int32_t mode;
    int32_t codec;
    int32_t version;        /* format version: 4 or 5 */
    int32_t allow_empty;
    int32_t unsynced;       /* 1: a power cut could lose appended records */
    int32_t dirty;          /* 1: a crash left it; recovery is due */
    int32_t lockable;       /* 0: the file system cannot lock; read-only use */
    uint32_t store_id;      /* 0 in version 4 */
    uint64_t epoch;         /* of what the handle shows, once it is durable: every
                               change that was synced counts one. 0 in version 4 */
} lx_store_info;

typedef struct lx_store_stats {
    int64_t records;
    int64_t live_bytes;     /* stored bytes of the records */
    int64_t chunk_bytes;    /* size of the chunk files */
    int64_t reclaimable;    /* what a compaction would take off that */
} lx_store_stats;

typedef struct lx_progress {
    int64_t at;             /* how much of total is done: bytes, or records of an upgrade */
    int64_t total;
    int32_t done;           /* 1: nothing is left to do but lx_task_end */
    int32_t bad;            /* records that a verification has found bad so far */
} lx_progress;

/* ---- the library ---- */

/* LX_ABI_VERSION of the library: compare it with the header's. 0: this system's
   C library keeps thread-local variables where the library does not look for
   them. Then no other function may be called. */
int32_t lx_abi_version(void);

/* How many threads the library uses at most: the smaller of the processors
   this process may run on and its cgroup's quota. */
int32_t lx_parallelism(void);

/* A block of at least 1 byte, aligned to 64, contents undefined; lx_buffer_free takes it
   back, in a forked child too. For destinations of gathers, which are faster into
   recycled memory. lx_buffer_count says how many are not given back yet. */
int32_t lx_buffer_new(int64_t bytes, void **buffer, lx_error *error);
void lx_buffer_free(void *buffer);
int64_t lx_buffer_count(void);

/* ---- stores ---- */

/* Opens the store at path, or creates it when options name an identity and
   nothing is there (parent folders too). */
int32_t lx_store_open(lx_str path, lx_open_options *options, lx_handle *store, lx_error *error);

/* Waits for running calls, makes appended records durable, and ends the
   handle, whatever it returns. Open batches are aborted. */
int32_t lx_store_close(lx_handle store, lx_error *error);

int32_t lx_store_info_of(lx_handle store, lx_store_info *info, lx_error *error);

/* The identity as JSON, not terminated; LX_ROOM if room is too small. */
int32_t lx_store_identity(lx_handle store, void *json, int64_t room, lx_error *error);

/* The number of records a gather may use now. */
int32_t lx_store_len(lx_handle store, int64_t *records, lx_error *error);

/* Shows what other handles have changed since the store was opened or last
   refreshed. Until then a reader sees a fixed length. */
int32_t lx_store_refresh(lx_handle store, lx_error *error);

/* Reads the whole record table. */
int32_t lx_store_stats_of(lx_handle store, lx_store_stats *stats, lx_error *error);

/* Makes every committed record durable, and recovers a dirty store. */
int32_t lx_store_sync(lx_handle store, lx_error *error);

/* ---- appending: begin, any number of parts, commit or abort ----
   One batch is all or nothing, whatever its size: a part is on disk when its
   call returns, but no reader sees any before the commit. A batch handle is
   for one thread at a time. A second batch on a store waits for the first. */

int32_t lx_append_begin(lx_handle store, lx_handle *batch, lx_error *error);

/* count records of the store's width; bytes is checked against that. After a
   failure the batch takes no more parts: abort it. */
int32_t lx_append_dense(lx_handle batch, void *records, int64_t bytes, int64_t count, lx_error *error);

/* count records: record i is payload bytes offsets[i] to offsets[i + 1], of
   shape dims[dim_offsets[i]] to dims[dim_offsets[i + 1]], of elements of
   item_bytes. Both offset arrays have count + 1 int64 values, dims int64. */
int32_t lx_append_ragged(lx_handle batch, void *payload, int64_t payload_bytes, void *offsets,
                         void *dims, void *dim_offsets, int64_t count, int64_t item_bytes,
                         lx_error *error);

/* Publishes the batch and ends its handle, whatever it returns. A batch without
   records changes nothing. After a part that failed it returns that failure. */
int32_t lx_append_commit(lx_handle batch, int64_t *first, lx_error *error);

/* Takes back what the batch wrote and ends its handle. */
int32_t lx_append_abort(lx_handle batch, lx_error *error);

/* ---- deleting: durable when it returns. LX_BUSY while another handle has the
   store open. Each hole is filled with the last record; index as below,
   duplicates are one. ---- */

int32_t lx_store_delete(lx_handle store, void *index, int64_t count, lx_error *error);

/* ---- tasks: work on a whole store, in steps of bounded time. Go on until
   progress says done or a step fails, then end the task. Other calls of the
   store run between the steps; other mutations are LX_BUSY. A task handle is
   for one thread at a time. ---- */

/* Gives back the room of deleted records. LX_BUSY while another handle has the
   store open. Ended early, it has moved some records and freed nothing. */
int32_t lx_compact_begin(lx_handle store, lx_handle *task, lx_error *error);

/* Reads everything and changes nothing. Shapes of ragged records must be of
   elements of item_bytes. */
int32_t lx_verify_begin(lx_handle store, int64_t item_bytes, lx_handle *task, lx_error *error);

/* Copies what the handle shows to dest, a new or empty folder, as a store with
   an id of its own, of version 5. Appends may go on. Ended early, it leaves no store. */
int32_t lx_snapshot_begin(lx_handle store, lx_str dest, lx_handle *task, lx_error *error);

/* Turns a version 4 store into version 5, as its first mutation does. Ended
   early, it leaves version 4. */
int32_t lx_upgrade_begin(lx_handle store, lx_handle *task, lx_error *error);

int32_t lx_task_step(lx_handle task, lx_progress *progress, lx_error *error);

/* The i-th bad record of a verification, from 0: index, path, offset, message. */
int32_t lx_task_bad(lx_handle task, int64_t i, lx_error *bad, lx_error *error);

int32_t lx_task_end(lx_handle task, lx_error *error);

/* ---- dictionaries ---- */

/* Trains a dictionary of at most room bytes on count samples that lie one
   after another, sizes giving their int64 lengths; written says how large it
   became. LX_ARGUMENT if there is too little to learn from. */
int32_t lx_train_dict(void *samples, int64_t samples_bytes, void *sizes, int64_t count,
                      void *dict, int64_t room, int64_t *written, lx_error *error);

/* ---- reading: index is count int64 values, negative ones count from the end.
   max_threads 0: as many as pay. On failure the destination is undefined. ---- */

/* One record; dst_bytes must be the store's width. */
int32_t lx_dense_one(lx_handle store, int64_t index, void *dst, int64_t dst_bytes, lx_error *error);

/* dst_bytes must be count times the store's width. */
int32_t lx_dense_gather(lx_handle store, void *index, int64_t count, void *dst, int64_t dst_bytes,
                        int32_t max_threads, lx_error *error);

/* Record i comes to dst bytes offsets[i] to offsets[i + 1], its shape to
   dims[dim_offsets[i]] to dims[dim_offsets[i + 1]]; both offset arrays have
   room for count + 1 int64 values and are filled also when the call returns
   LX_ROOM because dst_bytes or dims_room (int64 values) is too small for what
   their last values say. A shape must be of elements of item_bytes. */
int32_t lx_ragged_gather(lx_handle store, void *index, int64_t count, int64_t item_bytes,
                         void *dst, int64_t dst_bytes, void *offsets,
                         void *dims, int64_t dims_room, void *dim_offsets,
                         int32_t max_threads, lx_error *error);

/* Asks the system to bring records into memory that will be gathered soon, and
   does not wait for it. Costs next to nothing where they are there already. */
int32_t lx_store_ahead(lx_handle store, void *index, int64_t count, lx_error *error);

/* ---- the sampler: the order of indices, a pure function of seed and step ---- */

/* batch_size is the global batch, a multiple of world_size; rank gets its
   contiguous part of it. */
int32_t lx_sampler_new(int32_t mode, int64_t length, int64_t batch_size, uint64_t seed,
                       int32_t rank, int32_t world_size, lx_handle *sampler, lx_error *error);

/* The indices of steps step .. step + steps - 1, one batch after another:
   count int64 values, which must be steps * batch_size / world_size. */
int32_t lx_sampler_fill(lx_handle sampler, int64_t step, int64_t steps, void *index, int64_t count,
                        lx_error *error);

int32_t lx_sampler_free(lx_handle sampler, lx_error *error);

/* ---- orders over parts of stores ---- */

enum { LX_ALL = 0, LX_LIST = 1, LX_RANGE = 2 };

/* The records of a store that an order is over. Zero the struct, then set what
   you need. */
typedef struct lx_source {
    int64_t struct_bytes;   /* sizeof(lx_source) */
    int64_t length;         /* records of the store */
    int32_t mode;           /* LX_SEQUENTIAL, LX_IID or LX_CYCLIC */
    int32_t subset;         /* LX_ALL, LX_LIST or LX_RANGE */
    void *index;            /* LX_LIST: int64 values of 0 to length - 1 */
    int64_t count;          /* how many */
    int64_t start;          /* LX_RANGE: as Python's range(start, stop, stride) */
    int64_t stop;
    int64_t stride;
    double weight;          /* in a mix: the share is this over the sum of all */
} lx_source;

/* As lx_sampler_new, over a source; its weight has no meaning here. The list of
   indices is copied. */
int32_t lx_sampler_new_of(lx_source *source, int64_t batch_size, uint64_t seed,
                          int32_t rank, int32_t world_size, lx_handle *sampler, lx_error *error);

/* Cuts records 0 to length - 1 at random into as many parts as there are
   fractions (doubles that add up to 1), which have no record in common and leave
   none out. sizes has room for an int64 value of each part; index for length of
   them: the parts one after another, each in ascending order. With a count of 0
   index may be NULL, and only the sizes are written. */
int32_t lx_split(int64_t length, void *fractions, int64_t parts, uint64_t seed,
                 void *sizes, void *index, int64_t count, lx_error *error);

/* ---- mixes: several sources in exact proportions ---- */

/* After any number of draws each source has had its share of them, but for a
   few. Each goes through its records in an order of its own. batch_size is over
   all sources and ranks. */
int32_t lx_mix_new(lx_source *sources, int64_t count, int64_t batch_size, uint64_t seed,
                   int32_t rank, int32_t world_size, lx_handle *mix, lx_error *error);

/* As lx_sampler_fill: source is count int32 values, which source each place of
   the batches is drawn from, and index count int64 values, which of its records. */
int32_t lx_mix_fill(lx_handle mix, int64_t step, int64_t steps, void *source, void *index,
                    int64_t count, lx_error *error);

/* How many draws from each of count sources come before step, over all ranks:
   int64 values. */
int32_t lx_mix_drawn(lx_handle mix, int64_t step, void *drawn, int64_t count, lx_error *error);

int32_t lx_mix_free(lx_handle mix, lx_error *error);

/* ---- budgets: batches of varying counts, of records of like lengths ---- */

/* Every record comes once in a cycle. The count of a global batch, times its
   longest length, is at most budget; with max_records not 0, the count is at
   most that; and it is a multiple of multiple, which world_size divides: what is
   over is left out, other records in each cycle. lengths are count values of
   length_bytes, 4 (unsigned) or 8, and are not kept. */
int32_t lx_budget_new(void *lengths, int64_t count, int32_t length_bytes, int64_t budget,
                      int64_t max_records, int64_t multiple, uint64_t seed,
                      int32_t rank, int32_t world_size, lx_handle *plan, lx_error *error);

/* How many batches each cycle has. Step s is batch s % batches of cycle
   s / batches. */
int32_t lx_budget_batches(lx_handle plan, int64_t *batches, lx_error *error);

/* How many indices rank has in each of steps step .. step + steps - 1: steps
   int64 values. */
int32_t lx_budget_counts(lx_handle plan, int64_t step, int64_t steps, void *counts, lx_error *error);

/* As lx_sampler_fill; count must be the sum of those counts. */
int32_t lx_budget_fill(lx_handle plan, int64_t step, int64_t steps, void *index, int64_t count,
                       lx_error *error);

int32_t lx_budget_free(lx_handle plan, lx_error *error);

/* cdef ends */

#ifdef __APPLE__
#pragma GCC visibility pop
#endif

#endif
