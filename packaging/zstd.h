/*
 * What is left out of the zstd that github.com/DataDog/zstd carries, read before
 * each of its C files. The choices of that package come after CGO_CFLAGS on the
 * compiler's command line, so only a header can take them back.
 */

/* Frames of zstd 0.4 to 0.7: no store has any, and what may be damaged should
   meet as few decoders as can be. */
#undef ZSTD_LEGACY_SUPPORT
#define ZSTD_LEGACY_SUPPORT 0

/* Threads of its own: the engine has its own. */
#undef ZSTD_MULTITHREAD

/* The matchers of levels 5 to 15. Stores use 3 and 19, whose matchers stay. */
#define ZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR
#define ZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR
#define ZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR
#define ZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR
