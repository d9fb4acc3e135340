package sampler

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func mustRange(t testing.TB, start, stop, stride int64) *Subset {
	t.Helper()
	r, err := Range(start, stop, stride)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRangeIsThatOfPython(t *testing.T) {
	for start := int64(-6); start <= 6; start++ {
		for stop := int64(-6); stop <= 6; stop++ {
			for stride := int64(-4); stride <= 4; stride++ {
				if stride == 0 {
					continue
				}
				var want []int64
				for i := start; stride > 0 && i < stop || stride < 0 && i > stop; i += stride {
					want = append(want, i)
				}
				r := mustRange(t, start, stop, stride)
				got := make([]int64, r.Len())
				for i := range got {
					got[i] = int64(i)
				}
				if r.apply(got); !slices.Equal(got, want) {
					t.Fatalf("range %d, %d, %d: got %v, want %v", start, stop, stride, got, want)
				}
			}
		}
	}
	for _, c := range []struct{ start, stop, stride, want int64 }{
		{0, math.MaxInt64, 1, math.MaxInt64}, {0, math.MaxInt64, math.MaxInt64, 1}, {math.MaxInt64, 0, math.MinInt64, 1},
		{math.MaxInt64, math.MinInt64, -math.MaxInt64, 3},
	} {
		if got := mustRange(t, c.start, c.stop, c.stride).Len(); got != c.want {
			t.Errorf("range %d, %d, %d: got %d records, want %d", c.start, c.stop, c.stride, got, c.want)
		}
	}
}

func TestSubsetsNameWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		make func() (*Subset, error)
		want string
	}{
		{func() (*Subset, error) { return Range(1, 2, 0) }, "stride: expected any but 0 in a range"},
		{
			func() (*Subset, error) { return Range(math.MinInt64, math.MaxInt64, 1) },
			"subset: expected a range of fewer than 2^63 records, got -9223372036854775808 to 9223372036854775807 by 1",
		},
		{func() (*Subset, error) { return Range(5, 5, 1) }, "subset: expected at least 1 record, got none"},
		{func() (*Subset, error) { return Range(0, 101, 10) }, "subset: expected records of 0 to 99, got 100 at place 10"},
		{func() (*Subset, error) { return Range(5, -2, -1) }, "subset: expected records of 0 to 99, got -1 at place 6"},
		{func() (*Subset, error) { return List(nil), nil }, "subset: expected at least 1 record, got none"},
		{func() (*Subset, error) { return List([]int64{7, 99, 100}), nil }, "subset: expected records of 0 to 99, got 100 at place 2"},
		{func() (*Subset, error) { return List([]int64{7, -1}), nil }, "subset: expected records of 0 to 99, got -1 at place 1"},
		{
			func() (*Subset, error) { return List([]int64{7, 8, 9}), nil },
			"batch_size: expected at most length 3 in CYCLIC mode, got 4",
		},
	} {
		subset, err := c.make()
		if err == nil {
			_, err = New(Config{Mode: Cyclic, Length: 100, Subset: subset, BatchSize: 4, WorldSize: 1})
		}
		var argument *ArgumentError
		if !errors.As(err, &argument) || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// A sampler of a subset gives what one of as many records gives, looked up.
func TestSubsetOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for i := range 200 {
		count := 1 + r.Int64N(300)
		list := make([]int64, count)
		for k := range list {
			list[k] = r.Int64N(1000)
		}
		subset, held := List(list), slices.Clone(list)
		clear(list) // the subset has a copy
		want := func(place int64) int64 { return held[place] }
		if i%2 == 1 {
			start, stride := r.Int64N(100), 1+r.Int64N(3)
			subset = mustRange(t, start, start+count*stride, stride)
			want = func(place int64) int64 { return start + place*stride }
		}
		world := 1 + r.Int32N(3)
		c := Config{
			Mode: Mode(i % 3), Length: 1000, Subset: subset, BatchSize: int64(world), Seed: r.Uint64(),
			Rank: r.Int32N(world), WorldSize: world,
		}
		if c.Mode == Cyclic && c.BatchSize > count {
			continue
		}
		got := mustFill(t, c, 3, 50)
		c.Length, c.Subset = count, nil
		for k, place := range mustFill(t, c, 3, 50) {
			if got[k] != want(place) {
				t.Fatalf("subset %+v of %d: at %d got %d, want %d", subset, count, k, got[k], want(place))
			}
		}
	}
	whole := Config{Mode: Cyclic, Length: 1 << 40, BatchSize: 8, Seed: 2, WorldSize: 1}
	part := whole
	part.Subset = mustRange(t, 0, 1<<40, 1)
	if !slices.Equal(mustFill(t, whole, 9, 4), mustFill(t, part, 9, 4)) {
		t.Error("the subset of all records has another order than all records")
	}
}
