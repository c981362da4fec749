"""Reads the sizes of images out of their headers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

from pipegen.mounts import Opened, content_of, mounted
from pipegen.ops.lowering.plugins import ready_for

_HEAD = 64
"""Bytes by which the format of a file is known."""
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
        ready_for(content_of(path, _HEAD))
        with nullcontext(path) if mounted(path) is None else Opened(path) as file, Image.open(file) as image:
            width, height = image.size
            turned = image.format in ("JPEG", "TIFF") and image.getexif().get(_ORIENTATION) in _TURNED
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return Sides((height, width) if turned else (width, height), (width, height))
