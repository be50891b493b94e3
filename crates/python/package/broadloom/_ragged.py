"""Ragged arrays: sequences of sequences of different lengths, on the device.

A level of nesting is a line of offsets: list `k` has the elements from `offsets[k]` up to `offsets[k + 1]`, as Arrow's
lists. The values below it are an array, another ragged array, or several of them by name: a record. Operations on values
are those of arrays, so they fuse; operations on lists work on segments of a line.
"""

from __future__ import annotations


import numpy as np

from . import _core, _dtypes
from ._array import Array, cast, like, made, reshaped, scalar
from ._creation import arange, asarray, full, positions, zeros
from ._devices import device as _device
from ._elementwise import isnan, logical_not, maximum, minimum, where
from ._indexing import taken
from ._manipulation import concat
from ._reductions import any as any_true, cumulative_sum, sum as total


def _line(node, dtype, device, count=None) -> Array:
    return made(node, dtype, device, None if count is None else (count,))


class Ragged:
    """A sequence of sequences of different lengths. `bl.ragged`, `bl.Ragged.from_lists` and NESL functions make it.

    >>> bl.ragged([[1.0, 2.0], [], [3.0]]).sum(axis=-1)
    Array([3., 0., 3.])
    """

    __slots__ = ("offsets", "values", "_known", "__weakref__")
    __array_priority__ = 200.0
    __hash__ = None

    def __init__(self, offsets, values):
        self.offsets = offsets if isinstance(offsets, Array) else asarray(offsets, dtype=_dtypes.int64)
        self.values = values
        self._known = None

    # Making and showing.

    @staticmethod
    def from_lists(lists, /, *, dtype=None, device=None) -> "Ragged":
        """Makes a ragged array from nested lists; all numbers are at the same depth."""
        found = _from_lists(list(lists), dtype, _device(device))
        if not isinstance(found, Ragged):
            raise TypeError("nested lists are needed: these have one level")
        return found

    @staticmethod
    def from_lengths(lengths, values, /) -> "Ragged":
        """Makes a ragged array from the length of each list and the elements behind each other."""
        lengths = lengths if isinstance(lengths, Array) else asarray(lengths, device=getattr(values, "device", None))
        return Ragged(_offsets_of(lengths), values if isinstance(values, Ragged | Array) else asarray(values))

    @staticmethod
    def from_array(x, /) -> "Ragged":
        """Makes a ragged array from the rows of an array."""
        count, width = x.shape[0], x.shape[1]
        inner = reshaped(x, (count * width, *x.shape[2:]))
        if inner.ndim > 1:
            inner = Ragged.from_array(inner)
        return Ragged(arange(count + 1, device=x.device) * width, inner)

    @property
    def device(self):
        """The device of the elements."""
        return self.offsets.device

    @property
    def dtype(self) -> np.dtype:
        """The data type of the elements."""
        return self.leaves.dtype

    @property
    def leaves(self) -> Array:
        """All elements behind each other."""
        return self.values.leaves if isinstance(self.values, Ragged) else self.values

    @property
    def depth(self) -> int:
        """The number of levels of lists, with the outer one."""
        return 1 + (self.values.depth if isinstance(self.values, Ragged) else 1)

    @property
    def nbytes(self) -> int:
        """The size of offsets and elements in bytes."""
        return self.offsets.nbytes + self.values.nbytes

    def __len__(self):
        return self.offsets.shape[0] - 1

    def _count(self) -> int:
        """Returns the number of elements of the lists."""
        return len(self.values) if isinstance(self.values, Ragged) else self.values.shape[0]

    @property
    def _segments(self):
        if self._known is None:
            self._known = _core.segments(self.offsets._node, self._count())
        return self._known

    def tolist(self) -> list:
        """Returns nested lists. Waits for the elements."""
        offsets, inner = np.asarray(self.offsets).tolist(), self.values.tolist()
        return [inner[start:stop] for start, stop in zip(offsets, offsets[1:])]

    to_list = tolist

    def __iter__(self):
        offsets = np.asarray(self.offsets).tolist()
        return (self.values[start:stop] for start, stop in zip(offsets, offsets[1:]))

    def __repr__(self):
        if len(self) > 12:
            head, tail = self[:5].tolist(), self[-5:].tolist()
            shown = ",\n        ".join([str(row) for row in head] + ["..."] + [str(row) for row in tail])
            return f"Ragged([{shown}], lists={len(self)}, elements={self.leaves.size}, dtype={self.dtype})"
        return f"Ragged({self.tolist()})"

    def _repr_html_(self):
        rows = "".join(f"<tr><td>{at}</td><td>{row}</td></tr>" for at, row in enumerate(self[:20].tolist()))
        more = f"<caption>{len(self)} lists, {self.leaves.size} elements of {self.dtype}</caption>"
        return f"<table>{more}{rows}</table>"

    # Lengths and numbers of lists.

    def lengths(self, axis=1):
        """Returns the length of each list: of the first level, or of a deeper one as a ragged array."""
        if axis > 1:
            return Ragged(self.offsets, self.values.lengths(axis - 1))
        return self.offsets[1:] - self.offsets[:-1]

    num = lengths

    def parents(self) -> Array:
        """Returns for each element the number of its list."""
        return _line(_core.convert(_core.segment_numbers(self._segments), "int64"), _dtypes.int64, self.device, self._count())

    def local_index(self) -> "Ragged":
        """Returns the index of each element in its list."""
        if isinstance(self.values, Ragged):
            return Ragged(self.offsets, self.values.local_index())
        return Ragged(self.offsets, _line(_core.segment_places(self._segments), _dtypes.int64, self.device, self._count()))

    # Values.

    def _with_leaves(self, leaves) -> "Ragged":
        inner = self.values._with_leaves(leaves) if isinstance(self.values, Ragged) else leaves
        found = Ragged(self.offsets, inner)
        found._known = self._known
        return found

    def map(self, function, *others, depth=None) -> "Ragged":
        """Applies a function of arrays to the elements, of this and of other ragged arrays with the same lists.

        With a depth, the function gets the ragged arrays at that depth: 1 is this one, 2 the lists of its lists.
        """
        if depth is not None and depth > 1:
            others = [one.values if isinstance(one, Ragged) else one for one in others]
            return Ragged(self.offsets, self.values.map(function, *others, depth=depth - 1))
        if depth == 1:
            return function(self, *others)
        given = [self.leaves] + [self._aligned(one) for one in others]
        return self._with_leaves(function(*given))

    def _aligned(self, other):
        """Returns the elements of another value beside those of this one: one number for each list is repeated."""
        if isinstance(other, Ragged):
            if other.depth == self.depth:
                self._check_lists(other)
                return other.leaves
            if other.depth < self.depth:
                self._check_outer(other)
                return self.values._aligned(other.values) if isinstance(self.values, Ragged) else self._spread(other.values)
            raise ValueError(f"a ragged array of {other.depth} levels beside one of {self.depth}")
        if isinstance(other, Array) and other.ndim == 1 and other.shape[0] == len(self):
            spread = self._spread(other)
            return self.values._aligned(spread) if isinstance(self.values, Ragged) else spread
        if isinstance(other, (np.ndarray, list)):
            return self._aligned(asarray(other, device=self.device))
        if isinstance(other, Array) and other.ndim:
            raise ValueError(f"an array of shape {other.shape} beside {len(self)} lists: one element for each list is needed")
        return other

    def _spread(self, values) -> Array:
        return like(_core.segment_spread(self._segments, values._node), values, (self._count(),))

    def _check_outer(self, other):
        if len(self) != len(other):
            raise ValueError(f"{len(self)} lists beside {len(other)}")

    def _check_lists(self, other):
        self._check_outer(other)
        if self.offsets is not other.offsets and self.offsets._node is not other.offsets._node:
            if bool(any_true(self.offsets != other.offsets)):
                at = int(np.flatnonzero(np.asarray(self.lengths() != other.lengths()))[0])
                raise ValueError(
                    f"the lists have different lengths: list {at} has {int(self.lengths()[at])} and {int(other.lengths()[at])} elements"
                )
        if isinstance(self.values, Ragged) and isinstance(other.values, Ragged):
            self.values._check_lists(other.values)

    def astype(self, dtype) -> "Ragged":
        """Converts the elements to another data type."""
        return self._with_leaves(cast(self.leaves, _dtypes.checked(dtype)))

    # Reductions and scans of the innermost lists, or of the outer ones.

    def _reduced(self, combine, axis, leaf=None):
        if axis is None:
            return None
        depth = self.depth
        axis = axis + depth if axis < 0 else axis
        if not 0 < axis < depth:
            raise ValueError(f"axis {axis} of a ragged array of {depth} levels: a reduction is along one of 1 to {depth - 1}")
        if isinstance(self.values, Ragged):
            if axis == 1:
                raise ValueError("a reduction across lists of lists: reduce the innermost axis first, `axis=-1`")
            return Ragged(self.offsets, self.values._reduced(combine, axis - 1, leaf))
        values = self.values if leaf is None else leaf(self.values)
        return like(_core.segment_reduce(self._segments, values._node, combine)[0], values, (len(self),))

    def sum(self, axis=None):
        """Sums the elements: all of them, or those of each list with `axis=-1`. An empty list gives 0."""
        from ._reductions import _wide

        found = self._reduced("sum", axis, lambda x: _wide(x, None))
        return total(self.leaves) if found is None else found

    def prod(self, axis=None):
        """Multiplies the elements of each list. An empty list gives 1."""
        from ._reductions import _wide, prod

        found = self._reduced("product", axis, lambda x: _wide(x, None))
        return prod(self.leaves) if found is None else found

    def max(self, axis=None):
        """Returns the maximum of each list; the least value of the type for an empty list, -inf for floats."""
        from ._reductions import max as greatest

        found = self._reduced("max", axis)
        return greatest(self.leaves) if found is None else found

    def min(self, axis=None):
        """Returns the minimum of each list; the greatest value of the type for an empty list, inf for floats."""
        from ._reductions import min as least

        found = self._reduced("min", axis)
        return least(self.leaves) if found is None else found

    def any(self, axis=None):
        """Tests if an element of each list is true."""
        truth = self if self.dtype.kind == "b" else self != 0
        found = truth._reduced("any", axis)
        return any_true(truth.leaves) if found is None else found

    def all(self, axis=None):
        """Tests if all elements of each list are true."""
        from ._reductions import all as all_true

        truth = self if self.dtype.kind == "b" else self != 0
        found = truth._reduced("all", axis)
        return all_true(truth.leaves) if found is None else found

    def count(self, axis=-1):
        """Returns the number of elements of each list."""
        return self._with_leaves(full(self.leaves.shape, 1, device=self.device)).sum(axis)

    def count_nonzero(self, axis=None):
        """Counts the elements that are not 0."""
        return (self != 0).astype(_dtypes.int64).sum(axis)

    def mean(self, axis=None):
        """Returns the mean of each list; NaN for an empty list."""
        if axis is None:
            from ._reductions import mean

            return mean(self.leaves)
        return self.sum(axis) / self.count(axis)

    def var(self, axis=None, correction=0.0):
        """Returns the variance of each list."""
        if axis is None:
            from ._reductions import var

            return var(self.leaves, correction=correction)
        off = self - self.mean(axis)
        return (off * off).sum(axis) / (self.count(axis) - correction)

    def std(self, axis=None, correction=0.0):
        """Returns the standard deviation of each list."""
        found = self.var(axis, correction)
        from ._elementwise import sqrt

        return found.map(sqrt) if isinstance(found, Ragged) else sqrt(found)

    def ptp(self, axis=-1):
        """Returns the difference of maximum and minimum of each list."""
        return self.max(axis) - self.min(axis)

    def _extreme(self, greatest, axis):
        if axis not in (-1, self.depth - 1):
            raise ValueError("the place of an extreme is that in the innermost lists: `axis=-1`")
        if isinstance(self.values, Ragged):
            return Ragged(self.offsets, self.values._extreme(greatest, -1))
        return _line(_core.segment_extreme(self._segments, self.values._node, greatest), _dtypes.int64, self.device, len(self))

    def argmax(self, axis=-1):
        """Returns the index of the maximum in each list; -1 for an empty list."""
        return self._extreme(True, axis)

    def argmin(self, axis=-1):
        """Returns the index of the minimum in each list; -1 for an empty list."""
        return self._extreme(False, axis)

    def cumsum(self) -> "Ragged":
        """Returns the sums of all elements up to each in its list."""
        return self._scanned("sum")

    def cumprod(self) -> "Ragged":
        """Returns the products of all elements up to each in its list."""
        return self._scanned("product")

    def cummax(self) -> "Ragged":
        """Returns the maximum of all elements up to each in its list."""
        return self._scanned("max")

    def cummin(self) -> "Ragged":
        """Returns the minimum of all elements up to each in its list."""
        return self._scanned("min")

    def _scanned(self, combine):
        if isinstance(self.values, Ragged):
            return Ragged(self.offsets, self.values._scanned(combine))
        from ._reductions import _wide

        values = _wide(self.values, None) if combine in ("sum", "product") else self.values
        return self._with_leaves(like(_core.segment_scan(self._segments, values._node, combine, True)[0], values, values.shape))

    def _sorted(self, descending):
        key = self.values
        key = cast(key, _dtypes.uint8) if key.dtype.kind == "b" else key
        return _core.segment_sort(self._segments, key._node, descending), key.dtype

    def sort(self, *, descending=False) -> "Ragged":
        """Sorts each list."""
        if isinstance(self.values, Ragged):
            return Ragged(self.offsets, self.values.sort(descending=descending))
        nodes, dtype = self._sorted(descending)
        return self._with_leaves(cast(_line(nodes[0], dtype, self.device, self._count()), self.dtype))

    def argsort(self, *, descending=False) -> "Ragged":
        """Returns the indices that sort each list. The sort is stable."""
        if isinstance(self.values, Ragged):
            return Ragged(self.offsets, self.values.argsort(descending=descending))
        nodes, _ = self._sorted(descending)
        places = _line(nodes[1], _dtypes.int64, self.device, self._count())
        return self._with_leaves(places - self._spread(self.offsets[:-1]))

    # Choosing.

    def __getitem__(self, key):
        if isinstance(key, tuple):
            return self._by_tuple(key)
        if isinstance(key, Ragged):
            return self._by_ragged(key)
        if isinstance(key, (int, np.integer)):
            count = len(self)
            if not -count <= key < count:
                raise IndexError(f"index {key} is out of bounds for {count} lists")
            start, stop = np.asarray(self.offsets[int(key) % count : int(key) % count + 2]).tolist()
            return self.values[start:stop]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                stop = max(start, stop)
                offsets = self.offsets[start : stop + 1]
                first, last = (int(offsets[0]), int(offsets[-1])) if offsets.shape[0] else (0, 0)
                return Ragged(offsets - first, self.values[first:last])
            key = asarray(np.arange(start, stop, step), device=self.device)
        key = key if isinstance(key, Array) else asarray(key, device=self.device)
        if key.dtype.kind == "b":
            if key.shape != (len(self),):
                raise IndexError(f"a mask of shape {key.shape} for {len(self)} lists")
            key = arange(len(self), device=self.device)[key]
        return self._take(key)

    def _take(self, index) -> "Ragged":
        """Returns lists by their numbers."""
        lengths, starts = taken(self.lengths(), index, 0), taken(self.offsets[:-1], where(index < 0, index + len(self), index), 0)
        offsets = _offsets_of(lengths)
        made_ = Ragged(offsets, zeros((int(offsets[-1]),), dtype=_dtypes.int64, device=self.device))
        places = made_.local_index().values + made_._spread(starts)
        return Ragged(offsets, _taken(self.values, places))

    def _by_tuple(self, key):
        first, rest = key[0], key[1:]
        outer = self if isinstance(first, slice) and first == slice(None) or first is Ellipsis else self[first]
        if not rest:
            return outer
        if isinstance(first, (int, np.integer)):
            return outer[rest if len(rest) > 1 else rest[0]]
        inner = rest[0]
        if len(rest) > 1:
            if not isinstance(inner, slice) or inner != slice(None):
                raise IndexError("an index into a deeper level is behind whole lists: `x[:, :, 0]`")
            return Ragged(outer.offsets, outer.values[(slice(None), *rest[1:])])
        if isinstance(inner, (int, np.integer)):
            lengths = outer.lengths()
            at = int(inner)
            short = lengths <= at if at >= 0 else lengths < -at
            if bool(any_true(short)):
                number = int(np.flatnonzero(np.asarray(short))[0])
                raise IndexError(f"index {at} is out of bounds for list {number}, which has {int(lengths[number])} elements")
            places = outer.offsets[:-1] + at if at >= 0 else outer.offsets[1:] + at
            return _taken(outer.values, places)
        if isinstance(inner, slice):
            return outer._sliced(inner)
        if isinstance(inner, (list, np.ndarray, Array)):
            index = asarray(inner, device=self.device)
            return outer._by_ragged(Ragged.from_array(index[None, :] + zeros((len(outer), 1), dtype=_dtypes.int64)))
        raise IndexError(f"{inner!r} is no index into lists")

    def _sliced(self, part) -> "Ragged":
        step = 1 if part.step is None else part.step
        lengths = self.lengths()

        def bound(value, default):
            if value is None:
                return default
            value = value + lengths if value < 0 else lengths * 0 + value
            low, high = (lengths * 0, lengths) if step > 0 else (lengths * 0 - 1, lengths - 1)
            return minimum(maximum(value, low), high)

        if step == 0:
            raise ValueError("a slice with a step of 0")
        start = bound(part.start, lengths * 0 if step > 0 else lengths - 1)
        stop = bound(part.stop, lengths if step > 0 else lengths * 0 - 1)
        counts = (stop - start + (step - 1 if step > 0 else step + 1)) // step
        offsets = _offsets_of(maximum(counts, 0))
        made_ = Ragged(offsets, zeros((int(offsets[-1]),), dtype=_dtypes.int64, device=self.device))
        places = made_.local_index().values * step + made_._spread(self.offsets[:-1] + start)
        return Ragged(offsets, _taken(self.values, places))

    def _by_ragged(self, key) -> "Ragged":
        if key.dtype.kind == "b":
            return self.filter(key)
        self._check_outer(key)
        if isinstance(key.values, Ragged):
            return Ragged(self.offsets, self.values._by_ragged(key.values))
        lengths = key._spread(self.lengths())
        index = key.values
        outside = (index < -lengths) | (index >= lengths)
        if bool(any_true(outside)):
            at = int(np.flatnonzero(np.asarray(outside))[0])
            raise IndexError(f"index {int(index[at])} is out of bounds for a list of {int(lengths[at])} elements")
        index = where(index < 0, index + lengths, index) + key._spread(self.offsets[:-1])
        return Ragged(key.offsets, _taken(self.values, index))

    def filter(self, mask) -> "Ragged":
        """Keeps the elements where a mask with the same lists is true. With an array, keeps whole lists."""
        if isinstance(mask, Array):
            return self[mask]
        if mask.depth < self.depth and mask.depth > 1:
            raise ValueError(f"a mask of {mask.depth} levels for {self.depth}")
        self._check_outer(mask)
        if isinstance(mask.values, Ragged):
            return Ragged(self.offsets, self.values.filter(mask.values))
        flags = mask.values
        if isinstance(self.values, Ragged):
            kept = cumulative_sum(cast(flags, _dtypes.int64), include_initial=True)
            return Ragged(taken(kept, self.offsets, 0), self.values[flags])
        nodes = _core.segment_pack(self._segments, flags._node, [self.values._node])
        return Ragged(_line(nodes[0], _dtypes.int64, self.device, len(self) + 1), like(nodes[1], self.values))

    def drop_nan(self) -> "Ragged":
        """Removes NaN from the lists."""
        return self.filter(self._with_leaves(logical_not(isnan(self.leaves))))

    def firsts(self):
        """Returns the first element of each list. No list may be empty."""
        return self[:, 0]

    # Shapes.

    def flatten(self, axis=1):
        """Removes a level of lists: their elements follow each other. `axis=None` removes all levels."""
        if axis is None:
            return self.leaves
        if axis == 1:
            return self.values
        if axis == 2 and isinstance(self.values, Ragged):
            return Ragged(taken(self.values.offsets, self.offsets, 0), self.values.values)
        return Ragged(self.offsets, self.values.flatten(axis - 1))

    def ravel(self) -> Array:
        """Returns all elements behind each other."""
        return self.leaves

    def unflatten(self, lengths) -> "Ragged":
        """Groups the lists by new lists of these lengths."""
        return unflatten(self, lengths)

    def to_padded(self, width=None, fill_value=0) -> Array:
        """Returns an array with a row for each list: cut or filled to a width, by default that of the longest list."""
        if isinstance(self.values, Ragged):
            raise ValueError("lists of lists have no rows of numbers: flatten a level first")
        lengths = self.lengths()
        if width is None:
            from ._reductions import max as greatest

            width = int(greatest(lengths)) if len(self) else 0
        shape = (len(self), int(width))
        if 0 in shape or self._count() == 0:
            return full(shape, fill_value, dtype=self.dtype, device=self.device)
        column = positions(shape, 1, self.device)
        places = column + reshaped(self.offsets[:-1], (len(self), 1))
        inside = column < reshaped(lengths, (len(self), 1))
        rows = like(_core.gather(self.values._node, [places._node], "clamp"), self.values, shape)
        return where(inside, rows, fill_value)

    pad_none = fill_none = to_padded

    def to_regular(self) -> Array:
        """Returns an array with a row for each list. All have one length."""
        lengths = np.asarray(self.lengths())
        if lengths.size and (lengths != lengths[0]).any():
            raise ValueError(f"the lists have lengths from {lengths.min()} to {lengths.max()}")
        width = int(lengths[0]) if lengths.size else 0
        inner = self.values.to_regular() if isinstance(self.values, Ragged) else self.values
        return reshaped(inner, (len(self), width, *inner.shape[1:]))

    def is_none(self):
        """Tests elements for NaN, which stands for a missing number."""
        return self._with_leaves(isnan(self.leaves))

    def run_lengths(self) -> "Ragged":
        """Returns the lengths of the runs of equal neighbours in each list."""
        values, count = self.values, self._count()
        if count == 0:
            return Ragged(self.offsets, zeros((0,), dtype=_dtypes.int64, device=self.device))
        before = like(_core.affine(values._node, [(0, -1, 1)], (count,), "clamp"), values, (count,))
        starts = (values != before) | (self.local_index().values == 0)
        first = arange(count, device=self.device)[starts]
        ends = concat([first[1:], reshaped(scalar(count, _dtypes.int64, self.device), (1,))])
        return Ragged(self._with_leaves(values).filter(self._with_leaves(starts)).offsets, ends - first)

    # Combinations.

    def _pairs(self, other_lengths, own_lengths):
        """Returns the offsets of all pairs in each list, and the indices of both elements in their lists."""
        offsets = _offsets_of(own_lengths * other_lengths)
        made_ = Ragged(offsets, zeros((int(offsets[-1]),), dtype=_dtypes.int64, device=self.device))
        place, width = made_.local_index().values, made_._spread(other_lengths)
        return made_, place // width, place % width

    def cartesian(self, other) -> tuple["Ragged", "Ragged"]:
        """Returns all pairs of an element of each list with one of the same list of another array."""
        self._check_outer(other)
        made_, left, right = self._pairs(other.lengths(), self.lengths())
        return (
            Ragged(made_.offsets, _taken(self.values, left + made_._spread(self.offsets[:-1]))),
            Ragged(made_.offsets, _taken(other.values, right + made_._spread(other.offsets[:-1]))),
        )

    def argcartesian(self, other) -> tuple["Ragged", "Ragged"]:
        """Returns the indices of all pairs of elements of lists with the same number."""
        self._check_outer(other)
        made_, left, right = self._pairs(other.lengths(), self.lengths())
        return Ragged(made_.offsets, left), Ragged(made_.offsets, right)

    def argcombinations(self, n=2) -> tuple["Ragged", ...]:
        """Returns the indices of all choices of `n` elements of each list in their order, without repetition."""
        if n < 1:
            raise ValueError(f"combinations of {n} elements")
        chosen = [self.local_index() if not isinstance(self.values, Ragged) else Ragged(self.offsets, _places(self))]
        for _ in range(n - 1):
            last, own = chosen[-1], self.lengths()
            # Each choice so far is followed by each later element.
            rest = last._spread(own) - last.values - 1
            inner = _offsets_of(rest)
            flat = Ragged(inner, zeros((int(inner[-1]),), dtype=_dtypes.int64, device=self.device))
            offsets = taken(inner, last.offsets, 0)
            follower = flat.local_index().values + flat._spread(last.values) + 1
            chosen = [Ragged(offsets, flat._spread(one.values)) for one in chosen] + [Ragged(offsets, follower)]
        return tuple(chosen)

    def combinations(self, n=2) -> tuple["Ragged", ...]:
        """Returns all choices of `n` elements of each list in their order: one ragged array for each member.

        >>> a, b = bl.ragged([[1, 2, 3], [4]]).combinations(2)
        >>> a, b
        (Ragged([[1, 1, 2], []]), Ragged([[2, 3, 3], []]))
        """
        return tuple(self._by_places(one) for one in self.argcombinations(n))

    def _by_places(self, index):
        return Ragged(index.offsets, _taken(self.values, index.values + index._spread(self.offsets[:-1])))

    # Other libraries.

    def __arrow_array__(self, type=None):
        found = to_arrow(self)
        return found if type is None else found.cast(type)

    def to_arrow(self):
        """Returns an Arrow array of lists that shares the memory of the elements on the CPU. Needs `pyarrow`."""
        return to_arrow(self)

    def to_awkward(self):
        """Returns an array of Awkward Array that shares the memory of the elements on the CPU. Needs `awkward`."""
        import awkward

        return awkward.Array(_awkward_layout(self))

    def __reduce__(self):
        return Ragged, (self.offsets, self.values)

    def __bool__(self):
        raise ValueError("the truth value of a ragged array is ambiguous: use `.any()` or `.all()`")


