"""Tensors: numbers of one shape for each example, in memory or in a file each, or for each item; weights."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.families.decoder import ArrayDecoder, NumbersDecoder
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.numbers import NumberType, as_array, as_numbers, read_ragged, unfit
from pipegen.ops.kinds.base import FeatureKind, LossWeight, Meaning, Numbers, item_type
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType


class Tensor(FeatureKind):
    """Numbers, as float32 or int64."""

    name = "tensor"
    plural = "tensors"
    arguments: ClassVar[tuple[str, ...]] = ("columns", "shape", "dtype", "value")
    meaning: ClassVar[Meaning] = Numbers()
    each = "item_tensor"

    def stored_type(self, feature: Any) -> FeatureType:
        return FeatureType(self.name, feature.dtype or "float32", feature.stored_shape)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (FeatureType(self.name, feature.dtype or "float32", (), uniform=True),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        array = as_array(name, given)
        if array.dtype.kind not in "biuf":
            raise OpError("PG419", f"the values of `{name}` are {array.dtype}", help="they must be numbers")
        if array.ndim == 0 or not len(array):
            raise OpError("PG402", f"the array `{name}` has no rows")
        dtype: NumberType | None = "float32" if self.has(LossWeight) else feature.dtype
        values = as_numbers(np.asarray(array), dtype, partial(unfit, place, dtype, "rows"), place, None)
        if self.has(LossWeight) and values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if self.has(LossWeight) and (values.ndim != 1 or values.min() < 0):
            shape = f"its shape is {values.shape}" if values.ndim != 1 else f"the smallest is {values.min():g}"
            raise OpError("PG419", f"`{name}` needs one number of 0 or more per row, but {shape}")
        return Column(values, FeatureType(self.name, str(values.dtype), values.shape[1:]))


class Weight(Tensor):
    """A number, at least 0."""

    name = "weight"
    plural = "weights"
    arguments = ("value",)
    meaning = LossWeight()
    each = ""


class Array(FeatureKind):
    """A tensor read from a file for each example, such as a volume; its length along the first axis may vary. No step acts on it."""

    name = "array"
    plural = "arrays"
    arguments = ("root", "ending", "format", "shape")
    storage = "encoded"

    def stored_type(self, feature: Any) -> FeatureType:
        return FeatureType(self.name, "string", ())

    def decoder(self, feature: Any) -> Transform:
        found: ArrayDecoder = feature.array_decoder()
        return NumbersDecoder(format=found.format, shape=feature.shape, options=found.options)


class Length(FeatureKind):
    """The length of an example along the first axis of another feature, before that is padded. It is made with the padding."""

    name = "length"
    plural = "lengths"
    storage = "made"
    meaning = Numbers()


class ItemTensor(FeatureKind):
    """Numbers for each item of another feature, as float32 or int64; a `tensor` that is `with` that one."""

    name = "item_tensor"
    plural = "numbers of items"
    arguments = ("dtype",)
    storage = "ragged"

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (item_type(self.name, feature.home, feature.dtype or "float32"),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        items = read_ragged(name, given, None, place, feature.dtype)
        return Column(items, item_type(self.name, feature.home, feature.dtype or "float32", items.values.shape[1:]))

    def item_shape(self, feature: Any, numbers: int, items: int | None) -> tuple[int, ...]:
        return (numbers // items,) if items and numbers != items and numbers % items == 0 else ()
