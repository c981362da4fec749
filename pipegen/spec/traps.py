"""Finds what looks like a number or a yes in YAML and is text: `1/255`, `4:3`, `1_000`, `50%`, `yes`."""

from __future__ import annotations

import re

from pipegen.spec.scalars import resolve

_FRACTION = re.compile(r"([-+]?\d+(?:\.\d+)?) */ *(\d+(?:\.\d+)?)")
_UNDERSCORES = re.compile(r"[-+]?\d+(_\d+)+(\.\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")
_COMMA = re.compile(r"[-+]?\d+,\d+")
_RATIO = re.compile(r"(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)")
_PERCENT = re.compile(r"([-+]?\d+(?:\.\d+)?) *%")
_YES = frozenset({"yes", "on", "y", "true"})
_NO = frozenset({"no", "off", "n", "false"})


def has_one_reading(text: str) -> bool:
    """Tells whether a text that `number_trap` reads can mean that number alone.

    `1/255` and `1_000` can. `50%` may be of something else than 1, `1,000` may be one or a thousand, `0,5` a pair, and `4:3` a time.
    """
    return bool(_FRACTION.fullmatch(text.strip()) or _UNDERSCORES.fullmatch(text.strip()))


def number_trap(text: str) -> tuple[int | float, str] | None:
    """The number that was probably meant, and why this is none; `None` when nothing is probable."""
    text = text.strip()
    if len(text) > 40:
        return None
    if m := _FRACTION.fullmatch(text) or _RATIO.fullmatch(text):
        return (float(m[1]) / float(m[2]), "YAML does not divide") if float(m[2]) else None
    if m := _PERCENT.fullmatch(text):
        return float(m[1]) / 100, "YAML has no per cent"
    if _UNDERSCORES.fullmatch(text):
        return _number(text.replace("_", "")), "YAML numbers have no underscores"
    if _THOUSANDS.fullmatch(text):
        return _number(text.replace(",", "")), "YAML numbers have no commas"
    if _COMMA.fullmatch(text):
        return float(text.replace(",", ".")), "a decimal number has a point"
    return None


def quoted_number(text: str) -> int | float | None:
    """The number in a text that only its quotes keep from being one."""
    value = resolve(text.strip()) if text.strip() else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def bool_trap(text: str) -> bool | None:
    """Returns the boolean that a word means to people; `None` if it means none."""
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