def _places(x) -> Array:
    return _line(_core.segment_places(x._segments), _dtypes.int64, x.device, x._count())


def _offsets_of(lengths) -> Array:
    return cumulative_sum(cast(lengths, _dtypes.int64), axis=0, include_initial=True)


def _taken(values, index):
    """Returns elements or lists at indices that are inside."""
    if isinstance(values, Ragged):
        return values._take(index)
    if index.size == 0:
        return zeros((0,), dtype=values.dtype, device=values.device)
    return like(_core.gather(values._node, [index._node], "clamp"), values, index.shape)


def _from_lists(lists, dtype, device):
    nested = [isinstance(one, (list, tuple, np.ndarray, Array)) for one in lists]
    if not any(nested):
        if not lists:
            return zeros((0,), dtype=dtype or _dtypes.DEFAULT_FLOAT, device=device)
        return asarray(lists, dtype=dtype, device=device)
    if not all(nested):
        raise TypeError(f"numbers and lists at one level: item {nested.index(False)} is {lists[nested.index(False)]!r}")
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists], dtype=np.int64)])
    if all(isinstance(one, (np.ndarray, Array)) and one.ndim == 1 for one in lists):
        inner = asarray(np.concatenate([np.asarray(one) for one in lists]), dtype=dtype, device=device)
    else:
        inner = _from_lists([item for one in lists for item in one], dtype, device)
    return Ragged(asarray(offsets, device=device), inner)


