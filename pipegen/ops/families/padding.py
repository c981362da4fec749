"""The family of windows that can lie beyond the image: pads, padded crops and enlarged canvases. Pixels are copied, never blended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.ops.arguments.fills import ConstantFill, Fill, filled
from pipegen.ops.base import CropTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.windows import cut

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.ops.arguments.reach import Reach
    from pipegen.ops.traits import Traits
    from pipegen.ops.transform import Transform
    from pipegen.types import FeatureType


class PaddedWindow(CropTransform):
    """A window that can lie beyond the image, where `fill` shows; a mask shows its `ignore` where a constant does."""

    fill: Fill = ConstantFill()
    """What is put around the image: `{constant: VALUE}` in the units of the image that enters, `reflect`, `nearest` or `wrap`."""

    def pads(self) -> bool:
        """Returns whether the window can lie beyond the image."""
        return True

    def room(self, x: FeatureType) -> tuple[int | None, int | None]:
        return (None, None) if self.pads() else super().room(x)

    def reach(self) -> Reach | None:
        return None if self.pads() else super().reach()

    def is_identity(self, x: FeatureType) -> bool:
        return not self.pads() and super().is_identity(x)

    def traits(self, x: FeatureType) -> Traits:
        traits = super().traits(x)
        return replace(traits, pads=True, moves_pixels_only=not isinstance(self.fill, ConstantFill)) if self.pads() else traits

    def infer(self, x: FeatureType) -> FeatureType:
        """The output size; a constant fill widens the interval."""
        y = super().infer(x)
        return filled(y, self.fill) if self.pads() else y

    def on(self, x: FeatureType) -> Transform:
        if not kind_of(x).categorical or not isinstance(self.fill, ConstantFill):
            return self
        return self.model_copy(update={"fill": ConstantFill(constant=x.ignore)})

    def cut(self, image: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
        return cut(image, window, self.fill if self.pads() else None)
