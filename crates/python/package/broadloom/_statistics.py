"""Statistics with NumPy's names: order statistics, functions that ignore NaN, histograms, covariance."""

from __future__ import annotations

import builtins
import math

import numpy as np

from . import _core, _dtypes
from ._array import Array, axes_of, cast, like, made, permuted, reshaped, stretched
from ._creation import asarray, full, positions, zeros
from ._elementwise import abs as absolute, conj, divide, floor, isnan, multiply, sqrt, subtract, where
from ._reductions import argmax, argmin, cumulative_prod, cumulative_sum, max, mean, min, prod, sort, sum
from ._search import searchsorted
from .linalg import matmul


def _as_array(x) -> Array:
    return x if isinstance(x, Array) else asarray(x)


def _floating(x) -> Array:
    x = _as_array(x)
    return x if x.dtype.kind in "fc" else cast(x, _dtypes.DEFAULT_FLOAT)


def _one_axis(x, axis):
    """Returns an array whose last axis has the elements along some axes, and the axes."""
    axes = axes_of(axis, x.ndim)
    rest = tuple(at for at in range(x.ndim) if at not in axes)
    turned = permuted(x, (*rest, *axes))
    count = math.prod(x.shape[at] for at in axes)
    return reshaped(turned, (*(x.shape[at] for at in rest), count)), axes


def _picked(rows, index) -> Array:
    """Returns the elements of the last axis at indices, which are not checked."""
    shape = index.shape
    at = [positions(shape, axis, rows.device)._node for axis in range(rows.ndim - 1)]
    return like(_core.gather(rows._node, [*at, index._node], "clamp"), rows, shape)


_METHODS = {
    # The position of a quantile q among n sorted elements, from 0: q * (n + a) + b.
    "linear": (-1.0, 0.0), "lower": (-1.0, 0.0), "higher": (-1.0, 0.0), "nearest": (-1.0, 0.0), "midpoint": (-1.0, 0.0),
    "weibull": (1.0, -1.0), "hazen": (0.0, -0.5), "median_unbiased": (1 / 3, -2 / 3), "normal_unbiased": (0.25, -0.625),
    "interpolated_inverted_cdf": (0.0, -1.0),
}


def _quantiles(name, x, q, axis, method, keepdims, skips_nan) -> Array:
    if method not in _METHODS:
        raise ValueError(f"`{name}` with the method {method!r}; there is {', '.join(_METHODS)}")
    x = _floating(x)
    if x.dtype.kind == "c":
        raise TypeError(f"`{name}` of complex numbers, which have no order")
    fractions = np.asarray(q, np.float64)
    if fractions.size and not (0 <= fractions.min() and fractions.max() <= 1):
        raise ValueError(f"`{name}` at a fraction outside of the range 0 to 1")
    rows, axes = _one_axis(x, axis)
    if rows.shape[-1] == 0:
        raise ValueError(f"`{name}` of no elements: the array has shape {x.shape}")
    rows = sort(rows, axis=-1)
    length = rows.shape[-1]
    count = float(length)
    is_bad = isnan(rows[..., -1:])
    if skips_nan:
        count = cast(length - sum(cast(isnan(rows), _dtypes.int64), axis=-1, keepdims=True), _dtypes.float64)
        is_bad = count == 0
    spread, offset = _METHODS[method]
    line = asarray(fractions.reshape(-1), device=x.device)
    last = count - 1.0
    place = line * (count + spread) + offset
    place = where(place < 0.0, 0.0, place)
    place = where(place > last, last, place)
    if method == "lower":
        place = floor(place)
    elif method == "higher":
        place = -floor(-place)
    elif method == "nearest":
        from ._elementwise import round

        place = round(place)
    down = floor(place)
    part = place - down
    if method == "midpoint":
        part = where(part == 0.0, 0.0, 0.5)
    shape = (*rows.shape[:-1], line.shape[0])
    low = stretched(cast(down, _dtypes.int64), shape)
    below, above = _picked(rows, low), _picked(rows, stretched(cast(-floor(-place), _dtypes.int64), shape))
    part = stretched(cast(part, x.dtype), shape)
    result = where(part >= 0.5, above - (above - below) * (1.0 - part), below + (above - below) * part)
    result = where(part == 0.0, below, result)
    result = where(stretched(is_bad, shape), float("nan"), result)
    result = permuted(result, (result.ndim - 1, *range(result.ndim - 1)))
    kept = tuple(1 if at in axes else extent for at, extent in enumerate(x.shape) if keepdims or at not in axes)
    return reshaped(result, fractions.shape + kept)


