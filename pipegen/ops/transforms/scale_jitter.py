"""Resize images by a random factor, and cut or pad them to one size."""

from __future__ import annotations

import math
from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.fills import ConstantFill, filled
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.base import ANY_IMAGE, Example, Transform
from pipegen.ops.families.resizing import RandomResize
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import Box, Sides, cut, pick, place
from pipegen.types import LARGEST_SIDE, FeatureType


class ScaleJitter(RandomResize):
    """Resizes an image by a random factor, then cuts a window of fixed size out of it or fills up what is missing: large-scale
    jittering (Ghiasi et al., Simple Copy-Paste, CVPR 2021).

    At a `scale` of 1 the image just fits inside `size`; the factor is drawn uniformly, the proportions stay, and sides are rounded half
    up. Where the image is then larger than the output, the window is placed uniformly; where it is smaller, it lies at the top left and
    `fill` shows below it and on its right. It is `ScaleJitter` and `FixedSizeCrop` of torchvision's references, which draw one number
    for the window's row and column.

    On the other splits `resize: {mode: pad}` to the same size stands in for it.
    """

    op = "scale_jitter"
    examples = (
        Example("scale_jitter: {size: 640}", ANY_IMAGE, "uint8[640×640×3] in [0, 255]"),
        Example(
            "scale_jitter: {size: [384, 512], scale: [0.8, 1.25], antialias: true, fill: {constant: 114}}",
            ANY_IMAGE,
            "uint8[384×512×3] in [0, 255]",
        ),
    )

    size: Size
    """The output's size in pixels: a square's side, or [height, width]."""
    scale: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 10)] = (0.1, 2.0)
    """The range of the factor on the largest size that fits inside the output: 2 shows a quarter of such an image."""
    fill: ConstantFill = ConstantFill()
    """What is put where the image ends, in the units of the image that enters: `{constant: VALUE}`."""

    def infer(self, x: FeatureType) -> FeatureType:
        return filled(super().infer(x).with_(shape=(*height_width(self.size), x.channels)), self.fill)

    def on(self, x: FeatureType) -> Transform:
        step = super().on(x)
        return step.model_copy(update={"fill": ConstantFill(constant=x.ignore)}) if kind_of(x).categorical else step

    def needed_size(self) -> tuple[int, int] | None:
        height, width = (min(math.ceil(side * span_range(self.scale)[1]), LARGEST_SIDE) for side in height_width(self.size))
        return height, width

    def num_draws(self) -> int:
        return 3

    def evaluation_form(self) -> tuple[Transform, ...]:
        from pipegen.ops.transforms.resize import Resize

        method, antialias, feature = self.method, self.antialias, self.feature
        return (Resize(size=self.size, mode="pad", method=method, antialias=antialias, fill=self.fill, feature=feature),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"scale": uniform(u[..., 0], span_range(self.scale))}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`scale`, the size that the image is resized to, `rows` and `columns`, and of the window in it `top` and `left`, in pixels."""
        (rows, columns), window = self._placed(u, tf.convert_to_tensor(shape[0]), tf.convert_to_tensor(shape[1]))
        return self.drawn(u) | {"rows": rows, "columns": columns, "top": window[..., 0], "left": window[..., 1]}

    def _placed(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Sides, tf.Tensor]:
        """The size that images are resized to, int32 `(...)` each, and the window in them, int32 `(..., 4)`."""
        size = height_width(self.size)
        before = [tf.cast(side, tf.float64) for side in (height, width)]
        factor = self.drawn(u)["scale"] * tf.minimum(size[0] / before[0], size[1] / before[1])
        rows, columns = (tf.maximum(tf.cast(tf.floor(side * factor + 0.5), tf.int32), 1) for side in before)
        top, left = (pick(u[..., i + 1], tf.maximum(side - size[i], 0)) for i, side in enumerate((rows, columns)))
        return (rows, columns), place(top, left, *size, u)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(image)
        (rows, columns), window = self._placed(u, shape[0], shape[1])
        y = cut(self.resized(image, rows, columns), window, self.fill)
        y.set_shape([*height_width(self.size), image.shape[-1]])
        return y

    def shown(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[Box, Sides]:
        size = height_width(self.size)
        (rows, columns), window = self._placed(u, height, width)
        down, across = (tf.cast(side, tf.float64) / tf.cast(n, tf.float64) for side, n in ((height, rows), (width, columns)))
        top, left = (tf.cast(window[..., i], tf.float64) for i in (0, 1))
        return (top * down, left * across, size[0] * down, size[1] * across), size
