"""The basic families of steps and their contracts. `transform.py` has the base of all steps.

The algebra follows one rule: an op declares *what it is* (a 3x3 matrix, a colour matrix, a scale and an offset, a function of one example),
and the passes and the backend decide how often a pixel is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.geometry import Fill, Interpolation, Reach, filled, interpolated
from pipegen.ops.arguments.magnitudes import Magnitude, Probability, Span, factor_range, has_type, span_range, symmetric_range
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.lowering.linear import uniform, zeros_for
from pipegen.ops.lowering.windows import Box, Sides, cut
from pipegen.ops.traits import Family, Traits
from pipegen.ops.transform import Transform
from pipegen.types import BYTE_RANGE, FeatureType, times

VALUED = frozenset({"image", "audio", "series"})  # the kinds whose values steps scale and shift, whatever their axes mean


def require_kind(step: Transform, x: FeatureType) -> None:
    """Rejects, as `PG203`, a feature of a kind that a step does not act on."""
    if not step.acts_on(kind_of(x)):
        known = f"it knows: {', '.join(step.known_kinds())}"
        raise OpError("PG203", f"`{step.op}` has no rule for a feature of kind `{x.kind}`", help=known)


def require_image(step: Transform, x: FeatureType) -> None:
    """Rejects all but decoded images, and sounds for a step that acts on them: another kind as `PG203`, a wrong rank as `PG204`."""
    if x.encoded:
        needed = "a decoded image" if kind_of(x).samples is None else f"decoded {kind_of(x).plural}"
        raise OpError("PG203", f"`{step.op}` needs {needed} and gets an encoded file", help="`decode` must come first")
    require_kind(step, x)
    if len(x.shape) != 3 and kind_of(x).samples is None:
        raise OpError("PG204", f"`{step.op}` needs an image of shape height × width × channels and gets rank {len(x.shape)}")


def require_bytes(step: Transform, x: FeatureType) -> None:
    """Rejects, as `PG221`, values other than bytes and float32 from 0 to 255, which are rounded."""
    if x.dtype not in ("uint8", "float32"):
        said = "put {} before it; it rounds to 256 values"
        help_: str | None = write("rescale: {to: [0, 255]}", "before", said) if x.dtype == "uint16" else None
        raise OpError("PG221", f"`{step.op}` works on uint8, or on float32 from 0 to 255, but gets {x.dtype}", help=help_)
    whole = x.interval is not None and x.interval.high > 1 and BYTE_RANGE.contains(x.interval, slack=0.5)
    if x.dtype == "uint8" or whole:
        return
    given, earlier = f"values in {x.interval}", "put it before `rescale` and `normalize`, where the values are still from 0 to 255"
    if x.interval is None:
        given = "values of an unknown range"
        earlier = write("cast: {dtype: uint8}", "before", "if they are from 0 to 255, put {} before it")
    raise OpError("PG221", f"`{step.op}` rounds to whole numbers from 0 to 255, but gets {given}", help=earlier)


def is_standardised(x: FeatureType) -> bool:
    """Checks that values were centred, so that 0 is no longer black."""
    return x.centred if x.interval is None else x.interval.low < 0


def centred_values(x: FeatureType) -> str:
    """Describes standardised values."""
    return f"standardised values{f' in {x.interval}' if x.interval else ''}"


class ElementTransform(Transform):
    """A function of one example, at any shape."""

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        """Transforms one image, `(height, width, channels)` of any size, by its draws `(num_draws,)`, to the dtype of `infer`."""
        raise NotImplementedError


class CropTransform(Transform):
    """A window of the image, optionally followed by a resize.

    On images of any size it is an element function, and a decoder may decode only the window. If the input's size is known and nothing
    is resized, it is a geometric step: a translation that ends its segment. Outside the image, a window shows the step's `fill` (its
    traits have `pads`); such a step is a segment of its own, so that pixels are copied.
    """

    family: ClassVar[str] = "crop"
    moves: ClassVar[bool] = True
    only_sizes: ClassVar[bool] = True
    keeps_axes: ClassVar[bool] = True

    def output_size(self) -> tuple[int | None, int | None]:
        """Returns `(height, width)` of the output, in pixels; by default `None`, for the window's own size, which depends on the image."""
        return None, None

    def infer(self, x: FeatureType) -> FeatureType:
        """Infers the output size; rejects an image that is known to be too small for a plain window."""
        require_image(self, x)
        height, width = self.output_size()
        if height is None or width is None:
            return x.with_(shape=(None, None, x.channels))
        room = self.room(x)
        small = (room[0] is not None and room[0] < height) or (room[1] is not None and room[1] < width)
        if small and not self.resizes():
            message = f"`{self.op}` cuts {height}×{width} pixels out of an image of {times(x.shape[:2])}"
            raise OpError("PG206", message, field="size", help="resize to at least the crop's size first, or use a smaller crop")
        return x.with_(shape=(height, width, x.channels))

    def room(self, x: FeatureType) -> tuple[int | None, int | None]:
        """Returns the `(height, width)` that a plain window has to fit into; `None` if unknown or unlimited."""
        return x.height, x.width

    def is_identity(self, x: FeatureType) -> bool:
        fits = x.height is not None and x.width is not None and (x.height, x.width) == self.output_size()
        return super().is_identity(x) or (fits and not self.resizes())

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """Computes the window in images of given sizes, int32 `(...)` or scalars, in float64, rounded once: top, left, height and width,
        inside the image unless the step pads, int32 `(..., 4)`. All in pixels."""
        raise NotImplementedError

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """Returns the window: `top`, `left`, `height` and `width`, int32 `(...)`."""
        window = self.window(u, tf.convert_to_tensor(shape[0]), tf.convert_to_tensor(shape[1]))
        return dict(zip(("top", "left", "height", "width"), tf.unstack(window, axis=-1), strict=True))

    def reach(self) -> Reach | None:
        """Bounds the matrices of a plain window for all draws; None if unbounded."""
        return Reach()

    def resizes(self) -> bool:
        """Checks whether `finish` resizes, so that the step is not a plain window."""
        return False

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        top, left, rows, columns = tf.unstack(self.window(u, height, width), axis=-1)
        # A window with its own size is that of one example, or of images of one size.
        sides = zip(self.output_size(), (rows, columns), strict=True)
        after = tuple(tf.reshape(own, [-1])[0] if side is None else side for side, own in sides)
        return (top, left, rows, columns), (after[0], after[1])

    def cut(self, image: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
        """Cuts a window out of one image, `(height, width, channels)`."""
        return cut(image, window)

    def finish(self, window: tf.Tensor) -> tf.Tensor:
        """Converts the window's pixels to the output; the identity unless `resizes()`."""
        return window

    def traits(self, x: FeatureType) -> Traits:
        if None not in (x.height, x.width, *self.output_size()) and not self.resizes():
            return Traits(Family.GEOMETRIC, crops=True, moves_pixels_only=True)
        return Traits(Family.ELEMENT, crops=True, resizes=self.resizes())


class GeometricTransform(Transform):
    """A 3x3 matrix. Adjacent steps with equal `fill` and `interpolation` multiply and resample once.

    A mask is read at the nearest pixel, and a constant fill shows its `ignore`; other fills show its own pixels, as on the image.
    """

    family = Family.GEOMETRIC
    moves: ClassVar[bool] = True
    keeps_axes: ClassVar[bool] = False
    """Whether its matrices only scale, shift and mirror, so that rows stay rows and columns stay columns."""

    fill: Fill = "reflect"
    """The fill outside the image: `reflect`, `nearest`, `wrap` or `{constant: VALUE}`."""
    interpolation: Interpolation = "bilinear"
    """The interpolation between pixels: the `nearest` one, `bilinear` from four, or `bicubic` from sixteen, which is sharper (Keys' cubic
    convolution, a = -1/2)."""
    exact: bool = False
    """Resample for this step alone, not once for the run of geometric steps around it."""
    probability: Probability = 1.0
    """The share of examples that the step changes."""

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """Computes the map from output to input pixel coordinates, float64 `(..., 3, 3)`, on a canvas of a size, float64 scalars in pixels.

        Coordinates are `(x, y, 1)` with x to the right, y down, and pixel centres at integers; the centre of the image is
        `((width - 1) / 2, (height - 1) / 2)`.
        """
        raise NotImplementedError

    def reach(self) -> Reach | None:
        """Bounds its matrices for all draws; None if unbounded."""
        return None

    def infer(self, x: FeatureType) -> FeatureType:
        """Infers the same type; a constant fill widens the interval, and floats have none after `bicubic`, which overshoots."""
        require_image(self, x)
        return filled(x if self.traits(x).moves_pixels_only else interpolated(x, self.interpolation), self.fill)


class ColourTransform(Transform):
    """A matrix on the channels. Adjacent steps multiply and clip once, to the interval of the input."""

    family = Family.COLOUR

    probability: Probability = 1.0
    """The share of examples that the step changes."""

    min_channels: ClassVar[int] = 1
    separate: ClassVar[bool] = False
    """Whether each output channel depends on its own input channel alone, so that `A` has no entries off its diagonal."""

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Computes the map `y = A x + b + m * mean`, where `mean` is the mean luma of the segment's input image: float64
        `A (..., out, channels)`, `b (..., out)` and `m (..., out)`; `out` is `channels` unless the step changes it. An `m (..., out,
        channels)` is for the means of the channels."""
        raise NotImplementedError

    def uses_mean(self) -> bool:
        """Checks whether `m` can differ from zero."""
        return False

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and self.idle()

    def mixes_channels(self) -> bool:
        """Checks whether an output channel can depend on another channel; unless the arguments decide, the opposite of `separate`."""
        return not self.separate

    def takes(self, channels: int) -> bool:
        """Checks whether it supports a number of channels: by default gray and RGB."""
        return channels in (1, 3)

    def infer(self, x: FeatureType) -> FeatureType:
        """Infers float32, clipped to the interval of the input."""
        require_image(self, x)
        if x.channels is None or not self.takes(x.channels):
            raise OpError("PG205", f"`{self.op}` works on {'1, 3 or 4' if self.takes(4) else '1 or 3'} channels, and gets {x.channels}")
        if x.channels < self.min_channels:
            raise OpError("PG205", f"`{self.op}` needs {self.min_channels} channels, and gets {x.channels}")
        if is_standardised(x):
            message = f"`{self.op}` expects pixel values that start at 0, such as 0..255, but gets {centred_values(x)}"
            raise OpError("PG214", message, help="move the colour step before the step that subtracts the mean")
        return x.with_(dtype="float32")


class PointwiseTransform(Transform):
    """A per-channel order, scale and offset, and a dtype: `y[c] = x[order[c]] * scale[c] + offset[c]`."""

    kinds: ClassVar[frozenset[str]] = VALUED
    family = Family.POINTWISE

    def arithmetic(self, x: FeatureType) -> Arithmetic:
        """Returns the constants for an input of type `x`."""
        raise NotImplementedError

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        return self.arithmetic(x).infer(x)

    def is_identity(self, x: FeatureType) -> bool:
        return self.arithmetic(x).is_identity(x)


class UnconditionalTransform(Transform):
    """A step that acts on every example: it takes no `probability`."""

    if not TYPE_CHECKING:  # for type checkers, the argument of the family and a class attribute would not fit together
        probability: ClassVar[float] = 1.0


class OccasionalTransform(Transform):
    """A step that acts on a share of the examples, half of them by default."""

    random = True

    probability: Probability = 0.5
    """The share of examples that the step changes."""


class AmountTransform(Transform):
    """A step that works with amounts, such as an angle. The fixed and the random form of a step share a base of this kind."""

    idle_at: ClassVar[dict[str, float]] = {}
    """The amounts at which the step changes nothing, by name; by default 1 for `factors` and 0 for all others."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each amount by name; an argument without a value has none."""
        raise NotImplementedError

    def amounts(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The amounts of each example by name: float64 `(...)`, from draws `(..., num_draws)`; by default those that are drawn."""
        return self.drawn(u)

    def largest(self, name: str) -> float:
        """The greatest value of an amount in any epoch."""
        return self.over_epochs().ranges()[name][1]

    def idle(self) -> bool:
        ranges = self.ranges()
        idle_at = self.idle_at or {name: float(name in self.factors) for name in ranges}
        return super().idle() or all(ranges.get(name) == (amount, amount) for name, amount in idle_at.items())


class FixedTransform(UnconditionalTransform, AmountTransform):
    """A step with the same amounts for every example: its arguments that are floats."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: (value, value) for name, value in given.items() if isinstance(value, float)}

    def amounts(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: zeros_for(u) + value for name, (value, _) in self.ranges().items()}


class UniformTransform(AmountTransform):
    """A step that draws an amount from each of its ranges and magnitudes, in the order of its arguments; with `draws`, further numbers."""

    random = True

    def ranges(self) -> dict[str, tuple[float, float]]:
        given = {name: (range_of, getattr(self, name)) for name, range_of in _drawn_arguments(type(self)).items()}
        return {name: range_of(value) for name, (range_of, value) in given.items() if value is not None}

    def num_draws(self) -> int:
        return self.draws or len(self.ranges())

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: uniform(drawn, bounds) for drawn, (name, bounds) in zip(tf.unstack(u, axis=-1), self.ranges().items(), strict=False)}


@cache
def _drawn_arguments(step: type[UniformTransform]) -> dict[str, Callable[[Any], tuple[float, float]]]:
    """The arguments that are drawn, with what reads their range. Cached, since passes ask at every rewrite."""
    found: dict[str, Callable[[Any], tuple[float, float]]] = {}
    for name, field in step.model_fields.items():
        if has_type(field, Magnitude):
            found[name] = factor_range if name in step.factors else symmetric_range
        elif has_type(field, Span):
            found[name] = span_range
    return found


class UnsignedTransform(UniformTransform):
    """A step whose amounts lose their sign: a magnitude of 2 means from 0 to 2."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: tf.abs(amount) for name, amount in super().drawn(u).items()}
