package engine

import (
	"slices"
	"strings"
	"testing"
)

// While places follow the formula nobody reads the table. The first delete is what
// makes it count, and bits that had rotted in it until then harm nothing.
func TestRottenTableBeforeTheFirstDelete(t *testing.T) {
	t.Parallel()
	mem, s := inMemory(t, small(Raw), 23)
	all, err := readAll(s)
	must(t, err)
	must(t, s.Close())
	want := slices.Clone(all[:22])
	want[3] = all[22]
	for _, name := range mem.Names(storePath) {
		if !strings.HasSuffix(name, tableExt) {
			continue
		}
		for bit := range 8 * len(mem.ReadFile(storePath+"/"+name)) {
			rotten := mem.Clone()
			b := rotten.ReadFile(storePath + "/" + name)
			b[bit/8] ^= 1 << (bit % 8)
			rotten.WriteFile(storePath+"/"+name, b)
			o := small(Raw)
			o.fs = rotten
			s, err := Open(storePath, o)
			must(t, err)
			must(t, s.Delete([]int64{3}))
			got, err := readAll(s)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s, bit %d: other records, %v", name, bit, err)
			}
			if err := sound(s); err != nil {
				t.Fatalf("%s, bit %d: %v", name, bit, err)
			}
			must(t, s.Close())
		}
	}
}
