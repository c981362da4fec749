"""What steps learn from a training split: moments, and whitening."""

from __future__ import annotations

import hashlib
import io
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from typing_extensions import Self


class Statistics(Protocol):
    """Numbers that were taken from the images of a training split, and that a file can keep, whose name ends in `suffix`."""

    suffix: ClassVar[str]

    def figures(self) -> dict[str, str]:
        """Returns what people want to see of them: a text for each name."""

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""

    def doubts(self, op: str, feature: str) -> tuple[str, ...]:
        """Reports what is odd about them, in sentences on the step and the feature."""

    def to_bytes(self, about: Mapping[str, Any]) -> bytes:
        """The content of a file, with a few plain values about it."""

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple[dict[str, Any], Self]:
        """Returns what `to_bytes` was given, and the numbers; `ValueError`, `TypeError` or `KeyError` where that is not whole."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Holds what a step has learned from the training split.

    Attributes:
        numbers: Of each feature that it acts on.
        examples: How many examples they come from.
        origin: Where the numbers were taken from, in words.
        given: Whether they were handed over rather than measured, so that they stand whatever the data is.
    """

    numbers: Mapping[str, Statistics]
    examples: int
    origin: str = field(default="", compare=False)
    given: bool = False


@dataclass(frozen=True, slots=True)
class Moments:
    """Holds what is known of the values of each channel.

    Attributes:
        count: How many values each channel has.
        mean: Their mean, for each channel.
        squares: The sum of the squares of their distances from it.
    """

    suffix: ClassVar[str] = "json"

    count: int
    mean: tuple[float, ...]
    squares: tuple[float, ...]

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each channel: the root of the mean square."""
        return tuple(math.sqrt(s / self.count) for s in self.squares)

    @classmethod
    def of(cls, parts: Iterable[Moments]) -> Moments:
        """The moments of the values of all parts, which have the same channels; `ValueError` where there is no part.

        With the mean m of all, each part adds its own squares and count · (its mean - m)² (Chan, Golub and LeVeque 1983).
        No square of a large value is ever subtracted from another, and each sum is rounded once, so that it matters
        neither how the values were parted nor how many there are.
        """
        parts = tuple(parts)
        if not parts:
            raise ValueError("there are no values to take the mean of")
        count = sum(p.count for p in parts)
        mean, squares = [], []
        for c in range(len(parts[0].mean)):
            first = parts[0].mean[c]  # distances from it are exact where the parts are alike
            middle = first + math.fsum(p.count * (p.mean[c] - first) for p in parts) / count
            mean.append(middle)
            squares.append(math.fsum([p.squares[c] for p in parts] + [p.count * (p.mean[c] - middle) ** 2 for p in parts]))
        return cls(count, tuple(mean), tuple(squares))

    def figures(self) -> dict[str, str]:
        """The mean and the standard deviation."""
        return {name: f"[{', '.join(f'{v:.6g}' for v in values)}]" for name, values in (("mean", self.mean), ("std", self.std))}

    def as_json(self) -> dict[str, Any]:
        """Returns the count of the values, their mean and their standard deviation."""
        return {"values": self.count, "mean": list(self.mean), "std": list(self.std)}

    def doubts(self, op: str, feature: str) -> tuple[str, ...]:
        """Channels of one value."""
        flat = (c for c, squares in enumerate(self.squares) if squares == 0)
        return tuple(
            f"channel {c} of `{feature}` has the one value {self.mean[c]:g} all over split train, so `{op}` divides it by nothing"
            for c in flat
        )

    def to_bytes(self, about: Mapping[str, Any]) -> bytes:
        """JSON."""
        return json.dumps({**about, "count": self.count, "mean": self.mean, "squares": self.squares}, indent=2).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple[dict[str, Any], Moments]:
        """See `Statistics`."""
        values: dict[str, Any] = json.loads(content)
        moments = cls(int(values.pop("count")), tuple(map(float, values.pop("mean"))), tuple(map(float, values.pop("squares"))))
        whole = moments.count > 0 and len(moments.mean) == len(moments.squares) > 0
        sound = all(map(math.isfinite, moments.mean)) and all(math.isfinite(s) and s >= 0 for s in moments.squares)
        if not whole or not sound:
            raise ValueError("these are no moments")
        return values, moments


if TYPE_CHECKING:
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
