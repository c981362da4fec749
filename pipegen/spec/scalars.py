"""Plain scalars of YAML 1.2's core schema, which is what people expect: `no` is text, `012` is twelve, `1e-4` is a number; and plain
values as text of YAML."""

from __future__ import annotations

import json
import re
from typing import Any

from pipegen.terminal import ODD

Scalar = str | int | float | bool | None

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INF = re.compile(r"[-+]?\.(inf|Inf|INF)\Z")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
_RAW = re.compile(f"{ODD.pattern}|[\ufdd0-\ufdef\ufffe\uffff]")
"""What is written as an escape."""
_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_MAX_DIGITS = 400
"""A longer run of digits is text: Python refuses to convert thousands of them, and no setting needs any."""


def resolve(text: str) -> Scalar:
    """The value of a plain (unquoted) scalar."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    return text if len(text) > _MAX_DIGITS else _number(text)


def _number(text: str) -> Scalar:
    if _INT.match(text):
        return int(text)
    if _OCTAL.match(text):
        return int(text[2:], 8)
    if _HEX.match(text):
        return int(text[2:], 16)
    if _FLOAT.match(text):
        return float(text)
    if _INF.match(text):
        return float("-inf" if text[0] == "-" else "inf")
    return float("nan") if text in _NAN else text


def needs_quotes(text: str) -> bool:
    """Returns whether `text`, written plainly, would be read as something other than this text."""
    if _RAW.search(text) or resolve(text) != text or text != text.strip():
        return True
    return text[:1] in "-?:,[]{}#&*!|>'\"%@`" or ": " in text or " #" in text


def quoted(text: str) -> str:
    """`text` in quotes, as it can stand anywhere in a spec; what no spec may hold, or no terminal may show, as escapes."""
    return double_quoted(text) if _RAW.search(text) else "'" + text.replace("'", "''") + "'"


def double_quoted(text: str) -> str:
    """`text` in double quotes, on one line."""
    return '"' + _RAW.sub(_escaped, text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _escaped(match: re.Match[str]) -> str:
    char, point = match[0], ord(match[0])
    short = _SHORT.get(char)
    return short or (f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}")


def flow_scalar(text: str) -> str:
    """`text` as it can stand inside `{…}` and `[…]`, a dollar and all."""
    text = text.replace("$", "$$")
    return quoted(text) if needs_quotes(text) or any(c in text for c in ",[]{}#:") else text


def flow(value: Any) -> str:
    """Returns a value as it can stand anywhere in a spec: `{size: [224, 224]}`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(inner)}" if inner != {} else f"{key}: {{}}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return flow_scalar(value)
    if isinstance(value, float) and "e" in repr(value):
        return f"{value:.12f}".rstrip("0") if abs(value) < 1 else repr(value)
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
