#!/bin/bash
# Runs the suites of Python's CUDA clients on Broadloom:
#
#   scripts/python-clients.sh FOLDER [triton|llvm|numba|cudadrv|cudapy|tinygrad]…
#
# Without a name all of them run; `numba` is cudadrv and cudapy, `llvm` a program with several LLVMs. FOLDER
# gets a virtual environment for each client and a log for each suite, whose last line has the counts. Packages
# come from PyPI. An environment that is there already (FOLDER/venv-numba, FOLDER/venv-torch) is used as it is.
# The script fails when a suite does.
#
# BROADLOOM  the command; target/release/broadloom unless it is set (`make build`)
# TINYGRAD   a checkout of tinygrad's repository, which has the tests; its package does not
# TESTS      an expression of pytest's -k, to run some tests only
#
# tinygrad compiles for its host with `clang`.

set -euo pipefail
if [ $# -eq 0 ]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")/.." && pwd)
broadloom=${BROADLOOM:-$here/target/release/broadloom}
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
# Kernels that are kept belong to this run.
export BROADLOOM_CACHE=${BROADLOOM_CACHE:-$folder/cache}
export TRITON_CACHE_DIR=$folder/triton-cache CACHEDB=$folder/tinygrad.db
failed=0

environment() { # NAME PACKAGES…
    [ -x "$folder/venv-$1/bin/python" ] && return
    python3 -m venv "$folder/venv-$1"
    "$folder/venv-$1/bin/python" -m pip install -q "${@:2}"
}

run() { # ENVIRONMENT LOG ARGUMENTS…
    local log=$folder/$2.log
    echo "$2: $log" >&2
    (cd "$folder" && "$broadloom" exec -- "$folder/venv-$1/bin/python" "${@:3}") > "$log" 2>&1 || failed=1
    tail -n 1 "$log"
}

suite() { # ENVIRONMENT LOG ARGUMENTS…
    run "$1" "$2" -m pytest -q --timeout 600 -p no:cacheprovider -W ignore --tb=short -rfEs -k "${TESTS:-}" \
        "${@:3}"
}

numba_suite() { # NAME
    # Later versions of Numba and of cuda-bindings do not go with this numba-cuda (docs/CUDA_CLIENTS.md).
    environment numba 'numba-cuda[cu13]==0.30.4' numba==0.67.0 cuda-bindings==13.2.0 \
        pytest pytest-timeout filecheck psutil cffi ml_dtypes
    # Tests start processes that import modules by their names under `numba.cuda`, so pytest does too.
    # The fixture is in numba-cuda's repository and not in its package.
    mkdir -p "$folder/plugin"
    cat > "$folder/plugin/numba_names.py" <<'END'
import importlib

import pytest


class Named(pytest.Module):
    def _getobj(self):
        parts = self.path.with_suffix("").parts
        return importlib.import_module(".".join(parts[parts.index("numba_cuda") + 1 :]))


def pytest_pycollect_makemodule(module_path, parent):
    if "numba_cuda" in module_path.parts:
        return Named.from_parent(parent, path=module_path)


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
END
    PYTHONPATH=$folder/plugin \
        suite numba "$1" -p numba_names --import-mode=importlib --pyargs "numba.cuda.tests.$1"
}

cudadrv() { numba_suite cudadrv; }
cudapy() { numba_suite cudapy; }
numba() { cudadrv && cudapy; }

torch() {
    environment torch torch==2.15.0 llvmlite numpy pytest pytest-timeout hypothesis
}

tinygrad() {
    torch
    DEV=CUDA:PTX PYTHONPATH=$TINYGRAD suite torch tinygrad "$TINYGRAD/test/backend/test_ops.py"
}

triton() {
    torch
    run torch triton "$here/examples/triton_kernels.py"
}

# llvmlite and Triton hold LLVMs of other versions than Broadloom's; `torch.compile` imports Triton.
llvm() {
    torch
    run torch llvm "$here/examples/other_llvm.py"
}

[ $# -gt 0 ] || set -- triton llvm numba tinygrad
for client in "$@"; do
    case $client in
        triton | llvm | numba | cudadrv | cudapy | tinygrad) "$client" ;;
        *)
            echo "$client: no such client; there are triton, llvm, numba, cudadrv, cudapy and tinygrad" >&2
            exit 2
            ;;
    esac
done
exit $failed
