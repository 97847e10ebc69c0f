# Every target works on a fresh clone with git, make, cargo, a C compiler and CPython 3.11 or newer.
# Python tools live in .venv, pinned by .ci/requirements-*.txt; nothing is installed outside the checkout.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-rust test-rust-built test-arm test-musl test-windows lint lint-sources lint-stubs bench gpu wheel docs clean release build install

PYTHON ?= $(shell .ci/find-python)
VENV ?= .venv
BENCH_VENV ?= .venv-bench
bin := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(bin)
BENCH_BIN := $(BENCH_VENV)/$(bin)
PYTEST_ARGS ?=
# demo, test and docs share a wheel without the last optimisations across crates; CI tests what is released.
WHEEL ?= $(if $(CI),--release,--profile=checkout)
DEMO_ARGS ?=
# Tests wait more than they compute; 0 runs them in one process, as a debugger wants it.
PYTEST_WORKERS ?= 2
# One test in 25 takes more than a second: those are CI's, and of whoever says SLOW=1.
SLOW ?= $(CI)
BENCH_ARGS ?=
SMOKE ?=
# The lock file is the truth in CI; on a developer's machine cargo may still extend it.
LOCKED := $(if $(CI),--locked)
WORKFLOWS := .github/workflows
# Tests of Rust stand on what the wheel of a checkout is built of: by its profile, with its flags, in its folder. With the extension module among
# the packages, though it has none, features of dependencies are those of the wheel. CI tests the wheel that is released; there tests of Rust are built
# with the checks of debugging.
CRATES := $(addprefix -p weft-,engine shape plan graph array onednn kernels program cuda device mpi bindings) --features pyo3/extension-module
RUST_PROFILE ?= $(if $(CI),checked,checkout)
AS_WHEEL = $(if $(filter checkout,$(RUST_PROFILE)),$(PYTHON) .ci/wheel.py like)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

# Installs weft and the packages of these lists, which come while the compiler works.
define installed
$(MAKE) --no-print-directory --jobs=2 build $(1:%=$(VENV)/.stamp-%)
$(BIN)/pip install --quiet --force-reinstall --no-deps dist/weft-*.whl
endef

demo: ## train SINGA's CNN eagerly and as a graph, and compare (DEMO_ARGS=--all: ResNet-18, too); saves demo-timeline.png
	$(call installed,demo)
	$(BIN)/python docs/examples/cnn.py $(DEMO_ARGS)

test: ## run the Rust tests, then the Python tests against the installed wheel (SLOW=1: those that take seconds, too)
	$(call installed,test demo)
	$(MAKE) --no-print-directory test-rust
	$(BIN)/python -P -m pytest -n $(PYTEST_WORKERS) --dist worksteal $(if $(SLOW),,-m 'not slow') $(PYTEST_ARGS)

test-rust: ## run the Rust tests and doctests
	if command -v cargo-nextest >/dev/null; then \
	  $(AS_WHEEL) cargo nextest run $(LOCKED) --cargo-profile $(RUST_PROFILE) --config-file .ci/nextest.toml $(CRATES); \
	else \
	  $(AS_WHEEL) cargo test $(LOCKED) --profile $(RUST_PROFILE) $(CRATES) --tests; \
	fi
	$(AS_WHEEL) cargo test $(LOCKED) --profile $(RUST_PROFILE) $(CRATES) --doc
	$(AS_WHEEL) cargo build $(LOCKED) --profile $(RUST_PROFILE) $(CRATES) --examples
	$(AS_WHEEL) sh -c 'for example in pipeline failures symbols; do \
	  "$${CARGO_TARGET_DIR:-target}/$(RUST_PROFILE:test=debug)/examples/$$example" || exit; \
	done'

test-rust-built: # compiles what test-rust runs first
	$(AS_WHEEL) cargo test $(LOCKED) --profile $(RUST_PROFILE) $(CRATES) --tests --no-run

test-arm: $(VENV)/.stamp-build ## run a choice of the tests for 64-bit ARM Linux, by qemu (Debian's packages)
	PYTHON=$(BIN)/python .ci/emulate arm

test-musl: ## run the Rust tests for Linux with musl
	.ci/emulate musl

test-windows: ## run the Rust tests for Windows, by wine (Debian's packages)
	.ci/emulate windows

