"""Functions that combine elements along axes."""

from __future__ import annotations

from . import _core, _dtypes
from ._array import Array, axes_of, axis_of, cast, like, made, permuted, reshaped
from ._dtypes import is_float
from ._elementwise import abs as absolute, isnan, multiply, not_equal, sqrt, subtract, where


def _kept(result, x, axes, keepdims) -> Array:
    shape = tuple(1 if at in axes else extent for at, extent in enumerate(x.shape) if keepdims or at not in axes)
    result._shape_known = tuple(extent for at, extent in enumerate(x.shape) if at not in axes)
    return reshaped(result, shape)


def _reduced(x, combine, axis, keepdims) -> Array:
    axes = axes_of(axis, x.ndim)
    return _kept(like(_core.reduce(x._node, combine, axes), x), x, axes, keepdims)


def _wide(x, dtype) -> Array:
    """Converts to the type of a sum: small integers are summed as integers of 64 bits."""
    if dtype is not None:
        return cast(x, _dtypes.checked(dtype))
    kind = x.dtype.kind
    return cast(x, {"b": _dtypes.int64, "i": _dtypes.int64, "u": _dtypes.uint64}.get(kind, x.dtype))


def sum(x, /, *, axis=None, dtype=None, keepdims=False) -> Array:
    """Sums elements along axes. Integers are summed with 64 bits.

    >>> bl.sum(bl.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6])
    """
    x = _wide(x, dtype)
    if x.dtype.kind == "b":
        return any(x, axis=axis, keepdims=keepdims)
    return _reduced(x, "sum", axis, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False) -> Array:
    """Multiplies elements along axes."""
    x = _wide(x, dtype)
    if x.dtype.kind == "b":
        return all(x, axis=axis, keepdims=keepdims)
    return _reduced(x, "product", axis, keepdims)


def _ordered(name, x) -> None:
    """Refuses complex numbers, which have no order."""
    if x.dtype.kind == "c":
        raise TypeError(f"`{name}` of complex numbers, which have no order")


def _extreme(x, combine, axis, keepdims) -> Array:
    _ordered(combine, x)
    if x.dtype.kind == "b":
        return _reduced(x, "any" if combine == "max" else "all", axis, keepdims)
    axes = axes_of(axis, x.ndim)
    if 0 in [x.shape[at] for at in axes]:
        raise ValueError(f"`{combine}` of no elements: the array has shape {x.shape}")
    best = _reduced(x, combine, axis, keepdims)
    if not is_float(x.dtype):
        return best
    return where(any(isnan(x), axis=axis, keepdims=keepdims), float("nan"), best)


