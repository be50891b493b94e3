"""NESL programs as modules of Python functions: `bl.nesl`."""

from __future__ import annotations

import re

import numpy as np

from . import _core, _dtypes
from ._array import Array, made
from ._creation import asarray
from ._devices import device as _device
from ._ragged import Ragged

_BASES = {"int": _dtypes.int64, "float": _dtypes.float64, "bool": _dtypes.bool, "char": _dtypes.int64}


class _Parser:
    """Reads a type as NESL prints it: nested tuples ("seq", type), ("pair", types) and names."""

    def __init__(self, text):
        self.words = re.findall(r"->|[\[\](),]|\w+", text)
        self.at = 0

    def take(self):
        self.at += 1
        return self.words[self.at - 1]

    def peek(self):
        return self.words[self.at] if self.at < len(self.words) else None

    def one(self):
        word = self.take()
        if word == "[":
            inner = self.tuple()
            self.take()
            return ("seq", inner)
        if word == "(":
            inner = self.tuple()
            self.take()
            return inner
        return word

    def tuple(self):
        parts = [self.one()]
        while self.peek() == ",":
            self.take()
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else ("pair", tuple(parts))

    def function(self):
        argument = self.tuple()
        if self.peek() != "->":
            return None
        self.take()
        return argument, self.tuple()


def _shown(kind) -> str:
    if isinstance(kind, str):
        return kind
    if kind[0] == "seq":
        return "str" if kind[1] == "char" else f"[{_shown(kind[1])}]"
    return f"({', '.join(map(_shown, kind[1]))})"


def _columns(kind, values, device) -> list[Array]:
    """Converts values of one type, one for each element of a sequence, to columns."""
    if isinstance(kind, str):
        dtype = _BASES.get(kind)
        if dtype is None:
            raise TypeError(f"values of the NESL type `{kind}` cannot be passed")
        if isinstance(values, Array):
            if values.dtype.kind == "f" and dtype.kind != "f" or values.dtype.kind == "b" and dtype.kind != "b":
                raise TypeError(f"an array of {values.dtype} for the NESL type `{kind}`")
            return [asarray(values.to_device(device), dtype=dtype)]
        for value in values:
            fits = isinstance(value, (bool, np.bool_)) if kind == "bool" else not isinstance(value, (bool, str))
            fits = fits and (kind == "float" or not isinstance(value, float))
            if kind == "char":
                fits = isinstance(value, str) and len(value) == 1
            if not fits:
                raise TypeError(f"{value!r} for the NESL type `{kind}`")
        if kind == "char":
            values = [ord(value) for value in values]
        return [asarray(np.asarray(list(values), dtype=dtype), device=device)]
    if kind[0] == "pair":
        for value in values:
            if not isinstance(value, tuple) or len(value) != len(kind[1]):
                raise TypeError(f"{value!r} for the NESL type `{_shown(kind)}`")
        return [column for part, one in zip(kind[1], zip(*values)) for column in _columns(part, one, device)]
    if len(values) == 1 and isinstance(values[0], Ragged) and not isinstance(kind[1], str) and kind[1][0] == "seq":
        count = len(values[0])
        return [asarray(np.array([0, count]), device=device), *_ragged_columns(kind[1], values[0], device)]
    lengths, inner, whole = [], [], None
    for value in values:
        if isinstance(value, np.ndarray):
            value = asarray(value, device=device)
        if isinstance(value, Array):
            if value.ndim == 0:
                raise TypeError(f"a number for the NESL type `{_shown(kind)}`")
            if value.ndim > 1:
                value = list(value)
            elif len(values) == 1 and isinstance(kind[1], str):
                whole = value
        if isinstance(value, Ragged):
            value = list(value)
        if isinstance(value, (str, int, float)) and not (isinstance(value, str) and kind[1] == "char"):
            raise TypeError(f"{value!r} for the NESL type `{_shown(kind)}`")
        lengths.append(len(value))
        if whole is None:
            inner.extend(value.tolist() if isinstance(value, Array) and isinstance(kind[1], str) else value)
    offsets = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64), dtype=np.int64)]).astype(np.int64)
    elements = _columns(kind[1], inner if whole is None else whole, device)
    return [asarray(offsets, device=device), *elements]


def _ragged_columns(kind, value, device) -> list[Array]:
    """Returns the columns of a ragged array: its own offsets and elements, without a copy."""
    offsets = value.offsets.to_device(device)
    if isinstance(value.values, Ragged):
        if isinstance(kind[1], str) or kind[1][0] != "seq":
            raise TypeError(f"lists of lists for the NESL type `{_shown(kind)}`")
        return [offsets, *_ragged_columns(kind[1], value.values, device)]
    return [offsets, *_columns(kind[1], value.values, device)]


