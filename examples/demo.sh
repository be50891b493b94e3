#!/bin/sh
# What Broadloom does, in a minute. `make demo` builds the command and runs this.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/release:$PATH"

if [ -t 1 ]; then bold=$(printf '\033[1m') green=$(printf '\033[1;32m') off=$(printf '\033[0m'); else bold= green= off=; fi

chapter() { printf '\n%s── %s%s\n\n' "$bold" "$1" "$off"; }

# Shows a call, makes it, and insists on its exit code.
call() {
    expected=$1
    shift
    printf '%s$ %s%s\n' "$green" "$*" "$off"
    code=0
    "$@" || code=$?
    if [ "$code" -ne "$expected" ]; then
        echo "exit code $code where $expected was expected" >&2
        exit 1
    fi
    echo
}

chapter "A kernel in PTX, y = a·x + y, run with no GPU"
call 0 broadloom run examples/saxpy.ptx --grid 2 --block 4 \
    --arg f32:10 --arg f32[6]:iota --arg f32[6]:iota= --arg u32:6

chapter "What is in a module that nvcc compiled"
call 0 broadloom explain examples/reduce.ptx

chapter "The sum of a quarter of a million numbers, by 1024 blocks of 256 threads"
call 0 broadloom run examples/reduce.ptx --grid 1024 --block 256 \
    --arg f32[262144]:random --arg f32[1]:zero= --arg i32:262144 --stats

chapter "Whole arrays in Rust: Life, 200 generations, a kernel each (crates/broadloom/examples/life.rs)"
call 0 target/release/examples/life

chapter "NESL: quicksort, both halves at once, and sequences inside of sequences"
call 0 broadloom run examples/nesl/quicksort.nesl

chapter "NESL: one step of an n-body simulation over a quad-tree; the lists of cells are ragged"
call 0 broadloom run examples/nesl/barnes_hut.nesl

chapter "NESL: a session, here as a script; at a terminal it has history, completion and Ctrl-C"
printf '%s$ broadloom repl%s\n' "$green" "$off"
printf '%s\n' 'words = wordify("to be or not to be");' '{(w, #w) : w in remove_duplicates(words)};' 'help collect' \
    '{w[5] : w in words};' | broadloom repl 2>&1 || true
echo

chapter "StreamIt: two filters as one kernel, the last one prints"
call 0 broadloom run examples/stream/moving_sum.str -i 4 --device cpu --stats

chapter "StreamIt: a network of 80 comparisons sorts rows, and says how it runs"
call 0 broadloom run examples/stream/bitonic_sort.str -i 2 --device cpu
call 0 broadloom explain examples/stream/fm_radio.str --device cpu

chapter "An image effect: grain is taken out by wavelets (target/demo.png)"
call 0 broadloom effect degrain examples/effects/grainy.png target/demo.png --stats

chapter "A kernel that draws with printf"
call 0 broadloom run examples/mandelbrot.ptx --block 100 --arg i32:36 --arg i32:300

chapter "The same sum with one barrier forgotten. Both parties of the race, and the line in the CUDA source"
call 1 broadloom check examples/race.ptx --block 64 \
    --arg f32[64]:iota --arg f32[1]:zero --arg i32:64

chapter "An index that runs one too far"
call 1 broadloom check examples/off_by_one.ptx --block 32 \
    --arg i32[32]:iota --arg i32[32]:zero --arg i32:32

chapter "That was it. \`broadloom --help\` goes on from here, and so does README.md."
