"""EXIF orientation of images, read and applied inside the graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pipegen.lazy import np, tf
from pipegen.ops.lowering.graphs import apart, once

ORIENTATION_TAG = 0x0112
MOST_ENTRIES = 128  # entries of the first image file directory that are read; tags ascend, and this one is low
TYPES = {3: 2, 4: 4, 6: 1, 8: 2, 9: 4, 13: 4}  # TIFF types that Pillow accepts for an integer, and their bytes
SEARCHED_FOR_XMP = 65536  # bytes at the start of a PNG that are searched for XMP

TURNS: dict[int, tuple[bool, tuple[int, ...]]] = {
    1: (False, ()),
    2: (False, (1,)),  # mirrored left to right
    3: (False, (0, 1)),  # upside down
    4: (False, (0,)),  # mirrored top to bottom
    5: (True, ()),  # mirrored along the main diagonal
    6: (True, (1,)),  # turn clockwise
    7: (True, (0, 1)),  # mirrored along the other diagonal
    8: (True, (0,)),  # turn counter-clockwise
}
"""How to turn each orientation upright: whether to transpose, and which axes to reverse then."""
BACK = (1, 2, 3, 4, 5, 8, 7, 6)  # the orientation that undoes each, from 1 on
WEBP_EXIF, WEBP_XMP = 8, 4
"""Flags of an extended WebP header."""

# RE2 patterns are UTF-8, so they cannot contain bytes above 127: `\C` is any byte. A search for plain text is many times faster than one
# for a pattern, so it comes first.
_TIFF = r"(?:Exif\x00\x00)*(II\*\x00|MM\x00\*)"
_XMP = "tiff:Orientation"
_IN_XMP = r"(?s)^\C*?tiff:Orientation(?:=\"|>)([0-9])\C*$"
# Almost every camera puts EXIF into the first segment, or after that of JFIF, which has 16 bytes.
_FIRST, _SECOND = 12, 30
_START = 30
_PNG_START, _PNG_END = 1 << 13, 70_000
"""Bytes of a PNG that are searched for EXIF, at its start and at its end. Most programs write chunks of at most 64 KiB of pixels."""


def orientation(contents: tf.Tensor) -> tf.Tensor:
    """Reads the EXIF orientation of a JPEG, PNG, WebP or TIFF image, a string scalar, like Pillow; without one, that of XMP: int32 scalar
    from 1 to 8. It is 1 for other formats, and for a missing or invalid one."""
    head = tf.cast(tf.io.decode_raw(contents, tf.uint8, fixed_length=_START), tf.int32)
    is_png = tf.reduce_all(head[:4] == list(b"\x89PNG"))
    is_webp = tf.reduce_all(tf.gather(head, [0, 1, 2, 3, 8, 9, 10, 11]) == list(b"RIFFWEBP"))
    is_jpeg = tf.reduce_all(head[:3] == [0xFF, 0xD8, 0xFF])
    readers = [(is_png, partial(of_png, contents)), (is_webp, partial(of_webp, contents)), (is_jpeg, partial(of_jpeg, contents))]
    return tf.case(readers, default=lambda: _sane(once(_of_tiff, contents, tf.constant(0))))


def of_jpeg(contents: tf.Tensor) -> tf.Tensor:
    """Reads the orientation of a JPEG; see `orientation`."""
    head = tf.cast(tf.io.decode_raw(contents, tf.uint8, fixed_length=_START), tf.int32)
    first = (head[3] == 0xE1) & tf.reduce_all(head[6:12] == list(b"Exif\0\0"))
    second = tf.reduce_all(head[3:6] == [0xE0, 0, 16]) & (head[21] == 0xE1) & tf.reduce_all(head[24:30] == list(b"Exif\0\0"))
    at = tf.where(first, _FIRST, _SECOND)
    found = tf.cond(first | second, lambda: once(_of_tiff, contents, at), lambda: tf.constant(0))

    def searched() -> tf.Tensor:
        behind = tf.cond(contains(contents, r"Exif\x00\x00"), lambda: _behind(contents, r"Exif\x00\x00"), lambda: tf.constant(0))
        return tf.cond(behind == 0, lambda: once(_of_xmp, contents), lambda: tf.identity(behind))

    return _sane(tf.cond(found == 0, apart(searched), lambda: tf.identity(found)))


def of_png(contents: tf.Tensor) -> tf.Tensor:
    """Reads the orientation of a PNG; see `orientation`."""
    start = tf.strings.substr(contents, 0, SEARCHED_FOR_XMP)

    def searched() -> tf.Tensor:
        found = _behind(contents, "eXIf")
        return tf.cond(found == 0, lambda: once(_of_xmp, start), lambda: tf.identity(found))

    return _sane(tf.cond(_may_turn_png(contents), apart(searched), lambda: tf.constant(1)))


def of_webp(contents: tf.Tensor) -> tf.Tensor:
    """Reads the orientation of a WebP image; see `orientation`."""
    head = tf.cast(tf.io.decode_raw(contents, tf.uint8, fixed_length=_START), tf.int32)

    def searched() -> tf.Tensor:
        found = tf.cond(
            tf.bitwise.bitwise_and(head[20], WEBP_EXIF) != 0, lambda: _behind(contents, r"EXIF\C\C\C\C"), lambda: tf.constant(0)
        )
        seen = (found == 0) & (tf.bitwise.bitwise_and(head[20], WEBP_XMP) != 0)
        return tf.cond(seen, lambda: once(_of_xmp, contents), lambda: tf.identity(found))

    return _sane(tf.cond(_may_turn_webp(head), apart(searched), lambda: tf.constant(1)))


def upright_png(contents: tf.Tensor, image: Callable[[], tf.Tensor]) -> tf.Tensor:
    """Turns the image of a PNG upright."""
    return tf.cond(_may_turn_png(contents), apart(lambda: orient(image(), of_png(contents))), image)


def upright_webp(contents: tf.Tensor, head: tf.Tensor, image: Callable[[], tf.Tensor]) -> tf.Tensor:
    """Turns the image of a WebP file that starts with `head` upright."""
    return tf.cond(_may_turn_webp(head), apart(lambda: orient(image(), of_webp(contents))), image)


def contains(contents: tf.Tensor, text: str) -> tf.Tensor:
    """Searches a file's bytes for a text: a bool scalar."""
    return tf.strings.length(tf.strings.regex_replace(contents, text, "", replace_global=False)) != tf.strings.length(contents)


