"""Functions of functions: `jit`, loops on the device, `cond`. `vmap` is in `_batch`.

A traced function is called once with arrays that have no elements yet. Its kernels are planned then; later calls only
launch them. A function that asks for elements while it is traced runs as it stands, operation by operation.
"""

from __future__ import annotations

import functools

import numpy as np

from . import _core
from ._array import Array, Weak, made, weak_number
from ._creation import asarray
from ._devices import device as _device
from ._elementwise import where
from ._manipulation import stack
from ._trees import flatten, map_leaves, unflatten

_NUMBERS = (bool, int, float, complex)
# Rounds of a loop inside of a traced function that are written out.
_UNROLLED = 64
# Arrays that one call of `stack` joins.
_JOINED = 32


def is_traced(tree) -> bool:
    """Tests if an array of a tree has no elements yet, since a function is being traced."""
    leaves = []
    flatten(tree, leaves)
    return any(isinstance(leaf, Array) and _core.is_symbolic(leaf._node) for leaf in leaves)


class _Trace:
    """A traced function for inputs of certain types and shapes."""

    __slots__ = ("template", "structure", "results", "others")


def _traced(function, arrays):
    """Traces a function of a list of arrays. Returns the trace; it gives the leaves of the function's result."""
    kinds = [(type(array), array._dtype, array._device, array.shape) for array in arrays]
    trace, found = _Trace(), {}

    def called(nodes):
        symbols = []
        for node, (kind, dtype, device, shape) in zip(nodes, kinds):
            symbol = made(node, dtype, device, shape)
            if kind is Weak:
                symbol = weak_number(symbol)
            symbols.append(symbol)
        leaves = []
        found["structure"] = flatten(function(symbols), leaves)
        device = kinds[0][2]
        leaves = [asarray(leaf, device=device) if isinstance(leaf, (np.ndarray, np.generic)) else leaf for leaf in leaves]
        found["leaves"] = leaves
        return [leaf._node for leaf in leaves if isinstance(leaf, Array)]

    trace.template = _core.trace([array._node for array in arrays], called)
    trace.structure = found["structure"]
    trace.results = [(leaf._dtype, leaf._device, leaf.shape) if isinstance(leaf, Array) else None for leaf in found["leaves"]]
    trace.others = [None if isinstance(leaf, Array) else leaf for leaf in found["leaves"]]
    return trace


def _leaves(trace, nodes):
    """Returns the leaves of a result from its nodes."""
    nodes, leaves = iter(nodes), []
    for kind, other in zip(trace.results, trace.others):
        if kind is None:
            leaves.append(other)
        else:
            leaves.append(made(next(nodes), *kind))
    return leaves


def _single_result(trace):
    """Returns the type of the result if it is one array."""
    alone = len(trace.results) == 1 and trace.results[0] is not None and not isinstance(trace.structure, tuple)
    return trace.results[0] if alone else None


