#!/bin/bash
# CUDA programs of PolyBench-ACC and Rodinia under `broadloom exec`, against their OpenMP versions: seconds of both, and what share ours are.
#
#     scripts/cuda-openmp.sh FOLDER [NAME…]
#
# FOLDER has the sources (src/polybench, src/rodinia), the CUDA programs as nvcc made them from those (bin/polybench, bin/rodinia), and gets the OpenMP versions
# (openmp/). Each program runs RUNS times (3), with as many threads as there are cores, and the least time counts. PolyBench's programs say how long the computation took; of
# Rodinia's the whole run is taken, with inputs of the same size for both. BROADLOOM names the command.

set -euo pipefail
folder=$(readlink -f "$1")
shift
broadloom=$(readlink -f "${BROADLOOM:-$(dirname "$0")/../target/release/broadloom}")
runs=${RUNS:-3}
threads=$(nproc)
export OMP_NUM_THREADS=$threads OMP_PROC_BIND=true
out=$folder/openmp
mkdir -p "$out"
flags=(-O3 -march=native -fopenmp -w -fcommon)
names=" $* "
wanted() { [ "$names" = "  " ] || [[ $names == *" $1 "* ]]; }

# The least of the numbers that a command prints, over several runs; nothing when it fails.
least() {
    local best="" number
    for _ in $(seq "$runs"); do
        number=$("$@" 2> /dev/null) || return 0
        best=$(awk -v a="$best" -v b="$number" 'BEGIN { print (a == "" || b < a) ? b : a }')
    done
    echo "$best"
}

# Seconds of a whole run in a folder.
whole() {
    local start end
    cd "$1"
    shift
    start=$(date +%s.%N)
    timeout 300 "$@" > /dev/null 2>&1 < /dev/null || return 1
    end=$(date +%s.%N)
    echo "$end - $start" | bc
}

openmp_time() { timeout 300 "$1" 2> /dev/null | grep -E '^[0-9.]+$' | tail -1; }
# The program goes on with a plain C version of the same, which nobody waits for here.
cuda_time() {
    local said pid
    said=$(mktemp)
    timeout 300 stdbuf -oL "$broadloom" exec -- "$1" > "$said" 2> /dev/null &
    pid=$!
    while kill -0 $pid 2> /dev/null && ! grep -A1 'GPU Time' "$said" | grep -qE '^[0-9.]+$'; do sleep 0.1; done
    kill $pid 2> /dev/null || true
    wait $pid 2> /dev/null || true
    sed -n '/GPU Time/{n;p;q}' "$said"
    rm -f "$said"
}

row() {
    if [ -n "$2" ] && [ -n "$3" ]; then
        echo "| $1 | $2 | $3 | $(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.2f", b / a }') |"
    else
        echo "| $1 | ${2:--} | ${3:--} | - |"
    fi
}

polybench() {
    local name=$1 source=$2 cuda=$folder/src/polybench/CUDA sizes=() header
    wanted "$name" || return 0
    header=$(find "$cuda" -name "$name.cuh" | head -1)
    # The sizes of the CUDA version are those of both.
    while read -r _ word value; do sizes+=("-D$word=$value"); done < <(sed -n '/ifdef STANDARD_DATASET/,/endif/{/define/p}' "$header" | sed 's/# *define/define/')
    local openmp=$folder/src/polybench/OpenMP/$source
    if [ ! -x "$out/$name" ]; then
        gcc "${flags[@]}" "${sizes[@]}" -DDATA_TYPE=float '-DDATA_PRINTF_MODIFIER="%f "' -DPOLYBENCH_TIME -I"$folder/src/polybench/OpenMP/utilities" \
            -I"$(dirname "$openmp")" "$openmp" "$folder/src/polybench/OpenMP/utilities/polybench.c" -lm -o "$out/$name" || true
    fi
    row "$name" "$(least openmp_time "$out/$name")" "$(least cuda_time "$folder/bin/polybench/$name")"
}

