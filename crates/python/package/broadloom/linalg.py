"""Linear algebra. Products run on the device; decompositions run on the host, by NumPy.

A product of complex matrices is four products of their parts.
"""

from __future__ import annotations

import builtins
import math
from typing import NamedTuple

import numpy as np

from . import _core, _dtypes
from ._array import Array, axis_of, cast, from_host, like, operands, permuted, reshaped, viewed
from ._complex import pair, parts
from ._elementwise import abs as absolute, conj, multiply, not_equal, pow as power, sqrt, subtract
from ._manipulation import broadcast_shapes, broadcast_to, matrix_transpose, stack
from ._reductions import max as greatest, min as least, sum as total


def matmul(x1, x2, /) -> Array:
    """Returns the product of matrices; of stacks of matrices, or with vectors, as in NumPy.

    >>> bl.matmul(bl.eye(2), bl.asarray([3.0, 4.0]))
    Array([3., 4.])
    """
    (left, right), dtype = operands(x1, x2)
    if dtype.kind == "b":
        raise TypeError("`matmul` of booleans: convert them to numbers")
    if left.ndim == 0 or right.ndim == 0:
        raise ValueError("`matmul` of an array without axes: use `*`")
    row, column = left.ndim == 1, right.ndim == 1
    left = reshaped(left, (1, left.shape[0])) if row else left
    right = reshaped(right, (right.shape[0], 1)) if column else right
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(f"`matmul` of the shapes {x1.shape} and {x2.shape}: {left.shape[-1]} columns, {right.shape[-2]} rows")
    if dtype.kind == "c" and left.ndim == 2 and right.ndim == 2 and left.size and right.size:
        (a, b), (c, d) = parts(left), parts(right)
        real = subtract(matmul(a, c), matmul(b, d))
        result = pair(real, matmul(a, d) + matmul(b, c))
    elif left.ndim == 2 and right.ndim == 2 and left.size and right.size:
        result = like(_core.product(left._node, right._node), left, (left.shape[0], right.shape[1]))
    else:
        wide = reshaped(left, (*left.shape, 1))
        across = reshaped(right, (*right.shape[:-2], 1, *right.shape[-2:]))
        result = total(multiply(wide, across), axis=-2, dtype=dtype)
    shape = result.shape
    if row:
        shape = shape[:-2] + shape[-1:]
    return reshaped(result, shape[:-1] if column else shape)


def vecdot(x1, x2, /, *, axis=-1) -> Array:
    """Returns the sums of the products along an axis."""
    (left, right), dtype = operands(x1, x2)
    if axis >= 0 or -axis > builtins.min(left.ndim, right.ndim):
        rank = builtins.max(left.ndim, right.ndim)
        axis = axis_of(axis, rank) - rank
    if -axis > builtins.min(left.ndim, right.ndim) or left.shape[axis] != right.shape[axis]:
        raise ValueError(f"`vecdot` of the shapes {left.shape} and {right.shape} along axis {axis}")
    return total(multiply(conj(left) if dtype.kind == "c" else left, right), axis=axis, dtype=dtype)


def tensordot(x1, x2, /, *, axes=2) -> Array:
    """Returns the sums of products over pairs of axes."""
    (left, right), dtype = operands(x1, x2)
    if isinstance(axes, int):
        own, other = tuple(range(left.ndim - axes, left.ndim)), tuple(range(axes))
    else:
        own = tuple(axis_of(axis, left.ndim) for axis in axes[0])
        other = tuple(axis_of(axis, right.ndim) for axis in axes[1])
    if [left.shape[axis] for axis in own] != [right.shape[axis] for axis in other]:
        raise ValueError(f"`tensordot` of the shapes {left.shape} and {right.shape} over {axes}")
    rows = [axis for axis in range(left.ndim) if axis not in own]
    columns = [axis for axis in range(right.ndim) if axis not in other]
    inner = math.prod(left.shape[axis] for axis in own)
    height = [left.shape[axis] for axis in rows]
    width = [right.shape[axis] for axis in columns]
    first = reshaped(permuted(left, (*rows, *own)), (math.prod(height), inner))
    second = reshaped(permuted(right, (*other, *columns)), (inner, math.prod(width)))
    return reshaped(matmul(first, second), (*height, *width))


