"""Arrays: numbers of one shape for each example, in a file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.ops.kinds.base import FeatureKind
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.ops.transform import Transform


class Array(FeatureKind):
    """A tensor read from a file for each example, such as an optical flow or a volume. No step acts on it."""

    name = "array"
    plural = "arrays"
    arguments = ("root", "ending", "format", "shape")
    storage = "encoded"

    def stored_type(self, feature: Any) -> FeatureType:
        return FeatureType(self.name, "string", ())

    def decoder(self, feature: Any) -> Transform:
        return feature.array_decoder().model_copy(update={"shape": feature.shape})
