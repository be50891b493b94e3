"""Nested containers of arrays: tuples, named tuples, lists and dictionaries, and their leaves."""

from __future__ import annotations

_LEAF = object()


def flatten(tree, leaves) -> object:
    """Appends the leaves of a tree to a list, and returns its structure, which can be hashed."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind, tuple([flatten(item, leaves) for item in tree])
    if kind is dict:
        return kind, tuple([(key, flatten(tree[key], leaves)) for key in tree])
    if tree is None:
        return None
    if isinstance(tree, tuple):
        return kind, tuple([flatten(item, leaves) for item in tree])
    leaves.append(tree)
    return _LEAF


def unflatten(structure, leaves):
    """Returns the tree of a structure with leaves from an iterator."""
    if structure is _LEAF:
        return next(leaves)
    if structure is None:
        return None
    kind, items = structure
    if kind is dict:
        return {key: unflatten(item, leaves) for key, item in items}
    parts = [unflatten(item, leaves) for item in items]
    if kind is list:
        return parts
    return tuple(parts) if kind is tuple else kind(*parts)


def map_leaves(function, tree):
    """Returns a tree with a function applied to its leaves."""
    leaves = []
    structure = flatten(tree, leaves)
    return unflatten(structure, iter([function(leaf) for leaf in leaves]))
