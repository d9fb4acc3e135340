package vfs

// Advised is a File that takes advice about what will be read. Not every system
// has it, and nothing depends on it.
type Advised interface {
	// Cold tells whether reading the byte at off would have to wait for the disk.
	Cold(off int64) bool
	// WillNeed asks for n bytes at off to be read in the background.
	WillNeed(off, n int64)
}
