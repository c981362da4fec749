"""Masks and boxes shown on their image, for a person's eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.lazy import np

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def outlined(image: np.ndarray[Any, Any], boxes: np.ndarray[Any, Any], names: Sequence[str] = ()) -> np.ndarray[Any, Any]:
    """Draws boxes on an image, each class in a colour of its own.

    Args:
        image: uint8 `(height, width, channels)`; the first channel alone is shown where there are not three.
        boxes: Left, top, right and bottom edge of each in pixels, `(n, 4)`.
        names: The class of each, or nothing.

    Returns:
        uint8 `(height, width, 3)`.
    """
    from PIL import Image, ImageDraw, ImageFont

    plain = np.broadcast_to(image[..., :3] if image.shape[-1] >= 3 else image[..., :1], (*image.shape[:2], 3)).astype(np.uint8)
    picture = Image.fromarray(np.ascontiguousarray(plain))
    pen = ImageDraw.Draw(picture)
    line = max(1, round(max(picture.size) / 160))
    font = ImageFont.load_default(size=max(10, round(max(picture.size) / 22)))
    known = sorted(set(names))
    for i, box in enumerate(np.asarray(boxes, np.float64).tolist()):
        colour = _COLOURS[(known.index(names[i]) if i < len(names) else 0) % len(_COLOURS)]
        left, top, right, bottom = box[0], box[1], max(box[0], box[2] - 1), max(box[1], box[3] - 1)  # edges, and pixels by their numbers
        pen.rectangle([left, top, right, bottom], outline=colour, width=line)
        if i < len(names):
            under = pen.textbbox((left + line, top + line), names[i], font=font)
            pen.rectangle(under, fill=colour)
            pen.text((left + line, top + line), names[i], fill=(255, 255, 255), font=font)
    return np.asarray(picture)


def dotted(image: np.ndarray[Any, Any], points: np.ndarray[Any, Any], names: Sequence[str] = ()) -> np.ndarray[Any, Any]:
    """Draws points on an image, each name in a colour of its own: a hidden one is a ring.

    Args:
        image: uint8 `(height, width, channels)`; the first channel alone is shown where there are not three.
        points: x, y and visibility of each, `(n, 3)`; those of visibility 0 are not there.
        names: What each is called, or nothing.

    Returns:
        uint8 `(height, width, 3)`.
    """
    from PIL import Image, ImageDraw, ImageFont

    plain = np.broadcast_to(image[..., :3] if image.shape[-1] >= 3 else image[..., :1], (*image.shape[:2], 3)).astype(np.uint8)
    picture = Image.fromarray(np.ascontiguousarray(plain))
    pen = ImageDraw.Draw(picture)
    radius = max(1.0, max(picture.size) / 100)
    font = ImageFont.load_default(size=max(8, round(max(picture.size) / 30)))
    known = list(dict.fromkeys(names))
    for i, (x, y, visibility) in enumerate(np.asarray(points, np.float64).tolist()):
        if visibility == 0:
            continue
        colour = _COLOURS[(known.index(names[i]) if i < len(names) else 0) % len(_COLOURS)]
        around = [x - radius, y - radius, x + radius, y + radius]
        pen.ellipse(around, fill=colour if visibility == 2 else None, outline=colour, width=max(1, round(radius / 2)))
        if i < len(names):
            pen.text((x + 1.5 * radius, y), names[i], fill=colour, font=font, anchor="lm")
    return np.asarray(picture)
