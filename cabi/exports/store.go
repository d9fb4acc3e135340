package exports

// #include <string.h>
// #include "../loaderx.h"
import "C"

import (
	"unsafe"

	"loaderx/engine"
)

//export lx_store_open
func lx_store_open(path C.lx_str, options *C.lx_open_options, store *C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		if path == nil || options == nil || store == nil {
			return badArgument("lx_store_open: expected a path, options and a place for the handle, got NULL")
		}
		o, err := openOptions(options)
		if err != nil {
			return err
		}
		s, err := engine.Open(C.GoString(path), o)
		if err != nil {
			return err
		}
		*store = newHandle(s)
		return nil
	})
}

func openOptions(c *C.lx_open_options) (engine.Options, error) {
	if c.struct_bytes != C.sizeof_lx_open_options {
		return engine.Options{}, badArgument("lx_open_options: expected struct_bytes %d, got %d",
			int64(C.sizeof_lx_open_options), int64(c.struct_bytes))
	}
	o := engine.Options{
		Mode: engine.Mode(c.mode), AllowEmpty: c.allow_empty != 0, Width: int64(c.width),
		Limits: engine.Limits{
			Chunk: int64(c.chunk_limit), Segment: int64(c.segment_limit), Record: int64(c.record_limit),
		},
	}
	switch c.kind {
	case C.LX_DENSE:
		o.Kind = engine.Dense
	case C.LX_RAGGED:
		o.Kind = engine.Ragged
	default:
		return o, badArgument("kind: expected LX_DENSE or LX_RAGGED, got %d", int32(c.kind))
	}
	switch c.codec {
	case C.LX_CODEC_ANY:
	case C.LX_CODEC_RAW, C.LX_CODEC_ZSTD, C.LX_CODEC_ZSTD_DICT:
		codec := engine.Codec(c.codec)
		o.Codec = &codec
	default:
		return o, badArgument("codec: expected LX_CODEC_ANY, _RAW, _ZSTD or _ZSTD_DICT, got %d", int32(c.codec))
	}
	if c.identity != nil {
		o.Identity = []byte(C.GoString(c.identity))
	}
	dict, err := view[byte](c.dict, c.dict_bytes, "dictionary")
	if c.dict != nil {
		o.Dict = append([]byte{}, dict...)
	}
	return o, err
}

//export lx_store_close
func lx_store_close(store C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := taken[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		return s.Close()
	})
}

//export lx_store_info_of
func lx_store_info_of(store C.lx_handle, info *C.lx_store_info, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		if info == nil {
			return badArgument("lx_store_info_of: expected a place for the information, got NULL")
		}
		i, err := s.Info()
		if err != nil {
			return err
		}
		*info = C.lx_store_info{
			records: C.int64_t(i.Records), width: C.int64_t(i.Width), identity_bytes: C.int64_t(len(i.Identity)),
			kind: C.int32_t(i.Kind), mode: C.int32_t(i.Mode), codec: C.int32_t(i.Codec), version: C.int32_t(i.Version),
			allow_empty: flag(i.AllowEmpty), unsynced: flag(i.Unsynced), dirty: flag(i.Dirty), lockable: flag(i.Lockable),
			store_id: C.uint32_t(i.StoreID), epoch: C.uint64_t(i.Epoch),
		}
		return nil
	})
}

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

//export lx_store_identity
func lx_store_identity(store C.lx_handle, json unsafe.Pointer, room C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		dst, err := view[byte](json, room, "identity")
		if err != nil {
			return err
		}
		i, err := s.Info()
		if err == nil && len(dst) < len(i.Identity) {
			err = engine.ErrRoom
		}
		if err != nil {
			return err
		}
		copy(dst, i.Identity)
		return nil
	})
}

//export lx_store_len
func lx_store_len(store C.lx_handle, records *C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		if records == nil {
			return badArgument("lx_store_len: expected a place for the length, got NULL")
		}
		n, err := s.Len()
		if err == nil {
			*records = C.int64_t(n)
		}
		return err
	})
}

//export lx_store_sync
func lx_store_sync(store C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		return s.Sync()
	})
}

//export lx_store_refresh
func lx_store_refresh(store C.lx_handle, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		return s.Refresh()
	})
}

//export lx_store_stats_of
func lx_store_stats_of(store C.lx_handle, stats *C.lx_store_stats, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		if stats == nil {
			return badArgument("lx_store_stats_of: expected a place for the figures, got NULL")
		}
		st, err := s.Stats()
		if err == nil {
			*stats = C.lx_store_stats{
				records: C.int64_t(st.Records), live_bytes: C.int64_t(st.LiveBytes),
				chunk_bytes: C.int64_t(st.ChunkBytes), reclaimable: C.int64_t(st.Reclaimable),
			}
		}
		return err
	})
}

//export lx_store_delete
func lx_store_delete(store C.lx_handle, index unsafe.Pointer, count C.int64_t, out *C.lx_error) C.int32_t {
	return call(out, func() error {
		s, err := held[*engine.Store](store, "store")
		if err != nil {
			return err
		}
		at, err := view[int64](index, count, "index")
		if err != nil {
			return err
		}
		return s.Delete(at)
	})
}
