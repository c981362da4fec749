"""Series: values at regular times, by channel."""

from __future__ import annotations

import io
from typing import Any, Literal

from pipegen.lazy import np
from pipegen.ops.kinds.base import FeatureKind, Samples
from pipegen.ops.lowering.pictures import line_chart
from pipegen.types import FeatureType


class SeriesValues(Samples):
    """Values along time, float32 `(length, channels)`."""

    suffix = "npy"
    file = "an array file"

    def shown(self, value: Any, x: FeatureType) -> Any:
        return line_chart(value)

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        stream = io.BytesIO()
        np.save(stream, value)
        return stream.getvalue()


class Series(FeatureKind):
    """Values at regular times, as float32 `(length, channels)`: a window of a longer series."""

    name = "series"
    plural = "series"
    arguments = ("columns", "missing", "observed", "calendar", "cyclic")
    samples = SeriesValues()

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (FeatureType(self.name, "float32", (None, None), uniform=True),)
