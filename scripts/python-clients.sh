#!/bin/bash
# Runs the suites of Python's CUDA clients on Broadloom: scripts/python-clients.sh FOLDER [numba|tinygrad|triton]…
# FOLDER gets a virtual environment for each client and, for each suite, a log whose last lines have the counts. Packages come from PyPI; tinygrad's tests are
# not part of its package, so TINYGRAD names a checkout of its repository. tinygrad compiles for its host with `clang`. `make build` comes first.

set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
broadloom=${BROADLOOM:-$here/target/release/broadloom}
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
export BROADLOOM_CACHE=${BROADLOOM_CACHE:-$folder/cache}
# Libraries of CUDA are found in the environment, and what is kept of kernels is this run's.
export TRITON_CACHE_DIR=$folder/triton CACHEDB=$folder/tinygrad.db

environment() { # NAME PACKAGES…
    [ -x "$folder/$1/bin/python" ] || { python3 -m venv "$folder/$1" && "$folder/$1/bin/pip" install -q "${@:2}"; }
}

run() { # NAME LOG ARGUMENTS…
    echo "$2" >&2
    (cd "$folder" && "$broadloom" exec -- "$folder/$1/bin/python" "${@:3}") > "$folder/$2.log" 2>&1 || true
    tail -n 1 "$folder/$2.log"
}

numba() {
    environment numba 'numba-cuda[cu13]' pytest pytest-timeout filecheck psutil cffi ml_dtypes
    # The fixture is in numba-cuda's repository and not in its package.
    mkdir -p "$folder/plugin"
    cat > "$folder/plugin/numba_fixtures.py" <<'END'
import pytest

@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
END
    export PYTHONPATH=$folder/plugin
    for suite in cudadrv cudapy; do
        run numba "numba-$suite" -m pytest -p numba_fixtures --pyargs "numba.cuda.tests.$suite" -q --import-mode=importlib --timeout 600 -p no:cacheprovider -W ignore --tb=short -rfE
    done
    # Tests that start other processes want the modules by the names that they have for themselves.
    run numba numba-init -m unittest numba.cuda.tests.cudadrv.test_init
    unset PYTHONPATH
}

tinygrad() {
    environment torch torch numpy pytest pytest-timeout hypothesis
    DEV=CUDA:PTX PYTHONPATH=$TINYGRAD run torch tinygrad -m pytest "$TINYGRAD/test/backend/test_ops.py" -q --timeout 600 -p no:cacheprovider -W ignore --tb=short -rfE
}

triton() {
    environment torch torch numpy pytest pytest-timeout hypothesis
    run torch triton "$here/examples/triton_kernels.py"
}

for client in "${@:-numba tinygrad triton}"; do
    for one in $client; do "$one"; done
done
