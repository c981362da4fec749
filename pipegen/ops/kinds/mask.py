"""Masks: the class index of each pixel of an image, or the item that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipegen.errors import PartError
from pipegen.lazy import np
from pipegen.ops.families.decoder import LARGEST
from pipegen.ops.kinds.base import Column, FeatureKind, Indices, InstanceNumber, Meaning, PixelClass
from pipegen.ops.kinds.item_number import MOST_INSTANCES
from pipegen.ops.lowering.pictures import encode_mask, overlay
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.kinds.base import Place
    from pipegen.ops.transform import Transform


class MaskIndices(Indices):
    """Indices that are shown as colours."""

    def shown(self, value: Any, x: FeatureType) -> Any:
        """Draws indices on black."""
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
    arguments: ClassVar[tuple[str, ...]] = ("of", "root", "ending", "size", "classes", "values", "ignore")
    storage = "encoded"
    pixels = MaskIndices()
    meaning: ClassVar[Meaning] = PixelClass()
    each = "instance_mask"

    def check(self, name: str, feature: Any) -> None:
        given = getattr(feature, "classes", None)
        if given is None:
            return
        classes = given if isinstance(given, int) else len(given)
        if classes > LARGEST + 1:
            message = f"`{name}` has {classes} classes, but a mask has at most {LARGEST + 1}, since its pixels are bytes"
            raise PartError(message, name, "classes")
        values = getattr(feature, "values", None) or {}
        stored = next((stored for stored, index in values.items() if index >= classes and index != feature.ignore), None)
        if stored is not None:
            message = f"`values` of `{name}` has the class index {values[stored]}, but there are {classes} `classes`, counted from 0"
            raise PartError(message, name, "values")

    def stored_type(self, feature: Any, of: str | None) -> FeatureType:
        classes = feature.num_classes
        if classes is None and feature.values:
            classes = max(feature.values.values()) + 1
        return FeatureType(self.name, "string", (), of=of, classes=classes, ignore=feature.ignore, instances=feature.home)

    def decoder(self, feature: Any) -> Transform:
        return feature.decoder(feature.num_classes)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        highest = max((feature.num_classes or LARGEST + 1) - 1, feature.ignore)
        x = FeatureType(self.name, "uint8", (*feature.height_width(), 1), Interval(0.0, float(highest)), uniform=True)
        return (x.with_(classes=feature.num_classes, ignore=feature.ignore, instances=feature.home),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        from pipegen.ops.sources.array_rows.rows import as_array, read_mask

        return Column(*read_mask(name, feature, as_array(name, given)))


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
