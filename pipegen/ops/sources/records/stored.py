"""How a feature is stored, as found in the first record."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.records.json_fields import field_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.sources.records.features import RecordFeature


@dataclass(frozen=True)
class Stored:
    """The storage of a feature, as in the first record.

    Attributes:
        head: The bytes before the numbers: the header of an `.npy` file.
        dtype: The dtype of the numbers.
    """

    head: bytes = b""
    dtype: str = ""


def missing_key(message: str, feature: RecordFeature, name: str, key: str, known: Sequence[str], listed: str) -> OpError:
    """Returns the error for a key that records lack, which suggests a known one."""
    near = closest(key, known)
    help_ = listed if near is None else (write(f"key: {near}", "arguments", "is {} meant?"), listed)
    return OpError("PG431", message, field=feature.key_field(name), help=help_)


def how_field_stored(name: str, feature: RecordFeature, column: str, path: tuple[str, ...], content: bytes) -> Stored:
    """Finds how a field of JSON is stored, from its column in the first record; `PG431` if it is missing or unfit."""
    field = f"features.{name}.key"
    if kind_of(feature).pictured:
        raise OpError("PG431", f"`{name}` is an image, but a field of the JSON in {column!r} holds text or numbers", field=field)
    try:
        content = field_of(content, path)
    except ValueError as error:
        raise OpError("PG431", f"the column {column!r} of the first record: {error}", field=field) from None
    return how_stored(name, feature, content, field)


def how_stored(name: str, feature: RecordFeature, content: bytes, field: str) -> Stored:
    """Finds how a feature is stored from the bytes of one; `PG431` if they do not fit."""
    import numpy as np

    kind = kind_of(feature)
    if kind.pictured or kind.labels:
        return Stored()
    wanted = math.prod(feature.stored_shape)
    if not content.startswith(b"\x93NUMPY"):
        try:
            numbers = [float(word) for word in content.split()]
        except ValueError:
            numbers = []
        if len(numbers) == wanted == 1:
            return Stored(dtype="text")
        due = "a number as text" if wanted == 1 else "an `.npy` file"
        message = f"`{name}` needs {due}, but the first record holds {content[:20]!r}"
        raise OpError("PG431", message, field=field)
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except Exception as error:  # NumPy evaluates the header as Python, which raises anything
        raise OpError("PG431", f"`{name}` of the first record is not an `.npy` file: {error}", field=field) from None
    if dtype.hasobject or dtype.kind not in "biuf" or (fortran and len(shape) > 1) or dtype.byteorder == ">":
        raise OpError("PG431", f"`{name}` holds {dtype}{' in Fortran order' * fortran}; supported are numbers in C order", field=field)
    if math.prod(shape) != wanted:
        help_ = write(f"shape: [{', '.join(map(str, shape))}]", "arguments", "{} is what it has") if not kind.weighs and shape else None
        message = f"`{name}` of the first record has the shape {shape}, but the spec says {feature.stored_shape}"
        raise OpError("PG431", message, field=field, help=help_)
    return Stored(head=content[: stream.tell()], dtype=dtype.name)
