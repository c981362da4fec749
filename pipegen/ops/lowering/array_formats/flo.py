"""Optical flow in Middlebury's form (Baker et al., A Database and Evaluation Methodology for Optical Flow, 2011)."""

from __future__ import annotations

import struct
from typing import Any

from pipegen.lazy import np
from pipegen.ops.lowering.library import UnreadableError

_MAGIC = b"PIEH"
"""The float 202021.25, by which a reader sees the order of bytes."""


def read(contents: bytes) -> Any:
    """Reads the flow in pixels, to the right and down: float32 `(height, width, 2)`.

    Raises:
        UnreadableError: What is wrong.
    """
    if contents[:4] != _MAGIC or len(contents) < 12:
        raise UnreadableError("is no `.flo` file: it does not begin with `PIEH`")
    width, height = struct.unpack("<ii", contents[4:12])
    if width < 1 or height < 1:
        raise UnreadableError(f"is a `.flo` file of {height}×{width} pixels")
    if len(contents) - 12 != 8 * width * height:
        raise UnreadableError(f"is a `.flo` file of {height}×{width} pixels, and holds {len(contents) - 12:,} bytes of them")
    return np.frombuffer(contents, "<f4", 2 * width * height, 12).reshape(height, width, 2)
