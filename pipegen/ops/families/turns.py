"""Steps that swap the axes of an image: quarter turns and transpositions."""

from __future__ import annotations

from pipegen.errors import OpError
from pipegen.ops.arguments.reach import Reach
from pipegen.ops.base import GeometricTransform
from pipegen.ops.inputs import require_image
from pipegen.ops.traits import Family, Traits
from pipegen.types import FeatureType, times


class TurnTransform(GeometricTransform):
    """A geometric step that copies pixels: it mirrors the axes and may swap them."""

    def swaps(self) -> bool:
        """Returns whether it swaps the axes of an example, or may."""
        return True

    def reach(self) -> Reach:
        return Reach(shift=1.0)  # the centre of an output that lies across is another one

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, moves_pixels_only=True, turns=True, mirrors=not self.swaps())

    def infer(self, x: FeatureType) -> FeatureType:
        """The sides swap. A size that is not known, or one that only some examples would have, is an error."""
        require_image(self, x)
        y = super().infer(x)
        if not self.swaps() or (x.height == x.width is not None):
            return y
        if (x.height is None or x.width is None) and x.uniform:
            return y  # it will be known once the data is there
        if x.height is None or x.width is None:
            message = f"`{self.op}` swaps height and width, and here they differ from image to image"
            raise OpError("PG255", message, help=f"move `{self.op}` behind the step that gives the images one size, such as `resize`")
        if self.random:
            message = f"`{self.op}` makes some images {times((x.width, x.height))}, and leaves others {times(x.shape[:2])}"
            raise OpError("PG255", message, help="resize or crop to a square before it, or use `random_flip: {axis: both}`")
        return y.with_(shape=(x.width, x.height, *x.shape[2:]))
