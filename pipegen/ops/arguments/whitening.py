"""A whitening transform as it was learned from images: what is subtracted, and the matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Whitening:
    """y = (x - mean) · matrix, on images whose values stand in one row.

    Attributes:
        count: How many images it was learned from.
        epsilon: What was added to each of the variances.
        mean: What is subtracted, float64 `(values,)`.
        matrix: float32 `(values, values)`, symmetric.
        variances: Of the images along their principal components, without `epsilon`, in ascending order: float64 `(values,)`;
            empty for a matrix that comes from elsewhere.
        digest: Hexadecimal digits that stand for all of these.
    """

    suffix: ClassVar[str] = "npz"

    count: int
    epsilon: float
    mean: Array = field(compare=False, repr=False)
    matrix: Array = field(compare=False, repr=False)
    variances: Array = field(compare=False, repr=False)
    digest: str

    @cached_property
    def reach(self) -> tuple[Array, Array, Array]:
        """Returns what bounds the values that leave: of each column of the matrix the sum of what is positive, the sum of what is
        negative, and its product with the mean. float64 `(values,)` each."""
        from pipegen.ops.lowering.whitening import reach

        return reach(self)

    @property
    def below(self) -> int:
        """Along how many of the principal components the images vary by less than `epsilon`."""
        return int((self.variances < self.epsilon).sum())

    def figures(self) -> dict[str, str]:
        """The size of the matrix, and how the variances compare with `epsilon`."""
        values = len(self.mean)
        if not len(self.variances):
            return {"matrix": f"{values:,}×{values:,}"}
        ends = f"{self.variances[0]:.3g} to {self.variances[-1]:.3g}"
        return {"matrix": f"{values:,}×{values:,}", "variances": f"{ends}, {self.below:,} of {values:,} below epsilon {self.epsilon:g}"}

    def as_json(self) -> dict[str, Any]:
        """The size of an image, and of the variances the ends, the sum, and how many are below `epsilon`."""
        ends = {"smallest": float(self.variances[0]), "largest": float(self.variances[-1]), "sum": float(self.variances.sum())}
        return {"values": len(self.mean), "variances": {**ends, "below_epsilon": self.below}, "epsilon": self.epsilon}

    def doubts(self, op: str, feature: str) -> tuple[str, ...]:
        """Reports an `epsilon` that decides more than the images do."""
        values = len(self.mean)
        if self.count <= values:
            why = f"{self.count:,} examples span at most {max(self.count - 1, 0):,} of the {values:,} directions of `{feature}`"
            advice = (
                "along the others `epsilon` alone decides, and other images are magnified there: take smaller images, or a larger `epsilon`"
            )
            return (f"`{op}`: {why}; {advice}",)
        if 2 * self.below > values:
            why = f"along {self.below:,} of the {values:,} directions of `{feature}` the images of split train vary by less than `epsilon`"
            return (f"`{op}`: {why}, which is in squared units of the values: a smaller one may be meant",)
        return ()

    def to_bytes(self, about: Mapping[str, Any]) -> bytes:
        """A `.npz` file of plain arrays."""
        from pipegen.ops.lowering.whitening import packed

        return packed(self, about)

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple[dict[str, Any], Whitening]:
        """See `Statistics`."""
        from pipegen.ops.lowering.whitening import unpacked

        return unpacked(content)
