"""What pipegen is meant to reach, as ratios within one run on 2 cores."""

from __future__ import annotations

from dataclasses import dataclass

PEAK_MEMORY = 1.5 * 2**30
"""Bytes above the imported libraries that a recipe without a cache may need at its peak."""
PEAK_BESIDE_KERAS = 1.2
"""The most that pipegen's peak memory may be of Keras'."""


@dataclass(frozen=True)
class Target:
    """A least ratio of pipegen's rate to a peer's.

    Attributes:
        recipe: The recipe.
        peer: The system that pipegen is compared to.
        least: The least ratio.
    """

    recipe: str
    peer: str
    least: float


TARGETS: tuple[Target, ...] = (
    Target("geometric", "ImageDataGenerator", 8.0),
    Target("geometric", "Keras dataset + layers", 4.0),
    Target("geometric", "DALI on the CPU", 2.5),
    Target("geometric", "DataLoader + Albumentations", 1.5),
    Target("geometric", "limit: decode", 0.60),
    Target("imagenet", "DALI on the CPU", 1.8),
    Target("imagenet", "DataLoader + Albumentations", 2.8),
    Target("imagenet", "tf.data tutorial", 1.8),
    Target("imagenet", "limit: decode and crop", 0.75),
    Target("randaugment", "Keras dataset + layers", 15.0),
    Target("randaugment", "DataLoader + torchvision", 2.2),
    Target("heavy", "DataLoader + Albumentations", 1.2),
    Target("cached", "ImageDataGenerator", 30.0),
    Target("arrays", "ImageDataGenerator", 40.0),
    Target("large", "tf.data tutorial", 1.9),
)
"""The ratios, from one run on 2 cores with TensorFlow 2.21 and the photographs of `make_photos`."""
