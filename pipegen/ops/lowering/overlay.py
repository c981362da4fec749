"""A mask shown on its image, for a person's eyes."""

from __future__ import annotations

from typing import Any

from pipegen.lazy import np

_COLOURS = ((230, 57, 70), (29, 135, 229), (255, 193, 7), (46, 160, 67), (156, 39, 176), (255, 112, 32), (0, 172, 193), (121, 85, 72))
"""Of the classes from 1 on, round and round; class 0 is taken for the background and stays clear."""
_OPACITY = 0.5
_LEFT_OUT = (128, 128, 128)


def overlay(image: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], ignore: int) -> np.ndarray[Any, Any]:
    """Colour each pixel of an image by its class.

    Args:
        image: uint8 `(height, width, channels)`; the first channel alone is shown where there are not three.
        mask: The class index of each pixel, uint8 `(height, width, 1)`.
        ignore: The class index that the loss leaves out: gray, unless it is 0.

    Returns:
        uint8 `(height, width, 3)`.
    """
    plain = np.broadcast_to(image[..., :3] if image.shape[-1] >= 3 else image[..., :1], (*image.shape[:2], 3)).astype(np.float32)
    classes: np.ndarray[Any, Any] = mask[..., 0].astype(np.int64)
    colours = np.array(_COLOURS, np.float32)[(classes - 1) % len(_COLOURS)]
    if ignore:
        colours = np.where((classes == ignore)[..., None], np.array(_LEFT_OUT, np.float32), colours)
    mixed = plain * (1 - _OPACITY) + colours * _OPACITY
    return np.where((classes == 0)[..., None], plain, np.rint(mixed)).astype(np.uint8)
