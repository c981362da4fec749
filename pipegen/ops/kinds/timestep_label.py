"""Labels of time steps: the class index of each step of a series, as for the segmentation of activities."""

from __future__ import annotations

from typing import Any

from pipegen.ops.kinds.base import FeatureKind, TimestepClass
from pipegen.ops.kinds.series import OnSteps, follows, on_steps
from pipegen.types import FeatureType


class TimestepLabel(FeatureKind):
    """The class index of each time step of a window, int64 `(length,)`. Steps that move values in time move it with the series.

    A spec names it as a `label` of several rows, which only sources of windows have.
    """

    name = "timestep_label"
    plural = "labels of time steps"
    arguments = ("classes",)
    meaning = TimestepClass()
    details = OnSteps

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        x = FeatureType(self.name, "int64", (None,), classes=feature.num_classes, uniform=True)
        return (x.with_(details=self.details_of(feature)),)

    def details_of(self, feature: Any) -> OnSteps:
        return on_steps(feature) or OnSteps("classes", follows=False)

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        return follows(x)
