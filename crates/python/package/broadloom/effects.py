"""Image effects: `bl.effects.gaussian(image, sigma=2)`.

An image is an array with the axes row, column, or row, column, plane; the planes are `R`, `G`, `B` and `A`. Effects
take and return `float32`; integers of 8 and 16 bits become numbers from 0 to 1 first.
"""

from __future__ import annotations

from . import _core, _dtypes
from ._array import Array, cast, made, permuted, reshaped
from ._creation import asarray

_PLANES = {1: ["Y"], 2: ["Y", "A"], 3: ["R", "G", "B"], 4: ["R", "G", "B", "A"]}
_CATALOGUE = {name: (summary, roles, parameters) for name, summary, roles, parameters in _core.effects()}


def _planar(image) -> tuple[Array, list[str]]:
    """Returns the planes of an image as an array of `float32`, and their names."""
    image = image if isinstance(image, Array) else asarray(image)
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in _PLANES):
        raise ValueError(f"an image has the shape (rows, columns) or (rows, columns, 1 to 4), not {image.shape}")
    if image.dtype in (_dtypes.uint8, _dtypes.uint16):
        image = cast(image, _dtypes.float32) / float(2 ** (8 * image.dtype.itemsize) - 1)
    elif image.dtype.kind != "f":
        raise TypeError(f"an image of {image.dtype}: effects take floats, uint8 and uint16")
    image = cast(image, _dtypes.float32)
    planes = permuted(image, (2, 0, 1)) if image.ndim == 3 else reshaped(image, (1, *image.shape))
    return planes, _PLANES[planes.shape[0]]


def apply(effects, *images, **settings) -> Array:
    """Applies effects by name, fused: `apply("gaussian,unsharp", image, sigma=2, amount=0.5)`.

    A setting belongs to the effect that has such a parameter; `boundary` belongs to all.
    """
    if not images:
        raise TypeError(f"`{effects}` takes an image")
    first = effects.split(",")[0].strip()
    roles = _CATALOGUE.get(first, ("", ["image"], ()))[1]
    own = len(images) if roles == ["frames"] or "," not in effects else len(roles)
    converted = [_planar(image) for image in images]
    device = converted[0][0].device
    nodes, names = [planes._node for planes, _ in converted], [names for _, names in converted]
    for planes, _ in converted:
        if planes.device is not device:
            raise ValueError(f"one image is on {device}, another on {planes.device}: use `to_device`")
    texts = [f"{name}={_text(value)}" for name, value in settings.items()]
    node, made_names = _core.run_effects(device._context, effects, texts, nodes, names, own)
    planes = made(node, _dtypes.float32, device)
    flat = len(made_names) == 1 and getattr(images[0], "ndim", 2) == 2
    return reshaped(planes, planes.shape[1:]) if flat else permuted(planes, (1, 2, 0))


def _text(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, (tuple, list)) else str(value)


def _function(name):
    summary, roles, parameters = _CATALOGUE[name]

    def function(*images, **settings):
        return apply(name, *images, **settings)

    lines = [f"    {parameter} = {default}: {text}" for parameter, default, text in parameters]
    function.__doc__ = "\n".join([summary, "", f"Takes: {', '.join(roles)}.", "", *lines])
    function.__name__ = function.__qualname__ = name
    return function


for _name in _CATALOGUE:
    globals()[_name] = _function(_name)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"there is no effect `{name}`; there is {', '.join(sorted(_CATALOGUE))}")


def __dir__():
    return ["apply", *_CATALOGUE]
