"""Functions with NumPy's names that arrange, split, join and choose elements."""

from __future__ import annotations

import builtins
import math

import numpy as np

from . import _dtypes
from ._array import Array, axis_of, cast, permuted, reshaped, stretched, viewed
from ._creation import arange, asarray, full, positions, tril, zeros
from ._elementwise import add, multiply, where
from ._indexing import taken
from ._manipulation import concat, expand_dims, flip
from ._reductions import argsort, max, mean, min, sort
from ._search import nonzero


def _as_array(x) -> Array:
    return x if isinstance(x, Array) else asarray(x)


_RULES = {"edge": "clamp", "wrap": "wrap"}
_BY_INDEX = ("reflect", "symmetric")
_STATISTICS = {"maximum": max, "minimum": min, "mean": mean}
_MODES = ("constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "maximum", "mean", "median", "minimum", "empty")


def pad(x, pad_width, mode="constant", *, constant_values=0, stat_length=None, end_values=0, reflect_type="even") -> Array:
    """Extends an array before and after each axis, with all modes of NumPy.

    >>> bl.pad(bl.asarray([1, 2, 3]), (2, 1), "reflect")
    Array([3, 2, 1, 2, 3, 2])
    """
    x = _as_array(x)
    if mode not in _MODES:
        raise ValueError(f"`pad` with the mode {mode!r}; there is {', '.join(_MODES)}")
    if isinstance(pad_width, dict):
        width = [(0, 0)] * x.ndim
        for at, sides in pad_width.items():
            width[axis_of(at, x.ndim)] = (sides, sides) if isinstance(sides, int) else tuple(sides)
        pad_width = width
    try:
        sides = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    except ValueError:
        raise ValueError(f"`pad`: the widths {pad_width} for an array of {x.ndim} axes") from None
    if any(side != int(side) or side < 0 for pair in sides for side in pair):
        raise ValueError(f"`pad`: the widths {pad_width} are not all numbers from 0 on")
    shape = tuple(before + extent + after for (before, after), extent in zip(sides, x.shape))
    maps = [(at, -before, 1) for at, (before, _) in enumerate(sides)]
    constants = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2)) if x.ndim else np.zeros((0, 2))
    if mode == "empty" or mode == "constant" and constants.size and np.all(constants == constants.flat[0]):
        value = constants.flat[0].item() if mode == "constant" else 0
        value = int(value) if x.dtype.kind in "iu" else builtins.bool(value) if x.dtype.kind == "b" else value
        return viewed(x, maps, shape, value) if x.size else full(shape, value, dtype=x.dtype, device=x.device)
    if 0 in x.shape and shape != x.shape and mode not in ("constant", "linear_ramp"):
        raise ValueError(f"`pad` of an array of shape {x.shape} with the mode {mode!r}: there are no elements to repeat")
    if mode in _RULES:
        return viewed(x, maps, shape, _RULES[mode])
    for axis, (before, after) in enumerate(sides):
        if before or after:
            x = _padded_axis(x, axis, before, after, mode, constants, stat_length, end_values, reflect_type)
    return x


def _padded_axis(x, axis, before, after, mode, constants, stat_length, end_values, reflect_type) -> Array:
    extent = x.shape[axis]
    if mode in _BY_INDEX and reflect_type == "even":
        return taken(x, asarray(np.pad(np.arange(extent), (before, after), mode), device=x.device), axis)
    if mode in _BY_INDEX:
        return _odd(x, axis, before, after, mode)

    def block(count, value):
        shape = x.shape[:axis] + (count,) + x.shape[axis + 1 :]
        if isinstance(value, Array):
            return stretched(value, shape)
        return full(shape, value, dtype=x.dtype, device=x.device)

    if mode == "constant":
        low, high = (np.asarray(one).astype(x.dtype).item() for one in constants[axis])
        return concat([block(before, low), x, block(after, high)], axis=axis)
    if mode == "linear_ramp":
        ends = np.broadcast_to(np.asarray(end_values), (x.ndim, 2))[axis]
        return concat([_ramp(x, axis, before, ends[0], True), x, _ramp(x, axis, after, ends[1], False)], axis=axis)
    lengths = [extent, extent] if stat_length is None else np.broadcast_to(np.asarray(stat_length), (x.ndim, 2))[axis].tolist()
    whole = (slice(None),) * axis
    first, last = x[whole + (slice(0, lengths[0]),)], x[whole + (slice(builtins.max(0, extent - lengths[1]), None),)]

    def statistic(part):
        if mode == "median":
            from ._statistics import median

            found = median(part, axis=axis, keepdims=True)
        else:
            found = _STATISTICS[mode](part, axis=axis, keepdims=True)
        if x.dtype.kind in "iu" and found.dtype.kind == "f":
            from ._elementwise import round

            found = round(found)
        return cast(found, x.dtype)

    return concat([block(before, statistic(first)), x, block(after, statistic(last))], axis=axis)


