package sampler

import "sync"

// shuffleLimit is the greatest length whose permutations are made in full and
// kept. A Feistel network over the few bits of a short length reaches only some
// of the orders, which shows: at length 5, some of the 120 never come. A
// shuffle reaches them all as far as a key of 64 bits can (20! is the last
// factorial below 2^64). The limit bounds what a sampler holds, and what the
// first batch of a cycle costs, to well under a millisecond.
const shuffleLimit = 1 << 16

// shuffle makes a random permutation of [0, n), n being at most 2^32
// (Durstenfeld, "Algorithm 235: random permutation", CACM 1964; the shuffle of
// Fisher and Yates done in place).
func shuffle(n, key uint64) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = uint32(i)
	}
	for i := n - 1; i > 0; i-- {
		j := bounded(word(key, i), i+1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// keptShuffles holds the permutations of the cycles used last, the latest
// first. Each is made once, by the first goroutine that asks for it; others
// wait for that one only, not for those at work on another cycle.
type keptShuffles struct {
	mu     sync.Mutex
	latest []*keptShuffle
}

func newKeptShuffles(limit int) *keptShuffles {
	return &keptShuffles{latest: make([]*keptShuffle, limit)}
}

type keptShuffle struct {
	cycle       uint64
	once        sync.Once
	permutation []uint32
}

// get returns the permutation of a cycle, which the caller must not change.
func (k *keptShuffles) get(cycle, n, key uint64) []uint32 {
	s := k.find(cycle)
	s.once.Do(func() { s.permutation = shuffle(n, key) })
	return s.permutation
}

// find moves the cycle's entry to the front. A new one pushes the last out:
// goroutines that still read that one keep it alive until they are done.
func (k *keptShuffles) find(cycle uint64) *keptShuffle {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := 0
	for at < len(k.latest)-1 && k.latest[at] != nil && k.latest[at].cycle != cycle {
		at++
	}
	s := k.latest[at]
	if s == nil || s.cycle != cycle {
		s = &keptShuffle{cycle: cycle}
	}
	copy(k.latest[1:at+1], k.latest[:at])
	k.latest[0] = s
	return s
}
