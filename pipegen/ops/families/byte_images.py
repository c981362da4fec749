"""Random steps on images of bytes, in whole numbers, so that they are the same bit for bit everywhere."""

from __future__ import annotations

from typing import ClassVar

from pipegen.errors import OpError
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.uniform import UniformTransform
from pipegen.types import FeatureType


class ByteTransform(UniformTransform, NeighbourhoodTransform):
    """A function of images of bytes, with a number drawn for each of its magnitudes."""

    on_bytes: ClassVar[bool] = True


class RgbTransform(ByteTransform):
    """One that needs red, green and blue."""

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8; it needs three channels."""
        y = super().infer(x)
        if x.channels != 3:
            raise OpError("PG205", f"`{self.op}` needs 3 channels, and gets {x.channels}")
        return y
