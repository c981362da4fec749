"""Holds what `mean` and `std` share: both, of all values or of each channel, over any number of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.arguments.checks import checked
from pipegen.ops.arguments.schedules import Range as Bounds
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.testing.base import many, type_of
from pipegen.ops.testing.evidence import Failure, Outcome
from pipegen.ops.testing.example_tests import Watch
from pipegen.ops.testing.values import ValueTest, check_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.ops.testing.evidence import Array, Known


class MomentTest(ValueTest):
    """A test of a mean, or of a standard deviation."""

    within: Annotated[Bounds, checked(check_within)]
    """The least and the greatest value that it may have."""
    per: Literal["all", "channel"] = "all"
    """Whether `all` values have one, or each `channel` of an image its own, of which every one has to lie within."""

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from super().problems(known)
        x = type_of(known, self.splits(known.splits), self.feature or "")
        if self.per == "channel" and (self.column is not None or (x is not None and not kind_of(x).levels)):
            yield OpError("PG700", f"{self.called} has no channels", field="per", help="leave `per` out")

    def watch(self, known: Known) -> Watch:
        x = type_of(known, self.splits(known.splits), self.feature or "")
        first = x is not None and len(x.shape) == 3 and x.shape[0] in (1, 3, 4) and x.shape[2] not in (1, 3, 4)
        return Moments(self, (1 if first else -1) if self.per == "channel" else None)

    def value(self, mean: Array, variance: Array) -> Array:
        """Returns the figure that is tested."""
        raise NotImplementedError

    @property
    def noun(self) -> str:
        """Names the figure."""
        raise NotImplementedError


def _moments(numbers: Array) -> tuple[float, float]:
    """Returns the mean and the sum of squared deviations of float64 `(n,)`, which it writes into."""
    mean = float(numbers.mean())
    numbers -= mean
    return mean, float(numbers @ numbers)


class Moments(Watch):
    """Gathers means and squared deviations in float64, pairwise.

    Two parts are merged as in T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances", 1979.

    Args:
        test: The test.
        axis: The axis of the channels, or `None` for all values together.
    """

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
        groups = [numbers] if self.axis is None else np.moveaxis(numbers, self.axis, 0)
        figures = [_moments(group.astype(np.float64).ravel()) for group in groups]
        mean, squares = (np.array(column) for column in zip(*figures, strict=True))
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
