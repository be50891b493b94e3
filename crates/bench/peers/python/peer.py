"""A peer in Python: the loop that obeys whoever started it, and the inputs.

Without arguments it lists the libraries that are there, a line for each: its name, its version, what it has benchmarks for.
With a library, a benchmark and a size it answers the line "run N" with the nanoseconds that N repetitions took, and the line
"sum" with the checksum of its results, as peers in C++ do. A benchmark of a library is a function from inputs to a function
that computes the result; what is before it, as the conversion of inputs, is not timed. A library that returns before its
device is done has a function `wait`.
"""
import importlib
import importlib.metadata
import os
import sys
import time

import numpy as np

import programs

LIBRARIES = ["awkward", "numpy", "numba", "jax", "torch", "halide", "halide_auto", "opencv"]
THREADS = len(os.sched_getaffinity(0))


def hashed(index, seed):
    x = index.astype(np.uint32) * np.uint32(0x9E3779B1) + np.uint32(seed * 0x85EBCA77 & 0xFFFFFFFF)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    return x ^ x >> np.uint32(16)


def numbers(count, seed):
    return hashed(np.arange(count, dtype=np.uint32), seed)


def units(count, seed, low=0.0, high=1.0):
    unit = (numbers(count, seed) >> np.uint32(8)).astype(np.float32) * np.float32(1 / 16777216)
    return np.float32(low) + np.float32(high - low) * unit


def image(n):
    return units(n * n, 1).reshape(n, n)


def planes(count, width, height):
    return units(count * width * height, 1).reshape(count, height, width)


def portrait(count):
    return lambda n: (planes(count, n, n * 5 // 3),)


def ragged(count, most):
    """Lengths of rows: nine of ten have entries, up to `most`, and twice as many with a chance of 0.354, and so on."""
    rows = np.arange(count, dtype=np.uint32)
    most = np.full(count, most, np.int64)
    going = np.ones(count, bool)
    for k in range(10):
        going &= hashed(rows, 2 + k) >> np.uint32(8) < 5931642
        most[going] *= 2
    lengths = 1 + (hashed(rows, 12) >> np.uint32(8)).astype(np.int64) % most
    lengths[(hashed(rows, 1) >> np.uint32(8)) % 10 == 0] = 0
    return lengths


def segments(n):
    offsets = np.concatenate([[0], np.cumsum(ragged(n, 10))])
    return units(offsets[-1], 14), offsets


def lists(n, most):
    offsets = np.concatenate([[0], np.cumsum(ragged(n, most))])
    return units(offsets[-1], 14), offsets


def stereo_pair(n):
    """Whole numbers up to 255: all sums are exact."""
    right = (numbers(n * n, 1) >> np.uint32(24)).astype(np.float32).reshape(n, n)
    y, x = np.mgrid[0:n, 0:n]
    from_x = np.clip(x - (y // 32 * 5 + x // 32 * 3) % 32, 0, n - 1)
    noise = (numbers(n * n, 2) >> np.uint32(30)).astype(np.float32).reshape(n, n)
    return right[y, from_x] + noise, right


PROGRAMS = programs.inputs(numbers, units)
INPUTS = {
    "sum_abs": lambda n: (units(n, 1, -1, 1),),
    "dot": lambda n: (units(n, 1), units(n, 2)),
    "matrix_vector": lambda n: (image(n), units(n, 2)),
    "matrix_product": lambda n: (units(n * n, 1, -0.5, 0.5).reshape(n, n), units(n * n, 2, -0.5, 0.5).reshape(n, n)),
    "black_scholes": lambda n: (units(n, 1, 5, 30), units(n, 2, 1, 100), units(n, 3, 0.25, 10)),
    "scan": lambda n: (numbers(n, 1) >> np.uint32(24),),
    "segmented_sum": segments,
    "sort": lambda n: (numbers(n, 1).view(np.int32),),
    "sort_rows": lambda n: (units(n * 100, 1).reshape(n, 100),),
    "histogram": lambda n: ((numbers(n, 1) >> np.uint32(24)).astype(np.uint8),),
    "pack": lambda n: (units(n, 1),),
    "life": lambda n: ((image(n) < 0.35).astype(np.float32),),
    "convolution": lambda n: (image(n),),
    "rotation": lambda n: (units(3 * n * n, 1).reshape(3, n, n),),
    "demosaic": lambda n: (image(n),),
    "corner": lambda n: (image(n),),
    "stereo": stereo_pair,
    "degrain": lambda n: (planes(3, n, n * 1545 // 2063),),
    "diffusion": lambda n: (planes(3, n, n * 3 // 4),),
    "separable": lambda n: (image(n),),
    "bilateral_grid": portrait(1),
    "local_laplacian": portrait(3),
    "camera": portrait(1),
    "nlmeans": portrait(3),
    "unsharp": portrait(3),
    "gaussian": portrait(3),
    "median": portrait(3),
    "resize": portrait(3),
    "clahe": portrait(1),
    "filter_sums": lambda n: lists(n, 5),
    "list_argmin": lambda n: lists(n, 2),
    "list_pairs": lambda n: lists(n, 5),
    "list_sort": lambda n: lists(n, 5),
    **PROGRAMS,
}


def checksum(results):
    """The sum of magnitudes, each times 1 to 7 by its place."""
    results = results if isinstance(results, (tuple, list)) else [results]
    total, first = 0.0, 0
    for result in results:
        values = np.asarray(result.cpu() if hasattr(result, "cpu") else result).ravel()
        for start in range(0, values.size, 1 << 22):
            part = np.abs(values[start : start + (1 << 22)].astype(np.float64))
            total += float(part @ (1.0 + (first + start + np.arange(part.size)) % 7))
        first += values.size
    return total


def benchmarks(library):
    return importlib.import_module("by_" + library)


def version_of(library):
    # OpenCV comes under several names.
    if library == "opencv":
        return importlib.import_module("cv2").__version__
    return importlib.metadata.version(library.removesuffix("_auto"))


def list_libraries():
    for library in LIBRARIES:
        try:
            version = version_of(library)
            names = [name for name in INPUTS if hasattr(benchmarks(library), name)]
        except Exception:
            continue
        print(library, version, *names)


def obey(library, name, size):
    # Not every library keeps what it was given.
    inputs = INPUTS[name](size)
    run = getattr(benchmarks(library), name)(*inputs)
    wait = getattr(benchmarks(library), "wait", lambda result: None)
    result = None
    for line in sys.stdin:
        if line == "sum\n":
            # Programs number each result from its own start.
            apart = name in PROGRAMS and isinstance(result, tuple)
            print(repr(sum(map(checksum, result)) if apart else checksum(result)), flush=True)
        else:
            count = int(line.removeprefix("run "))
            start = time.perf_counter_ns()
            for _ in range(count):
                result = run()
            wait(result)
            print(time.perf_counter_ns() - start, flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        list_libraries()
    else:
        obey(sys.argv[1], sys.argv[2], int(sys.argv[3]))
