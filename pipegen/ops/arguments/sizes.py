"""Defines the size of an image as an argument."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Size = Annotated[int, Field(ge=1, le=32767)] | tuple[Annotated[int, Field(ge=1, le=32767)], Annotated[int, Field(ge=1, le=32767)]]
"""A square's side or `[height, width]`, in pixels."""


def height_width(size: int | tuple[int, int]) -> tuple[int, int]:
    """`(height, width)` of a `Size`, in pixels."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])
