package move

import (
	"errors"
	"testing"
)

func TestGuardPasses(t *testing.T) {
	cause := errors.New("cause")
	if err := Guard(func() error { return cause }); !errors.Is(err, cause) {
		t.Errorf("expected %v, got %v", cause, err)
	}
	if err := Guard(func() error { return nil }); err != nil {
		t.Errorf("expected nil, got %v", err)
	}
}

// Mistakes of ours are not the file's fault.
func TestGuardLeavesOtherPanics(t *testing.T) {
	var none *int
	list := []int{1}
	for name, f := range map[string]func() error{
		"value":       func() error { panic("mine") },
		"error":       func() error { panic(errors.New("mine")) },
		"nil pointer": func() error { *none = 1; return nil },
		"index":       func() error { list[len(list)] = 1; return nil },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: expected the panic to go on", name)
				}
			}()
			err := Guard(f)
			t.Errorf("%s: expected a panic, got %v", name, err)
		}()
	}
}

func TestGuardAllocatesNothing(t *testing.T) {
	f := func() error { return nil }
	if got := testing.AllocsPerRun(100, func() { _ = Guard(f) }); got != 0 {
		t.Errorf("expected no allocation, got %v", got)
	}
}

func BenchmarkGuard(b *testing.B) {
	f := func() error { return nil }
	for b.Loop() {
		_ = Guard(f)
	}
}
