#!/bin/bash
# Arrays and effects beside what a person would reach for: installs NumPy, Numba, JAX, PyTorch, Halide and OpenCV into a folder of their own, then runs the groups
# `arrays` and `effects` against them and C++. What cannot be installed is left out, and that is said. Arguments go to `broadloom bench`.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${BROADLOOM_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/broadloom/venv}
if [ ! -x "$folder/bin/python" ]; then
    python3 -m venv "$folder"
fi
for library in "numpy<2.4" numba jax halide torch opencv-python-headless; do
    name=${library%%<*}
    if ! "$folder/bin/python" -c "import importlib.metadata as m; m.version('$name')" 2>/dev/null; then
        echo "installing $name into $folder"
        install=("$folder/bin/pip" install --quiet --retries 1 "$library")
        # PyTorch for a CPU is not where the rest is, and a tenth of the size.
        { [ "$name" = torch ] && "${install[@]}" --index-url https://download.pytorch.org/whl/cpu; } ||
            "${install[@]}" || echo "SKIPPED: $name; it could not be installed." >&2
    fi
done

if [ $# = 0 ]; then
    set -- arrays effects
fi
target/release/broadloom bench "$@" --device cpu --python "$folder/bin/python"
