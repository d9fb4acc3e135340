module loaderx

go 1.26.0

require (
	github.com/DataDog/zstd v1.5.7
	github.com/vmihailenco/msgpack/v5 v5.4.1
	golang.org/x/sys v0.50.0
)

require github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