def ragged(data, /, *, dtype=None, device=None) -> Ragged:
    """Makes a ragged array from nested lists, an Awkward array, an Arrow array of lists, or an array with rows.

    >>> bl.ragged([[1, 2], [], [3]])
    Ragged([[1, 2], [], [3]])
    """
    if isinstance(data, Ragged):
        return data if dtype is None else data.astype(dtype)
    if hasattr(data, "layout") and hasattr(data, "behavior"):
        return _from_awkward(data.layout, _device(device))
    if hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__"):
        return _from_arrow(data, _device(device))
    if isinstance(data, (Array, np.ndarray)):
        return Ragged.from_array(asarray(data, dtype=dtype, device=device))
    return Ragged.from_lists(data, dtype=dtype, device=device)


def unflatten(values, lengths, /) -> Ragged:
    """Groups elements, or lists, by lists of these lengths."""
    lengths = lengths if isinstance(lengths, Array) else asarray(lengths, device=values.device)
    count = len(values) if isinstance(values, Ragged) else values.shape[0]
    offsets = _offsets_of(lengths)
    if int(offsets[-1]) != count:
        raise ValueError(f"lengths with the sum {int(offsets[-1])} for {count} elements")
    return Ragged(offsets, values)


def _from_awkward(layout, device):
    import awkward

    layout = awkward.to_packed(layout, highlevel=False)
    if layout.is_list:
        layout = layout.to_ListOffsetArray64(True)
        inner = _from_awkward(layout.content, device)
        return Ragged(asarray(np.asarray(layout.offsets), device=device), inner)
    if layout.is_numpy:
        found = asarray(np.asarray(layout.data), device=device)
        return found if found.ndim == 1 else Ragged.from_array(found)
    raise TypeError(f"an Awkward layout of the kind {type(layout).__name__}: lists of numbers are needed")


