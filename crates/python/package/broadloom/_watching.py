"""Checking what kernels do, and recording when they run."""

from __future__ import annotations

import contextlib
import os
import sys

from . import _core
from ._devices import Device, default_device


class Finding:
    """A fault that the checker has found: the kind, the kernel, the line of Python, and what happened."""

    __slots__ = ("kind", "kernel", "line", "text")

    def __init__(self, kind, kernel, line, text):
        self.kind, self.kernel, self.line, self.text = kind, kernel, line, text

    def __repr__(self):
        return f"{self.line}: {self.text}" if self.line else self.text


def _line_of_user() -> str:
    """Returns the file and line of the innermost call outside of this package."""
    here, frame = os.path.dirname(__file__), sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == here:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


# Interpreters that check now, with their findings.
CHECKERS: list = []


def note_work() -> None:
    """Attributes new findings to the line of Python that waits for elements. Called after each wait while checking."""
    for checker, findings in CHECKERS:
        for kernel, kind, text in _core.findings(checker, len(findings)):
            findings.append(Finding(kind, kernel, _line_of_user(), text))


@contextlib.contextmanager
def checked():
    """Runs everything inside of a `with` block in the checker. Gives the list of findings.

    New arrays inside are on a device of their own, which interprets kernels and finds races, accesses out of bounds and
    reads of uninitialised memory.

    >>> with bl.checked() as findings:
    ...     total = float(bl.ones(100).sum())
    >>> findings
    []
    """
    context, checker = _core.checker()
    entry = (checker, [])
    CHECKERS.append(entry)
    try:
        with default_device(Device(context)):
            yield entry[1]
        note_work()
    finally:
        CHECKERS.remove(entry)


@contextlib.contextmanager
def profile(path):
    """Records what runs inside of a `with` block, and writes it as a trace that browsers show (`chrome://tracing`)."""
    trace = _core.start_trace()
    try:
        yield
    finally:
        _core.end_trace(trace, os.fspath(path))
