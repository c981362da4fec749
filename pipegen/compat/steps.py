"""The steps that a generator stands for: what it does to an image, in the words of the spec language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.compat.functions import function_steps
from pipegen.compat.refusals import UnsupportedArgument
from pipegen.compat.shifts import is_given, shift_steps

if TYPE_CHECKING:
    from pipegen.compat.arguments import Arguments

_FILLS = {"nearest": "nearest", "reflect": "reflect", "grid-mirror": "reflect", "wrap": "wrap", "grid-wrap": "wrap"}
_INTERPOLATION = {0: "nearest", 1: "bilinear"}
_EPSILON = 1e-6
_MOVES = ("rotation_range", "width_shift_range", "height_shift_range", "shear_range")


def image_steps(generator: Arguments, size: tuple[int, int] | None, channels: int, *, measured: bool = False) -> list[Any]:
    """Every step after the resize: geometry, channel shift, flips, brightness, and what `standardize` does.

    Args:
        generator: The generator.
        size: (height, width) of the images, where it is known.
        channels: How many channels they have.
        measured: Whether the pipeline may measure what has not been fitted, on its training split.

    Raises:
        UnsupportedArgument: For the first argument that no spec expresses.
    """
    if generator.brightness_range is not None and channels not in (1, 3, 4):
        why = f"images of {channels} channels have none in a spec"
        raise UnsupportedArgument("brightness_range", why, "leave the channels out that are no colours, as `x=(images, [channels])`")
    return [*random_steps(generator, size), *fixed_steps(generator, channels, measured=measured)]


def augments(generator: Arguments) -> bool:
    """Returns whether the generator draws anything."""
    mirrors = generator.horizontal_flip or generator.vertical_flip
    colour = generator.brightness_range is not None or generator.channel_shift_range
    return bool(mirrors or colour or list(generator.zoom_range) != [1, 1] or any(is_given(getattr(generator, name)) for name in _MOVES))


def random_steps(generator: Arguments, size: tuple[int, int] | None) -> list[Any]:
    """The augmentation."""
    steps = _moves(generator, size)
    moves = bool(steps)
    if generator.channel_shift_range:
        steps.append({"random_channel_shift": {"delta": abs(generator.channel_shift_range)}})
    axis = {(True, True): "both", (True, False): "horizontal", (False, True): "vertical"}.get(
        (bool(generator.horizontal_flip), bool(generator.vertical_flip))
    )
    if axis is not None:
        beside = moves and not generator.channel_shift_range  # one resampling for both, and no lint about two fills
        steps.append({"random_flip": {"axis": axis, **(_reading(generator) if beside else {})}})
    if generator.brightness_range is not None:
        steps.append({"random_brightness": {"factor": _factors(generator.brightness_range)}})
    return steps


def fixed_steps(generator: Arguments, channels: int, *, measured: bool = False) -> list[Any]:
    """Returns what is done to every image after that, in Keras' order; for `measured` see `image_steps`."""
    steps: list[Any] = []
    if generator.preprocessing_function is not None:
        steps += function_steps(generator.preprocessing_function)
    if generator.rescale:
        steps.append({"rescale": {"scale": float(generator.rescale)}})
    if generator.samplewise_center:  # which the deviation implies
        scale = {} if generator.samplewise_std_normalization else {"scale": False}
        steps.append({"standardize": {"statistics": "samplewise", **scale}})
    if not generator.zca_whitening or generator.featurewise_std_normalization:  # else the whitening subtracts the mean
        steps += _featurewise(generator, channels, measured=measured)
    if generator.zca_whitening:
        steps.append({"whiten": {"center": "channel", "epsilon": _epsilon(generator.zca_epsilon)}})
    return steps


def _featurewise(generator: Arguments, channels: int, *, measured: bool) -> list[Any]:
    """The step with the statistics of the data: those that were fitted, or to be measured."""
    if measured and generator.featurewise_center and generator.mean is None and generator.std is None:
        scale = {} if generator.featurewise_std_normalization else {"scale": False}
        return [{"standardize": {"statistics": "featurewise", **scale}}]
    moments = {
        name: _fitted(argument, name, getattr(generator, name), channels, added)
        for argument, name, added in (("featurewise_center", "mean", 0.0), ("featurewise_std_normalization", "std", _EPSILON))
        if getattr(generator, argument)
    }
    return [{"normalize": moments}] if moments else []


def _moves(generator: Arguments, size: tuple[int, int] | None) -> list[Any]:
    """The geometric steps but for flips, in the order that composes Keras' matrix."""
    low, high = sorted(generator.zoom_range)
    zooms = (low, high) != (1, 1)
    if not (zooms or any(is_given(getattr(generator, name)) for name in _MOVES)):
        return []
    reading = _reading(generator)
    steps: list[Any] = []
    if generator.rotation_range:
        steps.append({"random_rotation": {"degrees": abs(generator.rotation_range), **reading}})
    steps += shift_steps(generator, size, reading)
    if generator.shear_range:
        steps.append({"random_shear": {"degrees": abs(generator.shear_range), **reading}})
    if zooms:
        if low <= 0:
            why = f"its factors [{low:g}, {high:g}] reach 0, where the picture is infinitely large, and beyond it is mirrored"
            raise UnsupportedArgument("zoom_range", why, "write the pair that you mean, such as [0.5, 1.5]")
        # Keras' number multiplies the distance that is read at; a spec's factor is the magnification.
        factors = [1 / high, 1 / low]
        steps.append({"random_zoom": {"x": factors, "y": list(factors), **reading}})
    if steps and generator.geometry == "keras3" and (size is None or size[0] != size[1]):
        why = "the centre beside a picture that is not square is a mistake of Keras that no spec reproduces"
        raise UnsupportedArgument("geometry", why, "use square images, or the documented geometry")
    return steps


def _reading(generator: Arguments) -> dict[str, Any]:
    """`fill` and `interpolation`."""
    mode, order = generator.fill_mode, generator.interpolation_order
    if mode != "constant" and mode not in _FILLS:
        raise UnsupportedArgument("fill_mode", f"a spec has no fill {mode!r}", "use 'nearest', 'reflect', 'wrap' or 'constant'")
    if order not in _INTERPOLATION:
        raise UnsupportedArgument("interpolation_order", f"splines of order {order} are not among the interpolations", "use 0 or 1")
    fill: Any = {"constant": float(generator.cval)} if mode == "constant" else _FILLS[mode]
    return {"fill": fill} if order == 1 else {"fill": fill, "interpolation": _INTERPOLATION[order]}


def _factors(given: Any) -> list[float]:
    low, high = sorted(float(v) for v in given)
    if low < 0:
        raise UnsupportedArgument("brightness_range", f"the factor {low:g} is below 0", "write a range from 0 on; 1 changes nothing")
    return [low, high]


def _epsilon(given: Any) -> float:
    if not 0 < given <= 1:
        raise UnsupportedArgument(
            "zca_epsilon", f"a spec adds more than 0 and at most 1 to the variances, not {given!r}", "leave it at 1e-6"
        )
    return float(given)


def _fitted(argument: str, name: str, found: Any, channels: int, added: float) -> list[float]:
    """Statistics, one number for each channel."""
    if found is None:
        raise UnsupportedArgument(argument, "nothing has been fitted", f"call `fit` first, or set `.{name}`")
    import numpy as np

    values = [float(v) + added for v in np.asarray(found).reshape(-1)]  # what was set by hand may be a number
    if len(values) not in (1, channels):
        raise UnsupportedArgument(argument, f"`.{name}` has {len(values)} channels, and the images {channels}", "fit it on such images")
    return values
