/* Decoding one frame, with everything checked that the store relies on. */
#ifndef LOADERX_VERDICT_H
#define LOADERX_VERDICT_H

#include "calls.h"

/* What lx_decode objects to. `got` belongs to it. */
enum { lx_ok, lx_magic, lx_content, lx_dictionary, lx_frames, lx_failed, lx_size };

typedef struct { int why; unsigned long long got; } lx_verdict;

/* The frame is looked over first: it must be of the current format, single, end
   where src ends, and promise exactly `room` bytes. zstd itself would go on to a
   second frame, and skip frames that are to be skipped. */
static inline lx_verdict lx_decode(ZSTD_DCtx *dctx, unsigned id, char *dst, size_t room, const char *src, size_t size) {
	static const unsigned char magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
	if (size < 4 || memcmp(src, magic, 4) != 0) return (lx_verdict){lx_magic, size};
	unsigned long long content = ZSTD_getFrameContentSize(src, size);
	if (content != room) return (lx_verdict){lx_content, content};
	unsigned named = ZSTD_getDictID_fromFrame(src, size);
	if (named != 0 && named != id) return (lx_verdict){lx_dictionary, named};
	size_t length = ZSTD_findFrameCompressedSize(src, size);
	if (ZSTD_isError(length)) return (lx_verdict){lx_failed, length};
	if (length != size) return (lx_verdict){lx_frames, length};
	size_t n = ZSTD_decompressDCtx(dctx, dst, room, src, size);
	if (ZSTD_isError(n)) return (lx_verdict){lx_failed, n};
	if (n != room) return (lx_verdict){lx_size, n};
	return (lx_verdict){lx_ok, n};
}

#endif
