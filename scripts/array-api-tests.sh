#!/usr/bin/env bash
# Runs the test suite of the array API standard on the package that `make test` laid out. Arguments go to pytest:
#   scripts/array-api-tests.sh --max-examples 100
# DEVICE names the device, by default the interpreter, which compiles nothing. SUITE names a checkout of
# github.com/data-apis/array-api-tests with its submodule; without it, the suite is cloned.
set -euo pipefail
cd "$(dirname "$0")/.."

package=$PWD/target/tmp/python-package
[ -f "$package/broadloom/_core.abi3.so" ] || { echo "There is no $package: run \`cargo test --test package\` first." >&2; exit 1; }
suite=${SUITE:-$PWD/target/array-api-tests}
if ! [ -d "$suite/array_api_tests" ]; then
    git clone --quiet --depth 1 --recurse-submodules --shallow-submodules https://github.com/data-apis/array-api-tests "$suite"
fi
venv=target/array-api-venv
if ! "$venv/bin/python" -c 'import hypothesis, pytest, ndindex, numpy' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'numpy>=2' -r "$suite/requirements.txt"
fi
python=$PWD/$venv/bin/python

# There are no complex numbers. The suite takes the widest complex type without asking if there is one.
sed -i 's/for dt in complex_dtypes\], key=/for dt in complex_dtypes] or [(None, 0)], key=/' "$suite/array_api_tests/dtype_helpers.py"
export ARRAY_API_TESTS_SKIP_DTYPES=complex64,complex128 ARRAY_API_TESTS_VERSION=2025.12
open="import broadloom as xp; xp.default_device(\"${DEVICE:-interp}\").__enter__()"
export ARRAY_API_TESTS_MODULE="exec('$open')" PYTHONPATH=$package
cd "$suite"
exec "$python" -m pytest array_api_tests -q -p no:cacheprovider --disable-deadline --disable-extension fft "$@"
