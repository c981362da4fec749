"""Finds damage inside of JPEG files that every decoder passes over.

A decoder reads a damaged scan on as if nothing had been, and the rest of the image is shifted, gray or noise. libjpeg warns of most of it,
and `simplejpeg` hands its warnings on; long runs of zeros, which it takes for data, are found in the file itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WARNINGS = ("Corrupt JPEG data", "Premature end of JPEG", "Inconsistent progression")
"""How libjpeg's messages about damaged data start. What it says beside, such as of a kind of file that it cannot read, is no damage."""
_AT_END = "extraneous bytes before marker 0xd9"
"""What libjpeg says of bytes that are left when the last row is decoded, which has one of two causes."""
_ZEROS = bytes(32)
"""No encoder writes so many zeros within a scan, but of an image of one colour with Huffman tables of its own."""
_END_OF_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_TABLES, _SCAN = 0xC4, 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers that nothing belongs to."""


def available() -> bool:
    """Returns whether `simplejpeg` can be imported, which reports what libjpeg warns of."""
    try:
        import simplejpeg  # noqa: F401
    except ImportError:
        return False
    return True


def is_jpeg(content: bytes) -> bool:
    """Returns whether a file starts as a JPEG does."""
    return content[:3] == b"\xff\xd8\xff"


def damage_inside(content: bytes) -> str | None:
    """Returns what is damaged in a file that can be decoded, in words; `None` for nothing that can be found, and for other formats.

    Args:
        content: The whole file.
    """
    if not is_jpeg(content):
        return None
    if any(_ZEROS in scan for scan in _scans_without_zeros(content)):
        return "a part of its scan is zeros"
    import simplejpeg

    try:
        space = simplejpeg.decode_jpeg_header(content)[2]
        simplejpeg.decode_jpeg(content, "CMYK" if space in ("CMYK", "YCCK") else "GRAY", fastdct=True, fastupsample=True, strict=True)
    except ValueError as error:
        said = str(error)
        more = " (no harm where a program added them there, and a sign of lost codes elsewhere: look at the picture)"
        return f"{said.removeprefix('Corrupt JPEG data: ')}{more * said.endswith(_AT_END)}" if said.startswith(_WARNINGS) else None
    return None


def _scans_without_zeros(content: bytes) -> Iterator[bytes]:
    """Yields the coded data of the scans in which long runs of zeros stand for nothing: those of a sequential file whose zeros are codes
    of coefficients, and not of empty blocks, in one of the tables."""
    first: dict[int, int] = {}
    """Of each table for AC coefficients: what its shortest code, which is all zeros, stands for."""
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF or marker in _ALONE:
            at += 1 if marker == 0xFF else 2
            continue
        size = int.from_bytes(content[at + 2 : at + 4], "big")
        body, at = content[at + 4 : at + 2 + size], at + 2 + size
        if marker == 0xD9 or (0xC2 <= marker <= 0xCF and marker not in (_TABLES, 0xC8, 0xCC)):
            return  # the end, or no sequential file with Huffman codes
        if marker == _TABLES:
            first |= _first_codes(body)
        elif marker == _SCAN and body:
            end = _END_OF_SCAN.search(content, at)
            stop = end.start() if end else len(content)
            tables = {body[2 + 2 * i] & 15 for i in range(body[0]) if 2 + 2 * i < len(body)}
            if any(first.get(table, 0) & 15 for table in tables):
                yield content[at:stop]
            at = stop


def _first_codes(body: bytes) -> dict[int, int]:
    """Returns what the shortest code stands for, of each table for AC coefficients in a segment of tables."""
    found: dict[int, int] = {}
    at = 0
    while at + 17 < len(body):
        if body[at] >> 4:
            found[body[at] & 15] = body[at + 17]
        at += 17 + sum(body[at + 1 : at + 17])
    return found
