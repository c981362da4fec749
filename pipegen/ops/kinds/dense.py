"""Dense maps: numbers for each pixel of an image, such as its depth, or vectors, such as optical flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.families.decoder import ArrayDecoder, MapDecoder, VectorDecoder
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import as_array
from pipegen.ops.kinds.base import FeatureKind, Overlay, PixelValues
from pipegen.ops.lowering.pictures import blended, directions, levels
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType


@dataclass(frozen=True, slots=True)
class DenseRules:
    """What a map holds, and how it is read between pixels, as in a spec."""

    values: Literal["vectors"] | None = None
    interpolation: Literal["nearest", "bilinear"] = "bilinear"


class DenseValues(PixelValues, Overlay):
    """Numbers from dark to bright, or vectors by the colour of their direction."""

    also = ", or an array of uint8, uint16 or float32"

    def interpolation(self, x: FeatureType) -> Literal["nearest", "bilinear"] | None:
        return _rules(x).interpolation

    def turns(self, x: FeatureType) -> bool:
        return _rules(x).values == "vectors"

    def of_array(self, x: FeatureType, dtype: str, shape: tuple[int | None, ...]) -> FeatureType:
        channels = shape[-1] or (2 if self.turns(x) else 1)
        if self.turns(x) and channels != 2:
            raise OpError("PG431", f"vectors have two channels, x and y, not {channels}")
        return x.with_(dtype="float32", shape=(*shape[:-1], channels), uniform=True, file_channels=None, file_bits=None)

    def shown(self, value: Any, x: FeatureType) -> Any:
        if self.turns(x):
            return directions(value)
        known = np.nan_to_num(value, posinf=0.0, neginf=0.0)
        low, high = float(known.min(initial=0)), float(known.max(initial=0))
        return levels((known[..., :1] - low) * (255.0 / max(high - low, 1e-6)))

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        return blended(image, self.shown(value, x))


class Dense(FeatureKind):
    """Numbers for each pixel of an image, as float32: depth, heat maps, optical flow. Geometry resamples them; steps that change values
    leave them alone, unless they name them.
    """

    name = "dense"
    plural = "dense maps"
    arguments = ("of", "root", "ending", "size", "channels", "bits", "format", "values", "interpolation", "ignore")
    storage = "encoded"
    pixels = DenseValues()
    details = DenseRules
    rules_of = "image"

    def check(self, name: str, feature: Any) -> None:
        format = getattr(feature, "format", None)
        if isinstance(feature.values, dict):
            raise PartError(f"`values` of `{name}` maps classes of masks; a dense map has `values: vectors`, or numbers", name, "values")
        given = next((argument for argument in ("channels", "bits") if getattr(feature, argument, None) is not None), None)
        if given is not None and format is not None:
            raise PartError(f"`{given}` is for image files, but `{name}` has a `format`", name, given)
        if format == "flo" and not feature.values:
            message = f"`{name}` is an optical flow, whose vectors turn with the image"
            raise PartError(message, name, "format", help="say so: `values: vectors`")
        if feature.values and feature.channels not in (None, 2):
            raise PartError(f"`{name}` has {count(feature.channels, 'channel')}, but vectors have two, x and y", name, "channels")

    def stored_type(self, feature: Any) -> FeatureType:
        return FeatureType(self.name, "string", (), ignore=feature.ignore, details=self.details_of(feature))

    def decoder(self, feature: Any) -> Transform:
        found: ArrayDecoder | None = feature.array_decoder() if getattr(feature, "format", None) is not None else None
        if not feature.values:
            return found or MapDecoder(channels=feature.channels or 1, bits=feature.bits or 8)
        return VectorDecoder(format=found.format, options=found.options) if found is not None else VectorDecoder()

    def details_of(self, feature: Any) -> DenseRules:
        return DenseRules(feature.values, feature.interpolation or "bilinear")

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        rules = self.details_of(feature)
        shape = (*feature.height_width(), feature.channels or (2 if rules.values else 1))
        return (FeatureType(self.name, "float32", shape, uniform=True, ignore=feature.ignore, details=rules),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        array, x = as_array(name, given), self.array_types(feature)[0]
        if array.ndim == 3 and not feature.values:
            array = array[..., None]
        if array.ndim != 4:
            raise OpError("PG204", f"the maps of `{name}` need the shape (n, height, width, channels), not {array.shape}")
        if not array.size:
            raise OpError("PG402", f"the array `{name}` has no rows")
        if array.dtype.kind not in "buif":
            raise OpError("PG419", f"the maps of `{name}` are {array.dtype}", help="they must be numbers")
        size, channels = array.shape[1:3], array.shape[3]
        if feature.size is not None and size != feature.height_width():
            raise OpError("PG419", f"the maps of `{name}` are {size[0]}×{size[1]} pixels", field="size")
        if channels != x.channels and (feature.channels is not None or feature.values):
            raise OpError("PG419", f"the maps of `{name}` have {count(channels, 'channel')}, not {x.channels}", field="channels")
        return Column(array.astype(np.float32, copy=False), x.with_(shape=array.shape[1:]))

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        rules, plain = _rules(x), DenseRules()
        return {name: value for name in ("values", "interpolation") if (value := getattr(rules, name)) != getattr(plain, name)}


def _rules(x: FeatureType) -> DenseRules:
    return x.details  # type: ignore[return-value]
