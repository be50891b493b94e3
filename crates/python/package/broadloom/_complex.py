"""Elementary functions of complex numbers, composed of those of their parts.

A complex array is one array of pairs in memory, as NumPy's. Its parts are views; the planner fuses the operations on
both parts into one kernel. Branch cuts and special values are those of C99 Annex G, which the standard names.
"""

from __future__ import annotations

import math

from . import _core, _dtypes, _elementwise as el
from ._array import Array, made

_LN2 = math.log(2.0)


def parts(z) -> tuple[Array, Array]:
    """Returns the real and the imaginary part."""
    dtype = _dtypes.real_of(z._dtype)
    lanes = (_core.lane(z._node, part) for part in (0, 1))
    real, imaginary = (made(lane, dtype, z._device, z._shape_known) for lane in lanes)
    return real, imaginary


def pair(real, imaginary) -> Array:
    """Returns complex numbers with these parts."""
    dtype = _dtypes.complex_of(real._dtype)
    return made(_core.pair(real._node, imaginary._node), dtype, real._device)


def _times_i(z):
    a, b = parts(z)
    return pair(-b, a)


def _over_i(z):
    a, b = parts(z)
    return pair(b, -a)


def _where(condition, z, w):
    return made(_core.elementwise(el._NUMBER["select"], [condition._node, z._node, w._node]), z._dtype, z._device)


def _zero_times(zero_safe, factor):
    """Returns a product in which a second factor of 0 gives 0, also for infinite first factors."""
    return el.where(factor == 0, factor, zero_safe * factor)


def exp(z):
    a, b = parts(z)
    size = el.exp(a)
    real, imaginary = size * el.cos(b), _zero_times(size, el.sin(b))
    is_free = el.logical_not(el.isfinite(b))
    vanishes = (a == -math.inf) & is_free
    real = el.where(vanishes, 0.0, el.where((a == math.inf) & is_free, a, real))
    imaginary = el.where(b == 0, b, el.where(vanishes, 0.0, imaginary))
    return pair(real, imaginary)


def expm1(z):
    a, b = parts(z)
    half = el.sin(b * 0.5)
    grown = el.expm1(a)
    real = grown * el.cos(b) - 2.0 * half * half
    is_free = el.logical_not(el.isfinite(b))
    real = el.where((el.isinf(grown) & (b == 0)) | (el.isinf(a) & is_free), grown, real)
    real = el.where((a == 0) & (b == 0), 0.0, real)
    imaginary = _zero_times(el.exp(a), el.sin(b))
    return pair(real, el.where((a == -math.inf) & is_free, 0.0, imaginary))


def _log_size(a, b):
    """Returns the logarithm of the absolute value, exact near 1."""
    size = el.hypot(a, b)
    large, small = el.maximum(el.abs(a), el.abs(b)), el.minimum(el.abs(a), el.abs(b))
    near = 0.5 * el.log1p((large - 1.0) * (large + 1.0) + small * small)
    is_near = (size > 0.71) & (size < 1.73)
    scaled = el.log(el.hypot(a * 0.25, b * 0.25)) + 2.0 * _LN2
    return el.where(is_near, near, el.where(el.isinf(size) & el.isfinite(large), scaled, el.log(size)))


def log(z):
    a, b = parts(z)
    return pair(_log_size(a, b), el.atan2(b, a))


def log1p(z):
    a, b = parts(z)
    near = 0.5 * el.log1p(a * (a + 2.0) + b * b)
    is_near = (el.abs(a) < 0.5) & (el.abs(b) < 0.5)
    return pair(el.where(is_near, near, _log_size(a + 1.0, b)), el.atan2(b, a + 1.0))


def _scaled_log(base):
    def function(z):
        a, b = parts(log(z))
        return pair(a / base, b / base)

    return function


log2, log10 = _scaled_log(_LN2), _scaled_log(math.log(10.0))