lint: lint-sources lint-stubs ## check format, lints and types of Rust, Python, shell and workflows

lint-sources: $(addprefix $(VENV)/.stamp-,lint build test demo docs)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/shellcheck .ci/run .ci/retry .ci/find-python .ci/cross .ci/emulate .ci/try-wheel
	$(BIN)/zizmor --offline --no-progress $(WORKFLOWS) .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/mypy
	$(BIN)/basedpyright
	cargo fmt --all --check
	cargo fmt --check --manifest-path tests/fuzz/native/Cargo.toml
	cargo clippy $(LOCKED) --workspace --all-targets -- -D warnings

lint-stubs: $(VENV)/.stamp-lint install # the stub is held to the binary, so this one needs the wheel
	cd $(VENV) && $(bin)/python -P -m mypy.stubtest weft._core --allowlist $(CURDIR)/.ci/stubtest.txt

bench: $(BENCH_VENV)/.stamp-$(if $(SMOKE),bench,peers) release ## measure weft beside its peers; writes benches/RESULTS.md (SMOKE=1: only verify)
	$(BENCH_BIN)/pip install --quiet --force-reinstall --no-deps dist/weft-*.whl
	$(BENCH_BIN)/python benches/run.py $(if $(SMOKE),--smoke) $(BENCH_ARGS)
	$(BENCH_BIN)/python -P -m pytest -q $(if $(SMOKE),--benchmark-disable) benches/python

gpu: ## check and measure the wheel in dist on a CUDA device, without network, in under nine minutes; fills benches/results
	$(or $(GPU_PYTHON),$(PYTHON),python3) benches/gpu/everything.py

wheel: $(VENV)/.stamp-wheel release ## leave an audited abi3 wheel in dist/
	$(BIN)/python .ci/wheel.py check

docs: ## build the documentation into docs/_build/html, warnings being errors, and check it
	$(call installed,docs demo test)
	$(BIN)/python -P -m sphinx -W --keep-going -q -j auto -b html docs docs/_build/html
	$(BIN)/python -P -m pytest -q tests/test_pages.py

clean: ## remove everything that the other targets made
	rm -rf dist target $(VENV) $(BENCH_VENV) docs/_build demo-timeline.png demo-losses.png
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks

release: $(VENV)/.stamp-build # the wheel that users get
	$(BIN)/python .ci/wheel.py build --release $(LOCKED)

build: $(VENV)/.stamp-build # the same, compiled in half of the time: see WHEEL
	$(BIN)/python .ci/wheel.py build $(WHEEL) $(LOCKED)

install:
	$(call installed,build)

# The stamp comes last, so that a half-made environment is made again.
%/.stamp-venv:
	@test -n "$(PYTHON)" || { echo "weft needs CPython 3.11 or newer with venv: make PYTHON=/path/to/python" >&2; exit 1; }
	rm -rf $*
	$(PYTHON) -m venv $*
	touch $@

$(VENV)/.stamp-%: .ci/requirements-%.txt $(VENV)/.stamp-venv
	.ci/retry $(BIN)/pip install --quiet -r $<
	touch $@

# One after the other, in this order: they share a folder.
$(VENV)/.stamp-demo $(VENV)/.stamp-wheel $(VENV)/.stamp-cross: | $(VENV)/.stamp-build
$(VENV)/.stamp-test: | $(VENV)/.stamp-demo
$(VENV)/.stamp-docs: | $(VENV)/.stamp-test
$(VENV)/.stamp-lint: | $(VENV)/.stamp-docs

$(BENCH_VENV)/.stamp-%: .ci/requirements-%.txt $(BENCH_VENV)/.stamp-venv
	.ci/retry $(BENCH_BIN)/pip install --quiet -r $<
	touch $@

# Gigabytes, which a smoke run does without. One by one: what cannot be had here is reported as missing, beside the others.
$(BENCH_VENV)/.stamp-peers: benches/peers.txt $(BENCH_VENV)/.stamp-bench
	sed '/^#/d' $< | while read -r peer; do \
	  $(BENCH_BIN)/pip install --quiet "$$peer" </dev/null || echo "$$peer is not to be had: its rows stay empty" >&2; \
	done
	touch $@

# Stamps are kept, though make thinks of them as intermediate.
.SECONDARY:
