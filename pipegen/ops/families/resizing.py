"""The family of steps that resize single images to a size that they draw, and keep the proportions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import model_validator

from pipegen.ops.base import ElementTransform, require_image
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.resizing import ANTIALIAS_WEIGHT, BLURS_WITH_ANTIALIAS, OVERSHOOTS, Method, resize
from pipegen.ops.traits import Family, Traits
from pipegen.types import INTEGER_RANGES, FeatureType

if TYPE_CHECKING:
    import tensorflow as tf
    from typing_extensions import Self

    from pipegen.ops.lowering.resizing import Side
    from pipegen.ops.transform import Transform


class RandomResize(ElementTransform):
    """Resizes each image to a size of its own."""

    random = True
    moves: ClassVar[bool] = True
    only_sizes: ClassVar[bool] = True

    method: Method = "bilinear"
    """How pixels are weighted: `nearest`, `bilinear`, `bicubic`, `area` or `lanczos3`."""
    antialias: bool = False
    """Let every input pixel count when shrinking; for `bilinear`, `bicubic` and `lanczos3`."""

    @model_validator(mode="after")
    def _blurs(self) -> Self:
        if self.antialias and self.method not in BLURS_WITH_ANTIALIAS:
            raise ValueError(f"`antialias` has no effect with `method: {self.method}`; it is for bilinear, bicubic and lanczos3")
        return self

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, resizes=True, weight=ANTIALIAS_WEIGHT if self.antialias else 1.0)

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        interval = INTEGER_RANGES.get(x.dtype) if x.interval is not None and self.method in OVERSHOOTS else x.interval
        return x.with_(shape=(None, None, x.channels), interval=interval)

    def on(self, x: FeatureType) -> Transform:
        return self.model_copy(update={"method": "nearest", "antialias": False}) if kind_of(x).categorical else self

    def resized(self, image: tf.Tensor, height: Side, width: Side) -> tf.Tensor:
        """One image at another size, in pixels."""
        return resize(image, height, width, self.method, antialias=self.antialias)
