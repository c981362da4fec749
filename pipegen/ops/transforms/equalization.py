"""`equalization`, `clahe` and their random forms."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, as_pair, most, within
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.colours import equalized
from pipegen.ops.lowering.filters import Phase, sides
from pipegen.ops.lowering.statistics import blended, corners, luma, tile_counts, tile_sides, tile_tables
from pipegen.ops.step_bases import AmountTransform, FixedTransform, OccasionalTransform, UnconditionalTransform, UniformTransform
from pipegen.ops.traits import same_type
from pipegen.types import FeatureType

LARGEST = 255.0  # the largest limit; one of 256 leaves every count as it is
Count = Annotated[int, Field(ge=1, le=32)]


class AdaptiveEqualizationTransform(AmountTransform, NeighbourhoodTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast."""

    pairs = frozenset({"tiles"})
    on_bytes = True

    tiles: Count | tuple[Count, Count] = 8
    """How many rows and columns of tiles there are, at most 32; a pair is `[rows, columns]`."""
    channel: Literal["luma", "each"] = "luma"
    """What is equalised: the `luma`, whose change is added to each channel and clipped, or `each` channel by itself."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        if self.channel == "luma" and x.channels not in (1, 3):
            message = f"`{self.op}` takes the luma of 1 or 3 channels, and gets {x.channels}"
            raise OpError("PG205", message, help="`channel: each` takes any number of channels")
        return y

    def weight(self) -> float:
        return 1.4 if self.channel == "luma" else 3.3

    def idle(self) -> bool:
        return most(self.probability) == 0  # a limit of 0 limits nothing

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (self.amounts(u)["limit"],)

    def phases(self) -> tuple[Phase, ...]:
        return self._plane, self._counts, self._tables, self._quads, self._blend

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        plane, level = given
        if self.channel == "each" or images.shape[-1] == 1:
            return tf.cast(level, tf.uint8)
        change = tf.cast(level, tf.int32) - tf.cast(plane, tf.int32)
        return tf.cast(tf.clip_by_value(tf.cast(images, tf.int32) + change, 0, 255), tf.uint8)

    def _plane(self, images: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (luma(images) if self.channel == "luma" else images), limit

    def _counts(self, images: tf.Tensor, plane: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, tile_counts(plane, as_pair(self.tiles)), limit

    def _tables(self, images: tf.Tensor, plane: tf.Tensor, counts: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        down, across = tile_sides(height, width, as_pair(self.tiles))
        return plane, tile_tables(counts, limit, down * across)

    def _quads(self, images: tf.Tensor, plane: tf.Tensor, tables: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, corners(tables)

    def _blend(self, images: tf.Tensor, plane: tf.Tensor, quads: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, tf.cast(blended(plane, quads, as_pair(self.tiles)), tf.uint8)


class EqualizationTransform(LookupTableTransform):
    """The table that spreads the values of each channel evenly."""

    needs_histogram = True

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return equalized(histogram)


class Equalization(UnconditionalTransform, EqualizationTransform):
    """Spreads the values of each channel evenly: afterwards each range of values has about as many pixels.

    It is Pillow's `equalize`, bit for bit. With s = (pixels - pixels of the greatest value) // 255, x becomes
    (s // 2 + pixels below x) // s, at most 255. A channel with s = 0, such as one of a single value, stays as it is.
    """

    op = "equalization"
    examples = same_type("equalization")


class RandomEqualization(OccasionalTransform, EqualizationTransform):
    """Spreads the values of each channel of a share of the images evenly: afterwards each range of values has about as many pixels.

    It is Pillow's `equalize`, bit for bit. With s = (pixels - pixels of the greatest value) // 255, x becomes
    (s // 2 + pixels below x) // s, at most 255. A channel with s = 0, such as one of a single value, stays as it is.
    """

    op = "random_equalization"
    examples = same_type("random_equalization", "random_equalization: {probability: 0.2}")


class Clahe(FixedTransform, AdaptiveEqualizationTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast: CLAHE (Zuiderveld 1994).

    It is OpenCV's `createCLAHE`, within one level: counts above `limit` times the mean count of a tile are spread over all values, and
    a pixel is read through the tables of the four tiles around it, blended. Floats from 0 to 255 are rounded first.
    """

    op = "clahe"
    examples = same_type("clahe: {limit: 2}", "clahe: {limit: 4, tiles: [6, 10], channel: each}")

    limit: Annotated[float, Field(ge=0, le=LARGEST)] = 2.0
    """How many times the mean count a value may have in a tile, at most 255: 1 changes little, 40 hardly limits, 0 is no limit."""


class RandomClahe(UniformTransform, AdaptiveEqualizationTransform):
    """Equalises the histogram of each tile of an image, with a limit to the contrast that is drawn uniformly: CLAHE (Zuiderveld 1994).

    It is OpenCV's `createCLAHE`, within one level: counts above the limit are spread over all values, and a pixel is read through the
    tables of the four tiles around it, blended. Floats from 0 to 255 are rounded first.
    """

    op = "random_clahe"
    examples = same_type("random_clahe: {limit: [1, 4]}", "random_clahe: {limit: [2, 2], tiles: 4, probability: 0.5}")

    limit: Annotated[Span, within(0, LARGEST)] = (1.0, 4.0)
    """The range of how many times the mean count a value may have in a tile, at most 255: 1 changes little, 0 is no limit."""
