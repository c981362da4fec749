"""Damage inside of JPEG files that decoders ignore.

A decoder continues after a damaged part of a scan, and the rest of the image is shifted, gray or noise. libjpeg warns of most damage, and
`simplejpeg` reports its warnings. libjpeg takes long runs of zeros for data; they are found in the file itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WARNINGS = ("Corrupt JPEG data", "Premature end of JPEG", "Inconsistent progression")
"""Beginnings of libjpeg's messages about damage. Other messages, such as for unsupported files, are not about damage."""
_AT_END = "extraneous bytes before marker 0xd9"
"""libjpeg's message about bytes that are left after the last row; they have one of two causes."""
_ZEROS = bytes(32)  # no encoder writes so many zeros within a scan, except for an image of one colour with custom Huffman tables
_END_OF_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_TABLES, _SCAN = 0xC4, 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a segment


def available() -> bool:
    """Checks if `simplejpeg` can be imported, which reports libjpeg's warnings."""
    try:
        import simplejpeg  # noqa: F401
    except ImportError:
        return False
    return True


def is_jpeg(content: bytes) -> bool:
    """Checks if a file starts like a JPEG."""
    return content[:3] == b"\xff\xd8\xff"


def damage_inside(content: bytes) -> str | None:
    """Describes the damage in a whole file that can be decoded; `None` if none is found, and for other formats."""
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
        more = " (harmless if a program added them, else a sign of lost codes: look at the image)"
        return f"{said.removeprefix('Corrupt JPEG data: ')}{more * said.endswith(_AT_END)}" if said.startswith(_WARNINGS) else None
    return None


def _scans_without_zeros(content: bytes) -> Iterator[bytes]:
    """Yields the coded data of scans in which long runs of zeros are damage.

    These are scans of sequential files with a table in which zeros are the code of a coefficient, not of an empty block.
    """
    first: dict[int, int] = {}  # by table for AC coefficients: the symbol of its shortest code, which is all zeros
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF or marker in _ALONE:
            at += 1 if marker == 0xFF else 2
            continue
        size = int.from_bytes(content[at + 2 : at + 4], "big")
        body, at = content[at + 4 : at + 2 + size], at + 2 + size
        if marker == 0xD9 or (0xC2 <= marker <= 0xCF and marker not in (_TABLES, 0xC8, 0xCC)):
            return  # the end, or not a sequential file with Huffman codes
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
    """Reads the symbol of the shortest code of each table for AC coefficients in a segment of tables."""
    found: dict[int, int] = {}
    at = 0
    while at + 17 < len(body):
        if body[at] >> 4:
            found[body[at] & 15] = body[at + 17]
        at += 17 + sum(body[at + 1 : at + 17])
    return found
