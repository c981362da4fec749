"""The neighbourhood family: filters, noise and other functions of batches of whole images."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Fill, Interpolation, filled, interpolated
from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.stage import Computes, OneStep, StagedTransform, StepRef
from pipegen.ops.step_bases import UniformTransform, require_bytes, require_image
from pipegen.ops.traits import Family, Traits
from pipegen.ops.transform import Transform
from pipegen.types import BYTE_RANGE, FLOATING, FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.lowering.filters import Phase  # pydantic would import TensorFlow for a tensor in the type of `phase`


class NeighbourhoodTransform(StagedTransform):
    """A function of a batch of images of one size. It does not compose with other steps, so it runs where it is written.

    Draws become `parameters` outside XLA; `apply` is a pure function of the images and the parameters. It consists of `phases` and
    `finish`, which the backend compiles separately: XLA on a CPU computes a value again for each of its readers."""

    family = Family.NEIGHBOURHOOD
    starts_kernel: ClassVar[bool] = True
    """Whether the input has to be complete before the step starts: it reads a pixel more than once, or has phases."""
    overshoots: ClassVar[bool] = False
    """Whether values can leave the range of the input. `finish` clips bytes itself; floats are clipped after it, to the interval that
    `infer` gives."""
    on_bytes: ClassVar[bool] = False
    """Whether it works on bytes alone: floats from 0 to 255 are rounded first, half to even, and bytes come out."""
    on_host: ClassVar[bool] = False  # whether it needs TensorFlow operations that XLA does not support
    symmetric: ClassVar[bool] = False  # whether, on bytes, mirroring the image before or after the step gives the same bits
    channel_counts: ClassVar[tuple[int, ...]] = ()  # the numbers of channels that it works on; empty for any
    cost: ClassVar[float] = 1.0
    """Its cost relative to a blur of 6 pixels to each side, unless `weight` depends on the arguments; see `Traits`."""

    probability: Probability = 1.0
    """The share of examples that the step changes."""

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Computes from the draws, float64 `(n, num_draws)` in [0, 1), and from the sides of the images in pixels, int32 scalars where they
        are not known statically, what the pixels need: in float64, rounded once, tensors whose first axis is the example; by default
        what is drawn. `probability` plays no part."""
        return tuple(self.drawn(u).values())

    phase: ClassVar[Phase | None] = None
    """The only phase, for a step with one."""

    def phases(self) -> tuple[Phase, ...]:
        """Pure functions that run one after another before `finish`.

        Each takes the images `(n, height, width, channels)` and the results of the one before; the first one takes the parameters.
        Its results `(n, ...)` are what the next one reads more than once, or at another place than it writes.
        """
        return () if self.phase is None else (self.phase,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        """Computes the output images, as a pure function of the images `(n, height, width, channels)` and the results of the last phase, or
        the parameters where there are no phases. By default, the result of the last phase, of images in their shape.

        Returns images of the dtype and shape that `infer` gives; uint8 is rounded half to even and clipped. Where floats have to be exact,
        the images are float64 of float32 values, and a step that keeps the dtype returns float64: see `ops/lowering/linear.py`.
        """
        from pipegen.ops.lowering.filters import sides  # not every spec needs it

        (values,) = given
        return tf.reshape(values, [-1, *sides(images)]) if len(images.shape) == 4 and len(values.shape) < 4 else values

    def apply(self, images: tf.Tensor, *parameters: tf.Tensor, clip: Interval | None = None) -> tf.Tensor:
        """Transforms every image `(n, height, width, channels)`, whatever `probability` is, to the dtype and shape that `infer` gives: runs
        the phases and `finish` with the `parameters`, and clips floats to the interval of `clip_of`."""
        images = self.entering(images)
        for phase in self.phases():
            parameters = phase(images, *parameters)
        done = self.finish(images, *parameters)
        return done if clip is None else tf.clip_by_value(done, clip.low, clip.high)

    def entering(self, images: tf.Tensor) -> tf.Tensor:
        """The images as `phases` and `finish` take them."""
        from pipegen.ops.lowering.colours import as_bytes  # not every spec needs it

        return as_bytes(images) if self.on_bytes else images

    def clip_of(self, x: FeatureType) -> Interval | None:
        """The interval to clip the output to, for an input of type `x`; `None` where nothing needs clipping."""
        return self.infer(x).interval if self.overshoots and x.dtype != "uint8" else None

    def is_identity(self, x: FeatureType) -> bool:
        return self.idle() and (not self.on_bytes or (x.dtype == "uint8" and x.interval == BYTE_RANGE))

    def traits(self, x: FeatureType) -> Traits:
        return Traits(self.family, weight=self.weight())

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Neighbourhood:
        kind = HostNeighbourhood if self.on_host else Neighbourhood
        return kind(feature, ref, self.clip_of(x), self.starts_kernel)

    def weight(self) -> float:
        """The `cost` with these arguments."""
        return self.cost

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type for uint8 and floats; uint8 of any value for a step `on_bytes`."""
        require_image(self, x)
        if self.on_bytes:
            require_bytes(self, x)
        elif x.dtype != "uint8" and x.dtype not in FLOATING:
            help_ = write("cast: {dtype: float32}", "before", "put {} before it")
            raise OpError("PG208", f"`{self.op}` works on uint8 and on floats, and gets {x.dtype}", help=help_)
        if self.channel_counts:
            require_channels(self, x, self.channel_counts)
        return x.with_(dtype="uint8", interval=BYTE_RANGE) if self.on_bytes else x


def require_channels(step: Transform, x: FeatureType, counts: tuple[int, ...]) -> None:
    """Rejects, as `PG205`, an image with another number of channels than one of `counts`."""
    if x.channels not in counts:
        takes = f"works on {' or '.join(map(str, counts))}" if len(counts) > 1 else f"needs {counts[0]}"
        raise OpError("PG205", f"`{step.op}` {takes} channels, and gets {x.channels}")


@dataclass(frozen=True, slots=True)
class Neighbourhood(OneStep[NeighbourhoodTransform], Computes):
    """A function of whole images, for the examples that it acts on. `clip` is the interval to clip the output to, where the step can leave
    the input's range of floats; with `starts_kernel`, the input has to be complete before it starts."""

    branches: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.8

    clip: Interval | None
    starts_kernel: bool
    exact: bool = False

    def leads(self) -> bool:
        return self.starts_kernel

    def commutes_with_mirrors(self, x: FeatureType) -> bool:
        return x.dtype == "uint8" and self.ref.step.symmetric


@dataclass(frozen=True, slots=True)
class HostNeighbourhood(Neighbourhood):
    """A function of whole images that XLA does not compile."""

    compilable: ClassVar[bool] = False


class SharpenTransform(NeighbourhoodTransform):
    """Blends an image with its smoothed self, as Pillow defines sharpness: y = s + factor · (x - s).

    `s` is the mean of each 3 by 3 pixels with five times the weight in the middle, and `x` itself at the border.
    """

    overshoots = True
    symmetric = True
    cost = 0.5

    def phases(self) -> tuple[Phase, ...]:
        from pipegen.ops.lowering.filters import pad_lines, sharpen  # not every spec needs it

        return pad_lines, sharpen


class DisplacementTransform(NeighbourhoodTransform):
    """Reads every pixel at another place. The last phase computes where, and the backend reads once.

    That phase gives the distance to the right and the distance down at which each output pixel is read: int32 `(n, height, width)`
    each, in 1/256 pixel.
    """

    moves: ClassVar[bool] = True

    fill: Fill = "reflect"
    """What lies outside the image: `reflect`, `nearest`, `wrap` or `{constant: VALUE}`."""
    interpolation: Interpolation = "bilinear"
    """How a position between pixels is read: `nearest`, `bilinear` or `bicubic`."""

    def traits(self, x: FeatureType) -> Traits:
        return replace(super().traits(x), displaces=True)

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type. A constant fill widens the interval; `bicubic` overshoots, so floats have none after it."""
        return filled(interpolated(super().infer(x), self.interpolation), self.fill)


class ByteTransform(UniformTransform, NeighbourhoodTransform):
    """A function of images of bytes, with uniform amounts."""

    on_bytes: ClassVar[bool] = True


class RgbTransform(ByteTransform):
    """A function of RGB images of bytes, with uniform amounts."""

    channel_counts = (3,)
