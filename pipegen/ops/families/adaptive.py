"""Adaptive equalisation: what the random and the deterministic form share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.clahe import blended, corners, luma, tile_counts, tile_sides, tile_tables
from pipegen.ops.lowering.filters import sides
from pipegen.types import FeatureType

MOST_TILES = 32
LARGEST = 255.0
"""The largest limit; one of 256 leaves every count as it is."""
Count = Annotated[int, Field(ge=1, le=MOST_TILES)]


class AdaptiveEqualizationTransform(NeighbourhoodTransform):
    """Spreads the values of each tile of an image evenly, with a limit to how steep that may be."""

    on_bytes = True

    tiles: Count | tuple[Count, Count] = 8
    """How many rows and columns of tiles there are, at most 32; a pair is `[rows, columns]`."""
    channel: Literal["luma", "each"] = "luma"
    """What is equalised: the `luma` of colours, whose change is added to each channel and clipped, or `each` channel by itself."""

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 of any value."""
        y = super().infer(x)
        if self.channel == "luma" and x.channels not in (1, 3):
            raise OpError(
                "PG205",
                f"`{self.op}` takes the luma of 1 or 3 channels, and gets {x.channels}",
                help="`channel: each` takes any number of channels",
            )
        return y

    def weight(self) -> float:
        return 1.4 if self.channel == "luma" else 3.3

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"tiles": list(self._tiles())}

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
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
        return plane, tile_counts(plane, self._tiles()), limit

    def _tables(self, images: tf.Tensor, plane: tf.Tensor, counts: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        down, across = tile_sides(height, width, self._tiles())
        return plane, tile_tables(counts, limit, down * across)

    def _quads(self, images: tf.Tensor, plane: tf.Tensor, tables: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, corners(tables)

    def _blend(self, images: tf.Tensor, plane: tf.Tensor, quads: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return plane, tf.cast(blended(plane, quads, self._tiles()), tf.uint8)

    def _tiles(self) -> tuple[int, int]:
        return self.tiles if isinstance(self.tiles, tuple) else (self.tiles, self.tiles)
