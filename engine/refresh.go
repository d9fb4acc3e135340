package engine

import "bytes"

// Refresh shows what other handles have appended or deleted since the store
// was opened or last refreshed. It opens the path again, so that it also finds
// the same store in a folder that was replaced (a copy-up of an overlay); a
// different store there is an error. The writer's own view is always exact.
func (s *Store) Refresh() error {
	return s.alone(func() error {
		if s.holdsJournal() {
			return nil
		}
		if s.pins.Load() > 0 {
			return s.pinned("refresh")
		}
		o := s.opts
		o.Identity, o.Codec, o.Dict = nil, nil, nil
		n, err := openExisting(s.path, o)
		if err != nil {
			return err
		}
		same := n.typed.StoreID == s.typed.StoreID || s.typed.StoreID == 0 // 0: upgraded meanwhile
		if !same || !bytes.Equal(n.typed.Identity, s.typed.Identity) || n.codec != s.codec {
			n.release()
			return errorf(StatusMismatch, s.path, "%s: expected the store that was opened (id %08x), another is there now (id %08x)",
				s.path, s.typed.StoreID, n.typed.StoreID)
		}
		s.release()
		s.folder, s.dict, s.dictCRC, s.lockable = n.folder, n.dict, n.dictCRC, n.lockable
		s.coders.init(s.codec, s.dict)
		s.resetSources()
		s.adopt(n.st)
		return nil
	})
}

// pinned says that a snapshot or a verification needs the records to stay.
func (s *Store) pinned(what string) error {
	return errorf(StatusBusy, s.path, "%s: %s: this handle is taking a snapshot or verifying", s.path, what)
}

// beingCompacted says that records are being moved.
func (s *Store) beingCompacted(what string) error {
	return errorf(StatusBusy, s.path, "%s: %s: this handle is compacting", s.path, what)
}
