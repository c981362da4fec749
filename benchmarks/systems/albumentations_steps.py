"""Steps as Albumentations' transforms, one image at a time; shared by the loaders that run it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from benchmarks import steps as s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.recipes import Recipe

REMARKS = {
    s.Clahe: "CLAHE of the lightness of LAB",
    s.HsvShift: "hue in steps of 2 degrees",
    s.Affine: "one resampling by OpenCV",
    s.Brightness: "brightness adds",
    s.ColorJitter: "hue by way of HSV",
}
"""What it does differently."""
LACKS = {
    s.RandAugment: "Albumentations has no RandAugment",
    s.MixUp: "Albumentations works on one image: no MixUp",
    s.CutMix: "Albumentations works on one image: no CutMix",
}
"""What it cannot do."""


class Load:
    """From a path, or an array, to a float32 image."""

    def __init__(self, recipe: Recipe) -> None:
        self.transform = composed(recipe.steps, recipe.size)

    def __call__(self, source: Any) -> Any:
        import cv2
        import numpy as np

        cv2.setNumThreads(0)
        image = cv2.cvtColor(cv2.imread(source), cv2.COLOR_BGR2RGB) if isinstance(source, str) else source
        return np.asarray(self.transform(image=image)["image"], np.float32)


def composed(steps: Iterable[s.Step], side: int) -> Any:
    """The transforms of steps, one after another."""
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask the network for a newer version
    import albumentations

    return albumentations.Compose([transform(step, side) for step in steps])


def transform(step: s.Step, side: int) -> Any:
    """The transform of one step, for images in [0, 255]."""
    import albumentations as a
    import cv2

    match step:
        case s.Resize():
            return a.Resize(side, side)
        case s.RandomResizedCrop():
            return a.RandomResizedCrop((side, side), scale=step.area, ratio=step.aspect)
        case s.Flip():
            return a.HorizontalFlip()
        case s.Affine():
            zoom, shift = (1 - step.zoom, 1 + step.zoom), (-step.translation, step.translation)
            return a.Affine(
                scale={"x": zoom, "y": zoom},
                translate_percent={"x": shift, "y": shift},
                rotate=(-step.rotation, step.rotation),
                shear={"x": (-step.shear, step.shear), "y": (0, 0)},
                border_mode=cv2.BORDER_REPLICATE,
                p=1.0,
            )
        case s.Brightness():
            limit = (-step.amount, step.amount)
            return a.RandomBrightnessContrast(brightness_limit=limit, contrast_limit=(0, 0), p=1.0)
        case s.ColorJitter():
            around = [(1 - m, 1 + m) for m in (step.brightness, step.contrast, step.saturation)]
            return a.ColorJitter(*around, hue=(-step.hue / 360, step.hue / 360), p=1.0)
        case s.Blur():
            return a.GaussianBlur(blur_limit=(step.kernel, step.kernel), sigma_limit=step.sigma, p=step.probability)
        case s.Normalise():
            return a.Normalize(step.mean, step.std)
    return heavy(step)


def heavy(step: s.Step) -> Any:
    """The transform of one of the `HEAVY` steps."""
    import albumentations as a

    match step:
        case s.Clahe():
            return a.CLAHE(clip_limit=step.limit, tile_grid_size=(8, 8), p=1.0)
        case s.GridDistortion():
            return a.GridDistortion(num_steps=step.cells, distort_limit=(-step.amount, step.amount), p=1.0)
        case s.CoarseDropout():
            return a.CoarseDropout(step.holes, hole_height_range=step.side, hole_width_range=step.side, fill=0, p=1.0)
        case s.HsvShift():
            hue = step.hue / 2  # OpenCV counts in steps of 2 degrees
            limits = ((-m, m) for m in (hue, step.saturation, step.value))
            return a.HueSaturationValue(*limits, p=1.0)
        case s.Jpeg():
            return a.ImageCompression(quality_range=step.quality, p=1.0)
        case s.Gamma():
            return a.RandomGamma(gamma_limit=(100 * (1 - step.amount), 100 * (1 + step.amount)), p=1.0)
        case s.D4():
            return a.D4(p=1.0)
    raise NotImplementedError(type(step).__name__)