def _may_turn_png(contents: tf.Tensor) -> tf.Tensor:
    """Searches a PNG for EXIF, which comes before or after all pixels, and for XMP.

    A search of the whole file would take a tenth of the time of decoding it. Where the first and the last chunk of pixels begin within the
    parts that are searched, everything before and after the pixels is in them, too.
    """
    size = tf.strings.length(contents)
    start, end = tf.strings.substr(contents, 0, _PNG_START), tf.strings.substr(contents, tf.maximum(size - _PNG_END, 0), _PNG_END)
    exif = tf.cond(
        (size > _PNG_START + _PNG_END) & contains(start, "IDAT") & contains(end, "IDAT"),
        lambda: contains(start, "eXIf") | contains(end, "eXIf"),
        lambda: contains(contents, "eXIf"),
    )
    return exif | contains(tf.strings.substr(contents, 0, SEARCHED_FOR_XMP), _XMP)


def _may_turn_webp(head: tf.Tensor) -> tf.Tensor:
    extended = tf.reduce_all(head[12:16] == list(b"VP8X"))
    return extended & (tf.bitwise.bitwise_and(head[20], WEBP_EXIF | WEBP_XMP) != 0)


def _behind(contents: tf.Tensor, mark: str) -> tf.Tensor:
    """Reads the orientation of the TIFF header behind a mark; 0 without one."""
    return once(_of_tiff, tf.strings.regex_replace(contents, rf"(?s)^\C*?{mark}{_TIFF}", r"\1", replace_global=False), tf.constant(0))


def _of_tiff(contents: tf.Tensor, at: tf.Tensor) -> tf.Tensor:
    """Reads the orientation in the directory of a TIFF header: int32, 0 if missing, below 0 if invalid."""
    size = tf.strings.length(contents)
    little, big = (tf.equal(tf.strings.substr(contents, tf.minimum(at, size), 4), mark) for mark in (b"II*\0", b"MM\0*"))

    def numbers(start: tf.Tensor, rows: int, *places: tuple[int, int]) -> list[tf.Tensor]:
        """Unsigned numbers in rows of bytes, given by their first byte and their length: int64 `(rows,)` each."""
        length = max(first + many for first, many in places)
        text = tf.strings.substr(contents, tf.clip_by_value(start, 0, size), rows * length)
        table = tf.reshape(tf.io.decode_raw(text, tf.uint8, fixed_length=rows * length), [rows, length])
        weights: Any = np.zeros((2, length, len(places)), np.int64)
        for i, (first, many) in enumerate(places):
            weights[0, first : first + many, i] = 256 ** np.arange(many)
            weights[1, first : first + many, i] = 256 ** np.arange(many)[::-1]
        return tf.unstack(tf.matmul(tf.cast(table, tf.int64), tf.where(little, *weights)), axis=1)

    offset = tf.cast(tf.minimum(numbers(at + 4, 1, (0, 4))[0][0], tf.cast(size, tf.int64)), tf.int32)
    directory = at + offset
    entries = numbers(directory, 1, (0, 2))[0]
    tag, kind, many, *values = numbers(directory + 2, MOST_ENTRIES, (0, 2), (2, 2), (4, 4), *((8, length) for length in (1, 2, 4)))
    lengths = tf.gather(tf.constant([TYPES.get(type_, 0) for type_ in range(max(TYPES) + 2)]), tf.minimum(kind, max(TYPES) + 1))
    value = tf.where(lengths == 1, values[0], tf.where(lengths == 2, values[1], values[2]))
    found = (tf.range(MOST_ENTRIES, dtype=tf.int64) < entries) & (tag == ORIENTATION_TAG) & (lengths > 0) & (many == 1) & (little | big)
    # An invalid value is not 0, so the search stops. Negative values are too large here.
    sense = tf.where((value >= 1) & (value <= len(TURNS)), value, -1)
    last = tf.reduce_max(tf.where(found, tf.range(1, MOST_ENTRIES + 1), 0))
    return tf.cond(last > 0, lambda: tf.cast(sense[last - 1], tf.int32), lambda: tf.constant(0))


