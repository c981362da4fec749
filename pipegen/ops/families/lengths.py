"""Stages that pad one example along its first axis, and note its length."""

from __future__ import annotations

from typing import ClassVar, Literal

from pipegen.frozen import dataclass
from pipegen.ops.stage import Stage
from pipegen.types import FeatureType


@dataclass(frozen=True, slots=True)
class MeasureLength(Stage):
    """Notes the length of another feature along its first axis, `of`, before that is padded to `to`: int32, at most `to`."""

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    of: str
    to: int | None

    def needs(self) -> tuple[str, ...]:
        return (self.of,)

    def says(self) -> str:
        return f"the length of `{self.of}`"


@dataclass(frozen=True, slots=True)
class PadLength(Stage):
    """Pads an example along its first axis to the length `to` with a value; `to` is unknown before the data is listed. Of a longer one it
    keeps the first `to` elements with `cut`; else it fails: if its length was `listed`, that was wrong."""

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.3

    feature: str
    to: int | None
    value: float
    longer: Literal["error", "cut", "drop"]
    listed: bool = False

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return x == y

    def says(self) -> str:
        cut = ", longer ones are cut" if self.longer == "cut" else ""
        return f"pad to {'the longest' if self.to is None else self.to} with {self.value:g}{cut}"


@dataclass(frozen=True, slots=True)
class MarkLength(Stage):
    """Marks the elements of a padded feature that are no padding, from the feature with its `length`: bool `(to,)` for each example."""

    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.3

    feature: str
    length: str
    to: int | None

    def touches(self) -> tuple[str, ...]:
        return (self.feature, self.length)

    def needs(self) -> tuple[str, ...]:
        return (self.length,)

    def says(self) -> str:
        return f"true up to `{self.length}`"
