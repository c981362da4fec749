"""Steps that blend an image with what several chains of operations make of it; and their stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Fill, Interpolation
from pipegen.ops.families.neighbourhood import Neighbourhood, NeighbourhoodTransform
from pipegen.ops.kinds.base import FeatureKind
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import StepRef
from pipegen.types import FeatureType

PLAIN, STRETCH, SPREAD = range(3)
"""What the table of a layer is: one that is given, or auto-contrast or equalization of what enters the layer."""


class Chains(NamedTuple):
    """Holds what the chains of a batch do, and how much each counts.

    Attributes:
        kinds: What the table of each layer is, int32 `(n, chains, layers)`.
        tables: The tables that are given, int32 `(n, chains, layers, 256)`.
        matrices: The geometry of each chain, from output to input: float64 `(n, chains, 3, 3)`.
        weights: How much the image itself and what each chain makes of it counts: float32 `(n, 1 + chains)`, or for each channel
            `(n, 1 + chains, channels)`; whole numbers that sum to 2 to the power of `BITS` in `ops/lowering/filters.py`.
    """

    kinds: tf.Tensor
    tables: tf.Tensor
    matrices: tf.Tensor
    weights: tf.Tensor


class ChainsTransform(NeighbourhoodTransform):
    """A blend of images of bytes with what chains make of them: tables, layer by layer, and then geometry as one resampling.

    The tables of a chain fold to one, bit for bit, since the histogram behind a table follows from the one before it. Whoever subclasses
    it says what the chains are, in `chain_draws`.
    """

    on_bytes = True

    geometry: bool = True
    """Whether the operations move pixels, too. A mask cannot follow several chains at once, so that beside one this has to be `false`."""
    fill: Fill = "reflect"
    """What lies outside the image: `reflect`, `nearest`, `wrap` or `{constant: VALUE}`."""
    interpolation: Interpolation = "bilinear"
    """How a position between pixels is read."""

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        """Returns whether it has to say something about a kind: about what is moved with an image, that it cannot be."""
        return kind.aligns

    def reaches(self, x: FeatureType) -> bool:
        return self.geometry

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 of any value."""
        if not kind_of(x).levels:
            message = f"`{self.op}` moves the pixels of an image several ways at once, and what is aligned with it cannot follow"
            raise OpError("PG203", message, help="`geometry: false` leaves out the operations that move pixels")
        return super().infer(x)

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        """Returns what the draws say, float64 `(n, num_draws)`, for images of this height and width in pixels, float64 scalars."""
        raise NotImplementedError

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return self.drawn_chains(u, tf.cast(height, tf.float64), tf.cast(width, tf.float64))

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> BlendChains:
        return BlendChains(feature, ref, self.clip_of(x), self.starts_kernel)


@dataclass(frozen=True, slots=True)
class BlendChains(Neighbourhood):
    """Blends images with what chains of tables and geometry make of them."""
