"""Operators and methods of arrays: the functions of the namespace under other names."""

from __future__ import annotations

import numpy as np

from . import _core, _creation, _dtypes, _elementwise as element, _indexing, _manipulation, _reductions, linalg
from ._array import Array

_BINARY = {
    "add": element.add,
    "sub": element.subtract,
    "mul": element.multiply,
    "truediv": element.divide,
    "floordiv": element.floor_divide,
    "mod": element.remainder,
    "pow": element.pow,
    "and": element.bitwise_and,
    "or": element.bitwise_or,
    "xor": element.bitwise_xor,
    "lshift": element.bitwise_left_shift,
    "rshift": element.bitwise_right_shift,
    "matmul": linalg.matmul,
}
_COMPARE = {
    "lt": element.less,
    "le": element.less_equal,
    "gt": element.greater,
    "ge": element.greater_equal,
    "eq": element.equal,
    "ne": element.not_equal,
}
_OPERANDS = (Array, bool, int, float, complex, np.ndarray, np.generic)


def _forward(function):
    def operator(self, other):
        return function(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    return operator


def _reflected(function):
    def operator(self, other):
        return function(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    return operator


def _in_place(function):
    def operator(self, other):
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        result = function(self, other)
        if result.dtype != self.dtype:
            raise TypeError(f"a result of {result.dtype} cannot replace an array of {self.dtype}: write `x = x + y`")
        if result.shape != self.shape:
            raise ValueError(f"a result of shape {result.shape} cannot replace an array of shape {self.shape}")
        self._node = result._node
        return self

    return operator


def _named(name, operator):
    operator.__name__ = name
    operator.__qualname__ = f"Array.{name}"
    setattr(Array, name, operator)


_new = object.__new__
_NUMBERS_OF = {
    kinds: frozenset(dtype.num for dtype in _dtypes.ALL if dtype.kind in kinds) for kinds in ("iufc", "fc")
}


def _quick(operation, kinds, slow):
    """Returns an operator that needs few steps of the interpreter for arrays of one data type, and for Python numbers."""
    number, known, inexact = _core.operation(operation), _NUMBERS_OF[kinds], _NUMBERS_OF["fc"]

    def operator(self, other):
        dtype, kind = self._dtype, type(other)
        if kind is Array:
            if other._dtype is not dtype or other._device is not self._device or dtype.num not in known:
                return slow(self, other)
            array = _new(Array)
            array._node, array._shape_known = _core.binary(number, self._node, other._node), None
        elif kind is float and dtype.num in inexact or kind is int and dtype.num in known:
            array = _new(Array)
            array._node = _core.with_number(number, self._node, other, False)
            array._shape_known = self._shape_known
        else:
            return slow(self, other)
        array._dtype, array._device = dtype, self._device
        return array

    return operator


_QUICK = {"add": ("+", "iufc"), "sub": ("-", "iufc"), "mul": ("*", "iufc"), "truediv": ("/", "fc")}
for _name, _function in _BINARY.items():
    _slow = _forward(_function)
    _named(f"__{_name}__", _quick(*_QUICK[_name], _slow) if _name in _QUICK else _slow)
    _named(f"__r{_name}__", _reflected(_function))
    _named(f"__i{_name}__", _in_place(_function))
for _name, _function in _COMPARE.items():
    _named(f"__{_name}__", _forward(_function))
_named("__neg__", lambda self: element.negative(self))
_named("__pos__", lambda self: element.positive(self))
_named("__abs__", lambda self: element.abs(self))
_named("__invert__", lambda self: element.bitwise_invert(self))
_named("__getitem__", lambda self, key: _indexing.getitem(self, key))
_named("__setitem__", lambda self, key, value: _indexing.setitem(self, key, value))
Array.at = property(_indexing.At, doc="Names a part: `x.at[key].set(v)` returns a changed copy; `add`, `multiply`, `min` … combine.")


def _method(name, function):
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__doc__ = f"The same as `bl.{function.__name__}`: {function.__doc__}"
    _named(name, method)


def _reduction(name, function):
    def method(self, axis=None, **options):
        return function(self, axis=axis, **options)

    method.__doc__ = f"The same as `bl.{function.__name__}`: {function.__doc__}"
    _named(name, method)


for _function in (
    _reductions.sum, _reductions.prod, _reductions.max, _reductions.min, _reductions.mean, _reductions.var, _reductions.std,
    _reductions.all, _reductions.any, _reductions.argmax, _reductions.argmin,
):
    _reduction(_function.__name__, _function)
_reduction("cumsum", _reductions.cumulative_sum)
_reduction("cumprod", _reductions.cumulative_prod)
for _function in (_creation.astype, _manipulation.squeeze, _manipulation.repeat, _indexing.take, element.clip, element.round):
    _method(_function.__name__, _function)


def _reshape(self, *shape):
    """Returns the elements in another shape: `x.reshape(2, -1)` or `x.reshape((2, -1))`."""
    return _manipulation.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self, *axes):
    """Returns the array with its axes in another order, by default in reverse order."""
    axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return _manipulation.permute_dims(self, tuple(axes)) if axes else self.T


def _flatten(self):
    """Returns the elements along one axis."""
    return _manipulation.reshape(self, (-1,))


_named("reshape", _reshape)
_named("transpose", _transpose)
_named("flatten", _flatten)
