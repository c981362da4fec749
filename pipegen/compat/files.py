"""Finds the files that are pictures, by their names, as keras-preprocessing's functions do."""

from __future__ import annotations

import os
from collections.abc import Iterable

_PICTURES = ("jpg", "jpeg", "bmp", "png", "ppm", "tif", "tiff")


def validate_filename(filename: str, white_list_formats: Iterable[str]) -> bool:
    """Returns whether a file exists and has one of these endings, such as `("png", "jpg")`, in letters of either case."""
    return filename.lower().endswith(tuple(white_list_formats)) and os.path.isfile(filename)


def list_pictures(directory: str | os.PathLike[str], ext: str | Iterable[str] = _PICTURES) -> list[str]:
    """The paths of the pictures of a folder and of the folders below it, each sorted.

    Args:
        directory: The folder.
        ext: The endings that count, without the dot.
    """
    endings = tuple("." + ending for ending in ([ext] if isinstance(ext, str) else ext))
    found = []
    for place, folders, files in os.walk(directory):
        folders.sort()
        found += [os.path.join(place, file) for file in sorted(files) if file.lower().endswith(endings)]
    return found
