"""Checks that a feature can be built from what is stored under its key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.stores.field_types import BYTES, NUMERAL
from pipegen.types import BYTE_RANGE, WORD_RANGE, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.stores.field_types import FieldType

PIXELS: dict[str, Interval | None] = {"uint8": BYTE_RANGE, "uint16": WORD_RANGE, "float32": None}
"""Dtypes of images that are arrays, with the interval of their values."""


def check_field(name: str, feature: RecordFeature, key: str, held: FieldType, where: str = "", *, arrays: bool = False) -> None:
    """Raises `PG431` if a feature cannot be built from the values of a key.

    Args:
        name: The feature.
        feature: Its arguments.
        key: The key.
        held: The type of its values.
        where: Which records have it, after the key in messages.
        arrays: Whether images may be arrays.
    """
    kind, wanted = kind_of(feature), feature.stored_shape
    numbers = held.numeric or held.dtype == NUMERAL
    if kind.pictured:
        fits = (held.dtype == BYTES and not held.shape and not held.path) or (arrays and held.dtype in PIXELS and len(held.shape) in (2, 3))
        due = "the bytes of an image file" + ", or an array of uint8, uint16 or float32" * arrays
    elif kind.labels:
        fits, due = bool(held.dtype) and math.prod(held.shape) == 1, "one class index or class name"
    else:
        fits = numbers and math.prod(held.shape) == math.prod(wanted)
        due = f"numbers of shape {list(wanted)}" if wanted else "one number"
    if fits:
        return
    suits = kind.numbers and numbers and not kind.weighs
    help_ = write(f"shape: {list(held.shape)}", "arguments", "{} keeps them as they are") if suits else None
    raise OpError("PG431", f"{key!r}{where} holds {held}, but `{name}` needs {due}", field=feature.key_field(name), help=help_)


def missing_key(message: str, feature: RecordFeature, name: str, key: str, known: Sequence[str], listed: str) -> OpError:
    """Returns the error for a key that records lack, which suggests a known one."""
    near = closest(key, known)
    help_ = listed if near is None else (write(f"key: {near}", "arguments", "is {} meant?"), listed)
    return OpError("PG431", message, field=feature.key_field(name), help=help_)