class Jitted:
    """A function that is traced once for each combination of types and shapes of its arguments. `bl.jit` makes it."""

    def __init__(self, function, static):
        functools.update_wrapper(self, function)
        self._function, self._static, self._traces = function, static, {}

    def __repr__(self):
        return f"<jitted {getattr(self._function, '__name__', 'function')}>"

    def __get__(self, owner, kind=None):
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args, **kwargs):
        if not kwargs and not self._static:
            nodes, key = [], []
            for array in args:
                if type(array) is not Array:
                    break
                nodes.append(array._node)
                key.append(array._dtype.num)
                key.append(array._shape_known or array.shape)
                key.append(array._device)
            else:
                trace = self._traces.get(tuple(key))
                if trace is not None and trace[1] is not None:
                    template, kind, whole = trace[0], trace[1], trace[2]
                    found = _core.call_template(template, nodes)
                    if whole is None:
                        return made(found[0], kind[0], kind[1], kind[2])
                    return unflatten(whole.structure, iter(_leaves(whole, found)))
        return self._slowly(args, kwargs)

    def _slowly(self, args, kwargs):
        function, static = self._function, self._static
        fixed = {at: args[at] for at in static if isinstance(at, int) and at < len(args)}
        fixed |= {name: kwargs[name] for name in static if name in kwargs}
        moving = ([arg for at, arg in enumerate(args) if at not in fixed], {k: v for k, v in kwargs.items() if k not in fixed})
        leaves = []
        structure = flatten(moving, leaves)
        if is_traced(leaves):
            return function(*args, **kwargs)
        device = next((leaf._device for leaf in leaves if isinstance(leaf, Array)), None) or _device()
        arrays, key = [], [structure, tuple(sorted(fixed.items(), key=lambda item: str(item[0])))]
        given = []
        for leaf in leaves:
            if isinstance(leaf, _NUMBERS) and not isinstance(leaf, np.generic):
                array = weak_number(asarray(leaf, device=device))
                key.append(type(leaf))
            elif isinstance(leaf, (Array, np.ndarray, np.generic)):
                array = leaf if isinstance(leaf, Array) else asarray(leaf, device=device)
                key += [array._dtype.num, array.shape, array._device]
            else:
                array = None
                key.append(leaf)
            given.append(array)
            if array is not None:
                arrays.append(array)
        if not arrays:
            return function(*args, **kwargs)
        try:
            key = tuple(key)
            trace = self._traces.get(key)
        except TypeError:
            raise TypeError(f"`{self!r}`: an argument is neither an array nor a number, and cannot be hashed: name it in `static`") from None
        if trace is None:
            trace = self._traces[key] = self._trace(structure, leaves, given, arrays, fixed, len(args))
            if not kwargs and not fixed and all(type(one) is Array for one in args):
                quick = tuple(part for one in args for part in (one._dtype.num, one.shape, one._device))
                if trace is not False:
                    single = _single_result(trace)
                    self._traces[quick] = (trace.template, single or True, None if single else trace)
        if trace is False:
            return function(*args, **kwargs)
        nodes = _core.call_template(trace.template, [array._node for array in arrays])
        return unflatten(trace.structure, iter(_leaves(trace, nodes)))

    def _trace(self, structure, leaves, given, arrays, fixed, count):
        """Traces the function; returns `False` if it asks for elements."""
        _core.evaluate([array._node for array in arrays if type(array) is Array])

        def called(symbols):
            symbols = iter(symbols)
            args, kwargs = unflatten(structure, iter([leaf if one is None else next(symbols) for leaf, one in zip(leaves, given)]))
            args = iter(args)
            args = [fixed[at] if at in fixed else next(args) for at in range(count)]
            return self._function(*args, **kwargs, **{name: value for name, value in fixed.items() if isinstance(name, str)})

        try:
            return _traced(called, arrays)
        except NotImplementedError:
            return False


def jit(function=None, /, *, static=()):
    """Traces a function of arrays once, and launches its kernels at later calls.

    Arguments and results are arrays, numbers, and tuples, lists and dictionaries of them. Arguments that are named in
    `static`, by position or name, are Python values; each value gives a trace of its own. A function that looks at
    elements, as in `if x > 0`, is not traced: it runs as it stands.

    >>> @bl.jit
    ... def step(x, rate):
    ...     return x - rate * bl.sin(x)
    >>> step(bl.asarray([0.0, 1.0]), 0.1)
    Array([0.       , 0.9158529])
    """
    static = (static,) if isinstance(static, (int, str)) else tuple(static)
    if function is None:
        return lambda function: Jitted(function, static)
    return Jitted(function, static)


# Loops.


def _prepared(name, *functions_and_init):
    """Converts the initial state of a loop to arrays in memory."""
    *functions, init = functions_and_init
    leaves = []
    structure = flatten(init, leaves)
    if not leaves:
        raise ValueError(f"`{name}` carries at least one array")
    device = next((leaf._device for leaf in leaves if isinstance(leaf, Array)), None) or _device()
    arrays = [leaf if isinstance(leaf, Array) else asarray(leaf, device=device) for leaf in leaves]
    # Arrays that the functions name are computed once, not in each round.
    beside = [array for function in functions for array in _named_arrays(function) if array._device is device]
    pending = [array._node for array in arrays + beside if not _core.is_symbolic(array._node)]
    _core.evaluate(pending)
    return structure, arrays, device


