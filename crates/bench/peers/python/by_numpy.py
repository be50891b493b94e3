"""The benchmarks as people write them with NumPy."""
import numpy as np

import whole_arrays


class xp:
    abs, exp, log, sqrt, where, floor, clip = np.abs, np.exp, np.log, np.sqrt, np.where, np.floor, np.clip
    zero = np.float32(0)
    pad = staticmethod(lambda x, by, how: np.pad(x, by, mode={"mirror": "reflect"}.get(how, how)))
    as_float = staticmethod(lambda x: x.astype(np.float32))
    as_int = staticmethod(lambda x: x.astype(np.int32))
    int_range = staticmethod(lambda n: np.arange(n, dtype=np.int32))
    float_range = staticmethod(lambda n: np.arange(n, dtype=np.float32))


def whole(name):
    return lambda *inputs: lambda: getattr(whole_arrays, name)(xp, *inputs)


for name in ["black_scholes", "life", "convolution", "rotation", "demosaic", "corner", "stereo"]:
    globals()[name] = whole(name)


def sum_abs(x):
    return lambda: np.abs(x).sum()


def dot(x, y):
    return lambda: x @ y


matrix_vector = matrix_product = dot


def scan(x):
    return lambda: np.cumsum(x, dtype=np.uint32)


def segmented_sum(x, offsets):
    filled = offsets[1:] > offsets[:-1]

    def run():
        sums = np.zeros(len(offsets) - 1, np.float32)
        sums[filled] = np.add.reduceat(x, offsets[:-1][filled])
        return sums

    return run


def sort(x):
    return lambda: np.sort(x)


def sort_rows(x):
    return lambda: np.sort(x, axis=1)


def histogram(x):
    return lambda: np.bincount(x, minlength=256)


def pack(x):
    return lambda: x[x > 0.5]
