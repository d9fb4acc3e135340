/* What the package calls of zstd 1.5, declared as in its zstd.h and zdict.h. */
#ifndef LOADERX_CALLS_H
#define LOADERX_CALLS_H

#include <stddef.h>
#include <string.h>

typedef struct ZSTD_CCtx_s ZSTD_CCtx;
typedef struct ZSTD_DCtx_s ZSTD_DCtx;
typedef struct ZSTD_CDict_s ZSTD_CDict;
typedef struct ZSTD_DDict_s ZSTD_DDict;

unsigned ZSTD_isError(size_t result);
const char *ZSTD_getErrorName(size_t result);
size_t ZSTD_compressBound(size_t size);

ZSTD_CCtx *ZSTD_createCCtx(void);
size_t ZSTD_freeCCtx(ZSTD_CCtx *cctx);
size_t ZSTD_CCtx_setParameter(ZSTD_CCtx *cctx, int parameter, int value);
size_t ZSTD_CCtx_refCDict(ZSTD_CCtx *cctx, const ZSTD_CDict *cdict);
size_t ZSTD_compress2(ZSTD_CCtx *cctx, void *dst, size_t capacity, const void *src, size_t size);

ZSTD_DCtx *ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(ZSTD_DCtx *dctx);
size_t ZSTD_DCtx_refDDict(ZSTD_DCtx *dctx, const ZSTD_DDict *ddict);
size_t ZSTD_decompressDCtx(ZSTD_DCtx *dctx, void *dst, size_t capacity, const void *src, size_t size);
unsigned long long ZSTD_getFrameContentSize(const void *src, size_t size);
unsigned ZSTD_getDictID_fromFrame(const void *src, size_t size);
size_t ZSTD_findFrameCompressedSize(const void *src, size_t size);

ZSTD_CDict *ZSTD_createCDict(const void *dict, size_t size, int level);
size_t ZSTD_freeCDict(ZSTD_CDict *cdict);
ZSTD_DDict *ZSTD_createDDict(const void *dict, size_t size);
size_t ZSTD_freeDDict(ZSTD_DDict *ddict);
unsigned ZSTD_getDictID_fromDict(const void *dict, size_t size);

size_t ZDICT_trainFromBuffer(void *dict, size_t capacity, const void *samples, const size_t *sizes, unsigned n);
unsigned ZDICT_isError(size_t result);
const char *ZDICT_getErrorName(size_t result);

/* Values of ZSTD_cParameter. */
enum { lx_level = 100, lx_content_size = 200, lx_checksum = 201 };

#endif
