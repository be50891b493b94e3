#!/bin/bash
# CUDA programs on the GPU of this machine: alone, under `broadloom exec --device cuda`, and with their calls and kernels recorded. They have to end and to print the same,
# numbers aside where a program tells times, and what is recorded has to be a trace.
#
#     scripts/cuda-gpu.sh                      the programs of tests/cuda/bin: compile them with the nvcc that is here first (scripts/cuda-programs.sh)
#     scripts/cuda-gpu.sh PROGRAM ARGUMENT…    one program
#
# BROADLOOM names the command, LIMIT says how many seconds a program may take (60). The exit code is 1 when something differs.

set -uo pipefail
root=$(readlink -f "$(dirname "$0")/..")
broadloom=$(readlink -f "${BROADLOOM:-$root/target/release/broadloom}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Runs a program in its folder; what it printed and how it ended, numbers but for the exit code taken out.
outcome() {
    local name=$1 program=$2
    shift 2
    (cd "$(dirname "$program")" && timeout "${LIMIT:-60}" "$@" > "$work/$name" 2> "$work/$name.err" < /dev/null)
    echo "exit $?"
    sed -E 's/-?[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?/#/g' "$work/$name"
}

row() {
    local program=$1 alone ways=()
    alone=$(outcome alone "$program" "$@")
    [ "$(outcome passed "$program" "$broadloom" exec --device cuda -- "$@")" = "$alone" ] && ways+=(same) || ways+=(DIFFERS)
    rm -f "$work/trace.json"
    [ "$(outcome recorded "$program" "$broadloom" exec --device cuda --trace "$work/trace.json" -- "$@")" = "$alone" ] && ways+=(same) || ways+=(DIFFERS)
    [ "$(outcome counted "$program" "$broadloom" exec --device cuda --stats -- "$@")" = "$alone" ] && ways+=(same) || ways+=(DIFFERS)
    local facts
    facts=$(python3 - "$work/trace.json" << 'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
spans = [event for event in events if event["ph"] == "X"]
on = [event for event in spans if names[event["pid"]] != "host"]
print(len(spans) - len(on), len(on), "%.1f" % sum(event["dur"] for event in on), sep=" | ")
END
    ) || facts="NO TRACE | |"
    echo "| $(basename "$program") ${*:2} | $(head -1 <<< "$alone") | ${ways[0]} | ${ways[1]} | ${ways[2]} | $facts |"
    if [[ "${ways[*]} $facts" == *[A-Z][A-Z]* ]]; then
        failed=1
        for way in passed recorded counted; do
            diff "$work/alone" "$work/$way" | head -5
            tail -3 "$work/$way.err"
        done >&2
    fi
}

echo "| program | alone | passed through | with --trace | with --stats | calls | on the GPU | µs of it |"
echo "| --- | --- | --- | --- | --- | ---: | ---: | ---: |"
if [ $# -gt 0 ]; then
    row "$(readlink -f "$1")" "${@:2}"
    exit $failed
fi
bin=$root/tests/cuda/bin
for name in grid image linked matrix says streams; do row "$bin/$name"; done
for name in $("$bin/groups"); do row "$bin/groups" "$name"; done
for name in fork-before-use plugin runtime-by-name threads exit-without-freeing exit-beside-a-thread; do row "$bin/hosts" "$name" "$bin/plugin"; done
for name in $("$bin/faults" | cut -d' ' -f1); do row "$bin/faults" "$name" fixed; done
exit $failed
