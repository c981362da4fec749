"""Steps as `torchvision.transforms.v2`: uint8 tensors, converted at the end, as its guide on speed advises."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from benchmarks import steps as s

if TYPE_CHECKING:
    from benchmarks.recipes import Recipe

REMARKS = {
    s.Affine: "one factor of zoom for both axes, black outside, so nearest fill is missing",
    s.ColorJitter: "hue by way of HSV",
    s.RandAugment: "torchvision's own RandAugment",
}
"""What it does differently."""


class Load:
    """From a path, or an array, to a float32 image with its channels last."""

    def __init__(self, recipe: Recipe) -> None:
        import torch
        from torchvision.transforms import v2

        chain: list[Any] = [v2.ToImage()]
        chain += [transform(step, recipe.size) for step in recipe.steps if not isinstance(step, (*s.COMBINING, s.Normalise))]
        normalise = recipe.find(s.Normalise)
        chain.append(v2.ToDtype(torch.float32, scale=normalise is not None))
        if normalise is not None:
            chain.append(v2.Normalize(normalise.mean, normalise.std))
        self.transform = v2.Compose(chain)

    def __call__(self, source: Any) -> Any:
        from PIL import Image

        if isinstance(source, str):
            with Image.open(source) as opened:
                source = opened.convert("RGB")
        return self.transform(source).permute(1, 2, 0)


class Combine:
    """Stacks examples and combines them, in place of the default collation."""

    def __init__(self, recipe: Recipe, classes: int) -> None:
        from torchvision.transforms import v2

        kinds = {s.MixUp: v2.MixUp, s.CutMix: v2.CutMix}
        combining = [step for step in recipe.steps if isinstance(step, s.COMBINING)]
        self.combining = [kinds[type(step)](alpha=step.alpha, num_classes=classes) for step in combining]

    def __call__(self, examples: list[Any]) -> Any:
        import torch.utils.data

        x, y = torch.utils.data.default_collate(examples)
        x = x.permute(0, 3, 1, 2)
        for combine in self.combining:
            x, y = combine(x, y)
        return x.permute(0, 2, 3, 1).contiguous(), y


def transform(step: s.Step, side: int) -> Any:
    """The transform of one step, for uint8 tensors."""
    from torchvision.transforms import v2

    match step:
        case s.Resize():
            return v2.Resize((side, side), antialias=False)
        case s.RandomResizedCrop():
            return v2.RandomResizedCrop((side, side), scale=step.area, ratio=step.aspect, antialias=False)
        case s.Flip():
            return v2.RandomHorizontalFlip()
        case s.Affine():
            return v2.RandomAffine(
                step.rotation,
                translate=(step.translation, step.translation),
                scale=(1 - step.zoom, 1 + step.zoom),
                shear=step.shear,
                interpolation=v2.InterpolationMode.BILINEAR,
            )
        case s.Brightness():
            return v2.ColorJitter(brightness=step.amount)
        case s.ColorJitter():
            return v2.ColorJitter(step.brightness, step.contrast, step.saturation, step.hue / 360)
        case s.Blur():
            return v2.RandomApply([v2.GaussianBlur(step.kernel, step.sigma)], p=step.probability)
        case s.RandAugment():
            return v2.RandAugment(step.layers, math.floor(30 * step.magnitude))
    raise NotImplementedError(type(step).__name__)
