package sampler

// Subset is a choice of records, in the order in which Sequential takes them.
// The orders of a sampler are over the places in it, so that nothing of the
// records themselves is moved. It does not change, and any number of samplers
// may share one.
type Subset struct {
	list          []int64 // nil: a range
	start, stride int64
	count         int64
}

// List is a subset of the given records, which it copies. A record that is
// listed twice is drawn twice as often.
func List(index []int64) *Subset {
	return &Subset{list: append(make([]int64, 0, len(index)), index...), count: int64(len(index))}
}

// Range is the subset start, start+stride, ... of all that come before stop, as
// in Python's range. It takes no memory, whatever its length.
func Range(start, stop, stride int64) (*Subset, error) {
	r := &Subset{start: start, stride: stride}
	// Distances and strides are below 2^64, whatever the signs.
	switch {
	case stride == 0:
		return nil, badArgument("stride", "expected any but 0 in a range")
	case stride > 0 && start < stop:
		r.count = int64((uint64(stop)-uint64(start)-1)/uint64(stride)) + 1
	case stride < 0 && start > stop:
		r.count = int64((uint64(start)-uint64(stop)-1)/-uint64(stride)) + 1
	}
	if r.count < 0 {
		return nil, badArgument("subset", "expected a range of fewer than 2^63 records, got %d to %d by %d", start, stop, stride)
	}
	return r, nil
}

// Len is how many records are chosen.
func (s *Subset) Len() int64 { return s.count }

// check refuses a subset of anything but the records 0 to length-1.
func (s *Subset) check(length int64) error {
	if s.count == 0 {
		return badArgument("subset", "expected at least 1 record, got none")
	}
	if s.list == nil {
		// In between, a range is between its ends.
		for _, place := range []int64{0, s.count - 1} {
			if index := s.start + place*s.stride; index < 0 || index >= length {
				return outside(index, place, length)
			}
		}
		return nil
	}
	for place, index := range s.list {
		if index < 0 || index >= length {
			return outside(index, int64(place), length)
		}
	}
	return nil
}

func outside(index, place, length int64) error {
	return badArgument("subset", "expected records of 0 to %d, got %d at place %d", length-1, index, place)
}

// apply turns places in the subset into the records there.
func (s *Subset) apply(places []int64) {
	if s.list == nil {
		for i, place := range places {
			places[i] = s.start + place*s.stride
		}
		return
	}
	for i, place := range places {
		places[i] = s.list[place]
	}
}
