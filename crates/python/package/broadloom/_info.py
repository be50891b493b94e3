"""What the namespace can do, as the standard asks for it."""

from __future__ import annotations

from . import _dtypes
from ._devices import device as _device, devices as _devices


class NamespaceInfo:
    """Capabilities, devices and data types of the namespace."""

    def capabilities(self) -> dict:
        """Returns what is optional in the standard, and whether it is there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self):
        """Returns the device of new arrays."""
        return _device()

    def default_dtypes(self, *, device=None) -> dict:
        """Returns the data types of new arrays."""
        _device(device)
        return {"real floating": _dtypes.float64, "complex floating": _dtypes.complex128, "integral": _dtypes.int64, "indexing": _dtypes.int64}

    def dtypes(self, *, device=None, kind=None) -> dict:
        """Returns the data types of the standard by name. Arrays can also hold `float16`."""
        _device(device)
        known = (dtype for dtype in _dtypes.ALL if dtype != _dtypes.float16)
        return {dtype.name: dtype for dtype in known if kind is None or _dtypes.isdtype(dtype, kind)}

    def devices(self) -> tuple:
        """Returns the devices that are here."""
        return tuple(_device(name) for name in _devices())


def __array_namespace_info__() -> NamespaceInfo:
    """Returns what the namespace can do."""
    return NamespaceInfo()
