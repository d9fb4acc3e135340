# make quickstart and make test need Go, a C compiler and Python 3.9 or newer,
# and nothing else: each makes a virtual environment in .venv and builds what
# it needs. Whatever the tools download or cache stays in this folder too
# (.cache), so that nothing outside of it is changed.

PYTHON ?= python3

HERE   := $(CURDIR)
PY     := "$(HERE)/.venv/bin/python"
RUN    := .cache/run
GO_DIRS := $(wildcard cabi engine sampler internal)
PY_FILES := python/loaderx python/tests python/setup.py scripts examples

export GOPATH := $(HERE)/.cache/go
export GOMODCACHE := $(HERE)/.cache/go/mod
export GOCACHE := $(HERE)/.cache/go-build
# The go command has no setting for where its telemetry counters go; its own
# tests move them with this one.
export TEST_TELEMETRY_DIR := $(HERE)/.cache/go-telemetry
# -trimpath and CGO_CFLAGS are those of scripts/build_native.py, so that the C
# sources of zstd are compiled once for the library and for the tests. Without Go
# or Python this is empty, and the check before the first build says so.
USER_GOFLAGS := $(shell TEST_TELEMETRY_DIR="$(TEST_TELEMETRY_DIR)" go env GOFLAGS 2>/dev/null)
export GOFLAGS := $(USER_GOFLAGS) -modcacherw -trimpath -buildvcs=false
ifndef CGO_CFLAGS
CGO_CFLAGS := $(shell $(PYTHON) scripts/build_native.py --cflags 2>/dev/null)
endif
export CGO_CFLAGS
export STATICCHECK_CACHE := $(HERE)/.cache/staticcheck
export PIP_CACHE_DIR := $(HERE)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip asks a rustc on PATH for its version, and rustup's writes its settings then.
export RUSTUP_HOME := $(HERE)/.cache/rustup
export PYTHONDONTWRITEBYTECODE := 1
export RUFF_CACHE_DIR := $(HERE)/.cache/ruff
export MYPY_CACHE_DIR := $(HERE)/.cache/mypy
# What is installed in the user's home must not stand in for what is pinned.
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH PYTHONHOME

PIP_INSTALL := $(PY) -m pip install --quiet --only-binary :all:

# Several installations into one environment would meet under make -j.
.NOTPARALLEL:
.PHONY: help build test test-go test-python soak lint lint-go lint-python quickstart wheel install wheels test-wheels test-extras bench clean

help:
	@echo "make quickstart   build loaderx, install it into .venv, train on real data"
	@echo "make test         run all tests, of Go, C and Python"
	@echo "make lint         run the linters"
	@echo "make soak         crash, kill and fuzz for as long as SOAK=30m FUZZ=10m say"
	@echo "make build        build the shared library into python/loaderx"
	@echo "make wheel        build the wheel for this platform into dist"
	@echo "make wheels       build and check the wheels of all platforms and the sdist, into dist/wheels"
	@echo "make test-wheels  load those wheels, wherever that can be done here"
	@echo "make test-extras  run the examples that hand batches to PyTorch and JAX (several GB)"
	@echo "make bench        measure against other libraries; BENCH=--quick is short"
	@echo "make clean        remove everything that make made"

build: .venv/build
	$(PY) scripts/build_native.py

