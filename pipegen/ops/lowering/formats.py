"""PNG, GIF, BMP and WebP: what `tf.io.decode_image` reads, and what it would read wrongly; and the way to the library for the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.library import read_by_library, too_deep
from pipegen.ops.lowering.target import target

_HEAD = 64
_BITMAP_PLAIN, _BITMAP_FIELDS = 0, 3
_ANIMATION = 2
_JPEG = (0xFF, 0xD8, 0xFF)
_SPACE = (9, 10, 13, 32)


def decode_other(contents: tf.Tensor, channels: int, *, exif: Literal["apply", "ignore"] = "apply") -> tf.Tensor:
    """Decode a file that is no JPEG; of an animation, the first frame. Without a fourth channel, transparency is dropped.

    Args:
        contents: string scalar: a file's bytes.
        channels: 1, 3 or 4.
        exif: Whether a TIFF is turned upright.

    Returns:
        uint8 `(height, width, channels)`.
    """
    head = head_of(contents)

    def library() -> tf.Tensor:
        return read_by_library(contents, channels, 8, exif=exif)

    def as_asked(read: Callable[[], tf.Tensor]) -> Callable[[], tf.Tensor]:
        return read if channels != 1 else lambda: luma(read())

    # libpng makes gray by itself, the others know colour only. What a GIF or BMP says of transparency, TensorFlow does not give.
    gif, bmp = (library, library) if channels == 4 else (as_asked(lambda: _read(contents, 3)), as_asked(lambda: _bmp(contents, head)))
    webp = as_asked(lambda: _webp(contents, head, channels))
    readers = [lambda: _png(contents, head, channels), gif, bmp, webp, library, library, lambda: _unknown(contents)]
    image = tf.switch_case(kind(head), readers)
    image.set_shape([None, None, channels])
    return image


def luma(image: tf.Tensor) -> tf.Tensor:
    """Gray as Pillow computes it: ⌊(19595 R + 38470 G + 7471 B + 32768) / 65536⌋, `(height, width, 1)` of the same dtype."""
    exact = tf.int32 if image.dtype == tf.uint8 else tf.int64
    weighted = tf.reduce_sum(tf.cast(image, exact) * tf.constant([19595, 38470, 7471], exact), axis=-1, keepdims=True)
    return tf.cast((weighted + 32768) // 65536, image.dtype)


def with_opacity(image: tf.Tensor) -> tf.Tensor:
    """RGB with a fourth channel that hides nothing."""
    return tf.concat([image, tf.fill(tf.concat([tf.shape(image)[:2], [1]], axis=0), tf.constant(image.dtype.max, image.dtype))], axis=-1)


def head_of(contents: tf.Tensor) -> tf.Tensor:
    """The first 64 bytes of a file as int32 `(64,)`, zeros behind the end of a shorter one."""
    return tf.cast(tf.io.decode_raw(contents, tf.uint8, fixed_length=_HEAD), tf.int32)


def is_jpeg(head: tf.Tensor) -> tf.Tensor:
    """Returns whether files that start with `head`, `(..., n)`, are JPEGs."""
    return tf.reduce_all(head[..., :3] == tf.constant(_JPEG, head.dtype), axis=-1)


def kind(head: tf.Tensor) -> tf.Tensor:
    """Returns what a file that is no JPEG is: int32 scalar, 0 to 6 for PNG, GIF, BMP, WebP, TIFF, what only Pillow reads
    (PPM and its kin, HEIC, AVIF, JPEG XL), and anything else."""
    bytes_, counts, kinds = _magics()
    same = (head[: len(bytes_[0])] == tf.constant(bytes_, head.dtype)) | ~tf.constant(counts)
    return tf.gather(kinds, tf.argmax(tf.reduce_all(same, axis=1)))


@cache
def _magics() -> tuple[list[list[int]], list[list[bool]], list[int]]:
    """Returns what files start with: the bytes, which of them count, and the kind. The last fits every file."""
    by_pillow = [b"P%c%c" % (digit, space) for digit in b"123456" for space in _SPACE]
    by_pillow += [b"????ftyp", b"\xff\x0a", b"\0\0\0\x0cJXL "]  # HEIC and AVIF, which the library tells apart, and JPEG XL
    # No magic number has a question mark: here it stands for any byte.
    starts = [[b"\x89PNG\r\n\x1a\n"], [b"GIF8"], [b"BM"], [b"RIFF????WEBP"], [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"], by_pillow, [b""]]
    flat = [(start.ljust(12, b"?"), kind) for kind, every in enumerate(starts) for start in every]
    return [[*start] for start, _ in flat], [[byte != ord("?") for byte in start] for start, _ in flat], [kind for _, kind in flat]


def sure(*checks: tuple[tf.Tensor, str]) -> Any:
    """A context in which every condition is known to hold; the message of one that does not goes on from the name of the file."""
    # The raw op, since `tf.debugging.Assert` wraps it in a branch of its own. Eagerly it returns `None`.
    of = "" if target() == "process" else "an image of the request "
    asserts = [tf.raw_ops.Assert(condition=condition, data=[of + message]) for condition, message in checks]
    return tf.control_dependencies([a for a in asserts if a is not None])


def refused(contents: tf.Tensor, message: str, dtype: tf.DType) -> tf.Tensor:
    """No pixels of a file, for the reason that `message` says, unless it is empty."""
    with sure((tf.strings.length(contents) != 0, "is empty"), (tf.constant(False), message)):
        return tf.zeros([0, 0, 1], dtype)


def _whole(digits: tf.Tensor) -> tf.Tensor:
    """Little-endian bytes as one number; four bytes wrap around to a signed one."""
    return tf.reduce_sum(digits * [256**i for i in range(digits.shape[0])])


def _read(contents: tf.Tensor, channels: int, *checks: tuple[tf.Tensor, str]) -> tf.Tensor:
    """Decode after making sure of each condition."""
    with sure(*checks):
        return tf.io.decode_image(contents, channels, expand_animations=False)


def _png(contents: tf.Tensor, head: tf.Tensor, channels: int) -> tf.Tensor:
    # TensorFlow would drop the lower 8 bits without a word.
    return _read(contents, channels, (head[24] != 16, too_deep("a 16-bit PNG")))


def _bmp(contents: tf.Tensor, head: tf.Tensor) -> tf.Tensor:
    bits, packing = _whole(head[28:30]), _whole(head[30:34])
    known = tf.reduce_any(bits == [8, 24, 32]) & tf.reduce_any(packing == [_BITMAP_PLAIN, _BITMAP_FIELDS])
    image = _read(contents, 0, (known, "is a compressed BMP or one of less than 8 bits a pixel; save it as PNG"))

    def coloured() -> tf.Tensor:
        """TensorFlow gives the index into the palette, which follows the header: blue, green, red, unused."""
        start = 14 + _whole(head[14:18])
        stored = tf.clip_by_value((_whole(head[10:14]) - start) // 4, 0, 256)
        colours = tf.io.decode_raw(tf.strings.substr(contents, start, 4 * stored), tf.uint8, fixed_length=4 * 256)
        palette = tf.reverse(tf.reshape(colours, [256, 4])[:, :3], axis=[1])
        return tf.gather(palette, tf.cast(image[..., 0], tf.int32))

    return tf.cond(bits == 8, coloured, lambda: image[..., :3])


def _webp(contents: tf.Tensor, head: tf.Tensor, channels: int) -> tf.Tensor:
    # TensorFlow 2.21 corrupts its memory on an animation. The flag stands in the extended header.
    extended = tf.reduce_all(head[12:16] == list(b"VP8X"))
    animated = extended & (tf.bitwise.bitwise_and(head[20], _ANIMATION) != 0)
    readable = tf.constant(hasattr(tf.raw_ops, "DecodeWebP"))
    old = f"is a WebP image, which TensorFlow {tf.version.VERSION} cannot read; TensorFlow 2.21 can"
    moving = "is an animated WebP image, which TensorFlow cannot read; save one frame of it"
    return _read(contents, 4 if channels == 4 else 0, (readable, old), (~animated, moving))[..., : max(channels, 3)]


def _unknown(contents: tf.Tensor) -> tf.Tensor:
    return refused(contents, "is not a JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM or PBM image", tf.uint8)
