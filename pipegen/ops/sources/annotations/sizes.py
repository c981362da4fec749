"""Reads the sizes of images out of their headers."""

from __future__ import annotations

from typing import NamedTuple

_ORIENTATION = 0x0112
_TURNED = frozenset({5, 6, 7, 8})
"""Orientations of EXIF that swap the sides."""


class Sides(NamedTuple):
    """The width and the height of an image in pixels: upright as its EXIF says, and as they are stored."""

    upright: tuple[int, int]
    stored: tuple[int, int]


def sides_of(path: str) -> Sides | None:
    """Returns the sides of an image; `None` where its header cannot be read."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            width, height = image.size
            turned = image.format in ("JPEG", "TIFF") and image.getexif().get(_ORIENTATION) in _TURNED
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return Sides((height, width) if turned else (width, height), (width, height))