def _awkward_layout(x):
    import awkward

    if isinstance(x, Ragged):
        offsets = awkward.index.Index64(np.asarray(x.offsets))
        return awkward.contents.ListOffsetArray(offsets, _awkward_layout(x.values))
    return awkward.contents.NumpyArray(np.asarray(x))


def _from_arrow(data, device):
    import pyarrow

    array = pyarrow.array(data) if not isinstance(data, (pyarrow.Array, pyarrow.ChunkedArray)) else data
    array = array.combine_chunks() if isinstance(array, pyarrow.ChunkedArray) else array
    kind = array.type
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        if array.null_count:
            raise TypeError("Arrow lists with missing entries: fill or drop them first")
        offsets = np.asarray(array.offsets).astype(np.int64)
        return Ragged(asarray(offsets - offsets[0], device=device), _from_arrow(array.flatten(), device))
    if array.null_count:
        array = array.cast(pyarrow.float64())
    return asarray(array.to_numpy(zero_copy_only=False), device=device)


def to_arrow(x):
    """Returns an Arrow array of a ragged array or an array of one axis. Needs `pyarrow`."""
    import pyarrow

    if isinstance(x, Ragged):
        return pyarrow.LargeListArray.from_arrays(pyarrow.array(np.asarray(x.offsets)), to_arrow(x.values))
    return pyarrow.array(np.asarray(x))


