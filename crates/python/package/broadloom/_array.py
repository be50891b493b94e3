"""The array type: a node of a graph that is computed when its elements are asked for."""

from __future__ import annotations

import numpy as np

from . import _core, _dtypes, _watching
from ._devices import Device, device as _device

_NUMBERS = (bool, int, float, complex)
_AXES = 8


class Array:
    """A lazy array of numbers on a device.

    Operations return new arrays and compute nothing. Reading elements computes them: `print`, `float(x)`,
    `np.asarray(x)`, `x.item()`. `bl.evaluate` starts the computation and does not wait.

    Arrays are made by `bl.asarray`, `bl.zeros`, `bl.arange` and the like, not by this class.
    """

    __slots__ = ("_node", "_dtype", "_device", "_shape_known", "__weakref__")
    __array_priority__ = 100.0
    __hash__ = None

    def __new__(cls, *args, **kwargs):
        raise TypeError("arrays are made by `bl.asarray`, `bl.zeros` and the like")

    # What an array is.

    @property
    def dtype(self) -> np.dtype:
        """The data type of the elements."""
        return self._dtype

    @property
    def device(self) -> Device:
        """The device of the elements."""
        return self._device

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents along the axes. After a boolean index this waits for the device."""
        known = self._shape_known
        if known is None:
            known = self._shape_known = tuple(_core.shape(self._node))
        return known

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self._dtype.itemsize

    @property
    def T(self) -> "Array":
        """The array with its axes in reverse order."""
        return permuted(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> "Array":
        """The array with its last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError(f"`mT` of an array of shape {self.shape}, which has no matrices")
        return permuted(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("`len` of an array without axes")
        return self.shape[0]

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("an array without axes cannot be iterated over")
        return (self[index] for index in range(self.shape[0]))

    def __repr__(self):
        text = repr(np.asarray(self))
        return "Array" + text[len("array"):].replace("\n", "\n") if text.startswith("array") else text

    def __str__(self):
        return str(np.asarray(self))

    def _repr_html_(self):
        """Shows arrays of one and two axes as tables in notebooks."""
        import html

        title = f"{self._dtype}, shape {self.shape}, {self._device}"
        if self.ndim not in (1, 2) or self.size == 0:
            return f"<pre>{title}\n{html.escape(str(self))}</pre>"
        rows = np.asarray(self if self.ndim == 2 else reshaped(self, (1, self.size)))
        shown = [[html.escape(format(value, "")) for value in _ends(row.tolist())] for row in _ends(list(rows))]
        lines = "".join("<tr>" + "".join(f"<td>{value}</td>" for value in row) + "</tr>" for row in shown)
        return f"<table><caption>{html.escape(title)}</caption>{lines}</table>"

    def __format__(self, spec):
        return format(self.item(), spec) if self.ndim == 0 and spec else format(str(self), spec)

    # Elements.

    def item(self):
        """Returns the only element as a Python number. Waits for it."""
        if self.size != 1:
            raise ValueError(f"only an array of one element is a number; this one has shape {self.shape}")
        return np.asarray(self).item()

    def tolist(self):
        """Returns the elements as nested lists. Waits for them."""
        return np.asarray(self).tolist()

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth value of an array of shape {self.shape} is ambiguous: use `bl.any` or `bl.all`")
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        if self._dtype.kind not in "iu" or self.ndim != 0:
            raise TypeError("only an integer array without axes is an index")
        return self.item()

    def __array__(self, dtype=None, copy=None):
        if dtype is not None and np.dtype(dtype) != self._dtype:
            if copy is False:
                raise ValueError(f"from {self._dtype} to {np.dtype(dtype)} needs a copy")
            return _host(self).astype(dtype)
        if copy:
            return _host(self).copy()
        if copy is False and not self._device._is_host:
            raise ValueError(f"elements on {self._device} come to the host by a copy")
        return _host(self)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        """Operators of a NumPy array with this one are those of this one; NumPy's other functions are refused."""
        from . import _elementwise

        name = {"subtract": "subtract", "true_divide": "divide", "power": "pow", "mod": "remainder"}
        found = getattr(_elementwise, name.get(ufunc.__name__, ufunc.__name__), None)
        if method != "__call__" or kwargs or found is None:
            return NotImplemented
        return found(*inputs)

    @property
    def __array_interface__(self):
        if not self._device._is_host:
            raise AttributeError(f"the elements are on {self._device}: `np.asarray(x)` copies them to the host")
        return _host(self).__array_interface__

    @property
    def __cuda_array_interface__(self):
        if not self._device.name.startswith("cuda"):
            raise AttributeError(f"the elements are on {self._device}, not on a GPU")
        data = (_core.address(self._node), True) if self.size else (0, True)
        return {"version": 3, "shape": self.shape, "typestr": self._dtype.str, "data": data, "strides": None, "stream": None}

    def __dlpack_device__(self):
        return (1, 0) if self._device._is_host or not self._device.name.startswith("cuda") else (2, self._ordinal())

    def _ordinal(self):
        return int(self._device.name.partition(":")[2] or 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.__dlpack_device__()[0] != 1 and (dl_device is None or tuple(dl_device) != (1, 0) or copy is False):
            raise BufferError("DLPack of arrays on a GPU goes through the host: ask for `dl_device=(1, 0)`")
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError(f"an array on {self._device} cannot be exported to the device {tuple(dl_device)}")
        host = _host(self)
        readable = max_version is not None and tuple(max_version) >= (1, 0)
        if not readable and copy is False:
            # DLPack before 1.0 cannot say that elements are read-only; who asks for no copy may not write.
            return np.asarray(_Elements(self, is_readonly=False)).__dlpack__() if self.size else host.__dlpack__()
        if copy or not readable:
            host = host.copy()
        return host.__dlpack__(max_version=max_version) if readable else host.__dlpack__()

    def __array_namespace__(self, *, api_version=None):
        import broadloom

        if api_version not in (None, *broadloom._API_VERSIONS):
            raise ValueError(f"the array API standard {api_version!r} is not provided; {broadloom.__array_api_version__} is")
        return broadloom

    def __reduce__(self):
        return (_from_pickle, (np.asarray(self), self._device.name))

    def __copy__(self):
        return made(self._node, self._dtype, self._device, self._shape_known)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def copy(self) -> "Array":
        """Returns an array with the same elements, which later assignments to this one do not change."""
        return self.__copy__()

    def to_device(self, device, /, *, stream=None) -> "Array":
        """Returns the array on another device."""
        target = _device(device)
        if stream is not None:
            raise ValueError("streams are chosen by the library: leave `stream` out")
        return self if target is self._device else from_host(np.asarray(self), target)

    def explain(self) -> str:
        """Returns the plan that would compute the array. It is not computed."""
        return _core.explain([self._node])


def made(node, dtype, device, shape=None) -> Array:
    """Wraps a node as an array."""
    array = object.__new__(Array)
    array._node, array._dtype, array._device, array._shape_known = node, dtype, device, shape
    return array


class Weak(Array):
    """A number of a traced function: its data type adapts to arrays beside it, as that of a Python number."""

    __slots__ = ()


def weak_number(array) -> Array:
    """Returns an array without axes as a number that adapts."""
    number = object.__new__(Weak)
    number._node, number._dtype, number._device, number._shape_known = array._node, array._dtype, array._device, ()
    return number


# Python numbers of each kind, for the rules of promotion.
_EXAMPLES = {"b": False, "i": 0, "f": 0.0, "c": 0j}


def like(node, array, shape=None) -> Array:
    """Wraps a node with the data type and the device of another array."""
    return made(node, array._dtype, array._device, shape)


def _ends(items, most=20):
    """Returns the items of a long list at its ends, with a mark between them."""
    if len(items) <= most:
        return items
    mark = ["…"] if not isinstance(items[0], np.ndarray) else [np.array(["…"] * min(len(items[0]), most))]
    return items[: most // 2] + mark + items[-(most // 2) :]


class _Elements:
    """Elements in the memory of the host, for NumPy. Keeps their node alive."""

    __slots__ = ("node", "__array_interface__")

    def __init__(self, array, is_readonly=True):
        self.node = array._node
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array._dtype.str,
            "data": (_core.address(array._node), is_readonly),
        }


def _host(array) -> np.ndarray:
    """Returns the elements as a NumPy array: without a copy if the device works in the memory of the host."""
    shape = array.shape
    if array.size == 0:
        return np.empty(shape, array._dtype)
    if array._device._is_host:
        return np.asarray(_Elements(array))
    values = np.empty(shape, array._dtype)
    _core.read(array._node, values.ctypes.data, values.nbytes)
    if _watching.CHECKERS:
        _watching.note_work()
    values.flags.writeable = False
    return values


def from_host(values: np.ndarray, device) -> Array:
    """Copies a NumPy array to a device."""
    dtype = _dtypes.checked(values.dtype)
    if values.ndim > _AXES:
        raise ValueError(f"arrays have at most {_AXES} axes; this one has {values.ndim}")
    dense = np.ascontiguousarray(values, dtype=dtype).reshape(values.shape)
    node = _core.upload(device._context, dense.shape, _dtypes.name_of(dtype), dense.ctypes.data, dense.nbytes)
    return made(node, dtype, device, dense.shape)


def _from_pickle(values, name):
    try:
        target = _device(name)
    except ValueError:
        target = _device()
    return from_host(values, target)


def scalar(value, dtype, device) -> Array:
    """Makes an array without axes from a number."""
    if dtype.kind in "iu" and isinstance(value, float) or dtype.kind != "c" and isinstance(value, complex):
        raise TypeError(f"{value} is no {dtype}")
    if isinstance(value, np.generic):
        value = value.item()
    return made(_core.fill(device._context, (), _dtypes.name_of(dtype), value), dtype, device, ())


def cast(array: Array, dtype) -> Array:
    """Converts the elements to another data type."""
    if array._dtype == dtype:
        return array
    if array._dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"complex numbers do not become {dtype}: take `bl.real(x)` or `bl.abs(x)`")
    return made(_core.convert(array._node, _dtypes.name_of(dtype)), dtype, array._device, array._shape_known)


def reshaped(array: Array, shape) -> Array:
    """Returns the elements in another shape of the same size."""
    shape = tuple(shape)
    if len(shape) > _AXES:
        raise ValueError(f"arrays have at most {_AXES} axes; {shape} has {len(shape)}")
    return array if shape == array.shape else like(_core.reshape(array._node, shape), array, shape)


def viewed(array: Array, maps, shape, outside=None) -> Array:
    """Returns a view; `maps` has (axis of the result or -1, offset, stride) for each axis of the array."""
    return like(_core.affine(array._node, maps, shape, outside), array, tuple(shape))


def permuted(array: Array, axes) -> Array:
    """Returns the array with its axes in another order."""
    if tuple(axes) == tuple(range(array.ndim)):
        return array
    to = {source: target for target, source in enumerate(axes)}
    return viewed(array, [(to[axis], 0, 1) for axis in range(array.ndim)], [array.shape[axis] for axis in axes])


def stretched(array: Array, shape) -> Array:
    """Broadcasts to a shape."""
    shape = tuple(shape)
    return array if shape == array.shape else like(_core.broadcast(array._node, shape), array, shape)


def axis_of(axis, ndim, what="axis") -> int:
    """Returns an axis as a number from 0; raises `IndexError` for one that is not there."""
    index = axis.__index__()
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim)
    return index % ndim


