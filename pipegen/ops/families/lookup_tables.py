"""The family of look-up tables: 256 values for each example, or for each of its channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, Schedule, Span, span_range
from pipegen.ops.stage import Stage, StagedTransform, StepRef, only_identities, uses
from pipegen.ops.step_bases import require_bytes, require_image
from pipegen.ops.traits import Family
from pipegen.types import BYTE_RANGE, FeatureType


class LookupTableTransform(StagedTransform):
    """A table look-up on bytes. Floats from 0 to 255 are rounded half to even and clipped first.

    Adjacent steps fold into one look-up, bit for bit: a table read through a table is a table.
    """

    family = Family.LOOKUP_TABLE
    needs_histogram: ClassVar[bool] = False
    """Whether the table depends on the histogram of each channel."""

    probability: Probability = 1.0
    """The share of examples that the step changes."""

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        """Computes the look-up table of the values 0 to 255: int32 `(n, channels, 256)` from 0 to 255, or `(n, 1, 256)` for all channels.

        `u` is float64 `(n, num_draws)`, uniform in [0, 1); the histogram, if the step `needs_histogram`, is the number of pixels with each
        value in each input image, int32 `(n, channels, 256)`.
        """
        raise NotImplementedError

    def from_extremes(self, u: tf.Tensor) -> tf.Tensor | bool:
        """Tests for which examples the histogram matters by the least and the greatest value of each channel alone, bool `(n,)`."""
        return False

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> LookupTable:
        return LookupTable(feature, (ref,), self.needs_histogram)

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        require_bytes(self, x)
        return x.with_(dtype="uint8", interval=BYTE_RANGE)

    def is_identity(self, x: FeatureType) -> bool:
        return self.idle() and x.dtype == "uint8" and x.interval == BYTE_RANGE  # otherwise the step rounds


@dataclass(frozen=True, slots=True)
class LookupTable(Stage):
    """Reads each value through the tables of the steps, one after another; other dtypes than uint8 are rounded and clipped first. Tables
    can depend on the histogram of the image."""

    branches: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.35

    feature: str
    refs: tuple[StepRef[LookupTableTransform], ...]
    reads_histogram: bool

    def says(self) -> str:
        what = "tables" if len(self.refs) > 1 else "table"
        of = " of its histogram" if self.reads_histogram else ""
        return f"through the {what}{of}: {uses(self.refs)}"

    def leads(self) -> bool:
        return self.reads_histogram

    def rereads(self, before: Sequence[Stage]) -> bool:
        return not all(stage.mirrors_only() for stage in before)

    def commutes_with_mirrors(self, x: FeatureType) -> bool:
        return True

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities(self.refs, x, y)

    def ns(self, x: FeatureType) -> float:
        return self.ns_per_value + (1.5 if self.reads_histogram else 0.0)  # to count a value, and to make the table from the counts


def threshold_lints(op: str, name: str, threshold: float | Span, _x: FeatureType) -> tuple[OpError, ...]:
    """Reports a threshold, or a range of it, that stays between 0 and 1, as if values did not reach 255."""
    highest = threshold if isinstance(threshold, (int, float)) else span_range(threshold)[1]
    if not 0 < highest <= 1:
        return ()
    message = f"the `{name}` of `{op}` reaches {highest:g}, but values are from 0 to 255"
    if isinstance(threshold, Schedule):
        return (OpError("PG510", message, field=name, help="multiply every number of the schedule by 255"),)
    meant = f"{255 * highest:g}"
    if isinstance(threshold, tuple):
        meant = f"[{255 * threshold[0]:g}, {meant}]"
    help_ = write(f"{name}: {meant}", "arguments", "for a share of the range write {}")
    return (OpError("PG510", message, field=name, help=help_),)
