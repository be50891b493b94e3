#!/bin/bash
# Compares random kernels on the CPU with the interpreter, in as many processes as there are cores, so that one that dies takes little
# with it: soak.sh [--kernels N] [--seed FIRST] [--jobs N] [--limit SECONDS]. The last line says what came of it.
set -uo pipefail
program=$(dirname "$(realpath "$0")")/kernels

kernels=20000 seed=0 jobs=$(nproc) limit=0
while [ $# -gt 1 ]; do
    case $1 in
    --kernels) kernels=$2 ;;
    --seed) seed=$2 ;;
    --jobs) jobs=$2 ;;
    --limit) limit=$2 ;;
    *) echo "\`$1\` is not understood" >&2; exit 2 ;;
    esac
    shift 2
done
if [ $# -gt 0 ]; then echo "\`$1\` needs a value" >&2; exit 2; fi

# Kernels per process, and seconds until one is given up.
batch=40 patience=600
end=$((seed + kernels))
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

one() {
    local count=$((end - $1 < batch ? end - $1 : batch))
    local log=$folder/$1
    BROADLOOM_FUZZ_SEED=$1 BROADLOOM_FUZZ_KERNELS=$count BROADLOOM_FUZZ_JOBS=1 \
        timeout "$patience" "$program" random_kernels >"$log" 2>&1
    local code=$?
    if [ $code -eq 0 ]; then
        echo "$count" >"$log.passed"
        rm "$log"
    else
        { echo "==== kernels from $1, $count of them: exit code $code"; cat "$log"; } >"$log.failed"
        grep "^kernel" "$log" || echo "kernels from $1: exit code $code, $(tail -n 1 "$log")"
    fi
}

for ((first = seed; first < end; first += batch)); do
    if [ "$limit" -gt 0 ] && [ $SECONDS -ge "$limit" ]; then
        echo "the time is over: kernels from $first on were not run"
        break
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    one "$first" &
done
wait

cat "$folder"/*.failed 2>/dev/null
passed=$(cat "$folder"/*.passed 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }')
failed=$(cat "$folder"/*.failed 2>/dev/null | grep -c "^==== kernels")
echo "kernels $seed to $((first < end ? first : end)): $passed in batches without a difference, $failed batches with one, $SECONDS s"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
