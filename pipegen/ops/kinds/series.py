"""Series: values at regular times, by channel."""

from __future__ import annotations

import math
from typing import Any, Literal

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.numbers import as_array
from pipegen.ops.kinds.base import FeatureKind, Samples
from pipegen.ops.lowering.pictures import line_chart
from pipegen.types import FeatureType


class SeriesValues(Samples):
    """Values along time, float32 `(length, channels)`."""

    file = "an array file"
    also = ", or an array of numbers"

    def due(self, held: Any, shape: tuple[int, ...], *, arrays: bool) -> str | None:
        if held.counts and (not shape or math.prod(held.shape) == math.prod(shape)):
            return None
        return f"numbers of shape {list(shape)}"

    def fits(self, held: Any) -> bool:
        return held.numeric and len(held.shape) in (1, 2)

    def of_array(self, x: FeatureType, dtype: str, shape: tuple[int | None, ...]) -> FeatureType:
        return x.with_(dtype="float32", shape=shape, uniform=True)

    def shown(self, value: Any, x: FeatureType) -> Any:
        return line_chart(value)


@dataclass(frozen=True, slots=True)
class OnSteps:
    """What a feature tells of the time steps of a window, beside its values: which of them were observed, their times, or their classes."""

    tells: Literal["observed", "times", "classes"]
    follows: bool = True  # whether these are the steps that the window shows, so that it follows when they move


def on_steps(feature: Any) -> OnSteps | None:
    """Returns the details of the type of a feature along time, `None` for values of their own."""
    found: Any = getattr(feature, "follows", None)
    return found if found is None or isinstance(found, OnSteps) else OnSteps(found)


def follows(x: FeatureType) -> dict[str, Any]:
    """Returns the argument of a store that says what a feature tells of time steps that it follows."""
    return {"follows": x.details.tells} if isinstance(x.details, OnSteps) and x.details.follows else {}


class Series(FeatureKind):
    """Values at regular times, as float32 `(length, channels)`: a window of a longer series."""

    name = "series"
    plural = "series"
    arguments = ("columns", "shape")
    samples = SeriesValues()
    details = OnSteps

    def stored_type(self, feature: Any) -> FeatureType:
        shape = getattr(feature, "stored_shape", ())
        return FeatureType(self.name, "float32", shape or (None, None), uniform=not shape)

    def details_of(self, feature: Any) -> OnSteps | None:
        return on_steps(feature)

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        return follows(x)

    def shape_of(self, stored: tuple[int, ...]) -> tuple[int, ...]:
        return (*stored, 1) if len(stored) == 1 else stored

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (FeatureType(self.name, "float32", (None, None), uniform=True),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        array = as_array(name, given)
        array = array[..., None] if array.ndim == 2 else array
        if array.ndim != 3:
            raise OpError("PG204", f"the series of `{name}` need the shape (n, length) or (n, length, channels), not {array.shape}")
        if not array.size:
            raise OpError("PG402", f"the array `{name}` has no {'values' if len(array) else 'rows'}")
        if array.dtype.kind not in "buif":
            raise OpError("PG419", f"the series of `{name}` are {array.dtype}", help="they must be numbers")
        with np.errstate(all="ignore"):  # overflow becomes infinite, which is reported with its row
            values = array.astype(np.float32, copy=False)
        wild = np.isinf(values).any((1, 2))
        if wild.any():
            raise OpError(
                "PG419", f"{place(int(np.argmax(wild)))} holds a value that is infinite", help="remove such rows, or correct them"
            )
        return Column(values, FeatureType(self.name, "float32", values.shape[1:]))
