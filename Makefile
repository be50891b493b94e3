# Broadloom. `make help` lists what can be done.
#
# Every goal first looks for what it needs, installs from Debian what is missing, and says so.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

# rustup puts cargo where a login shell finds it; other shells need to be told.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: build demo test bench bench-peers soak gpu-bundle soak-bundle wheel wheel-test fmt clean help cargo linker llvm peers rustfmt clippy

# Where LLVM 19 is, for the crates that bind to it.
export LLVM_SYS_191_PREFIX ?= /usr/lib/llvm-19

# The command and the library share LLVM's library (24 MB in all). With LLVM=static each holds a copy (105 MB) and
# runs on machines without the package libllvm19.
LLVM ?= shared

# One call for all: with other packages in it, cargo may want other features of what they share, and builds all that again.
build: cargo linker llvm ## the command, optimised: target/release/broadloom, and the library that CUDA programs are run with (LLVM=static: with LLVM inside)
	@[ -x target/release/broadloom ] || echo "Building Broadloom and its $$(grep -c '^name' Cargo.lock) crates: four to five minutes on two cores, the first time only."
	cargo build --release --locked --package broadloom-cli --package broadloom-cudart --package broadloom --lib --bins --example demo \
	    $(if $(filter static,$(LLVM)),,--features broadloom-cpu/shared-llvm)
	scripts/strip.sh target/release/broadloom target/release/libbroadloom_cudart.so

demo: build ## six jobs with their answers and times beside plain loops, in a minute
	target/release/examples/demo

# Disk: what would make a second run faster is half of what a first one writes.
test: export CARGO_INCREMENTAL ?= 0
TESTED := --locked --workspace --features broadloom-cpu/shared-llvm
test: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/test-rustc.sh
# All crates are linted as they are compiled: `cargo clippy` would check them, and `cargo test` compile them after that.
test: cargo linker llvm rustfmt clippy ## all checks: format, lints, tests
	@if cargo fmt --version >/dev/null 2>&1; then echo "cargo fmt --all --check"; cargo fmt --all --check; fi
	@if cargo tree --locked --package broadloom --no-default-features --edges normal,build | grep -E 'inkwell|llvm-sys'; then \
	    echo "broadloom without its feature \`cpu\` depends on LLVM: see above" >&2; exit 1; fi
	@if cargo clippy --version >/dev/null 2>&1; then \
	    echo "Every crate is compiled by clippy-driver, and a warning is an error."; \
	    export CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__; fi; \
	set -x; \
	cargo build $(TESTED) --all-targets; \
	cargo test $(TESTED)

# Compiled kernels are kept between runs: an empty folder makes compile times what they are. Peers are kept elsewhere.
bench: build peers ## how fast it is here, against C++ with OpenMP (NAMES=… DEVICE=… JSON=file)
	cache=$$(mktemp -d); trap 'rm -rf "$$cache"' EXIT; \
	BROADLOOM_CACHE=$$cache target/release/broadloom bench $(NAMES) $(if $(DEVICE),--device $(DEVICE)) $(if $(JSON),--json $(JSON))

bench-peers: build peers ## arrays and effects beside NumPy, Numba, JAX, PyTorch, Halide and OpenCV, which it installs into a folder of their own (NAMES=…)
	scripts/bench-peers.sh $(NAMES)

# A wheel has LLVM inside, so it needs no package of the system.
wheel: cargo linker llvm ## the Python package, optimised, with LLVM inside: target/wheels/broadloom-*.whl
	scripts/wheel.sh

wheel-test: wheel ## all tests of the Python package on the wheel, with the test suite of the array API standard
	scripts/wheel-test.sh

