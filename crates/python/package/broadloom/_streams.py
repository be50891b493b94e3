"""StreamIt programs that are fed in pieces: `bl.stream`."""

from __future__ import annotations

import os

import numpy as np

from . import _core, _dtypes
from ._devices import device as _device


class Stream:
    """A running stream. `push` feeds it, `pull` takes what came out."""

    def __init__(self, handle):
        self._handle = handle
        self._types = tuple(_dtypes.checked(name) for name in _core.stream_types(handle))
        self._ready: list[np.ndarray] = []
        start, step, output = _core.stream_latency(handle)
        self.latency = {"start": start, "step": step, "output": output}

    @property
    def input_dtype(self) -> np.dtype:
        """The data type of the items that go in. Complex items are pairs of floats."""
        return self._types[0]

    @property
    def output_dtype(self) -> np.dtype:
        """The data type of the items that come out."""
        return self._types[1]

    def push(self, items) -> "Stream":
        """Feeds items. They are computed as soon as there are enough for a step."""
        values = np.asarray(items)
        if values.dtype.kind not in "iuf" or values.dtype.kind == "f" and self._types[0].kind != "f":
            raise TypeError(f"items of {values.dtype} for a stream of {self._types[0]}")
        piece = np.ascontiguousarray(values.ravel(), dtype=self._types[0]).tobytes()
        made = np.frombuffer(_core.stream_feed(self._handle, piece), self._types[1])
        if made.size:
            self._ready.append(made)
        return self

    def pull(self, count=None) -> np.ndarray:
        """Returns what has come out, or the first `count` items of it."""
        items = np.concatenate(self._ready) if self._ready else np.empty(0, self._types[1])
        taken = items if count is None else items[:count]
        self._ready = [items[len(taken):]] if len(taken) < len(items) else []
        return taken

    def __call__(self, items) -> np.ndarray:
        """Feeds items and returns what has come out."""
        return self.push(items).pull()

    def __repr__(self):
        return f"<stream {self._types[0]} -> {self._types[1]}, {self.latency['start']} items before the first output>"


def stream(source, name, /, *, device=None) -> Stream:
    """Starts a stream of a StreamIt program: a text, or the path of a file that ends in `.str`.

    `name` is the stream as behind `add`: "Fft(1024)". It keeps its state until it is dropped.
    """
    if isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".str")):
        with open(source, encoding="utf-8") as file:
            source = file.read()
    return Stream(_core.stream(_device(device)._context, source, name))


