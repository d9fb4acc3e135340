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

// A file that another program has cut is not written to: behind its end, what was
// lost would read as zeros.
func TestCutFilesAreNotAppendedTo(t *testing.T) {
	t.Parallel()
	for _, codec := range []Codec{Raw, Zstd} {
		for _, ext := range []string{chunkExt, tableExt, sumExt} {
			mem, s := inMemory(t, denseOptions(12, codec), 23)
			name := storePath + "/" + numbered(0, ext)
			whole := mem.ReadFile(name)
			mem.WriteFile(name, whole[:len(whole)-1])
			for range 2 {
				b, err := s.Begin()
				must(t, err)
				wantStatus(t, ext+": append", b.AppendDense(denseRecords(30, 2, 12), 2), StatusCorruptStore)
				must(t, b.Abort())
			}
			wantLen(t, ext+": after it", s, 23)
			if ext == tableExt && codec == Raw {
				wantStatus(t, ext+": delete", s.Delete([]int64{3}), StatusCorruptStore)
			}
			mem.WriteFile(name, whole)
			must(t, s.Delete([]int64{3}))
			appendDense(t, s, denseRecords(30, 2, 12), 12)
			must(t, sound(s))
			must(t, s.Close())
		}
	}
}
