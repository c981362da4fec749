"""Decoding of masks to class indices: stored values, and palette indices rather than colours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pipegen.lazy import np, tf
from pipegen.ops.lowering.decoding import PNG
from pipegen.ops.lowering.graphs import asserted, target
from pipegen.ops.lowering.python_calls import numpy_function

_DEPTH_AT, _COLOUR_AT = 24, 25
"""Offsets in a PNG's header of the bits of a sample, and of the colour type: gray, colour or palette (W3C, PNG Specification, 11.2.2)."""
_GRAY = 0
_STORED = 1 << 16
_NONE = -1


def decode_mask(contents: tf.Tensor, values: Sequence[tuple[int, int]] | None) -> tf.Tensor:
    """Decodes a mask, a string scalar, to uint8 `(height, width, 1)`, by pairs of a stored value, 0 to 65535, and its class index, or
    `None` if stored values are indices.

    A gray PNG is read in the graph; other files by Pillow, since TensorFlow converts palette indices to colours. A file with several
    channels, and a value without a class, raise `tf.errors.InvalidArgumentError`.
    """
    gray = tf.strings.substr(contents, 0, len(PNG)) == PNG
    header = tf.io.decode_raw(contents, tf.uint8, fixed_length=_COLOUR_AT + 1)
    depth, colour = (tf.cast(header[at], tf.int32) for at in (_DEPTH_AT, _COLOUR_AT))

    def read() -> tf.Tensor:
        return tf.cond(depth == 16, lambda: tf.cast(tf.io.decode_png(contents, 1, tf.uint16), tf.int32), small)

    def small() -> tf.Tensor:
        # The decoder scales samples of 1, 2 and 4 bits to the range of a byte.
        widest = tf.bitwise.left_shift(1, depth) - 1
        return tf.cast(tf.io.decode_png(contents, 1), tf.int32) * widest // 255

    def other() -> tf.Tensor:
        if target() == "process":
            return numpy_function(partial(_by_pillow, values), [contents], tf.int32)
        with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.constant(False), data=["only gray PNG masks can be read"])]):
            return tf.zeros([0, 0, 1], tf.int32)

    stored = tf.cond(gray & (colour == _GRAY), read, other)
    stored.set_shape([None, None, 1])
    return _indices(stored, values)


def _indices(stored: tf.Tensor, values: Sequence[tuple[int, int]] | None) -> tf.Tensor:
    """Looks up the class index of each stored value, int32 `(height, width, 1)`, as uint8."""
    if values is None:
        found, odd, why = stored, tf.reduce_max(stored), "and class indices go up to 255; give it `values`"
        holds = odd <= 255
    else:
        table: np.ndarray[Any, Any] = np.full(_STORED, _NONE, np.int32)
        for value, index in values:
            table[value] = index
        found, why = tf.gather(tf.constant(table), stored), "which is none of its `values` or `classes`"
        odd = tf.reduce_max(tf.where(found == _NONE, stored, _NONE))
        holds = odd == _NONE
    return tf.cast(asserted(found, holds, tf.strings.format(f"the mask holds {{}}, {why}", odd)), tf.uint8)


def _by_pillow(values: Sequence[tuple[int, int]] | None, given: Any) -> np.ndarray[Any, Any]:
    """Reads the stored values of a file, int32 `(height, width, 1)`; outside a graph, TensorFlow passes an array of one object."""
    import io

    from PIL import Image, UnidentifiedImageError

    contents = given if isinstance(given, bytes) else given.item()
    try:
        opened = Image.open(io.BytesIO(contents))
    except UnidentifiedImageError:
        raise ValueError("it is not a readable image, or is damaged") from None
    with opened as image:
        if image.mode not in ("1", "L", "P", "I", "I;16", "I;16B"):
            found = f"{len(image.getbands())} channels ({image.mode})"
            raise ValueError(f"a mask has one value a pixel, as gray or as a palette's index, and this file has {found}")
        stored, lossy = np.asarray(image).astype(np.int32), image.format == "JPEG"
    if stored.min(initial=0) < 0 or stored.max(initial=0) >= _STORED:
        raise ValueError(f"the mask holds values outside 0..{_STORED - 1}")
    odd = sorted({*np.unique(stored).tolist()} - {value for value, _ in values}) if lossy and values is not None else []
    if odd:
        raise ValueError(f"the mask is a JPEG, which changes values, and holds {odd[0]}, which is none of its `values`: save masks as PNG")
    return stored[..., None]
