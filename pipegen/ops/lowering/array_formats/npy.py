"""NumPy's own files."""

from __future__ import annotations

import io
import math
from typing import Any

from pipegen.lazy import np
from pipegen.ops.lowering.library import UnreadableError


def read(contents: bytes) -> Any:
    """Reads an array of numbers; one of objects would be unpickled, and is refused.

    Raises:
        UnreadableError: What is wrong.
    """
    stream = io.BytesIO(contents)
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(stream)
    if dtype.hasobject or dtype.kind not in "buif":
        raise UnreadableError(f"holds {'Python objects' if dtype.hasobject else dtype}, and numbers are due")
    count, start = math.prod(shape), stream.tell()
    if min(shape, default=0) < 0 or len(contents) - start < count * dtype.itemsize:
        raise UnreadableError("is cut short")
    values = np.frombuffer(contents, dtype, count, start)
    return values.reshape(shape, order="F" if fortran else "C")
