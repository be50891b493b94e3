#!/bin/sh
# Builds the programs of this folder into `bin` with `nvcc`, as `docs/CUDA_PROGRAMS.md` says: the shared runtime, PTX for compute_75.
# `NVCC` is the compiler, and may have options behind it. The tests run what lies in `bin`; they need no `nvcc`.
set -eu
cd "$(dirname "$0")"
mkdir -p bin
build() {
    name=$1
    shift
    ${NVCC:-nvcc} -std=c++17 -O2 -cudart shared -gencode arch=compute_75,code=compute_75 -Xlinker -s -o "bin/$name" "$@"
}
for name in streams grid matrix image says; do
    build "$name" "$name.cu"
done
# NVIDIA's library for launches by kernels would be most of these two.
build linked -rdc=true -cudadevrt none linked.cu linked_part.cu
build launches -rdc=true -cudadevrt none launches.cu
