"""Sums of products by Einstein's convention."""

from __future__ import annotations

import math

from . import _dtypes
from ._array import Array, cast, permuted, reshaped, stretched, viewed
from ._creation import asarray
from ._elementwise import multiply
from ._reductions import sum
from .linalg import matmul


def _parsed(subscripts, ranks):
    """Returns the labels of each operand and of the result. `...` becomes labels of its own: numbers."""
    text = subscripts.replace(" ", "")
    if text.count("->") > 1:
        raise ValueError(f"`einsum`: {subscripts!r} has more than one `->`")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise ValueError(f"`einsum`: {subscripts!r} names {len(parts)} operands, and there are {len(ranks)}")
    widths = []
    for part, rank in zip(parts, ranks):
        named = part.replace("...", "")
        if not all(label.isalpha() for label in named):
            raise ValueError(f"`einsum`: the labels of {part!r} are not all letters")
        width = rank - len(named)
        if width < 0 or width > 0 and "..." not in part:
            raise ValueError(f"`einsum`: {part!r} names {len(named)} axes of an array of {rank}")
        widths.append(width if "..." in part else 0)
    dots = max(widths, default=0)

    def expanded(part, width):
        before, _, behind = part.partition("...")
        own = list(range(dots - width, dots)) if "..." in part else []
        return list(before) + own + list(behind)

    labels = [expanded(part, width) for part, width in zip(parts, widths)]
    if arrow:
        result = expanded(right, dots)
    else:
        named = [label for label in text.replace("...", "").replace(",", "")]
        result = list(range(dots)) + sorted(label for label in set(named) if named.count(label) == 1)
    known = {label for operand in labels for label in operand}
    for label in result:
        if label not in known or result.count(label) > 1:
            raise ValueError(f"`einsum`: the result of {subscripts!r} names {label!r}, which no operand has, or twice")
    return labels, result


def _diagonals(x, labels):
    """Replaces axes with one label by one axis: their diagonal."""
    unique = list(dict.fromkeys(labels))
    if len(unique) == len(labels):
        return x, labels
    shape = []
    for label in unique:
        extents = {x.shape[at] for at, own in enumerate(labels) if own == label}
        if len(extents) > 1:
            raise ValueError(f"`einsum`: the axes {label!r} of an array of shape {x.shape} have different extents")
        shape.append(extents.pop())
    return viewed(x, [(unique.index(label), 0, 1) for label in labels], shape), unique


def _summed(x, labels, kept):
    """Sums over the axes whose labels nobody needs."""
    gone = tuple(at for at, label in enumerate(labels) if label not in kept)
    if not gone:
        return x, labels
    return sum(x, axis=gone, dtype=x.dtype), [label for label in labels if label in kept]


def _pair(x, own, y, other, kept):
    """Multiplies two operands, and sums over the labels that only they have."""
    extents = {}
    for array, labels in ((x, own), (y, other)):
        for extent, label in zip(array.shape, labels):
            if extents.setdefault(label, extent) == 1:
                extents[label] = extent
    x, own = _summed(x, own, kept | set(other))
    y, other = _summed(y, other, kept | set(own))
    both = [label for label in own if label in other]
    if any(x.shape[own.index(label)] != y.shape[other.index(label)] for label in both):
        return _broadcast(x, own, y, other, kept, extents)
    inner = [label for label in both if label not in kept]
    batch = [label for label in both if label in kept]
    rows, columns = [label for label in own if label not in both], [label for label in other if label not in both]
    if batch or not inner:
        return _broadcast(x, own, y, other, kept, extents)

    def matrix(array, labels, first, second):
        turned = permuted(array, [labels.index(label) for label in first + second])
        return reshaped(turned, (math.prod(extents[label] for label in first), math.prod(extents[label] for label in second)))

    result = matmul(matrix(x, own, rows, inner), matrix(y, other, inner, columns))
    return reshaped(result, [extents[label] for label in rows + columns]), rows + columns


def _broadcast(x, own, y, other, kept, extents):
    labels = own + [label for label in other if label not in own]

    def placed(array, names):
        turned = permuted(array, [names.index(label) for label in labels if label in names])
        shape = iter(turned.shape)
        return reshaped(turned, [next(shape) if label in names else 1 for label in labels])

    product = multiply(placed(x, own), placed(y, other))
    return _summed(product, labels, kept)


def einsum(subscripts, /, *operands) -> Array:
    """Returns sums of products of arrays, whose axes are named by letters.

    Operands are multiplied from the left to the right; pairs without a common kept axis as matrices.

    >>> bl.einsum("ij,j->i", bl.asarray([[1.0, 2.0], [3.0, 4.0]]), bl.asarray([1.0, 10.0]))
    Array([21., 43.])
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"`einsum` takes the subscripts as a string first, not `{type(subscripts).__name__}`")
    arrays = [operand if isinstance(operand, Array) else asarray(operand) for operand in operands]
    if not arrays:
        raise ValueError("`einsum` of no arrays")
    dtype = _dtypes.result_type(*arrays)
    if dtype.kind == "b":
        raise TypeError("`einsum` of booleans: convert them to numbers")
    labels, result = _parsed(subscripts, [array.ndim for array in arrays])
    seen = {}
    for array, own in zip(arrays, labels):
        for extent, label in zip(array.shape, own):
            if extent != 1 and seen.setdefault(label, extent) != extent:
                raise ValueError(f"`einsum`: {label!r} is an axis of {seen[label]} and of {extent} in {subscripts!r}")
    pieces = [_diagonals(cast(array, dtype), own) for array, own in zip(arrays, labels)]
    found, own = pieces[0]
    for at, (array, other) in enumerate(pieces[1:], 1):
        kept = set(result).union(*(later for _, later in pieces[at + 1 :])) if at + 1 < len(pieces) else set(result)
        found, own = _pair(found, own, array, other, kept)
    found, own = _summed(found, own, set(result))
    found = permuted(found, [own.index(label) for label in result])
    return stretched(found, [seen.get(label, 1) for label in result])
