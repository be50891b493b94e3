"""Discrete Fourier transforms of any length along any axes. They are computed on the host, by NumPy."""

from __future__ import annotations

import numpy as np

from . import _dtypes
from ._array import Array, axes_of, axis_of, cast, from_host
from ._creation import arange
from ._manipulation import roll


def _host(name, x, **options) -> Array:
    """Computes a transform by NumPy. The results go to the device of the array."""
    if not isinstance(x, Array):
        raise TypeError(f"`{name}` takes an array, not `{type(x).__name__}`")
    if x.dtype.kind not in "fc":
        x = cast(x, _dtypes.DEFAULT_FLOAT)
    elif x.dtype == _dtypes.float16:
        x = cast(x, _dtypes.float32)
    return from_host(getattr(np.fft, name)(np.asarray(x), **options), x.device)


def _real(name, x):
    if isinstance(x, Array) and x.dtype.kind == "c":
        raise TypeError(f"`{name}` takes real numbers, not {x.dtype}")


def _along(name, x, n, axis, norm) -> Array:
    if isinstance(x, Array):
        axis_of(axis, x.ndim)
    if n is not None and n < 1:
        raise ValueError(f"`{name}` of {n} elements")
    return _host(name, x, n=n, axis=axis, norm=norm)


def _over(name, x, s, axes, norm) -> Array:
    if isinstance(x, Array) and axes is not None:
        axes = axes_of(tuple(axes), x.ndim)
    if s is not None and axes is None:
        axes = tuple(range(x.ndim - len(s), x.ndim))
    return _host(name, x, s=s, axes=axes, norm=norm)


def fft(x, /, *, n=None, axis=-1, norm="backward") -> Array:
    """Returns the discrete Fourier transform along an axis."""
    return _along("fft", x, n, axis, norm)


def ifft(x, /, *, n=None, axis=-1, norm="backward") -> Array:
    """Returns the inverse of `fft`."""
    return _along("ifft", x, n, axis, norm)


def rfft(x, /, *, n=None, axis=-1, norm="backward") -> Array:
    """Returns the transform of real numbers along an axis: the half that is not redundant."""
    _real("rfft", x)
    return _along("rfft", x, n, axis, norm)


def irfft(x, /, *, n=None, axis=-1, norm="backward") -> Array:
    """Returns the inverse of `rfft`: real numbers."""
    return _along("irfft", x, n, axis, norm)


def hfft(x, /, *, n=None, axis=-1, norm="backward") -> Array:
    """Returns the transform of a Hermitian line, of which the first half is given: real numbers."""
    return _along("hfft", x, n, axis, norm)


def ihfft(x, /, *, n=None, axis=-1, norm="backward") -> Array:
    """Returns the inverse of `hfft`."""
    _real("ihfft", x)
    return _along("ihfft", x, n, axis, norm)


def fftn(x, /, *, s=None, axes=None, norm="backward") -> Array:
    """Returns the discrete Fourier transform along several axes, by default all."""
    return _over("fftn", x, s, axes, norm)


def ifftn(x, /, *, s=None, axes=None, norm="backward") -> Array:
    """Returns the inverse of `fftn`."""
    return _over("ifftn", x, s, axes, norm)


def rfftn(x, /, *, s=None, axes=None, norm="backward") -> Array:
    """Returns the transform of real numbers along several axes; the last one has the half that is not redundant."""
    _real("rfftn", x)
    return _over("rfftn", x, s, axes, norm)


def irfftn(x, /, *, s=None, axes=None, norm="backward") -> Array:
    """Returns the inverse of `rfftn`: real numbers."""
    return _over("irfftn", x, s, axes, norm)


def fft2(x, /, *, s=None, axes=(-2, -1), norm="backward") -> Array:
    """Returns the transform of images: along the last two axes."""
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x, /, *, s=None, axes=(-2, -1), norm="backward") -> Array:
    """Returns the inverse of `fft2`."""
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x, /, *, s=None, axes=(-2, -1), norm="backward") -> Array:
    """Returns the transform of real images."""
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x, /, *, s=None, axes=(-2, -1), norm="backward") -> Array:
    """Returns the inverse of `rfft2`."""
    return irfftn(x, s=s, axes=axes, norm=norm)


def fftfreq(n, /, *, d=1.0, dtype=None, device=None) -> Array:
    """Returns the frequencies of the elements of `fft` for samples at a distance of `d`."""
    dtype = _dtypes.DEFAULT_FLOAT if dtype is None else _dtypes.checked(dtype)
    at = arange(n, dtype=_dtypes.int64, device=device)
    half = (n - 1) // 2 + 1
    return cast((at - n * cast(at >= half, _dtypes.int64)) / (n * d), dtype)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None) -> Array:
    """Returns the frequencies of the elements of `rfft` for samples at a distance of `d`."""
    dtype = _dtypes.DEFAULT_FLOAT if dtype is None else _dtypes.checked(dtype)
    return cast(arange(n // 2 + 1, dtype=_dtypes.int64, device=device) / (n * d), dtype)


def fftshift(x, /, *, axes=None) -> Array:
    """Moves the frequency 0 to the middle."""
    axes = axes_of(tuple(axes) if isinstance(axes, (tuple, list)) else axes, x.ndim)
    return roll(x, tuple(x.shape[axis] // 2 for axis in axes), axis=axes) if axes else x


def ifftshift(x, /, *, axes=None) -> Array:
    """Returns the inverse of `fftshift`."""
    axes = axes_of(tuple(axes) if isinstance(axes, (tuple, list)) else axes, x.ndim)
    return roll(x, tuple(-(x.shape[axis] // 2) for axis in axes), axis=axes) if axes else x
