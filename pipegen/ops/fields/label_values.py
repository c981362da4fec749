"""The rule for the meaning of stored labels, the same for every source: all values decide, whatever their type in the file.

- Integers, as numbers or as text, are class indices: `2`, `"10"`, and `2.0`, as pandas writes a column with an empty cell.
- `True` and `False` are the class indices 1 and 0.
- Anything else is a class name, including numbers with leading zeros, a plus sign or an exponent. Names are in text order.
- One value that is not a number makes all of them names.
- A number with a fraction is an error, as is an empty value.
- Values listed in `classes` are names. If it lists integers, every value is a name.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.lazy import np

if TYPE_CHECKING:
    from pipegen.ops.fields.strings import Ints

LIST = "\x1f"  # precedes each item of a cell with a list; no label text contains it
WHITESPACE = "whitespace"  # the separator of cells between any number of blanks and tabs
WHOLE = re.compile(r"-?(?:0|[1-9]\d*)", re.ASCII)  # an integer as text
_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.(\d+))?", re.ASCII)
_TRUE, _FALSE = "True", "False"
BOOLEANS = (_FALSE, _TRUE)  # the texts of truth values, in order of their class indices
_MISSING = frozenset({"nan", "+nan", "-nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nat"})
_INFINITE = frozenset({"inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"})
_LIST = re.compile(r"\[.*\]", re.DOTALL)
_QUOTED_LIST = re.compile(r"""[\[({]\s*(['"]).*\1\s*,?\s*[\])}]|\(.*,.*\)|\{.*,.*\}|\(\)|\{\}|set\(\)""", re.DOTALL)
_LIKE_A_NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d*)?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\d 00:00:00", re.ASCII)
_NANOSECONDS = re.compile(r"(.*)T(\d\d:\d\d:\d\d)(?:\.(\d+))?")


class IndexedNames(tuple[str, ...]):
    """Class names that metadata gives for stored indices: stored numbers are indices even if names look like numbers."""


@dataclass(frozen=True)
class Values:
    """The labels of all records as text."""

    texts: tuple[str, ...]  # the distinct values
    codes: Ints  # the index in `texts` of each record's value, int64 `(n,)`

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, given: Any) -> Values:
        """Converts an array or a list of stored values; `TypeError` with the dtype if they cannot be labels."""
        if not isinstance(given, np.ndarray):
            if not all(type(value) is int and -(2**63) <= value < 2**63 for value in given):
                return cls.of_texts(label_texts(given))
            given = np.array(given, np.int64)
        if given.dtype.kind in "cmV":
            raise TypeError(str(given.dtype))
        if given.dtype.kind not in "biufM":
            return cls.of_texts(label_texts(given.tolist()))
        distinct, codes = np.unique(given, return_inverse=True)
        found = cls.of_texts(label_texts(list(distinct)))
        return cls(found.texts, found.codes[codes.reshape(-1)])

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> Values:
        """Builds it from `label_texts`."""
        places: dict[str, int] = {}
        codes: Ints = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
        return cls(tuple(places), codes)

    def take(self, rows: Ints) -> Values:
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        return Values(tuple(self.texts[i] for i in kept.tolist()), codes.reshape(-1))

    def count(self, texts: Iterable[str]) -> int:
        """Counts the records with one of these values."""
        return int(np.isin(self.codes, [self.texts.index(text) for text in texts]).sum())

    def first(self, text: str) -> int:
        return int(np.argmax(self.codes == self.texts.index(text)))


def label_texts(values: Iterable[Any]) -> list[str]:
    """Converts stored values to text as pandas does for CSV: missing ones are empty, bytes are UTF-8."""
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    found = _plain_text(value, _text)
    if found is not None:
        return found
    if type(value).__name__ == "datetime64":
        return _moment(value)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return f"{int(value)}.0" if value.is_integer() else repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    return "" if is_missing(value) else str(value).strip()


def text_of(value: Any) -> str:
    """Converts a cell to text: "" for a missing value, integers without a fraction, `LIST` before each item of a list, JSON for an
    object."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape").strip()
    found = _plain_text(value, _item_text)
    if found is not None:
        return found
    if isinstance(value, dict):
        return json.dumps(value, default=str)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if is_missing(value) else str(value)


def _item_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, (dict, list)) else text_of(value)


def _plain_text(value: Any, of_item: Callable[[Any], str]) -> str | None:
    """Converts texts, bytes, lists of items and missing values; `None` for others."""
    if isinstance(value, str):
        return str(value).strip()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "surrogateescape").strip()
    if isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0):
        items = [LIST + of_item(item) for item in value]
        return "".join(sorted(items) if isinstance(value, (set, frozenset)) else items)
    return "" if is_missing(value) else None


def is_missing(value: Any) -> bool:
    """Tells whether a value is `None`, not-a-number of any kind, missing for pandas, or masked by NumPy."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        return False


def _moment(value: Any) -> str:
    """Converts a `datetime64`, whose nanoseconds `item()` would make an integer."""
    moment = value.item()
    if isinstance(moment, date):
        return str(moment)
    found = _NANOSECONDS.fullmatch(str(value))
    if found is None:
        return str(value)
    fraction = (found[3] or "").rstrip("0")
    digits = fraction.ljust(6 if len(fraction) <= 6 else 9, "0")
    return f"{found[1]} {found[2]}" + (f".{digits}" if fraction else "")


def as_dates(texts: Sequence[str]) -> Sequence[str]:
    """Shortens times to dates if all are at midnight, as pandas does."""
    return [text[:10] for text in texts] if all(_MIDNIGHT.fullmatch(text) for text in texts) else texts


def plain(text: str) -> str:
    """Removes a fraction of zeros from an integer; returns other texts as they are."""
    found = _NUMBER.fullmatch(text)
    return found[1] if found is not None and not (found[2] or "").strip("0") else text


@dataclass(frozen=True)
class Meaning:
    """The meaning of a label's values: class indices or names."""

    indices: Mapping[str, int] | None  # the stored integer of each distinct text; `None` for class names
    boolean: bool = False  # whether they are truth values
    fractions: tuple[str, ...] = ()  # texts of numbers that are not integers, which are errors
    missing: tuple[str, ...] = ()  # texts that stand for a missing number


NAMES = Meaning(None)


def meaning_of(texts: Sequence[str], classes: int | tuple[str, ...] | None, offset: int) -> Meaning:
    """Decides whether distinct, non-empty values are class indices or names.

    Args:
        texts: The values.
        classes: As declared in the spec.
        offset: Number subtracted from stored numbers; unless it is 0, they are indices.
    """
    known = frozenset(classes if isinstance(classes, tuple) else ())
    if lists_numbers(classes, offset) or any(text in known and not WHOLE.fullmatch(plain(text)) for text in texts):
        return NAMES
    if texts and all(text in BOOLEANS for text in texts):
        return Meaning({text: BOOLEANS.index(text) for text in texts}, boolean=True)
    found = {text: _NUMBER.fullmatch(text) for text in texts}
    odd = [text for text, match in found.items() if match is None]
    missing = tuple(text for text in odd if text.lower() in _MISSING)
    infinite = tuple(text for text in odd if text.lower() in _INFINITE)
    if len(odd) > len(missing) + len(infinite) or len(odd) == len(found):
        return NAMES
    fractions = tuple(text for text, match in found.items() if match is not None and (match[2] or "").strip("0"))
    return Meaning({text: int(m[1]) for text, m in found.items() if m is not None}, fractions=(*fractions, *infinite), missing=missing)


def lists_numbers(classes: int | tuple[str, ...] | None, offset: int) -> bool:
    """Tells whether `classes` lists integers as names, so that stored numbers are names."""
    if not isinstance(classes, tuple) or isinstance(classes, IndexedNames) or offset:
        return False
    return any(WHOLE.fullmatch(plain(name)) for name in classes)


def parts(cell: str, separator: str) -> list[str]:
    """Splits a cell into its classes."""
    found = cell[1:].split(LIST) if cell.startswith(LIST) else cell.split(separator)
    return [part for part in map(str.strip, found) if part]


def split_text(value: Any, separator: str) -> Any:
    """Splits the classes of a record in a text, or in the only text of a list; returns other lists as they are."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    text = listed[0] if isinstance(listed, (list, tuple)) and len(listed) == 1 else listed
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return parts(text, separator) if isinstance(text, str) else value


def not_text(texts: Iterable[str]) -> str | None:
    """Returns the first text that is not UTF-8, which contains surrogates."""
    return next((text for text in texts if any("\ud800" <= letter <= "\udfff" for letter in text)), None)


def written_lists(texts: Sequence[str]) -> str | None:
    """Returns an example of lists written as in Python or JSON: one with quotes, or all of them in square brackets."""
    quoted = next((text for text in texts if _QUOTED_LIST.fullmatch(text)), None)
    if quoted is not None and all(text[:1] + text[-1:] in ("[]", "()", "{}") for text in texts if text != "set()"):
        return quoted
    return texts[0] if texts and all(_LIST.fullmatch(text) for text in texts) else None


def twins(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups names that differ only in case, blanks, Unicode form or number format."""
    groups: dict[str | Decimal, list[str]] = {}
    for name in names:
        same = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        groups.setdefault(Decimal(same.replace(",", "")) if _LIKE_A_NUMBER.fullmatch(same) else same, []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def order_of_numbers(names: Sequence[str]) -> tuple[str, str] | None:
    """Compares the text order of names with the order of the numbers among them. Returns two names that are numbers, the larger first in
    text order; if all names are ordered numbers but not their own indices, the first of these twice; else `None`."""
    numbers = [(float(name.replace(",", "")), name) for name in names if _LIKE_A_NUMBER.fullmatch(name)]
    apart = next(((a[1], b[1]) for a, b in pairwise(numbers) if a[0] > b[0]), None)
    if apart is not None or len(numbers) < len(names):
        return apart
    return next(((name, name) for i, (number, name) in enumerate(numbers) if number != i), None)