# Far more random input than `make test` has time for, other every day.
SECONDS ?= 600
KERNELS ?= 20000
SEED ?= $(shell date +%Y%m%d0000)
STEP ?= 1
GRAPHS ?= 50000
CALLS ?= 20000
soak: cargo linker llvm ## broken text for the parser (SECONDS=n), random kernels (KERNELS=n SEED=s), random arrays (GRAPHS=n), NESL programs and streams, random calls of CUDA (CALLS=n), every argument of elementary functions and approximate instructions (STEP=n: every n-th)
	BROADLOOM_FUZZ_GRAPHS=$(GRAPHS) BROADLOOM_FUZZ_SEED=$(SEED) \
	    cargo test --release --locked --package broadloom-graph --test random
	BROADLOOM_FUZZ_FUNCTIONS=20000 BROADLOOM_FUZZ_SEED=$(SEED) cargo test --release --locked --package broadloom-graph --test graphs sizes
	BROADLOOM_PACKS=10000 cargo test --release --locked --package broadloom-graph --test graphs lengths
	BROADLOOM_NESL_RANDOM=20000 BROADLOOM_NESL_SEED=$(SEED) cargo test --release --locked --package broadloom-nesl --test flattened random
	BROADLOOM_STREAM_GRAPHS=10000 BROADLOOM_STREAM_SEED=$(SEED) cargo test --release --locked --package broadloom-stream --test suite compiled::random
	BROADLOOM_FUZZ_SECONDS=$(SECONDS) BROADLOOM_FUZZ_FROM=$(SEED) BROADLOOM_FUZZ_KERNELS=$(KERNELS) BROADLOOM_FUZZ_SEED=$(SEED) \
	    cargo test --release --locked --package broadloom-filetest --package broadloom-fuzzgen --test fuzz --test kernels --test cpu
	BROADLOOM_FUZZ_KERNELS=$(KERNELS) BROADLOOM_FUZZ_SEED=$(SEED) \
	    cargo test --release --locked --package broadloom-transform --test equivalence
	BROADLOOM_EVERY_CASE=1 cargo test --release --locked --package broadloom-filetest --test filetests -- @cpu-sse4.2
	BROADLOOM_FUZZ_CALLS=$(CALLS) BROADLOOM_FUZZ_SEED=$(SEED) cargo test --release --locked --package broadloom-cudart --test fuzz
	BROADLOOM_MATH_EVERY=$(STEP) cargo test --release --locked --package broadloom-scalar --test math every
	BROADLOOM_APPROXIMATE_EVERY=$(STEP) cargo test --release --locked --package broadloom-fuzzgen --test approximate

gpu-bundle: cargo linker llvm ## one program that tests and measures a GPU elsewhere: target/gpu-bundle/broadloom-gpubundle
	scripts/gpu-bundle.sh

soak-bundle: cargo linker llvm ## the random kernels of `make soak` for another machine: target/soak-bundle/broadloom-soak.tar.gz
	scripts/soak-bundle.sh

fmt: cargo rustfmt ## format all Rust files
	cargo fmt --all

clean: ## remove everything that was built
	rm -rf target

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What the goals above need.

cargo:
	@if ! command -v cargo >/dev/null; then \
	    echo "Broadloom is built with Rust, and there is no \`cargo\` here. Install it with" >&2; \
	    echo "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2; \
	    echo "then open a new shell, or see https://rustup.rs for other ways." >&2; \
	    exit 1; \
	fi

linker:
	@if ! command -v cc >/dev/null; then \
	    echo "No C linker here, and Rust needs one: installing gcc and libc6-dev from Debian."; \
	    $(call install,gcc libc6-dev); \
	fi

llvm:
	@if ! [ -x $(LLVM_SYS_191_PREFIX)/bin/llvm-config ]; then \
	    echo "No LLVM 19 in $(LLVM_SYS_191_PREFIX), which makes machine code for the CPU: installing llvm-19-dev and what it links to from Debian."; \
	    $(call install,llvm-19-dev libpolly-19-dev zlib1g-dev libzstd-dev libz3-dev libffi-dev libxml2-dev g++); \
	fi

peers:
	@if ! command -v g++ >/dev/null; then \
	    echo "No C++ compiler here, and the benchmarks compare with C++: installing g++ from Debian."; \
	    ($(call install,g++)) || echo "SKIPPED: the comparison; g++ could not be installed." >&2; \
	fi

# Formatter and linter are parts of the Rust toolchain. Where they are neither there nor to be had, their checks are
# skipped, and that is said.
rustfmt clippy:
	@case $@ in rustfmt) tool=fmt;; *) tool=$@;; esac; \
	if ! cargo $$tool --version >/dev/null 2>&1; then \
	    echo "\`cargo $$tool\` is missing: adding the component $@ to the Rust toolchain."; \
	    rustup component add $@ || echo "SKIPPED: what \`cargo $$tool\` would have checked; it could not be installed." >&2; \
	fi

# $(call install,PACKAGES): from Debian, with sudo where needed.
define install
	if ! command -v apt-get >/dev/null; then \
	    echo "This is no Debian: please install these packages or their like: $(1)" >&2; exit 1; \
	fi; \
	sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	$$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y --no-install-recommends $(1)
endef
