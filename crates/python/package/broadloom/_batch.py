"""`vmap`: a function of single elements of a batch becomes a function of whole batches.

Inside of the function an array stands for all elements of the batch at once: its node has one more axis, the first one,
which the array does not show. Each function of `_core` has a rule that says what it does to such nodes. The rules come
into force when the first batch is made.
"""

from __future__ import annotations

import functools
import math

from . import _core
from ._array import Array, made
from ._creation import asarray
from ._manipulation import moveaxis
from ._trees import flatten, unflatten


class BatchNode:
    """A node whose first axis is that of a batch."""

    __slots__ = ("node", "count", "context")

    def __init__(self, node, count, context):
        self.node, self.count, self.context = node, count, context


def _shape(node):
    return tuple(_plain["shape"](node))


def _batches(*values):
    """Returns a node with a batch among arguments, or `None`."""
    for value in values:
        if isinstance(value, BatchNode):
            return value
        if isinstance(value, (list, tuple)):
            found = _batches(*value)
            if found is not None:
                return found
    return None


def _aligned(nodes):
    """Returns nodes whose own axes have one rank behind the axis of the batch; nodes without a batch stay."""
    ranks = [len(_shape(one.node)) - 1 if isinstance(one, BatchNode) else len(_shape(one)) for one in nodes]
    rank, found = max(ranks), []
    for one, own in zip(nodes, ranks):
        if not isinstance(one, BatchNode):
            found.append(one)
            continue
        shape = _shape(one.node)
        wanted = (shape[0], *(1,) * (rank - own), *shape[1:])
        found.append(one.node if wanted == shape else _plain["reshape"](one.node, wanted))
    return found


def _whole(node, count):
    """Returns a node with the axis of the batch; one without it is repeated."""
    if isinstance(node, BatchNode):
        return node.node
    shape = _shape(node)
    return _plain["broadcast"](_plain["reshape"](node, (1, *shape)), (count, *shape))


def _rule_unary(operation, node):
    return _plain["unary"](operation, node.node)


def _rule_binary(operation, left, right):
    return _plain["binary"](operation, *_aligned([left, right]))


def _rule_elementwise(operation, nodes):
    return _plain["elementwise"](operation, _aligned(nodes))


def _rule_with_number(operation, node, number, is_first):
    return _plain["with_number"](operation, node.node, number, is_first)


def _rule_lane(node, part):
    return _plain["lane"](node.node, part)


def _rule_pair(real, imaginary):
    return _plain["pair"](*_aligned([real, imaginary]))


def _rule_convert(node, name):
    return _plain["convert"](node.node, name)


def _rule_bitcast(node, name):
    return _plain["bitcast"](node.node, name)


def _rule_affine(node, maps, shape, outside):
    maps = [(0, 0, 1), *((axis + 1 if axis >= 0 else -1, offset, stride) for axis, offset, stride in maps)]
    return _plain["affine"](node.node, maps, (node.count, *shape), outside)


def _rule_reshape(node, shape):
    return _plain["reshape"](node.node, (node.count, *shape))


def _rule_broadcast(node, shape):
    own = _shape(node.node)
    padded = (node.count, *(1,) * (len(shape) + 1 - len(own)), *own[1:])
    return _plain["broadcast"](_plain["reshape"](node.node, padded), (node.count, *shape))


def _rule_concatenate(axis, nodes):
    count = _batches(nodes).count
    return _plain["concatenate"](axis + 1, [_whole(one, count) for one in nodes])


def _indexed(nodes, count, context):
    """Returns index nodes of one shape with the axis of the batch, and one that numbers the batch."""
    shapes = [_shape(one.node)[1:] if isinstance(one, BatchNode) else _shape(one) for one in nodes]
    rank = max(len(shape) for shape in shapes)
    shape = tuple(max(([1] * (rank - len(own)) + list(own))[at] for own in shapes) for at in range(rank))
    whole = []
    for one, own in zip(nodes, shapes):
        node = _whole(one, count)
        node = _plain["reshape"](node, (count, *(1,) * (rank - len(own)), *own))
        whole.append(_plain["broadcast"](_plain["convert"](node, "int64"), (count, *shape)))
    return [_plain["position"](context, (count, *shape), 0, "int64"), *whole]


