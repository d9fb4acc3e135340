package zstd

// #include "calls.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"
)

const (
	dictMagic = 0xEC30A437
	// dictLevel is that of zstd_dict stores. The dictionary is digested once
	// per level, so the level belongs to it.
	dictLevel = 19
	// minSamples is what the trainer of zstd 1.5 needs: it sets a quarter
	// aside for testing, and of the rest it wants five.
	minSamples = 7
	minDict    = 256 // ZDICT_DICTSIZE_MIN
)

// Dict is a digested dictionary. Any number of encoders and decoders may
// share it, in any number of threads.
type Dict struct {
	id     uint32
	source []byte
	decode *C.ZSTD_DDict

	once   sync.Once
	encode *C.ZSTD_CDict // digested on first use: readers never need it
}

// NewDict digests b, of which it keeps a copy.
func NewDict(b []byte) (*Dict, error) {
	if len(b) < 8 || binary.LittleEndian.Uint32(b) != dictMagic {
		return nil, fmt.Errorf("zstd: dictionary: expected magic %#x at offset 0, got % x", uint32(dictMagic), b[:min(len(b), 4)])
	}
	d := &Dict{id: binary.LittleEndian.Uint32(b[4:]), source: append([]byte(nil), b...)}
	if d.id == 0 {
		return nil, errors.New("zstd: dictionary: expected an id other than 0 at offset 4")
	}
	d.decode = C.ZSTD_createDDict(unsafe.Pointer(address(d.source)), C.size_t(len(b)))
	if d.decode == nil {
		return nil, fmt.Errorf("zstd: dictionary %d: its %d bytes are damaged, or there is no memory", d.id, len(b))
	}
	return d, nil
}

// ID is the number that frames made with d carry.
func (d *Dict) ID() uint32 { return d.id }

// forEncoding is d digested for encoders, nil if there is no memory.
func (d *Dict) forEncoding() *C.ZSTD_CDict {
	d.once.Do(func() {
		d.encode = C.ZSTD_createCDict(unsafe.Pointer(address(d.source)), C.size_t(len(d.source)), dictLevel)
	})
	return d.encode
}

// Close frees d; a second call does nothing. All encoders and decoders made with it must be closed.
func (d *Dict) Close() {
	C.ZSTD_freeDDict(d.decode)
	C.ZSTD_freeCDict(d.encode)
	d.decode, d.encode = nil, nil
}

// Train makes a dictionary of at most capacity bytes from samples that lie
// end to end, sizes[i] bytes each.
func Train(samples []byte, sizes []int, capacity int) ([]byte, error) {
	total := 0
	for i, n := range sizes {
		if n < 0 || n > len(samples)-total {
			return nil, fmt.Errorf("zstd: sample %d: expected a size within the %d bytes left, got %d", i, len(samples)-total, n)
		}
		total += n
	}
	switch {
	case total != len(samples):
		return nil, fmt.Errorf("zstd: expected sample sizes adding up to %d bytes, got %d", len(samples), total)
	case len(sizes) < minSamples || len(sizes) > math.MaxInt32:
		return nil, fmt.Errorf("zstd: expected at least %d samples to train a dictionary, got %d", minSamples, len(sizes))
	case capacity < minDict:
		return nil, fmt.Errorf("zstd: expected a dictionary size of at least %d bytes, got %d", minDict, capacity)
	}
	dict := make([]byte, capacity)
	n := C.ZDICT_trainFromBuffer(unsafe.Pointer(address(dict)), C.size_t(capacity), unsafe.Pointer(address(samples)),
		(*C.size_t)(unsafe.Pointer(unsafe.SliceData(sizes))), C.uint(len(sizes)))
	if C.ZDICT_isError(n) != 0 {
		return nil, fmt.Errorf("zstd: no dictionary of %d bytes from %d samples of %d bytes: %s (more or more varied samples may help)",
			capacity, len(sizes), total, C.GoString(C.ZDICT_getErrorName(n)))
	}
	return dict[:n], nil
}
