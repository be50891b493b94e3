"""Indexing: `x[key]`, `x[key] = value`, `take`."""

from __future__ import annotations

import numpy as np

from . import _core, _dtypes
from ._array import Array, axis_of, cast, from_host, like, made, reshaped, scalar, stretched, viewed
from ._creation import asarray, positions
from ._elementwise import add, less, maximum, minimum, multiply, where


def _parts(x, key) -> list:
    """Returns one entry for each axis of the array, and `None` for each new axis."""
    key = key if isinstance(key, tuple) else (key,)
    parts = [entry if isinstance(entry, Array) or not isinstance(entry, (list, np.ndarray)) else np.asarray(entry) for entry in key]
    parts = [from_host(entry, x.device) if isinstance(entry, np.ndarray) and entry.ndim else entry for entry in parts]
    parts = [_flag(entry, x) for entry in parts]
    used = sum(_axes_used(entry) for entry in parts)
    dots = [at for at, entry in enumerate(parts) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has at most one `...`")
    if used > x.ndim:
        raise IndexError(f"too many indices: the array has {x.ndim} axes, and {used} are indexed")
    whole = [slice(None)] * (x.ndim - used)
    if dots:
        return parts[: dots[0]] + whole + parts[dots[0] + 1 :]
    return parts + whole


def _flag(entry, x):
    """Converts a truth value among the indices to an array without axes."""
    return asarray(bool(entry), device=x.device) if isinstance(entry, (bool, np.bool_)) else entry


def _axes_used(entry) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return entry.ndim if isinstance(entry, Array) and entry.dtype.kind == "b" else 1


def _number(entry, extent, axis) -> int:
    try:
        index = entry.__index__()
    except (AttributeError, TypeError):
        reason = f"an index is an integer, a slice, `...`, `None` or an array of integers or booleans, not {entry!r}"
        raise IndexError(reason) from None
    if not -extent <= index < extent:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {extent}")
    return index % extent


def _inside(index, extent, axis) -> Array:
    """Checks an array of indices and counts negative ones from the end. Waits for the indices."""
    if index.dtype.kind not in "iu":
        raise IndexError(f"arrays of integers or booleans are indices, not arrays of {index.dtype}")
    if index.size and not _core.is_symbolic(index._node):
        values = np.asarray(index)
        low, high = int(values.min()), int(values.max())
        if low < -extent or high >= extent:
            raise IndexError(f"index {high if high >= extent else low} is out of bounds for axis {axis} with size {extent}")
        if low >= 0:
            return index
    index = cast(index, _dtypes.int64)
    return where(less(index, 0), add(index, extent), index)


def _mask_indices(mask, extents) -> list[Array]:
    """Returns the indices where a mask is true, one array for each of its axes."""
    if mask.size == 0 and all(own in (0, extent) for own, extent in zip(mask.shape, extents)):
        empty = made(_core.fill(mask.device._context, (0,), "int64", 0), _dtypes.int64, mask.device, (0,))
        return [empty] * mask.ndim
    if mask.shape != tuple(extents):
        raise IndexError(f"a mask of shape {mask.shape} does not fit axes of the extents {tuple(extents)}")
    line = reshaped(mask, (mask.size,))
    indices = []
    for axis in range(mask.ndim):
        at = reshaped(positions(mask.shape, axis, mask.device), (mask.size,))
        indices.append(made(_core.pack(at._node, line._node), _dtypes.int64, mask.device))
    return indices


def _basic(x, parts):
    """Returns a view by numbers, slices and new axes, and the arrays among the parts by axis of the view."""
    maps, shape, arrays, axis, before = [], [], [], 0, []
    for entry in parts:
        if entry is None:
            shape.append(1)
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(x.shape[axis])
            count = len(range(start, stop, step))
            maps.append((len(shape), start if count else 0, step if count else 1))
            shape.append(count)
            axis += 1
        elif isinstance(entry, Array):
            arrays.append((len(shape), entry, axis))
            before.append(len(maps))
            maps.append((len(shape), 0, 1))
            shape.append(x.shape[axis])
            axis += 1
        else:
            maps.append((-1, _number(entry, x.shape[axis], axis), 0))
            axis += 1
    return maps, shape, arrays


def _is_whole(parts) -> bool:
    return all(isinstance(entry, slice) and entry == slice(None) for entry in parts)


def getitem(x, key) -> Array:
    """Returns a part of an array, as in NumPy."""
    if isinstance(key, Array) and key.dtype.kind == "b" and key.shape == x.shape and x.ndim:
        lines = [reshaped(array, (array.size,)) for array in (x, key)]
        return like(_core.pack(lines[0]._node, lines[1]._node), x)
    parts = _parts(x, key)
    if _is_whole(parts):
        return x.copy()
    if any(isinstance(entry, Array) for entry in parts):
        return _gathered(x, parts)
    maps, shape, _ = _basic(x, parts)
    if 0 in shape:
        return made(_core.fill(x.device._context, shape, x.dtype.name, 0), x.dtype, x.device, tuple(shape))
    return viewed(x, maps, shape)


def _expanded(x, parts):
    """Replaces masks by indices, and numbers beside arrays by arrays. Returns where the result of arrays stands."""
    result, axis, places = [], 0, []
    for entry in parts:
        if entry is None or isinstance(entry, slice):
            result.append(entry)
            axis += entry is not None
            continue
        places.append(len(result))
        if isinstance(entry, Array) and entry.dtype.kind == "b":
            result.extend(_mask_indices(entry, x.shape[axis : axis + entry.ndim]))
            axis += entry.ndim
        elif isinstance(entry, Array):
            result.append(_inside(entry, x.shape[axis], axis))
            axis += 1
        else:
            result.append(scalar(_number(entry, x.shape[axis], axis), _dtypes.int64, x.device))
            axis += 1
    kinds = [isinstance(entry, Array) for entry in result]
    first = kinds.index(True)
    together = all(kinds[first : first + sum(kinds)])
    return result, together


def _is_flag(entry) -> bool:
    return isinstance(entry, Array) and entry.dtype.kind == "b" and entry.ndim == 0


def _without_flags(x, parts):
    """Replaces truth values by indices of a new axis of extent 1: the index 0, or none."""
    if not any(_is_flag(entry) for entry in parts):
        return x, parts
    shape, result, axis = list(x.shape), [], 0
    for entry in parts:
        if _is_flag(entry):
            shape.insert(axis, 1)
            entry = made(_core.fill(x.device._context, (int(bool(entry)),), "int64", 0), _dtypes.int64, x.device)
            axis += 1
        elif entry is not None:
            axis += _axes_used(entry)
        result.append(entry)
    return reshaped(x, shape), result


def _gathered(x, parts) -> Array:
    if all(_is_flag(entry) or entry is None for entry in parts):
        return _flagged(x, parts)
    x, parts = _without_flags(x, parts)
    parts, together = _expanded(x, parts)
    maps, shape, arrays = _basic(x, parts)
    view = viewed(x, maps, shape) if 0 not in shape else x
    from ._manipulation import broadcast_shapes

    common = broadcast_shapes(*(entry.shape for _, entry, _ in arrays))
    indexed = {at: entry for at, entry, _ in arrays}
    first = min(indexed) if together else 0
    rest = [at for at in range(len(shape)) if at not in indexed]
    before = [at for at in rest if at < first]
    behind = [at for at in rest if at >= first]
    result = [shape[at] for at in before] + list(common) + [shape[at] for at in behind]
    if 0 in result:
        return made(_core.fill(x.device._context, result, x.dtype.name, 0), x.dtype, x.device, tuple(result))
    if 0 in shape:
        raise IndexError(f"an axis of extent 0 has no elements to index in an array of shape {x.shape}")
    target = {at: place for place, at in enumerate(before)}
    target.update({at: len(before) + len(common) + place for place, at in enumerate(behind)})
    nodes = []
    for at in range(len(shape)):
        if at in indexed:
            nodes.append(reshaped(indexed[at], indexed[at].shape + (1,) * len(behind))._node)
        else:
            nodes.append(positions(result, target[at], x.device)._node)
    return like(_core.gather(view._node, nodes, None), x, tuple(result))


def _flagged(x, parts) -> Array:
    """Indexes an array by truth values alone, each of which adds one axis at most."""
    chosen = all(bool(entry) for entry in parts if entry is not None)
    shape = (int(chosen), *x.shape)
    if not chosen:
        return made(_core.fill(x.device._context, shape, x.dtype.name, 0), x.dtype, x.device, shape)
    return reshaped(x, shape)


def setitem(x, key, value) -> None:
    """Replaces a part of an array. Arrays made of it before keep their elements."""
    result = changed(x, key, value)
    if result is not x:
        x._node = result._node


def changed(x, key, value, combine=None) -> Array:
    """Returns an array with another part: the values, or the old elements combined with them."""
    value = _value(x, value)
    if isinstance(key, (Array, np.ndarray)) and key.dtype.kind == "b" and key.shape == x.shape and value.size == 1:
        mask = key if isinstance(key, Array) else from_host(key, x.device)
        value = reshaped(value, ())
        return where(mask, value if combine is None else _COMBINED[combine](x, value), x)
    parts = _parts(x, key)
    shape_before, unchanged = x.shape, x
    if any(isinstance(entry, Array) for entry in parts):
        if all(_is_flag(entry) for entry in parts):
            return changed(x, ..., value, combine) if all(bool(entry) for entry in parts) else x
        x, parts = _without_flags(x, parts)
        parts, together = _expanded(x, parts)
    else:
        together = True
    maps, shape, arrays = _basic(x, parts)
    from ._manipulation import broadcast_shapes

    common = broadcast_shapes(*(entry.shape for _, entry, _ in arrays)) if arrays else ()
    indexed = {at: entry for at, entry, _ in arrays}
    first = min(indexed) if indexed and together else 0
    rest = [at for at in range(len(shape)) if at not in indexed]
    before, behind = [at for at in rest if at < first], [at for at in rest if at >= first]
    result = tuple([shape[at] for at in before] + list(common) + [shape[at] for at in behind])
    while value.ndim > len(result) and value.shape[0] == 1:
        value = reshaped(value, value.shape[1:])
    try:
        value = stretched(value, result)
    except ValueError:
        raise ValueError(f"an array of shape {value.shape} cannot be assigned to a part of shape {result}") from None
    if 0 in result:
        return unchanged
    if x.ndim == 0 or _is_whole(parts):
        value = reshaped(value, shape_before)
        return value.copy() if combine is None else _COMBINED[combine](unchanged, value)
    target = {at: place for place, at in enumerate(before)}
    target.update({at: len(before) + len(common) + place for place, at in enumerate(behind)})
    nodes = []
    for source, offset, stride in maps:
        if source == -1:
            index = made(_core.fill(x.device._context, result, "int64", offset), _dtypes.int64, x.device, result)
        elif source in indexed:
            index = stretched(reshaped(cast(indexed[source], _dtypes.int64), indexed[source].shape + (1,) * len(behind)), result)
        else:
            index = add(multiply(positions(result, target[source], x.device), stride), offset)
        nodes.append(index)
    if result == ():
        nodes, value = [reshaped(index, (1,)) for index in nodes], reshaped(value, (1,))
    found = like(_core.scatter(x._node, [index._node for index in nodes], value._node, combine), x, x.shape)
    return reshaped(found, shape_before)


_COMBINED = {"sum": add, "product": multiply, "min": minimum, "max": maximum}


class At:
    """The part of an array that `x.at[key]` names. Its methods return changed copies of the whole array."""

    __slots__ = ("_array", "_key")

    def __init__(self, array, key=None):
        self._array, self._key = array, key

    def __getitem__(self, key):
        return At(self._array, key)

    def __repr__(self):
        return f"<a part of an array of shape {self._array.shape}: `.set(v)`, `.add(v)`, `.multiply(v)`, `.min(v)`, `.max(v)`>"

    def get(self) -> Array:
        """Returns the part: `x[key]`."""
        return getitem(self._array, self._key)

    def set(self, values) -> Array:
        """Returns an array with other values at these indices; of equal indices the last one counts."""
        return changed(self._array, self._key, values)

    def add(self, values) -> Array:
        """Returns an array with values added at these indices; all values of equal indices are added."""
        return changed(self._array, self._key, values, "sum")

    def subtract(self, values) -> Array:
        """Returns an array with values subtracted at these indices."""
        return changed(self._array, self._key, -_value(self._array, values), "sum")

    def multiply(self, values) -> Array:
        """Returns an array with the elements at these indices multiplied."""
        return changed(self._array, self._key, values, "product")

    def divide(self, values) -> Array:
        """Returns an array with the elements at these indices divided."""
        return changed(self._array, self._key, 1.0 / _value(self._array, values), "product")

    def min(self, values) -> Array:
        """Returns an array with the minimum of the elements and the values at these indices."""
        return changed(self._array, self._key, values, "min")

    def max(self, values) -> Array:
        """Returns an array with the maximum of the elements and the values at these indices."""
        return changed(self._array, self._key, values, "max")

    def apply(self, function) -> Array:
        """Returns an array with a function applied at these indices."""
        return changed(self._array, self._key, function(self.get()))


def _value(x, value) -> Array:
    """Converts an assigned value to the data type of an array."""
    if not isinstance(value, Array):
        value = asarray(value, device=x.device)
        if value.dtype.kind == "f" and x.dtype.kind in "iu" and value.ndim == 0:
            raise TypeError(f"the float {value.item()} cannot be assigned to an array of {x.dtype}: convert it first")
    if value.dtype.kind in "fc" and x.dtype.kind in "biu" or value.dtype.kind == "c" and x.dtype.kind != "c":
        raise TypeError(f"elements of {value.dtype} cannot be assigned to an array of {x.dtype}: convert them first")
    return cast(value, x.dtype)


def taken(x, indices, axis) -> Array:
    """Takes elements at checked indices along an axis."""
    key = [slice(None)] * x.ndim
    key[axis] = indices
    return getitem(x, tuple(key))


def take(x, indices, /, *, axis=None) -> Array:
    """Takes elements at indices along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"`take` from an array of shape {x.shape} needs an axis")
        axis = 0
    indices = indices if isinstance(indices, Array) else asarray(indices, device=x.device)
    return taken(x, indices, axis_of(axis, x.ndim))


def take_along_axis(x, indices, /, *, axis=-1) -> Array:
    """Takes elements at indices along an axis; each line has its own."""
    if x.ndim != indices.ndim:
        raise ValueError(f"indices of {indices.ndim} axes for an array of {x.ndim}")
    axis = axis_of(axis, x.ndim)
    index = _inside(indices, x.shape[axis], axis)
    from ._manipulation import broadcast_shapes

    others = broadcast_shapes(*(shape[:axis] + (1,) + shape[axis + 1 :] for shape in (x.shape, indices.shape)))
    shape = others[:axis] + (indices.shape[axis],) + others[axis + 1 :]
    view = stretched(x, others[:axis] + (x.shape[axis],) + others[axis + 1 :])
    if 0 in shape:
        return made(_core.fill(x.device._context, shape, x.dtype.name, 0), x.dtype, x.device, shape)
    nodes = [positions(shape, at, x.device)._node if at != axis else stretched(index, shape)._node for at in range(x.ndim)]
    return like(_core.gather(view._node, nodes, None), x, shape)
