// The Go tools of make lint, pinned. A module of its own, so that loaderx's
// does not list them.
module loaderx/scripts/lint

go 1.26.0

tool (
	github.com/gordonklaus/ineffassign
	github.com/polyfloyd/go-errorlint
	honnef.co/go/tools/cmd/staticcheck
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/gordonklaus/ineffassign v0.2.0 // indirect
	github.com/polyfloyd/go-errorlint v1.8.0 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	honnef.co/go/tools v0.8.2 // indirect
)
