"""Lists what the models of `keras.applications` expect of their input, as arithmetic on values from 0 to 255."""

from __future__ import annotations

from typing import Literal, get_args

Preset = Literal[
    "caffe", "convnext", "densenet", "efficientnet", "efficientnet_v2", "inception_resnet_v2", "inception_v3", "mobilenet",
    "mobilenet_v2", "mobilenet_v3", "nasnet", "resnet", "resnet50", "resnet_v2", "tf", "torch", "vgg16", "vgg19", "xception",
]  # fmt: skip
"""A mode (`tf`, `torch`, `caffe`), or the module of `keras.applications` whose models are used."""

PRESETS: tuple[str, ...] = get_args(Preset)

_CAFFE = frozenset({"caffe", "resnet", "resnet50", "vgg16", "vgg19"})
_TORCH = frozenset({"torch", "densenet"})
_INSIDE_THE_MODEL = frozenset({"convnext", "efficientnet", "efficientnet_v2", "mobilenet_v3"})

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CAFFE_MEAN_BGR = (103.939, 116.779, 123.68)


def needs_three_channels(preset: str) -> bool:
    """Returns whether the preset treats red, green and blue apart."""
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