def _of_xmp(contents: tf.Tensor) -> tf.Tensor:
    """Reads the orientation in XMP: int32, 1 if missing."""

    def told() -> tf.Tensor:
        digit = tf.strings.regex_replace(contents, _IN_XMP, r"\1", replace_global=False)
        byte = tf.cast(tf.io.decode_raw(digit, tf.uint8, fixed_length=2), tf.int32)  # longer where nothing matched
        return _sane(tf.where(tf.strings.length(digit) == 1, byte[0] - ord("0"), 0))

    return tf.cond(contains(contents, _XMP), told, lambda: tf.constant(1))


def _sane(value: tf.Tensor) -> tf.Tensor:
    return tf.where((value >= 1) & (value <= len(TURNS)), value, 1)


def as_decoded(image: tf.Tensor, contents: tf.Tensor, size: tf.Tensor, *, upright: bool) -> tf.Tensor:
    """Turns pixels `(height, width, channels)` aligned with the image of a file, a string scalar, if their size is its transposed decoded
    size, int32 `(2,)`, and its orientation swaps its sides. `upright` says whether the file is decoded upright."""

    def other() -> tf.Tensor:
        turn = orientation(contents)
        swapped = tf.reduce_all(tf.shape(image)[:2] == tf.reverse(size, [0])) & swaps_sides(turn)
        return tf.cond(swapped, lambda: orient(image, turn if upright else back(turn)), lambda: tf.identity(image))

    found = tf.cond(tf.reduce_all(tf.shape(image)[:2] == size), lambda: tf.identity(image), apart(other))
    found.set_shape([None, None, image.shape[-1]])
    return found


def swaps_sides(orientation: tf.Tensor) -> tf.Tensor:
    """Checks that an orientation swaps rows and columns."""
    return orientation >= 5


def back(orientation: tf.Tensor) -> tf.Tensor:
    """Returns the orientation with which `orient` undoes another one."""
    return tf.gather(tf.constant(BACK), orientation - 1)


def orient(image: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Turns an image `(height, width, channels)` upright, as stored with an orientation, an int32 scalar from 1 to 8, like Pillow's
    `ImageOps.exif_transpose`; from 5 on, height and width are swapped."""
    orders = tf.constant([[1, 0, 2] if transposes else [0, 1, 2] for transposes, _ in TURNS.values()])
    mirrors = tf.constant([[axis in mirrored for axis in range(3)] for _, mirrored in TURNS.values()])

    def turned() -> tf.Tensor:
        mirrored = tf.reshape(tf.where(tf.gather(mirrors, orientation - 1)), [-1])
        return tf.reverse(tf.transpose(image, tf.gather(orders, orientation - 1)), mirrored)

    y = tf.cond(orientation == 1, lambda: tf.identity(image), turned)
    y.set_shape([None, None, image.shape[-1]])
    return y


def turned_points(points: Any, orientation: int, sides: Any) -> Any:
    """Turns points like `exif.orient` turns pixels.

    Args:
        points: x and y, `(n, ..., 2)`.
        orientation: The EXIF orientation, 1 to 8.
        sides: The largest y and x on the stored image of each, `(n, 2)`.
    """
    transposes, mirrored = TURNS[orientation]
    high, wide = (np.reshape(side, [-1, *([1] * (points.ndim - 2))]) for side in (sides[:, 0], sides[:, 1]))
    x, y = points[..., 0], points[..., 1]
    if transposes:
        x, y, high, wide = y, x, wide, high
    return np.stack([wide - x if 1 in mirrored else x, high - y if 0 in mirrored else y], -1)
