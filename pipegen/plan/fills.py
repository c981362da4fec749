"""One constant for several images: what a step fills with has to mean the same on an image and on what is aligned with it."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.ops.base import ConstantFill, Fill
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan.followers import anchor
from pipegen.plan.stages import Path, StepRef
from pipegen.types import INTEGER_RANGES, ElementType, FeatureType


def another_fill(ref: StepRef, before: tuple[Fill, str] | None) -> OpError:
    """Returns the lint on a geometric step that does not fill or read as those before it, given by fill and interpolation."""
    field = "fill" if before is None or getattr(ref.step, "fill", None) != before[0] else "interpolation"
    message = f"`{ref.step.op}` has another `{field}` than the geometric steps before it, so the image is resampled once more"
    help_ = ("give the steps of one run the same `fill` and `interpolation`", write("exact: true", "arguments", "or write {}"))
    return OpError("PG502", message, field=field, help=help_)


class Fills:
    """The images that enter each use of a step that fills with a constant. A mask is filled with its `ignore`, and 0 is nothing in
    every unit, so neither is of interest."""

    def __init__(self) -> None:
        self._met: dict[tuple[Path, int], tuple[StepRef, float, dict[str, FeatureType]]] = {}

    def note(self, ref: StepRef, feature: str, x: FeatureType) -> None:
        """Keep what enters a use of a step."""
        fill = getattr(ref.step, "fill", None)
        if kind_of(x).levels and isinstance(fill, ConstantFill) and fill.constant:
            self._met.setdefault((ref.path, ref.start), (ref, fill.constant, {}))[2][feature] = x

    def apart(self, record: ElementType) -> Iterator[tuple[StepRef, OpError]]:
        """Returns the uses whose constant means something else on an image than on one aligned with it."""
        for ref, value, images in self._met.values():
            for feature, x in images.items():
                home = anchor(record, feature)
                if home != feature and home in images and not _alike(images[home], x):
                    message = (
                        f"`{ref.step.op}` fills with {value:g}, and `{home}` ({images[home]}) and `{feature}` ({x}), "
                        "which is aligned with it, have different units"
                    )
                    help_ = "`{constant: 0}` means nothing in both, and `reflect` shows what is there"
                    yield ref, OpError("PG207", message, field="fill", help=help_)


def _alike(a: FeatureType, b: FeatureType) -> bool:
    """Returns whether a number means the same in two images: both hold the same whole numbers, or values of one range."""
    return a.interval == b.interval or (a.dtype == b.dtype and a.dtype in INTEGER_RANGES)
