"""Finds how many bits the gray values of files have: Keras keeps those of 16, and a spec has to say so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IMAGES = (".png", ".tif", ".tiff", ".pgm", ".jpg", ".jpeg", ".bmp", ".ppm", ".gif", ".webp")


def is_deep(files: Iterable[str]) -> bool:
    """Returns whether the first image among files is gray of 16 bits. The others are like it, or decoding names them."""
    from PIL import Image, UnidentifiedImageError

    first = next((file for file in files if file.lower().endswith(_IMAGES)), None)
    if first is None:
        return False
    try:
        with Image.open(first) as image:
            return image.mode.startswith("I")  # 16 bits are `I;16`, or `I` in earlier versions of Pillow
    except (OSError, UnidentifiedImageError):
        return False  # what is wrong with the file is said where it is read


def files_below(folder: str | os.PathLike[str], *, links: bool = False) -> Iterator[str]:
    """The files of a folder and of its folders, each sorted."""
    for place, folders, files in os.walk(folder, followlinks=links):
        folders.sort()
        yield from (os.path.join(place, file) for file in sorted(files))
