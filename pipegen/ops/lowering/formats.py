"""PNG, GIF, BMP and WebP: what `tf.io.decode_image` reads, and what it would read wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import tensorflow as tf

_HEAD = 64
_BITMAP_PLAIN, _BITMAP_FIELDS = 0, 3
_ANIMATION = 2


def decode_other(contents: tf.Tensor, channels: int) -> tf.Tensor:
    """Decode a file that is no JPEG; of an animation, the first frame. Transparency is dropped.

    Args:
        contents: string scalar: a file's bytes.
        channels: 3 or 1.

    Returns:
        uint8 `(height, width, channels)`.
    """
    import tensorflow as tf

    head = _head(contents)
    colour: list[Callable[[], tf.Tensor]] = [
        lambda: _read(contents, 3),
        lambda: _bmp(contents, head),
        lambda: _webp(contents, head),
        lambda: _unknown(contents),
    ]

    def as_asked(read: Callable[[], tf.Tensor]) -> Callable[[], tf.Tensor]:
        return read if channels == 3 else lambda: luma(read())

    # libpng makes gray by itself; the others know colour only.
    image = tf.switch_case(_kind(head), [lambda: _png(contents, head, channels), *map(as_asked, colour)])
    image.set_shape([None, None, channels])
    return image


def luma(image: tf.Tensor) -> tf.Tensor:
    """Gray as Pillow computes it: ⌊(19595 R + 38470 G + 7471 B + 32768) / 65536⌋, uint8 `(height, width, 1)`."""
    import tensorflow as tf

    weighted = tf.reduce_sum(tf.cast(image, tf.int32) * [19595, 38470, 7471], axis=-1, keepdims=True)
    return tf.cast((weighted + 32768) // 65536, tf.uint8)


def _head(contents: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    return tf.cast(tf.io.decode_raw(contents, tf.uint8, fixed_length=_HEAD), tf.int32)


def _whole(digits: tf.Tensor) -> tf.Tensor:
    """Little-endian bytes as one number; four bytes wrap around to a signed one."""
    import tensorflow as tf

    return tf.reduce_sum(digits * [256**i for i in range(digits.shape[0])])


def _kind(head: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    def starts(magic: bytes, at: int = 0) -> tf.Tensor:
        return tf.reduce_all(head[at : at + len(magic)] == list(magic))

    # In the order of the branches of `decode_other`.
    webp = starts(b"RIFF") & starts(b"WEBP", 8)
    matches = [starts(b"\x89PNG\r\n\x1a\n"), starts(b"GIF8"), starts(b"BM"), webp, tf.constant(True)]
    return tf.argmax(tf.cast(tf.stack(matches), tf.int32), output_type=tf.int32)


def _read(contents: tf.Tensor, channels: int, *checks: tuple[tf.Tensor, str]) -> tf.Tensor:
    """Decode after making sure of each condition; the message goes on from the name of the file."""
    import tensorflow as tf

    # The raw op, since `tf.debugging.Assert` wraps it in a branch of its own. Eagerly it returns `None`.
    asserts = [tf.raw_ops.Assert(condition=condition, data=[message]) for condition, message in checks]
    with tf.control_dependencies([a for a in asserts if a is not None]):
        return tf.io.decode_image(contents, channels, expand_animations=False)


def _png(contents: tf.Tensor, head: tf.Tensor, channels: int) -> tf.Tensor:
    # TensorFlow would drop the lower 8 bits without a word.
    deep = "is a 16-bit PNG, which `decode` would cut to 8 bits; convert it to 8 bits"
    return _read(contents, channels, (head[24] != 16, deep))


def _bmp(contents: tf.Tensor, head: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

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


def _webp(contents: tf.Tensor, head: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    # TensorFlow 2.21 corrupts its memory on an animation. The flag stands in the extended header.
    extended = tf.reduce_all(head[12:16] == list(b"VP8X"))
    animated = extended & (tf.bitwise.bitwise_and(head[20], _ANIMATION) != 0)
    readable = tf.constant(hasattr(tf.raw_ops, "DecodeWebP"))
    old = f"is a WebP image, which TensorFlow {tf.__version__} cannot read; TensorFlow 2.21 can"
    moving = "is an animated WebP image, which TensorFlow cannot read; save one frame of it"
    return _read(contents, 0, (readable, old), (~animated, moving))[..., :3]


def _unknown(contents: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    empty = tf.strings.length(contents) == 0
    checks = ((~empty, "is empty"), (tf.constant(False), "is not a JPEG, PNG, GIF, BMP or WebP image"))
    return _read(contents, 3, *checks)
