"""Steps that blend an image with the results of several chains of operations, and their stage."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Fill, Interpolation
from pipegen.ops.families.neighbourhood import Neighbourhood, NeighbourhoodTransform
from pipegen.ops.lowering.linear import about_centre
from pipegen.ops.stage import StepRef
from pipegen.types import FeatureType

PLAIN, STRETCH, SPREAD = range(3)
"""The kind of a layer's table: given, or auto-contrast or equalization of the layer's input."""


class Chains(NamedTuple):
    """The operations and the weights of the chains of a batch."""

    kinds: tf.Tensor  # of each layer's table, int32 `(n, chains, layers)`
    tables: tf.Tensor  # the given ones, int32 `(n, chains, layers, 256)`
    matrices: tf.Tensor  # the geometry of each chain, from output to input, float64 `(n, chains, 3, 3)`
    weights: tf.Tensor
    """Of the image itself and of each chain's result: float32 `(n, 1 + chains)`, or for each channel `(n, 1 + chains, channels)`; whole
    numbers that sum to 2 to the power of `BITS` in `ops/lowering/filters.py`."""


class ChainsTransform(NeighbourhoodTransform):
    """A blend of images of bytes with the results of chains: tables, layer by layer, and then geometry as one resampling.

    The tables of a chain fold into one, bit for bit, since the histogram after a table follows from the one before it. Subclasses define
    the chains in `drawn_chains`.
    """

    on_bytes = True

    geometry: bool | None = None
    """Whether the operations include geometry. By default they do, unless a mask, boxes or points are aligned with the image: these cannot
    follow several chains at once."""
    fill: Fill = "reflect"
    """What lies outside the image: `reflect`, `nearest`, `wrap` or `{constant: VALUE}`."""
    interpolation: Interpolation = "bilinear"
    """How a position between pixels is read."""

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        """The chains for draws `u`, float64 `(n, num_draws)`, and images of this height and width in pixels, float64 scalars."""
        raise NotImplementedError

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return self.drawn_chains(u, tf.cast(height, tf.float64), tf.cast(width, tf.float64))

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> BlendChains:
        return BlendChains(feature, ref, self.clip_of(x), self.starts_kernel)


class EnlargingTransform(ChainsTransform):
    """A blend of an image with enlargements about its centre. Objects stay in place, so masks and boxes do, too."""

    geometry: ClassVar[bool] = True  # type: ignore[misc]  # takes the argument away

    def enlarged(self, scale: tf.Tensor, weights: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        """The chains that read pixels at `scale` times their distance from the centre, float64 `(n, chains)`."""
        matrices = about_centre(((scale, 0.0), (0.0, scale)), scale, height, width)
        kinds = tf.fill(tf.shape(scale[..., None]), PLAIN)
        kinds.set_shape([*scale.shape, 1])
        return Chains(kinds, tf.range(256) + tf.zeros_like(kinds)[..., None], matrices, weights)


@dataclass(frozen=True, slots=True)
class BlendChains(Neighbourhood):
    """Blends images with the results of chains of tables and geometry."""