def max(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the maximum along axes; NaN if there is a NaN."""
    return _extreme(x, "max", axis, keepdims)


def min(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the minimum along axes; NaN if there is a NaN."""
    return _extreme(x, "min", axis, keepdims)


def _count(x, axis) -> int:
    count = 1
    for at in axes_of(axis, x.ndim):
        count *= x.shape[at]
    return count


def _floating(x) -> Array:
    return x if x.dtype.kind in "fc" else cast(x, _dtypes.DEFAULT_FLOAT)


def mean(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the mean along axes. Integers are converted to `float64`."""
    x = _floating(x)
    wide = cast(x, _dtypes.float32) if x.dtype == _dtypes.float16 else x
    total = sum(wide, axis=axis, keepdims=keepdims)
    return cast(total / float(_count(x, axis)), x.dtype)


def var(x, /, *, axis=None, correction=0.0, keepdims=False) -> Array:
    """Returns the variance along axes."""
    x = _floating(x)
    off = subtract(x, mean(x, axis=axis, keepdims=True))
    off = absolute(off) if off.dtype.kind == "c" else off
    count = float(_count(x, axis)) - correction
    squares = sum(multiply(off, off), axis=axis, keepdims=keepdims)
    return squares / (count if count > 0 else 0.0)


def std(x, /, *, axis=None, correction=0.0, keepdims=False) -> Array:
    """Returns the standard deviation along axes."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _truth(x) -> Array:
    return x if x.dtype.kind == "b" else not_equal(x, 0)


def all(x, /, *, axis=None, keepdims=False) -> Array:
    """Tests if all elements along axes are true."""
    return _reduced(_truth(x), "all", axis, keepdims)


def any(x, /, *, axis=None, keepdims=False) -> Array:
    """Tests if an element along axes is true."""
    return _reduced(_truth(x), "any", axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False) -> Array:
    """Counts the elements along axes that are not 0."""
    return sum(_truth(x), axis=axis, keepdims=keepdims)


def _place(x, greatest, axis, keepdims) -> Array:
    _ordered("argmax" if greatest else "argmin", x)
    rank = x.ndim
    line = reshaped(x, (x.size,)) if axis is None else x
    at = 0 if axis is None else axis_of(axis, rank)
    if x.ndim and line.shape[at] == 0:
        raise ValueError(f"the place of the greatest or least of no elements: the array has shape {x.shape}")
    if line.dtype.kind == "b":
        line = cast(line, _dtypes.uint8)

    def found(array, largest):
        return made(_core.extreme(array._node, largest, at), _dtypes.int64, x.device)

    result = found(line, greatest)
    if is_float(x.dtype):
        # NaN wins, as in NumPy.
        nan = isnan(line)
        result = where(any(nan, axis=at), found(cast(nan, _dtypes.uint8), True), result)
    shape = x.shape if axis is not None else (1,) * rank
    if not keepdims:
        return result
    return reshaped(result, tuple(1 if axis is None or place == at else extent for place, extent in enumerate(shape)))


def argmax(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the index of the maximum along an axis, or of all elements; the first of equal ones."""
    return _place(x, True, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the index of the minimum along an axis, or of all elements; the first of equal ones."""
    return _place(x, False, axis, keepdims)


def _scanned(x, combine, axis, dtype, include_initial, initial) -> Array:
    x = _wide(x, dtype)
    if x.ndim == 0:
        raise ValueError("a scan of an array without axes")
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"a scan of an array of shape {x.shape} needs an axis")
        axis = 0
    axis = axis_of(axis, x.ndim)
    result = like(_core.scan(x._node, combine, axis, True), x, x.shape) if x.size else x
    if not include_initial:
        return result
    from ._creation import full
    from ._manipulation import concat

    first = full(x.shape[:axis] + (1,) + x.shape[axis + 1 :], initial, dtype=x.dtype, device=x.device)
    return concat([first, result], axis=axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False) -> Array:
    """Returns the sums of all elements up to each along an axis."""
    return _scanned(x, "sum", axis, dtype, include_initial, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False) -> Array:
    """Returns the products of all elements up to each along an axis."""
    return _scanned(x, "product", axis, dtype, include_initial, 1)


def _rows(x, axis):
    """Returns an axis as the last one, its elements as one line, and the number of rows."""
    order = (*(at for at in range(x.ndim) if at != axis), axis)
    turned = permuted(x, order)
    rows = x.size // x.shape[axis] if x.shape[axis] else 0
    return turned, order, reshaped(turned, (x.size,)), rows


def _sorted(x, axis, descending, places) -> Array:
    if x.ndim == 0:
        raise ValueError("a sort of an array without axes")
    axis = axis_of(axis, x.ndim)
    if x.size == 0:
        return cast(x, _dtypes.int64) if places else x
    turned, order, line, rows = _rows(x, axis)
    key = line
    if line.dtype.kind == "b":
        key = cast(line, _dtypes.uint8)
    elif is_float(line.dtype) and places:
        # -0 and 0 are equal in the standard; the engine sorts -0 first.
        key = where(line == 0, 0.0, line)
    values, origins = _core.sort_rows(key._node, rows, descending)
    dtype = _dtypes.int64 if places else key.dtype
    result = reshaped(made(origins if places else values, dtype, x.device, (x.size,)), turned.shape)
    back = tuple(order.index(at) for at in range(x.ndim))
    return cast(permuted(result, back), dtype if places else x.dtype)


def sort(x, /, *, axis=-1, descending=False, stable=True) -> Array:
    """Sorts along an axis. NaN comes last."""
    return _sorted(x, axis, descending, False)


def argsort(x, /, *, axis=-1, descending=False, stable=True) -> Array:
    """Returns the indices that sort along an axis. The sort is stable."""
    return _sorted(x, axis, descending, True)


