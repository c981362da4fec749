"""Tensors: numbers of one shape for each example, or for each item; weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.kinds.base import Column, FeatureKind, LossWeight, Meaning, Numbers
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Place


class Tensor(FeatureKind):
    """Numbers, as float32 or int64."""

    name = "tensor"
    plural = "tensors"
    arguments: ClassVar[tuple[str, ...]] = ("columns", "shape", "dtype")
    meaning: ClassVar[Meaning] = Numbers()
    each = "item_tensor"

    def stored_type(self, feature: Any, of: str | None) -> FeatureType:
        return FeatureType(self.name, feature.dtype or "float32", feature.stored_shape)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (FeatureType(self.name, feature.dtype or "float32", (), uniform=True),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        from pipegen.ops.sources.array_rows.rows import read_values

        values = read_values(name, given, feature.dtype, weights=self.has(LossWeight))
        return Column(values, FeatureType(self.name, str(values.dtype), values.shape[1:]))


class Weight(Tensor):
    """A number, at least 0."""

    name = "weight"
    plural = "weights"
    arguments = ()
    meaning = LossWeight()
    each = ""


class ItemTensor(FeatureKind):
    """Numbers for each item of another feature, as float32 or int64; a `tensor` that is `with` that one."""

    name = "item_tensor"
    plural = "numbers of items"
    arguments = ("dtype",)
    storage = "ragged"

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (item_tensor_type(feature.home, dtype=feature.dtype),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        from pipegen.ops.sources.array_rows.rows import read_ragged

        items = read_ragged(name, given, None, place, feature.dtype)
        return Column(items, item_tensor_type(feature.home, tuple(items.values.shape[1:]), feature.dtype))

    def item_shape(self, feature: Any, numbers: int, items: int | None) -> tuple[int, ...]:
        return (numbers // items,) if items and numbers != items and numbers % items == 0 else ()


def item_tensor_type(home: str, shape: tuple[int | None, ...] = (), dtype: str | None = None) -> FeatureType:
    """Returns the type of numbers for each item of the feature `home`."""
    return FeatureType("item_tensor", dtype or "float32", (None, *shape), of=home, most=0, beside=home)
