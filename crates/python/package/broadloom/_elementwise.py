"""Element-wise functions of the standard."""

from __future__ import annotations

import math

from . import _core, _dtypes
from ._array import Array, cast, like, made, operands, scalar
from ._dtypes import bool as bool_dtype, is_float


def _array(x, name) -> Array:
    if not isinstance(x, Array):
        raise TypeError(f"`{name}` takes an array, not `{type(x).__name__}`")
    return x


def _kind(name, dtype, kinds, wanted):
    if dtype.kind not in kinds:
        raise TypeError(f"`{name}` of arrays of `{dtype}`: {wanted} are needed")


class _Numbers(dict):
    """Numbers of the engine's operations by name."""

    def __missing__(self, name):
        number = self[name] = _core.operation(name)
        return number


_NUMBER = _Numbers()


def _op(operation, *arrays, dtype=None) -> Array:
    """Applies an operation of the engine to arrays of one data type."""
    number, first = _NUMBER[operation], arrays[-1]
    if len(arrays) == 2:
        return made(_core.binary(number, arrays[0]._node, first._node), dtype or first._dtype, first._device)
    if len(arrays) == 1:
        return made(_core.unary(number, first._node), dtype or first._dtype, first._device, first._shape_known)
    return made(_core.elementwise(number, [array._node for array in arrays]), dtype or first._dtype, first._device)


def _on_complex(name, x) -> Array:
    """Applies an elementary function to complex numbers."""
    if name not in _complex.FUNCTIONS:
        raise TypeError(f"`{name}` of complex numbers is not defined: real numbers are needed")
    return _complex.FUNCTIONS[name](x)


def zeros_as(x) -> Array:
    """Returns zeros with the shape and the data type of an array."""
    return made(_core.fill(x._device._context, x.shape, _dtypes.name_of(x._dtype), 0), x._dtype, x._device, x.shape)


def _floats(name, *values) -> list[Array]:
    arrays, dtype = operands(*values)
    _kind(name, dtype, "iuf", "numbers")
    return arrays if is_float(dtype) else [cast(array, _dtypes.DEFAULT_FLOAT) for array in arrays]


