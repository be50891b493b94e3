"""Devices: where arrays are, and where new ones go."""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading

from . import _core

_open: dict[str, "Device"] = {}
_lock = threading.Lock()


class Device:
    """A device with its plans and kernels. `bl.device(name)` opens one; equal names give the same."""

    __slots__ = ("name", "_context", "_is_host")

    def __init__(self, context):
        self._context = context
        self.name = _core.device(context)
        self._is_host = _core.is_host(context)

    def __repr__(self):
        return f"device({self.name!r})"

    def __str__(self):
        return self.name

    def __eq__(self, other):
        if isinstance(other, str):
            return self.name == other
        return self is other

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return (device, (self.name,))


def devices() -> list[str]:
    """Returns the names of the devices that are here, the default first."""
    return _core.machines()


def device(name=None) -> Device:
    """Opens a device by name: "cpu", "cuda", "cuda:1", or "auto" for a GPU if there is one, else the CPU.

    >>> bl.device("cpu")
    device('cpu')
    """
    if isinstance(name, Device):
        return name
    if name is None:
        return _default.get() or device("auto")
    if not isinstance(name, str):
        raise TypeError(f"a device is named by a string, not by `{type(name).__name__}`")
    with _lock:
        if name not in _open:
            opened = Device(_core.open(name))
            _open[name] = _open.setdefault(opened.name, opened)
        return _open[name]


_default: contextvars.ContextVar[Device | None] = contextvars.ContextVar("broadloom_device", default=None)


@contextlib.contextmanager
def default_device(name):
    """Makes new arrays on a device inside of a `with` block."""
    token = _default.set(device(name))
    try:
        yield _default.get()
    finally:
        _default.reset(token)


def _in_child():
    """A child process has no threads of the devices that its parent opened."""
    if _open:
        _core.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
