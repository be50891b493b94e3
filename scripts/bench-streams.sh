#!/bin/bash
# Stream programs from file to file beside C++ with two cores, SciPy and GNU Radio: the best of three, taken by turns. Ours and C++ are whole
# processes; the others tell their time from file to file, without the start of Python.
# Installs NumPy and SciPy into a folder of their own. GNU Radio is used where the system has it: `apt-get install gnuradio libfftw3-dev`.
# Arguments are names of programs of crates/bench/streams; ITEMS=16777216 sets the number of items.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=$PWD/crates/bench/streams broadloom=${BROADLOOM:-$PWD/target/release/broadloom}
venv=${BROADLOOM_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/broadloom/venv}
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import scipy' 2>/dev/null || "$venv/bin/pip" install --quiet scipy || echo 'SKIPPED: SciPy; it could not be installed.' >&2
gnuradio=/usr/bin/python3
$gnuradio -c 'import gnuradio' 2>/dev/null || { echo 'SKIPPED: GNU Radio; it is not installed.' >&2; gnuradio=; }
export BROADLOOM_CACHE=$folder/cache ITEMS=${ITEMS:-16777216} OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
g++ -O3 -march=native -fopenmp "$programs/programs.cpp" -o "$folder/programs" -lfftw3f
cd "$folder"
"$venv/bin/python" - <<'END'
import os

import numpy as np

count, draw = int(os.environ["ITEMS"]), np.random.default_rng(1)
draw.standard_normal(count, dtype=np.float32).tofile("in.f32")
draw.integers(-1000, 1000, count, dtype=np.int32).tofile("in.i32")
draw.standard_normal(count // 2, dtype=np.float32).tofile("in.c64")
END

# Prints the seconds of a command, or – where there is none. A command that prints a number tells its own time.
seconds() {
    local start end code=0
    start=$(date +%s%N)
    "$@" >own 2>log || code=$?
    end=$(date +%s%N)
    case $code in
    0) [ -s own ] && awk 'END { printf "%.3f", $1 }' own || awk "BEGIN { print ($end - $start) / 1e9 }" ;;
    2) echo – ;;
    *) echo "failed: $(head -1 log)" >&2; echo – ;;
    esac
}

least() { [ "$1" = – ] || awk "BEGIN { exit !($2 < $1) }" && echo "$2" || echo "$1"; }

# Compares two files of floats, or of integers. Windows of other lengths at the ends are left out.
agrees() {
    "$venv/bin/python" - "$1" <<'END'
import sys

import numpy as np

kind = np.int32 if sys.argv[1] in ("crc", "viterbi") else np.float32
ours, peer = np.fromfile("out.raw", kind), np.fromfile("peer.raw", kind)
count = min(len(ours), len(peer))
far = np.abs(ours[:count].astype(np.float64) - peer[:count]) > 2e-3 * np.maximum(1, np.abs(peer[:count]))
print("" if len(ours) - count in range(-4096, 4097) and far.mean() < 1e-4 else f" (differs: {len(ours)} and {len(peer)} items, {far.mean():.1e})")
END
}

printf '%-12s %9s %9s %9s %9s %7s\n' program ours C++ SciPy 'GNU Radio' ratio
all=()
for name in ${*:-copy fir iir goertzel resampler bank fm agc crc viterbi channelizer ofdm spectrum squelch}; do
    first=$(seconds "$broadloom" run "$programs/$name.str" --device cpu)
    ours=– cpp=– scipy=– radio=–
    for _ in 1 2 3; do
        now=$(seconds "$broadloom" run "$programs/$name.str" --device cpu) && ours=$(least "$ours" "$now")
        now=$(seconds ./programs "$name") && cpp=$(least "$cpp" "$now")
        note=$(agrees "$name")
        now=$(seconds "$venv/bin/python" "$programs/programs.py" "$name") && [ "$now" = – ] || scipy=$(least "$scipy" "$now")
        [ -z "$gnuradio" ] || { now=$(seconds $gnuradio "$programs/flowgraphs.py" "$name") && [ "$now" = – ] || radio=$(least "$radio" "$now"); }
    done
    ratio=$(awk "BEGIN { printf \"%.2f\", $ours / $cpp }")
    all+=("$ratio")
    printf '%-12s %9.3f %9.3f %9s %9s %7s  first run %.2f s%s\n' "$name" "$ours" "$cpp" "$scipy" "$radio" "$ratio" "$first" "$note"
done
printf '%s\n' "${all[@]}" | awk '{ sum += log($1); if ($1 > worst) worst = $1 } END { printf "geometric mean of the ratios to C++ %.2f, worst %.2f\n", exp(sum / NR), worst }'
