#!/bin/sh
# Compiles examples/*.cu to PTX. The PTX is committed: this runs only when an example changes. nvcc comes from $NVCC or the PATH.
set -eu
cd "$(dirname "$0")/.."
for source in examples/*.cu; do
    out=${source%.cu}.ptx
    "${NVCC:-nvcc}" -ptx -arch=compute_75 -lineinfo "$source" -o "$out"
    # PTX names files by absolute paths: keep what is ours, and of the toolkit's headers their names.
    sed -i -e "/^\t\.file\t/s,\"$PWD/,\"," -e '/^\t\.file\t/s,"/.*/,"toolkit/,' "$out"
done