def _arguments(kind, value, device) -> list[Array]:
    """Converts one value to columns; its own sequence has no offsets."""
    columns = _columns(kind, [value], device)
    return columns if isinstance(kind, str) or kind[0] == "pair" else columns[1:]


def _top(kind, value, device) -> list[Array]:
    if not isinstance(kind, str) and kind[0] == "pair":
        if not isinstance(value, tuple) or len(value) != len(kind[1]):
            raise TypeError(f"{value!r} for the NESL type `{_shown(kind)}`")
        return [column for part, one in zip(kind[1], value) for column in _top(part, one, device)]
    return _arguments(kind, value, device)


def _result(kind, columns):
    """Takes the columns of a value of one type, and returns it."""
    if isinstance(kind, str):
        value = next(columns).tolist()[0]
        return chr(value) if kind == "char" else value
    if kind[0] == "pair":
        return tuple(_result(part, columns) for part in kind[1])
    return _sequence(kind[1], columns)


def _sequence(kind, columns):
    """Returns the elements of a sequence: an array, a `Ragged`, a string, or a tuple of them for pairs."""
    if kind == "char":
        return "".join(map(chr, next(columns).tolist()))
    if isinstance(kind, str):
        return next(columns)
    if kind[0] == "pair":
        return tuple(_sequence(part, columns) for part in kind[1])
    offsets = next(columns)
    inner = _sequence(kind[1], columns)
    return _Strings(offsets, inner).tolist() if kind[1] == "char" else Ragged(offsets, inner)


class _Strings(Ragged):
    __slots__ = ()

    def tolist(self):
        offsets = self.offsets.tolist()
        return [self.values[start:stop] for start, stop in zip(offsets, offsets[1:])]


class NeslFunction:
    """A function of a NESL program. Call it with numbers, arrays, nested lists, tuples and strings."""

    def __init__(self, text, name, kind, device):
        self.__name__, self._text, self.type, self.device = name, text, kind, device
        self.argument, self.result = _Parser(kind).function()
        self.__doc__ = f"The NESL function `{name}`, of the type {kind}."
        self._handle = None

    def __repr__(self):
        return f"<NESL function {self.__name__} : {self.type}>"

    def __call__(self, *arguments):
        if self._handle is None:
            self._handle = _core.nesl_compile(self.device._context, self._text, self.__name__)
        kinds = self.argument[1] if not isinstance(self.argument, str) and self.argument[0] == "pair" else (self.argument,)
        if len(kinds) != len(arguments):
            raise TypeError(f"`{self.__name__}` takes {len(kinds)} arguments, not {len(arguments)}: it is {self.type}")
        columns = [column for kind, one in zip(kinds, arguments) for column in _top(kind, one, self.device)]
        nodes = _core.nesl_call(self._handle, self.device._context, [column._node for column in columns])
        arrays = (made(node, _dtypes.checked(_core.type(node)), self.device) for node in nodes)
        return _result(self.result, arrays)


class NeslProgram:
    """A NESL program. Its functions are attributes."""

    def __init__(self, text, device):
        self._functions = {}
        for name, kind in _core.nesl_functions(text):
            if _Parser(kind).function() is not None:
                self._functions[name] = NeslFunction(text, name, kind, device)

    def __getattr__(self, name):
        functions = self.__dict__.get("_functions", {})
        if name not in functions:
            raise AttributeError(f"the program has no function `{name}`; it has {', '.join(functions) or 'none'}")
        return functions[name]

    def __dir__(self):
        return list(self._functions)

    def __repr__(self):
        return "\n".join(f"{name} : {function.type}" for name, function in self._functions.items())

    def __call__(self, *arguments):
        """Calls the last function of the program."""
        if not self._functions:
            raise TypeError("the program has no function")
        return list(self._functions.values())[-1](*arguments)


def nesl(source, /, *, device=None) -> NeslProgram:
    """Reads a NESL program. Its functions are called with Python values; the program calls its last function.

    >>> m = bl.nesl("function sums(rows) : [[float]] -> [float] = {sum(row) : row in rows};")
    >>> m.sums([[1.0, 2.0], [], [3.5]])
    Array([3. , 0. , 3.5])
    """
    return NeslProgram(source, _device(device))


def load_ipython_extension(shell) -> None:
    """Gives notebooks the magic `%%nesl`: the functions of the cell become functions of Python. `%load_ext broadloom`."""

    def cell(line, text):
        program = nesl(text, device=line.strip() or None)
        shell.push({name: getattr(program, name) for name in dir(program)})
        return program

    shell.register_magic_function(cell, magic_kind="cell", magic_name="nesl")
