package engine

import "slices"

// mostSpans is more than appends leave. A worker takes the room of its run at
// once, and runs are handed out in order: when one has its place, only those
// that other workers hold are behind in front of it. So while records are looked
// at in order there are no more spans in a chunk than workers, and one.
const mostSpans = 4096

// spans is which bytes of a chunk are taken, in ascending order. Neighbours are
// one span.
type spans []span

type span struct{ from, to uint32 }

// add takes the bytes from one offset to a greater one. It says no if one of
// them is taken already, or if there would be too many spans.
func (s *spans) add(from, to uint32) bool {
	// Behind is the first span that ends past from.
	behind, _ := slices.BinarySearchFunc(*s, from, func(a span, from uint32) int {
		if a.to > from {
			return 1
		}
		return -1
	})
	l := *s
	if behind < len(l) && l[behind].from < to {
		return false
	}
	joinsLeft := behind > 0 && l[behind-1].to == from
	joinsRight := behind < len(l) && l[behind].from == to
	switch {
	case joinsLeft && joinsRight:
		l[behind-1].to = l[behind].to
		*s = slices.Delete(l, behind, behind+1)
	case joinsLeft:
		l[behind-1].to = to
	case joinsRight:
		l[behind].from = from
	case len(l) == mostSpans:
		return false
	default:
		*s = slices.Insert(l, behind, span{from, to})
	}
	return true
}
