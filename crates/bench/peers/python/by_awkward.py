"""The benchmarks over ragged lists as people write them with Awkward Array."""
import awkward as ak
import numpy as np


def lists(values, offsets):
    return ak.Array(ak.contents.ListOffsetArray(ak.index.Index64(offsets), ak.contents.NumpyArray(values)))


def filter_sums(values, offsets):
    array = lists(values, offsets)
    return lambda: ak.sum(array[array > np.float32(0.5)], axis=1)


def list_argmin(values, offsets):
    array = lists(values, offsets)
    return lambda: ak.fill_none(ak.argmin(array, axis=1), -1)


def list_pairs(values, offsets):
    array = lists(values, offsets)

    def run():
        first, second = ak.unzip(ak.combinations(array, 2))
        return ak.sum(abs(first - second), axis=1)

    return run


def list_sort(values, offsets):
    array = lists(values, offsets)
    return lambda: ak.sort(array, axis=1).layout.content.data
