package move

import (
	"math"
	"testing"
)

// What CPUID lists, by hand: eax level<<5 | kind, ebx (ways-1)<<22 | (partitions-1)<<12
// | line-1, ecx sets-1.
func TestLastCache(t *testing.T) {
	l1 := [3]uint32{1<<5 | 1, 7<<22 | 63, 63}             // 32 KiB
	l2 := [3]uint32{2<<5 | 3, 7<<22 | 63, 1023}           // 512 KiB
	l3 := [3]uint32{3<<5 | 3, 15<<22 | 1<<12 | 63, 16383} // 32 MiB
	for name, c := range map[string]struct {
		list [][3]uint32
		want int
	}{
		"none":            {nil, 0},
		"three":           {[][3]uint32{l1, l2, l3}, 32 << 20},
		"any order":       {[][3]uint32{l3, l1, l2}, 32 << 20},
		"two":             {[][3]uint32{l1, l2}, 512 << 10},
		"behind the last": {[][3]uint32{l1, l2, {}, l3}, 512 << 10},
	} {
		got := lastCache(7, func(leaf, sub uint32) (eax, ebx, ecx, edx uint32) {
			if leaf != 7 || int(sub) >= len(c.list) {
				return 0, 0, 0, 0
			}
			e := c.list[sub]
			return e[0], e[1], e[2], 0
		})
		if got != c.want {
			t.Errorf("%s: expected %d, got %d", name, c.want, got)
		}
	}
	endless := lastCache(7, func(_, _ uint32) (eax, ebx, ecx, edx uint32) { return l2[0], l2[1], l2[2], 0 })
	if endless != 512<<10 {
		t.Errorf("an endless list: expected 512 KiB, got %d", endless)
	}
}

// Whatever this processor says, it is a size or none.
func TestStreamFrom(t *testing.T) {
	if got := StreamFrom(); got < 128<<10 || got > 4<<30 && got != math.MaxInt {
		t.Errorf("expected the size of a cache, got %d", got)
	}
}
