"""Steps that draw nothing: what those of a family share."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.base import ColourTransform, GeometricTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform


class DeterministicGeometric(GeometricTransform):
    """A geometric step with one matrix for every example."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example


class DeterministicColour(ColourTransform):
    """A colour step with one matrix for every example."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example


class DeterministicLookupTable(LookupTableTransform):
    """A table step with one table for every example, or one that depends on nothing but the histogram."""

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example
