"""Random numbers: `bl.random.default_rng(seed)` makes a generator with the methods of NumPy's.

The numbers of an array are functions of the seed, the number of the call and the position. A seed gives the same
numbers on every device, whatever its number of cores. They are not those of NumPy.
"""

from __future__ import annotations

import math
import os
from math import lgamma

import numpy as np

from . import _core, _dtypes
from ._array import Array, cast, made, reshaped, stretched
from ._creation import arange, asarray, full
from ._devices import device as _device
from ._elementwise import abs as absolute, cos, exp, floor, log, log1p, sign, sqrt, tan, where
from ._functions import elementwise
from ._indexing import taken
from ._manipulation import broadcast_shapes, concat
from ._reductions import argsort, cumulative_sum, sum
from ._search import searchsorted

_MASK = 2**64 - 1
# Candidates of a rejection. More than 0.95 of them are accepted.
_TRIES = 10


def _mixed(word) -> int:
    """Scatters the bits of a word: the finaliser of SplitMix64."""
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return word ^ (word >> 31)


def default_rng(seed=None, *, device=None) -> "Generator":
    """Makes a generator of random numbers. Without a seed, each has others.

    >>> bl.random.default_rng(1).integers(0, 10, 4).shape
    (4,)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed, device=device)


def _shape(size, *parameters):
    if size is None:
        return broadcast_shapes(*(parameter.shape for parameter in parameters if isinstance(parameter, Array)), ())
    return (size,) if isinstance(size, (int, np.integer)) else tuple(size)


def _parameter(value, device):
    """Converts a parameter of a distribution: a number stays one."""
    if isinstance(value, (int, float)):
        return float(value)
    return cast(value if isinstance(value, Array) else asarray(value, device=device), _dtypes.float64)


def _check(name, condition, text) -> None:
    """Refuses a parameter that is a number out of range. Arrays are not looked at."""
    if condition is False:
        raise ValueError(f"`{name}`: {text}")


class Generator:
    """Generator of random numbers with NumPy's names. Each call gives other numbers."""

    __slots__ = ("_seed", "_calls", "device")

    def __init__(self, seed=None, *, device=None):
        if seed is None:
            seed = int.from_bytes(os.urandom(8), "little")
        words = [int(word) for word in np.asarray(seed).reshape(-1)] if not isinstance(seed, int) else [seed]
        self._seed, self._calls, self.device = 0, 0, _device(device)
        for word in words:
            if word < 0:
                raise ValueError(f"a seed is a number from 0 on, not {word}")
            while True:
                self._seed = _mixed(self._seed ^ _mixed(word & _MASK))
                word >>= 64
                if not word:
                    break

    def __repr__(self):
        return f"Generator on {self.device}"

    def spawn(self, count) -> list["Generator"]:
        """Returns generators whose numbers are independent of each other and of this one."""
        return [Generator([self._next(), number], device=self.device) for number in range(count)]

    def _next(self) -> int:
        self._calls += 1
        return _mixed(self._seed ^ _mixed(self._calls))

    def _uniform(self, shape, dtype=_dtypes.float64) -> Array:
        node = _core.random(self.device._context, shape, _dtypes.name_of(dtype), self._next())
        return made(node, dtype, self.device, tuple(shape))

    def random(self, size=None, dtype=_dtypes.float64) -> Array:
        """Returns numbers from 0 to 1, without 1."""
        dtype = _dtypes.checked(dtype)
        if dtype.kind != "f":
            raise TypeError(f"`random` of {dtype}: float32 or float64 is needed")
        found = self._uniform(_shape(size), dtype if dtype != _dtypes.float16 else _dtypes.float32)
        return cast(found, dtype)

    def uniform(self, low=0.0, high=1.0, size=None) -> Array:
        """Returns numbers from `low` to `high`, all equally likely."""
        low, high = _parameter(low, self.device), _parameter(high, self.device)
        return low + (high - low) * self._uniform(_shape(size, low, high))

    def integers(self, low, high=None, size=None, dtype=_dtypes.int64, endpoint=False) -> Array:
        """Returns integers from `low` up to but not including `high`, all equally likely."""
        if high is None:
            low, high = 0, low
        dtype = _dtypes.checked(dtype)
        if isinstance(low, int) and isinstance(high, int) and high + endpoint <= low:
            raise ValueError(f"`integers` from {low} up to {high}: there are none")
        if isinstance(low, int) and isinstance(high, int):
            info = _dtypes.iinfo(dtype) if dtype.kind in "iu" else None
            if info and (low < info.min or high + endpoint - 1 > info.max):
                raise ValueError(f"`integers` from {low} up to {high} do not fit into {dtype}")
            width = high + endpoint - low
            if width > 2**53:
                return self._wide_integers(low, width, _shape(size), dtype)
            return cast(cast(floor(self._uniform(_shape(size)) * float(width)), _dtypes.int64) + low, dtype)
        low = low if isinstance(low, Array) else asarray(low, device=self.device)
        high = high if isinstance(high, Array) else asarray(high, device=self.device)
        width = cast(high - low + int(endpoint), _dtypes.float64)
        return cast(cast(floor(self._uniform(_shape(size, low, high)) * width), _dtypes.int64) + low, dtype)

    def _wide_integers(self, low, width, shape, dtype) -> Array:
        """Returns integers of a range that the fraction of a float does not cover."""
        high = cast(floor(self._uniform(shape) * float(2**32)), _dtypes.uint64)
        bits = high * (1 << 32) + cast(floor(self._uniform(shape) * float(2**32)), _dtypes.uint64)
        bits = bits if width >= 2**64 else bits % width
        return cast(bits + (low & _MASK), dtype)

    def bytes(self, length) -> bytes:
        """Returns random bytes."""
        return np.asarray(self.integers(0, 256, length, dtype=_dtypes.uint8)).tobytes()

    def standard_normal(self, size=None, dtype=_dtypes.float64) -> Array:
        """Returns numbers of the normal distribution with mean 0 and deviation 1."""
        dtype = _dtypes.checked(dtype)
        shape = _shape(size)
        radius = sqrt(-2.0 * log1p(-self._uniform(shape)))
        return cast(radius * cos(2.0 * math.pi * self._uniform(shape)), dtype)

    def normal(self, loc=0.0, scale=1.0, size=None) -> Array:
        """Returns numbers of a normal distribution."""
        loc, scale = _parameter(loc, self.device), _parameter(scale, self.device)
        _check("normal", scale >= 0 if isinstance(scale, float) else None, "the scale is negative")
        return loc + scale * self.standard_normal(_shape(size, loc, scale))

    def lognormal(self, mean=0.0, sigma=1.0, size=None) -> Array:
        """Returns numbers whose logarithms have a normal distribution."""
        return exp(self.normal(mean, sigma, size))

    def standard_exponential(self, size=None) -> Array:
        """Returns numbers of the exponential distribution with mean 1."""
        return -log1p(-self._uniform(_shape(size)))

    def exponential(self, scale=1.0, size=None) -> Array:
        """Returns numbers of an exponential distribution with mean `scale`."""
        scale = _parameter(scale, self.device)
        return scale * self.standard_exponential(_shape(size, scale))

    def laplace(self, loc=0.0, scale=1.0, size=None) -> Array:
        """Returns numbers of a Laplace distribution."""
        loc, scale = _parameter(loc, self.device), _parameter(scale, self.device)
        off = self._uniform(_shape(size, loc, scale)) - 0.5
        return loc - scale * sign(off) * log1p(-2.0 * absolute(off))

    def logistic(self, loc=0.0, scale=1.0, size=None) -> Array:
        """Returns numbers of a logistic distribution."""
        loc, scale = _parameter(loc, self.device), _parameter(scale, self.device)
        part = self._uniform(_shape(size, loc, scale))
        part = where(part == 0.0, 2.0**-54, part)
        return loc + scale * (log(part) - log1p(-part))

    def gumbel(self, loc=0.0, scale=1.0, size=None) -> Array:
        """Returns numbers of a Gumbel distribution."""
        loc, scale = _parameter(loc, self.device), _parameter(scale, self.device)
        return loc - scale * log(self.standard_exponential(_shape(size, loc, scale)) + 2.0**-1022)

    def standard_cauchy(self, size=None) -> Array:
        """Returns numbers of the Cauchy distribution."""
        return tan(math.pi * (self._uniform(_shape(size)) - 0.5))

    def rayleigh(self, scale=1.0, size=None) -> Array:
        """Returns numbers of a Rayleigh distribution."""
        scale = _parameter(scale, self.device)
        return scale * sqrt(2.0 * self.standard_exponential(_shape(size, scale)))

    def weibull(self, a, size=None) -> Array:
        """Returns numbers of a Weibull distribution."""
        a = _parameter(a, self.device)
        return self.standard_exponential(_shape(size, a)) ** (1.0 / a)

    def pareto(self, a, size=None) -> Array:
        """Returns numbers of a Lomax distribution."""
        a = _parameter(a, self.device)
        return exp(self.standard_exponential(_shape(size, a)) / a) - 1.0

    def power(self, a, size=None) -> Array:
        """Returns numbers from 0 to 1 with the density a x^(a - 1)."""
        a = _parameter(a, self.device)
        return (1.0 - self._uniform(_shape(size, a))) ** (1.0 / a)

    def triangular(self, left, mode, right, size=None) -> Array:
        """Returns numbers of a triangular distribution."""
        left, mode, right = (_parameter(one, self.device) for one in (left, mode, right))
        part = self._uniform(_shape(size, left, mode, right))
        turn = (mode - left) / (right - left)
        low = left + sqrt(part * ((right - left) * (mode - left)))
        return where(part < turn, low, right - sqrt((1.0 - part) * ((right - left) * (right - mode))))

    def standard_gamma(self, shape, size=None) -> Array:
        """Returns numbers of a gamma distribution with scale 1, by the method of Marsaglia and Tsang."""
        shape = _parameter(shape, self.device)
        _check("gamma", shape > 0 if isinstance(shape, float) else None, "the shape is not positive")
        extents = _shape(size, shape)
        alpha = stretched(shape, extents) if isinstance(shape, Array) else full(extents, shape, device=self.device)
        is_small = alpha < 1.0
        raised = where(is_small, alpha + 1.0, alpha)
        d = raised - 1.0 / 3.0
        c = 1.0 / sqrt(9.0 * d)
        # The last candidate counts if none is accepted, which has a probability below 2**-40.
        found = d
        for _ in range(_TRIES):
            x, u = self.standard_normal(extents), self._uniform(extents)
            v = (1.0 + c * x) ** 3
            safe = where(v > 0.0, v, 1.0)
            accepted = (v > 0.0) & (log(u + 2.0**-60) < 0.5 * x * x + d - d * v + d * log(safe))
            found = where(accepted, d * v, found)
        lifted = found * self._uniform(extents) ** (1.0 / alpha)
        return where(is_small, lifted, found)

    def gamma(self, shape, scale=1.0, size=None) -> Array:
        """Returns numbers of a gamma distribution."""
        scale = _parameter(scale, self.device)
        return scale * self.standard_gamma(shape, size if size is not None else _shape(None, scale, _parameter(shape, self.device)))

    def chisquare(self, df, size=None) -> Array:
        """Returns numbers of a chi-square distribution."""
        return 2.0 * self.standard_gamma(_parameter(df, self.device) / 2.0, size)

    def beta(self, a, b, size=None) -> Array:
        """Returns numbers of a beta distribution."""
        a, b = _parameter(a, self.device), _parameter(b, self.device)
        size = _shape(size, a, b)
        left, right = self.standard_gamma(a, size), self.standard_gamma(b, size)
        return left / (left + right)

    def standard_t(self, df, size=None) -> Array:
        """Returns numbers of Student's distribution."""
        df = _parameter(df, self.device)
        size = _shape(size, df)
        return self.standard_normal(size) / sqrt(self.chisquare(df, size) / df)

    def f(self, dfnum, dfden, size=None) -> Array:
        """Returns numbers of an F distribution."""
        dfnum, dfden = _parameter(dfnum, self.device), _parameter(dfden, self.device)
        size = _shape(size, dfnum, dfden)
        return (self.chisquare(dfnum, size) / dfnum) / (self.chisquare(dfden, size) / dfden)

    def dirichlet(self, alpha, size=None) -> Array:
        """Returns rows of a Dirichlet distribution; each sums up to 1."""
        alpha = asarray(alpha, dtype=_dtypes.float64, device=self.device)
        found = self.standard_gamma(alpha, (*_shape(size), alpha.shape[0]))
        return found / sum(found, axis=-1, keepdims=True)

    def geometric(self, p, size=None) -> Array:
        """Returns the number of trials up to the first success."""
        p = _parameter(p, self.device)
        below = log1p(-p) if isinstance(p, Array) else (math.log1p(-p) if p < 1.0 else -math.inf)
        steps = floor(log1p(-self._uniform(_shape(size, p))) / below) + 1.0
        return cast(where(steps < 1.0, 1.0, steps), _dtypes.int64)

    def poisson(self, lam=1.0, size=None) -> Array:
        """Returns numbers of events of a Poisson distribution with mean `lam`, by inversion from the mode."""
        lam = _parameter(lam, self.device)
        _check("poisson", lam >= 0 if isinstance(lam, float) else None, "the mean is negative")
        shape = _shape(size, lam)
        return cast(stretched(_poisson(self._uniform(shape), lam), shape), _dtypes.int64)

    def binomial(self, n, p, size=None) -> Array:
        """Returns numbers of successes among `n` trials, by inversion from the mode."""
        n, p = _parameter(n, self.device), _parameter(p, self.device)
        _check("binomial", 0 <= p <= 1 if isinstance(p, float) else None, f"{p} is no probability")
        shape = _shape(size, n, p)
        return cast(stretched(_binomial(self._uniform(shape), n, p), shape), _dtypes.int64)

    def negative_binomial(self, n, p, size=None) -> Array:
        """Returns numbers of failures before `n` successes."""
        n, p = _parameter(n, self.device), _parameter(p, self.device)
        size = _shape(size, n, p)
        return self.poisson(self.standard_gamma(n, size) * ((1.0 - p) / p), size)

    def multinomial(self, n, pvals, size=None) -> Array:
        """Returns how often each outcome occurs in `n` trials."""
        pvals = np.asarray(pvals, np.float64)
        shape, left, rest, columns = _shape(size), float(n), 1.0, []
        for p in pvals[:-1]:
            count = self.binomial(left, min(1.0, p / rest) if rest > 0 else 0.0, shape)
            columns.append(reshaped(count, (*shape, 1)))
            left, rest = cast(left - count, _dtypes.float64), rest - p
        last = left if isinstance(left, Array) else full(shape, left, device=self.device)
        columns.append(reshaped(cast(last, _dtypes.int64), (*shape, 1)))
        return concat(columns, axis=-1)

    def multivariate_normal(self, mean, cov, size=None) -> Array:
        """Returns vectors of a normal distribution with a covariance matrix."""
        mean, cov = np.asarray(mean, np.float64), np.asarray(cov, np.float64)
        values, vectors = np.linalg.eigh(cov)
        if values.min(initial=0.0) < -1e-8 * max(1.0, abs(values.max(initial=0.0))):
            raise ValueError("`multivariate_normal`: the covariance has negative eigenvalues")
        factor = asarray(vectors * np.sqrt(np.maximum(values, 0.0)), device=self.device)
        shape = (*_shape(size), mean.size)
        from .linalg import matmul

        flat = reshaped(self.standard_normal(shape), (math.prod(shape[:-1]), mean.size))
        return asarray(mean, device=self.device) + reshaped(matmul(flat, factor.T), shape)

    def permutation(self, x, axis=0) -> Array:
        """Returns an array in random order along an axis, or the numbers below `x` in random order."""
        if isinstance(x, (int, np.integer)):
            return argsort(self._uniform((int(x),)))
        x = x if isinstance(x, Array) else asarray(x, device=self.device)
        return taken(x, argsort(self._uniform((x.shape[axis],))), axis)

    def permuted(self, x, *, axis=None) -> Array:
        """Returns an array with the elements of each line along an axis in a random order of their own."""
        from ._indexing import take_along_axis

        x = x if isinstance(x, Array) else asarray(x, device=self.device)
        if axis is None:
            return reshaped(self.permutation(reshaped(x, (x.size,))), x.shape)
        return take_along_axis(x, argsort(self._uniform(x.shape), axis=axis), axis=axis)

    def shuffle(self, x, axis=0) -> None:
        """Puts an array into random order along an axis."""
        x._node = self.permutation(x, axis)._node

    def choice(self, a, size=None, replace=True, p=None, axis=0) -> Array:
        """Returns random elements of an array, or of the numbers below `a`, with these probabilities."""
        a = arange(int(a), device=self.device) if isinstance(a, (int, np.integer)) else a
        a = a if isinstance(a, Array) else asarray(a, device=self.device)
        shape, extent = _shape(size), a.shape[axis]
        count = math.prod(shape)
        if extent == 0 and count:
            raise ValueError("`choice` among no elements")
        if p is not None:
            p = asarray(p, dtype=_dtypes.float64, device=self.device)
            if p.shape != (extent,) or abs(float(sum(p)) - 1.0) > 1e-6:
                raise ValueError(f"`choice`: {p.size} probabilities with the sum {float(sum(p))} for {extent} elements")
        if not replace:
            if count > extent:
                raise ValueError(f"`choice` of {count} among {extent} elements without replacement")
            # The largest keys u^(1/p) are a sample without replacement with these weights.
            keys = self._uniform((extent,)) if p is None else -log(self._uniform((extent,)) + 2.0**-60) / p
            index = argsort(keys)[:count]
        elif p is None:
            index = self.integers(0, extent, count)
        else:
            index = searchsorted(cumulative_sum(p) / sum(p), self._uniform((count,)), side="right")
            index = where(index >= extent, extent - 1, index)
        found = taken(a, index, axis)
        return reshaped(found, a.shape[:axis] + shape + a.shape[axis + 1 :])


