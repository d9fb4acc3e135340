package engine

import (
	"loaderx/engine/internal/fan"
	"loaderx/engine/internal/zstd"
)

const (
	zstdLevel = 3  // of codec zstd
	dictLevel = 19 // of codec zstd_dict
)

// coders keeps the zstd contexts of a store, one a worker, for reuse: setting
// one up costs more than a small record.
type coders struct {
	level int
	dict  *zstd.Dict
	enc   chan *compressor
	dec   chan *decompressor
}

// decompressor is a worker's context and the frames that it decodes.
type decompressor struct {
	dec    *zstd.Decoder
	frame  []byte     // of a record read alone
	frames zstd.Batch // of records, or of payloads
	shapes zstd.Batch
}

func (c *coders) init(codec Codec, dict *zstd.Dict) {
	c.level, c.dict = zstdLevel, dict
	if codec == ZstdDict {
		c.level = dictLevel
	}
	c.enc = make(chan *compressor, fan.Limit())
	c.dec = make(chan *decompressor, fan.Limit())
}

func (c *coders) borrowEncoder() (*compressor, error) {
	select {
	case z := <-c.enc:
		return z, nil
	default:
	}
	enc, err := zstd.NewEncoder(c.level, c.dict)
	return &compressor{enc: enc}, coderError(err)
}

func (c *coders) returnEncoder(z *compressor) {
	if len(z.frames) > keepBytes {
		z.frames = nil
	}
	select {
	case c.enc <- z:
	default:
		z.enc.Close()
	}
}

func (c *coders) borrowDecoder() (*decompressor, error) {
	select {
	case z := <-c.dec:
		return z, nil
	default:
	}
	dec, err := zstd.NewDecoder(c.dict)
	return &decompressor{dec: dec}, coderError(err)
}

func (c *coders) returnDecoder(z *decompressor) {
	if len(z.frame) > keepBytes {
		z.frame = nil
	}
	select {
	case c.dec <- z:
	default:
		z.dec.Close()
	}
}

// coderError is the error of a context that could not be made.
func coderError(err error) error {
	if err == nil {
		return nil
	}
	return errorf(StatusMemory, "", "setting up zstd: %v", err)
}

// close frees what is kept. No coder may be in use.
func (c *coders) close() {
	for {
		select {
		case z := <-c.enc:
			z.enc.Close()
		case z := <-c.dec:
			z.dec.Close()
		default:
			return
		}
	}
}
