"""What is measured: each recipe is a list of numbers that every system reads, so that all do the same work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Recipe:
    """What every recipe has.

    Attributes:
        size: Side of the square output, in pixels.
        batch: Examples in a batch.
    """

    size: int = 224
    batch: int = 64

    name: ClassVar[str]
    summary: ClassVar[str]
    baseline: ClassVar[str]
    """The system that ratios are given against."""
    target: ClassVar[float]
    """How many times the baseline pipegen is meant to reach."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the images in a batch."""
        return (self.batch, self.size, self.size, 3)


@dataclass(frozen=True)
class Geometric(Recipe):
    """The classic augmentation of `ImageDataGenerator` users: affine, flip, brightness; float32 in [0, 255].

    Attributes:
        rotation: Greatest angle either way, in degrees.
        translation: Greatest shift either way, as a fraction of the side.
        shear: Greatest angle either way, in degrees.
        zoom: Greatest deviation from 1, drawn for each axis.
        brightness: Greatest deviation of the factor from 1.
    """

    rotation: float = 20.0
    translation: float = 0.1
    shear: float = 10.0
    zoom: float = 0.2
    brightness: float = 0.2

    name: ClassVar[str] = "geometric"
    summary: ClassVar[str] = "decode, resize, rotate, translate, shear, zoom, flip, brightness"
    baseline: ClassVar[str] = "ImageDataGenerator"
    target: ClassVar[float] = 5.0


@dataclass(frozen=True)
class ImageNet(Recipe):
    """The usual recipe for ImageNet: random resized crop, flip, normalise; float32.

    Attributes:
        area: Range of the crop's share of the image's area.
        aspect: Range of the crop's width over its height.
    """

    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)

    name: ClassVar[str] = "imagenet"
    summary: ClassVar[str] = "decode, random resized crop, flip, normalise"
    baseline: ClassVar[str] = "tf.data tutorial"
    target: ClassVar[float] = 1.4


RECIPES: dict[str, type[Recipe]] = {recipe.name: recipe for recipe in (Geometric, ImageNet)}
"""The recipes by name, in the order that they are run."""
