package engine

import (
	"strings"
	"sync"
)

// Task is work on a whole store, done in bounded steps so that its caller can
// show progress and stop between them. Its methods are for one goroutine at a
// time; other calls of the store run between the steps.
type Task struct {
	s     *Store
	step  func() (done bool, err error)
	stop  func() error // lets go of what the task holds; runs once
	total int64

	mu    sync.Mutex
	at    int64
	bad   []*Error // found by the step that runs
	found findings // by those before it
	ended bool
}

// Progress is how much of the total is done, in bytes.
type Progress struct {
	At    int64
	Total int64
	Done  bool
	Bad   int // records found bad so far, by a verification
}

// Step goes on for a bounded time. After Done or an error, End remains.
func (t *Task) Step() (Progress, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return Progress{}, errorf(StatusClosed, t.s.path, "%s: the task has ended", t.s.path)
	}
	done, err := t.step()
	for _, e := range t.bad {
		t.found.add(e)
	}
	t.bad = nil
	return Progress{At: min(t.at, t.total), Total: t.total, Done: done, Bad: len(t.found.rows)}, err
}

// Bad is the i-th record that a verification found bad.
func (t *Task) Bad(i int64) (*Error, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.found.rows); i < 0 || i >= int64(n) {
		return nil, errorf(StatusArgument, t.s.path, "bad record %d of %d", i, n)
	}
	return t.found.at(i), nil
}

// End stops the task where it is. What it has done stays done.
func (t *Task) End() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	t.ended = true
	return t.stop()
}

// Run does all of a task at once.
func (t *Task) Run() error {
	for {
		p, err := t.Step()
		if err != nil || p.Done {
			if ended := t.End(); err == nil {
				err = ended
			}
			return err
		}
	}
}

// findings are records that were found bad. A store can have millions of them,
// and most are bad for one reason in one file: each takes a row of 24 bytes, and
// the texts are kept once.
type findings struct {
	rows  []finding
	texts []string
	known map[string]uint32
}

// finding is a bad record; path and why are numbers of texts.
type finding struct {
	index, offset int64
	path, why     uint32
}

// distinct bounds the texts that are looked up: where every reason is another,
// as with damage that is random, looking them up would cost more than it saves.
const distinct = 4096

// add keeps a record that badRecord told of.
func (f *findings) add(e *Error) {
	why := strings.TrimPrefix(e.Message, badRecord(e.Index, e.Path, e.Offset, "").Message)
	f.rows = append(f.rows, finding{e.Index, e.Offset, f.text(e.Path), f.text(why)})
}

// text is the number of a text.
func (f *findings) text(s string) uint32 {
	if n, ok := f.known[s]; ok {
		return n
	}
	s = strings.Clone(s) // of a message of which the rest is not kept
	n := uint32(len(f.texts))
	if f.texts = append(f.texts, s); len(f.known) < distinct {
		if f.known == nil {
			f.known = map[string]uint32{}
		}
		f.known[s] = n
	}
	return n
}

// at is finding i as the error that it was.
func (f *findings) at(i int64) *Error {
	r := f.rows[i]
	return badRecord(r.index, f.texts[r.path], r.offset, "%s", f.texts[r.why])
}