def _ramp(x, axis, count, end, is_before) -> Array:
    """Returns numbers that rise from an end value to the edge of the array."""
    edge = x[(slice(None),) * axis + (slice(0, 1) if is_before else slice(-1, None),)]
    shape = tuple(count if at == axis else 1 for at in range(x.ndim))
    place = positions(shape, axis, x.device)
    part = place / float(count or 1) if is_before else (count - 1 - place) / float(count or 1)
    line = float(end) + (cast(edge, _dtypes.float64) - float(end)) * part
    if x.dtype.kind in "iu":
        from ._elementwise import floor, trunc

        line = floor(line) if float(end) < 0 else trunc(line)
    return cast(line, x.dtype)


def _odd(x, axis, before, after, mode) -> Array:
    """Reflects at a point: the elements outside are twice the edge less the reflected ones."""
    extent, whole = x.shape[axis], (slice(None),) * axis
    skip = 1 if mode == "reflect" else 0
    while before or after:
        reach = x.shape[axis] - skip
        if reach < 1:
            raise ValueError(f"`pad` by an odd reflection of an axis of extent {extent}")
        low, high = builtins.min(before, reach), builtins.min(after, reach)
        first, last = x[whole + (slice(0, 1),)], x[whole + (slice(-1, None),)]
        start = 2 * first - flip(x[whole + (slice(skip, skip + low),)], axis=axis)
        size = x.shape[axis]
        end = 2 * last - flip(x[whole + (slice(size - skip - high, size - skip),)], axis=axis)
        x = concat([start, x, end], axis=axis)
        before, after = before - low, after - high
    return x


def ravel(x, /) -> Array:
    """Returns the elements along one axis."""
    x = _as_array(x)
    return reshaped(x, (x.size,))


def swapaxes(x, axis1, axis2, /) -> Array:
    """Exchanges two axes."""
    order = list(range(x.ndim))
    one, other = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[other] = other, one
    return permuted(x, order)


def atleast_1d(x, /) -> Array:
    """Returns an array with at least one axis."""
    x = _as_array(x)
    return x if x.ndim else reshaped(x, (1,))


def atleast_2d(x, /) -> Array:
    """Returns an array with at least two axes; new ones come first."""
    x = _as_array(x)
    return x if x.ndim > 1 else reshaped(x, (1, x.size))


def hstack(arrays, /) -> Array:
    """Puts arrays beside each other: along the second axis, or the only one."""
    arrays = [atleast_1d(array) for array in arrays]
    return concat(arrays, axis=0 if arrays and arrays[0].ndim == 1 else 1)


def vstack(arrays, /) -> Array:
    """Puts arrays below each other, lines as rows."""
    return concat([atleast_2d(array) for array in arrays], axis=0)


def column_stack(arrays, /) -> Array:
    """Puts lines beside each other as columns."""
    arrays = [_as_array(array) for array in arrays]
    return concat([array if array.ndim > 1 else reshaped(array, (array.size, 1)) for array in arrays], axis=1)


def array_split(x, parts, /, *, axis=0) -> list[Array]:
    """Splits an array along an axis: into a number of parts, or at indices."""
    x = _as_array(x)
    axis = axis_of(axis, x.ndim)
    extent = x.shape[axis]
    if isinstance(parts, (int, np.integer)):
        if parts < 1:
            raise ValueError(f"a split into {parts} parts")
        each, more = divmod(extent, int(parts))
        cuts = np.cumsum([0] + [each + 1] * more + [each] * (int(parts) - more)).tolist()
    else:
        cuts = [0, *np.asarray(parts).tolist(), extent]
    whole = (slice(None),) * axis
    return [x[whole + (slice(start, stop),)] for start, stop in zip(cuts, cuts[1:])]


