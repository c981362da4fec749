"""Tensors: numbers of one shape for each example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.kinds.base import Column, FeatureKind
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Place


class Tensor(FeatureKind):
    """Numbers, as float32 or int64."""

    name = "tensor"
    plural = "tensors"
    arguments: ClassVar[tuple[str, ...]] = ("columns", "shape", "dtype")
    numbers = True
    each = "item_tensor"

    def stored_type(self, feature: Any, of: str | None, classes: int | None) -> FeatureType:
        return FeatureType(self.name, feature.dtype or "float32", feature.stored_shape)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (FeatureType(self.name, feature.dtype or "float32", (), uniform=True),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place | None = None) -> Column:
        from pipegen.ops.sources.array_rows.rows import read_values

        values = read_values(name, given, feature.dtype, weights=self.weighs)
        return Column(values, FeatureType(self.name, str(values.dtype), values.shape[1:]))