def _of_float(operation, name, doc):
    def function(x, /):
        if _array(x, name)._dtype.kind == "c":
            return _on_complex(name, x)
        return _op(operation, *_floats(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + " Integers are converted to `float64`."
    return function


exp = _of_float("exp", "exp", "Returns e to the power of each element.")
expm1 = _of_float("expm1", "expm1", "Returns exp(x) - 1, exact near 0.")
log = _of_float("log", "log", "Returns the natural logarithm of each element.")
log1p = _of_float("log1p", "log1p", "Returns log(1 + x), exact near 0.")
log2 = _of_float("log2", "log2", "Returns the logarithm to base 2 of each element.")
log10 = _of_float("log10", "log10", "Returns the logarithm to base 10 of each element.")
sqrt = _of_float("sqrt", "sqrt", "Returns the square root of each element.")
sin = _of_float("sin", "sin", "Returns the sine of each element.")
cos = _of_float("cos", "cos", "Returns the cosine of each element.")
tan = _of_float("tan", "tan", "Returns the tangent of each element.")
asin = _of_float("asin", "asin", "Returns the arc sine of each element.")
acos = _of_float("acos", "acos", "Returns the arc cosine of each element.")
atan = _of_float("atan", "atan", "Returns the arc tangent of each element.")
sinh = _of_float("sinh", "sinh", "Returns the hyperbolic sine of each element.")
cosh = _of_float("cosh", "cosh", "Returns the hyperbolic cosine of each element.")
tanh = _of_float("tanh", "tanh", "Returns the hyperbolic tangent of each element.")
asinh = _of_float("asinh", "asinh", "Returns the inverse hyperbolic sine of each element.")
acosh = _of_float("acosh", "acosh", "Returns the inverse hyperbolic cosine of each element.")
atanh = _of_float("atanh", "atanh", "Returns the inverse hyperbolic tangent of each element.")
erf = _of_float("erf", "erf", "Returns the error function of each element.")


def _rounding(operation, name, doc, kinds="iuf"):
    def function(x, /):
        _kind(name, _array(x, name)._dtype, kinds, "numbers")
        return _op(operation, x) if x._dtype.kind in "fc" else x

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


floor = _rounding("floor", "floor", "Rounds each element down.")
ceil = _rounding("ceil", "ceil", "Rounds each element up.")
trunc = _rounding("trunc", "trunc", "Rounds each element towards zero.")
round = _rounding("round_even", "round", "Rounds each element to the nearest integer, halves to even.", "iufc")


def _fast(number, x1, x2, kinds, result):
    """Applies an operation to arrays of one data type, or to an array and a number that adapts; else `None`."""
    array, is_first = (x1, False) if type(x1) is Array else (x2, True)
    dtype = array._dtype
    if dtype.kind not in kinds:
        return None
    if not is_first and type(x2) is Array:
        if x2._dtype is not dtype or x2._device is not array._device:
            return None
        return made(_core.binary(number, array._node, x2._node), result or dtype, array._device)
    other = x1 if is_first else x2
    kind = type(other)
    if not (kind is float and dtype.kind in "fc" or kind is int and dtype.kind != "b" or kind is complex and dtype.kind == "c"):
        return None
    node = _core.with_number(number, array._node, other, is_first)
    return made(node, result or dtype, array._device, array._shape_known)


def _two(operation, name, kinds, wanted, doc, result=None):
    number, known = _NUMBER[operation], kinds.replace("b", "")

    def function(x1, x2, /):
        if type(x1) is Array or type(x2) is Array:
            found = _fast(number, x1, x2, known, result)
            if found is not None:
                return found
        arrays, dtype = operands(x1, x2)
        _kind(name, dtype, kinds, wanted)
        return _op(operation, *arrays, dtype=result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


subtract = _two("-", "subtract", "iufc", "numbers", "Returns the differences.")
less = _two("<", "less", "iuf", "numbers", "Tests if x1 < x2.", bool_dtype)
less_equal = _two("<=", "less_equal", "iuf", "numbers", "Tests if x1 <= x2.", bool_dtype)
greater = _two(">", "greater", "iuf", "numbers", "Tests if x1 > x2.", bool_dtype)
greater_equal = _two(">=", "greater_equal", "iuf", "numbers", "Tests if x1 >= x2.", bool_dtype)
equal = _two("==", "equal", "biufc", "numbers", "Tests if elements are equal.", bool_dtype)
not_equal = _two("!=", "not_equal", "biufc", "numbers", "Tests if elements differ.", bool_dtype)
bitwise_and = _two("&", "bitwise_and", "biu", "integers or booleans", "Returns the bitwise AND.")
bitwise_or = _two("|", "bitwise_or", "biu", "integers or booleans", "Returns the bitwise OR.")
bitwise_xor = _two("^", "bitwise_xor", "biu", "integers or booleans", "Returns the bitwise exclusive OR.")
copysign = _two("copysign", "copysign", "f", "floats", "Returns x1 with the sign of x2.")


def add(x1, x2, /):
    """Returns the sums. The sum of booleans is their logical OR, as in NumPy."""
    if type(x1) is Array or type(x2) is Array:
        found = _fast(_NUMBER["+"], x1, x2, "iufc", None)
        if found is not None:
            return found
    arrays, dtype = operands(x1, x2)
    return _op("|" if dtype.kind == "b" else "+", *arrays)


def multiply(x1, x2, /):
    """Returns the products. The product of booleans is their logical AND, as in NumPy."""
    if type(x1) is Array or type(x2) is Array:
        found = _fast(_NUMBER["*"], x1, x2, "iufc", None)
        if found is not None:
            return found
    arrays, dtype = operands(x1, x2)
    return _op("&" if dtype.kind == "b" else "*", *arrays)


def divide(x1, x2, /):
    """Returns the quotients. Integers are converted to `float64`."""
    if type(x1) is Array or type(x2) is Array:
        found = _fast(_NUMBER["/"], x1, x2, "fc", None)
        if found is not None:
            return found
    arrays, dtype = operands(x1, x2)
    if dtype.kind not in "fc":
        arrays = [cast(array, _dtypes.DEFAULT_FLOAT) for array in arrays]
    return _op("/", *arrays)


def atan2(x1, x2, /):
    """Returns the angle of the point (x2, x1)."""
    return _op("atan2", *_floats("atan2", x1, x2))


def hypot(x1, x2, /):
    """Returns the length of the vector (x1, x2)."""
    return _op("hypot", *_floats("hypot", x1, x2))


def logaddexp(x1, x2, /):
    """Returns log(exp(x1) + exp(x2)) without overflow."""
    x, y = _floats("logaddexp", x1, x2)
    high = maximum(x, y)
    return where(equal(x, y), add(x, math.log(2)), add(high, log1p(exp(negative(abs(subtract(x, y)))))))


def _constant(value, array) -> Array:
    return scalar(value, array._dtype, array._device)


def floor_divide(x1, x2, /):
    """Returns the quotients, rounded down. An integer divided by 0 gives 0."""
    (x, y), dtype = operands(x1, x2)
    _kind("floor_divide", dtype, "iuf", "numbers")
    if dtype.kind == "u":
        return _op("/", x, y)
    if dtype.kind == "i":
        quotient, zero = _op("/", x, y), _constant(0, x)
        inexact = not_equal(_op("%", x, y), zero) & not_equal(less(x, zero), less(y, zero)) & not_equal(y, zero)
        return where(inexact, subtract(quotient, _constant(1, x)), quotient)
    zero, exact = _constant(0.0, x), _op("/", x, y)
    rest = _op("fmod", x, y)
    quotient = _op("/", subtract(x, rest), y)
    opposite = not_equal(less(rest, zero), less(y, zero)) & not_equal(rest, zero)
    quotient = where(opposite, subtract(quotient, _constant(1.0, x)), quotient)
    down = _op("floor", quotient)
    down = where(greater(subtract(quotient, down), _constant(0.5, x)), add(down, _constant(1.0, x)), down)
    down = where(equal(quotient, zero), _op("copysign", zero, exact), down)
    # The standard, unlike NumPy, wants the quotient itself for infinite operands.
    plain = equal(y, zero) | isinf(x) | isinf(y)
    return where(plain, exact, down)


def remainder(x1, x2, /):
    """Returns the remainders, with the sign of x2. The remainder of an integer by 0 is 0."""
    (x, y), dtype = operands(x1, x2)
    _kind("remainder", dtype, "iuf", "numbers")
    zero = _constant(0, x)
    if dtype.kind in "iu":
        rest = _op("%", x, y)
        if dtype.kind == "i":
            opposite = not_equal(rest, zero) & not_equal(less(rest, zero), less(y, zero))
            rest = where(opposite, add(rest, y), rest)
        return where(equal(y, zero), zero, rest)
    rest = _op("fmod", x, y)
    opposite = not_equal(rest, zero) & not_equal(less(rest, zero), less(y, zero))
    return where(equal(rest, zero), _op("copysign", zero, y), where(opposite, add(rest, y), rest))


def pow(x1, x2, /):
    """Returns x1 to the power of x2. Integers stay integers; their powers wrap around."""
    if type(x2) is int and isinstance(x1, Array) and x1._dtype.kind in "iuf" and 0 <= x2 <= 64:
        return _power(x1, x2) if x1._dtype.kind != "f" or x2 <= 3 else _op("pow", x1, _constant(float(x2), x1))
    if isinstance(x2, int) and x2 < 0 and isinstance(x1, Array) and x1._dtype.kind in "iu":
        raise ValueError("integers to negative integer powers are not defined: convert them to floats")
    (x, y), dtype = operands(x1, x2)
    _kind("pow", dtype, "iufc", "numbers")
    if dtype.kind == "c":
        if type(x2) is int and -64 <= x2 <= 64:
            return _power(x, x2) if x2 >= 0 else _op("/", _constant(1.0, x), _power(x, -x2))
        return _complex.power(x, y)
    if is_float(dtype):
        return _op("pow", x, y)
    result, one, zero = _constant(1, x), _constant(1, x), _constant(0, x)
    for bit in range(dtype.itemsize * 8 - (dtype.kind == "i")):
        chosen = not_equal(_op("&", y, _constant(1 << bit, y)), zero)
        result = _op("*", result, where(chosen, x, one))
        x = _op("*", x, x)
    return result


def _power(x, exponent) -> Array:
    """Multiplies an array by itself."""
    result = None
    while exponent:
        if exponent & 1:
            result = x if result is None else _op("*", result, x)
        exponent >>= 1
        if exponent:
            x = _op("*", x, x)
    if result is None:
        return like(_core.broadcast(_constant(1, x)._node, x.shape), x, x.shape)
    return result


def _shift(operation, name, doc):
    def function(x1, x2, /):
        (x, y), dtype = operands(x1, x2)
        _kind(name, dtype, "iu", "integers")
        most = _constant(dtype.itemsize * 8, y)
        amount = cast(_op("min", y, most), _dtypes.uint32)
        return made(_core.binary(_NUMBER[operation], x._node, amount._node), dtype, x._device)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


bitwise_left_shift = _shift("<<", "bitwise_left_shift", "Shifts bits to the left. A shift by all bits gives 0.")
bitwise_right_shift = _shift(">>", "bitwise_right_shift", "Shifts bits to the right. The sign is kept.")


def bitwise_invert(x, /):
    """Inverts all bits; the logical NOT of booleans."""
    _kind("bitwise_invert", _array(x, "bitwise_invert")._dtype, "biu", "integers or booleans")
    return _op("not", x)


def _truth(x, device=None) -> Array:
    if isinstance(x, Array):
        return x if x._dtype.kind == "b" else not_equal(x, _constant(0, x))
    return x if isinstance(x, bool) else bool(x)


def logical_and(x1, x2, /):
    """Tests if both are true. A number is true if it is not 0."""
    return bitwise_and(_truth(x1), _truth(x2))


def logical_or(x1, x2, /):
    """Tests if one is true. A number is true if it is not 0."""
    return bitwise_or(_truth(x1), _truth(x2))


def logical_xor(x1, x2, /):
    """Tests if exactly one is true. A number is true if it is not 0."""
    return bitwise_xor(_truth(x1), _truth(x2))


def logical_not(x, /):
    """Tests if elements are false. A number is true if it is not 0."""
    return _op("not", _truth(_array(x, "logical_not")))


def _extreme(operation, name, doc):
    def function(x1, x2, /):
        (x, y), dtype = operands(x1, x2)
        if dtype.kind == "b":
            return _op("&" if operation == "min" else "|", x, y)
        if dtype.kind == "c":
            raise TypeError(f"`{name}` of complex numbers, which have no order")
        best = _op(operation, x, y)
        if not is_float(dtype):
            return best
        # The engine prefers numbers to NaN, the standard NaN to numbers.
        best = where(_op("!=", y, y, dtype=bool_dtype), y, best)
        return where(_op("!=", x, x, dtype=bool_dtype), x, best)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


maximum = _extreme("max", "maximum", "Returns the greater of two elements; NaN if one is NaN.")
minimum = _extreme("min", "minimum", "Returns the lesser of two elements; NaN if one is NaN.")


def clip(x, /, min=None, max=None):
    """Clamps elements to a range. The data type is that of `x`."""
    _kind("clip", _array(x, "clip")._dtype, "iuf", "numbers")
    result = x
    for bound, function in ((min, maximum), (max, minimum)):
        if bound is not None:
            if isinstance(bound, float) and x._dtype.kind in "iu":
                raise TypeError(f"`clip` of {x._dtype} to the float {bound}")
            if isinstance(bound, int) and x._dtype.kind in "iu":
                info = _dtypes.iinfo(x._dtype)
                if not info.min <= bound <= info.max:
                    if (bound > info.max) == (function is minimum):
                        continue
                    bound = info.max if bound > info.max else info.min
            result = function(result, bound)
    result = cast(result, x._dtype)
    if result is not x:
        return result
    return x.copy()


def where(condition, x1, x2, /):
    """Selects x1 where a condition is true, otherwise x2."""
    if not isinstance(condition, Array):
        from ._creation import asarray

        condition = asarray(condition)
    if isinstance(x1, Array) or isinstance(x2, Array):
        (x, y), dtype = operands(x1, x2)
    else:
        dtype = _dtypes.result_type(x1, x2)
        x, y = scalar(x1, dtype, condition._device), scalar(x2, dtype, condition._device)
    node = _core.elementwise(_NUMBER["select"], [_truth(condition)._node, x._node, y._node])
    return made(node, dtype, condition._device)


def abs(x, /):
    """Returns the absolute values."""
    _kind("abs", _array(x, "abs")._dtype, "iufc", "numbers")
    if x._dtype.kind == "c":
        return _op("abs", x, dtype=_dtypes.real_of(x._dtype))
    return x if x._dtype.kind == "u" else _op("abs", x)


def negative(x, /):
    """Returns the negated elements."""
    _kind("negative", _array(x, "negative")._dtype, "iufc", "numbers")
    return _op("-", _constant(0, x), x) if x._dtype.kind == "u" else _op("neg", x)


def positive(x, /):
    """Returns the elements."""
    _kind("positive", _array(x, "positive")._dtype, "iufc", "numbers")
    return x.copy()


def square(x, /):
    """Returns the squares."""
    return multiply(_array(x, "square"), x)


def reciprocal(x, /):
    """Returns 1 / x."""
    _kind("reciprocal", _array(x, "reciprocal")._dtype, "fc", "floats")
    return _op("/", _constant(1.0, x), x)


def sign(x, /):
    """Returns -1, 0 or 1; NaN for NaN."""
    _kind("sign", _array(x, "sign")._dtype, "iufc", "numbers")
    if x._dtype.kind == "c":
        return _complex.sign(x)
    zero = _constant(0, x)
    positive_one = _constant(1, x)
    result = x if x._dtype.kind == "u" else where(less(x, zero), _constant(-1, x), x)
    result = where(equal(x, zero), zero, result) if is_float(x._dtype) else result
    return where(greater(x, zero), positive_one, result)


def signbit(x, /):
    """Tests if the sign bit is set."""
    _kind("signbit", _array(x, "signbit")._dtype, "f", "floats")
    bits = _bits(x)
    return less(bits, _constant(0, bits))


def _bits(x) -> Array:
    dtype = _dtypes.checked(f"int{x._dtype.itemsize * 8}")
    return made(_core.bitcast(x._node, _dtypes.name_of(dtype)), dtype, x._device, x._shape_known)


def nextafter(x1, x2, /):
    """Returns the floats next to x1 in the direction of x2."""
    (x, y), dtype = operands(x1, x2)
    _kind("nextafter", dtype, "f", "floats")
    bits, zero = _bits(x), _constant(0.0, x)
    one = _constant(1, bits)
    away = not_equal(less(x, y), less(x, zero))
    moved = where(away, add(bits, one), subtract(bits, one))
    moved = made(_core.bitcast(moved._node, _dtypes.name_of(dtype)), dtype, x._device)
    least = _constant(1, bits)
    least = made(_core.bitcast(least._node, _dtypes.name_of(dtype)), dtype, x._device)
    moved = where(equal(x, zero), _op("copysign", least, y), moved)
    moved = where(equal(x, y), y, moved)
    return where(logical_or(isnan(x), isnan(y)), _op("+", x, y), moved)


def _falses(x) -> Array:
    return made(_core.fill(x._device._context, x.shape, "bool", False), bool_dtype, x._device, x.shape)


def isnan(x, /):
    """Tests elements for NaN; a complex number if one of its parts is."""
    _kind("isnan", _array(x, "isnan")._dtype, "iufc", "numbers")
    if x._dtype.kind == "c":
        a, b = _complex.parts(x)
        return isnan(a) | isnan(b)
    return _op("!=", x, x, dtype=bool_dtype) if is_float(x._dtype) else _falses(x)


def isinf(x, /):
    """Tests if elements are infinite; a complex number if one of its parts is."""
    _kind("isinf", _array(x, "isinf")._dtype, "iufc", "numbers")
    if x._dtype.kind == "c":
        a, b = _complex.parts(x)
        return isinf(a) | isinf(b)
    return equal(_op("abs", x), _constant(math.inf, x)) if is_float(x._dtype) else _falses(x)


def isfinite(x, /):
    """Tests if elements are neither infinite nor NaN."""
    _kind("isfinite", _array(x, "isfinite")._dtype, "iufc", "numbers")
    if x._dtype.kind == "c":
        a, b = _complex.parts(x)
        return isfinite(a) & isfinite(b)
    return less(_op("abs", x), _constant(math.inf, x)) if is_float(x._dtype) else logical_not(_falses(x))


def real(x, /):
    """Returns the real part; of real numbers, the array."""
    _kind("real", _array(x, "real")._dtype, "iufc", "numbers")
    return _complex.parts(x)[0] if x._dtype.kind == "c" else x


def imag(x, /):
    """Returns the imaginary part; zeros for real numbers."""
    _kind("imag", _array(x, "imag")._dtype, "iufc", "numbers")
    return _complex.parts(x)[1] if x._dtype.kind == "c" else zeros_as(x)


def conj(x, /):
    """Returns the complex conjugate; of real numbers, the array."""
    _kind("conj", _array(x, "conj")._dtype, "iufc", "numbers")
    if x._dtype.kind != "c":
        return x
    a, b = _complex.parts(x)
    return _complex.pair(a, negative(b))


def angle(x, /):
    """Returns the angles of complex numbers in radians."""
    _kind("angle", _array(x, "angle")._dtype, "iufc", "numbers")
    return atan2(imag(x), real(x)) if x._dtype.kind == "c" else atan2(zeros_as(x), x)


from . import _complex  # noqa: E402  (it is made of the functions above)