def concatenate_ragged(arrays, /, *, axis=0) -> Ragged:
    """Puts ragged arrays behind each other: their lists, or with `axis=1` the elements of lists with one number."""
    arrays = [ragged(array) for array in arrays]
    if axis == 0:
        starts = np.cumsum([0] + [array._count() for array in arrays])
        offsets = [arrays[0].offsets] + [array.offsets[1:] + int(start) for array, start in zip(arrays[1:], starts[1:])]
        inner = [array.values for array in arrays]
        values = concatenate_ragged(inner) if isinstance(inner[0], Ragged) else concat(inner)
        return Ragged(concat(offsets), values)
    if axis != 1 or any(len(array) != len(arrays[0]) for array in arrays):
        raise ValueError("lists are joined along axis 1, and there are equally many")
    count = len(arrays[0])
    whole = concatenate_ragged(arrays)
    order = reshaped(arange(count * len(arrays), device=whole.device), (len(arrays), count)).T
    shuffled = whole._take(reshaped(order, (count * len(arrays),)))
    return Ragged(shuffled.offsets[:: len(arrays)], shuffled.values)


def group_by(keys, values, /) -> tuple[Array, Ragged]:
    """Groups values by equal keys. Returns the distinct keys in ascending order, and the values of each.

    >>> bl.group_by(bl.asarray([2, 1, 2]), bl.asarray([10.0, 20.0, 30.0]))
    (Array([1, 2]), Ragged([[20.0], [10.0, 30.0]]))
    """
    from ._reductions import argsort
    from ._search import unique_counts

    keys = keys if isinstance(keys, Array) else asarray(keys)
    values = values if isinstance(values, (Array, Ragged)) else asarray(values)
    order = argsort(keys)
    found = unique_counts(keys)
    inner = values._take(order) if isinstance(values, Ragged) else taken(values, order, 0)
    return found.values, Ragged(_offsets_of(found.counts), inner)


