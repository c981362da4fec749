"""Tests of the values: `range`, `shape`, `mean`, `std`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.data_test import SLACK, DataTest, Failure, Outcome, ValueTest, Watch, Within, many, named, type_of
from pipegen.ops.kinds.base import Levels, kind_of
from pipegen.types import times

if TYPE_CHECKING:
    from pipegen.ops.data_test import Array, Known, Listed


class Range(ValueTest):
    """Finds values outside of a range, and NaN."""

    op = "range"
    examples = ("range: {feature: image, within: [-3, 3]}", "range: {column: age, within: [0, 120]}")

    within: Within
    """The least and the greatest value, both included."""

    def watch(self, known: Known) -> Watch:
        return _Extremes(self)


class _Extremes(Watch):
    """The least and the greatest value of each split, and the examples with values outside the range."""

    def __init__(self, test: Range) -> None:
        self.test = test
        self.seen: dict[str, tuple[int, float, float]] = {}
        self.wrong: dict[str, list[str]] = {}

    def see(self, split: str, values: Sequence[Array], keys: Sequence[str]) -> None:
        low, high = self.test.within
        slack = SLACK * (high - low)
        flat = values[0].reshape(len(values[0]), math.prod(values[0].shape[1:]))
        if not flat.shape[1]:
            return
        held = ~np.ma.getmaskarray(flat)
        smallest = np.where(held, flat.data, np.inf) if np.ma.isMaskedArray(flat) else flat
        largest = np.where(held, flat.data, -np.inf) if np.ma.isMaskedArray(flat) else flat
        least, most = smallest.min(1).astype(np.float64), largest.max(1).astype(np.float64)
        inside = (least >= low - slack) & (most <= high + slack)  # both are false for NaN
        counted = held.any(1)
        n, before, after = self.seen.get(split, (0, np.inf, -np.inf))
        self.seen[split] = n + int(counted.sum()), float(np.fmin.reduce(least, initial=before)), float(np.fmax.reduce(most, initial=after))
        self.wrong.setdefault(split, []).extend(str(keys[i]) for i in np.flatnonzero(counted & ~inside).tolist())

    def outcome(self) -> Outcome:
        low, high = self.test.within
        found = []
        for split, wrong in self.wrong.items():
            n, least, most = self.seen[split]
            if wrong:
                ends = ["" if least >= low else f"{least:.5g}, below {low:g}", "" if most <= high else f"{most:.5g}, above {high:g}"]
                reach = " and ".join(end for end in ends if end) or "NaN"
                message = f"{self.test.called} reaches {reach}, in {len(wrong):,} of {many(n, 'example')} of `{split}`: {named(wrong)}"
                found.append(Failure("PG713", message, "within", ()))
        spans = (
            f"{s}: {least:.4g} to {most:.4g} in {many(n, 'example')}" if n else f"{s}: no values"
            for s, (n, least, most) in self.seen.items()
        )
        return Outcome("; ".join(spans), tuple(found))


class Shape(DataTest):
    """Compares the shape and the dtype of a feature after the steps; it reads them from the compiled plan, and no data."""

    op = "shape"
    examples = ("shape: {feature: image, equals: [224, 224, 3]}", "shape: {feature: image, dtype: float32}")

    feature: str
    """The feature, as the model receives it."""
    equals: list[Annotated[int, Field(ge=0)] | None] | None = None
    """The size of each axis of one example, with `null` for an axis of any size."""
    dtype: Literal["uint8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"] | None = None
    """The dtype."""

    @model_validator(mode="after")
    def _something(self) -> Shape:
        if self.equals is None and self.dtype is None:
            raise ValueError("give `equals` or `dtype`")
        return self

    def features(self) -> tuple[str, ...]:
        return (self.feature,)

    def run(self, data: Listed) -> Outcome:
        found = []
        seen = []
        for split in self.splits(data.known.splits):
            x = data.known.types[split][self.feature]
            seen.append(f"{split}: {x.dtype}[{times(x.shape)}]")
            sides = self.equals
            if sides is not None and (
                len(sides) != len(x.shape) or any(a is not None and a != b for a, b in zip(sides, x.shape, strict=True))
            ):
                message = f"`{self.feature}` is {_shown(x.shape)} in `{split}`, not {_shown(sides)}"
                found.append(Failure("PG719", message, "equals", ("`pipegen explain` shows which step gives the shape",)))
            if self.dtype is not None and self.dtype != x.dtype:
                help_ = "`output.dtype` sets that of images, `output.encode` that of labels"
                found.append(Failure("PG719", f"`{self.feature}` is {x.dtype} in `{split}`, not {self.dtype}", "dtype", (help_,)))
        return Outcome("; ".join(seen), tuple(found))


def _shown(sides: tuple[int | None, ...] | list[int | None]) -> str:
    return f"[{', '.join('null' if side is None else str(side) for side in sides)}]"


class MomentTest(ValueTest):
    """A test of a mean, or of a standard deviation, which messages call by its `noun`."""

    noun: ClassVar[str]

    within: Within
    """The least and the greatest accepted value."""
    per: Literal["all", "channel"] = "all"
    """Whether `all` values are taken together, or each `channel` of an image separately; then each has to lie within."""

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from super().problems(known)
        x = type_of(known, self.splits(known.splits), self.feature or "")
        if self.per == "channel" and (self.column is not None or (x is not None and not kind_of(x).has(Levels))):
            yield OpError("PG700", f"{self.called} has no channels", field="per", help="leave `per` out")

    def watch(self, known: Known) -> Watch:
        x = type_of(known, self.splits(known.splits), self.feature or "")
        first = x is not None and len(x.shape) == 3 and x.shape[0] in (1, 3, 4) and x.shape[2] not in (1, 3, 4)
        return Moments(self, (1 if first else -1) if self.per == "channel" else None)

    def value(self, mean: Array, variance: Array) -> Array:
        """The figure that is tested."""
        raise NotImplementedError


class Moments(Watch):
    """Means and squared deviations, merged pairwise in float64 (T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise
    algorithm for computing sample variances", 1979). `axis` is that of the channels, or `None` for all values together."""

    def __init__(self, test: MomentTest, axis: int | None) -> None:
        self.test = test
        self.axis = axis
        self.parts: dict[str, tuple[float, Any, Any]] = {}
        self.examples: dict[str, int] = {}

    def see(self, split: str, values: Sequence[Array], keys: Sequence[str]) -> None:
        numbers: Any = values[0]
        counted = len(numbers)
        if np.ma.isMaskedArray(numbers):
            counted = int((~np.ma.getmaskarray(numbers)).reshape(len(numbers), -1).any(1).sum())
            numbers = numbers.compressed()
        self.examples[split] = self.examples.get(split, 0) + counted
        if not numbers.size:
            return
        figures = []
        for group in [numbers] if self.axis is None else np.moveaxis(numbers, self.axis, 0):
            apart = group.astype(np.float64).ravel()
            figures.append([float(apart.mean()), 0.0])
            apart -= figures[-1][0]
            figures[-1][1] = float(apart @ apart)
        mean, squares = np.array(figures).T
        n = numbers.size / len(figures)
        n0, mean0, squares0 = self.parts.get(split, (0.0, 0.0, 0.0))
        change = mean - mean0
        total = n0 + n
        self.parts[split] = total, mean0 + change * n / total, squares0 + squares + change**2 * n0 * n / total

    def outcome(self) -> Outcome:
        low, high = self.test.within
        seen, found = [], []
        for split, examples in self.examples.items():
            if split not in self.parts:
                seen.append(f"{split}: no values")
                continue
            n, mean, squares = self.parts[split]
            figures = [float(value) for value in self.test.value(mean, squares / n)]
            shown = ", ".join(f"{figure:.4g}" for figure in figures)
            seen.append(f"{split}: {shown} over {many(examples, 'example')}")
            wrong = [i for i, figure in enumerate(figures) if not low <= figure <= high]
            if wrong:
                of = f" of channel {', '.join(map(str, wrong))}" if self.axis is not None else ""
                figure = ", ".join(f"{figures[i]:.5g}" for i in wrong)
                message = f"the {self.test.noun} of {self.test.called}{of} in `{split}` is {figure}, which is not in {low:g} to {high:g}"
                found.append(Failure("PG718", message, "within"))
        return Outcome("; ".join(seen), tuple(found))


class Mean(MomentTest):
    """Tests the mean of a feature, or of a column, in each split."""

    op = "mean"
    noun = "mean"
    examples = ("mean: {feature: image, within: [-0.2, 0.2], per: channel}", "mean: {column: age, within: [30, 60]}")

    def value(self, mean: Array, variance: Array) -> Array:
        return mean


class Std(MomentTest):
    """Tests the standard deviation of a feature, or of a column, in each split: of the values, not an estimate for a population."""

    op = "std"
    noun = "standard deviation"
    examples = ("std: {feature: image, within: [0.8, 1.2]}",)

    def value(self, mean: Array, variance: Array) -> Array:
        return np.sqrt(variance)