def _named_arrays(function):
    """Returns the arrays that a function reads from outside."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    found += [function.__globals__.get(name) for name in code.co_names]
    leaves = []
    for one in found:
        if isinstance(one, (Array, tuple, list, dict)):
            flatten(one, leaves)
    return [leaf for leaf in leaves if type(leaf) is Array]


def _same_state(name, before, trace_structure, results, structure):
    """Checks that a round of a loop returns a state like the one that it got."""
    if trace_structure != structure:
        raise TypeError(f"`{name}`: the function returns a state of another structure than it gets")
    for at, (array, kind) in enumerate(zip(before, results)):
        dtype, _, shape = kind if kind is not None else (None, None, None)
        if dtype != array._dtype or shape != array.shape:
            raise TypeError(
                f"`{name}`: part {at} of the state is {array._dtype} of shape {array.shape}, and the function returns "
                f"{dtype} of shape {shape}"
            )


def fori_loop(lower, upper, body, init, /):
    """Calls `state = body(i, state)` for i from `lower` to `upper - 1`. The host does not wait.

    >>> bl.fori_loop(0, 5, lambda i, x: x + i, bl.asarray(0))
    Array(10)
    """
    lower, upper = int(lower), int(upper)
    structure, arrays, device = _prepared("fori_loop", body, init)
    if upper <= lower:
        return unflatten(structure, iter(arrays))
    if is_traced(arrays):
        if upper - lower > _UNROLLED:
            raise NotImplementedError("a long loop inside of a traced function")
        state = unflatten(structure, iter(arrays))
        for i in range(lower, upper):
            state = body(i, state)
        return state
    number = weak_number(asarray(lower, device=device))
    trace = _traced(lambda given: body(given[0], unflatten(structure, iter(given[1:]))), [number, *arrays])
    _same_state("fori_loop", arrays, trace.structure, trace.results, structure)
    nodes = _core.repeat_template(trace.template, lower, upper, [array._node for array in arrays], [])
    return unflatten(trace.structure, iter(_leaves(trace, nodes)))


def while_loop(condition, body, init, /):
    """Calls `state = body(state)` while `condition(state)` is true.

    >>> bl.while_loop(lambda x: x < 100, lambda x: x * 2, bl.asarray(1))
    Array(128)
    """
    structure, arrays, _ = _prepared("while_loop", condition, body, init)
    if is_traced(arrays):
        raise NotImplementedError("a loop whose end only the device knows inside of a traced function")

    def state(given):
        return unflatten(structure, iter(given))

    try:
        step = _traced(lambda given: body(state(given)), arrays)
        test = _traced(lambda given: condition(state(given)), arrays)
    except NotImplementedError:
        return _plain_while(condition, body, unflatten(structure, iter(arrays)))
    _same_state("while_loop", arrays, step.structure, step.results, structure)
    if len(test.results) != 1 or test.results[0] is None or test.results[0][2] != ():
        raise TypeError("`while_loop`: the condition returns one truth value")
    nodes = [array._node for array in arrays]
    while bool(_leaves(test, _core.call_template(test.template, nodes))[0]):
        nodes = _core.call_template(step.template, nodes)
    return unflatten(structure, iter(_leaves(step, nodes)))


def _plain_while(condition, body, state):
    while bool(condition(state)):
        state = body(state)
        leaves = []
        flatten(state, leaves)
        _core.evaluate([leaf._node for leaf in leaves if isinstance(leaf, Array)])
    return state


def scan(function, init, xs=None, /, length=None, *, reverse=False):
    """Calls `state, y = function(state, x)` for each x along the first axis. Returns the last state and all y, stacked.

    >>> bl.scan(lambda total, x: (total + x, total * x), bl.asarray(0.0), bl.asarray([1.0, 2.0, 3.0]))
    (Array(6.), Array([0., 2., 9.]))
    """
    structure, arrays, device = _prepared("scan", function, init)
    inputs = []
    inner = flatten(xs, inputs)
    inputs = [one if isinstance(one, Array) else asarray(one, device=device) for one in inputs]
    lengths = {one.shape[0] for one in inputs} | ({length} if length is not None else set())
    if len(lengths) != 1:
        raise ValueError(f"`scan` over first axes of the lengths {sorted(lengths)}: one length is needed")
    count = lengths.pop()
    order = range(count - 1, -1, -1) if reverse else range(count)
    is_inside = is_traced(arrays) or is_traced(inputs)
    if is_inside and count > _UNROLLED:
        raise NotImplementedError("a long loop inside of a traced function")
    if is_inside or count == 0:
        return _plain_scan(function, unflatten(structure, iter(arrays)), xs, order, count)
    _core.evaluate([one._node for one in inputs])
    number = asarray(0, device=device)

    def called(given):
        at, given = given[0], list(given[1:])
        state, parts = given[: len(arrays)], [one[at] for one in given[len(arrays) :]]
        return function(unflatten(structure, iter(state)), unflatten(inner, iter(parts)))

    try:
        trace = _traced(called, [number, *arrays, *inputs])
    except NotImplementedError:
        return _plain_scan(function, unflatten(structure, iter(arrays)), xs, order, count)
    if not isinstance(trace.structure, tuple) or trace.structure[0] is not tuple or len(trace.structure[1]) != 2:
        raise TypeError("`scan`: the function returns a pair: the next state and a result")
    carried = len(arrays)
    _same_state("scan", arrays, trace.structure[1][0], trace.results[:carried], structure)
    state, beside, collected = [array._node for array in arrays], [one._node for one in inputs], []
    for at in order:
        leaves = _leaves(trace, _core.call_template(trace.template, [asarray(at, device=device)._node, *state, *beside]))
        state = [leaf._node for leaf in leaves[:carried]]
        collected.append(leaves[carried:])
    last = unflatten(structure, iter(leaves[:carried]))
    collected = collected[::-1] if reverse else collected
    stacked = [_stacked([round_[at] for round_ in collected], device) for at in range(len(leaves) - carried)]
    return last, unflatten(trace.structure[1][1], iter(stacked))


def _stacked(parts, device):
    """Stacks many arrays, some at a time."""
    from ._manipulation import concat

    parts = [part if isinstance(part, Array) else asarray(part, device=device) for part in parts]
    blocks = [stack(parts[at : at + _JOINED]) for at in range(0, len(parts), _JOINED)]
    while len(blocks) > 1:
        _core.evaluate([block._node for block in blocks])
        blocks = [concat(blocks[at : at + _JOINED]) for at in range(0, len(blocks), _JOINED)]
    return blocks[0]


def _plain_scan(function, state, xs, order, count):
    results = []
    for at in order:
        state, y = function(state, map_leaves(lambda one: asarray(one)[at], xs))
        results.append(y)
    results = results[::-1] if count and order and order[0] > order[-1] else results
    if not results:
        return state, None
    leaves = [[] for _ in results]
    structures = [flatten(y, own) for y, own in zip(results, leaves)]
    device = next((leaf._device for leaf in leaves[0] if isinstance(leaf, Array)), None) or _device()
    return state, unflatten(structures[0], iter([_stacked(list(parts), device) for parts in zip(*leaves)]))


def cond(predicate, true_function, false_function, /, *operands):
    """Calls one of two functions. Inside of a traced function both are computed, and one result is selected.

    >>> bl.cond(True, lambda x: x + 1, lambda x: x - 1, bl.asarray(1))
    Array(2)
    """
    if not (isinstance(predicate, Array) and _core.is_symbolic(predicate._node)):
        return (true_function if bool(predicate) else false_function)(*operands)
    return _selected(predicate, true_function(*operands), false_function(*operands))


def _selected(predicate, first, second):
    one, other = [], []
    structure = flatten(first, one)
    if flatten(second, other) != structure:
        raise TypeError("`cond`: the functions return results of different structures")
    return unflatten(structure, iter([where(predicate, x, y) for x, y in zip(one, other)]))


def switch(index, branches, /, *operands):
    """Calls the function with a number; numbers beyond the ends mean the first and the last function."""
    branches = list(branches)
    if not (isinstance(index, Array) and _core.is_symbolic(index._node)):
        return branches[max(0, min(int(index), len(branches) - 1))](*operands)
    result = branches[0](*operands)
    for number, branch in enumerate(branches[1:], 1):
        result = _selected(index >= number, branch(*operands), result)
    return result
