"""Put images on larger canvases, at random places."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import ANY_IMAGE, Example
from pipegen.ops.families.padding import PaddedWindow
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import pick, place
from pipegen.types import FeatureType


class RandomZoomOut(PaddedWindow):
    """Puts an image at a random place of a larger canvas: the expansion that SSD is trained with (Liu et al. 2016).

    The canvas is as many times as high and as wide as the image as is drawn uniformly from `canvas`, rounded down; each place at which
    the image lies wholly on it is equally likely. Pixels are copied. Images leave it with different sizes, so that a step that makes
    them one size comes behind it, and nothing stands in for it on the other splits.
    """

    op = "random_zoom_out"
    random = True
    handles_probability = True
    examples = (
        Example("random_zoom_out", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
        Example("random_zoom_out: {canvas: [1, 2], fill: {constant: 114}, probability: 1}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    canvas: Annotated[Span, checked(check_pair), checked(check_range, 1, 100)] = (1.0, 4.0)
    """The range of the canvas's height and width, as a factor of the image's."""
    probability: Probability = 0.5
    """The share of examples that the step changes."""

    def output_size(self) -> tuple[int | None, int | None]:
        return None, None

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return x if self.idle() else y

    def idle(self) -> bool:
        return super().idle() or span_range(self.canvas) == (1, 1)

    def is_identity(self, x: FeatureType) -> bool:
        return self.idle()

    def num_draws(self) -> int:
        return 4

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`canvas`, which is 1 for an image that stays as it is."""
        return {"canvas": tf.where(u[..., 3] < self.probability, uniform(u[..., 0], span_range(self.canvas)), tf.ones_like(u[..., 0]))}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`canvas`, and the window, which lies beyond the image."""
        return self.drawn(u) | super().drawn_on(u, shape)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        factor = self.drawn(u)["canvas"]
        rows, columns = (tf.cast(tf.floor(tf.cast(side, tf.float64) * factor), tf.int32) for side in (height, width))
        return place(-pick(u[..., 1], rows - height), -pick(u[..., 2], columns - width), rows, columns, u)
