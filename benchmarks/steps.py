"""The steps that recipes are made of: numbers alone. Every system translates them into its own words, or says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """Something that is done to an image."""


@dataclass(frozen=True)
class Resize(Step):
    """The whole image to the recipe's size, bilinear, without antialiasing."""


@dataclass(frozen=True)
class RandomResizedCrop(Step):
    """A random window, resized to the recipe's size.

    Attributes:
        area: Range of the window's share of the image's area.
        aspect: Range of the window's width over its height.
    """

    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)


@dataclass(frozen=True)
class Affine(Step):
    """A random affine map, bilinear, with the nearest pixel outside.

    Attributes:
        rotation: Greatest angle either way, in degrees.
        translation: Greatest shift either way, as a fraction of the side.
        shear: Greatest angle either way, in degrees.
        zoom: Greatest deviation from 1, drawn for each axis.
    """

    rotation: float = 20.0
    translation: float = 0.1
    shear: float = 10.0
    zoom: float = 0.2


@dataclass(frozen=True)
class Flip(Step):
    """A mirror image, left to right, for half of the images."""


@dataclass(frozen=True)
class Brightness(Step):
    """A random factor on every value.

    Attributes:
        amount: Greatest deviation of the factor from 1.
    """

    amount: float = 0.2


@dataclass(frozen=True)
class ColorJitter(Step):
    """Random brightness, contrast, saturation and hue.

    Attributes:
        brightness: Greatest deviation of the factor from 1.
        contrast: The same for contrast.
        saturation: The same for saturation.
        hue: Greatest turn of the hue either way, in degrees.
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 36.0


@dataclass(frozen=True)
class Blur(Step):
    """A Gaussian blur for some of the images.

    Attributes:
        kernel: Side of the kernel, in pixels.
        sigma: Range of the standard deviation, in pixels.
        probability: The share of images that it acts on.
    """

    kernel: int = 7
    sigma: tuple[float, float] = (0.1, 1.0)
    probability: float = 0.5


@dataclass(frozen=True)
class RandAugment(Step):
    """Ops drawn at random for each image, as in Cubuk et al. 2019 (arXiv:1909.13719).

    Attributes:
        layers: How many, one after another.
        magnitude: How strong, from 0 to 1.
    """

    layers: int = 2
    magnitude: float = 0.5


@dataclass(frozen=True)
class MixUp(Step):
    """A blend with another image, and of the labels (Zhang et al. 2018, arXiv:1710.09412).

    Attributes:
        alpha: Both parameters of the beta distribution that the share is drawn from.
    """

    alpha: float = 0.2


@dataclass(frozen=True)
class CutMix(Step):
    """A rectangle out of another image, and a blend of the labels (Yun et al. 2019, arXiv:1905.04899).

    Attributes:
        alpha: Both parameters of the beta distribution that the share is drawn from.
    """

    alpha: float = 1.0


@dataclass(frozen=True)
class Normalise(Step):
    """From [0, 255] to [0, 1], less a mean, by a deviation, for each channel.

    Attributes:
        mean: Of red, green and blue.
        std: The same.
    """

    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Clahe(Step):
    """Adaptive equalisation on 8 by 8 tiles, with a random limit.

    Attributes:
        limit: Range of the limit of the contrast.
    """

    limit: tuple[float, float] = (1.0, 4.0)


@dataclass(frozen=True)
class GridDistortion(Step):
    """Rows and columns of a grid, each made wider or narrower at random.

    Attributes:
        amount: Greatest deviation of a width from 1.
        cells: How many rows and columns there are.
    """

    amount: float = 0.3
    cells: int = 5


@dataclass(frozen=True)
class CoarseDropout(Step):
    """Black rectangles at random places.

    Attributes:
        holes: Range of their number.
        side: Range of each of their sides, as a fraction of the image's.
    """

    holes: tuple[int, int] = (3, 8)
    side: tuple[float, float] = (0.05, 0.15)


@dataclass(frozen=True)
class HsvShift(Step):
    """Random amounts added to hue, saturation and value.

    Attributes:
        hue: Greatest turn of the hue either way, in degrees.
        saturation: Greatest change of the saturation, in levels of 255.
        value: Greatest change of the value, in levels of 255.
    """

    hue: float = 20.0
    saturation: float = 30.0
    value: float = 20.0


@dataclass(frozen=True)
class Jpeg(Step):
    """What a JPEG of a random quality loses.

    Attributes:
        quality: Range of the quality.
    """

    quality: tuple[int, int] = (40, 95)


@dataclass(frozen=True)
class Gamma(Step):
    """A random power of every value.

    Attributes:
        amount: Greatest deviation of the exponent from 1.
    """

    amount: float = 0.2


@dataclass(frozen=True)
class D4(Step):
    """One of the eight ways to turn and mirror a square."""


HEAVY = (Clahe, GridDistortion, CoarseDropout, HsvShift, Jpeg, Gamma, D4)
"""Steps that are written for a few systems alone."""
COMBINING = (MixUp, CutMix)
"""The steps that need several images and one-hot labels."""
