// Package engine is the store: records in files, as FORMAT.md describes them.
// It knows no C and no NumPy: a record is bytes, a type identity is JSON that
// it keeps and compares.
//
// # Promises
//
// The live records are always exactly 0 to n-1. Gathers and appends may run at
// the same time on one handle, from any number of goroutines; appends take
// turns. An append is all or nothing, whatever its size. What a handle has
// returned from Sync or Close survives a power cut. Every index, width, length
// and offset is checked here, whatever the caller has checked before, and
// against the real size of the files before memory is asked for.
//
// # Reading the source
//
// store opens, create makes, examine decides what a folder says (FORMAT 7.3),
// locks holds who may do what (FORMAT 6), checkpoint and append hold the write
// orders (FORMAT 7.2), sources and cursor read, dense and ragged gather.
package engine
