#!/usr/bin/env bash
# Runs the test suite of the array API standard on the package that `make test` laid out. Arguments go to pytest:
#   scripts/array-api-tests.sh --max-examples 100
# DEVICE names the device, by default the interpreter, which compiles nothing. SUITE names a checkout of
# github.com/data-apis/array-api-tests with its submodule; without it, the suite is cloned. PYTHON names an interpreter
# in whose environment a wheel of the package is installed, to be tested instead.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${SUITE:-$PWD/target/array-api-tests}
if ! [ -d "$suite/array_api_tests" ]; then
    git clone --quiet --depth 1 --recurse-submodules --shallow-submodules https://github.com/data-apis/array-api-tests "$suite"
fi
if [ -z "${PYTHON:-}" ]; then
    package=$PWD/target/tmp/python-package
    [ -f "$package/broadloom/_core.abi3.so" ] || { echo "There is no $package: run \`cargo test --test package\` first." >&2; exit 1; }
    export PYTHONPATH=$package
    venv=target/array-api-venv
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    PYTHON=$PWD/$venv/bin/python
fi
if ! "$PYTHON" -c 'import hypothesis, pytest, ndindex, numpy' 2>/dev/null; then
    "$PYTHON" -m pip install --quiet 'numpy>=2' -r "$suite/requirements.txt"
fi

export ARRAY_API_TESTS_VERSION=2025.12
open="import broadloom as xp; xp.default_device(\"${DEVICE:-interp}\").__enter__()"
export ARRAY_API_TESTS_MODULE="exec('$open')"
cd "$suite"
exec "$PYTHON" -m pytest array_api_tests -q -p no:cacheprovider --disable-deadline "$@"
