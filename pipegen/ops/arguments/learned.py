"""Holds what steps learn from a training split, whatever kind of numbers it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

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
