package engine

import "sync"

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
	bad   []*Error
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
	return Progress{At: min(t.at, t.total), Total: t.total, Done: done, Bad: len(t.bad)}, err
}

// Bad is the i-th record that a verification found bad.
func (t *Task) Bad(i int64) (*Error, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i < 0 || i >= int64(len(t.bad)) {
		return nil, errorf(StatusArgument, t.s.path, "bad record %d of %d", i, len(t.bad))
	}
	return t.bad[i], nil
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
