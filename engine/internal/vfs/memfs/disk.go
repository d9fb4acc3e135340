package memfs

import "slices"

// Kind is what a change does.
type Kind uint8

// The kinds of changes, and of marks in the log that change nothing.
const (
	Write    Kind = iota // Data at Off of a file
	Truncate             // a file to Off bytes
	Link                 // Name of a folder leads to Child
	Unlink               // Name of a folder leads nowhere
	Rename               // Name of a folder becomes To
	Sync                 // of a file or folder
	Lose                 // a failed sync: what is pending never reaches the disk
	Drop                 // clean pages of a file are read anew
	Lock                 // a lock on a file: Off is 0 none, 1 shared, 2 exclusive
)

func (k Kind) String() string {
	return []string{"write", "truncate", "link", "unlink", "rename", "sync", "lose", "drop", "lock"}[k]
}

// Op is an entry of the log. Node is the file, or the folder whose names
// change.
type Op struct {
	Kind     Kind
	Node     int
	Off      int
	Data     []byte
	Name, To string
	Child    int
	Dir      bool // Child is a folder
}

// node is a file or a folder. It shares its bytes and names with copies until
// one of them changes.
type node struct {
	dir     bool
	own     bool           // nobody shares data or entries
	entries map[string]int // of a folder
	data    []byte         // of a file; what lies between them and size is zero
	size    int
}

// disk is all files and folders by number; 0 is the root.
type disk struct{ nodes []node }

func newDisk() disk { return disk{[]node{{dir: true, own: true, entries: map[string]int{}}}} }

func (d *disk) clone() disk {
	for i := range d.nodes {
		d.nodes[i].own = false
	}
	return disk{slices.Clone(d.nodes)}
}

func (d *disk) at(id int) *node {
	for len(d.nodes) <= id {
		d.nodes = append(d.nodes, node{own: true})
	}
	return &d.nodes[id]
}

// apply makes a change.
func (d *disk) apply(op Op) {
	switch op.Kind {
	case Write:
		d.at(op.Node).write(op.Data, op.Off)
	case Truncate:
		d.at(op.Node).truncate(op.Off)
	case Link:
		if c := d.at(op.Child); op.Dir {
			c.dir = true
		}
		d.folder(op.Node)[op.Name] = op.Child
	case Unlink:
		// Other changes may not have landed: the name may lead elsewhere.
		if e := d.folder(op.Node); e[op.Name] == op.Child {
			delete(e, op.Name)
		}
	case Rename:
		e := d.folder(op.Node)
		if e[op.Name] == op.Child {
			delete(e, op.Name)
		}
		e[op.To] = op.Child
		d.at(op.Child)
	}
}

// folder is the names of a folder, for changing them.
func (d *disk) folder(id int) map[string]int {
	n := d.at(id)
	n.dir = true // its own name may not have landed
	if !n.own || n.entries == nil {
		entries := make(map[string]int, len(n.entries)+1)
		for name, child := range n.entries {
			entries[name] = child
		}
		n.entries, n.own = entries, true
	}
	return n.entries
}

func (d *disk) names(id int) []string {
	var names []string
	for name := range d.nodes[id].entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (n *node) write(p []byte, off int) {
	if len(p) == 0 {
		return
	}
	if end := off + len(p); end > len(n.data) {
		grown := n.data[:len(n.data):len(n.data)]
		if n.own {
			grown = n.data
		}
		n.data, n.own = append(grown, make([]byte, end-len(grown))...), true
		n.size = max(n.size, end)
	} else if !n.own {
		n.data, n.own = slices.Clone(n.data), true
	}
	copy(n.data[off:], p)
}

func (n *node) truncate(size int) {
	if size < len(n.data) {
		n.data, n.own = n.data[:size:size], false
	}
	n.size = size
}

// read fills p from off on, and returns how many bytes there were.
func (n *node) read(p []byte, off int) int {
	if off >= n.size {
		return 0
	}
	p = p[:min(len(p), n.size-off)]
	got := 0
	if off < len(n.data) {
		got = copy(p, n.data[off:])
	}
	clear(p[got:])
	return len(p)
}

// image is what is durable, what is pending, and what a process sees.
type image struct {
	durable disk
	pending []Op
	cached  disk
}

func (im *image) clone() image {
	return image{im.durable.clone(), slices.Clone(im.pending), im.cached.clone()}
}

// next is the number of a node that is to be made. Numbers are never used
// twice.
func (im *image) next() int { return max(len(im.durable.nodes), len(im.cached.nodes)) }

// step makes a change or a sync.
func (im *image) step(op Op) {
	switch op.Kind {
	case Write, Truncate, Link, Unlink, Rename:
		im.pending = append(im.pending, op)
		im.cached.apply(op)
	case Sync:
		im.take(op.Node, im.durable.apply)
	case Lose:
		im.take(op.Node, func(Op) {})
	case Drop:
		im.reread(op.Node)
	}
}

// take removes the pending changes of a node, giving each to a function.
func (im *image) take(id int, give func(Op)) {
	left := im.pending[:0:0]
	for _, op := range im.pending {
		if op.Node == id {
			give(op)
		} else {
			left = append(left, op)
		}
	}
	im.pending = left
}

// reread makes a process see the durable bytes of a node with its pending
// changes.
func (im *image) reread(id int) {
	durable := im.durable.at(id)
	durable.own = false
	*im.cached.at(id) = *durable
	for _, op := range im.pending {
		if op.Node == id {
			im.cached.apply(op)
		}
	}
}
