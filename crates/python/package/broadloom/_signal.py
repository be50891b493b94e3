"""Lines of samples with NumPy's names: convolution, interpolation, differences, integrals."""

from __future__ import annotations

import math

import numpy as np

from . import _core, _dtypes
from ._array import Array, axes_of, axis_of, cast, like, operands, reshaped
from ._creation import asarray, positions
from ._elementwise import conj, isnan, less, maximum, minimum, where
from ._manipulation import concat, diff, flip
from ._reductions import cumulative_sum, sum
from ._search import searchsorted

# Kernels with at least this many samples are applied by Fourier transforms.
_LONG = 512


def _line(name, x) -> Array:
    x = x if isinstance(x, Array) else asarray(x)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"`{name}` of an array of shape {x.shape}: a line with elements is needed")
    return x


def _full_product(a, v) -> Array:
    """Returns all sums of products of two lines, the second one reversed and moved along the first."""
    count, inner = a.size + v.size - 1, v.size
    if inner >= _LONG and a.dtype.kind in "fc":
        from . import fft

        size = 1 << (count - 1).bit_length()
        if a.dtype.kind == "c":
            return fft.ifft(fft.fft(a, n=size) * fft.fft(v, n=size))[:count]
        return cast(fft.irfft(fft.rfft(a, n=size) * fft.rfft(v, n=size), n=size)[:count], a.dtype)
    at, tap = positions((count, inner), 0, a.device), positions((count, inner), 1, a.device)
    shifted = like(_core.gather(a._node, [(at - tap)._node], 0), a, (count, inner))
    return sum(shifted * reshaped(v, (1, inner)), axis=1, dtype=a.dtype)


def _cut(full, longer, shorter, mode, name) -> Array:
    if mode == "full":
        return full
    if mode == "same":
        start = (shorter - 1) // 2
        return full[start : start + longer]
    if mode == "valid":
        return full[shorter - 1 : longer]
    raise ValueError(f"`{name}` with the mode {mode!r}; there is full, same, valid")


def convolve(a, v, /, mode="full") -> Array:
    """Returns the convolution of two lines. `mode` is "full", "same" or "valid", as in NumPy.

    >>> bl.convolve(bl.asarray([1.0, 2.0, 3.0]), bl.asarray([0.5, 0.5]))
    Array([0.5, 1.5, 2.5, 1.5])
    """
    (a, v), _ = operands(_line("convolve", a), _line("convolve", v))
    a, v = (v, a) if v.size > a.size else (a, v)
    return _cut(_full_product(a, v), a.size, v.size, mode, "convolve")


def correlate(a, v, /, mode="valid") -> Array:
    """Returns the cross-correlation of two lines. `mode` is "full", "same" or "valid", as in NumPy."""
    (a, v), _ = operands(_line("correlate", a), _line("correlate", v))
    if v.size > a.size:
        return flip(conj(correlate(v, a, mode)))
    return _cut(_full_product(a, flip(conj(v))), a.size, v.size, mode, "correlate")


def interp(x, xp, fp, /, left=None, right=None, period=None) -> Array:
    """Interpolates between points (xp, fp), of which xp rises. Beyond the ends, values are constant.

    >>> bl.interp(bl.asarray([0.5, 1.5, 9.0]), bl.asarray([0.0, 1.0, 2.0]), bl.asarray([0.0, 10.0, 20.0]))
    Array([ 5., 15., 20.])
    """
    xp, fp = _line("interp", xp), _line("interp", fp)
    x = x if isinstance(x, Array) else asarray(x, device=xp.device)
    if xp.size != fp.size:
        raise ValueError(f"`interp`: {xp.size} places and {fp.size} values")
    x, xp = cast(x, _dtypes.float64), cast(xp, _dtypes.float64)
    fp = fp if fp.dtype.kind == "c" else cast(fp, _dtypes.float64)
    if period is not None:
        if period == 0:
            raise ValueError("`interp` with a period of 0")
        period = abs(float(period))
        from ._reductions import argsort

        x, xp = x % period, xp % period
        order = argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
        left = right = None
    shape = x.shape
    flat = reshaped(x, (x.size,))
    at = searchsorted(xp, flat, side="right") - 1
    low = minimum(maximum(at, 0), max(xp.size - 2, 0))

    def taken(line, index):
        return like(_core.gather(line._node, [index._node], "clamp"), line, index.shape)

    start, end = taken(xp, low), taken(xp, low + 1)
    first, last = taken(fp, low), taken(fp, low + 1)
    width = where(end == start, 1.0, end - start)
    result = first + (last - first) * ((flat - start) / width)
    result = where(flat == start, first, result)
    result = where(flat < xp[0], fp[0] if left is None else left, result)
    result = where(flat > xp[-1], fp[-1] if right is None else right, result)
    result = where(flat == xp[-1], fp[-1], result)
    return reshaped(where(isnan(flat), float("nan"), result), shape)


def _part(x, axis, start, stop) -> Array:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def gradient(x, /, *spacing, axis=None, edge_order=1):
    """Returns the slopes along axes by central differences, one array for each axis.

    A spacing is a number, or the coordinates along an axis.
    """
    x = x if isinstance(x, Array) else asarray(x)
    x = x if x.dtype.kind in "fc" else cast(x, _dtypes.DEFAULT_FLOAT)
    axes = axes_of(axis, x.ndim)
    if len(spacing) not in (0, 1, len(axes)):
        raise TypeError(f"`gradient` along {len(axes)} axes with {len(spacing)} spacings")
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing or (1.0,) * len(axes)
    if edge_order not in (1, 2):
        raise ValueError(f"`gradient` with an edge order of {edge_order}; 1 and 2 are possible")
    results = [_slope(x, at, step, edge_order) for at, step in zip(axes, spacing)]
    return results[0] if len(results) == 1 else results


