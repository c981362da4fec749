"""`normalize`: values as a model expects them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.ops.arguments.arithmetic import Arithmetic, Preset, constants, needs_three_channels
from pipegen.ops.arguments.magnitudes import Number, checked
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.step_bases import PointwiseTransform, centred_values, is_standardised, require_image
from pipegen.ops.traits import IMAGE_224, UNIT_224, Example
from pipegen.types import FeatureType

PerChannel = Number | Annotated[tuple[Number, ...], Field(min_length=1)]


def _above_zero(value: float | tuple[float, ...], name: str) -> None:
    if any(v <= 0 for v in _tuple(value, 1.0)):
        raise ValueError(f"`{name}` must be above 0, since values are divided by it")


class Normalize(PointwiseTransform):
    """Standardises values: y = (x - mean) / std for each channel, as float32; or as a pretrained model expects.

    `preset` names a module of `keras.applications` (`resnet50`, `mobilenet_v2`, …) or one of Keras' modes, and takes
    values from 0 to 255:

    - `tf`: x / 127.5 - 1.
    - `torch`: (x / 255 - mean) / std with the mean (0.485, 0.456, 0.406) and std (0.229, 0.224, 0.225) of ImageNet.
    - `caffe`: to BGR, minus the mean (103.939, 116.779, 123.68).

    `convnext`, `efficientnet`, `efficientnet_v2` and `mobilenet_v3` change only the dtype: these models contain the
    arithmetic. `mean` and `std` are in the units of the incoming values: for 0..255 write
    `mean: [123.7, 116.3, 103.5]`, for 0..1 `mean: [0.485, 0.456, 0.406]`.
    """

    op = "normalize"
    examples = (
        Example("normalize: {preset: mobilenet_v2}", IMAGE_224, "float32[224×224×3] in [-1, 1]"),
        Example("normalize: {preset: resnet50}", IMAGE_224, "float32[224×224×3] in [-123.68, 151.061]"),
        Example("normalize: {mean: 0.5, std: 0.25}", UNIT_224, "float32[224×224×3] in [-2, 2]"),
    )

    preset: Preset | None = None
    """The module of `keras.applications` that the model is from, or the mode `tf`, `torch` or `caffe`."""
    mean: PerChannel | None = None
    """What is subtracted, in the units of the incoming values: a number, or one for each channel; 0 by default."""
    std: Annotated[PerChannel | None, checked(_above_zero)] = None
    """The divisor, in the units of the incoming values: a number, or one for each channel; 1 by default."""

    @model_validator(mode="after")
    def _one_form(self) -> Normalize:
        moments = self.mean is not None or self.std is not None
        if (self.preset is not None) == moments:
            raise ValueError("give either `preset`, or `mean` and `std`")
        lengths = {len(v) for v in (self.mean, self.std) if isinstance(v, tuple)}
        if len(lengths) > 1:
            raise ValueError(f"`mean` and `std` list {' and '.join(map(str, sorted(lengths)))} channels")
        return self

    def meaning(self) -> dict[str, Any]:
        values = super().meaning()
        if self.preset is not None:
            return values
        return {**values, "mean": list(_tuple(self.mean, 0.0)), "std": list(_tuple(self.std, 1.0))}

    def arithmetic(self, x: FeatureType) -> Arithmetic:
        if self.preset is not None:
            scale, offset, order = constants(self.preset)
            return Arithmetic(scale, offset, "float32", order)
        mean, std = _tuple(self.mean, 0.0), _tuple(self.std, 1.0)
        n = max(len(mean), len(std))
        mean, std = (v * n if len(v) == 1 else v for v in (mean, std))
        return Arithmetic(tuple(1 / s for s in std), tuple(-m / s for m, s in zip(mean, std, strict=True)), "float32")

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        preset = f"`normalize: {{preset: {self.preset}}}`"
        if self.preset is not None and kind_of(x).pixels is None:
            raise OpError("PG203", f"{preset} is for images, and gets {kind_of(x).plural}", field="preset", help="give `mean` and `std`")
        if self.preset is not None and needs_three_channels(self.preset) and x.channels != 3:
            raise OpError("PG205", f"{preset} needs 3 channels, and gets {x.channels}", field="preset")
        for name, value in (("mean", self.mean), ("std", self.std)):
            if isinstance(value, tuple) and len(value) not in (1, x.shape[-1]):
                what = "the image has" if kind_of(x).pixels is not None else f"the {kind_of(x).plural} have"
                raise OpError("PG205", f"`{name}` lists {len(value)} channels, but {what} {x.shape[-1]}", field=name)
        if self.preset is not None and is_standardised(x):
            raise OpError(
                "PG213", f"{preset} expects values in 0..255, but gets {centred_values(x)}", field="preset", help="normalise once"
            )
        if self.preset is not None and x.interval is not None and x.interval.high <= 1:
            help_: str = "give it those, without a `rescale` before it; the preset scales by itself"
            raise OpError("PG213", f"{preset} expects values in 0..255, but gets {x.interval}", field="preset", help=help_)
        if self.preset is None and kind_of(x).pixels is not None and x.interval is not None and x.interval.low == 0:
            mean, std, most = max(_tuple(self.mean, 0.0)), max(_tuple(self.std, 1.0)), x.interval.high
            if most > 2 and 0 < mean <= 1 and std < 1:
                said = "`mean` and `std` are in the units of the values: put {} before, or multiply both by 255"
                help_ = write("rescale: {to: [0, 1]}", "before", said)
                message = f"`mean` and `std` are those of values in 0..1, but the values are in {x.interval}"
                raise OpError("PG213", message, field="mean", help=help_)
            if most <= 1 and mean > 2:
                help_ = "`mean` and `std` are in the units of the values: leave out the `rescale` before, or divide both by 255"
                raise OpError("PG213", f"`mean` is that of values in 0..255, but the values are in {x.interval}", field="mean", help=help_)
        return super().infer(x)


def _tuple(value: float | tuple[float, ...] | None, default: float) -> tuple[float, ...]:
    if value is None:
        return (default,)
    return value if isinstance(value, tuple) else (value,)
