package engine

import (
	"os"
	"strconv"
	"testing"

	"loaderx/engine/internal/disk"
)

// BenchmarkAppendRaw appends 64 MiB a time to a raw store in TMPDIR.
func BenchmarkAppendRaw(b *testing.B) {
	for _, width := range []int{64, 784, 4096, 1 << 20} {
		b.Run(strconv.Itoa(width), func(b *testing.B) {
			dir := b.TempDir()
			n := (64 << 20) / width
			data := make([]byte, n*width)
			b.SetBytes(int64(len(data)))
			for i := range b.N {
				b.StopTimer()
				path := dir + "/" + strconv.Itoa(i)
				s, err := Open(path, denseOptions(width, Raw))
				if err != nil {
					b.Fatal(err)
				}
				batch, err := s.Begin()
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := batch.AppendDense(data, int64(n)); err != nil {
					b.Fatal(err)
				}
				if _, err := batch.Commit(); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = s.Close()
				_ = os.RemoveAll(path)
				b.StartTimer()
			}
		})
	}
}

// BenchmarkSums is the checksums of such records, a run at a time, in the cache.
func BenchmarkSums(b *testing.B) {
	for _, width := range []int{64, 784, 4096, 1 << 20} {
		b.Run(strconv.Itoa(width), func(b *testing.B) {
			data := make([]byte, max(windowBytes/width, 1)*width)
			sum := uint32(0)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				for i := 0; i < len(data); i += width {
					sum ^= disk.Sum(uint32(width), uint32(width), data[i:i+width])
				}
			}
			if sum == 1 {
				b.Log(sum)
			}
		})
	}
}
