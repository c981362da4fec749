"""Finds image files by their names, and how many bits the gray values in them have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

_PICTURES = ("jpg", "jpeg", "bmp", "png", "ppm", "tif", "tiff")
_IMAGES = (".png", ".tif", ".tiff", ".pgm", ".jpg", ".jpeg", ".bmp", ".ppm", ".gif", ".webp")


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
    return [file for file in files_below(directory) if file.lower().endswith(endings)]


def files_below(folder: str | os.PathLike[str], *, links: bool = False) -> Iterator[str]:
    """Yields the files of a folder and of its folders, each sorted."""
    for place, folders, files in os.walk(folder, followlinks=links):
        folders.sort()
        yield from (os.path.join(place, file) for file in sorted(files))


def is_deep(files: Iterable[str]) -> bool:
    """Returns whether the first image among files is gray of 16 bits, which Keras keeps and a spec has to name.

    The others are like it, or decoding names them.
    """
    from PIL import Image, UnidentifiedImageError

    first = next((file for file in files if file.lower().endswith(_IMAGES)), None)
    if first is None:
        return False
    try:
        with Image.open(first) as image:
            return image.mode.startswith("I")  # 16 bits are `I;16`, or `I` in earlier versions of Pillow
    except (OSError, UnidentifiedImageError):
        return False  # what is wrong with the file is said where it is read
