"""Medians of 3 by 3 or 5 by 5 values, by least and greatest of two: networks without a choice, on whole lines at once.

The columns of a square are sorted once for all squares that they are in. Rows of what is sorted are then sorted as far as the median
can still lie in them (Huang, Yang and Tang's columns, as networks).
"""

from __future__ import annotations

from collections.abc import Sequence

from pipegen.lazy import tf
from pipegen.ops.lowering.filters import Whole


def sorted_columns(wide: tf.Tensor, size: int, height: Whole) -> tuple[tf.Tensor, ...]:
    """Sorts each `size` values one above the other: the lines `(n, height, ...)` of the least, the second, and so on.

    Args:
        wide: Lines of images with `size // 2` more pixels on every side.
        size: How many rows a column has.
        height: Of the images.
    """
    return tuple(_sorted([wide[:, row : row + height] for row in range(size)]))


def middle(columns: Sequence[tf.Tensor], line: Whole, channels: int) -> tf.Tensor:
    """The medians, lines `(n, height, line)`, from `sorted_columns`; `line` is how many values a line of the images has."""
    size = len(columns)

    def row(rank: int) -> list[tf.Tensor]:
        return [columns[rank][:, :, at * channels : at * channels + line] for at in range(size)]

    # In a square whose columns and rows are sorted, what has too many below or above it is not the median.
    half, places = size * size // 2 + 1, range(size)
    left = [
        value
        for rank in places
        for place, value in enumerate(_sorted(row(rank)))
        if (rank + 1) * (place + 1) <= half and (size - rank) * (size - place) <= half
    ]
    return _sorted(left)[len(left) // 2]


def _sorted(values: list[tf.Tensor]) -> list[tf.Tensor]:
    """Tensors of one shape, sorted value by value: Batcher's odd-even merge sort, for any count (Knuth, 5.2.2, algorithm M)."""
    found, count = [*values], len(values)
    first = p = 1 << ((count - 1).bit_length() - 1)
    while p:
        q, r, d = first, 0, p
        while True:
            for i in range(count - d):
                if i & p == r:
                    a, b = found[i], found[i + d]
                    found[i], found[i + d] = tf.minimum(a, b), tf.maximum(a, b)
            if q == p:
                break
            q, r, d = q // 2, p, q - p
        p //= 2
    return found
