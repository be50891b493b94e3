"""Data types: NumPy's dtype objects, and the rules of promotion."""

from __future__ import annotations

import builtins
import functools
from typing import NamedTuple

import numpy as np

bool = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(name) for name in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = (np.dtype(name) for name in ("float16", "float32", "float64"))
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOATS = (float16, float32, float64)
COMPLEX = (complex64, complex128)
ALL = (bool, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)

DEFAULT_INT = int64
DEFAULT_FLOAT = float64
DEFAULT_COMPLEX = complex128

_KINDS = {
    "bool": (bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + FLOATS + COMPLEX,
}


_NAMES = {dtype.num: dtype.name for dtype in ALL}


def name_of(dtype: np.dtype) -> str:
    """Returns the name of a data type; NumPy computes it at each use."""
    return _NAMES[dtype.num]


@functools.lru_cache(None)
def _checked(found: np.dtype) -> np.dtype:
    native = found.newbyteorder("=")
    for known in ALL:
        if native == known:
            return known
    raise TypeError(f"there are no arrays of `{found}`: arrays hold booleans, integers, floats and complex numbers")


def checked(dtype) -> np.dtype:
    """Returns the data type that an object names; raises `TypeError` if arrays cannot have it."""
    return _checked(np.dtype(dtype))


def is_float(dtype) -> builtins.bool:
    return dtype.kind == "f"


def is_complex(dtype) -> builtins.bool:
    return dtype.kind == "c"


def is_inexact(dtype) -> builtins.bool:
    """Tests for floats and complex numbers."""
    return dtype.kind in "fc"


def real_of(dtype) -> np.dtype:
    """Returns the data type of the parts of complex numbers; other types stay."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype) -> np.dtype:
    """Returns the data type of complex numbers with parts of a data type."""
    if dtype.kind == "c":
        return dtype
    return complex64 if dtype in (float16, float32) else complex128


@functools.lru_cache(None)
def promote(left: np.dtype, right: np.dtype) -> np.dtype:
    """Returns the common type of two arrays, as NumPy defines it."""
    return checked(np.promote_types(left, right))


def of_scalar(value, beside: np.dtype) -> np.dtype:
    """Returns the common type of an array and a Python number: the number adapts if its kind allows."""
    kind = beside.kind
    if isinstance(value, (builtins.bool, np.bool_)):
        return beside
    if isinstance(value, np.generic):
        return promote(beside, checked(value.dtype))
    if isinstance(value, int):
        return DEFAULT_INT if kind == "b" else beside
    if isinstance(value, float):
        return beside if kind in "fc" else DEFAULT_FLOAT
    if isinstance(value, complex):
        return complex_of(beside) if kind in "fc" else DEFAULT_COMPLEX
    raise TypeError(f"`{type(value).__name__}` is neither an array nor a number")


def default_of(value) -> np.dtype:
    """Returns the data type of an array that holds a Python number."""
    if isinstance(value, np.generic):
        return checked(value.dtype)
    if isinstance(value, builtins.bool):
        return bool
    if isinstance(value, int):
        return DEFAULT_INT if -(2**63) <= value < 2**63 else uint64
    if isinstance(value, float):
        return DEFAULT_FLOAT
    if isinstance(value, complex):
        return DEFAULT_COMPLEX
    return checked(np.asarray(value).dtype)


def _dtype_of(value):
    return value.dtype if hasattr(value, "dtype") and not isinstance(value, type) else None


def result_type(*arrays_and_dtypes) -> np.dtype:
    """Returns the data type that an operation on these arrays, types and numbers has.

    >>> bl.result_type(bl.int8, bl.uint8)
    dtype('int16')
    """
    dtypes, numbers = [], []
    for value in arrays_and_dtypes:
        if isinstance(value, (builtins.bool, int, float, complex)):
            numbers.append(value)
        else:
            dtypes.append(checked(_dtype_of(value) or value))
    if not dtypes:
        if not numbers:
            raise ValueError("`result_type` of nothing")
        dtypes = [default_of(numbers.pop())]
    result = functools.reduce(promote, dtypes)
    for number in numbers:
        result = of_scalar(number, result)
    return result


def can_cast(from_, to) -> builtins.bool:
    """Tests if a value of one type can be cast to another by promotion."""
    source, target = checked(_dtype_of(from_) or from_), checked(to)
    return builtins.bool(np.can_cast(source, target))


def isdtype(dtype, kind) -> builtins.bool:
    """Tests if a data type is of a kind: a name such as "integral", a data type, or a tuple of them."""
    dtype = np.dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"`{kind}` is no kind of data types; there is {', '.join(_KINDS)}")
        return dtype in _KINDS[kind]
    return dtype == np.dtype(kind)


class FloatInfo(NamedTuple):
    """Limits of a floating-point type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class IntegerInfo(NamedTuple):
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type, /) -> FloatInfo:
    """Returns the limits of a floating-point type."""
    dtype = real_of(checked(_dtype_of(type) or type))
    if not is_float(dtype):
        raise TypeError(f"`finfo` of `{dtype}`, which is no floating-point type")
    info = np.finfo(dtype)
    numbers = (float(value) for value in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(info.bits, *numbers, dtype)


def iinfo(type, /) -> IntegerInfo:
    """Returns the limits of an integer type."""
    dtype = checked(_dtype_of(type) or type)
    if dtype.kind not in "iu":
        raise TypeError(f"`iinfo` of `{dtype}`, which is no integer type")
    info = np.iinfo(dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)
