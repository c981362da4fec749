"""`random_morphology`: dark or bright strokes grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import as_pair, check_range, checked
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering import filters
from pipegen.ops.lowering.windows import whole_between
from pipegen.ops.traits import same_type

Reach = Annotated[int, Field(ge=0, le=4)]


class RandomMorphology(NeighbourhoodTransform):
    """Replaces each value by the least (erosion) or the greatest (dilation) of the square around it, whose reach is drawn.

    It is OpenCV's `erode` and `dilate` with a square of ones, bit for bit: erosion makes dark strokes grow, dilation bright ones.
    """

    op = "random_morphology"
    random = True
    symmetric = True
    draws = 2
    pairs = frozenset({"reach"})
    examples = same_type("random_morphology: {reach: [1, 2]}", "random_morphology: {reach: [0, 3], probability: 0.5}")

    reach: Annotated[Reach | tuple[Reach, Reach], checked(check_range)] = (0, 1)
    """The pixels that the square reaches to each side, at most 4; a pair is the range, both ends included."""
    operation: Literal["erosion", "dilation", "either"] = "either"
    """The operation; `either` draws one of the two for each image."""

    def idle(self) -> bool:
        return super().idle() or as_pair(self.reach)[1] == 0

    def weight(self) -> float:
        return 0.2 + 0.2 * as_pair(self.reach)[1]

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"reach": whole_between(u[..., 0], as_pair(self.reach)), "operation": tf.where(self._dilates(u), "dilation", "erosion")}

    def _dilates(self, u: tf.Tensor) -> tf.Tensor:
        return u[..., 1] < {"erosion": 0.0, "dilation": 1.0, "either": 0.5}[self.operation]

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return whole_between(u[..., 0], as_pair(self.reach)), self._dilates(u)  # XLA has no text, which `drawn` holds

    def phases(self) -> tuple[filters.Phase, ...]:
        most = as_pair(self.reach)[1]

        def down(images: tf.Tensor, wide: tf.Tensor, reach: tf.Tensor, dilates: tf.Tensor) -> tuple[tf.Tensor, ...]:
            height, _, _ = filters.sides(images)
            return self._extreme(lambda i: wide[:, most + i : most + i + height], reach, dilates), reach, dilates

        def across(images: tf.Tensor, lines: tf.Tensor, reach: tf.Tensor, dilates: tf.Tensor) -> tuple[tf.Tensor, ...]:
            _, width, channels = filters.sides(images)
            return (self._extreme(lambda i: lines[:, :, (most + i) * channels : (most + i + width) * channels], reach, dilates),)

        return filters.bordered(most, "nearest"), down, across

    def _extreme(self, at: Callable[[int], tf.Tensor], reach: tf.Tensor, dilates: tf.Tensor) -> tf.Tensor:
        """The least or the greatest of the values up to `reach` before and behind each place."""
        least = most = at(0)
        which = dilates[:, None, None]
        for distance in range(1, as_pair(self.reach)[1] + 1):
            reaches = (reach >= distance)[:, None, None]
            before, behind = at(-distance), at(distance)
            least = tf.where(reaches, tf.minimum(least, tf.minimum(before, behind)), least)
            most = tf.where(reaches, tf.maximum(most, tf.maximum(before, behind)), most)
        return tf.where(which, most, least)
