package engine

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkGatherDense reads random records of a warm store on one thread: one,
// for what a call costs, and batches.
func BenchmarkGatherDense(b *testing.B) {
	for _, codec := range []Codec{Raw, Zstd} {
		for _, shape := range []struct{ width, batch int }{{784, 1}, {8, 256}, {64, 1024}, {784, 256}, {2048, 256}} {
			b.Run(codec.String()+"/"+itoa(shape.width)+"x"+itoa(shape.batch), func(b *testing.B) {
				benchmarkGather(b, codec, shape.width, shape.batch)
			})
		}
	}
}

func benchmarkGather(b *testing.B, codec Codec, width, batch int) {
	s, err := Open(b.TempDir()+"/s", denseOptions(width, codec))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	n := (16 << 20) / width
	batchOf(b, s, denseRecords(0, n, width), n)
	r := rand.New(rand.NewPCG(1, 2))
	plans := make([][]int64, 64)
	for i := range plans {
		plans[i] = make([]int64, batch)
		for j := range plans[i] {
			plans[i][j] = r.Int64N(int64(n))
		}
	}
	dst := make([]byte, batch*width)
	b.SetBytes(int64(batch * width))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.GatherDense(plans[i%len(plans)], dst, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func batchOf(b *testing.B, s *Store, data []byte, n int) {
	b.Helper()
	batch, err := s.Begin()
	if err != nil {
		b.Fatal(err)
	}
	if err := batch.AppendDense(data, int64(n)); err != nil {
		b.Fatal(err)
	}
	if _, err := batch.Commit(); err != nil {
		b.Fatal(err)
	}
}
