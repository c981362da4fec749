"""Runs of stages that mean something together: an open segment while a plan is built, and what of a plan varies."""

from __future__ import annotations

from collections.abc import Sequence

from pipegen.ops.base import Fill, GeometricTransform, Transform
from pipegen.ops.families.crops import PaddedWindow
from pipegen.plan import stages as s
from pipegen.plan.stages import Stage
from pipegen.types import FeatureType


class Geometric:
    """An open geometric segment; `entry` is the type of the image that entered it."""

    def __init__(self, feature: str, entry: FeatureType, mode: tuple[Fill, str], alone: bool) -> None:
        self.feature = feature
        self.entry = entry
        self.mode = mode
        self.reads = mode
        """The same for this feature: a mask is not blended."""
        self.copies = True
        """Whether every step so far shows input pixels unchanged, so that it costs no resampling."""
        self.behind: tuple[Fill, str] | None = None
        """How the segment right before it resampled the image."""
        self.projective = False
        self.closed = alone
        self.out: FeatureType | None = None

    def accepts(self, mode: tuple[Fill, str] | None) -> bool:
        """Returns whether a step with this fill and interpolation (a crop has none) belongs to the segment."""
        return not self.closed and (mode is None or mode == self.mode)


def reading(step: Transform) -> tuple[tuple[Fill, str] | None, bool]:
    """Returns the fill and the interpolation that a geometric step reads with, of which a plain crop has none, and whether it is a
    segment of its own."""
    if isinstance(step, GeometricTransform):
        return (step.fill, step.interpolation), step.exact
    if isinstance(step, PaddedWindow) and step.pads():
        return (step.fill, "nearest"), True
    return None, False


class Colour:
    """An open colour segment; `entry` is the type of the image that entered it."""

    def __init__(self, feature: str, entry: FeatureType) -> None:
        self.feature = feature
        self.entry = entry
        self.out: FeatureType | None = None
        self.uses_mean = False


def varying(stages: Sequence[Stage]) -> set[int]:
    """The places of those that are random or come behind what is on their feature; a segment stays whole."""
    found: set[int] = set()
    random: set[str] = set()
    for place, stage in enumerate(stages):
        run: list[Stage] = []
        for other in stages[place:]:
            if other.feature == stage.feature:
                run.append(other)
                if not isinstance(other, s.Composes):
                    break
        if any(map(s.is_random, run)):
            random.add(stage.feature)
        if stage.feature in random:
            found.add(place)
    return found
