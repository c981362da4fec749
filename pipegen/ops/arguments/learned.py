"""Numbers that steps learn from a training split: moments and whitening."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.frozen import dataclass
from pipegen.lazy import np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Fitted:
    """The numbers that a step has learned from the training split, for each feature that it acts on, with the number of examples that they
    come from and their origin in words. If the caller has `given` them, they are valid for any data."""

    numbers: Mapping[str, Statistics]
    examples: int
    origin: str = field(default="", compare=False)
    given: bool = False


_MOST = 16  # numbers that are shown one by one


def listed(numbers: Iterable[str], most: int = _MOST) -> str:
    """Formats a list of numbers, one of more than `most` by its first and last ones and its length."""
    texts = list(numbers)
    return f"[{', '.join(texts)}]" if len(texts) <= most else f"[{', '.join(texts[:3])}, …, {texts[-1]}] ({len(texts):,})"


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments of the values of each channel, or of each channel of each band: their number, their mean, and the sum of their squared
    distances from it."""

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
        """The moments of the values of all parts, which have the same channels; `ValueError` without parts.

        With the mean m of all, each part adds its own squares and count · (its mean - m)² (Chan, Golub and LeVeque 1983). Squares of large
        values are never subtracted, and each sum is rounded once, so the result depends neither on the parts nor on their number.
        """
        parts = tuple(parts)
        if not parts:
            raise ValueError("no values to take the mean of")
        count = sum(p.count for p in parts)
        mean, squares = [], []
        for c in range(len(parts[0].mean)):
            first = parts[0].mean[c]  # distances from it are exact where the parts are alike
            middle = first + math.fsum(p.count * (p.mean[c] - first) for p in parts) / count
            mean.append(middle)
            squares.append(math.fsum([p.squares[c] for p in parts] + [p.count * (p.mean[c] - middle) ** 2 for p in parts]))
        return cls(count, tuple(mean), tuple(squares))

    def figures(self, *, short: bool = False) -> dict[str, str]:
        """The mean and the standard deviation; with `short`, of many channels or bands only the ends."""
        most = _MOST if short else len(self.mean)
        return {name: listed((f"{v:.6g}" for v in values), most) for name, values in (("mean", self.mean), ("std", self.std))}

    def as_json(self) -> dict[str, Any]:
        """The count of the values, their mean and their standard deviation."""
        return {"values": self.count, "mean": list(self.mean), "std": list(self.std)}

    def doubts(self, op: str, feature: str, each: str = "channel") -> tuple[str, ...]:
        """Warnings about channels, or other parts that `each` names, with one value everywhere."""
        flat = (c for c, squares in enumerate(self.squares) if squares == 0)
        return tuple(
            f"{each} {c} of `{feature}` has the value {self.mean[c]:g} everywhere in split train, so `{op}` does not scale it" for c in flat
        )

    def to_bytes(self, about: Mapping[str, Any]) -> bytes:
        """Serialises the numbers as JSON, with a few plain values about them."""
        return json.dumps({**about, "count": self.count, "mean": self.mean, "squares": self.squares}, indent=2).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple[dict[str, Any], Moments]:
        """Reads the plain values and the numbers; `ValueError`, `TypeError` or `KeyError` if the content is damaged."""
        values: dict[str, Any] = json.loads(content)
        moments = cls(int(values.pop("count")), tuple(map(float, values.pop("mean"))), tuple(map(float, values.pop("squares"))))
        whole = moments.count > 0 and len(moments.mean) == len(moments.squares) > 0
        sound = all(map(math.isfinite, moments.mean)) and all(math.isfinite(s) and s >= 0 for s in moments.squares)
        if not whole or not sound:
            raise ValueError("invalid moments")
        return values, moments


_ARRAYS = ("mean", "matrix", "variances")


@dataclass(frozen=True)
class Whitening:
    """y = (x - mean) · matrix, on images with their values in one row; learned from `count` images, with `epsilon` added to each variance.

    `mean` is float64 `(values,)` and `matrix` float32 `(values, values)`, symmetric. `variances` are those of the images along their
    principal components, without `epsilon`, ascending: float64 `(values,)`, empty for a matrix from elsewhere. `digest` is a hexadecimal
    one of all of these.
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
        """Makes a transform from its numbers, with their digest."""
        digest = hashlib.sha256(f"{count} {epsilon!r}".encode())
        for array in (mean, matrix, variances):
            digest.update(np.ascontiguousarray(array).data)
        return cls(count, epsilon, mean, matrix, variances, digest.hexdigest()[:32])

    @cached_property
    def reach(self) -> tuple[Array, Array, Array]:
        """The bounds of the output: for each column of the matrix the sum of its positive entries, the sum of its negative ones, and its
        product with the mean. float64 `(values,)` each."""
        up = np.maximum(self.matrix, 0).sum(0, dtype=np.float64)
        return up, self.matrix.sum(0, dtype=np.float64) - up, self.mean @ self.matrix

    @property
    def below(self) -> int:
        """The number of principal components along which the images vary by less than `epsilon`."""
        return int((self.variances < self.epsilon).sum())

    def figures(self, *, short: bool = False) -> dict[str, str]:
        """The size of the matrix, and the variances compared with `epsilon`."""
        values = len(self.mean)
        if not len(self.variances):
            return {"matrix": f"{values:,}×{values:,}"}
        ends = f"{self.variances[0]:.3g} to {self.variances[-1]:.3g}"
        return {"matrix": f"{values:,}×{values:,}", "variances": f"{ends}, {self.below:,} of {values:,} below epsilon {self.epsilon:g}"}

    def as_json(self) -> dict[str, Any]:
        """The size of an image, and of the variances the ends, the sum and the number below `epsilon`."""
        ends = {"smallest": float(self.variances[0]), "largest": float(self.variances[-1]), "sum": float(self.variances.sum())}
        return {"values": len(self.mean), "variances": {**ends, "below_epsilon": self.below}, "epsilon": self.epsilon}

    def doubts(self, op: str, feature: str, each: str = "channel") -> tuple[str, ...]:
        """Warnings about an `epsilon` that matters more than the images."""
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
        """A `.npz` file of plain arrays; the plain values are JSON in an array of bytes."""
        text = json.dumps({**about, "count": self.count, "epsilon": self.epsilon, "digest": self.digest})
        stream = io.BytesIO()
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        np.savez(stream, about=np.frombuffer(text.encode(), np.uint8), **arrays)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple[dict[str, Any], Whitening]:
        """Reads the plain values and the numbers; `ValueError` if a part is missing or changed."""
        import zipfile
        import zlib

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
            raise ValueError(f"invalid whitening transform: {error}") from error
        return about, found


Statistics = Moments | Whitening
"""Numbers learned from the images of a training split; a file whose name ends in their `suffix` can store them."""
