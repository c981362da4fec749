"""Images: levels of gray or of colours."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from pipegen.errors import PartError
from pipegen.ops.kinds.base import Column, FeatureKind, Levels
from pipegen.ops.lowering.pictures import encode_image, levels
from pipegen.types import BYTE_RANGE, WORD_RANGE, FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Place
    from pipegen.ops.transform import Transform

_UNIT = Interval(0.0, 1.0)


class ImageLevels(Levels):
    """Levels that are shown from black to white."""

    def shown(self, value: Any, x: FeatureType) -> Any:
        return levels(value, x.interval)

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        return encode_image(self.shown(value, x), form, quality)


class Image(FeatureKind):
    """A photograph, a depth map, or other levels."""

    name = "image"
    plural = "images"
    arguments = ("of", "root", "ending", "size", "channels", "bits", "range", "format", "columns")
    storage = "encoded"
    pixels = ImageLevels()

    def stored_type(self, feature: Any, of: str | None) -> FeatureType:
        if getattr(feature, "size", None) is None:
            return FeatureType("image", "string", (), of=of, file_channels=feature.channels, file_bits=feature.bits)
        dtype, interval = ("uint8", BYTE_RANGE) if feature.bits != 16 else ("uint16", WORD_RANGE)
        return FeatureType("image", dtype, feature.pixels, interval, of=of, uniform=True)

    def check(self, name: str, feature: Any) -> None:
        given = next((argument for argument in ("channels", "bits") if getattr(feature, argument, None) is not None), None)
        if given is not None and getattr(feature, "format", None) is not None:
            raise PartError(f"`{given}` is for image files, but `{name}` has a `format`", name, given)
        if getattr(feature, "format", None) == "flo":
            message = f"`{name}` is an image, but flips would not change the vectors of a flow"
            raise PartError(message, name, "format", help="use `kind: array` with a `shape`")
        if getattr(feature, "format", None) == "nifti":
            message = f"the number of channels of the volume `{name}` is unknown"
            raise PartError(message, name, "format", help="`{nifti: {slices: N}}` reads N slices, and `{nifti: {slice: 0}}` one")

    def decoder(self, feature: Any) -> Transform | None:
        from pipegen.ops.sources.features.file_formats import decoder_of

        return decoder_of(feature.format) if getattr(feature, "format", None) is not None else None

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        values: list[tuple[str, Interval | None]] = [("uint8", BYTE_RANGE), ("uint16", WORD_RANGE)]
        values += [("float32", _UNIT), ("float32", BYTE_RANGE), ("float32", None)]
        if feature.range is not None:
            values = [("float32", Interval(*feature.range))]
        elif feature.bits is not None:
            values = values[:1] if feature.bits == 8 else values[1:2]
        channels = (3, 1, 4) if feature.channels is None else (feature.channels,)
        size = feature.height_width()
        return tuple(FeatureType("image", d, (*size, c), i, uniform=True) for (d, i), c in product(values, channels))

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        from pipegen.ops.sources.array_rows.rows import read_image

        return Column(*read_image(name, feature, given))
