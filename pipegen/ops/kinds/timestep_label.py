"""Labels of time steps: the class index of each step of a series, as for the segmentation of activities."""

from __future__ import annotations

from typing import Any

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import as_array
from pipegen.ops.kinds.base import FeatureKind, TimestepClass
from pipegen.ops.kinds.series import OnSteps, follows, on_steps
from pipegen.types import FeatureType


class TimestepLabel(FeatureKind):
    """The class index of each time step of a series, int64 `(length,)`. Steps that move values in time move it with the series."""

    name = "timestep_label"
    plural = "labels of time steps"
    arguments = ("classes", "shape")
    meaning = TimestepClass()
    details = OnSteps

    def stored_type(self, feature: Any) -> FeatureType:
        shape = getattr(feature, "stored_shape", ())
        return self.array_types(feature)[0].with_(shape=shape or (None,), uniform=not shape)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (FeatureType(self.name, "int64", (None,), classes=feature.num_classes, uniform=True),)

    def details_of(self, feature: Any) -> OnSteps | None:
        return on_steps(feature)

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        return follows(x)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        array = as_array(name, given)
        if array.ndim != 2:
            raise OpError("PG204", f"the labels of `{name}` need the shape (n, length), not {array.shape}")
        if not array.size:
            raise OpError("PG402", f"the array `{name}` has no {'values' if len(array) else 'rows'}")
        if array.dtype.kind not in "bui" and not (array.dtype.kind == "f" and (array == np.floor(array)).all()):
            raise OpError("PG419", f"the labels of `{name}` are {array.dtype}", help="class indices must be integers, counted from 0")
        most = feature.num_classes
        wrong = (array < 0) | (array >= (most or 2**31))
        if wrong.any():
            row = int(np.argmax(wrong.any(1)))
            due = f"there are {count(most, 'class', 'classes')}, counted from 0" if most else "class indices are 0 or more"
            raise OpError("PG419", f"{place(row)} holds {array[row][wrong[row]][0]:g} in `{name}`, but {due}")
        classes = most or int(array.max()) + 1
        return Column(array.astype(np.int64), self.array_types(feature)[0].with_(shape=array.shape[1:], classes=classes))