@elementwise
def _poisson(u, lam):
    mode = floor(lam)
    weight = exp(mode * log(max(lam, 1e-300)) - lam - lgamma(mode + 1.0))
    low, high = mode, mode
    below, above = weight, weight
    rest = u - weight
    found = mode
    while rest >= 0.0 and (above > 0.0 or low > 0.0):
        high = high + 1.0
        above = above * lam / high
        rest = rest - above
        found = high
        if rest >= 0.0 and low > 0.0:
            below = below * low / lam
            low = low - 1.0
            rest = rest - below
            found = low
    return found


@elementwise
def _binomial(u, n, p):
    mode = floor((n + 1.0) * p)
    mode = min(mode, n)
    safe = min(max(p, 1e-300), 1.0 - 1e-16)
    odds = safe / (1.0 - safe)
    size = lgamma(n + 1.0) - lgamma(mode + 1.0) - lgamma(n - mode + 1.0)
    weight = exp(size + mode * log(safe) + (n - mode) * log1p(-safe))
    low, high = mode, mode
    below, above = weight, weight
    rest = u - weight
    found = mode
    while rest >= 0.0 and (high < n or low > 0.0):
        if high < n:
            above = above * odds * (n - high) / (high + 1.0)
            high = high + 1.0
            rest = rest - above
            found = high
        if rest >= 0.0 and low > 0.0:
            below = below * low / ((n - low + 1.0) * odds)
            low = low - 1.0
            rest = rest - below
            found = low
    if p <= 0.0:
        found = 0.0
    if p >= 1.0:
        found = n
    return found
