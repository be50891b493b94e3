"""Broadloom: lazy arrays that run fused on all cores or on a GPU.

>>> import broadloom as bl
>>> a = bl.asarray([1.0, 2.0, 3.0])
>>> (a * 2 + 1).sum()
Array(15.)

The names are those of the array API standard 2025.12. The guide is `docs/PYTHON.md`.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from . import _array, _core, _watching
from . import _operators  # noqa: F401  (gives arrays their operators)
from . import effects, fft, linalg, random
from ._array import Array
from ._creation import (
    arange, asarray, astype, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones, ones_like, tril,
    triu, zeros, zeros_like,
)
from ._devices import Device, default_device, device, devices
from ._dtypes import (
    bool, can_cast, complex64, complex128, finfo, float16, float32, float64, iinfo, int8, int16, int32, int64, isdtype, result_type, uint8, uint16,
    uint32, uint64,
)
from ._elementwise import (
    abs, acos, acosh, add, angle, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, clip, conj, copysign, cos, cosh, divide, equal, erf, exp, expm1, floor, floor_divide,
    greater, greater_equal, hypot, imag, isfinite, isinf, isnan, less, less_equal, log, log1p, log2, log10, logaddexp,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative, nextafter, not_equal, positive, pow,
    real, reciprocal, remainder, round, sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc, where,
)
from ._indexing import take, take_along_axis
from ._info import __array_namespace_info__
from ._kernels import Kernel, kernel
from ._manipulation import (
    broadcast_arrays, broadcast_shapes, broadcast_to, concat, diff, expand_dims, flip, matrix_transpose, moveaxis,
    permute_dims, repeat, reshape, roll, squeeze, stack, tile, unstack,
)
from ._reductions import (
    all, any, argmax, argmin, argsort, count_nonzero, cumulative_prod, cumulative_sum, max, mean, min, prod, sort, std, sum, var,
)
from ._search import isin, nonzero, searchsorted, unique_all, unique_counts, unique_inverse, unique_values
from ._batch import vmap
from ._einsum import einsum
from ._files import load, save, savez, savez_compressed
from ._functions import associative_scan, elementwise, reduce, stencil
from ._nesl import load_ipython_extension, nesl
from ._ragged import Ragged, concatenate_ragged, group_by, join, ragged, unflatten
from ._rearrange import (
    allclose, append, apply_along_axis, argpartition, argwhere, array_equal, array_split, atleast_1d, atleast_2d, choose,
    column_stack, compress, delete, diag, extract, flatnonzero, fliplr, flipud, fromfunction, hstack, indices, inner, insert,
    isclose, ix_, kron, lexsort, pad, partition, put_along_axis, ravel, ravel_multi_index, resize, rot90, select, split, swapaxes,
    topk, tri, tril_indices, triu_indices, unravel_index, vstack,
)
from ._signal import convolve, correlate, ediff1d, gradient, interp, polyval, sinc, trapezoid, unwrap, vander
from ._statistics import (
    average, bincount, corrcoef, cov, digitize, histogram, histogram2d, histogram_bin_edges, histogramdd, median, nan_to_num,
    nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmedian, nanmin, nanpercentile, nanprod, nanquantile, nanstd,
    nansum, nanvar, percentile, ptp, quantile,
)
from ._transform import cond, fori_loop, jit, scan, switch, while_loop
from ._streams import Stream, stream
from ._watching import Finding, checked, profile
from .effects import apply as effect
from .linalg import matmul, tensordot, vecdot

newaxis = None

_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = "2025.12"
__version__ = "0.1.0"


def evaluate(*arrays) -> None:
    """Starts to compute arrays in one plan, and does not wait.

    Computing them together shares passes over memory.
    """
    if arrays:
        _core.evaluate([array._node for array in arrays])
        if _watching.CHECKERS:
            _watching.note_work()


def explain(*arrays) -> str:
    """Returns the plan that would compute arrays together. They are not computed."""
    return _core.explain([array._node for array in arrays])


def synchronize(*arrays) -> None:
    """Computes arrays and waits until they are in memory."""
    evaluate(*arrays)
    for array in arrays:
        _core.synchronise(array._node)


_INSTEAD = {
    "array": "asarray", "concatenate": "concat", "transpose": "permute_dims", "power": "pow", "arctan2": "atan2",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "cumsum": "cumulative_sum", "cumprod": "cumulative_prod", "unique": "unique_values", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "absolute": "abs", "mod": "remainder",
    "true_divide": "divide", "dot": "matmul", "conjugate": "conj", "fabs": "abs", "amax": "max", "amin": "min", "product": "prod",
    "rint": "round", "trapz": "trapezoid", "dstack": "concat", "asanyarray": "asarray", "ascontiguousarray": "asarray",
    "vectorize": "elementwise", "frompyfunc": "elementwise",
}


def __getattr__(name):
    hint = f"; use `{_INSTEAD[name]}`" if name in _INSTEAD else ""
    raise AttributeError(f"module `broadloom` has no `{name}`{hint}")


def __dir__():
    return [name for name in globals() if not name.startswith("_")] + ["__array_namespace_info__", "__array_api_version__"]
