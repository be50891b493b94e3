"""Functions that move elements: shapes, axes, parts, repetitions."""

from __future__ import annotations

import builtins

import numpy as np

from . import _core, _dtypes
from ._array import Array, axes_of, axis_of, cast, like, permuted, reshaped, stretched, viewed
from ._creation import asarray
from ._elementwise import not_equal

def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """Returns the common shape of arrays of these shapes."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ValueError(f"the shapes {', '.join(map(str, shapes))} do not fit together") from error

def broadcast_to(x, /, shape) -> Array:
    """Repeats an array along axes of extent 1 to a shape."""
    return stretched(x, tuple(shape))

def broadcast_arrays(*arrays) -> tuple[Array, ...]:
    """Broadcasts arrays to their common shape."""
    shape = broadcast_shapes(*(array.shape for array in arrays))
    return tuple(stretched(array, shape) for array in arrays)

def reshape(x, /, shape, *, copy=None) -> Array:
    """Returns the elements in another shape. One extent may be -1: it follows from the others."""
    shape = [extent.__index__() for extent in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    if shape.count(-1) > 1 or any(extent < -1 for extent in shape):
        raise ValueError(f"{tuple(shape)} is no shape")
    if -1 in shape:
        others = 1
        for extent in shape:
            others *= extent if extent != -1 else 1
        if others == 0 or x.size % others:
            raise ValueError(f"{x.size} elements do not fit into the shape {tuple(shape)}")
        shape[shape.index(-1)] = x.size // others
    result = reshaped(x, shape)
    return result.copy() if copy and result is x else result

def permute_dims(x, /, axes) -> Array:
    """Returns an array with its axes in another order."""
    order = axes_of(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError(f"{tuple(axes)} does not order {x.ndim} axes")
    return permuted(x, order)

def moveaxis(x, source, destination, /) -> Array:
    """Moves axes to other positions."""
    source, destination = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(source) != len(destination):
        raise ValueError("as many sources as destinations are needed")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for target, axis in sorted(zip(destination, source)):
        order.insert(target, axis)
    return permuted(x, order)

def matrix_transpose(x, /) -> Array:
    """Exchanges the last two axes."""
    return x.mT

def expand_dims(x, /, axis=0) -> Array:
    """Inserts axes of extent 1."""
    count = len(axis) if isinstance(axis, tuple) else 1
    axes = axes_of(axis, x.ndim + count)
    extents = iter(x.shape)
    return reshaped(x, tuple(1 if at in axes else next(extents) for at in range(x.ndim + count)))

def squeeze(x, /, axis=None) -> Array:
    """Removes axes of extent 1."""
    if axis is None:
        axis = tuple(at for at, extent in enumerate(x.shape) if extent == 1)
    axes = axes_of(axis, x.ndim)
    long = [at for at in axes if x.shape[at] != 1]
    if long:
        raise ValueError(f"axis {long[0]} has extent {x.shape[long[0]]}; only an axis of extent 1 can be removed")
    return reshaped(x, tuple(extent for at, extent in enumerate(x.shape) if at not in axes))

def flip(x, /, *, axis=None) -> Array:
    """Reverses axes."""
    axes = axes_of(axis, x.ndim)
    if x.size == 0 or not axes:
        return x
    maps = [(at, extent - 1, -1) if at in axes else (at, 0, 1) for at, extent in enumerate(x.shape)]
    return viewed(x, maps, x.shape)

def roll(x, /, shift, *, axis=None) -> Array:
    """Rotates along axes; elements beyond the end come back at the start."""
    if axis is None:
        return reshaped(roll(reshaped(x, (x.size,)), shift, axis=0), x.shape)
    axes = tuple(axis_of(one, x.ndim) for one in (axis if isinstance(axis, tuple) else (axis,)))
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError("as many shifts as axes are needed")
    offsets = [0] * x.ndim
    for at, by in zip(axes, shifts):
        offsets[at] += by.__index__()
    if x.size == 0:
        return x
    maps = [(at, -offset % extent, 1) for at, (offset, extent) in enumerate(zip(offsets, x.shape))]
    return viewed(x, maps, x.shape, "wrap")

def concat(arrays, /, *, axis=0) -> Array:
    """Puts arrays behind each other along an axis; with `None` as axis, their elements."""
    arrays = [array if isinstance(array, Array) else asarray(array) for array in arrays]
    if not arrays:
        raise ValueError("there are no arrays to concatenate")
    dtype = _dtypes.result_type(*arrays)
    arrays = [cast(array, dtype) for array in arrays]
    if axis is None:
        arrays, axis = [reshaped(array, (array.size,)) for array in arrays], 0
    axis = axis_of(axis, arrays[0].ndim)
    rests = {array.shape[:axis] + array.shape[axis + 1 :] for array in arrays}
    if len({array.ndim for array in arrays}) > 1 or len(rests) > 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"arrays of the shapes {shapes} cannot be concatenated along axis {axis}")
    filled = [array for array in arrays if array.size] or arrays[:1]
    if len(filled) == 1:
        extent = sum(array.shape[axis] for array in arrays)
        shape = filled[0].shape[:axis] + (extent,) + filled[0].shape[axis + 1 :]
        if filled[0].shape == shape:
            return filled[0].copy()
        from ._creation import zeros

        return zeros(shape, dtype=dtype, device=filled[0].device)
    return like(_core.concatenate(axis, [array._node for array in filled]), filled[0])

def stack(arrays, /, *, axis=0) -> Array:
    """Puts arrays of one shape behind each other along a new axis."""
    arrays = [array if isinstance(array, Array) else asarray(array) for array in arrays]
    if len({array.shape for array in arrays}) > 1:
        raise ValueError("arrays of one shape are needed to stack them")
    axis = axis_of(axis, arrays[0].ndim + 1)
    return concat([expand_dims(array, axis) for array in arrays], axis=axis)

def unstack(x, /, *, axis=0) -> tuple[Array, ...]:
    """Splits an array along an axis into arrays without it."""
    axis = axis_of(axis, x.ndim)
    parts = []
    for index in range(x.shape[axis]):
        maps = [(-1, index, 0) if at == axis else (at - (at > axis), 0, 1) for at in range(x.ndim)]
        parts.append(viewed(x, maps, x.shape[:axis] + x.shape[axis + 1 :]))
    return tuple(parts)

def tile(x, repetitions, /) -> Array:
    """Repeats an array along each axis."""
    times = tuple(repetitions) if isinstance(repetitions, (tuple, list)) else (repetitions,)
    rank = max(x.ndim, len(times))
    shape, times = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - len(times)) + times
    x, result = reshaped(x, shape), tuple(extent * count for extent, count in zip(shape, times))
    if result == shape:
        return x
    if 0 in result:
        from ._creation import zeros

        return zeros(result, dtype=x.dtype, device=x.device)
    return viewed(x, [(at, 0, 1) for at in range(rank)], result, "wrap")

def repeat(x, repeats, /, *, axis=None) -> Array:
    """Repeats each element. `repeats` is a number, or an array with one number for each index of the axis."""
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = axis_of(axis, x.ndim)
    extent = x.shape[axis]
    if isinstance(repeats, Array) and repeats.size == 1 and extent != 1:
        repeats = int(repeats)
    if isinstance(repeats, int):
        shape = x.shape[: axis + 1] + (repeats,) + x.shape[axis + 1 :]
        maps = [(at + (at > axis), 0, 1) for at in range(x.ndim)]
        if len(shape) <= 8:
            return reshaped(viewed(x, maps, shape), x.shape[:axis] + (extent * repeats,) + x.shape[axis + 1 :])
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"`repeats` of the type {counts.dtype}: integers are needed")
    if counts.ndim > 1 or counts.size not in (1, extent):
        raise ValueError(f"{counts.size} numbers of repetitions for {extent} elements")
    counts = np.broadcast_to(counts, (extent,))
    if np.any(counts < 0):
        raise ValueError("an element cannot be repeated fewer than 0 times")
    from ._indexing import taken

    return taken(x, asarray(np.repeat(np.arange(extent), counts), device=x.device), axis)

def diff(x, /, *, axis=-1, n=1, prepend=None, append=None) -> Array:
    """Returns the differences of neighbours along an axis, `n` times."""
    if x.ndim == 0:
        raise ValueError("`diff` of an array without axes")
    axis = axis_of(axis, x.ndim)
    if n < 0:
        raise ValueError("`diff` cannot be taken fewer than 0 times")
    if n == 0:
        return x

    def beside(part):
        part = part if isinstance(part, Array) else asarray(part, dtype=x.dtype, device=x.device)
        return part if part.ndim else stretched(part, x.shape[:axis] + (1,) + x.shape[axis + 1 :])

    parts = [beside(part) for part in (prepend,) if part is not None] + [x]
    parts += [beside(part) for part in (append,) if part is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        extent = builtins.max(x.shape[axis] - 1, 0)
        shape = x.shape[:axis] + (extent,) + x.shape[axis + 1 :]
        if extent == 0:
            from ._creation import zeros

            x = zeros(shape, dtype=x.dtype, device=x.device)
            continue
        upper = viewed(x, [(at, int(at == axis), 1) for at in range(x.ndim)], shape)
        lower = viewed(x, [(at, 0, 1) for at in range(x.ndim)], shape)
        x = not_equal(upper, lower) if x.dtype.kind == "b" else upper - lower
    return x
