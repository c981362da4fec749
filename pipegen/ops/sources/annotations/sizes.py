"""Reads sizes and orientations of images from their headers."""

from __future__ import annotations

import io
import re
import struct
from contextlib import nullcontext
from typing import Any, NamedTuple

from pipegen.mounts import Opened, content_of, mounted
from pipegen.ops.lowering.exif import MOST_ENTRIES, ORIENTATION_TAG, SEARCHED_FOR_XMP, TYPES, WEBP_EXIF, WEBP_XMP
from pipegen.ops.lowering.library import plugin_format, ready_for

_HEAD = 64  # bytes that identify the format of a file
_START = 4096  # bytes that contain almost every EXIF directory
_ORIENTATIONS = range(1, 9)
_WIDTH, _HEIGHT = 256, 257
"""TIFF tags."""
_TURNED = frozenset({5, 6, 7, 8})  # EXIF orientations that swap the sides
_BODY = frozenset((0xC0, 0xC1, 0xC2, 0xC4, 0xDB, 0xDD))  # JPEG markers that follow the application segments
_XMP = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')
_FAILURES = (OSError, ValueError, SyntaxError, struct.error)


class Sides(NamedTuple):
    """The width and the height of an image in pixels: upright by EXIF, and as stored."""

    upright: tuple[int, int]
    stored: tuple[int, int]


def sides_of(path: str) -> Sides | None:
    """Returns the sides of an image; `None` if its header cannot be read."""
    from PIL import Image

    try:
        ready_for(content_of(path, _HEAD))
        with _opened(path) as file, Image.open(file) as image:
            tags = getattr(image, "tag_v2", {})  # Pillow's sides of a TIFF are upright or, in older versions, as stored
            width, height = tags.get(_WIDTH, image.width), tags.get(_HEIGHT, image.height)
    except (*_FAILURES, Image.DecompressionBombError):
        return None
    turned = orientation_of(path) in _TURNED
    return Sides((height, width) if turned else (width, height), (width, height))


def orientation_of(path: str) -> int:
    """Returns the EXIF orientation that `decode` applies, from 1 to 8; 1 if the header cannot be read. Mostly reads a few bytes only."""
    try:
        start = content_of(path, _START)
        found = _of_start(start)
        if found is None and start[:4] == b"\x89PNG":
            with Opened(path) as png:
                found = _of_png(png, start)
        if found is None:
            with _opened(path) as file:
                found = _by_pillow(file, start)
        return found
    except _FAILURES:
        return 1


def orientation_in(content: bytes) -> int:
    """Returns the EXIF orientation of the bytes of an image; see `orientation_of`."""
    try:
        found = _of_start(content[:_START])
        return _by_pillow(io.BytesIO(content), content) if found is None else found
    except _FAILURES:
        return 1


def _of_start(start: bytes) -> int | None:
    """Finds the orientation in the first bytes of a file; `None` if they are not enough."""
    if start[:3] == b"\xff\xd8\xff":
        at = 0
        if start[3:4] == b"\xe1" and start[6:12] == b"Exif\0\0":
            at = 12
        elif start[3:6] == b"\xe0\0\x10":
            if start[21:22] and start[21] in _BODY:
                return 1
            at = 30 if start[21:22] == b"\xe1" and start[24:30] == b"Exif\0\0" else 0
        return _of_tiff(start[at:]) if at else None
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return None if start[12:16] == b"VP8X" and start[20] & (WEBP_EXIF | WEBP_XMP) else 1
    if start[:4] in (b"II*\0", b"MM\0*"):
        return _of_tiff(start)
    return 1 if start[:2] == b"BM" or plugin_format(start[:_HEAD]) in ("HEIC", "JPEG XL") else None


def _of_tiff(data: bytes) -> int | None:
    """Finds the orientation in the first directory of a TIFF header; `None` if these bytes lack it."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None or len(data) < 8:
        return None
    (offset,) = struct.unpack_from(f"{order}I", data, 4)
    if offset + 2 > len(data):
        return None
    (count,) = struct.unpack_from(f"{order}H", data, offset)
    found: int | None = None
    for at in range(offset + 2, offset + 2 + 12 * min(count, MOST_ENTRIES), 12):
        if at + 12 > len(data):
            return found
        tag, kind, many = struct.unpack_from(f"{order}HHI", data, at)
        if tag == ORIENTATION_TAG and many == 1 and kind in TYPES:
            value = int.from_bytes(data[at + 8 : at + 8 + TYPES[kind]], "little" if order == "<" else "big")
            found = value if value in _ORIENTATIONS else 1
    return found


def _of_png(file: Opened, start: bytes) -> int:
    """Finds the orientation of a PNG by skipping from chunk to chunk, without reading pixels."""
    at = 8
    xmp = _XMP.search(start) or _XMP.search(file.pread(SEARCHED_FOR_XMP, 0))
    while len(head := file.pread(8, at)) == 8 and head[4:] != b"IEND":
        (size,) = struct.unpack(">I", head[:4])
        if head[4:] == b"eXIf":
            block = file.pread(min(size, 1 << 16), at + 8)
            while block[:6] == b"Exif\0\0":
                block = block[6:]
            found = _of_tiff(block)
            if found is not None:
                return found
        at += 12 + size
    value = int(xmp[1]) if xmp is not None else 1
    return value if value in _ORIENTATIONS else 1


def _by_pillow(file: Any, start: bytes) -> int:
    from PIL import Image

    ready_for(start[:_HEAD])
    with Image.open(file) as image:
        found = image.getexif().get(ORIENTATION_TAG, 1)
    return found if isinstance(found, int) and found in _ORIENTATIONS else 1


def _opened(path: str) -> Any:
    """Returns what Pillow opens: a path or a remote file."""
    return nullcontext(path) if mounted(path) is None else Opened(path)
