#!/bin/bash
# Compiles the programs of tests/cuda with nvcc: tests run what is made here, so that they need no nvcc. NVCC names another one.
#
# What is compiled lies in a folder of a fixed name while it is, since compilers write names of folders into programs.

set -euo pipefail
cd "$(dirname "$0")/../tests/cuda"
nvcc=${NVCC:-nvcc}
home=$(dirname "$(dirname "$(readlink -f "$($nvcc -dryrun x.cu 2>&1 | sed -n 's/^#\$ _HERE_=//p')/nvcc")")")
work=/tmp/broadloom-cuda-programs
rm -rf $work
mkdir -p $work bin
trap 'rm -rf $work' EXIT
cp ./*.cu ./*.h $work
# The linker asks for a name that installations of the runtime alone do not have.
ln -s "$(find "$home" -name 'libcudart.so.*' | head -1)" $work/libcudart.so
ln -s "$home" $work/cuda
nvcc=$work/cuda/bin/nvcc
for source in *.cu; do
    name=${source%.cu}
    flags=(-O2 -std=c++17 -lineinfo -cudart shared -gencode "arch=compute_75,code=compute_75" -L.)
    case $name in
        plugin) flags+=(-shared -Xcompiler -fPIC) ;;
        # NVIDIA's library for launches by kernels would be most of these.
        linked) flags+=(-rdc=true -cudadevrt none linked_part.cu) ;;
        launches | groups) flags+=(-rdc=true -cudadevrt none) ;;
        linked_part) continue ;;
    esac
    (cd $work && $nvcc "${flags[@]}" "$source" -o "$name" && strip --strip-all "$name")
    install -m 755 $work/"$name" bin/
done
ls -l bin
