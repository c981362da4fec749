"""`shape`: a feature has this shape and dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.ops.testing.base import DataTest, unknown_feature
from pipegen.ops.testing.evidence import Failure, Listed, Outcome
from pipegen.types import times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.testing.evidence import Known


class Shape(DataTest):
    """Compares the shape and the dtype of a feature after the steps, which the types of the compiled plan say without reading any."""

    op = "shape"
    examples = ("shape: {feature: image, equals: [224, 224, 3]}", "shape: {feature: image, dtype: float32}")

    feature: str
    """The feature, as the model receives it."""
    equals: list[Annotated[int, Field(ge=0)] | None] | None = None
    """The size of each axis of one example, with `null` for one that may have any size."""
    dtype: Literal["uint8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"] | None = None
    """The dtype."""

    @model_validator(mode="after")
    def _something(self) -> Shape:
        if self.equals is None and self.dtype is None:
            raise ValueError("give `equals` or `dtype`")
        return self

    def features(self) -> tuple[str, ...]:
        return (self.feature,)

    def problems(self, known: Known) -> Iterator[OpError]:
        problem = unknown_feature(known, self.splits(known.splits), self.feature)
        if problem is not None:
            yield problem

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
                message = f"`{self.feature}` is {_shown(x.shape)} in `{split}`, and not {_shown(sides)}"
                found.append(Failure("PG719", message, "equals", ("`pipegen explain` shows which step gives the shape",)))
            if self.dtype is not None and self.dtype != x.dtype:
                help_ = "`output.dtype` sets that of images, `output.encode` that of labels"
                found.append(Failure("PG719", f"`{self.feature}` is {x.dtype} in `{split}`, and not {self.dtype}", "dtype", (help_,)))
        return Outcome("; ".join(seen), tuple(found))


def _shown(sides: tuple[int | None, ...] | list[int | None]) -> str:
    return f"[{', '.join('null' if side is None else str(side) for side in sides)}]"
