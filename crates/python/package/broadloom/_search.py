"""Functions that find elements and make sets of them."""

from __future__ import annotations

from typing import NamedTuple

from . import _core, _dtypes
from ._array import Array, cast, like, made, reshaped, scalar
from ._creation import asarray, full, positions
from ._dtypes import is_float
from ._elementwise import add, bitwise_and, equal, floor_divide, greater_equal, less, less_equal, logical_not, not_equal, where
from ._indexing import taken
from ._manipulation import concat
from ._reductions import any, argsort, cumulative_sum


def nonzero(x, /) -> tuple[Array, ...]:
    """Returns the indices of the elements that are not 0, one array for each axis."""
    if x.ndim == 0:
        raise ValueError("`nonzero` of an array without axes")
    mask = x if x.dtype.kind == "b" else not_equal(x, 0)
    line = reshaped(mask, (mask.size,))
    places = [reshaped(positions(x.shape, axis, x.device), (x.size,)) for axis in range(x.ndim)]
    return tuple(made(_core.pack(place._node, line._node), _dtypes.int64, x.device) for place in places)


def searchsorted(x1, x2, /, *, side="left", sorter=None) -> Array:
    """Returns where elements of x2 would be inserted into the sorted line x1."""
    if side not in ("left", "right"):
        raise ValueError(f"`side` is \"left\" or \"right\", not {side!r}")
    if x1.ndim != 1:
        raise ValueError(f"`searchsorted` in an array of shape {x1.shape}: one axis is needed")
    if not isinstance(x2, Array):
        x2 = asarray(x2, device=x1.device)
    dtype = _dtypes.promote(x1.dtype, x2.dtype)
    line, values = cast(x1, dtype), cast(x2, dtype)
    line = taken(line, sorter, 0) if sorter is not None else line
    shape, extent = values.shape, line.shape[0]
    low = full(shape, 0, dtype=_dtypes.int64, device=x1.device)
    if extent == 0 or values.size == 0:
        return low
    high = full(shape, extent, dtype=_dtypes.int64, device=x1.device)
    before = _before if side == "left" else _not_behind
    for _ in range(extent.bit_length()):
        middle = floor_divide(add(low, high), 2)
        at = like(_core.gather(line._node, [_line(middle)._node], "clamp"), line)
        is_before = bitwise_and(reshaped(before(at, _line(values)), shape), less(low, high))
        low, high = where(is_before, add(middle, 1), low), where(is_before, high, where(less(low, high), middle, high))
    return low


def _line(x) -> Array:
    return x if x.ndim else reshaped(x, (1,))


def _nan(x) -> Array:
    return not_equal(x, x)


def _before(at, value) -> Array:
    result = less(at, value)
    return where(_nan(value), logical_not(_nan(at)), result) if is_float(at.dtype) else result


def _not_behind(at, value) -> Array:
    result = less_equal(at, value)
    return where(_nan(value), True, result) if is_float(at.dtype) else result


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique_all(x, /) -> UniqueAll:
    """Returns the distinct elements in ascending order, where each first is, which each element is, and counts.

    Each NaN is distinct.
    """
    line = reshaped(x, (x.size,))
    none = full((0,), 0, dtype=_dtypes.int64, device=x.device)
    if x.size == 0:
        return UniqueAll(line, none, reshaped(none, x.shape), none)
    order = argsort(line)
    values = like(_core.gather(line._node, [order._node], None), line, line.shape)
    before = like(_core.affine(values._node, [(0, -1, 1)], (x.size,), "clamp"), values, line.shape)
    place = positions((x.size,), 0, x.device)
    starts = where(equal(place, 0), True, not_equal(values, before))
    number = cumulative_sum(cast(starts, _dtypes.int64)) - 1
    inverse = like(_core.scatter(none_like(number)._node, [order._node], number._node, None), number, line.shape)
    first = made(_core.pack(place._node, starts._node), _dtypes.int64, x.device)
    end = scalar(x.size, _dtypes.int64, x.device)
    ends = concat([first[1:], reshaped(end, (1,))])
    return UniqueAll(values[starts], order[starts], reshaped(inverse, x.shape), ends - first)


def none_like(x) -> Array:
    """Returns zeros with the shape of an array."""
    return full(x.shape, 0, dtype=x.dtype, device=x.device)


def unique_counts(x, /) -> UniqueCounts:
    """Returns the distinct elements in ascending order and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x, /) -> UniqueInverse:
    """Returns the distinct elements in ascending order, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x, /) -> Array:
    """Returns the distinct elements in ascending order."""
    return unique_all(x).values


def isin(x1, x2, /, *, invert=False) -> Array:
    """Tests which elements of x1 are among those of x2."""
    if not isinstance(x1, Array):
        x1 = asarray(x1, device=x2.device)
    if not isinstance(x2, Array):
        x2 = asarray(x2, device=x1.device)
    dtype = _dtypes.promote(x1.dtype, x2.dtype)
    x1, x2 = cast(x1, dtype), reshaped(cast(x2, dtype), (x2.size,))
    if x2.size == 0 or x1.size == 0:
        return full(x1.shape, invert, dtype=_dtypes.bool, device=x1.device)
    if x2.size <= 32:
        found = any(equal(reshaped(x1, (*x1.shape, 1)), x2), axis=-1) if x1.ndim < 8 else _among(x1, x2)
    else:
        found = _among(x1, x2)
    return logical_not(found) if invert else found


def _among(x1, x2) -> Array:
    order = argsort(x2)
    line = like(_core.gather(x2._node, [order._node], None), x2, x2.shape)
    place = searchsorted(line, x1)
    at = like(_core.gather(line._node, [_line(place)._node], "clamp"), line)
    return bitwise_and(equal(reshaped(at, x1.shape), x1), logical_not(greater_equal(place, x2.size)))


