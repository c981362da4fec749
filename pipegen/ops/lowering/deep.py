"""A file's bytes become pixels of 16 bits. TensorFlow reads PNG, and a library the rest; formats that have no 16 bits are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.exif import upright_png
from pipegen.ops.lowering.formats import GRAY_TYPES, head_of, is_jpeg, kind, luma, refused, sure
from pipegen.ops.lowering.library import read_by_library, too_shallow

_AFTER_KINDS = 7
"""The branch of a JPEG, behind those of `kind`."""


def decode_deep(contents: tf.Tensor, channels: int, *, exif: Literal["apply", "ignore"] = "apply") -> tf.Tensor:
    """Decodes a PNG, TIFF, PGM or PPM file of 16 bits to uint16, as `decode_other` does one of 8; files of less are refused."""
    head = head_of(contents)
    number = tf.where(is_jpeg(head), _AFTER_KINDS, kind(head))

    def shallow(name: str) -> Callable[[], tf.Tensor]:
        return lambda: refused(contents, too_shallow(name), tf.uint16)

    def library() -> tf.Tensor:
        return read_by_library(contents, channels, 16, exif=exif)

    def png() -> tf.Tensor:
        def read() -> tf.Tensor:
            return _png(contents, head, channels)

        return upright_png(contents, read) if exif == "apply" else read()

    # In the order of `kind`: PNG, GIF, BMP, WebP, TIFF, Netpbm, unknown; then JPEG.
    others = [shallow(name) for name in ("a GIF", "a BMP image", "a WebP image")]
    unknown = [lambda: refused(contents, "is not a PNG, TIFF, PGM or PPM image", tf.uint16), shallow("a JPEG")]
    image = tf.switch_case(number, [png, *others, library, library, *unknown])
    image.set_shape([None, None, channels])
    return image


def _png(contents: tf.Tensor, head: tf.Tensor, channels: int) -> tf.Tensor:
    # TensorFlow would multiply 8 bits by 257 without a word.
    with sure((head[24] == 16, too_shallow("a PNG of 8 bits or less"))):
        known = tf.identity(contents)
    if channels != 1:
        return tf.io.decode_png(known, channels, dtype=tf.uint16)
    gray = tf.reduce_any(head[25] == list(GRAY_TYPES))
    return tf.cond(
        gray,
        lambda: tf.io.decode_png(known, 1, dtype=tf.uint16),
        lambda: luma(tf.io.decode_png(known, 3, dtype=tf.uint16)),
    )