def _rule_gather(node, indices, outside):
    if not isinstance(node, BatchNode):
        return _plain["gather"](node, _aligned(indices), outside)
    return _plain["gather"](node.node, _indexed(indices, node.count, node.context), outside)


def _rule_scatter(node, indices, values, combine):
    batch = _batches(node, indices, values)
    count = batch.count
    whole = _indexed(indices, count, batch.context)
    shape = _shape(whole[0])
    values = _whole(values, count)
    own = _shape(values)
    values = _plain["reshape"](values, (own[0], *(1,) * (len(shape) - len(own)), *own[1:]))
    return _plain["scatter"](_whole(node, count), whole, _plain["broadcast"](values, shape), combine)


def _rule_reduce(node, combine, axes):
    return _plain["reduce"](node.node, combine, [axis + 1 for axis in axes])


def _rule_reduce_by(node, function, identity, axes):
    return _plain["reduce_by"](node.node, function, identity, [axis + 1 for axis in axes])


def _rule_scan(node, combine, axis, inclusive):
    return _plain["scan"](node.node, combine, axis + 1, inclusive)


def _rule_scan_by(node, function, identity, axis):
    return _plain["scan_by"](node.node, function, identity, axis + 1)


def _rule_extreme(node, greatest, axis):
    return _plain["extreme"](node.node, greatest, axis + 1)


def _rule_product(left, right):
    count = _batches(left, right).count
    if not isinstance(right, BatchNode):
        _, rows, inner = _shape(left.node)
        found = _plain["product"](_plain["reshape"](left.node, (count * rows, inner)), right)
        return _plain["reshape"](found, (count, rows, _shape(right)[1]))
    left, right = _whole(left, count), right.node
    (_, rows, inner), columns = _shape(left), _shape(right)[2]
    shape = (count, rows, inner, columns)
    left = _plain["broadcast"](_plain["reshape"](left, (count, rows, inner, 1)), shape)
    right = _plain["broadcast"](_plain["reshape"](right, (count, 1, inner, columns)), shape)
    return _plain["reduce"](_plain["binary"](_core.operation("*"), left, right), "sum", [2])


def _rule_sort_rows(line, rows, descending):
    shape = _shape(line.node)
    flat = _plain["reshape"](line.node, (math.prod(shape),))
    return [_plain["reshape"](one, shape) for one in _plain["sort_rows"](flat, rows * line.count, descending)]


def _rule_call_function(function, nodes):
    return _plain["call_function"](function, _aligned(nodes))


def _rule_shape(node):
    return _shape(node.node)[1:]


def _rule_type(node):
    return _plain["type"](node.node)


def _rule_is_symbolic(node):
    return True


def _rule_is_pending(node):
    return True


def _rule_evaluate(nodes):
    return _plain["evaluate"]([one.node if isinstance(one, BatchNode) else one for one in nodes])


_RULES = {name[len("_rule_") :]: rule for name, rule in list(globals().items()) if name.startswith("_rule_")}
# Functions that give numbers or shapes instead of nodes.
_ANSWERS = ("shape", "type", "is_symbolic", "is_pending", "evaluate")
# Functions that give lists of nodes.
_LISTS = ("sort_rows", "call_function")
_REFUSED = ("pack", "histogram", "address", "read", "synchronise", "call_window", "trace", "call_template", "repeat_template")
_plain: dict = {}


def _install() -> None:
    """Puts the rules into force: functions of `_core` look for batches if they refuse an argument."""
    if _plain:
        return
    for name, rule in _RULES.items():
        _plain[name] = getattr(_core, name)
    for name in ("position", *_REFUSED):
        _plain[name] = getattr(_core, name)
    for name, rule in _RULES.items():
        setattr(_core, name, _ruled(name, _plain[name], rule))
    for name in _REFUSED:
        setattr(_core, name, _refused(name, _plain[name]))


