"""Change the dtype of values."""

from __future__ import annotations

from typing import Literal

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.base import PointwiseTransform, require_image
from pipegen.ops.traits import IMAGE_224, Example
from pipegen.types import BYTE_RANGE, FeatureType, Interval

FLOAT_224 = FeatureType("image", "float32", (224, 224, 3), Interval(0, 255))


class Cast(PointwiseTransform):
    """Changes the dtype and leaves the values as they are: nothing is scaled.

    To uint8, values are rounded half to even and clipped to 0..255. `output: {dtype}` sets the dtype that the model receives; this step is
    for the steps before that.
    """

    op = "cast"
    examples = (
        Example("cast: {dtype: float32}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("cast: {dtype: uint8}", FLOAT_224, "uint8[224×224×3] in [0, 255]"),
    )

    dtype: Literal["uint8", "float16", "bfloat16", "float32"]
    """The dtype of the output."""

    def arithmetic(self, x: FeatureType) -> Arithmetic:
        return Arithmetic((1.0,), (0.0,), self.dtype)

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        lossy = x.interval is not None and (not BYTE_RANGE.contains(x.interval, slack=0.5) or x.interval.high <= 1)
        if self.dtype == "uint8" and x.dtype != "uint8" and lossy:
            raise OpError(
                "PG208",
                f"`cast` to uint8 keeps whole numbers from 0 to 255, but the values are in {x.interval}",
                field="dtype",
                help=write("rescale: {to: [0, 255]}", "before", "put {} before it"),
            )
        return super().infer(x)
