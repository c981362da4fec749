"""Masks: the class index of each pixel of an image, or the item that it belongs to; the numbers of these items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.ops.families.decoder import LARGEST, MaskDecoder
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.numbers import as_array
from pipegen.ops.kinds.base import FeatureKind, Indices, InstanceNumber, Meaning, PixelClass, Presence, item_type
from pipegen.ops.lowering.pictures import encode_mask, overlay
from pipegen.ops.transform import Transform
from pipegen.types import MOST_INSTANCES, ElementType, FeatureType, Interval


class MaskIndices(Indices):
    """Indices that are shown as colours, alone on black."""

    def shown(self, value: Any, x: FeatureType) -> Any:
        single = value if value.shape[-1] == 1 else value.argmax(-1)[..., None]  # encoded, its last axis is the class
        return self.draw(np.zeros((*value.shape[:2], 3), np.uint8), single, x)

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        return overlay(image, value, x.ignore)

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        return encode_mask(value)


class Mask(FeatureKind):
    """A class for each pixel. It is read at the nearest pixel; a constant fill sets pixels to `ignore`."""

    name = "mask"
    plural = "masks"
    arguments: ClassVar[tuple[str, ...]] = ("of", "root", "ending", "size", "classes", "values", "palette", "ignore")
    storage = "encoded"
    pixels = MaskIndices()
    meaning: ClassVar[Meaning] = PixelClass()
    each = "instance_mask"

    def check(self, name: str, feature: Any) -> None:
        given = getattr(feature, "classes", None)
        if getattr(feature, "values", None) == "vectors":
            raise PartError(f"`{name}` is a mask, and vectors are values of `kind: dense`", name, "values")
        if given is None:
            return
        classes = given if isinstance(given, int) else len(given)
        if classes > LARGEST + 1:
            message = f"`{name}` has {classes} classes, but a mask has at most {LARGEST + 1}, since its pixels are bytes"
            raise PartError(message, name, "classes")
        for argument in ("values", "palette"):
            for index in (getattr(feature, argument, None) or {}).values():
                if index >= classes and index != feature.ignore:
                    message = f"`{argument}` of `{name}` has the class index {index}, but there are {classes} `classes`, counted from 0"
                    raise PartError(message, name, argument)

    def stored_type(self, feature: Any) -> FeatureType:
        classes = feature.num_classes
        if classes is None and feature.class_of_value:
            classes = max(feature.class_of_value.values()) + 1
        return FeatureType(self.name, "string", (), classes=classes, ignore=feature.ignore, instances=feature.home)

    def decoder(self, feature: Any) -> Transform:
        values, classes = getattr(feature, "class_of_value", None), feature.num_classes
        allowed = tuple(sorted({*range(classes), feature.ignore})) if classes is not None else None
        palette = getattr(feature, "palette", None) is not None
        return MaskDecoder(values=tuple(values.items()) if values is not None else None, allowed=allowed, palette=palette)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        highest = max((feature.num_classes or LARGEST + 1) - 1, feature.ignore)
        x = FeatureType(self.name, "uint8", (*feature.height_width(), 1), Interval(0.0, float(highest)), uniform=True)
        return (x.with_(classes=feature.num_classes, ignore=feature.ignore, instances=feature.home),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        array = as_array(name, given)
        if array.ndim == 3:
            array = array[..., None]
        if array.ndim != 4 or array.shape[-1] != 1:
            message = f"the masks of `{name}` need the shape (n, height, width) or (n, height, width, 1), not {array.shape}"
            raise OpError("PG204", message, help="convert one channel per class by `numpy.argmax(masks, -1)`")
        if not array.size:
            raise OpError("PG402", f"the array `{name}` has no rows")
        if array.dtype.kind not in "bui":
            raise OpError("PG419", f"the masks of `{name}` are {array.dtype}", help="class indices must be integers; pass them as uint8")
        height, width = array.shape[1:3]
        type_ = self.array_types(feature)[0].with_(shape=(height, width, 1))
        if feature.size is not None and (height, width) != feature.height_width():
            raise OpError("PG419", f"the masks of `{name}` are {height}×{width} pixels", field="size")
        highest = LARGEST if type_.classes is None else type_.classes - 1
        wrong = [int(value) for value in np.unique(array) if not 0 <= value <= highest and value != feature.ignore]
        if wrong:
            message = f"`{name}` holds {wrong[0]}; class indices go from 0 to {highest}"
            raise OpError("PG419", message, field="classes" if type_.classes is not None else None)
        return Column(array.astype(np.uint8, copy=False), type_)


class InstanceMask(Mask):
    """One plane for all items of an image: a pixel holds the number of its item, counted from 1, or 0 for none. A mask that is `with`
    boxes is one. Items keep their numbers until the end, where numbers become places: `v` is the item at `v - 1`. Pixels of dropped items
    are 0.
    """

    name = "instance_mask"
    plural = "masks of instances"
    arguments = ("of", "root", "ending", "size", "ignore")
    each = ""
    rules_of = "mask"
    meaning = InstanceNumber()

    def check(self, name: str, feature: Any) -> None:
        if 0 < feature.ignore <= MOST_INSTANCES:
            raise PartError(f"`{name}` numbers instances from 1, so its `ignore` must be 0 or 255", name, "ignore")


class Valid(FeatureKind):
    """A boolean for each item, or step, of another feature, false for padding. It is made with a ragged feature, or with padding."""

    name = "valid"
    plural = "valid masks"
    storage = "made"
    meaning = Presence()


class ItemNumber(FeatureKind):
    """The number of each item of another feature in a mask of instances, as float32. It is made with such a mask."""

    name = "item_number"
    plural = "numbers of items in a mask"
    storage = "ragged"
    meaning = InstanceNumber()


def with_numbers(type_: ElementType) -> ElementType:
    """Adds the numbers of items, as `NAME_number`, to the type of a record with masks of instances."""
    homes = dict.fromkeys(t.instances for _, t in type_.items() if t.instances is not None)
    return type_.replace(**{number_name(home): item_type("item_number", home, "float32") for home in homes})


def number_name(home: str) -> str:
    """Returns the name of the numbers of the items of the feature `home`."""
    return f"{home}_number"
