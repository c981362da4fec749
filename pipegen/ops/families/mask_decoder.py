"""Turns a mask's file into class indices. A source says so of its masks, so it is no step that a spec writes."""

from __future__ import annotations

from typing import ClassVar

from pipegen.lazy import tf
from pipegen.ops.families.decoder import DecodeTransform, format_of
from pipegen.ops.traits import Family, Traits
from pipegen.types import FeatureType, Interval

LARGEST = 255
"""The largest class index of a mask, which is held in a byte."""


class MaskDecoder(DecodeTransform):
    """A mask's file becomes the class index of each pixel: the stored value, or what `values` makes of it."""

    op: ClassVar[str] = "decode"

    values: tuple[tuple[int, int], ...] | None = None
    """Pairs of a stored value and its class index; `None` takes the stored values for class indices."""
    allowed: tuple[int, ...] | None = None
    """The class indices that there can be; `None` for any."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, decodes=True)

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 `(height, width, 1)`."""
        indices = [index for _, index in self.values or ()] or self.allowed or (LARGEST,)
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, float(max(*indices, x.ignore))))

    def read_by_python(self, content: bytes) -> str | None:
        gray = content.startswith(b"\x89PNG") and content[25:26] == b"\0"
        return None if gray else format_of(content) or "a PNG of palette indices or colours, or another format than PNG"

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        """uint8 `(height, width, 1)`; see `lowering.masks.decode_mask`."""
        from pipegen.ops.lowering.masks import decode_mask  # with all formats, which checking a spec does without

        return decode_mask(contents, self.values or tuple((index, index) for index in self.allowed or ()) or None)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return self.decode(image)
