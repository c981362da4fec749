"""Decoding of PNG, GIF, BMP and WebP by `tf.io.decode_image`, and by the library for other formats and files that it decodes wrongly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.exif import upright_png, upright_webp
from pipegen.ops.lowering.graphs import apart, target
from pipegen.ops.lowering.library import read_by_library, too_deep
from pipegen.ops.lowering.python_calls import numpy_function

_LOOP = b"\x21\xff\x0bNETSCAPE2.0\x03\x01"
_BMP_HEADERS = (40, 52, 56, 64, 108, 124)
_BMP_MASKS = bytes((0, 0, 0xFF, 0, 0, 0xFF, 0, 0, 0xFF, 0, 0, 0))
"""The masks of red, green and blue in the 32 bits of a pixel, in almost every BMP."""


def odd_form(content: bytes) -> str | None:
    """Describes a GIF or BMP, by its whole content, that only Pillow reads correctly; `None` for any other file."""
    if content[:4] == b"GIF8" and not _is_plain_gif_file(content):
        return "a GIF that is transparent, does not fill its canvas, or has comments before its first frame"
    if content[:2] == b"BM" and not _is_plain_bmp_file(content):
        return "a BMP that is packed, has less than 8 bits or 256 colours, or is not ordered as usual"
    return None


def _is_plain_gif_file(content: bytes) -> bool:
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


def _is_plain_bmp_file(content: bytes) -> bool:
    def number(at: int, length: int = 4) -> int:
        return int.from_bytes(content[at : at + length], "little")

    start, header, bits, packing = number(10), number(14), number(28, 2), number(30)
    width, height = (int.from_bytes(content[at : at + 4], "little", signed=True) for at in (18, 22))
    whole = start + (width * bits + 31) // 32 * 4 * abs(height) == len(content)
    alpha = header < 56 or content[66:70] in (b"\0\0\0\0", b"\0\0\0\xff")
    masked = bits == 32 and packing == 3 and content[54:66] == _BMP_MASKS and alpha
    rows = packing == 0 and (bits in (24, 32) or (bits == 8 and start - 14 - header >= 4 * 256))
    return whole and header in _BMP_HEADERS and (rows or masked)


_HEAD = 64
_SPACE = (9, 10, 13, 32)
GRAY_TYPES = (0, 4)  # colour types of a PNG without colour: gray, and gray with transparency

_GIF_HEAD, _GIF_LOOP, _GIF_CONTROL, _GIF_FRAME = 13, 19, 8, 10


def decode_other(contents: tf.Tensor, channels: int, *, exif: Literal["apply", "ignore"] = "apply") -> tf.Tensor:
    """Decodes a file that is not a JPEG, a string scalar, to uint8 `(height, width, channels)` of 1, 3 or 4 channels; the first frame of an
    animation. Without a fourth channel, transparency is dropped.

    The library reads files that TensorFlow would decode differently from Pillow.
    """
    head = head_of(contents)

    def library() -> tf.Tensor:
        return read_by_library(contents, channels, 8, exif=exif)

    def as_asked(image: tf.Tensor) -> tf.Tensor:
        return image if channels != 1 else luma(image)

    def png() -> tf.Tensor:
        read = partial(_png, contents, head, channels)
        return upright_png(contents, read) if exif == "apply" else read()

    def webp() -> tf.Tensor:
        read = partial(_webp, contents, head, channels, library)
        return upright_webp(contents, head, read) if exif == "apply" and reads_webp() else read()

    def plain(found: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]) -> tf.Tensor:
        # In Python it is one node in place of a hundred, which each iterator would instantiate.
        if tf.executing_eagerly() or target() != "process":
            return found(contents, head)
        return tf.ensure_shape(numpy_function(lambda content: odd_form(content) is None, [contents], tf.bool, stateful=False), [])

    def gif() -> tf.Tensor:
        return tf.cond(plain(_is_plain_gif), lambda: as_asked(tf.io.decode_image(contents, 3, expand_animations=False)), apart(library))

    def bmp() -> tf.Tensor:
        rgb = partial(read_by_library, contents, 3, 8, exif=exif)
        return tf.cond(plain(_is_plain_bmp), lambda: as_asked(_bmp(contents, head, rgb)), apart(library))

    # TensorFlow drops the transparency of a GIF or BMP.
    animated_or_bitmap = [library, library] if channels == 4 else [gif, bmp]
    unknown = partial(refused, contents, "is not a JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM or PBM image", tf.uint8)
    readers = [png, *animated_or_bitmap, webp, library, library, unknown]
    image = tf.switch_case(kind(head), readers)
    image.set_shape([None, None, channels])
    return image


def luma(image: tf.Tensor) -> tf.Tensor:
    """Computes gray like Pillow: ⌊(19595 R + 38470 G + 7471 B + 32768) / 65536⌋, `(height, width, 1)` of the same dtype."""
    exact = tf.int32 if image.dtype == tf.uint8 else tf.int64
    weighted = tf.reduce_sum(tf.cast(image, exact) * tf.constant([19595, 38470, 7471], exact), axis=-1, keepdims=True)
    return tf.cast((weighted + 32768) // 65536, image.dtype)


def with_opacity(image: tf.Tensor) -> tf.Tensor:
    """Adds an opaque fourth channel to RGB."""
    return tf.concat([image, _opaque(image)], axis=-1)


def _opaque(image: tf.Tensor) -> tf.Tensor:
    return tf.fill(tf.concat([tf.shape(image)[:2], [1]], axis=0), tf.constant(image.dtype.max, image.dtype))


def head_of(contents: tf.Tensor) -> tf.Tensor:
    """Returns the first 64 bytes of a file as int32 `(64,)`, padded with zeros."""
    return tf.cast(tf.io.decode_raw(contents, tf.uint8, fixed_length=_HEAD), tf.int32)


def is_jpeg(head: tf.Tensor) -> tf.Tensor:
    """Checks for JPEGs by their heads, `(..., n)`."""
    return tf.reduce_all(head[..., :3] == tf.constant((0xFF, 0xD8, 0xFF), head.dtype), axis=-1)


def kind(head: tf.Tensor) -> tf.Tensor:
    """Detects the format of a file that is not a JPEG: int32 scalar, 0 to 6 for PNG, GIF, BMP, WebP, TIFF, formats of Pillow (PPM and its
    kin, HEIC, AVIF, JPEG XL), and unknown."""
    bytes_, counts, kinds = _magics()
    same = (head[: len(bytes_[0])] == tf.constant(bytes_, head.dtype)) | ~tf.constant(counts)
    return tf.gather(kinds, tf.argmax(tf.reduce_all(same, axis=1)))


@cache
def _magics() -> tuple[list[list[int]], list[list[bool]], list[int]]:
    """Returns signatures of files: bytes, a mask of those to compare, and the kind. The last one matches every file."""
    by_pillow = [b"P%c%c" % (digit, space) for digit in b"123456" for space in _SPACE]
    by_pillow += [b"????ftyp", b"\xff\x0a", b"\0\0\0\x0cJXL "]  # HEIC or AVIF, and JPEG XL
    # A question mark, which no signature has, stands for any byte.
    starts = [[b"\x89PNG\r\n\x1a\n"], [b"GIF8"], [b"BM"], [b"RIFF????WEBP"], [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"], by_pillow, [b""]]
    flat = [(start.ljust(12, b"?"), kind) for kind, every in enumerate(starts) for start in every]
    return [[*start] for start, _ in flat], [[byte != ord("?") for byte in start] for start, _ in flat], [kind for _, kind in flat]


def sure(*checks: tuple[tf.Tensor, str], what: str = "an image") -> Any:
    """Makes a context that checks conditions; messages continue the name of the file, or of `what` a request holds."""
    # The raw op: `tf.debugging.Assert` wraps it in a branch. Eagerly it returns `None`.
    of = "" if target() == "process" else f"{what} of the request "
    asserts = [tf.raw_ops.Assert(condition=condition, data=[of + message]) for condition, message in checks]
    return tf.control_dependencies([a for a in asserts if a is not None])


def refused(contents: tf.Tensor, message: str, dtype: tf.DType) -> tf.Tensor:
    """Rejects a file with a message, or because it is empty."""
    with sure((tf.strings.length(contents) != 0, "is empty"), (tf.constant(False), message)):
        return tf.zeros([0, 0, 1], dtype)


def _whole(digits: tf.Tensor) -> tf.Tensor:
    """Converts little-endian bytes to a number; four bytes wrap around to a signed one."""
    return tf.reduce_sum(digits * [256**i for i in range(digits.shape[0])])


def _png(contents: tf.Tensor, head: tf.Tensor, channels: int) -> tf.Tensor:
    # TensorFlow would silently drop the lower 8 bits.
    with sure((head[24] != 16, too_deep("a 16-bit PNG"))):
        known = tf.identity(contents)
    if channels == 3:
        return tf.io.decode_png(known, 3)
    if channels == 1:  # libpng has other weights, and applies the file's gamma
        gray = tf.reduce_any(head[25] == list(GRAY_TYPES))
        return tf.cond(gray, lambda: tf.io.decode_png(known, 1), lambda: luma(tf.io.decode_png(known, 3)))
    # For samples of fewer than 8 bits, TensorFlow fills in an opacity of that many bits.
    return tf.cond(head[24] < 8, lambda: with_alpha(tf.io.decode_png(known, 0)), lambda: tf.io.decode_png(known, 4))


def with_alpha(image: tf.Tensor) -> tf.Tensor:
    """Converts gray or RGB, with or without transparency, to RGBA, for a dynamic number of channels."""
    samples = tf.shape(image)[-1]
    colours = tf.cond(samples < 3, lambda: tf.tile(image[..., :1], [1, 1, 3]), lambda: image[..., :3])
    return tf.concat([colours, tf.cond(samples % 2 == 0, lambda: image[..., -1:], lambda: _opaque(image))], axis=-1)


def _is_plain_gif(contents: tf.Tensor, head: tf.Tensor) -> tf.Tensor:
    """Checks that the first frame fills the canvas and is opaque, with only the usual extensions before it. Pillow pastes a smaller frame
    into the canvas, and keeps the stored colour of a transparent pixel."""
    palette = tf.where(head[10] >= 128, tf.bitwise.left_shift(2, tf.bitwise.bitwise_and(head[10], 7)), 0)
    start = tf.minimum(_GIF_HEAD + 3 * palette, tf.strings.length(contents))
    data = tf.cast(tf.io.decode_raw(tf.strings.substr(contents, start, _HEAD), tf.uint8, fixed_length=_HEAD), tf.int32)
    loops = tf.reduce_all(data[: len(_LOOP)] == list(_LOOP)) & (data[_GIF_LOOP - 1] == 0)
    data = tf.roll(data, tf.where(loops, -_GIF_LOOP, 0), 0)
    controlled = tf.reduce_all(data[:3] == [0x21, 0xF9, 4]) & (data[_GIF_CONTROL - 1] == 0)
    opaque = ~controlled | (data[3] % 2 == 0)
    data = tf.roll(data, tf.where(controlled, -_GIF_CONTROL, 0), 0)
    own = tf.where(data[9] >= 128, tf.bitwise.left_shift(2, tf.bitwise.bitwise_and(data[9], 7)), 0)
    bits_at = tf.minimum(
        start + tf.where(loops, _GIF_LOOP, 0) + tf.where(controlled, _GIF_CONTROL, 0) + _GIF_FRAME + 3 * own, tf.strings.length(contents)
    )
    bits = tf.cast(tf.io.decode_raw(tf.strings.substr(contents, bits_at, 1), tf.uint8, fixed_length=1), tf.int32)[0]
    colours = tf.where(own > 0, own, palette)
    # Indices of two colours are stored in two bits.
    coloured = (colours > 0) & (bits < 12) & (tf.bitwise.left_shift(1, tf.minimum(bits, 12)) <= tf.maximum(colours, 4))
    return opaque & (data[0] == 0x2C) & tf.reduce_all(data[1:5] == 0) & tf.reduce_all(data[5:9] == head[6:10]) & coloured


def _is_plain_bmp(contents: tf.Tensor, head: tf.Tensor) -> tf.Tensor:
    """Checks that TensorFlow reads a BMP like Pillow: it has rows of 8, 24 or 32 bits a pixel in the usual order of colours, and nothing
    after them."""
    header, bits, packing = _whole(head[14:18]), _whole(head[28:30]), _whole(head[30:34])
    width, height = tf.cast(_whole(head[18:22]), tf.int64), tf.abs(tf.cast(_whole(head[22:26]), tf.int64))
    row = (width * tf.cast(bits, tf.int64) + 31) // 32 * 4
    whole = tf.cast(_whole(head[10:14]), tf.int64) + row * height == tf.cast(tf.strings.length(contents), tf.int64)
    text = tf.strings.substr(contents, tf.minimum(54, tf.strings.length(contents)), 16)
    masks = tf.cast(tf.io.decode_raw(text, tf.uint8, fixed_length=16), tf.int32)
    alpha = (header < 56) | (tf.reduce_all(masks[12:15] == 0) & tf.reduce_any(masks[15] == [0, 0xFF]))
    masked = (bits == 32) & (packing == 3) & tf.reduce_all(masks[:12] == list(_BMP_MASKS)) & alpha
    rows = (packing == 0) & tf.reduce_any(bits == [8, 24, 32])
    return whole & (rows | masked) & tf.reduce_any(header == list(_BMP_HEADERS))


def _bmp(contents: tf.Tensor, head: tf.Tensor, library: Callable[[], tf.Tensor]) -> tf.Tensor:
    """Decodes a plain BMP to RGB; one with fewer colours than indices by the library."""
    image = tf.io.decode_image(contents, 0, expand_animations=False)
    # TensorFlow returns indices into the palette, which follows the header: blue, green, red, unused.
    start = 14 + _whole(head[14:18])
    stored = tf.clip_by_value((_whole(head[10:14]) - start) // 4, 0, 256)

    def coloured() -> tf.Tensor:
        colours = tf.io.decode_raw(tf.strings.substr(contents, start, 4 * stored), tf.uint8, fixed_length=4 * 256)
        palette = tf.reverse(tf.reshape(colours, [256, 4])[:, :3], axis=[1])
        index = tf.cast(image[..., 0], tf.int32)
        return tf.cond(tf.reduce_max(index) < stored, lambda: tf.gather(palette, index), library)

    return tf.cond(_whole(head[28:30]) == 8, coloured, lambda: image[..., :3])


def reads_webp() -> bool:
    """Checks that this TensorFlow decodes WebP; otherwise Pillow does."""
    return hasattr(tf.raw_ops, "DecodeWebP")


def _webp(contents: tf.Tensor, head: tf.Tensor, channels: int, library: Callable[[], tf.Tensor]) -> tf.Tensor:
    # TensorFlow 2.21 corrupts its memory on an animation. The flag is in the extended header.
    extended = tf.reduce_all(head[12:16] == list(b"VP8X"))
    animated = extended & (tf.bitwise.bitwise_and(head[20], 2) != 0)
    with sure((~animated, "is an animated WebP image, which is not supported; save one frame of it")):
        known = tf.identity(contents)
    if not reads_webp():
        with tf.control_dependencies([known]):
            return library()
    image = tf.io.decode_image(known, 0, expand_animations=False)
    return with_alpha(image) if channels == 4 else luma(image[..., :3]) if channels == 1 else image[..., :3]