def join(left_keys, right_keys, /) -> tuple[Array, Array]:
    """Returns the indices of all pairs of equal keys, in the order of the left ones.

    >>> bl.join(bl.asarray([1, 2, 2]), bl.asarray([2, 3, 2]))
    (Array([1, 1, 2, 2]), Array([0, 2, 0, 2]))
    """
    from ._reductions import argsort
    from ._search import searchsorted

    left = left_keys if isinstance(left_keys, Array) else asarray(left_keys)
    right = right_keys if isinstance(right_keys, Array) else asarray(right_keys)
    order = argsort(right)
    line = taken(right, order, 0)
    low, high = searchsorted(line, left, side="left"), searchsorted(line, left, side="right")
    offsets = _offsets_of(high - low)
    pairs = Ragged(offsets, zeros((int(offsets[-1]),), dtype=_dtypes.int64, device=left.device))
    places = pairs.local_index().values + pairs._spread(low)
    return pairs.parents(), _taken(order, places)


def _operator(name):
    def forward(self, other):
        function = getattr(Array, name)
        if isinstance(other, Ragged) and other.depth > self.depth:
            return other.map(lambda theirs, own: function(own, theirs), self)
        return self.map(lambda own, theirs: function(own, theirs), other)

    return forward


def _unary(name):
    return lambda self: self.map(getattr(Array, name))


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split():
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(Ragged, _form, _operator(_form))
for _name in "lt le gt ge eq ne".split():
    setattr(Ragged, f"__{_name}__", _operator(f"__{_name}__"))
for _name in "neg pos abs invert".split():
    setattr(Ragged, f"__{_name}__", _unary(f"__{_name}__"))