def _slope(x, axis, step, order) -> Array:
    count = x.shape[axis]
    if count <= order:
        raise ValueError(f"`gradient` along an axis of {count} elements: {order + 1} are needed")
    steps = np.asarray(step, np.float64)
    if steps.ndim > 1 or steps.ndim == 1 and steps.size != count:
        raise ValueError(f"`gradient`: {steps.size} coordinates for an axis of {count} elements")
    widths = np.diff(steps) if steps.ndim else None
    equal = widths is None or np.all(widths == widths[0])
    width = float(steps) if widths is None else float(widths[0])
    before, here, behind = _part(x, axis, 0, -2), _part(x, axis, 1, -1), _part(x, axis, 2, None)
    if equal:
        inner = (behind - before) / (2.0 * width)
    else:
        shape = [1] * x.ndim
        shape[axis] = count - 2
        down, up = widths[:-1], widths[1:]
        factors = (-up / (down * (down + up)), (up - down) / (down * up), down / (up * (down + up)))
        factors = [cast(asarray(factor.reshape(shape), device=x.device), _dtypes.real_of(x.dtype)) for factor in factors]
        inner = factors[0] * before + factors[1] * here + factors[2] * behind
    first = lambda index: _part(x, axis, index, index + 1 or None)  # noqa: E731
    low, high = (width, width) if equal else (float(widths[0]), float(widths[-1]))
    if order == 1:
        start, end = (first(1) - first(0)) / low, (first(-1) - first(-2)) / high
    elif equal:
        start = (-1.5 * first(0) + 2.0 * first(1) - 0.5 * first(2)) / width
        end = (0.5 * first(-3) - 2.0 * first(-2) + 1.5 * first(-1)) / width
    else:
        a, b = float(widths[0]), float(widths[1])
        start = -(2 * a + b) / (a * (a + b)) * first(0) + (a + b) / (a * b) * first(1) - a / (b * (a + b)) * first(2)
        a, b = float(widths[-2]), float(widths[-1])
        end = b / (a * (a + b)) * first(-3) - (b + a) / (a * b) * first(-2) + (2 * b + a) / (b * (a + b)) * first(-1)
    return concat([start, inner, end], axis=axis)


def trapezoid(y, x=None, /, dx=1.0, axis=-1) -> Array:
    """Integrates along an axis by the trapezoidal rule."""
    y = y if isinstance(y, Array) else asarray(y)
    y = y if y.dtype.kind in "fc" else cast(y, _dtypes.DEFAULT_FLOAT)
    axis = axis_of(axis, y.ndim)
    width = dx
    if x is not None:
        x = x if isinstance(x, Array) else asarray(x, device=y.device)
        width = diff(x, axis=axis if x.ndim > 1 else 0)
        if x.ndim == 1:
            width = reshaped(width, tuple(width.size if at == axis else 1 for at in range(y.ndim)))
    return sum((_part(y, axis, 1, None) + _part(y, axis, 0, -1)) * 0.5 * width, axis=axis)


def ediff1d(x, /) -> Array:
    """Returns the differences of neighbours of all elements as one line."""
    x = x if isinstance(x, Array) else asarray(x)
    return diff(reshaped(x, (x.size,)))


def unwrap(x, /, *, discont=None, axis=-1, period=2 * math.pi) -> Array:
    """Adds multiples of a period so that neighbours differ by half of it at most."""
    x = x if isinstance(x, Array) else asarray(x)
    x = x if x.dtype.kind == "f" else cast(x, _dtypes.DEFAULT_FLOAT)
    axis = axis_of(axis, x.ndim)
    half = period / 2.0
    steps = diff(x, axis=axis)
    near = (steps + half) % period - half
    near = where((near == -half) & (steps > 0), half, near)
    change = near - steps
    limit = half if discont is None else max(half, float(discont))
    from ._elementwise import abs as absolute

    change = where(less(absolute(steps), limit), 0.0, change)
    return concat([_part(x, axis, 0, 1), _part(x, axis, 1, None) + cumulative_sum(change, axis=axis)], axis=axis)


def sinc(x, /) -> Array:
    """Returns sin(pi x) / (pi x), and 1 for 0."""
    from ._elementwise import divide, sin

    x = x if isinstance(x, Array) else asarray(x)
    angle = x * math.pi
    return where(angle == 0, 1.0, divide(sin(angle), where(angle == 0, 1.0, angle)))


def vander(x, n=None, /, *, increasing=False) -> Array:
    """Returns the matrix of the powers of the elements of a line."""
    x = _line("vander", x)
    n = x.size if n is None else n
    powers = positions((1, n), 1, x.device)
    powers = powers if increasing else n - 1 - powers
    return reshaped(x, (x.size, 1)) ** cast(powers, x.dtype)


def polyval(p, x, /) -> Array:
    """Returns the values of a polynomial; the highest coefficient comes first."""
    p = p if isinstance(p, Array) else asarray(p)
    x = x if isinstance(x, Array) else asarray(x, device=p.device)
    result = x * 0
    for at in range(p.shape[0]):
        result = result * x + p[at]
    return result
