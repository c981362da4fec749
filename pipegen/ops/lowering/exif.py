"""The orientation that a camera wrote into a JPEG, read and applied inside the graph."""

from __future__ import annotations

from pipegen.lazy import tf

ORIENTATION_TAG = 0x0112
SHORT = 3
SEARCHED = 65536
"""Bytes at the start of a file in which EXIF is looked for: the Exif standard puts it into the first segment."""
MOST_ENTRIES = 128
"""Entries of the first image file directory that are looked at; their tags ascend, and this one's is low."""

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
"""How each orientation is turned upright: whether rows and columns change places, and which axes are reversed then."""

# RE2 reads a pattern as UTF-8, so bytes above 127 cannot be written in it: `\C` is any byte. Before `Exif` stand the
# marker FF E1 and the length of the segment.
_TO_TIFF = r"(?s)^\C*?\C\C\C\CExif\x00\x00"


def orientation(contents: tf.Tensor) -> tf.Tensor:
    """The EXIF orientation of a JPEG.

    Args:
        contents: string scalar: a file's bytes.

    Returns:
        int32 scalar from 1 to 8; 1 when there is none or it makes no sense.
    """
    start = tf.strings.substr(contents, 0, SEARCHED)
    tiff = tf.io.decode_raw(tf.strings.regex_replace(start, _TO_TIFF, "", replace_global=False), tf.uint8, fixed_length=SEARCHED)
    mark = tf.cast(tiff[:4], tf.int32)
    little = tf.reduce_all(mark == [0x49, 0x49, 0x2A, 0x00])
    big = tf.reduce_all(mark == [0x4D, 0x4D, 0x00, 0x2A])

    def whole(part: tf.Tensor) -> tf.Tensor:
        """The last axis of bytes as one unsigned number, in the file's byte order."""
        powers = [256**i for i in range(part.shape[-1])]
        weights = tf.where(little, tf.constant(powers, tf.int64), tf.constant(powers[::-1], tf.int64))
        return tf.reduce_sum(tf.cast(part, tf.int64) * weights, axis=-1)

    offset = tf.cast(tf.clip_by_value(whole(tiff[4:8]), 0, SEARCHED - 2), tf.int32)
    listed = tf.cast(whole(tf.slice(tiff, [offset], [2])), tf.int32)
    entries = tf.minimum(tf.minimum(listed, MOST_ENTRIES), (SEARCHED - 2 - offset) // 12)
    table = tf.reshape(tf.slice(tiff, [offset + 2], [12 * entries]), [-1, 12])
    found = (whole(table[:, 0:2]) == ORIENTATION_TAG) & (whole(table[:, 2:4]) == SHORT)
    value = tf.reduce_max(tf.concat([tf.where(found, whole(table[:, 8:10]), 0), [0]], axis=0))
    sane = (little | big) & (value >= 1) & (value <= 8)
    return tf.cast(tf.where(sane, value, 1), tf.int32)


def swaps_sides(orientation: tf.Tensor) -> tf.Tensor:
    """Returns whether the stored rows are the columns of the picture."""
    return orientation >= 5


def orient(image: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Turn a stored image upright, as Pillow's `ImageOps.exif_transpose` does.

    Args:
        image: `(height, width, channels)` as stored.
        orientation: int32 scalar from 1 to 8.

    Returns:
        The upright image; from 5 on, height and width change places.
    """
    orders = tf.constant([[1, 0, 2] if transposes else [0, 1, 2] for transposes, _ in TURNS.values()])
    mirrors = tf.constant([[axis in mirrored for axis in range(3)] for _, mirrored in TURNS.values()])

    def turned() -> tf.Tensor:
        mirrored = tf.reshape(tf.where(tf.gather(mirrors, orientation - 1)), [-1])
        return tf.reverse(tf.transpose(image, tf.gather(orders, orientation - 1)), mirrored)

    y = tf.cond(orientation == 1, lambda: tf.identity(image), turned)
    y.set_shape([None, None, image.shape[-1]])
    return y
