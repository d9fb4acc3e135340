package sampler

// mixBlock is how many draws are arranged together. Longer blocks mix no better
// to the eye of a training loop, and let the counts stray further from the
// shares in the middle of one: by mixBlock/4 at the very most.
const mixBlock = 64

// arrangement says which source each of a sequence of draws is from. Each block
// of mixBlock draws has what the quota gives it, shuffled by a key of its own,
// so that the block of any place is found without those before it.
type arrangement struct {
	quota *quota
	key   uint64
}

// cursor goes through an arrangement from some place on, and knows how far each
// source's own draws have come.
type cursor struct {
	a     *arrangement
	block uint64 // the next one
	spans []span // of the current block
	order []uint8
	room  [mixBlock]uint8 // indices into spans
}

// at makes a cursor whose next draw is the one at place.
func (a *arrangement) at(place uint64) *cursor {
	c := &cursor{a: a, block: place / mixBlock}
	for range place % mixBlock {
		c.next()
	}
	return c
}

// next is the source of the next draw, and the place in that source's own
// sequence.
func (c *cursor) next() (source int32, place uint64) {
	if len(c.order) == 0 {
		c.advance()
	}
	s := &c.spans[c.order[0]]
	c.order = c.order[1:]
	place = s.first
	s.first++
	return s.source, place
}

// advance arranges the next block.
func (c *cursor) advance() {
	c.spans = c.a.quota.spans(c.spans[:0], c.block*mixBlock, mixBlock)
	at := 0
	for k, s := range c.spans {
		for range s.count {
			c.room[at] = uint8(k)
			at++
		}
	}
	key := word(c.a.key, c.block)
	for i := uint64(mixBlock - 1); i > 0; i-- { // as in shuffle
		j := bounded(word(key, i), i+1)
		c.room[i], c.room[j] = c.room[j], c.room[i]
	}
	c.order = c.room[:]
	c.block++
}
