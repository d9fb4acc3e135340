package vfs

import (
	"errors"
	"io"
)

// copyBuffer is how much is copied at a time where the system cannot.
const copyBuffer = 1 << 20

// copyByHand copies through memory.
func copyByHand(dst, src File, off, n, to int64) error {
	buf := make([]byte, min(n, copyBuffer))
	for n > 0 {
		p := buf[:min(n, copyBuffer)]
		if _, err := src.ReadAt(p, off); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := dst.WriteAt(p, to); err != nil {
			return err
		}
		k := int64(len(p))
		off, to, n = off+k, to+k, n-k
	}
	return nil
}
