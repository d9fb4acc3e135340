package engine
import ("testing";"fmt";"os";"loaderx/engine/internal/vfs";"loaderx/engine/internal/vfs/faultfs")
func TestDbg(t *testing.T) {
	var seed uint64
	fmt.Sscan(os.Getenv("CRASH_SEED"), &seed)
	bug := func(fs vfs.FS) vfs.FS { return &faultfs.FS{Base: fs, Hook: func(op *faultfs.Op, do func() error) error {
		err := do()
		if op.Kind != faultfs.Size && op.Kind != faultfs.Read && op.Kind != faultfs.Open && op.Kind != faultfs.Close && op.Kind != faultfs.Current { fmt.Println("  ", op.Kind, op.Name, op.Off, len(op.Data), err) }
		return err
	}}}
	r := newRun(seed, bug, &counters{})
	n := 2 + r.rng.IntN(7)
	fmt.Println(r.setting, n, r.lossy)
	fmt.Println(r.work(n))
	for _, s := range r.steps { fmt.Println(s.end, s.op, s.floor) }
}
