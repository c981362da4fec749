"""The neighbourhood family: filters, noise and whatever else is a function of whole images, in order and on batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import ConstantFill, Fill, Interpolation, filled, interpolated
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import require_bytes, require_image
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import Computes, StagedTransform, StepRef, fitted_use, only_identities, weight_ns
from pipegen.ops.traits import Family, Traits
from pipegen.ops.transform import Transform
from pipegen.types import BYTE_RANGE, FLOATING, FeatureType, Interval


class NeighbourhoodTransform(StagedTransform):
    """A function of a batch of images of one size, where it is written: nothing about it composes.

    Draws become `parameters` outside XLA; `apply` is a pure function of the images and those. It consists of `phases` and
    `finish`, since XLA on a CPU computes what is read more than once again for each reader: the backend compiles each of
    them apart.

    Class attributes:
        starts_kernel: Whether what computes the input has to be done with before the step starts: it reads a pixel
            more than once, or has phases.
        overshoots: Whether values can leave the range that enters. Bytes are clipped by `finish` itself; floats are
            clipped after it to what `infer` says.
        on_bytes: Whether it works on bytes alone: floats from 0 to 255 are rounded before it starts, half to even, and bytes leave.
        on_host: Whether it needs operations of TensorFlow that XLA has no form of.
        symmetric: Whether on bytes it comes to the same, bit for bit, if the image is mirrored before or after.
    """

    family = Family.NEIGHBOURHOOD
    starts_kernel: ClassVar[bool] = True
    overshoots: ClassVar[bool] = False
    on_bytes: ClassVar[bool] = False
    on_host: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False

    probability: Probability = 1.0
    """The share of examples that the step changes."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns what the draws say, computed in float64 and rounded once; by default nothing. `probability` has no part in it.

        Args:
            u: float64 `(n, num_draws)`, uniform in [0, 1).
            height: The height of the images, in pixels; an int32 scalar where it is not known before.
            width: Their width, likewise.

        Returns:
            Tensors whose first axis is the example: `(n, ...)`.
        """
        return ()

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        """Pure functions that run one after another before `finish`.

        Each takes the images `(n, height, width, channels)` and what the one before gave, the first the parameters; and
        gives what the next one reads more than once, or at another place than it writes, `(n, ...)` each.
        """
        return ()

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        """The images that leave: a pure function. By default, what the last of the `phases` gave, in the images' shape.

        Args:
            images: `(n, height, width, channels)`.
            *given: From the last of the `phases`, or the parameters where there are none.

        Returns:
            Images of the dtype and shape that `infer` says; uint8 is rounded half to even and clipped. Where every bit of the floats
            counts, the images come as float64 of float32 values, and go as float64 from a step that keeps the dtype: see
            `ops/lowering/linear.py`.
        """
        from pipegen.ops.lowering.filters import sides  # which not every spec needs

        (values,) = given
        return tf.reshape(values, [-1, *sides(images)])

    def apply(self, images: tf.Tensor, *parameters: tf.Tensor, clip: Interval | None = None) -> tf.Tensor:
        """Transform every image, whatever `probability` is: the phases, `finish` and the clip of floats.

        Args:
            images: `(n, height, width, channels)`.
            *parameters: From `parameters`.
            clip: What `clip_of` says.

        Returns:
            Images of the dtype and shape that `infer` says.
        """
        images = self.entering(images)
        for phase in self.phases():
            parameters = phase(images, *parameters)
        done = self.finish(images, *parameters)
        return done if clip is None else tf.clip_by_value(done, clip.low, clip.high)

    def entering(self, images: tf.Tensor) -> tf.Tensor:
        """The images as `phases` and `finish` take them."""
        from pipegen.ops.lowering.tables import as_bytes  # which not every spec needs

        return as_bytes(images) if self.on_bytes else images

    def clip_of(self, x: FeatureType) -> Interval | None:
        """The values that may leave on an input of type `x`, or `None` where nothing need be clipped."""
        return self.infer(x).interval if self.overshoots and x.dtype != "uint8" else None

    def is_identity(self, x: FeatureType) -> bool:
        return self.idle() and (not self.on_bytes or (x.dtype == "uint8" and x.interval == BYTE_RANGE))

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.NEIGHBOURHOOD, weight=self.weight())

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Neighbourhood:
        kind = HostNeighbourhood if self.on_host else Neighbourhood
        return kind(feature, ref, self.clip_of(x), self.starts_kernel)

    def weight(self) -> float:
        """Returns how many times dearer it is than a blur of 6 pixels to each side; see `Traits`."""
        return 1.0

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type: images of uint8 and of floats stay what they are, unless it is a step `on_bytes`, which gives uint8."""
        require_image(self, x)
        if self.on_bytes:
            require_bytes(self, x)
            return x.with_(dtype="uint8", interval=BYTE_RANGE)
        if x.dtype != "uint8" and x.dtype not in FLOATING:
            help_ = write("cast: {dtype: float32}", "before", "put {} before it")
            raise OpError("PG208", f"`{self.op}` works on uint8 and on floats, and gets {x.dtype}", help=help_)
        return x


@dataclass(frozen=True, slots=True)
class Neighbourhood(Computes):
    """A function of whole images, for the examples that it acts on.

    Attributes:
        clip: The values that may leave, where the step can leave the range of floats that enters it.
        starts_kernel: Whether what computes its input has to be done with before it starts.
    """

    branches: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.8

    feature: str
    ref: StepRef[NeighbourhoodTransform]
    clip: Interval | None
    starts_kernel: bool
    exact: bool = False

    def says(self) -> str:
        return fitted_use(self.ref)

    def leads(self) -> bool:
        return self.starts_kernel

    def commutes_with_mirrors(self, x: FeatureType) -> bool:
        return x.dtype == "uint8" and self.ref.step.symmetric

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities((self.ref,), x, y)

    def ns(self, x: FeatureType) -> float:
        return weight_ns(self.ref, self.ns_per_value, x)


@dataclass(frozen=True, slots=True)
class HostNeighbourhood(Neighbourhood):
    """One that XLA does not compile."""

    compilable: ClassVar[bool] = False


class DisplacementTransform(NeighbourhoodTransform):
    """Reads every pixel at another place. The last of the phases says where; the backend reads, once.

    That phase gives how far to the right and how far down of itself each output pixel is read: int32
    `(n, height, width)`, in 1/256 pixel.
    """

    moves: ClassVar[bool] = True

    fill: Fill = "reflect"
    """What lies outside the image: `reflect`, `nearest`, `wrap` or `{constant: VALUE}`."""
    interpolation: Interpolation = "bilinear"
    """How a position between pixels is read: `nearest`, `bilinear` or `bicubic`."""

    def traits(self, x: FeatureType) -> Traits:
        return replace(super().traits(x), displaces=True)

    def on(self, x: FeatureType) -> Transform:
        """As of a geometric step: a mask is read at the nearest pixel, and its `ignore` is what a constant fill uncovers."""
        if not kind_of(x).categorical:
            return self
        fill = ConstantFill(constant=x.ignore) if isinstance(self.fill, ConstantFill) else self.fill
        return self.model_copy(update={"interpolation": "nearest", "fill": fill})

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type; a constant fill widens the interval, and floats have none behind `bicubic`, which overshoots."""
        return filled(interpolated(super().infer(x), self.interpolation), self.fill)
