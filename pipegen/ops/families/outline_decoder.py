"""Draws the outlines that an annotation file holds. A source says so of its masks, so no spec writes it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pipegen.ops.families.array_decoder import ArrayDecoder
from pipegen.types import FeatureType, Interval


class OutlineDecoder(ArrayDecoder):
    """An annotation file becomes a mask of instances: the number of the shape that is drawn last at each pixel."""

    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "always"

    dtype = "uint8"
    shape: tuple[int | None, ...] = (None, None, 1)

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 `(height, width, 1)`."""
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, 255.0))

    def read_by_python(self, content: bytes) -> str | None:
        return f"outlines ({self.format})"
