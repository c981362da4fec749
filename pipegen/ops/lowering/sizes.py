"""The size of an image, out of its file's first bytes."""

from __future__ import annotations

from typing import Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.deep import decode_deep
from pipegen.ops.lowering.exif import orientation, swaps_sides
from pipegen.ops.lowering.formats import decode_other
from pipegen.ops.lowering.once import once

PNG = b"\x89PNG\r\n\x1a\n"
"""How a PNG starts."""
_PNG_SIDES = 16
"""Where a PNG has its width and its height, four bytes each, the highest first."""


def stored_size(contents: tf.Tensor, *, exif: Literal["apply", "ignore"], bits: int = 8) -> tf.Tensor:
    """The height and width that a decoded file has, in pixels.

    Args:
        contents: string scalar: a file's bytes.
        exif: Whether images are turned upright.
        bits: What the file is decoded to, 8 or 16.

    Returns:
        int32 `(2,)`.
    """

    def upright(size: tf.Tensor) -> tf.Tensor:
        return tf.where(swaps_sides(once(orientation, contents)), tf.reverse(size, [0]), size) if exif == "apply" else size

    def jpeg() -> tf.Tensor:
        return upright(tf.io.extract_jpeg_shape(contents)[:2])

    def png() -> tf.Tensor:
        sides = tf.io.decode_raw(tf.strings.substr(contents, _PNG_SIDES, 8), tf.int32, little_endian=False)
        return upright(tf.reverse(tf.ensure_shape(sides, [2]), [0]))

    def other() -> tf.Tensor:
        return tf.shape(once(decode_other if bits == 8 else decode_deep, contents, channels=3, exif=exif))[:2]

    starts = [tf.strings.substr(contents, 0, len(PNG)) == PNG, tf.strings.substr(contents, 0, 3) == b"\xff\xd8\xff"]
    return tf.case([(starts[0], png), (starts[1], jpeg)], default=other)
