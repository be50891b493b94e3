"""Kernels in PTX on arrays: `bl.kernel`."""

from __future__ import annotations

import os

import numpy as np

from . import _core, _watching
from ._array import Array
from ._devices import device as _device


class Kernel:
    """A kernel of a module in PTX. `k[grid, block](*arguments)` launches it; `bl.kernel` makes one."""

    def __init__(self, handle, device):
        self._handle, self.device = handle, device
        self.name, self.parameters = _core.kernel_parameters(handle)

    def __repr__(self):
        parameters = ", ".join(f"{kind} {name}" for name, kind, _ in self.parameters)
        return f"<kernel {self.name}({parameters})>"

    def __getitem__(self, shape):
        if not isinstance(shape, tuple) or len(shape) not in (2, 3):
            raise TypeError("a launch is `k[grid, block](...)` or `k[grid, block, shared_bytes](...)`")
        grid, block = _extents(shape[0], "grid"), _extents(shape[1], "block")
        shared = shape[2] if len(shape) == 3 else 0
        return lambda *arguments: self._launch(grid, block, shared, arguments)

    def _launch(self, grid, block, shared, arguments):
        arrays, passed = [], []
        for argument in arguments:
            if isinstance(argument, Array):
                if argument.device is not self.device:
                    raise ValueError(f"an array on {argument.device} for a kernel on {self.device}: use `to_device`")
                if any(argument is array for array in arrays):
                    raise ValueError("one array stands for two parameters: pass a copy, `x.copy()`")
                arrays.append(argument)
                passed.append(argument._node)
            elif isinstance(argument, (bool, int, float, np.generic)):
                passed.append(argument.item() if isinstance(argument, np.generic) else argument)
            else:
                raise TypeError(f"a kernel takes arrays and numbers, not `{type(argument).__name__}`")
        nodes = _core.launch(self._handle, self.device._context, grid, block, shared, passed)
        if _watching.CHECKERS:
            _watching.note_work()
        for array, node in zip(arrays, nodes):
            array._node = node


def _extents(value, what) -> list[int]:
    extents = list(value) if isinstance(value, (tuple, list)) else [value]
    if not 1 <= len(extents) <= 3 or not all(isinstance(extent, int) and 0 < extent < 2**32 for extent in extents):
        raise ValueError(f"the {what} is one to three positive numbers, not {value!r}")
    return extents + [1] * (3 - len(extents))


def kernel(source, name=None, *, device=None) -> Kernel:
    """Loads a kernel from PTX: a text, or the path of a file that ends in `.ptx`.

    `k[grid, block](*arguments)` launches it and waits. Arrays that the kernel writes to hold the result
    afterwards. An access outside of an array is an error, or an end of the process on a GPU.
    """
    if isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".ptx")):
        with open(source, encoding="utf-8") as file:
            source = file.read()
    target = _device(device)
    return Kernel(_core.kernel(target._context, source, name), target)
