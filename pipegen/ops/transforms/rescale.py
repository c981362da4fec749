"""`rescale` and `cast`: scale and shift values, and change their dtype."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.ops.arguments.arithmetic import Arithmetic
from pipegen.ops.arguments.magnitudes import Number, Range, check_range, checked
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.step_bases import PointwiseTransform, require_image
from pipegen.ops.traits import FLOAT_224, IMAGE_224, Example
from pipegen.types import BYTE_RANGE, FeatureType, Interval


def _differ(value: tuple[float, float], name: str) -> None:
    if value[0] == value[1]:
        raise ValueError(f"`{name}` needs two different values, got {value[0]:g} twice")


def _scales(value: float, name: str) -> None:
    if value == 0:
        raise ValueError(f"`{name}: 0` makes every pixel the same")


class Rescale(PointwiseTransform):
    """Maps values linearly, to a range or by a factor, and gives float32.

    `to: [0, 1]` maps the range of possible values, which pipegen knows, to the given one, so it works for 8 and for 16 bits. `scale` and
    `offset` compute y = scale · x + offset. (In YAML `1/255` is text; write 0.00392156862745098, or better `to: [0, 1]`.)
    """

    op = "rescale"
    examples = (
        Example("rescale: {to: [0, 1]}", IMAGE_224, "float32[224×224×3] in [0, 1]"),
        Example("rescale: {to: [-1, 1]}", IMAGE_224, "float32[224×224×3] in [-1, 1]"),
        Example("rescale: {scale: 0.5, offset: -10}", IMAGE_224, "float32[224×224×3] in [-10, 117.5]"),
    )

    to: Annotated[Range | None, checked(check_range), checked(_differ)] = None
    """The range `[low, high]` that the whole range of the incoming values is mapped to."""
    scale: Annotated[Number | None, checked(_scales)] = None
    """The factor; 1 when only `offset` is given."""
    offset: Number | None = None
    """What is added after scaling; 0 when only `scale` is given."""

    @model_validator(mode="after")
    def _one_form(self) -> Rescale:
        linear = self.scale is not None or self.offset is not None
        if (self.to is not None) == linear:
            raise ValueError("give either `to`, or `scale` and `offset`")
        return self

    def meaning(self) -> dict[str, Any]:
        values = super().meaning()
        return values if self.to is not None else {**values, "scale": values["scale"] or 1.0, "offset": values["offset"] or 0.0}

    def arithmetic(self, x: FeatureType) -> Arithmetic:
        if self.to is not None:
            if x.interval is None or x.interval.width == 0:
                message = "`rescale: {to}` needs the range of the incoming values, which is not known here"
                raise OpError("PG105", message, field="to", help="give `scale` and `offset` instead")
            scale = (self.to[1] - self.to[0]) / x.interval.width
            return Arithmetic((scale,), (self.to[0] - x.interval.low * scale,), "float32")
        scale = 1.0 if self.scale is None else self.scale
        return Arithmetic((scale,), (self.offset or 0.0,), "float32")

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        pixels = kind_of(x).pixels is not None
        if pixels and x.interval is not None and x.interval.high <= 1 and self.scale is not None and abs(self.scale) <= 1 / 64:
            message = f"`rescale` multiplies by {self.scale:.4g}, which is meant for 0..255, but the values are already in {x.interval}"
            raise OpError("PG213", message, field="scale", help="leave this step out")
        y = super().infer(x)
        # The exact range, without the rounding of `scale`.
        return y.with_(interval=Interval(*self.to)) if self.to is not None else y


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
        of_bytes = x.interval is not None and BYTE_RANGE.contains(x.interval, slack=0.5) and x.interval.high > 1
        lossy = not of_bytes and (x.interval is not None or kind_of(x).samples is not None)
        if self.dtype == "uint8" and x.dtype != "uint8" and lossy:
            given = f"the values are in {x.interval}" if x.interval is not None else f"{kind_of(x).plural} are fractions"
            message = f"`cast` to uint8 keeps whole numbers from 0 to 255, but {given}"
            raise OpError("PG208", message, field="dtype", help=write("rescale: {to: [0, 255]}", "before", "put {} before it"))
        return super().infer(x)
