"""What is measured: each recipe is a list of steps on one kind of data, which every system reads, so that all do the same work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from benchmarks import steps as s

Data = Literal["photos", "large", "png", "arrays"]
"""JPEGs of half a megapixel or less, JPEGs of 12 megapixels, PNGs, or arrays of 32×32 pixels in memory."""

S = TypeVar("S", bound=s.Step)


@dataclass(frozen=True)
class Recipe:
    """What to do with which data. The output is float32, in batches.

    Attributes:
        name: What it is called on the command line.
        summary: The steps in words.
        steps: The steps, in order.
        data: What is read.
        size: Side of the square output, in pixels.
        batch: Examples in a batch.
        cached: Whether the second epoch and those after it are measured, with whatever cache a system has.
        baseline: The system that ratios are given against.
    """

    name: str
    summary: str
    steps: tuple[s.Step, ...]
    data: Data = "photos"
    size: int = 224
    batch: int = 64
    cached: bool = False
    baseline: str = "ImageDataGenerator"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the images in a batch."""
        return (self.batch, self.size, self.size, 3)

    @property
    def combines(self) -> bool:
        """Whether images are combined, so that labels are one-hot."""
        return any(isinstance(step, s.COMBINING) for step in self.steps)

    def find(self, kind: type[S]) -> S | None:
        """The step of a kind."""
        return next((step for step in self.steps if isinstance(step, kind)), None)


TUTORIAL = "tf.data tutorial"

_GEOMETRIC = (s.Resize(), s.Affine(), s.Flip(), s.Brightness())
_GEOMETRIC_WORDS = "decode, resize, rotate, translate, shear, zoom, flip, brightness"
_CROP = (s.RandomResizedCrop(), s.Flip())
_COMBINED = (s.Resize(), s.Flip(), s.MixUp(), s.CutMix(), s.Normalise())

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("geometric", _GEOMETRIC_WORDS, _GEOMETRIC),
        Recipe("imagenet", "decode, random resized crop, flip, normalise", (*_CROP, s.Normalise()), baseline=TUTORIAL),
        Recipe(
            "randaugment", "decode, random resized crop, flip, RandAugment (2 layers), normalise",
            (*_CROP, s.RandAugment(), s.Normalise()), baseline="Keras dataset + layers",
        ),
        Recipe(
            "jitter_blur", "decode, resize, flip, colour jitter, Gaussian blur (half of them), normalise",
            (s.Resize(), s.Flip(), s.ColorJitter(), s.Blur(), s.Normalise()), baseline=TUTORIAL,
        ),
        Recipe("combining", "decode, resize, flip, MixUp, CutMix, normalise; soft labels", _COMBINED, baseline=TUTORIAL),
        Recipe(
            "heavy", "decode, resize, CLAHE, grid distortion, coarse dropout, HSV shift, JPEG, gamma, one of eight turns, normalise",
            (s.Resize(), *(kind() for kind in s.HEAVY), s.Normalise()), baseline="DataLoader + Albumentations",
        ),
        Recipe("cached", f"{_GEOMETRIC_WORDS}: the second epoch and those after it", _GEOMETRIC, cached=True),
        Recipe("arrays", "arrays of 32×32: rotate, translate, shear, zoom, flip", (s.Affine(), s.Flip()), data="arrays", size=32),
        Recipe(
            "large", "12-megapixel JPEGs: decode, resize, flip, normalise",
            (s.Resize(), s.Flip(), s.Normalise()), data="large", batch=16, baseline=TUTORIAL,
        ),
        Recipe("png", f"PNGs: {_GEOMETRIC_WORDS}", _GEOMETRIC, data="png"),
        Recipe("batch_8", f"{_GEOMETRIC_WORDS}; a small batch", _GEOMETRIC, batch=8),
        Recipe("batch_256", f"{_GEOMETRIC_WORDS}; a large batch", _GEOMETRIC, batch=256),
    )
}  # fmt: skip
"""The recipes by name, in the order that they are run."""