def axes_of(axis, ndim) -> tuple[int, ...]:
    """Returns axes as numbers from 0; `None` means all."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple):
        return (axis_of(axis, ndim),)
    axes = tuple(axis_of(one, ndim) for one in axis)
    if len(set(axes)) != len(axes):
        raise ValueError(f"an axis is named twice in {axis}")
    return axes


def operands(*values) -> tuple[list[Array], np.dtype]:
    """Converts arrays and numbers to arrays of one data type on one device."""
    arrays = [value for value in values if isinstance(value, Array)]
    if not arrays:
        from ._creation import asarray

        return operands(asarray(values[0]), *values[1:])
    device = arrays[0]._device
    for array in arrays:
        if array._device is not device:
            raise ValueError(f"one array is on {device}, the other on {array._device}: `to_device` copies one of them")
    strong = [array for array in arrays if type(array) is Array] or arrays
    dtype = strong[0]._dtype
    for array in strong[1:]:
        if array._dtype is not dtype:
            dtype = _dtypes.promote(dtype, array._dtype)
    converted = []
    for value in values:
        if type(value) is Weak and strong is not arrays:
            dtype = _dtypes.of_scalar(_EXAMPLES[value._dtype.kind], dtype)
        if not isinstance(value, (Array, *_NUMBERS)):
            if isinstance(value, np.generic):
                dtype = _dtypes.promote(dtype, _dtypes.checked(value.dtype))
            elif not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
                _dtypes.of_scalar(value, dtype)
            else:
                value = from_host(np.asarray(value), device)
                dtype = _dtypes.promote(dtype, value._dtype)
        elif not isinstance(value, Array):
            dtype = _dtypes.of_scalar(value, dtype)
        converted.append(value)
    return [cast(v, dtype) if isinstance(v, Array) else scalar(v, dtype, device) for v in converted], dtype
