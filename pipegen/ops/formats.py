"""PNG, GIF, BMP and WebP: what `tf.io.decode_image` reads, and what it would read wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

_HEAD = 64
_PNG, _GIF, _BMP, _WEBP, _UNKNOWN = range(5)
_BITMAP_PLAIN, _BITMAP_FIELDS = 0, 3


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
    rgb = [_png(contents, head, channels), _gif(contents), _bmp(contents, head), _webp(contents), _unknown(contents)]
    if channels == 1:  # libpng makes gray by itself
        rgb = [rgb[_PNG], *(lambda branch=branch: luma(branch()) for branch in rgb[_GIF:])]
    image = tf.switch_case(_kind(head), rgb)
    image.set_shape([None, None, channels])
    return image


def other_size(contents: tf.Tensor) -> tf.Tensor:
    """int32 `(2,)`: height and width in pixels, from the header where that is enough."""
    import tensorflow as tf

    head = _head(contents)

    def decoded() -> tf.Tensor:
        return tf.shape(decode_other(contents, 3))[:2]

    def png() -> tf.Tensor:
        return tf.stack([_whole(head[20:24][::-1]), _whole(head[16:20][::-1])])

    def bmp() -> tf.Tensor:  # a negative height means that rows are stored from the top
        return tf.stack([tf.abs(_whole(head[22:26])), _whole(head[18:22])])

    return tf.switch_case(_kind(head), [png, decoded, bmp, decoded, decoded])


def luma(image: tf.Tensor) -> tf.Tensor:
    """Gray as Pillow computes it: ⌊(19595 R + 38470 G + 7471 B + 32768) / 65536⌋, uint8 `(height, width, 1)`."""
    import tensorflow as tf

    weighted = tf.reduce_sum(tf.cast(image, tf.int32) * [19595, 38470, 7471], axis=-1, keepdims=True)
    return tf.cast((weighted + 32768) // 65536, tf.uint8)


def _head(contents: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    return tf.cast(tf.io.decode_raw(contents, tf.uint8, fixed_length=_HEAD), tf.int32)


def _whole(digits: tf.Tensor) -> tf.Tensor:
    """Little-endian bytes as one number; four bytes are signed."""
    import tensorflow as tf

    return tf.reduce_sum(digits * [256**i if i < 3 else 1 << 24 for i in range(digits.shape[0])])


def _kind(head: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    def starts(magic: bytes, at: int = 0) -> tf.Tensor:
        return tf.reduce_all(head[at : at + len(magic)] == list(magic))

    webp = starts(b"RIFF") & starts(b"WEBP", 8)
    matches = [starts(b"\x89PNG\r\n\x1a\n"), starts(b"GIF8"), starts(b"BM"), webp, tf.constant(True)]
    return tf.argmax(tf.cast(tf.stack(matches), tf.int32), output_type=tf.int32)


def _require(condition: tf.Tensor, message: str) -> tf.Operation | None:
    """An assertion without the branch that `tf.debugging.Assert` wraps it in. Eagerly it runs and gives `None`."""
    import tensorflow as tf

    return tf.raw_ops.Assert(condition=condition, data=[message])


def _after(checks: list, read):  # type: ignore[no-untyped-def, type-arg]
    import tensorflow as tf

    with tf.control_dependencies([c for c in checks if c is not None]):
        return read()


def _read(contents: tf.Tensor, channels: int) -> tf.Tensor:
    import tensorflow as tf

    return tf.io.decode_image(contents, channels, expand_animations=False)
