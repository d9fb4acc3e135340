package memfs

import (
	"math/rand/v2"
	"slices"
)

// page is where the copy of a large write into the page cache can be cut by a
// killed process.
const page = 4096

// Replay walks a log and shows what a crash would leave after each change.
type Replay struct {
	log       []Op
	pos       int
	start     image
	at        image
	exclusive map[int]bool
}

// Replay begins before the first change of the log so far.
func (f *FS) Replay() *Replay {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Replay{
		log: f.log[:len(f.log):len(f.log)], start: f.start.clone(), at: f.start.clone(),
		exclusive: map[int]bool{},
	}
}

// Pos is how many changes have been made.
func (r *Replay) Pos() int { return r.pos }

// Last is the latest change; a mark if there was none.
func (r *Replay) Last() Op {
	if r.pos == 0 {
		return Op{Kind: Lock}
	}
	return r.log[r.pos-1]
}

// Next makes the next change, and says false if there is none.
func (r *Replay) Next() bool {
	if r.pos == len(r.log) {
		return false
	}
	op := r.log[r.pos]
	r.pos++
	r.at.step(op)
	if op.Kind == Lock {
		r.exclusive[op.Node] = op.Off == 2
	}
	return true
}

// Locked tells whether the file at a path is locked exclusively.
func (r *Replay) Locked(name string) bool {
	f := FS{now: r.at}
	id := f.find(name)
	return id >= 0 && r.exclusive[id]
}

// Kill is what other processes find after this one was killed: everything
// it wrote, whether durable or not.
func (r *Replay) Kill() *FS { return newFS(r.at.clone()) }

// KillInside is what they find if it was killed inside the latest change: a
// large write cut at each of its pages.
func (r *Replay) KillInside() []*FS {
	op := r.Last()
	if op.Kind != Write || op.Off/page == (op.Off+len(op.Data)-1)/page {
		return nil
	}
	before := Replay{log: r.log[:r.pos-1], at: r.start.clone(), exclusive: map[int]bool{}}
	for before.Next() {
	}
	var states []*FS
	for cut := page - op.Off%page; cut < len(op.Data); cut += page {
		im := before.at.clone()
		part := op
		part.Data = op.Data[:cut]
		im.step(part)
		states = append(states, newFS(im))
	}
	return states
}

// Pending is the number of changes that a power cut may undo.
func (r *Replay) Pending() int { return len(r.at.pending) }

// Power yields states that a power cut may leave, about n of them: all
// subsets of what is pending if they are few; else nothing, everything, and
// seeded picks of the kinds that losses does.
func (r *Replay) Power(rng *rand.Rand, n int, yield func(*FS) bool) {
	pending := r.at.pending
	if len(pending) == 0 {
		yield(r.cut(nil))
		return
	}
	keep := make([]fate, len(pending))
	if len(pending) < 7 && 1<<len(pending) <= n {
		for set := range 1 << len(pending) {
			for i := range keep {
				keep[i] = fate{kept: set>>i&1 == 1}
			}
			if !yield(r.cut(keep)) {
				return
			}
		}
		n -= 1 << len(pending)
	} else {
		for _, kept := range []bool{false, true} {
			for i := range keep {
				keep[i] = fate{kept: kept}
			}
			if !yield(r.cut(keep)) {
				return
			}
		}
		n -= 2
	}
	for range n {
		losses(rng, pending, keep)
		if !yield(r.cut(keep)) {
			return
		}
	}
}

// fate is what becomes of a pending change. A write can land in part: the
// bytes from lo to hi, or all but these. A lost write that grew the file can leave its size
// behind, over zeros or garbage.
type fate struct {
	kept   bool
	torn   bool
	hole   bool
	lo, hi int
	grown  uint8 // 1 zeros, 2 garbage
}

// cut is the disk after a power cut. keep is nil if nothing is pending.
func (r *Replay) cut(keep []fate) *FS {
	d := r.at.durable.clone()
	for i, op := range r.at.pending {
		switch k := keep[i]; {
		case k.kept && !k.torn:
			d.apply(op)
		case k.hole:
			for _, part := range [][2]int{{0, k.lo}, {k.hi, len(op.Data)}} {
				p := op
				p.Off, p.Data = op.Off+part[0], op.Data[part[0]:part[1]]
				d.apply(p)
			}
		case k.torn:
			op.Off, op.Data = op.Off+k.lo, op.Data[k.lo:k.hi]
			d.apply(op)
		case op.Kind == Write && k.grown > 0 && op.Off+len(op.Data) > d.at(op.Node).size:
			junk := make([]byte, len(op.Data))
			if k.grown == 2 {
				for j := range junk {
					junk[j] = byte(op.Off+j)*167 + 13
				}
			}
			op.Data = junk
			d.apply(op)
		}
	}
	return newFS(image{durable: d, cached: d.clone()})
}

// losses picks what becomes of each pending change.
func losses(rng *rand.Rand, pending []Op, keep []fate) {
	switch n := len(pending); rng.IntN(10) {
	case 0: // one alone, or one missing
		one, kept := rng.IntN(n), rng.IntN(2) == 0
		for i := range keep {
			keep[i] = fate{kept: (i == one) == kept}
		}
	case 1: // each file all or nothing
		whole := map[int]bool{}
		for i, op := range pending {
			if _, seen := whole[op.Node]; !seen {
				whole[op.Node] = rng.IntN(2) == 0
			}
			keep[i] = fate{kept: whole[op.Node]}
		}
	case 2, 3, 4: // some files as of an earlier moment
		moment, old := earlier(rng, pending), map[int]bool{}
		for i, op := range pending {
			if _, seen := old[op.Node]; !seen {
				old[op.Node] = rng.IntN(5) < 3
			}
			keep[i] = fate{kept: i < moment || !old[op.Node]}
		}
	default: // any subset
		p := []int{15, 50, 85, 95}[rng.IntN(4)]
		for i := range keep {
			keep[i] = fate{kept: rng.IntN(100) < p}
		}
	}
	for i, op := range pending {
		if op.Kind == Write {
			keep[i].damage(rng, op)
		}
	}
}

// earlier is a moment among the pending changes, half of the time one before
// something other than a write.
func earlier(rng *rand.Rand, pending []Op) int {
	if rng.IntN(2) == 0 {
		cuts := slices.DeleteFunc(indices(len(pending)), func(i int) bool { return pending[i].Kind == Write })
		if len(cuts) > 0 {
			return cuts[rng.IntN(len(cuts))]
		}
	}
	return rng.IntN(len(pending))
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// damage tears some of the writes, at multiples of 512, 16 or 8 bytes in the
// file, and leaves the size of some lost ones.
func (k *fate) damage(rng *rand.Rand, op Op) {
	if !k.kept {
		if rng.IntN(5) == 0 {
			k.grown = uint8(1 + rng.IntN(2))
		}
		return
	}
	if rng.IntN(6) > 0 {
		return
	}
	unit := []int{512, 16, 8}[rng.IntN(3)]
	first, last := op.Off/unit+1, (op.Off+len(op.Data)-1)/unit
	if first > last {
		return // it lies within one unit
	}
	at := (first+rng.IntN(last-first+1))*unit - op.Off
	k.torn, k.lo, k.hi = true, 0, at
	switch rng.IntN(3) {
	case 0:
		k.lo, k.hi = at, len(op.Data)
	case 1: // its two ends land
		k.hole, k.lo = true, (first+rng.IntN(last-first+1))*unit-op.Off
		k.lo, k.hi = min(k.lo, at), max(k.lo, at)
	}
}