def split(x, parts, /, *, axis=0) -> list[Array]:
    """Splits an array along an axis into equal parts, or at indices."""
    if isinstance(parts, int) and _as_array(x).shape[axis] % parts:
        raise ValueError(f"`split`: an axis of extent {x.shape[axis]} has no {parts} equal parts; `array_split` makes unequal ones")
    return array_split(x, parts, axis=axis)


def rot90(x, k=1, /, *, axes=(0, 1)) -> Array:
    """Rotates by 90 degrees in the plane of two axes, `k` times."""
    one, other = (axis_of(axis, x.ndim) for axis in axes)
    if one == other:
        raise ValueError(f"`rot90` in the plane of the axes {axes}")
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(flip(x, axis=one), axis=other)
    turned = swapaxes(x, one, other)
    return flip(turned, axis=one) if k == 1 else flip(turned, axis=other)


def fliplr(x, /) -> Array:
    """Reverses the second axis."""
    return flip(x, axis=1)


def flipud(x, /) -> Array:
    """Reverses the first axis."""
    return flip(x, axis=0)


def diag(x, /, k=0) -> Array:
    """Returns the diagonal of a matrix, or the matrix that has a line as its diagonal."""
    x = _as_array(x)
    if x.ndim == 2:
        from .linalg import diagonal

        return diagonal(x, offset=k)
    if x.ndim != 1:
        raise ValueError(f"`diag` of an array of shape {x.shape}: a line or a matrix is needed")
    size = x.size + abs(k)
    shape = (size, size)
    rows, columns = positions(shape, 0, x.device), positions(shape, 1, x.device)
    shift = builtins.max(k, 0)
    line = viewed(x, [(1, -shift, 1)], shape, 0 if x.dtype.kind != "b" else False) if x.size else zeros(shape, dtype=x.dtype)
    return where(columns - rows == k, line, zeros(shape, dtype=x.dtype, device=x.device))


def tri(n, m=None, /, k=0, *, dtype=None, device=None) -> Array:
    """Makes a matrix with ones at and below a diagonal."""
    shape = (n, n if m is None else m)
    return tril(full(shape, 1, dtype=_dtypes.DEFAULT_FLOAT if dtype is None else dtype, device=device), k=k)


def _triangle(n, k, m, upper, device) -> tuple[Array, ...]:
    shape = (n, n if m is None else m)
    zeros_ = zeros(shape, dtype=_dtypes.int64, device=device)
    off = positions(shape, 1, zeros_.device) - positions(shape, 0, zeros_.device)
    return nonzero(off >= k if upper else off <= k)


def triu_indices(n, /, k=0, m=None, *, device=None) -> tuple[Array, ...]:
    """Returns the indices of the upper triangle of a matrix of `n` rows."""
    return _triangle(n, k, m, True, device)


def tril_indices(n, /, k=0, m=None, *, device=None) -> tuple[Array, ...]:
    """Returns the indices of the lower triangle of a matrix of `n` rows."""
    return _triangle(n, k, m, False, device)


def indices(dimensions, /, *, dtype=_dtypes.int64, device=None) -> Array:
    """Returns the index along each axis at each position of a grid."""
    from ._devices import device as opened
    from ._manipulation import stack

    target = opened(device)
    return stack([positions(tuple(dimensions), axis, target, _dtypes.checked(dtype)) for axis in range(len(dimensions))])


def fromfunction(function, shape, /, *, dtype=_dtypes.float64, device=None) -> Array:
    """Makes an array from a function of the indices of all positions."""
    from ._devices import device as opened

    target = opened(device)
    return function(*(cast(positions(tuple(shape), axis, target), _dtypes.checked(dtype)) for axis in range(len(shape))))


def kron(a, b, /) -> Array:
    """Returns the Kronecker product."""
    a, b = _as_array(a), _as_array(b)
    rank = builtins.max(a.ndim, b.ndim)
    shapes = [(1,) * (rank - x.ndim) + x.shape for x in (a, b)]
    left = reshaped(a, [extent for pair in zip(shapes[0], (1,) * rank) for extent in pair])
    right = reshaped(b, [extent for pair in zip((1,) * rank, shapes[1]) for extent in pair])
    return reshaped(multiply(left, right), tuple(one * other for one, other in zip(*shapes)))


