"""Sizes in bytes and times with units: `512MiB`, `5s`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_TIMES = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_AMOUNT = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-z]{1,3})\s*")
_SIZE_PATTERN = r"^\s*\d+(\.\d+)?\s*([KMGT]iB|[kMGT]?B)\s*$"
_TIME_PATTERN = r"^\s*\d+(\.\d+)?\s*(ms|s|min|h)\s*$"


def _amount(text: str, what: str, units: Mapping[str, float], example: str) -> float:
    match = _AMOUNT.fullmatch(text)
    if match is None or match[2] not in units:
        raise ValueError(f"a {what} is a number and a unit ({', '.join(units)}), such as `{example}`; got {text!r}")
    return float(match[1]) * units[match[2]]


def parse_bytes(value: object) -> object:
    """Converts a text such as `8GiB` to bytes; other values are left to the type check. Raises `ValueError` if the text is not a size."""
    return int(_amount(value, "size", _UNITS, "512MiB")) if isinstance(value, str) else value


def format_bytes(n: float) -> str:
    """`n` bytes as text in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024:
            return f"{n:.0f} {unit}" if unit == "B" or n == int(n) else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


ByteSize = Annotated[
    int,
    Field(ge=1),
    BeforeValidator(parse_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": _SIZE_PATTERN}]}),
]
"""A number of bytes, or a text such as `512MiB`."""


def parse_seconds(value: object) -> object:
    """Converts a text such as `5s` to seconds; other values are left to the type check. Raises `ValueError` if the text is not a time."""
    return _amount(value, "time", _TIMES, "5s") if isinstance(value, str) else value


Seconds = Annotated[
    float,
    Field(gt=0, le=86400),
    BeforeValidator(parse_seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 86400}, {"type": "string", "pattern": _TIME_PATTERN}]}),
]
"""A time in seconds, or a text such as `5s`."""
