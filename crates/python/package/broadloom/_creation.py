"""Functions that make arrays."""

from __future__ import annotations

import math

import numpy as np

from . import _core, _dtypes
from ._array import Array, cast, from_host, made, permuted, reshaped, scalar, stretched
from ._devices import device as _device
from ._elementwise import add, multiply, where


def _shape_of(shape) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    extents = tuple(extent.__index__() for extent in extents)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"negative extents are not allowed: {extents}")
    return extents


def asarray(obj, /, *, dtype=None, device=None, copy=None) -> Array:
    """Makes an array of numbers, nested lists, NumPy arrays, and objects with DLPack, `__array__` or a buffer.

    NumPy arrays are copied: later changes of them do not change the array.

    >>> (bl.asarray([1.0, 2.0, 3.0]) * 2 + 1).sum()
    Array(15.)
    """
    dtype = None if dtype is None else _dtypes.checked(dtype)
    if isinstance(obj, Array):
        target = obj._device if device is None else _device(device)
        if copy is False and (target is not obj._device or dtype not in (None, obj._dtype)):
            raise ValueError("another data type or another device needs a copy")
        moved = obj.to_device(target)
        converted = moved if dtype is None else cast(moved, dtype)
        return converted.copy() if copy and converted is obj else converted
    target = _device(device)
    if isinstance(obj, (bool, int, float, complex)):
        if copy is False:
            raise ValueError("a number becomes an array by a copy")
        return scalar(obj, dtype or _dtypes.default_of(obj), target) if dtype is None else cast_scalar(obj, dtype, target)
    if copy is False:
        raise ValueError("the elements go to memory of the library: that is a copy")
    if isinstance(obj, (list, tuple)):
        obj = _plain(obj)
    elif not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        obj = np.from_dlpack(obj)
    values = np.asarray(obj)
    if values.dtype.name == "bfloat16":
        values = values.astype(np.float32)
    if values.dtype.kind not in "biufc":
        raise TypeError(f"arrays hold numbers; `{type(obj).__name__}` does not give an array of numbers")
    return from_host(values if dtype is None else values.astype(dtype), target)


def cast_scalar(value, dtype, device) -> Array:
    """Makes an array without axes of a given data type from a number."""
    if dtype.kind in "iu" and isinstance(value, float):
        value = int(value)
    return scalar(value, dtype, device)


def _plain(obj):
    """Replaces arrays inside of nested lists by NumPy arrays."""
    if isinstance(obj, (list, tuple)):
        return [_plain(item) for item in obj]
    return np.asarray(obj) if isinstance(obj, Array) else obj


def from_dlpack(x, /, *, device=None, copy=None) -> Array:
    """Makes an array from an object with `__dlpack__`. The elements are copied."""
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if copy is False:
        raise BufferError("the elements go to memory of the library: that is a copy")
    return asarray(np.from_dlpack(x), device=device)


def full(shape, fill_value, *, dtype=None, device=None) -> Array:
    """Makes an array with one value at all indices."""
    shape, target = _shape_of(shape), _device(device)
    if isinstance(fill_value, Array):
        filled = fill_value if dtype is None else cast(fill_value, _dtypes.checked(dtype))
        return stretched(filled.to_device(target), shape)
    dtype = _dtypes.default_of(fill_value) if dtype is None else _dtypes.checked(dtype)
    if isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    if dtype.kind in "iu" and isinstance(fill_value, float):
        fill_value = int(fill_value)
    return made(_core.fill(target._context, shape, _dtypes.name_of(dtype), fill_value), dtype, target, shape)


def zeros(shape, *, dtype=None, device=None) -> Array:
    """Makes an array of zeros."""
    return full(shape, 0, dtype=dtype or _dtypes.DEFAULT_FLOAT, device=device)


def ones(shape, *, dtype=None, device=None) -> Array:
    """Makes an array of ones."""
    return full(shape, 1, dtype=dtype or _dtypes.DEFAULT_FLOAT, device=device)


def empty(shape, *, dtype=None, device=None) -> Array:
    """Makes an array whose elements do not matter. They are zeros."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None) -> Array:
    """Makes an array with one value at all indices, with the shape of another."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x, /, *, dtype=None, device=None) -> Array:
    """Makes an array of zeros with the shape of another."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None) -> Array:
    """Makes an array of ones with the shape of another."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None) -> Array:
    """Makes an array whose elements do not matter, with the shape of another."""
    return full_like(x, 0, dtype=dtype, device=device)


