#!/bin/sh
# Compiles the kernels of this folder that are written in CUDA C++ to PTX. The PTX is committed: this runs only when a kernel changes.
# nvcc comes from $NVCC or the PATH.
set -eu
cd "$(dirname "$0")"
for source in *.cu; do
    "${NVCC:-nvcc}" -ptx -O3 -std=c++17 -arch=compute_75 "$source" -o "${source%.cu}.ptx"
done
