"""Gaussian blur: what the random and the deterministic form share."""

from __future__ import annotations

from collections.abc import Callable

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, symmetric_range
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.filters import filter_columns, filter_rows, widen

LARGEST = 10.0
"""The largest sigma, in pixels. A wider filter costs more than the rest of a recipe; a smaller image shows the same."""


class BlurTransform(NeighbourhoodTransform):
    """A separable Gaussian filter of one radius for all examples."""

    symmetric = True

    def radius(self) -> int:
        """Returns how many pixels to each side are read."""
        raise NotImplementedError

    def weight(self) -> float:
        return 0.4 + 0.1 * self.radius()

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return widen, filter_rows, filter_columns


def sigma_lints(op: str, name: str, sigma: Magnitude) -> tuple[OpError, ...]:
    """Reports what is odd about the sigma of a blur."""
    largest = symmetric_range(sigma)[1]
    if 0 < largest < 0.3:
        message = f"`{op}` blurs by less than a third of a pixel, which nobody sees"
        return (OpError("PG510", message, field=name, help=f"`{name}` is in pixels, and not a fraction of the image"),)
    return ()
