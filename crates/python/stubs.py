"""Writes the type stubs of the package from its functions: `python stubs.py` prints `broadloom/__init__.pyi`."""

import inspect

import broadloom as bl
import numpy as np

# Types of parameters, and of results where the code has no annotation.
TYPES = {
    "x": "Array", "obj": "ArrayLike", "x1": "ArrayLike", "x2": "ArrayLike", "condition": "ArrayLike", "indices": "ArrayLike",
    "arrays": "Array", "images": "ArrayLike", "axis": "Axis", "axes": "Any", "keepdims": "_bool", "dtype": "DTypeLike | None",
    "device": "Device | str | None", "shape": "Shape", "copy": "_bool | None", "fill_value": "Number", "k": "int", "n": "int",
    "start": "Number", "stop": "Number | None", "step": "Number", "num": "int", "endpoint": "_bool", "indexing": "str",
    "descending": "_bool", "stable": "_bool", "side": "str", "sorter": "Array | None", "correction": "float", "invert": "_bool",
    "include_initial": "_bool", "min": "ArrayLike | None", "max": "ArrayLike | None", "prepend": "ArrayLike | None",
    "append": "ArrayLike | None", "mode": "str", "n_rows": "int", "n_cols": "int | None", "name": "str | None", "kind": "Any",
    "source": "Any", "shift": "int | tuple[int, ...]", "repeats": "int | Array", "effects": "str", "offset": "int",
}
RESULTS = {
    "can_cast": "_bool", "isdtype": "_bool", "iinfo": "Any", "default_device": "AbstractContextManager[Device]", "finfo": "Any",
    "result_type": "np.dtype[Any]", "device": "Device", "devices": "list[str]", "evaluate": "None", "explain": "str",
    "synchronize": "None", "broadcast_shapes": "tuple[int, ...]", "__array_namespace_info__": "Any", "effect": "Array",
}
BINARY = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
COMPARE = "lt le gt ge eq ne".split()
HEAD = '''# Made by crates/python/stubs.py; a test compares it.
from builtins import bool as _bool
from contextlib import AbstractContextManager
from typing import Any, Iterator

import numpy as np
from numpy.typing import DTypeLike

Number = _bool | int | float
ArrayLike = Any
Axis = int | tuple[int, ...] | None
Shape = int | tuple[int, ...]
'''


def parameters(function, method=False):
    try:
        found = list(inspect.signature(function).parameters.values())
    except ValueError:
        return "*args: Any, **kwargs: Any"
    texts, star = [], False
    for at, one in enumerate(found):
        if method and at == 0:
            texts.append("self")
            continue
        name = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "") + one.name
        star |= one.kind == one.VAR_POSITIONAL
        if one.kind == one.KEYWORD_ONLY and not star:
            texts.append("*")
            star = True
        default = "" if one.default is one.empty else " = ..."
        texts.append(f"{name}: {TYPES.get(one.name, 'Any')}{default}")
        if one.kind == one.POSITIONAL_ONLY and (at + 1 == len(found) or found[at + 1].kind != one.POSITIONAL_ONLY):
            texts.append("/")
    return ", ".join(texts)


def result(name, function):
    """Returns the type of a function's result: as in the table, or as annotated."""
    text = RESULTS.get(name, function.__annotations__.get("return", "Array"))
    text = text if isinstance(text, str) else getattr(text, "__name__", "None")
    return text if text in KNOWN or "Array" in text or name in RESULTS else "Any"


KNOWN = {"Array", "None", "NeslProgram", "str", "Device", "Kernel", "Stream", "Ragged"}


def of_class(cls, lines):
    lines.append(f"class {cls.__name__}:")
    for name, value in sorted(vars(cls).items()):
        if isinstance(value, property):
            kind = value.fget.__annotations__.get("return", "Any").strip("'\"").replace("np.dtype", "np.dtype[Any]")
            lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
        elif callable(value) and not name.startswith("_"):
            returns = value.__annotations__.get("return", "Array" if cls is bl.Array else "Any")
            returns = returns.strip("'\"") if isinstance(returns, str) else "Any"
            returns = {"item": "Number", "tolist": "Any"}.get(name, returns).replace("np.ndarray", "Any")
            lines.append(f"    def {name}({parameters(value, method=True)}) -> {returns}: ...")
    if cls is bl.Array:
        for name in BINARY:
            lines += [f"    def __{kind}{name}__(self, other: ArrayLike, /) -> Array: ..." for kind in ("", "r", "i")]
        lines += [f"    def __{name}__(self, other: ArrayLike, /) -> Array: ...  # type: ignore[override]" for name in COMPARE]
        lines += [f"    def __{name}__(self) -> Array: ..." for name in ("neg", "pos", "abs", "invert")]
        lines += [f"    def __{kind}__(self) -> {kind}: ..." for kind in ("int", "float")]
        lines.append("    def __bool__(self) -> _bool: ...")
        lines += ["    def __index__(self) -> int: ...", "    def __len__(self) -> int: ..."]
        lines += ["    def __iter__(self) -> Iterator[Array]: ...", "    def __getitem__(self, key: Any) -> Array: ..."]
        lines += ["    def __setitem__(self, key: Any, value: ArrayLike) -> None: ...", "    def __array__(self, *args: Any, **kwargs: Any) -> Any: ..."]
    else:
        lines += [f"    {name}: Any" for name in getattr(cls, "__slots__", ()) if not name.startswith("_")]
        lines += [
            f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ..."
            for name in ("__call__", "__getitem__", "__len__", "__iter__")
            if name in vars(cls)
        ]
    lines.append("")


def stubs():
    lines = [HEAD]
    for name in sorted(dir(bl)):
        value = getattr(bl, name)
        if inspect.isclass(value):
            of_class(value, lines)
    for name in sorted(dir(bl)):
        value = getattr(bl, name)
        if inspect.ismodule(value) or inspect.isclass(value) or name == "annotations":
            continue
        if callable(value):
            lines.append(f"def {name}({parameters(value)}) -> {result(name, value)}: ...")
        else:
            kind = "np.dtype[Any]" if isinstance(value, np.dtype) else type(value).__name__
            lines.append(f"{name}: {'None' if value is None else kind}")
    lines[0] += "\nfrom . import effects as effects, linalg as linalg\nfrom ._nesl import NeslProgram as NeslProgram\n"
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(stubs(), end="")