def quantile(x, q, /, *, axis=None, method="linear", keepdims=False) -> Array:
    """Returns the quantiles of elements along axes. `q` is a number from 0 to 1, or several.

    >>> bl.quantile(bl.asarray([1.0, 2.0, 4.0]), 0.5)
    Array(2.)
    """
    return _quantiles("quantile", x, q, axis, method, keepdims, False)


def percentile(x, q, /, *, axis=None, method="linear", keepdims=False) -> Array:
    """Returns the percentiles of elements along axes: the quantiles at q / 100."""
    return _quantiles("percentile", x, np.asarray(q, np.float64) / 100.0, axis, method, keepdims, False)


def median(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the medians of elements along axes."""
    return _quantiles("median", x, 0.5, axis, "midpoint", keepdims, False)


def nanquantile(x, q, /, *, axis=None, method="linear", keepdims=False) -> Array:
    """Returns the quantiles of the elements that are not NaN."""
    return _quantiles("nanquantile", x, q, axis, method, keepdims, True)


def nanpercentile(x, q, /, *, axis=None, method="linear", keepdims=False) -> Array:
    """Returns the percentiles of the elements that are not NaN."""
    return _quantiles("nanpercentile", x, np.asarray(q, np.float64) / 100.0, axis, method, keepdims, True)


def nanmedian(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the medians of the elements that are not NaN."""
    return _quantiles("nanmedian", x, 0.5, axis, "midpoint", keepdims, True)


def _without_nan(x, instead) -> Array:
    return where(isnan(x), instead, x) if x.dtype.kind in "fc" else x


def nansum(x, /, *, axis=None, dtype=None, keepdims=False) -> Array:
    """Sums the elements that are not NaN."""
    return sum(_without_nan(_as_array(x), 0.0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x, /, *, axis=None, dtype=None, keepdims=False) -> Array:
    """Multiplies the elements that are not NaN."""
    return prod(_without_nan(_as_array(x), 1.0), axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x, /, *, axis=None, dtype=None) -> Array:
    """Returns the sums of all elements up to each along an axis; NaN counts as 0."""
    x = _as_array(x)
    x = reshaped(x, (x.size,)) if axis is None else x
    return cumulative_sum(_without_nan(x, 0.0), axis=0 if axis is None else axis, dtype=dtype)


def nancumprod(x, /, *, axis=None, dtype=None) -> Array:
    """Returns the products of all elements up to each along an axis; NaN counts as 1."""
    x = _as_array(x)
    x = reshaped(x, (x.size,)) if axis is None else x
    return cumulative_prod(_without_nan(x, 1.0), axis=0 if axis is None else axis, dtype=dtype)


def _nan_extreme(x, axis, keepdims, function, worst) -> Array:
    x = _as_array(x)
    if x.dtype.kind != "f":
        return function(x, axis=axis, keepdims=keepdims)
    missing = isnan(x)
    best = function(where(missing, worst, x), axis=axis, keepdims=keepdims)
    from ._reductions import all

    return where(all(missing, axis=axis, keepdims=keepdims), float("nan"), best)


def nanmax(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the maximum of the elements that are not NaN; NaN if there are none."""
    return _nan_extreme(x, axis, keepdims, max, -math.inf)


def nanmin(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the minimum of the elements that are not NaN; NaN if there are none."""
    return _nan_extreme(x, axis, keepdims, min, math.inf)


def nanargmax(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the index of the maximum of the elements that are not NaN."""
    return argmax(_without_nan(_as_array(x), -math.inf), axis=axis, keepdims=keepdims)


def nanargmin(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the index of the minimum of the elements that are not NaN."""
    return argmin(_without_nan(_as_array(x), math.inf), axis=axis, keepdims=keepdims)


def _present(x, axis, keepdims) -> Array:
    return sum(where(isnan(x), 0.0, 1.0) if x.dtype.kind in "fc" else full(x.shape, 1.0), axis=axis, keepdims=keepdims)


def _of_type(x, dtype) -> Array:
    return _floating(x) if dtype is None else cast(_as_array(x), _dtypes.checked(dtype))


def nanmean(x, /, *, axis=None, dtype=None, keepdims=False) -> Array:
    """Returns the mean of the elements that are not NaN."""
    x = _of_type(x, dtype)
    count = cast(_present(x, axis, keepdims), _dtypes.real_of(x.dtype))
    return divide(sum(_without_nan(x, 0.0), axis=axis, keepdims=keepdims), count)


def nanvar(x, /, *, axis=None, dtype=None, correction=0.0, ddof=None, keepdims=False) -> Array:
    """Returns the variance of the elements that are not NaN. `ddof` is another name of the correction."""
    x, correction = _of_type(x, dtype), correction if ddof is None else ddof
    off = absolute(_without_nan(subtract(x, nanmean(x, axis=axis, keepdims=True)), 0.0))
    count = cast(_present(x, axis, keepdims), off.dtype) - float(correction)
    return sum(multiply(off, off), axis=axis, keepdims=keepdims) / where(count > 0, count, float("nan"))


def nanstd(x, /, *, axis=None, dtype=None, correction=0.0, ddof=None, keepdims=False) -> Array:
    """Returns the standard deviation of the elements that are not NaN."""
    return sqrt(nanvar(x, axis=axis, dtype=dtype, correction=correction, ddof=ddof, keepdims=keepdims))


def nan_to_num(x, /, *, nan=0.0, posinf=None, neginf=None) -> Array:
    """Replaces NaN by a number and infinities by the largest numbers, or by those given."""
    x = _as_array(x)
    if x.dtype.kind == "c":
        from ._complex import pair, parts

        return pair(*(nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in parts(x)))
    if x.dtype.kind != "f":
        return x
    info = _dtypes.finfo(x.dtype)
    x = where(isnan(x), float(nan), x)
    x = where(x == math.inf, info.max if posinf is None else float(posinf), x)
    return where(x == -math.inf, info.min if neginf is None else float(neginf), x)


def average(x, /, *, axis=None, weights=None, keepdims=False) -> Array:
    """Returns the weighted mean along axes."""
    x = _floating(x)
    if weights is None:
        return mean(x, axis=axis, keepdims=keepdims)
    weights = _floating(weights)
    if weights.shape != x.shape:
        axes = axes_of(axis, x.ndim)
        if weights.ndim != len(axes) or any_differs(weights.shape, [x.shape[at] for at in axes]):
            raise ValueError(f"`average`: weights of shape {weights.shape} for an array of shape {x.shape} along {axis}")
        weights = reshaped(weights, tuple(x.shape[at] if at in axes else 1 for at in range(x.ndim)))
        weights = stretched(weights, x.shape)
    return divide(sum(x * weights, axis=axis, keepdims=keepdims), sum(weights, axis=axis, keepdims=keepdims))


def any_differs(left, right) -> builtins.bool:
    return list(left) != list(right)


def ptp(x, /, *, axis=None, keepdims=False) -> Array:
    """Returns the difference of maximum and minimum along axes."""
    x = _as_array(x)
    return max(x, axis=axis, keepdims=keepdims) - min(x, axis=axis, keepdims=keepdims)


def cov(x, y=None, /, *, rowvar=True, bias=False, ddof=None) -> Array:
    """Returns the covariance matrix of variables: the rows, or the columns if `rowvar` is false."""
    x = _floating(x)
    if x.ndim > 2:
        raise ValueError(f"`cov` of an array of shape {x.shape}: at most two axes are possible")
    x = reshaped(x, (1, x.size)) if x.ndim < 2 else x if rowvar else x.T
    if y is not None:
        from ._manipulation import concat

        y = _floating(y)
        x = concat([x, reshaped(y, (1, y.size)) if y.ndim < 2 else y if rowvar else y.T], axis=0)
    off = x - mean(x, axis=1, keepdims=True)
    degrees = x.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    result = matmul(off, conj(off.T) if x.dtype.kind == "c" else off.T) / float(degrees if degrees > 0 else math.nan)
    return reshaped(result, ()) if result.shape == (1, 1) else result


def corrcoef(x, y=None, /, *, rowvar=True) -> Array:
    """Returns the correlation coefficients of variables: the rows, or the columns if `rowvar` is false."""
    found = cov(x, y, rowvar=rowvar)
    if found.ndim == 0:
        return found / found
    from ._complex import parts
    from .linalg import diagonal

    spread = diagonal(found)
    spread = sqrt(parts(spread)[0] if spread.dtype.kind == "c" else spread)
    result = found / reshaped(spread, (spread.size, 1)) / reshaped(spread, (1, spread.size))
    if result.dtype.kind == "c":
        return result
    return where(result > 1.0, 1.0, where(result < -1.0, -1.0, result))


def bincount(x, /, *, weights=None, minlength=0) -> Array:
    """Counts how often each number from 0 on occurs; with weights, sums these."""
    x = _as_array(x)
    if x.ndim != 1 or x.dtype.kind not in "iub":
        raise TypeError(f"`bincount` of an array of shape {x.shape} and {x.dtype}: a line of integers is needed")
    if x.size and int(min(x)) < 0:
        raise ValueError("`bincount` of negative numbers")
    bins = builtins.max(int(minlength), int(max(x)) + 1 if x.size else 0)
    return _counted(x, bins, weights)


def _counted(x, bins, weights) -> Array:
    """Counts the numbers 0, 1, 2 … of a line, or sums their weights."""
    if bins == 0 or x.size == 0:
        return zeros((bins,), dtype=_dtypes.int64 if weights is None else _dtypes.float64, device=x.device)
    if weights is None:
        counts = made(_core.histogram(cast(x, _dtypes.int64)._node, bins), None, x.device, (bins,))
        counts._dtype = _dtypes.checked(_core.type(counts._node))
        return cast(counts, _dtypes.int64)
    weights = _as_array(weights)
    weights = cast(reshaped(weights, (weights.size,)), _dtypes.complex128 if weights.dtype.kind == "c" else _dtypes.float64)
    if weights.shape != x.shape:
        raise ValueError(f"{weights.size} weights for {x.size} elements")
    empty = zeros((bins,), dtype=weights.dtype, device=x.device)
    return like(_core.scatter(empty._node, [cast(x, _dtypes.int64)._node], weights._node, "sum"), empty, (bins,))


def digitize(x, bins, /, *, right=False) -> Array:
    """Returns for each element the index of the interval between edges that it is in."""
    x, bins = _as_array(x), _as_array(bins)
    if bins.ndim != 1:
        raise ValueError(f"`digitize` with edges of shape {bins.shape}: a line is needed")
    edges = np.asarray(bins)
    if edges.size > 1 and np.any(np.diff(edges) < 0):
        if np.any(np.diff(edges) > 0):
            raise ValueError("`digitize`: the edges neither rise nor fall")
        flipped = asarray(edges[::-1].copy(), device=x.device)
        return edges.size - searchsorted(flipped, x, side="right" if right else "left")
    return searchsorted(bins, x, side="left" if right else "right")


def _edges(name, x, bins, range_) -> np.ndarray:
    if isinstance(bins, (int, np.integer)):
        if bins < 1:
            raise ValueError(f"`{name}` with {bins} bins")
        if range_ is None:
            low, high = (float(min(x)), float(max(x))) if x.size else (0.0, 1.0)
        else:
            low, high = float(range_[0]), float(range_[1])
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"`{name}`: the range {low} to {high} is not finite")
        if low > high:
            raise ValueError(f"`{name}`: the range {low} to {high} is empty")
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        return np.linspace(low, high, int(bins) + 1)
    if isinstance(bins, str):
        return np.histogram_bin_edges(np.asarray(x), bins, range_)
    edges = np.asarray(bins, np.float64)
    if edges.ndim != 1 or edges.size < 2 or np.any(np.diff(edges) < 0):
        raise ValueError(f"`{name}`: edges rise along one axis, and there are two or more")
    return edges


def _bin_numbers(x, edges, device):
    """Returns the bin of each element of a line, and -1 outside; the last bin has its upper edge."""
    line = asarray(edges, device=device)
    values = cast(x, _dtypes.float64)
    number = searchsorted(line, values, side="right") - 1
    number = where(values == float(edges[-1]), edges.size - 2, number)
    return where((values >= float(edges[0])) & (values <= float(edges[-1])), number, -1)


def histogram(x, /, bins=10, range=None, density=False, weights=None) -> tuple[Array, Array]:
    """Counts elements in bins. Returns the counts, or the sums of weights, and the edges of the bins.

    >>> bl.histogram(bl.asarray([1.0, 2.0, 2.5, 4.0]), bins=3)[0]
    Array([1, 2, 1])
    """
    x = _as_array(x)
    x = reshaped(x, (x.size,))
    edges = _edges("histogram", x, bins, range)
    count = edges.size - 1
    number = _bin_numbers(x, edges, x.device)
    # Elements outside are counted in a bin of their own.
    counts = _counted(where(number < 0, count, number), count + 1, weights)[:count]
    shown = asarray(edges, device=x.device)
    if density:
        widths = shown[1:] - shown[:-1]
        counts = cast(counts, _dtypes.float64) if counts.dtype.kind != "c" else counts
        counts = counts / widths / sum(counts)
    return counts, shown


def histogram_bin_edges(x, /, bins=10, range=None) -> Array:
    """Returns the edges of the bins that `histogram` would use."""
    x = _as_array(x)
    return asarray(_edges("histogram_bin_edges", reshaped(x, (x.size,)), bins, range), device=x.device)


def histogramdd(sample, /, bins=10, range=None, density=False, weights=None):
    """Counts points in bins of a grid. `sample` has a row for each point. Returns the counts and the edges by axis."""
    sample = _as_array(sample)
    axes = sample.shape[1]
    per_axis = [bins] * axes if isinstance(bins, (int, np.integer)) else list(bins)
    ranges = [None] * axes if range is None else list(range)
    edges, place, inside, shape = [], 0, True, []
    for axis in builtins.range(axes):
        column = sample[:, axis]
        own = _edges("histogramdd", column, per_axis[axis], ranges[axis])
        number = _bin_numbers(column, own, sample.device)
        place, inside = place * (own.size - 1) + number, (number >= 0) & inside
        edges.append(asarray(own, device=sample.device))
        shape.append(own.size - 1)
    cells = math.prod(shape)
    counts = reshaped(_counted(where(inside, place, cells), cells + 1, weights)[:cells], shape)
    counts = cast(counts, _dtypes.float64)
    if density:
        total = sum(counts)
        for axis, own in enumerate(edges):
            widths = tuple(shape[axis] if at == axis else 1 for at in builtins.range(axes))
            counts = counts / reshaped(own[1:] - own[:-1], widths)
        counts = counts / total
    return counts, edges


def histogram2d(x, y, /, bins=10, range=None, density=False, weights=None) -> tuple[Array, Array, Array]:
    """Counts points in bins of a plane. Returns the counts and the edges along both axes."""
    from ._manipulation import stack

    x, y = _as_array(x), _as_array(y)
    if isinstance(bins, (list, tuple, np.ndarray, Array)) and len(bins) != 2:
        bins = [bins, bins]
    counts, edges = histogramdd(stack([x, y], axis=1), bins, range, density, weights)
    return counts, edges[0], edges[1]