def positions(shape, axis, device, dtype=_dtypes.int64) -> Array:
    """Returns the index along an axis at each index of an array."""
    return made(_core.position(device._context, shape, axis, _dtypes.name_of(dtype)), dtype, device, tuple(shape))


def arange(start, /, stop=None, step=1, *, dtype=None, device=None) -> Array:
    """Makes the numbers start, start + step, … below stop."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("`arange` with a step of 0")
    if dtype is None:
        is_float = any(isinstance(value, float) for value in (start, stop, step))
        dtype = _dtypes.DEFAULT_FLOAT if is_float else _dtypes.DEFAULT_INT
    dtype, target = _dtypes.checked(dtype), _device(device)
    if all(isinstance(value, int) for value in (start, stop, step)):
        count = max(0, -((start - stop) // step))
    else:
        count = max(0, math.ceil((stop - start) / step))
    if count == 0:
        return zeros((0,), dtype=dtype, device=target)
    if dtype.kind == "f":
        at = cast(positions((count,), 0, target), dtype)
        step = float(start + step) - float(start) if dtype.itemsize == 8 else step
        return add(multiply(at, float(step)), float(start))
    at = positions((count,), 0, target)
    if dtype == _dtypes.uint64 and start + step * (count - 1) >= 2**63:
        at = cast(at, dtype)
        return add(multiply(at, step % 2**64), start % 2**64)
    return cast(add(multiply(at, int(step)), int(start)), dtype)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True) -> Array:
    """Makes `num` numbers at equal distances from start to stop."""
    dtype = _dtypes.DEFAULT_FLOAT if dtype is None else _dtypes.checked(dtype)
    target, parts = _device(device), num - 1 if endpoint else num
    if num < 0:
        raise ValueError(f"`linspace` of {num} numbers")
    if num == 0:
        return zeros((0,), dtype=dtype, device=target)
    at = cast(positions((num,), 0, target), _dtypes.float64)
    step = (float(stop) - float(start)) / parts if parts > 0 else 0.0
    if math.isinf(step):
        line = add(multiply(at, float(stop) / parts), multiply(add(multiply(at, -1.0), float(parts)), float(start) / parts))
    else:
        line = add(multiply(at, step), float(start))
    if endpoint and parts > 0:
        line = where(at == float(parts), float(stop), line)
    return cast(line, dtype)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None) -> Array:
    """Makes a matrix with ones on a diagonal."""
    shape, target = _shape_of((n_rows, n_rows if n_cols is None else n_cols)), _device(device)
    k = max(-shape[0] - 1, min(k, shape[1] + 1))
    on = positions(shape, 1, target) - positions(shape, 0, target) == k
    return cast(on, _dtypes.DEFAULT_FLOAT if dtype is None else _dtypes.checked(dtype))


def _triangle(x, keep) -> Array:
    if x.ndim < 2:
        raise ValueError(f"a triangle of an array of shape {x.shape}, which has no matrices")
    rows, columns = positions(x.shape, x.ndim - 2, x.device), positions(x.shape, x.ndim - 1, x.device)
    return where(keep(columns - rows), x, zeros_like(x))


def _near(k) -> int:
    """Returns a diagonal as a number of 64 bits; those far away are empty or full alike."""
    return max(-(2**62), min(k, 2**62))


def tril(x, /, *, k=0) -> Array:
    """Returns the lower triangle of matrices; other elements are 0."""
    return _triangle(x, lambda off: off <= _near(k))


def triu(x, /, *, k=0) -> Array:
    """Returns the upper triangle of matrices; other elements are 0."""
    return _triangle(x, lambda off: off >= _near(k))


def meshgrid(*arrays, indexing="xy") -> tuple[Array, ...]:
    """Makes the coordinates of a grid from those along its axes."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"`indexing` is \"xy\" or \"ij\", not {indexing!r}")
    if len({array.dtype for array in arrays}) > 1:
        raise ValueError("the arrays of a grid have one data type")
    shape = tuple(array.size for array in arrays)
    grids = []
    for axis, array in enumerate(arrays):
        column = [1] * len(shape)
        column[axis] = array.size
        grids.append(stretched(reshaped(array, column), shape))
    if indexing == "xy" and len(grids) > 1:
        order = (1, 0, *range(2, len(shape)))
        grids = [permuted(grid, order) for grid in grids]
    return tuple(grids)


def astype(x, dtype, /, *, copy=True, device=None) -> Array:
    """Converts an array to another data type."""
    target = x.device if device is None else _device(device)
    converted = cast(x, _dtypes.checked(dtype)).to_device(target)
    return converted.copy() if copy and converted is x else converted
