"""Python functions over single elements: `elementwise`, `stencil`, and operators for reductions and scans."""

from __future__ import annotations

import functools

import numpy as np

from . import _core, _dtypes
from ._array import Array, axes_of, axis_of, made, reshaped, stretched
from ._creation import asarray


def _values(name, given):
    """Converts arguments to arrays on one device; Python numbers adapt to the arrays beside them."""
    arrays = [one for one in given if isinstance(one, Array)]
    if not arrays:
        return [asarray(one) for one in given]
    device = arrays[0]._device
    for array in arrays:
        if array._device is not device:
            raise ValueError(f"`{name}`: one array is on {device}, the other on {array._device}: `to_device` copies one of them")
    common = functools.reduce(_dtypes.promote, [array._dtype for array in arrays])
    found = []
    for one in given:
        if not isinstance(one, Array):
            is_number = isinstance(one, (bool, int, float, complex)) and not isinstance(one, np.generic)
            one = asarray(one, dtype=_dtypes.of_scalar(one, common) if is_number else None, device=device)
        found.append(one)
    return found


def _count(function) -> int:
    return function.__code__.co_argcount


def _compiled(function, dtypes, **options):
    """Compiles a function for data types of its parameters."""
    from . import _compile

    return _compile.Compiler(function, dtypes, **options).compiled()


