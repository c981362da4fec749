"""Compares the pixels of two records at 64×64, so that what only hashes alike is told from a copy."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.quality.looks import CHUNK, at_once
from pipegen.quality.perceptual import gray
from pipegen.quality.pictures import NotAPictureError, cut

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from pipegen.quality.pictures import Pictures

    Array: TypeAlias = np.ndarray[Any, Any]

_SMALL = 64
_CUTS = (0.0, 0.015, 0.03)
"""What is cut off each side of one of two pictures, as fractions: a copy may show less than all, and fine patterns only fit if they lie
one on the other."""
_GRAY = 4.0
"""The mean difference of the channels, of 255, below which a picture has no colour."""
_SURE = 0.98
"""Where two whole pictures correlate so well, they are not compared cut."""
_AT_ONCE = 128


def likeness(pictures: Pictures, pairs: Array, mirrored: Array, workers: int, progress: Callable[[int], None] | None = None) -> Array:
    """Correlates the pixels of pairs of records, and of each cut a little with the whole other one; the best counts.

    The correlation is that of all values of RGB together, so that another brightness or contrast changes nothing, and another colour does;
    of luma where one of the two has no colour. Where the whole pictures reach 0.98, that is it.

    Args:
        pictures: Reads them.
        pairs: int64 `(n, 2)`, numbers of records.
        mirrored: bool `(n,)`, whether the second is compared by its mirror image.
        workers: Pictures that are read at once.
        progress: Called with how many were read.

    Returns:
        float64 `(n,)`, -1 to 1; 0 where one cannot be read.
    """
    wanted = np.unique(pairs)
    found: Array = np.zeros(len(pairs))
    if not len(wanted):
        return found
    shape = (len(wanted), len(_CUTS), _SMALL, _SMALL, 3)
    with tempfile.TemporaryFile() as file:  # 72 KiB of each record, which the system may keep out of memory
        views: Array = np.memmap(file, np.float16, "w+", shape=shape)
        colourless: Array = np.zeros(len(wanted), bool)
        chunks = [wanted[i : i + CHUNK].tolist() for i in range(0, len(wanted), CHUNK)]
        place = 0
        for several in at_once(lambda chunk: [_views(pictures, record) for record in chunk], chunks, workers):
            for seen in several:
                if seen is not None:
                    views[place], colourless[place] = seen
                place += 1
            if progress is not None:
                progress(place)
        for start in range(0, len(pairs), _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            one, other = (np.searchsorted(wanted, pairs[block, i]) for i in (0, 1))
            found[block] = _best(views[one], views[other], mirrored[block], colourless[one] | colourless[other])
        del views
    return found


def _views(pictures: Pictures, record: int) -> tuple[Array, bool] | None:
    """A picture whole and cut, less its mean, float16 `(cuts, 64, 64, 3)`, and whether it has no colour."""
    try:
        small = pictures.read(record).small
    except (OSError, NotAPictureError):
        return None
    views = np.stack([cut(small, part, _SMALL) for part in _CUTS])
    colourless = float((small.max(-1) - small.min(-1)).mean()) < _GRAY
    return (views - views.mean((1, 2, 3), keepdims=True)).astype(np.float16), colourless


def _best(one: Array, other: Array, mirrored: Array, colourless: Array) -> Array:
    """The likeness of pairs of views `(n, cuts, 64, 64, 3)`."""
    one, other = one.astype(np.float32), other.astype(np.float32)
    other[mirrored] = other[mirrored, :, :, ::-1]
    for views in (one, other):
        views[colourless] = gray(views[colourless])[..., None]
        np.subtract(views, views.mean((2, 3, 4), keepdims=True), out=views)
    best = _correlation(one[:, 0], other[:, 0])
    unsure: Array = np.flatnonzero(best < _SURE)
    ways = [*((0, cut) for cut in range(1, len(_CUTS))), *((cut, 0) for cut in range(1, len(_CUTS)))]
    for a, b in ways if len(unsure) else ():
        best[unsure] = np.maximum(best[unsure], _correlation(one[unsure, a], other[unsure, b]))
    return best


def _correlation(one: Array, other: Array) -> Array:
    """The correlation of centred pictures `(n, ...)`, float64; 0 where one has a single value."""
    one, other = (views.reshape(len(views), -1) for views in (one, other))
    product, a, b = (np.einsum("ij,ij->i", x, y).astype(np.float64) for x, y in ((one, other), (one, one), (other, other)))
    norm: Array = np.sqrt(a * b)
    found: Array = np.divide(product, norm, out=np.zeros(len(one)), where=norm > 0)
    return np.minimum(found, 1.0)
