package engine

// behind is a checkpoint that runs beside appends. Recovery reads what was
// appended since the newest checkpoint, so one is due from time to time
// whether or not anybody asks; append itself stays free of fsync.
type behind struct {
	synced chan struct{} // closed when err is set
	err    error         // of the syncs
	done   chan struct{}
}

// checkpointBehind starts a checkpoint of the current state, whose syncs run
// beside later appends (FORMAT 6.6). The caller holds s.mut.
func (w *writer) checkpointBehind() {
	if w.behind != nil || w.broken != nil {
		return
	}
	at, epoch := w.header(), w.slot.Meta.Epoch
	var files []*outFile
	for _, name := range w.sorted() {
		if f := w.files[name]; f.touched {
			f.touched, f.pinned = false, true
			files = append(files, f)
		}
	}
	names := w.names
	w.names, w.since = false, 0
	b := &behind{synced: make(chan struct{}), done: make(chan struct{})}
	w.behind = b
	go func() {
		defer close(b.done)
		if b.err = syncAll(files); b.err == nil && names {
			b.err = w.s.dir.Sync()
		}
		close(b.synced)
		w.s.mut.Lock()
		defer w.s.mut.Unlock()
		w.behind = nil
		for _, f := range files {
			f.pinned = false
		}
		if b.err != nil {
			_ = w.poison(fileError("making the store durable", b.err))
			return
		}
		// A checkpoint that was asked for meanwhile covers more.
		if w.broken == nil && w.slot.Meta.Epoch == epoch {
			published := w.publishSlot(at) == nil
			w.pending = w.pending && !(published && w.s.st.length == int64(at.Length))
		}
	}()
}

func syncAll(files []*outFile) error {
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// settled waits for a checkpoint that runs behind. The caller must not hold
// s.mut; who excludes appends knows that no other starts.
func (s *Store) settled() {
	s.mut.Lock()
	var b *behind
	if s.w != nil {
		b = s.w.behind
	}
	s.mut.Unlock()
	if b != nil {
		<-b.done
	}
}
