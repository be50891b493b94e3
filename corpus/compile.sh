#!/bin/sh
# Compiles the kernels of corpus/cuda to PTX in corpus/ptx, in four variants each:
#
#   NAME.sm75.ptx    NAME.sm90.ptx      optimised, with line information
#   NAME.sm75.g.ptx  NAME.sm90.g.ptx    -G: for the debugger, not optimised
#
# Usage: corpus/compile.sh [NAME ...]       all kernels when none is named
#
# A source may ask for options of its own with a line that starts with "// nvcc: ".
#
# nvcc comes from $NVCC or the PATH; ptxas, which proves that every file assembles, from $PTXAS or nvcc's toolkit.
# The committed PTX is all that the tests need: this script runs only when a kernel changes.
#
# PTX and its debug sections name files and directories. So that nothing depends on where the repository and the toolkit
# are, the sources are compiled in the fixed directory /tmp/broadloom, which also holds a link to the toolkit, and .file
# directives are rewritten to corpus/cuda/NAME.cu, toolkit/HEADER and system/HEADER.
set -eu

corpus=$(cd "$(dirname "$0")" && pwd)
nvcc=${NVCC:-nvcc}
work=/tmp/broadloom

rm -rf "$work"
mkdir -p "$work" "$corpus/ptx"
trap 'rm -rf "$work"' EXIT
cp "$corpus"/cuda/*.cu "$work"

probe=$(ls "$work"/*.cu | head -n 1)
top=$("$nvcc" --dryrun -ptx "$probe" 2>&1 | sed -n 's/^#\$ TOP=//p')
ln -s "$(cd "$top" && pwd)" "$work/toolkit"
ptxas=${PTXAS:-$work/toolkit/bin/ptxas}

compile() {
    name=$1 arch=$2 variant=$3
    shift 3
    out=$corpus/ptx/$name.$variant.ptx
    # shellcheck disable=SC2046
    (cd "$work" && /tmp/broadloom/toolkit/bin/nvcc -ptx -std=c++17 -arch="compute_$arch" "$@" \
        $(sed -n 's,^// nvcc: ,,p' "$name.cu") "$name.cu" -o "$name.ptx")
    sed -e '/^\t\.file\t/s,"/tmp/broadloom/toolkit/bin/\.\./include/,"toolkit/,' \
        -e '/^\t\.file\t/s,"/usr/\(include\|lib/gcc\)/,"system/,' \
        -e "/^\t\.file\t/s,\"/tmp/broadloom/$name.cu\",\"corpus/cuda/$name.cu\"," "$work/$name.ptx" >"$out"
    case $variant in
    *.g) "$ptxas" -arch="sm_$arch" -g -o "$work/$name.cubin" "$out" ;;
    *) "$ptxas" -arch="sm_$arch" -lineinfo -o "$work/$name.cubin" "$out" ;;
    esac
    if grep -n "^[[:space:]]*\.file.*\"/" "$out"; then
        echo "$out: a .file directive still holds an absolute path" >&2
        exit 1
    fi
}

if [ $# -eq 0 ]; then
    set -- $(cd "$corpus/cuda" && ls ./*.cu | sed -e 's,^\./,,' -e 's,\.cu$,,')
fi
for name in "$@"; do
    echo "$name"
    for arch in 75 90; do
        compile "$name" "$arch" "sm$arch" -lineinfo
        compile "$name" "$arch" "sm$arch.g" -G
    done
done
