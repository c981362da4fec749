"""Holds what tests of numbers share: a feature after the steps, or a column of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.testing.example_tests import ExampleTest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.arguments.schedules import Range
    from pipegen.ops.testing.evidence import Array, Known, Listed

SLACK = 1e-6
"""The share of a range by which values may lie outside: what rounding does to them."""


class ValueTest(ExampleTest):
    """A test of numbers: those of a feature after the steps, or of a column of the table."""

    feature: str | None = None
    """The feature, as the steps make it: in `train` with its augmentation, as in the first epoch."""
    column: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)] | None = None
    """In place of `feature`, a column of the table, by its name or its number from 0, as it is stored; empty cells do not count."""

    @model_validator(mode="after")
    def _one(self) -> Any:
        if (self.feature is None) == (self.column is None):
            raise ValueError("give `feature` or `column`" + (", and not both" if self.feature is not None else ""))
        return self

    @property
    def called(self) -> str:
        """Names what it looks at."""
        return f"`{self.feature if self.feature is not None else self.column}`"

    def features(self) -> tuple[str, ...]:
        return () if self.feature is None else (self.feature,)

    def problems(self, known: Known) -> Iterator[OpError]:
        yield from super().problems(known)
        if self.column is not None and not known.source.has_columns():
            help_ = "give `feature`, which is the value after the steps"
            yield OpError("PG700", f"`{known.source.op}` is no table with a column `{self.column}`", field="column", help=help_)
        for name, t in known.source.infer().items():
            if name == self.feature and (kind_of(t).holds_classes or kind_of(t).counts):
                help_ = "`classes` and `balance` count classes" if kind_of(t).counts else "remove the test"
                yield OpError("PG700", f"`{name}` holds class indices, whose values say nothing", field="feature", help=help_)

    def in_memory(self, data: Listed, split: str) -> list[Array] | None:
        if self.column is None:
            return super().in_memory(data, split)
        cells = data.cells(split, self.column)
        values: Any = np.ma.masked_array(np.zeros(len(cells)), True)
        for i, cell in enumerate(cells):
            if not cell:
                continue
            try:
                values[i] = float(cell.replace("_", "x"))
            except ValueError:
                message = f"{data.keys(split)[i]!r} has {cell!r} in the column `{self.column}`, which is no number"
                raise OpError("PG702", message, field="column", help="`accepted` tests a column of text") from None
        return [values]


def check_within(within: Range, name: str) -> None:
    """Rejects bounds in the wrong order.

    Raises:
        ValueError: For those.
    """
    if within[0] > within[1]:
        raise ValueError(f"`{name}` is the least and the greatest value, in this order, got [{within[0]:g}, {within[1]:g}]")