# NAME, the folder of the CUDA version and its arguments, the folder of the OpenMP version, its arguments, its sources.
rodinia() {
    local name=$1 folder_cuda=$folder/src/rodinia/cuda/$2 arguments_cuda=$3 folder_openmp=$folder/src/rodinia/openmp/$4 arguments=$5
    shift 5
    wanted "$name" || return 0
    local compiler=g++
    [[ "$*" == *.cpp* ]] || compiler=gcc
    if [ ! -x "$out/rodinia-$name" ]; then
        (cd "$folder_openmp" && $compiler "${flags[@]}" -DOPEN -DNUM_THREAD="$threads" "$@" -lm -o "$out/rodinia-$name" 2> /dev/null) || true
    fi
    # shellcheck disable=SC2086
    row "$name" "$(least whole "$folder_openmp" "$out/rodinia-$name" $arguments)" \
        "$(least whole "$folder_cuda" "$broadloom" exec -- "$folder/bin/rodinia/$name" $arguments_cuda)"
}

table() {
    echo "| program | OpenMP, s | Broadloom, s | ratio |"
    echo "| --- | --- | --- | --- |"
    local a=linear-algebra/kernels s=linear-algebra/solvers t=stencils
    polybench 2DConvolution $t/convolution-2d/convolution-2d.c
    polybench 2mm $a/2mm/2mm.c
    polybench 3DConvolution $t/convolution-3d/convolution-3d.c
    polybench 3mm $a/3mm/3mm.c
    polybench adi $t/adi/adi.c
    polybench atax $a/atax/atax.c
    polybench bicg $a/bicg/bicg.c
    polybench correlation datamining/correlation/correlation.c
    polybench covariance datamining/covariance/covariance.c
    polybench doitgen $a/doitgen/doitgen.c
    polybench fdtd2d $t/fdtd-2d/fdtd-2d.c
    polybench gemm $a/gemm/gemm.c
    polybench gemver $a/gemver/gemver.c
    polybench gesummv $a/gesummv/gesummv.c
    polybench gramschmidt $s/gramschmidt/gramschmidt.c
    polybench jacobi1D $t/jacobi-1d-imper/jacobi-1d-imper.c
    polybench jacobi2D $t/jacobi-2d-imper/jacobi-2d-imper.c
    polybench lu $s/lu/lu.c
    polybench mvt $a/mvt/mvt.c
    polybench syr2k $a/syr2k/syr2k.c
    polybench syrk $a/syrk/syrk.c
    rodinia backprop backprop 524288 backprop 524288 backprop.c backprop_kernel.c facetrain.c imagenet.c
    rodinia bfs bfs ../../data/bfs/graph65536.txt bfs "$threads ../../data/bfs/graph65536.txt" bfs.cpp
    rodinia hotspot hotspot "512 2 2000 ../../data/hotspot/temp_512 ../../data/hotspot/power_512 /dev/null" \
        hotspot "512 512 2000 $threads ../../data/hotspot/temp_512 ../../data/hotspot/power_512 /dev/null" hotspot_openmp.cpp
    rodinia hotspot3D hotspot3D "64 8 10000 ../../data/hotspot3D/power_64x8 ../../data/hotspot3D/temp_64x8 /dev/null" \
        hotspot3D "64 8 10000 ../../data/hotspot3D/power_64x8 ../../data/hotspot3D/temp_64x8 /dev/null" 3D.c
    rodinia lavaMD lavaMD "-boxes1d 10" lavaMD "-cores $threads -boxes1d 10" main.c kernel/kernel_cpu.c util/timer/timer.c util/num/num.c
    rodinia lud lud/cuda "-s 2048" lud/omp "-n $threads -s 2048" -I ../common lud.c lud_omp.c ../common/common.c
    rodinia nw nw "4096 10" nw "4096 10 $threads" needle.cpp
    rodinia particlefilter_float particlefilter "-x 128 -y 128 -z 10 -np 100000" particlefilter "-x 128 -y 128 -z 10 -np 100000" ex_particle_OPENMP_seq.c
    rodinia pathfinder pathfinder "100000 1000 20" pathfinder "100000 1000" pathfinder.cpp
    rodinia streamcluster streamcluster "10 20 256 16384 16384 1000 none /dev/null 1" streamcluster \
        "10 20 256 16384 16384 1000 none /dev/null $threads" streamcluster_omp.cpp
}

table | tee "$out/table.md"
awk -F'|' '$5 + 0 > 0 { sum += log($5); count++ } END { if (count) printf "geometric mean of %d: %.2f\n", count, exp(sum / count) }' "$out/table.md"
