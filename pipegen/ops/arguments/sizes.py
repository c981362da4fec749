"""Defines the size of an image as an argument."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.errors import InternalError

Side = Annotated[int, Field(ge=1, le=32767)]
"""A side of an image in pixels."""
FixedSize = Side | tuple[Side, Side]
"""A square's side or `[height, width]`, in pixels."""
Size = FixedSize | Literal["bucket"]
"""The same; or `bucket`, the size of whichever bucket of `batch.buckets` an image is in."""
BUCKET: Literal["bucket"] = "bucket"


def height_width(size: int | tuple[int, int] | Literal["bucket"]) -> tuple[int, int]:
    """`(height, width)` of a `Size`, in pixels; which bucket it is has to be known by then."""
    if isinstance(size, str):
        raise InternalError("a step is asked for its size, and nobody has said which bucket it works for")
    return (size, size) if isinstance(size, int) else (size[0], size[1])
