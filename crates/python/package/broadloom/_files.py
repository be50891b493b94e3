"""Arrays in files of NumPy's formats, `.npy` and `.npz`."""

from __future__ import annotations

import os

import numpy as np

from ._array import Array
from ._creation import asarray


def _host(x) -> np.ndarray:
    return np.asarray(x if isinstance(x, Array) else asarray(x))


def save(file, x, /) -> None:
    """Writes an array to a `.npy` file, as `np.save`."""
    np.save(file, _host(x), allow_pickle=False)


def savez(file, /, *arrays, **named) -> None:
    """Writes several arrays to a `.npz` file: by name, or as `arr_0`, `arr_1` …"""
    np.savez(file, *map(_host, arrays), **{name: _host(x) for name, x in named.items()})


def savez_compressed(file, /, *arrays, **named) -> None:
    """Writes several arrays to a compressed `.npz` file."""
    np.savez_compressed(file, *map(_host, arrays), **{name: _host(x) for name, x in named.items()})


def load(file, /, *, device=None):
    """Reads an array of a `.npy` file, or all arrays of a `.npz` file as a dictionary."""
    found = np.load(file, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return asarray(found, device=device)
    with found:
        arrays = {name: asarray(found[name], device=device) for name in found.files}
    if not arrays:
        raise ValueError(f"`load`: there are no arrays in {os.fspath(file)!r}")
    return arrays
