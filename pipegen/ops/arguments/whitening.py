"""A whitening transform as it was learned from images: what is subtracted, and the matrix."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    Array = np.ndarray[Any, Any]

_ARRAYS = ("mean", "matrix", "variances")


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

    @classmethod
    def of(cls, count: int, epsilon: float, mean: Array, matrix: Array, variances: Array) -> Whitening:
        """Makes one of its numbers, with their digest."""
        import numpy as np

        digest = hashlib.sha256(f"{count} {epsilon!r}".encode())
        for array in (mean, matrix, variances):
            digest.update(np.ascontiguousarray(array).data)
        return cls(count, epsilon, mean, matrix, variances, digest.hexdigest()[:32])

    @cached_property
    def reach(self) -> tuple[Array, Array, Array]:
        """Returns what bounds the values that leave: of each column of the matrix the sum of what is positive, the sum of what is
        negative, and its product with the mean. float64 `(values,)` each."""
        import numpy as np

        up = np.maximum(self.matrix, 0).sum(0, dtype=np.float64)
        return up, self.matrix.sum(0, dtype=np.float64) - up, self.mean @ self.matrix

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
            others = "along the others `epsilon` alone decides, and other images are magnified there"
            return (f"`{op}`: {why}; {others}: take smaller images, or a larger `epsilon`",)
        if 2 * self.below > values:
            why = f"along {self.below:,} of the {values:,} directions of `{feature}` the images of split train vary by less than `epsilon`"
            return (f"`{op}`: {why}, which is in squared units of the values: a smaller one may be meant",)
        return ()

    def to_bytes(self, about: Mapping[str, Any]) -> bytes:
        """A `.npz` file of plain arrays; what is known about it is JSON in an array of bytes."""
        import numpy as np

        text = json.dumps({**about, "count": self.count, "epsilon": self.epsilon, "digest": self.digest})
        stream = io.BytesIO()
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        np.savez(stream, about=np.frombuffer(text.encode(), np.uint8), **arrays)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple[dict[str, Any], Whitening]:
        """See `Statistics`; `ValueError` where a part is missing or was changed."""
        import zipfile
        import zlib

        import numpy as np

        damaged = (OSError, EOFError, KeyError, TypeError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)

        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as held:
                about: dict[str, Any] = json.loads(held["about"].tobytes())
                mean, matrix, variances = (held[name] for name in _ARRAYS)
            found = cls.of(int(about.pop("count")), float(about.pop("epsilon")), mean, matrix, variances)
            n, given = len(mean), [(a.shape, a.dtype.name) for a in (mean, matrix, variances)]
            whole = given == [((n,), "float64"), ((n, n), "float32"), ((n,), "float64")]
            if not whole or found.digest != about.pop("digest"):
                raise ValueError("the arrays are not those that were written")
        except damaged as error:
            raise ValueError(f"this is no whitening transform: {error}") from error
        return about, found