def _ruled(name, plain, rule):
    @functools.wraps(plain)
    def function(*arguments):
        try:
            return plain(*arguments)
        except TypeError:
            batch = _batches(*arguments)
            if batch is None:
                raise
        result = rule(*arguments)
        if name in _ANSWERS:
            return result
        nodes = [BatchNode(one, batch.count, batch.context) for one in (result if name in _LISTS else [result])]
        return nodes if name in _LISTS else nodes[0]

    return function


def _refused(name, plain):
    @functools.wraps(plain)
    def function(*arguments):
        try:
            return plain(*arguments)
        except TypeError:
            if _batches(*arguments) is None:
                raise
        raise NotImplementedError(f"elements of a batch, or a length that depends on them, inside of `bl.vmap` (`{name}`)")

    return function


def _mapped_axes(in_axes, args):
    """Returns the axis of the batch for each leaf of the arguments, or `None`."""
    axes = []

    def fill(axis, tree):
        if isinstance(axis, (tuple, list)) and isinstance(tree, (tuple, list)) and len(axis) == len(tree):
            for one, part in zip(axis, tree):
                fill(one, part)
        elif isinstance(axis, dict):
            for key in tree:
                fill(axis[key], tree[key])
        else:
            leaves = []
            flatten(tree, leaves)
            axes.extend([axis] * len(leaves))

    if isinstance(in_axes, (tuple, list)):
        if len(in_axes) != len(args):
            raise ValueError(f"`vmap`: {len(in_axes)} axes for {len(args)} arguments")
        for axis, arg in zip(in_axes, args):
            fill(axis, arg)
    else:
        fill(in_axes, list(args))
    return axes


def vmap(function, in_axes=0, out_axes=0):
    """Returns a function of batches: the function is applied to all elements of them at once.

    `in_axes` says along which axis each argument is a batch; `None` means that all elements get the same argument.

    >>> bl.vmap(lambda x, y: (x * y).sum())(bl.ones((3, 4)), bl.ones((3, 4)))
    Array([4., 4., 4.])
    """

    @functools.wraps(function)
    def mapped(*args):
        _install()
        leaves = []
        structure = flatten(list(args), leaves)
        axes = _mapped_axes(in_axes, args)
        arrays = [leaf if isinstance(leaf, Array) else leaf if axis is None else asarray(leaf) for leaf, axis in zip(leaves, axes)]
        counts = {array.shape[axis] for array, axis in zip(arrays, axes) if axis is not None}
        if len(counts) != 1:
            raise ValueError(f"`vmap` over batches of the sizes {sorted(counts)}: one size is needed")
        count = counts.pop()
        given = []
        for array, axis in zip(arrays, axes):
            if axis is None:
                given.append(array)
                continue
            moved = moveaxis(array, axis, 0)
            node = moved._node
            if isinstance(node, BatchNode):
                raise NotImplementedError("`vmap` inside of `vmap`: give the inner one whole batches")
            given.append(made(BatchNode(node, count, array._device._context), array._dtype, array._device, moved.shape[1:]))
        result = function(*unflatten(structure, iter(given)))
        found = []
        shape = flatten(result, found)
        outs = _mapped_axes(out_axes if isinstance(out_axes, (tuple, list)) and isinstance(result, tuple) else [out_axes],
                            list(result) if isinstance(out_axes, (tuple, list)) and isinstance(result, tuple) else [result])
        return unflatten(shape, iter([_unbatched(one, count, axis) for one, axis in zip(found, outs)]))

    return mapped


def _unbatched(leaf, count, axis):
    """Returns a result as an array with the axis of the batch."""
    if not isinstance(leaf, Array):
        leaf = asarray(leaf)
    whole = made(_whole(leaf._node, count), leaf._dtype, leaf._device, (count, *leaf.shape))
    return whole if axis == 0 else moveaxis(whole, 0, axis)
