"""Compiles Python functions over single elements to the instructions of `_core.function`.

A function is read as a syntax tree and compiled once for each combination of data types. Types are those of the array
functions: names get the common type of all that is assigned to them, and Python numbers adapt. The compiler runs until
no type changes any more, then once for the instructions.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap

import numpy as np

from . import _core, _dtypes

# Functions of one or two elements, by the names of `math`, NumPy and this package.
_MATH = {
    **{name: name for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "asinh", "acosh", "atanh", "cbrt", "erf", "erfc", "lgamma", "hypot", "atan2", "pow", "fmod", "copysign", "sqrt",
    )},
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "gamma": "tgamma",
}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "round_even", "rint": "round_even"}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_NESTING = 32
# Types of names that only Python numbers were assigned to so far.
_SMALL_INT, _SMALL_FLOAT = _dtypes.int8, _dtypes.float16


class Value:
    """A value of the function: the number of its instruction, and its data type."""

    __slots__ = ("number", "dtype")

    def __init__(self, number, dtype):
        self.number, self.dtype = number, dtype


class _Local:
    """A local array."""

    __slots__ = ("number", "dtype", "length")

    def __init__(self, number, dtype, length):
        self.number, self.dtype, self.length = number, dtype, length


class Window:
    """The neighbourhood of an element."""

    __slots__ = ("number", "dtype", "rank")

    def __init__(self, number, dtype, rank):
        self.number, self.dtype, self.rank = number, dtype, rank


def _is_number(value) -> bool:
    return isinstance(value, (builtins.bool, int, float, complex, np.generic)) and not isinstance(value, np.ndarray)


def source_of(function):
    """Returns the syntax tree of a function, and the file and line where it is."""
    name = getattr(function, "__name__", "function")
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "?"
    except (OSError, TypeError):
        raise TypeError(f"the source of `{name}` is not at hand: define it in a file or a notebook cell") from None
    text = textwrap.dedent("".join(lines))
    if name != "<lambda>":
        tree = ast.parse(text).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise TypeError(f"`{name}` is no function of the form `def {name}(…)`")
        return tree, file, first
    return _lambda_in(text, function), file, first


def _lambda_in(text, function):
    """Finds a lambda in the lines that define it: the one with the same code."""
    found = []
    for end in range(len(text), 0, -1):
        for start in (text[:end], "(" + text[:end].lstrip().lstrip(".)") ):
            try:
                tree = ast.parse(start)
            except SyntaxError:
                continue
            found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
            break
        if found:
            break
    same = [node for node in found if compile(ast.Expression(node), "?", "eval").co_consts[0].co_code == function.__code__.co_code]
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    same = [node for node in same or found if tuple(one.arg for one in node.args.args) == names]
    if not same:
        raise TypeError("the source of the lambda is not at hand: write a function with `def`")
    return same[0]


class Compiler:
    """Compiles one function for parameters of given data types."""

    def __init__(self, function, dtypes, windows=(), rank=0):
        self.function, self.name = function, getattr(function, "__name__", "function").strip("<>")
        self.tree, self.file, self.first = source_of(function)
        self.dtypes, self.windows, self.rank = dtypes, windows, rank
        floats = [dtype for dtype in dtypes if dtype.kind in "fc"]
        self.float = max(floats, key=lambda dtype: _dtypes.real_of(dtype).itemsize, default=_dtypes.DEFAULT_FLOAT)
        self.float = _dtypes.real_of(self.float)
        self.types, self.path, self.calls = {}, (), 0

    def error(self, node, text, kind=TypeError):
        line = self.first + getattr(node, "lineno", 1) - 1
        shown = ast.unparse(node) if isinstance(node, ast.AST) and not isinstance(node, ast.FunctionDef) else ""
        shown = f" `{shown.splitlines()[0]}`:" if shown else ""
        return kind(f"`{self.name}`, {self.file}:{line}:{shown} {text}")

    def compiled(self):
        """Returns the function of the engine and the data types of its results."""
        results = self._settled()
        # Names that only small Python numbers were assigned to get the default types.
        given = set(self.dtypes)
        upgraded = {_SMALL_INT: _dtypes.DEFAULT_INT, _SMALL_FLOAT: self.float}
        weak = {key: upgraded[dtype] for key, dtype in self.types.items() if dtype in upgraded and dtype not in given}
        if weak:
            self.types.update(weak)
            results = self._settled()
        dtypes = [value.dtype for value in results]
        numbers = [value.number for value in results]
        return _core.function(self.name, self.code, numbers), dtypes

    def _settled(self):
        """Compiles until no type changes any more."""
        for _ in range(_NESTING):
            before = dict(self.types)
            results = self._pass()
            if self.types == before:
                return results
        raise self.error(self.tree, "the types of its names do not settle")

    def _pass(self):
        self.code, self.scope, self.variables, self.calls = [], {}, {}, 0
        self.is_tuple = False
        arguments = self.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise self.error(self.tree, "parameters with `*` are not possible")
        names = [one.arg for one in arguments.posonlyargs + arguments.args]
        if len(names) != len(self.dtypes):
            raise self.error(self.tree, f"it takes {len(names)} arguments, not {len(self.dtypes)}")
        for _ in range(self.rank):
            self.emit("parameter", "position", "int64")
        given = []
        for name, dtype in zip(names, self.dtypes):
            if name in self.windows:
                given.append((name, dtype, None))
            else:
                number = self.emit("parameter", name, _dtypes.name_of(dtype))
                given.append((name, dtype, number))
        for name, dtype, number in given:
            if number is None:
                number = self.emit("window", name, _dtypes.name_of(dtype), self.rank)
                self.scope[name] = Window(number, dtype, self.rank)
            else:
                self.scope[name] = Value(number, dtype)
        return self.body(self.tree, _assigned(self.tree))

    def body(self, tree, assigned):
        """Compiles the statements of a function, and returns its results."""
        if isinstance(tree, ast.Lambda):
            return self.results(tree.body)
        for name in assigned & set(self.scope):
            if isinstance(self.scope[name], Value):
                value = self.scope.pop(name)
                self.assign(name, value, tree)
        statements = [one for one in tree.body if not _is_text(one)]
        if statements and isinstance(statements[-1], ast.Return) and not any(map(_returns, statements[:-1])):
            for statement in statements[:-1]:
                self.statement(statement)
            return self.results(statements[-1].value)
        if not any(map(_returns, statements)):
            raise self.error(tree, f"`{self.name}` returns nothing")
        key = ("returned", self.path)
        self.set_variable(key, self.constant(False, _dtypes.bool))
        self.block(statements)
        count = self.types.get(("count", self.path), 1)
        return [self.get_variable(("result", self.path, at)) for at in range(count)]

    def results(self, node):
        if node is None:
            raise self.error(self.tree, "`return` without a value")
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        self.is_tuple = isinstance(node, ast.Tuple)
        return [self.value(self.expression(part), part) for part in parts]

    # Instructions.

    def emit(self, name, *arguments) -> int:
        self.code.append((name, *arguments))
        return len(self.code) - 1

    def operation(self, name, *values, dtype=None) -> Value:
        number = self.emit("operation", _core.operation(name), [value.number for value in values])
        return Value(number, dtype or values[-1].dtype)

    def constant(self, number, dtype) -> Value:
        if dtype.kind in "iu":
            number = int(number)
        elif dtype.kind == "b":
            number = bool(number)
        elif dtype.kind == "f":
            number = float(number)
        return Value(self.emit("constant", _dtypes.name_of(dtype), number), dtype)

    def convert(self, value, dtype) -> Value:
        if value.dtype == dtype:
            return value
        if value.dtype.kind == "c" and dtype.kind != "c":
            raise TypeError(f"`{self.name}`: complex numbers do not become {dtype}")
        return Value(self.emit("convert", value.number, _dtypes.name_of(dtype)), dtype)

    def default(self, number) -> np.dtype:
        """Returns the data type of a Python number on its own."""
        if isinstance(number, np.generic):
            return _dtypes.checked(number.dtype)
        if isinstance(number, builtins.bool):
            return _dtypes.bool
        if isinstance(number, int):
            return _dtypes.DEFAULT_INT
        return self.float if isinstance(number, float) else _dtypes.complex_of(self.float)

    def value(self, given, node) -> Value:
        """Returns a value of the function; a Python number gets its default type."""
        if isinstance(given, Value):
            return given
        if _is_number(given):
            return self.constant(given, self.default(given))
        raise self.error(node, f"{type(given).__name__} is no number")

    def common(self, node, *given) -> list[Value]:
        """Returns values of one data type."""
        dtypes = [one.dtype for one in given if isinstance(one, Value)]
        for one in given:
            if not isinstance(one, Value) and not _is_number(one):
                raise self.error(node, f"{type(one).__name__} is no number")
        if not dtypes:
            dtypes = [self.default(given[0])]
        dtype = dtypes[0]
        for other in dtypes[1:]:
            dtype = _dtypes.promote(dtype, other)
        for one in given:
            if not isinstance(one, Value):
                weak = _dtypes.of_scalar(one, dtype)
                dtype = self.float if weak == _dtypes.DEFAULT_FLOAT and dtype.kind in "biu" else weak
        return [self.convert(one, dtype) if isinstance(one, Value) else self.constant(one, dtype) for one in given]

    def floats(self, node, *given) -> list[Value]:
        values = self.common(node, *given)
        dtype = values[0].dtype
        return values if dtype.kind in "fc" else [self.convert(value, self.float) for value in values]

    # Variables.

    def set_variable(self, key, value) -> None:
        known = self.types.get(key)
        self.types[key] = dtype = value.dtype if known is None else _dtypes.promote(known, value.dtype)
        if key not in self.variables:
            self.variables[key] = self.emit("variable", _dtypes.name_of(dtype))
        self.emit("set", self.variables[key], self.convert(value, dtype).number)

    def get_variable(self, key) -> Value:
        if key not in self.variables:
            self.types.setdefault(key, self.float)
            self.variables[key] = self.emit("variable", _dtypes.name_of(self.types[key]))
        return Value(self.emit("get", self.variables[key]), self.types[key])

    def assign(self, target, given, node) -> None:
        if isinstance(target, str):
            if isinstance(given, (_Local, Window)):
                self.scope[target] = given
                return
            weak = not isinstance(given, Value)
            key = ("local", self.path, target)
            if weak and key in self.types:
                # A number adapts to the type that the name has already, if it can.
                known = self.types[key]
                adapted = _dtypes.of_scalar(given, known)
                if adapted == _dtypes.DEFAULT_FLOAT and known.kind in "biu":
                    adapted = self.float
                self.set_variable(key, self.constant(given, _dtypes.promote(known, adapted)))
            elif weak:
                # The smallest type: what is assigned later decides.
                small = {bool: _dtypes.bool, int: _SMALL_INT, float: _SMALL_FLOAT}.get(type(given)) or self.default(given)
                self.set_variable(key, self.constant(0 if type(given) is int else given, small))
            else:
                self.set_variable(key, given)
            self.scope[target] = ("variable", key)
        elif isinstance(target, ast.Name):
            self.assign(target.id, given, node)
        elif isinstance(target, ast.Subscript):
            array = self.expression(target.value)
            if not isinstance(array, _Local):
                raise self.error(target, "only local arrays have elements that can be assigned")
            index = self.convert(self.value(self.expression(target.slice), target), _dtypes.int64)
            value = given if isinstance(given, Value) else self.constant(given, array.dtype)
            self.emit("set_element", array.number, index.number, self.convert(value, array.dtype).number)
        else:
            raise self.error(target, "this cannot be assigned to")

    # Statements.

    def block(self, statements) -> None:
        for at, statement in enumerate(statements):
            self.statement(statement)
            if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
                return
            if _returns(statement) and at + 1 < len(statements):
                returned = self.get_variable(("returned", self.path))
                self.emit("if", self.operation("not", returned).number)
                self.block(statements[at + 1 :])
                self.emit("end_if")
                return

    def statement(self, node) -> None:
        if isinstance(node, ast.Assign):
            self.assignment(node.targets, node.value, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assignment([node.target], node.value, node)
        elif isinstance(node, ast.AugAssign):
            self.assign(node.target, self.binary(node, type(node.op), self.expression(node.target), self.expression(node.value)), node)
        elif isinstance(node, ast.If):
            condition = self.expression(node.test)
            if _is_number(condition):
                self.block(node.body if condition else node.orelse)
                return
            self.emit("if", self.truth(condition, node.test).number)
            self.block(node.body)
            if node.orelse:
                self.emit("else")
                self.block(node.orelse)
            self.emit("end_if")
        elif isinstance(node, ast.While):
            self.emit("while")
            self.emit("do", self.truth(self.expression(node.test), node.test).number)
            self.loop_body(node)
            self.emit("end_while")
        elif isinstance(node, ast.For):
            self.counted(node)
        elif isinstance(node, ast.Break):
            self.emit("break")
        elif isinstance(node, ast.Continue):
            self.emit("continue")
        elif isinstance(node, ast.Return):
            results = self.results(node.value)
            key = ("count", self.path)
            if self.types.setdefault(key, len(results)) != len(results):
                raise self.error(node, f"{len(results)} results, and {self.types[key]} elsewhere")
            for at, value in enumerate(results):
                self.set_variable(("result", self.path, at), value)
            self.set_variable(("returned", self.path), self.constant(True, _dtypes.bool))
            if self.loops:
                self.emit("break")
        elif isinstance(node, ast.Pass) or _is_text(node):
            return
        else:
            raise self.error(node, f"a function of elements has no `{type(node).__name__}` statement")

    loops = 0

    def loop_body(self, node) -> None:
        if node.orelse:
            raise self.error(node, "a loop with `else` is not possible")
        self.loops += 1
        statements = list(node.body)
        self.block(statements)
        if any(map(_returns, statements)):
            # A return inside an inner loop has left that loop only.
            self.emit("if", self.get_variable(("returned", self.path)).number)
            self.emit("break")
            self.emit("end_if")
        self.loops -= 1

    def counted(self, node) -> None:
        call = node.iter
        is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if not is_range or not isinstance(node.target, ast.Name):
            raise self.error(node.iter, "a loop goes over `range(…)`")
        bounds = [self.expression(one) for one in call.args]
        start, stop, step = ([0, *bounds, 1] if len(bounds) == 1 else [*bounds, 1])[:3]
        if not isinstance(step, int) or step == 0:
            raise self.error(node.iter, "the step of a range is a number other than 0")
        start, stop = (self.convert(self.value(one, call), _dtypes.int64) for one in (start, stop))
        counter = Value(self.emit("for", start.number, stop.number, step), _dtypes.int64)
        self.assign(node.target.id, counter, node)
        self.loop_body(node)
        self.emit("end_for")

    def assignment(self, targets, node, statement) -> None:
        if isinstance(node, ast.Tuple):
            values = [self.expression(part) for part in node.elts]
        else:
            given = self.expression(node)
            values = given if isinstance(given, list) else [given]
        for target in targets:
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            if len(parts) != len(values):
                raise self.error(statement, f"{len(values)} values for {len(parts)} names")
            for part, value in zip(parts, values):
                self.assign(part, value, statement)

    # Expressions.

    def truth(self, given, node) -> Value:
        value = self.value(given, node)
        if value.dtype.kind == "b":
            return value
        return self.operation("!=", value, self.constant(0, value.dtype), dtype=_dtypes.bool)

    def expression(self, node):
        """Returns a value, a Python number, a local array or a window."""
        if isinstance(node, ast.Constant):
            if _is_number(node.value):
                return node.value
            raise self.error(node, f"{type(node.value).__name__} is no number")
        if isinstance(node, ast.Name):
            return self.named(node)
        if isinstance(node, ast.Attribute):
            found = self.outside(node)
            if _is_number(found):
                return found
            raise self.error(node, "this is no number")
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
                return self.local_array(node)
            return self.binary(node, type(node.op), self.expression(node.left), self.expression(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BoolOp):
            values = [self.truth(self.expression(one), one) for one in node.values]
            result = values[0]
            for value in values[1:]:
                result = self.operation("&" if isinstance(node.op, ast.And) else "|", result, value)
            return result
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.IfExp):
            condition = self.expression(node.test)
            if _is_number(condition):
                return self.expression(node.body if condition else node.orelse)
            x, y = self.common(node, self.expression(node.body), self.expression(node.orelse))
            return self.select(self.truth(condition, node.test), x, y)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            return self.element(node)
        if isinstance(node, ast.List):
            values = [self.expression(one) for one in node.elts]
            return self.filled_array(node, values)
        raise self.error(node, "a function of elements has no such expression")

    def select(self, condition, x, y) -> Value:
        number = self.emit("operation", _core.operation("select"), [condition.number, x.number, y.number])
        return Value(number, x.dtype)

    def named(self, node):
        if node.id in self.scope:
            found = self.scope[node.id]
            return self.get_variable(found[1]) if isinstance(found, tuple) else found
        found = self.outside(node)
        if _is_number(found):
            return found
        if hasattr(found, "__array__") and getattr(found, "ndim", 1) == 0:
            return np.asarray(found)[()].item()
        raise self.error(node, f"`{node.id}` is neither a parameter nor a number", NameError if found is None else TypeError)

    def outside(self, node):
        """Returns the Python object that a name outside of the function has."""
        if isinstance(node, ast.Attribute):
            return getattr(self.outside(node.value), node.attr, None)
        if not isinstance(node, ast.Name):
            return None
        code = self.function.__code__
        if self.function.__closure__ and node.id in code.co_freevars:
            try:
                return self.function.__closure__[code.co_freevars.index(node.id)].cell_contents
            except ValueError:
                return None
        return self.function.__globals__.get(node.id, getattr(builtins, node.id, None))

    def unary(self, node):
        given = self.expression(node.operand)
        if _is_number(given):
            return {ast.USub: lambda x: -x, ast.UAdd: lambda x: +x, ast.Not: lambda x: not x, ast.Invert: lambda x: ~x}[type(node.op)](given)
        value = self.value(given, node)
        if isinstance(node.op, ast.Not):
            return self.operation("not", self.truth(value, node))
        if isinstance(node.op, ast.Invert):
            return self.operation("not", value)
        if isinstance(node.op, ast.UAdd):
            return value
        if value.dtype.kind == "u":
            return self.operation("-", self.constant(0, value.dtype), value)
        return self.operation("neg", value)

    def binary(self, node, kind, left, right):
        if _is_number(left) and _is_number(right):
            return _FOLDED[kind](left, right)
        if kind in _OPERATORS:
            x, y = self.common(node, left, right)
            name = _OPERATORS[kind]
            if x.dtype.kind == "b" and name in "+*":
                name = "|" if name == "+" else "&"
            if x.dtype.kind in "fc" and name in "&|^":
                raise self.error(node, f"bits of {x.dtype}: integers or booleans are needed")
            return self.operation(name, x, y)
        if kind is ast.Div:
            return self.operation("/", *self.floats(node, left, right))
        if kind is ast.Pow:
            return self.power(node, left, right)
        if kind in (ast.FloorDiv, ast.Mod):
            return self.divided(node, kind is ast.Mod, *self.common(node, left, right))
        if kind in (ast.LShift, ast.RShift):
            x = self.value(left, node)
            amount = right if isinstance(right, Value) else self.constant(right, _dtypes.uint32)
            return self.operation("<<" if kind is ast.LShift else ">>", x, self.convert(amount, _dtypes.uint32), dtype=x.dtype)
        raise self.error(node, "this operator is not possible on elements")

    def power(self, node, left, right):
        if isinstance(right, int) and not isinstance(right, builtins.bool) and 0 < right <= 64 and isinstance(left, Value):
            result, square, exponent = None, left, right
            while exponent:
                if exponent & 1:
                    result = square if result is None else self.operation("*", result, square)
                exponent >>= 1
                square = self.operation("*", square, square) if exponent else square
            return result
        return self.operation("pow", *self.floats(node, left, right))

    def divided(self, node, is_rest, x, y):
        zero = self.constant(0, x.dtype)
        less = lambda a, b: self.operation("<", a, b, dtype=_dtypes.bool)  # noqa: E731
        differ = lambda a, b: self.operation("!=", a, b, dtype=_dtypes.bool)  # noqa: E731
        if x.dtype.kind == "f":
            rest = self.operation("fmod", x, y)
            opposite = self.operation("&", differ(rest, zero), differ(less(rest, zero), less(y, zero)))
            rest = self.select(opposite, self.operation("+", rest, y), rest)
            if is_rest:
                return rest
            return self.operation("round_even", self.operation("/", self.operation("-", x, rest), y))
        if x.dtype.kind not in "iu":
            raise self.error(node, f"division with a rest of {x.dtype}")
        rest = self.operation("%", x, y)
        quotient = self.operation("/", x, y)
        if x.dtype.kind == "u":
            return rest if is_rest else quotient
        opposite = self.operation("&", differ(rest, zero), differ(less(rest, zero), less(y, zero)))
        if is_rest:
            return self.select(opposite, self.operation("+", rest, y), rest)
        return self.select(opposite, self.operation("-", quotient, self.constant(1, x.dtype)), quotient)

    def comparison(self, node):
        result, left = None, self.expression(node.left)
        for operator, part in zip(node.ops, node.comparators):
            right = self.expression(part)
            if type(operator) not in _COMPARISONS:
                raise self.error(node, "elements are compared by <, <=, >, >=, == and !=")
            if _is_number(left) and _is_number(right):
                one = _FOLDED[type(operator)](left, right)
                one = self.constant(one, _dtypes.bool) if len(node.ops) > 1 else one
            else:
                x, y = self.common(node, left, right)
                if x.dtype.kind == "b" and _COMPARISONS[type(operator)] not in ("==", "!="):
                    x, y = self.convert(x, _dtypes.uint8), self.convert(y, _dtypes.uint8)
                one = self.operation(_COMPARISONS[type(operator)], x, y, dtype=_dtypes.bool)
            result = one if result is None else self.operation("&", result, one)
            left = right
        return result

    def element(self, node):
        array = self.expression(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.expression(part) for part in parts]
        if isinstance(array, Window):
            if len(indices) != array.rank:
                raise self.error(node, f"{len(indices)} offsets in a neighbourhood of {array.rank} axes")
            numbers = []
            for part, index in zip(parts, indices):
                if isinstance(index, float) or isinstance(index, Value) and index.dtype.kind not in "iu":
                    raise self.error(part, "an offset is an integer")
                numbers.append(self.convert(self.value(index, part), _dtypes.int64).number)
            return Value(self.emit("neighbour", array.number, numbers), array.dtype)
        if not isinstance(array, _Local) or len(indices) != 1:
            raise self.error(node, "only neighbourhoods and local arrays have elements")
        if isinstance(indices[0], int) and not -array.length <= indices[0] < array.length:
            raise self.error(node, f"the local array has {array.length} elements", IndexError)
        index = indices[0] % array.length if isinstance(indices[0], int) else indices[0]
        index = self.convert(self.value(index, node), _dtypes.int64)
        return Value(self.emit("element", array.number, index.number), array.dtype)

    def local_array(self, node):
        """Compiles `[value] * length`."""
        length, values = self.expression(node.right), [self.expression(one) for one in node.left.elts]
        if not isinstance(length, int) or not 0 < length * len(values) <= 1024:
            raise self.error(node, "a local array has a length that is a number from 1 to 1024")
        return self.filled_array(node, values * length)

    def filled_array(self, node, values):
        values = self.common(node, *values) if any(isinstance(one, Value) for one in values) else [
            self.value(one, node) for one in self._alike(values)
        ]
        array = _Local(self.emit("array", _dtypes.name_of(values[0].dtype), len(values)), values[0].dtype, len(values))
        for at, value in enumerate(values):
            self.emit("set_element", array.number, self.constant(at, _dtypes.int64).number, value.number)
        return array

    def _alike(self, values):
        return [float(one) for one in values] if any(isinstance(one, float) for one in values) else values

    def call(self, node):
        if node.keywords:
            raise self.error(node, "arguments with names are not possible here")
        found = self.outside(node.func)
        name = getattr(found, "__name__", None) or (node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", ""))
        given = [self.expression(one) for one in node.args]
        inner = getattr(found, "_element_function", None)
        is_plain = inspect.isfunction(found) and found.__module__ is not None and not found.__module__.startswith("broadloom")
        if inner is not None or is_plain:
            return self.inlined(node, inner or found, given)
        if name in ("min", "max", "minimum", "maximum") and len(given) >= 2:
            return self.extreme(node, name[:3], given)
        if all(map(_is_number, given)) and given and name not in ("float", "int", "bool"):
            folded = getattr(math, name, None) or getattr(builtins, name, None)
            if folded is not None:
                return folded(*given)
        if name in _MATH:
            return self.operation(_MATH[name], *self.floats(node, *given))
        if name in _ROUNDING and len(given) == 1:
            value = self.value(given[0], node)
            return self.operation(_ROUNDING[name], value) if value.dtype.kind == "f" else value
        return self.other_call(node, name, given)

    def extreme(self, node, name, given):
        values = self.common(node, *given)
        result = values[0]
        for value in values[1:]:
            result = self.operation(name, result, value)
        return result

    def other_call(self, node, name, given):
        if len(given) == 1:
            value = self.value(given[0], node)
            if name in ("abs", "fabs", "absolute"):
                dtype = _dtypes.real_of(value.dtype)
                return value if value.dtype.kind in "bu" else self.operation("abs", value, dtype=dtype)
            if name == "float":
                return self.convert(value, self.float)
            if name == "int":
                return self.convert(value, _dtypes.int64)
            if name == "bool":
                return self.truth(value, node)
            if name == "isnan":
                return self.operation("!=", value, value, dtype=_dtypes.bool)
            if name == "square":
                return self.operation("*", value, value)
            if name == "sign":
                zero, one = self.constant(0, value.dtype), self.constant(1, value.dtype)
                up = self.select(self.operation(">", value, zero, dtype=_dtypes.bool), one, value)
                if value.dtype.kind == "u":
                    return up
                return self.select(self.operation("<", value, zero, dtype=_dtypes.bool), self.constant(-1, value.dtype), up)
        if name == "where" and len(given) == 3:
            x, y = self.common(node, *given[1:])
            return self.select(self.truth(given[0], node), x, y)
        raise self.error(node, f"`{name}` is no function of elements; there is {', '.join(sorted({*_MATH, *_ROUNDING, 'abs', 'min', 'max', 'where'}))}")

    def inlined(self, node, function, given):
        """Compiles a call of another Python function in place."""
        if len(self.path) >= _NESTING:
            raise self.error(node, "calls are nested too deeply: recursion is not possible", RecursionError)
        tree, file, first = source_of(function)
        names = [one.arg for one in tree.args.posonlyargs + tree.args.args]
        if len(names) != len(given):
            raise self.error(node, f"`{function.__name__}` takes {len(names)} arguments, not {len(given)}")
        outer = (self.function, self.tree, self.file, self.first, self.scope, self.loops, self.name, self.path)
        self.calls += 1
        self.function, self.tree, self.file, self.first, self.loops = function, tree, file, first, 0
        self.name = getattr(function, "__name__", "function").strip("<>")
        self.scope, self.path = dict(zip(names, given)), (*self.path, self.calls)
        for name in _assigned(tree) & set(names):
            self.scope[name] = self.value(self.scope[name], node)
        try:
            results = self.body(tree, _assigned(tree))
        finally:
            self.function, self.tree, self.file, self.first, self.scope, self.loops, self.name, self.path = outer
        return results[0] if len(results) == 1 else results


_FOLDED = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b, ast.Pow: lambda a, b: a**b, ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b, ast.BitXor: lambda a, b: a ^ b, ast.LShift: lambda a, b: a << b, ast.RShift: lambda a, b: a >> b,
    ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b,
}


def _is_text(node) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _returns(node) -> bool:
    return any(isinstance(one, ast.Return) for one in ast.walk(node))


def _assigned(tree) -> set:
    """Returns the names that a function assigns to."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names