def inner(a, b, /) -> Array:
    """Returns the sums of products along the last axes."""
    from .linalg import tensordot

    a, b = _as_array(a), _as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 1,)))


def argwhere(x, /) -> Array:
    """Returns the indices of the elements that are not 0, one row for each."""
    from ._manipulation import stack

    x = _as_array(x)
    if x.ndim == 0:
        return zeros((int(builtins.bool(x)), 0), dtype=_dtypes.int64, device=x.device)
    return stack(nonzero(x), axis=1)


def flatnonzero(x, /) -> Array:
    """Returns the indices of the elements that are not 0, of all elements as one line."""
    return nonzero(ravel(x))[0]


def compress(condition, x, /, *, axis=None) -> Array:
    """Takes the parts along an axis for which a condition is true."""
    x = _as_array(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim))
    return taken(x, nonzero(_as_array(condition))[0], axis)


def extract(condition, x, /) -> Array:
    """Returns the elements for which a condition is true."""
    return compress(ravel(_as_array(condition)), ravel(x))


def delete(x, index, /, *, axis=None) -> Array:
    """Returns an array without the parts at indices along an axis."""
    x = _as_array(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim))
    if isinstance(index, Array):
        index = np.asarray(index)
    kept = np.delete(np.arange(x.shape[axis]), index)
    return taken(x, asarray(kept, device=x.device), axis)


def insert(x, index, values, /, *, axis=None) -> Array:
    """Returns an array with values inserted before indices along an axis."""
    x = _as_array(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim))
    order = np.insert(np.arange(x.shape[axis]), np.asarray(index), -1)
    at = np.flatnonzero(order < 0)
    values = cast(_as_array(values), x.dtype)
    shape = x.shape[:axis] + (at.size,) + x.shape[axis + 1 :]
    if np.ndim(index) == 0 and values.ndim == x.ndim - 1 and values.ndim:
        values = expand_dims(values, axis)
    values = stretched(values, shape)
    # Places of the values in their order follow those of the array.
    where_from = order.copy()
    where_from[at] = x.shape[axis] + np.arange(at.size)
    return taken(concat([x, values], axis=axis), asarray(where_from, device=x.device), axis)


def append(x, values, /, *, axis=None) -> Array:
    """Returns an array with values behind it along an axis."""
    if axis is None:
        return concat([ravel(x), ravel(values)])
    return concat([_as_array(x), _as_array(values)], axis=axis)


def select(conditions, choices, /, default=0) -> Array:
    """Returns elements of the first choice whose condition is true, otherwise the default."""
    if len(conditions) != len(choices):
        raise ValueError(f"`select` of {len(conditions)} conditions and {len(choices)} choices")
    result = default
    for condition, choice in reversed(list(zip(conditions, choices))):
        result = where(condition, choice, result)
    return _as_array(result)


def choose(x, choices, /) -> Array:
    """Returns elements of several arrays; an array of numbers says of which one."""
    x = _as_array(x)
    result = _as_array(choices[0])
    for number in range(1, len(choices)):
        result = where(x == number, choices[number], result)
    return result


def lexsort(keys, /, *, axis=-1) -> Array:
    """Returns the indices that sort by several keys, of which the last is the most significant."""
    keys = [_as_array(key) for key in (keys if isinstance(keys, (tuple, list)) else tuple(keys))]
    from ._indexing import take_along_axis

    order = argsort(keys[0], axis=axis)
    for key in keys[1:]:
        moved = take_along_axis(key, order, axis=axis)
        order = take_along_axis(order, argsort(moved, axis=axis), axis=axis)
    return order


def partition(x, kth, /, *, axis=-1) -> Array:
    """Returns an array in which the element at `kth` is where a sort would put it. The elements are sorted."""
    x = ravel(x) if axis is None else _as_array(x)
    return sort(x, axis=-1 if axis is None else axis)


def argpartition(x, kth, /, *, axis=-1) -> Array:
    """Returns indices that put the element at `kth` where a sort would. They sort the elements."""
    x = ravel(x) if axis is None else _as_array(x)
    return argsort(x, axis=-1 if axis is None else axis)


