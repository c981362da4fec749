"""Statistics of images over a whole array, in one pass, in float64 and in little memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.compat.images import Array

LARGEST_WHITENING = 16_384
"""Values of an image up to which its whitening matrix is computed: 2 GiB in float64."""


def moments(blocks: Iterable[Array], channel_axis: int) -> tuple[Array, Array]:
    """The mean and the standard deviation of each channel.

    Blocks are merged by the update of T. Chan, G. Golub and R. LeVeque (Updating Formulae and a Pairwise Algorithm for Computing Sample
    Variances, 1979), which does not cancel where the mean is large beside the deviation.

    Args:
        blocks: Batches of images, 4 dimensions.
        channel_axis: The axis of the channels in them.

    Returns:
        Two float64 arrays `(channels,)`.
    """
    import numpy as np

    count, mean, square = 0, np.zeros(()), np.zeros(())
    axes = tuple(a for a in range(4) if a != channel_axis)
    for block in blocks:
        x = np.asarray(block, np.float64)
        n = x.size // x.shape[channel_axis]
        own = x.mean(axes, keepdims=True)
        spread = ((x - own) ** 2).sum(axes)
        delta = own.reshape(-1) - mean
        square = square + spread + delta**2 * (count * n / (count + n))
        mean = mean + delta * (n / (count + n))
        count += n
    return mean, np.sqrt(square / count)


def whitening(rows: Array, epsilon: float) -> Array:
    """The matrix that whitens centred rows by their principal components and turns them back (ZCA).

    It is u · diag(sqrt(n) / (s + epsilon)) · u', with u and s from the thin singular value decomposition of the rows, so that directions in
    which the rows do not vary are taken out rather than amplified.

    Args:
        rows: float64 `(n, values)`.
        epsilon: Added to the singular values.

    Returns:
        float64 `(values, values)`.

    Raises:
        ValueError: When the matrix would not fit into memory.
    """
    import numpy as np

    n, values = rows.shape
    if values > LARGEST_WHITENING:
        gib = values**2 * 8 / 2**30
        message = f"`zca_whitening` of {values:,} values an image needs a matrix of {gib:.1f} GiB"
        raise ValueError(f"{message}; whiten smaller images, of at most {LARGEST_WHITENING:,} values (73×73×3)")
    u, s, _ = np.linalg.svd(rows.T, full_matrices=False)
    return (u * (np.sqrt(n) / (s + epsilon))) @ u.T
