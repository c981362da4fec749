"""Finds without TensorFlow what `formats` finds in the graph: whether it reads a GIF or a BMP as Pillow does."""

from __future__ import annotations

_LOOP = b"\x21\xff\x0bNETSCAPE2.0\x03\x01"
_BMP_HEADERS = (40, 52, 56, 64, 108, 124)
_BMP_MASKS = bytes((0, 0, 0xFF, 0, 0, 0xFF, 0, 0, 0xFF, 0, 0, 0))


def odd_form(content: bytes) -> str | None:
    """Describes a GIF or BMP that only Pillow reads rightly; `None` for any other file.

    Args:
        content: The whole file.
    """
    if content[:4] == b"GIF8" and not _is_plain_gif(content):
        return "a GIF that is transparent, does not fill its canvas, or has comments before its first frame"
    if content[:2] == b"BM" and not _is_plain_bmp(content):
        return "a BMP that is packed, has less than 8 bits or 256 colours, or is not ordered as usual"
    return None


def _is_plain_gif(content: bytes) -> bool:
    colours = _colours(content[10:11])
    at = 13 + 3 * colours
    at += 19 if content[at : at + 16] == _LOOP and content[at + 18 : at + 19] == b"\0" else 0
    control = content[at : at + 8]
    if control[:3] == b"\x21\xf9\x04" and control[7:] == b"\0":
        if control[3] % 2:
            return False
        at += 8
    frame = content[at : at + 10]
    own = _colours(frame[9:])
    bits = content[at + 10 + 3 * own :][:1]
    fits = bits != b"" and bits[0] < 12 and 1 << bits[0] <= max(own or colours, 4)
    return frame[:5] == b"\x2c\0\0\0\0" and frame[5:9] == content[6:10] and (own or colours) > 0 and fits


def _colours(flags: bytes) -> int:
    return 2 << (flags[0] & 7) if flags and flags[0] & 0x80 else 0


def _is_plain_bmp(content: bytes) -> bool:
    def number(at: int, length: int = 4) -> int:
        return int.from_bytes(content[at : at + length], "little")

    start, header, bits, packing = number(10), number(14), number(28, 2), number(30)
    width, height = (int.from_bytes(content[at : at + 4], "little", signed=True) for at in (18, 22))
    whole = start + (width * bits + 31) // 32 * 4 * abs(height) == len(content)
    alpha = header < 56 or content[66:70] in (b"\0\0\0\0", b"\0\0\0\xff")
    masked = bits == 32 and packing == 3 and content[54:66] == _BMP_MASKS and alpha
    rows = packing == 0 and (bits in (24, 32) or (bits == 8 and start - 14 - header >= 4 * 256))
    return whole and header in _BMP_HEADERS and (rows or masked)
