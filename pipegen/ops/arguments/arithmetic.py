"""Element-wise arithmetic as a value, and the input arithmetic of the models of `keras.applications`."""

from __future__ import annotations

from functools import reduce
from typing import Literal, get_args

from pipegen.frozen import dataclass
from pipegen.types import BYTE_RANGE, FeatureType, Interval


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Element-wise arithmetic on the last axis: a `scale` and then an `offset` for each output channel, or a single one for all; the
    `order`, the input channel of each output channel, empty for the same; and the output's dtype: an integer rounds half to even and clips
    to its range. With `bands` above 1, there is a scale and an offset for each channel of each band, one band after the other, along the
    last two axes."""

    scale: tuple[float, ...]
    offset: tuple[float, ...]
    dtype: str
    order: tuple[int, ...] = ()
    bands: int = 1

    def infer(self, x: FeatureType) -> FeatureType:
        """The output type."""
        interval = x.interval
        if interval is not None:
            interval = reduce(Interval.union, [interval.affine(s, o) for s, o in zip(self.scale, self.offset, strict=True)])
        if self.dtype == "uint8":
            interval = Interval(*(float(min(max(round(v), 0), 255)) for v in (interval.low, interval.high))) if interval else BYTE_RANGE
        return x.with_(dtype=self.dtype, interval=interval, centred=x.centred and not any(self.offset))

    def is_identity(self, x: FeatureType) -> bool:
        """Whether nothing changes on an input of type `x`."""
        plain = all(s == 1 for s in self.scale) and all(o == 0 for o in self.offset)
        return plain and self.dtype == x.dtype and self.order in ((), tuple(range(len(self.order))))

    def then(self, other: Arithmetic) -> Arithmetic:
        """This and another one after it, as one; constants are multiplied in float64."""
        channels = max(len(self.scale), len(other.scale), len(self.order), len(other.order))

        def spread(values: tuple[float, ...]) -> tuple[float, ...]:
            return values * (channels // len(values))  # of a single one, or of the channels of each band

        a_scale, a_offset, b_scale, b_offset = (spread(v) for v in (self.scale, self.offset, other.scale, other.offset))
        order = other.order or tuple(range(channels))
        scale = tuple(a_scale[order[c]] * b_scale[c] for c in range(channels))
        offset = tuple(a_offset[order[c]] * b_scale[c] + b_offset[c] for c in range(channels))
        if self.order or other.order:
            inner = self.order or tuple(range(channels))
            return Arithmetic(scale, offset, other.dtype, tuple(inner[order[c]] for c in range(channels)))
        return Arithmetic(scale, offset, other.dtype, bands=max(self.bands, other.bands))


Preset = Literal[
    "caffe", "convnext", "densenet", "efficientnet", "efficientnet_v2", "inception_resnet_v2", "inception_v3", "mobilenet",
    "mobilenet_v2", "mobilenet_v3", "nasnet", "resnet", "resnet50", "resnet_v2", "tf", "torch", "vgg16", "vgg19", "xception",
]  # fmt: skip
"""A mode (`tf`, `torch`, `caffe`), or the module of `keras.applications` of a model."""

PRESETS: tuple[str, ...] = get_args(Preset)

_CAFFE = frozenset({"caffe", "resnet", "resnet50", "vgg16", "vgg19"})
_TORCH = frozenset({"torch", "densenet"})
_INSIDE_THE_MODEL = frozenset({"convnext", "efficientnet", "efficientnet_v2", "mobilenet_v3"})

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CAFFE_MEAN_BGR = (103.939, 116.779, 123.68)


def needs_three_channels(preset: str) -> bool:
    """Whether the preset treats red, green and blue differently."""
    return preset in _CAFFE or preset in _TORCH


def constants(preset: str) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]:
    """Scale, offset and channel order of a preset; one entry stands for every channel."""
    if preset in _CAFFE:
        return (1.0, 1.0, 1.0), tuple(-m for m in CAFFE_MEAN_BGR), (2, 1, 0)
    if preset in _TORCH:
        pairs = list(zip(IMAGENET_MEAN, IMAGENET_STD, strict=True))
        return tuple(1 / (255 * s) for _, s in pairs), tuple(-m / s for m, s in pairs), ()
    if preset in _INSIDE_THE_MODEL:
        return (1.0,), (0.0,), ()
    return (1 / 127.5,), (-1.0,), ()