def sqrt(z):
    a, b = parts(z)
    largest = el.maximum(el.abs(a), el.abs(b))
    info = _dtypes.finfo(a._dtype)
    huge, tiny = largest > info.max / 8, largest < info.smallest_normal * 2.0 / info.eps
    down, up = 1.0 / 16, float(4.0 ** (int(-math.log2(info.eps)) // 2 + 2))
    one = el.zeros_as(a) + 1.0
    factor = el.where(huge, down, el.where(tiny, up, one))
    back = el.where(huge, 4.0, el.where(tiny, up ** -0.5, one))
    x, y = a * factor, b * factor
    root = el.sqrt((el.abs(x) + el.hypot(x, y)) * 0.5)
    other = el.where(root == 0, root, el.abs(y) / (2.0 * root))
    is_left = el.signbit(x)
    real = el.where(is_left, other, root) * back
    imaginary = el.copysign(el.where(is_left, root, other) * back, b)
    infinite = el.isinf(b)
    real = el.where(infinite, el.abs(b), el.where(el.isinf(a), el.where(is_left, el.where(el.isnan(b), b, 0.0), a), real))
    imaginary = el.where(infinite, b, el.where(el.isinf(a), el.where(is_left, el.copysign(el.abs(a), b), el.copysign(b * 0.0, b)), imaginary))
    return pair(real, imaginary)


def sinh(z):
    a, b = parts(z)
    real = _zero_times(el.cos(b), el.sinh(a))
    real = el.where(el.isinf(a) & el.logical_not(el.isfinite(b)), a, real)
    return pair(real, _zero_times(el.cosh(a), el.sin(b)))


def cosh(z):
    a, b = parts(z)
    sine, rise = el.sin(b), el.sinh(a)
    is_negative = el.not_equal(el.signbit(rise), el.signbit(sine))
    nothing = el.where(is_negative, -0.0, el.zeros_as(a))
    imaginary = el.where((b == 0) | (rise == 0), nothing, rise * sine)
    real = el.where(el.isinf(a) & el.logical_not(el.isfinite(b)), el.abs(a), el.cosh(a) * el.cos(b))
    return pair(real, imaginary)


def tanh(z):
    a, b = parts(z)
    tangent, rise = el.tan(b), el.sinh(a)
    beta = 1.0 + tangent * tangent
    rho = el.sqrt(1.0 + rise * rise)
    under = 1.0 + beta * rise * rise
    small = 2.0 * el.exp(-el.abs(a))
    is_far = el.abs(a) > 20.0
    is_free = el.logical_not(el.isfinite(b))
    real = el.where(is_far, el.copysign(1.0, a), beta * rho * rise / under)
    real = el.where(is_free & (a == 0), a, el.where(is_free & el.isfinite(a), math.nan, real))
    far = el.where(el.isfinite(b), small * small * el.sin(b) * el.cos(b), b * 0.0)
    imaginary = el.where(is_far, el.where(el.isinf(a), el.copysign(0.0, b), far), tangent / under)
    # The tangent of an infinite slope: 1 / tan(b) is 0.
    return pair(real, el.where(b == 0, b, imaginary))


def sin(z):
    return _over_i(sinh(_times_i(z)))


def cos(z):
    return cosh(_times_i(z))


def tan(z):
    return _over_i(tanh(_times_i(z)))


def _is_large(a, b):
    limit = _dtypes.finfo(a._dtype).max / 4
    return (el.abs(a) > limit) | (el.abs(b) > limit)


def acos(z):
    a, b = parts(z)
    (left, left_i), (right, right_i) = parts(sqrt(pair(1.0 - a, -b))), parts(sqrt(pair(1.0 + a, b)))
    real = 2.0 * el.atan2(left, right)
    imaginary = el.asinh(right * left_i - right_i * left)
    large = _is_large(a, b)
    size = el.log(el.hypot(a * 0.5, b * 0.5)) + 2.0 * _LN2
    real = el.where((a == 0) & el.isnan(b), math.pi / 2, real)
    return pair(el.where(large, el.atan2(el.abs(b), a), real), el.where(large, el.copysign(size, -b), imaginary))


def acosh(z):
    a, b = parts(z)
    (left, left_i), (right, right_i) = parts(sqrt(pair(a - 1.0, b))), parts(sqrt(pair(a + 1.0, b)))
    real = el.asinh(left * right + left_i * right_i)
    imaginary = 2.0 * el.atan2(left_i, right)
    large = _is_large(a, b)
    size = el.log(el.hypot(a * 0.5, b * 0.5)) + 2.0 * _LN2
    imaginary = el.where((a == 0) & el.isnan(b), math.pi / 2, imaginary)
    return pair(el.where(large, size, real), el.where(large, el.atan2(b, a), imaginary))


def asinh(z):
    a, b = parts(z)
    (left, left_i), (right, right_i) = parts(sqrt(pair(1.0 + b, -a))), parts(sqrt(pair(1.0 - b, a)))
    real = el.asinh(left * right_i - right * left_i)
    imaginary = el.where(el.isnan(a) & (b == 0), b, el.atan2(b, left * right - left_i * right_i))
    large = _is_large(a, b)
    size = el.log(el.hypot(a * 0.5, b * 0.5)) + 2.0 * _LN2
    real = el.where(large, el.copysign(size, a), real)
    return pair(real, el.where(large, el.copysign(el.atan2(el.abs(b), el.abs(a)), b), imaginary))


def asin(z):
    return _over_i(asinh(_times_i(z)))


def atanh(z):
    a, b = parts(z)
    x, y = el.abs(a), b
    limit = _dtypes.finfo(a._dtype).max ** 0.5 / 2
    large = (x > limit) | (el.abs(y) > limit)
    down = 1.0 - x
    real = 0.25 * el.log1p(4.0 * x / (down * down + y * y))
    imaginary = 0.5 * el.atan2(2.0 * y, down * (1.0 + x) - y * y)
    half = el.hypot(x * 0.5, y * 0.5)
    far = el.where(el.isinf(x) | el.isinf(y), 0.0, x / 4.0 / half / half)
    real = el.where(large, far, real)
    at_pole = (x == 1.0) & (y == 0.0)
    real = el.where(at_pole, math.inf, el.where((x == 0) & el.isnan(b), x, real))
    imaginary = el.where(at_pole, y, el.where(large, el.copysign(math.pi / 2, y), imaginary))
    return pair(el.copysign(real, a), el.where(el.isnan(b), b, imaginary))


def atan(z):
    return _over_i(atanh(_times_i(z)))


def sign(z):
    a, b = parts(z)
    size = el.hypot(a, b)
    return pair(el.where(size == 0, 0.0, a / size), el.where(size == 0, 0.0, b / size))


def power(z, w):
    """Returns powers as exp(w log z); a power of 0 is 0, or 1 if the exponent is 0."""
    result = exp(w * log(z))
    (a, b), (c, d) = parts(z), parts(w)
    nothing, one = el.zeros_as(a), el.zeros_as(a) + 1.0
    is_zero, is_plain = (a == 0) & (b == 0), (c == 0) & (d == 0)
    result = _where(is_zero & (c > 0), pair(nothing, nothing), result)
    return _where(is_plain, pair(one, nothing), result)


FUNCTIONS = {
    function.__name__: function
    for function in (exp, expm1, log, log1p, sqrt, sin, cos, tan, sinh, cosh, tanh, asin, acos, atan, asinh, acosh, atanh)
} | {"log2": log2, "log10": log10}
