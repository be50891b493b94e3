#!/usr/bin/env bash
# Tests the wheel that `make wheel` built: its size, all tests of the package, and the test suite of the array API
# standard with many examples. EXAMPLES is their number for each function; DEVICE the device of the suite.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=$(ls -t target/wheels/broadloom-*.whl | head -1)
megabytes=$(($(stat -c %s "$wheel") >> 20))
[ "$megabytes" -le 45 ] || { echo "$wheel has $megabytes MB; at most 45 are allowed" >&2; exit 1; }
venv=target/wheel-venv
rm -rf "$venv"
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "$wheel"
python=$PWD/$venv/bin/python
for file in crates/python/tests/test_*.py; do
    echo "$file"
    "$python" -W error "$file"
done
PYTHON=$python DEVICE=${DEVICE:-cpu} scripts/array-api-tests.sh --max-examples "${EXAMPLES:-1000}"