def topk(x, k, /, *, axis=-1, largest=True) -> tuple[Array, Array]:
    """Returns the `k` greatest or least elements along an axis in order, and their indices."""
    from ._indexing import take_along_axis

    x = _as_array(x)
    axis = axis_of(axis, x.ndim)
    order = argsort(x, axis=axis, descending=largest)[(slice(None),) * axis + (slice(0, k),)]
    return take_along_axis(x, order, axis=axis), order


def ix_(*lines) -> tuple[Array, ...]:
    """Returns index arrays that choose the grid of several lines of indices."""
    lines = [_as_array(line) for line in lines]
    lines = [nonzero(line)[0] if line.dtype.kind == "b" else line for line in lines]
    rank = len(lines)
    return tuple(reshaped(line, tuple(line.size if at == axis else 1 for at in range(rank))) for axis, line in enumerate(lines))


def unravel_index(index, shape, /) -> tuple[Array, ...]:
    """Returns the index along each axis of places in the elements as one line."""
    index = _as_array(index)
    result = []
    for extent in reversed(tuple(shape)):
        result.append(index % extent)
        index = index // extent
    return tuple(reversed(result))


def ravel_multi_index(index, shape, /) -> Array:
    """Returns places in the elements as one line from the index along each axis."""
    result = None
    for part, extent in zip(index, shape):
        result = part if result is None else add(multiply(result, extent), part)
    return result


def resize(x, shape, /) -> Array:
    """Returns an array of another size; its elements are repeated as often as needed."""
    x, shape = ravel(x), (shape,) if isinstance(shape, int) else tuple(shape)
    count = math.prod(shape)
    return reshaped(viewed(x, [(0, 0, 1)], (count,), "wrap"), shape)


def put_along_axis(x, index, values, /, *, axis=-1) -> Array:
    """Returns an array with other elements at indices along an axis; each line has its own."""
    axis = axis_of(axis, x.ndim)
    key = [reshaped(arange(extent, device=x.device), tuple(extent if at == place else 1 for at in range(x.ndim)))
           for place, extent in enumerate(x.shape)]
    key[axis] = index
    return x.at[tuple(key)].set(values)


def array_equal(a, b, /, *, equal_nan=False) -> builtins.bool:
    """Tests if two arrays have the same shape and equal elements. Waits for them."""
    a, b = _as_array(a), _as_array(b)
    if a.shape != b.shape:
        return False
    from ._elementwise import isnan
    from ._reductions import all

    same = a == b
    if equal_nan and a.dtype.kind in "fc" and b.dtype.kind in "fc":
        same = same | (isnan(a) & isnan(b))
    return builtins.bool(all(same))


def isclose(a, b, /, *, rtol=1e-5, atol=1e-8, equal_nan=False) -> Array:
    """Tests if elements are equal within a tolerance: |a - b| <= atol + rtol |b|."""
    from ._elementwise import abs as absolute, isfinite, isnan

    a, b = _as_array(a), _as_array(b)
    a = a if a.dtype.kind in "fc" else cast(a, _dtypes.DEFAULT_FLOAT)
    b = b if b.dtype.kind in "fc" else cast(b, _dtypes.DEFAULT_FLOAT)
    near = (absolute(a - b) <= atol + rtol * absolute(b)) & isfinite(b) | (a == b)
    return near | (isnan(a) & isnan(b)) if equal_nan else near


def allclose(a, b, /, *, rtol=1e-5, atol=1e-8, equal_nan=False) -> builtins.bool:
    """Tests if all elements are equal within a tolerance. Waits for them."""
    from ._reductions import all

    return builtins.bool(all(isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))


def apply_along_axis(function, axis, x, /) -> Array:
    """Applies a function of lines to all lines along an axis, batched by `bl.vmap`."""
    from ._batch import vmap

    x = _as_array(x)
    axis = axis_of(axis, x.ndim)
    from ._manipulation import moveaxis

    rows = moveaxis(x, axis, -1)
    flat = reshaped(rows, (math.prod(rows.shape[:-1]), rows.shape[-1]))
    result = vmap(function)(flat)
    result = reshaped(result, (*rows.shape[:-1], *result.shape[1:]))
    extra = result.ndim - (x.ndim - 1)
    for at in range(extra):
        result = moveaxis(result, x.ndim - 1 + at, axis + at)
    return result