wheel: .venv/build
	rm -f dist/*.whl
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./python
	@ls -l dist/*.whl

# Each makes an environment of its own, as these two are also run without make.
wheels:
	$(PYTHON) scripts/build_wheels.py

test-wheels:
	$(PYTHON) scripts/test_wheels.py

install: wheel
	$(PIP_INSTALL) --no-deps --force-reinstall dist/loaderx-*.whl

test: test-go test-python

# $(call fuzz,HOW): each target for a time or, as 3000x, a number of runs (a time can end
# in "context deadline exceeded"). -fuzz takes one target of one package.
define fuzz
	for package in ./engine ./engine/internal/disk ./engine/internal/zstd; do \
		for target in $$(go test $$package -list '^Fuzz' | grep '^Fuzz'); do \
			go test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(1) || exit 1; \
		done; \
	done
endef

# The race detector makes the sweeps over crashes ten times slower: it gets a
# short part of them, and the whole runs without it.
test-go: .venv/build
	go vet ./...
	go test -timeout 30m -race -short ./...
	go test -timeout 30m ./engine
	$(call fuzz,3000x)

# The same sweeps and kills with new seeds for as long as SOAK says, and each fuzz
# target for FUZZ.
SOAK ?= 30m
FUZZ ?= 10m
soak: .venv/build
	go test ./engine -run Soak -v -timeout 0 -soak $(SOAK)
	$(call fuzz,$(FUZZ))

# From a folder with nothing to import, so that the tests meet the package that
# was installed from the wheel.
test-python: .venv/test install
	$(PY) scripts/tidy.py
	mkdir -p $(RUN) .cache/pytest
	cd $(RUN) && $(PY) -m pytest -c "$(HERE)/python/pyproject.toml" \
		--basetemp="$(HERE)/.cache/pytest/tmp" -o cache_dir="$(HERE)/.cache/pytest/cache" \
		"$(HERE)/python/tests" "$(HERE)/scripts/tests"

# The examples need PyTorch and JAX, which are too large for every run.
test-extras: .venv/extras install
	mkdir -p $(RUN)
	cd $(RUN) && $(PY) -m pytest -c "$(HERE)/python/pyproject.toml" "$(HERE)/python/tests/test_examples.py"

# Makes its own environments in .cache/bench, several GB of them for PyTorch.
# BENCH=--quick is short, BENCH="--tries 3" takes the best of three.
BENCH ?=
bench: wheel
	$(PYTHON) scripts/bench_dense.py --shape all $(BENCH)
	$(PYTHON) scripts/bench_dense.py --cold $(BENCH)
	$(PYTHON) scripts/bench_ragged.py $(BENCH)
	$(PYTHON) scripts/bench.py $(BENCH)
	$(PYTHON) scripts/bench.py --only loader --transform augment --codec raw $(BENCH)

lint: lint-go lint-python

lint-go: .cache/bin/lint
	@out=$$(gofmt -l $(GO_DIRS)) && if [ -n "$$out" ]; then \
		echo "gofmt would change:"; echo "$$out"; exit 1; fi
	go vet ./...
	.cache/bin/staticcheck -checks all ./...
	.cache/bin/ineffassign ./...
	.cache/bin/go-errorlint ./...
	go test ./internal/tidy

lint-python: .venv/lint
	$(PY) -m ruff check --config python/pyproject.toml $(PY_FILES)
	$(PY) -m ruff format --check --config python/pyproject.toml $(PY_FILES)
	$(PY) -m mypy --config-file python/pyproject.toml python/loaderx scripts
	$(PY) -m codespell_lib --skip './python/tests/golden,*.sum' -L objekt,bufferring \
		$(PY_FILES) $(GO_DIRS) *.md docs/*.md Makefile
	$(PY) scripts/tidy.py

quickstart: .venv/quickstart install
	mkdir -p build
	cd build && $(PY) "$(HERE)/scripts/quickstart.py" quickstart

clean:
	rm -rf .venv .cache build dist python/build python/loaderx.egg-info
	rm -f python/loaderx/_cdef.py python/loaderx/*.so python/loaderx/*.dylib python/loaderx/*.dll

.venv/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 9) or sys.exit( \
		"loaderx needs Python 3.9 or newer, and $(PYTHON) is %d.%d: make PYTHON=python3.12" % v[:2])'
	@$(PYTHON) scripts/build_native.py --check
	$(PYTHON) -m venv .venv
	@touch $@

# One stamp for each requirements file, in the environment itself.
.venv/%: scripts/requirements-%.txt scripts/requirements-build.txt .venv/created
	$(PIP_INSTALL) -r $<
	@touch $@

.venv/lint .venv/quickstart: scripts/requirements-test.txt

.cache/bin/lint: scripts/lint/go.mod scripts/lint/go.sum
	mkdir -p .cache/bin
	cd scripts/lint && go build -o "$(HERE)/.cache/bin/" tool
	@touch $@