class ElementFunction:
    """A function of single elements that arrays are passed to. `bl.elementwise` makes it."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self._element_function, self._compiled = function, {}
        self._takes = _count(function)

    def __repr__(self):
        return f"<element function {self.__name__}>"

    def __call__(self, *arguments):
        name = self.__name__
        if len(arguments) != self._takes:
            raise TypeError(f"`{name}` takes {self._takes} arguments, not {len(arguments)}")
        arrays = _values(name, arguments)
        dtypes = tuple(array._dtype for array in arrays)
        found = self._compiled.get(dtypes)
        if found is None:
            found = self._compiled[dtypes] = _compiled(self._element_function, dtypes)
        function, results = found
        nodes = _core.call_function(function, [array._node for array in arrays])
        made_ = [made(node, dtype, arrays[0]._device) for node, dtype in zip(nodes, results)]
        return made_[0] if len(made_) == 1 else tuple(made_)


def elementwise(function):
    """Compiles a Python function of numbers, and applies it to all elements of arrays.

    The function may have local names, `if`, `while`, `for i in range(n)`, local arrays as `[0.0] * 8`, calls of other
    Python functions and of mathematical functions. It runs on the device, fused with the operations around it.

    >>> @bl.elementwise
    ... def collatz(n):
    ...     steps = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         steps += 1
    ...     return steps
    >>> collatz(bl.asarray([1, 7, 27]))
    Array([  0,  16, 111])
    """
    return ElementFunction(function)


class Stencil:
    """A function of the neighbourhood of an element. `bl.stencil` makes it."""

    def __init__(self, function, radius, boundary):
        functools.update_wrapper(self, function)
        self._element_function, self._radius, self._boundary, self._compiled = function, radius, boundary, {}
        self._takes = _count(function)

    def __repr__(self):
        return f"<stencil {self.__name__}>"

    def __call__(self, x, /, *beside):
        name = self.__name__
        if 1 + len(beside) != self._takes:
            raise TypeError(f"`{name}` takes {self._takes} arguments, not {1 + len(beside)}")
        x, *beside = _values(name, (x, *beside))
        if x.ndim == 0:
            raise ValueError(f"`{name}` of an array without axes, which has no neighbourhoods")
        reach = self._reach(x.ndim)
        # The window covers the last axes; the function is applied to each of the others on its own.
        rank = len(reach)
        dtypes = (x._dtype, *(array._dtype for array in beside))
        found = self._compiled.get((dtypes, rank, x.ndim))
        if found is None:
            found = self._compiled[dtypes, rank, x.ndim] = self._compile(dtypes, x.ndim)
        function, results = found
        boundary = self._boundary
        if isinstance(boundary, (int, float)) and not isinstance(boundary, bool):
            boundary = int(boundary) if x._dtype.kind in "iu" else float(boundary)
        beside = [stretched(array, x.shape) for array in beside]
        nodes = _core.call_window(function, x._node, [array._node for array in beside], reach, boundary)
        arrays = [made(node, dtype, x._device, x.shape) for node, dtype in zip(nodes, results)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _reach(self, rank):
        radius = self._radius
        if isinstance(radius, int):
            return [(radius, radius)] * rank
        sides = [(one, one) if isinstance(one, int) else tuple(one) for one in radius]
        if len(sides) != rank:
            raise ValueError(f"`{self.__name__}`: a radius for {len(sides)} axes, and the array has {rank}")
        return sides

    def _compile(self, dtypes, rank):
        first = self._element_function.__code__.co_varnames[0]
        return _compiled(self._element_function, dtypes, windows=(first,), rank=rank)


def stencil(radius, *, boundary="clamp"):
    """Compiles a Python function of the neighbourhood of an element, and applies it at all elements.

    The first parameter is the neighbourhood: `p[-1, 0]` is the element before along the first axis. The radius is a
    number, or one for each axis. Outside of the array, `boundary` counts: "clamp", "wrap", "mirror" or a number. Further
    arguments are elements of other arrays.

    >>> @bl.stencil(1)
    ... def slope(p):
    ...     return (p[1] - p[-1]) / 2
    >>> slope(bl.asarray([0.0, 1.0, 4.0, 9.0]))
    Array([0.5, 2. , 4. , 2.5])
    """
    if boundary not in ("clamp", "wrap", "mirror") and not isinstance(boundary, (int, float)):
        raise ValueError(f"`stencil` with the boundary {boundary!r}; there is clamp, wrap, mirror, or a number")
    return lambda function: Stencil(function, radius, boundary)


def _operator(function, dtype):
    """Returns a function of two elements of a data type."""
    function = getattr(function, "_element_function", function)
    known = _operators.get((function, dtype))
    if known is None:
        compiled, results = _compiled(function, (dtype, dtype))
        if results != [dtype]:
            raise TypeError(f"`{function.__name__}` combines two elements of {dtype} to {', '.join(map(str, results))}: one of {dtype} is needed")
        known = _operators[function, dtype] = compiled
    return known


_operators: dict = {}


def reduce(function, x, identity, /, *, axis=None, keepdims=False) -> Array:
    """Combines elements along axes by a Python function of two elements.

    The function is associative, and `identity` is its neutral element. Elements are combined in a fixed order.

    >>> bl.reduce(lambda a, b: a if abs(a) > abs(b) else b, bl.asarray([1.0, -5.0, 3.0]), 0.0)
    Array(-5.)
    """
    x = x if isinstance(x, Array) else asarray(x)
    axes = axes_of(axis, x.ndim)
    node = _core.reduce_by(x._node, _operator(function, x._dtype), _number(identity, x._dtype), axes)
    kept = tuple(1 if at in axes else extent for at, extent in enumerate(x.shape) if keepdims or at not in axes)
    found = made(node, x._dtype, x._device, tuple(extent for at, extent in enumerate(x.shape) if at not in axes))
    return reshaped(found, kept)


def associative_scan(function, x, identity, /, *, axis=0) -> Array:
    """Combines all elements up to each along an axis by an associative Python function of two elements.

    >>> bl.associative_scan(lambda a, b: a * b % 7, bl.asarray([3, 3, 3, 3]), 1)
    Array([3, 2, 6, 4])
    """
    x = x if isinstance(x, Array) else asarray(x)
    axis = axis_of(axis, x.ndim)
    if x.size == 0:
        return x
    node = _core.scan_by(x._node, _operator(function, x._dtype), _number(identity, x._dtype), axis)
    return made(node, x._dtype, x._device, x.shape)


def _number(value, dtype):
    """Converts an identity to a Python number of a data type."""
    if isinstance(value, Array):
        value = value.item()
    value = value.item() if isinstance(value, np.generic) else value
    if dtype.kind == "f":
        return float(value)
    return complex(value) if dtype.kind == "c" else value