def outer(x1, x2, /) -> Array:
    """Returns the product of each element of one vector with each of another."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"`outer` of the shapes {x1.shape} and {x2.shape}: vectors are needed")
    return multiply(reshaped(x1, (x1.shape[0], 1)), x2)


def cross(x1, x2, /, *, axis=-1) -> Array:
    """Returns the cross products of vectors of three elements along an axis."""
    (left, right), _ = operands(x1, x2)
    shape = broadcast_shapes(left.shape, right.shape)
    if left.shape[axis] != 3 or right.shape[axis] != 3:
        raise ValueError(f"`cross` of the shapes {left.shape} and {right.shape}: axis {axis} must have 3 elements")
    axis = axis_of(axis, len(shape))
    left, right = broadcast_to(left, shape), broadcast_to(right, shape)
    part = lambda x, index: x[(slice(None),) * axis + (index,)]  # noqa: E731
    pairs = ((1, 2), (2, 0), (0, 1))
    return stack(
        [subtract(multiply(part(left, i), part(right, j)), multiply(part(left, j), part(right, i))) for i, j in pairs], axis=axis
    )


def diagonal(x, /, *, offset=0) -> Array:
    """Returns the diagonals of matrices."""
    _matrices(x, "diagonal")
    rows, columns = x.shape[-2:]
    row, column = builtins.max(-offset, 0), builtins.max(offset, 0)
    count = builtins.max(0, builtins.min(rows - row, columns - column))
    shape = (*x.shape[:-2], count)
    if 0 in shape:
        from ._creation import zeros

        return zeros(shape, dtype=x.dtype, device=x.device)
    last = x.ndim - 2
    return viewed(x, [*((axis, 0, 1) for axis in range(last)), (last, row, 1), (last, column, 1)], shape)


def trace(x, /, *, offset=0, dtype=None) -> Array:
    """Returns the sums of the diagonals of matrices."""
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def matrix_power(x, n, /) -> Array:
    """Multiplies matrices by themselves."""
    _square(x, "matrix_power")
    x, n = (inv(x), -n) if n < 0 else (x, n)
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        x = matmul(x, x) if n else x
    if result is None:
        from ._creation import eye

        return broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    return result


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2) -> Array:
    """Returns the norms of vectors along axes."""
    if x.dtype.kind not in "fc":
        x = cast(x, _dtypes.DEFAULT_FLOAT)
    size = absolute(x)
    if ord in (math.inf, -math.inf):
        return (greatest if ord > 0 else least)(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return total(cast(not_equal(x, 0), size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return total(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return sqrt(total(multiply(size, size), axis=axis, keepdims=keepdims))
    return power(total(power(size, float(ord)), axis=axis, keepdims=keepdims), 1.0 / ord)


def matrix_norm(x, /, *, keepdims=False, ord="fro") -> Array:
    """Returns the norms of matrices."""
    _matrices(x, "matrix_norm")
    rows, columns = x.ndim - 2, x.ndim - 1
    if ord == "fro":
        return vector_norm(x, axis=(rows, columns), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        across, along = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = total(absolute(x), axis=across, keepdims=True)
        best = (greatest if ord > 0 else least)(sums, axis=(rows, columns), keepdims=keepdims)
        return best
    values = svdvals(x)
    result = total(values, axis=-1) if ord == "nuc" else (greatest if ord > 0 else least)(values, axis=-1)
    return reshaped(result, (*x.shape[:-2], 1, 1)) if keepdims else result


# Decompositions, on the host.


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Array
    S: Array
    Vh: Array


def _matrices(x, name) -> None:
    if x.ndim < 2:
        raise ValueError(f"`{name}` of an array of shape {x.shape}, which has no matrices")


def _square(x, name) -> None:
    _matrices(x, name)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"`{name}` of matrices of shape {x.shape[-2:]}: square matrices are needed")


def _host(function, *arrays, **options):
    """Computes a function of NumPy on the host; the results go to the device of the arrays."""
    converted, dtype = operands(*arrays)
    if dtype.kind not in "fc" or dtype == _dtypes.float16:
        if dtype.kind == "b":
            raise TypeError("linear algebra of booleans: convert them to numbers")
        dtype = _dtypes.DEFAULT_FLOAT if dtype.kind != "f" else _dtypes.float32
    values = [np.asarray(cast(array, dtype)) for array in converted]
    results = function(*values, **options)
    device = converted[0].device
    if isinstance(results, tuple):
        return [from_host(np.asarray(result), device) for result in results]
    return from_host(np.asarray(results), device)


def cholesky(x, /, *, upper=False) -> Array:
    """Returns the Cholesky factors of matrices."""
    _square(x, "cholesky")
    factor = _host(np.linalg.cholesky, x)
    return matrix_transpose(conj(factor)) if upper else factor


def det(x, /) -> Array:
    """Returns the determinants of matrices."""
    _square(x, "det")
    return _host(np.linalg.det, x)


def slogdet(x, /) -> SlogdetResult:
    """Returns the signs and the logarithms of the absolute determinants of matrices."""
    _square(x, "slogdet")
    return SlogdetResult(*_host(lambda values: tuple(np.linalg.slogdet(values)), x))


def inv(x, /) -> Array:
    """Returns the inverse matrices."""
    _square(x, "inv")
    return _host(np.linalg.inv, x)


def solve(x1, x2, /) -> Array:
    """Returns x with `x1 @ x = x2`."""
    _square(x1, "solve")

    def solved(matrices, right):
        if right.ndim == 1:
            return np.linalg.solve(matrices, right[:, None])[..., 0]
        return np.linalg.solve(matrices, right)

    return _host(solved, x1, x2)


def eigh(x, /) -> EighResult:
    """Returns the eigenvalues and eigenvectors of symmetric matrices."""
    _square(x, "eigh")
    return EighResult(*_host(lambda values: tuple(np.linalg.eigh(values)), x))


def eigvalsh(x, /) -> Array:
    """Returns the eigenvalues of symmetric matrices."""
    _square(x, "eigvalsh")
    return _host(np.linalg.eigvalsh, x)


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


def _as_complex(values):
    """Computes in complex numbers: the eigenvalues of real matrices may be complex."""
    return values.astype(_dtypes.complex_of(values.dtype))


def eig(x, /) -> EigResult:
    """Returns the eigenvalues and eigenvectors of matrices, as complex numbers.

    >>> bl.linalg.eig(bl.asarray([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j])
    """
    _square(x, "eig")
    return EigResult(*_host(lambda values: tuple(np.linalg.eig(_as_complex(values))), x))


def eigvals(x, /) -> Array:
    """Returns the eigenvalues of matrices, as complex numbers."""
    _square(x, "eigvals")
    return _host(lambda values: np.linalg.eigvals(_as_complex(values)), x)


def qr(x, /, *, mode="reduced") -> QRResult:
    """Returns the factors Q and R of matrices."""
    _matrices(x, "qr")
    if mode not in ("reduced", "complete"):
        raise ValueError(f"`mode` is \"reduced\" or \"complete\", not {mode!r}")
    return QRResult(*_host(lambda values: tuple(np.linalg.qr(values, mode=mode)), x))


def svd(x, /, *, full_matrices=True) -> SVDResult:
    """Returns the singular value decomposition of matrices."""
    _matrices(x, "svd")
    return SVDResult(*_host(lambda values: tuple(np.linalg.svd(values, full_matrices=full_matrices)), x))


def svdvals(x, /) -> Array:
    """Returns the singular values of matrices."""
    _matrices(x, "svdvals")
    return _host(lambda values: np.linalg.svd(values, compute_uv=False), x)


def _tolerance(rtol, x):
    if rtol is None:
        dtype = x.dtype if x.dtype.kind in "fc" else _dtypes.DEFAULT_FLOAT
        return builtins.max(x.shape[-2:]) * float(np.finfo(dtype).eps)
    return np.asarray(rtol)


def matrix_rank(x, /, *, rtol=None) -> Array:
    """Returns the ranks of matrices."""
    _matrices(x, "matrix_rank")
    values = np.asarray(svdvals(x))
    limit = values.max(axis=-1, keepdims=True, initial=0.0) * np.asarray(_tolerance(rtol, x))[..., None]
    return from_host(np.asarray((values > limit).sum(axis=-1), np.int64), x.device)


def pinv(x, /, *, rtol=None) -> Array:
    """Returns the pseudo-inverses of matrices."""
    _matrices(x, "pinv")
    return _host(np.linalg.pinv, x, rcond=_tolerance(rtol, x))


def lstsq(x1, x2, /, *, rtol=None) -> tuple[Array, Array, int, Array]:
    """Returns the x with the least `|x1 @ x - x2|`, the squared rests, the rank and the singular values, as NumPy's."""
    _matrices(x1, "lstsq")
    device = x1.device
    values = np.asarray(x1)
    solution, rest, rank, singular = np.linalg.lstsq(values, np.asarray(x2), rcond=rtol)
    return from_host(solution, device), from_host(rest, device), int(rank), from_host(singular, device)


def cond(x, /, p=None) -> Array:
    """Returns the condition numbers of matrices."""
    _matrices(x, "cond")
    return _host(lambda values: np.linalg.cond(values, p), x)


def multi_dot(arrays, /) -> Array:
    """Returns the product of several matrices in the order that needs the fewest operations."""
    arrays = list(arrays)
    if len(arrays) < 2:
        raise ValueError("`multi_dot` needs two matrices or more")
    sizes = [array.shape[0] if array.ndim > 1 else 1 for array in arrays] + [arrays[-1].shape[-1] if arrays[-1].ndim > 1 else 1]
    if arrays[0].ndim == 1:
        sizes[0], sizes[1] = 1, arrays[0].shape[0]
    count = len(arrays)
    cost, cut = {(at, at): 0 for at in range(count)}, {}
    for length in range(1, count):
        for start in range(count - length):
            end = start + length
            steps = (
                (cost[start, at] + cost[at + 1, end] + sizes[start] * sizes[at + 1] * sizes[end + 1], at)
                for at in range(start, end)
            )
            cost[start, end], cut[start, end] = builtins.min(steps)

    def product(start, end):
        if start == end:
            return arrays[start]
        at = cut[start, end]
        return matmul(product(start, at), product(at + 1, end))

    return product(0, count - 1)


def norm(x, /, ord=None, axis=None, keepdims=False) -> Array:
    """Returns the norm of vectors or matrices, by NumPy's rules."""
    if axis is None and ord is None:
        found = vector_norm(x, keepdims=keepdims)
        return found
    if axis is None:
        axis = tuple(range(x.ndim))
    if isinstance(axis, int) or len(axis) == 1:
        return vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    from ._manipulation import moveaxis

    found = matrix_norm(moveaxis(x, tuple(axis), (-2, -1)), ord="fro" if ord is None else ord)
    if not keepdims:
        return found
    axes = [axis_of(one, x.ndim) for one in axis]
    return reshaped(found, tuple(1 if at in axes else extent for at, extent in enumerate(x.shape)))
