"""Labels: what stored values mean, by one rule for every source, and their conversion to class indices and names.

All values decide, whatever their type in the file:

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field, WithJsonSchema

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.notes import Note, count, is_are, quoted
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
    """Tells whether a value is `None`, not-a-number of any kind, missing for pandas, or masked by NumPy; an array of values is not."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    if getattr(value, "ndim", 0):
        return False
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


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"the class {next(name for name in names if names.count(name) > 1)!r} is listed twice")
    return names


ClassName: TypeAlias = int | str  # a class by name, or by stored number
_LISTED_NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_NAMED = {"description": "A file with one class a line, in index order.", "type": "string", "minLength": 1}
_FILE = {"type": "object", "properties": {"file": _NAMED}, "required": ["file"], "additionalProperties": False}
ClassNames: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1), WithJsonSchema({"anyOf": [_LISTED_NAMES, _FILE]})]
"""The names of classes in index order, in a spec perhaps in a file, `{file: classes.txt}`, which the loader reads."""
KnownClasses: TypeAlias = Annotated[int, Field(ge=1)] | Annotated[ClassNames, AfterValidator(_each_once)]
"""The number of classes, or their distinct names."""
_MOST_COMPARED = 1_000


@dataclass(frozen=True)
class Classes:
    """Renamed and ignored classes, and values that stand for none."""

    names: Mapping[ClassName, ClassName] = field(default_factory=dict)  # the meant class of each stored one
    ignored: tuple[ClassName, ...] = ()  # the classes, after renaming, whose rows are left out
    unlabelled: tuple[ClassName, ...] = ()  # the stored values of rows whose class is unknown

    def check(self, listed: int | tuple[str, ...] | None) -> None:
        """Raises `PartError` if they contradict each other or the listed classes."""
        meant = {str(name) for name in self.names.values()}
        known = listed if isinstance(listed, tuple) else None
        for stored, name in self.names.items():
            if known is not None and str(name) not in known and str(name) not in map(str, self.ignored):
                near = closest(str(name), known)
                help_ = f"is {near!r} meant?" if near else f"it lists {quoted(known)}"
                message = f"`map` renames {str(stored)!r} to {str(name)!r}, which `classes` does not list"
                raise PartError(message, "map", stored, help=help_)
        for i, name in enumerate(self.ignored):
            if name in self.names and str(self.names[name]) != str(name) and str(name) not in meant:
                message = f"`ignore` leaves out {str(name)!r}, which `map` renames to {str(self.names[name])!r}"
                raise PartError(message, "ignore", i, help="remove it from one of the two; `ignore` comes after `map`")
            if known is not None and str(name) in known:
                raise PartError(
                    f"`ignore` leaves out {str(name)!r}, which `classes` lists", "ignore", i, help="remove it from one of the two"
                )
        others = {"map": {*map(str, self.names), *meant}, "ignore": map(str, self.ignored), "classes": known or ()}
        for i, name in enumerate(self.unlabelled):
            also = next((argument for argument, named in others.items() if str(name) in named), None)
            if also is not None:
                message = f"`unlabelled` has {str(name)!r}, which stands for no class, and so has `{also}`"
                meaning = [str(own) for own, to in self.names.items() if str(to) == str(name)]
                help_ = f"`unlabelled` takes stored values: {quoted(meaning)}" if meaning else "remove it from one of the two"
                raise PartError(message, "unlabelled", i, help=help_)

    def __bool__(self) -> bool:
        return bool(self.names or self.ignored or self.unlabelled)

    def renamed(self, cells: Sequence[str], separator: str | None) -> Sequence[str]:
        """Renames the cells of a column; `separator` separates several classes in a cell."""
        if not self.names:
            return cells
        names = {str(stored): str(name) for stored, name in self.names.items()}

        def name_of(text: str) -> str:
            return names.get(text, names.get(plain(text), text))

        if separator is None:
            return [name_of(cell) for cell in cells]
        return ["".join(LIST + name_of(part) for part in parts(cell, separator)) for cell in cells]

    def without_ignored(self, cells: Sequence[str], separator: str | None) -> list[int]:
        """Returns the numbers of the renamed cells without ignored classes."""
        gone = {str(name) for name in self.ignored}
        if separator is None:
            return [row for row, cell in enumerate(cells) if cell not in gone and plain(cell) not in gone]
        return [row for row, cell in enumerate(cells) if gone.isdisjoint([*(found := parts(cell, separator)), *map(plain, found)])]

    def notes(self, cells: Sequence[str], separator: str | None, field: str) -> Iterator[Note]:
        """Reports names that no stored cell has."""
        stored = set(cells) if separator is None else {part for cell in set(cells) for part in parts(cell, separator)}
        stored |= set(map(plain, stored))
        names = {str(own): str(name) for own, name in self.names.items()}
        yield from _unknown("map", names, stored, field)
        yield from _unknown("ignore", map(str, self.ignored), {names.get(name, name) for name in stored}, field)
        yield from _unknown("unlabelled", map(str, self.unlabelled), stored, field)


def _unknown(argument: str, names: Iterable[str], there: set[str], field: str) -> Iterator[Note]:
    missing = [name for name in names if name not in there]
    if not missing:
        return
    shown = sorted(there)[:_MOST_COMPARED]
    near = closest(missing[0], shown)
    help_ = f"is {near!r} meant?" if near else f"the column holds {quoted(shown)}"
    message = f"`{argument}` names {quoted(missing)}, which no row has"
    yield Note("PG451", message, help_, f"{field}.{argument}")


Known = int | tuple[str, ...] | None  # class names in index order, their number, or neither
_MOST = 100_000
_LISTED = 12  # largest number of classes that advice lists
_ALL_OF_THEM = "list all of them in `classes`, or remove such rows"
_NO_LABEL = (
    "list -1 in `ignore` to leave its rows out, or in `unlabelled` if they are only predicted on",
    "if all are -1, for no label, remove the feature",
)
_SHOWN = 3
_OBJECT = re.compile(r"""\{\s*["'][^"']*["']\s*:""")


def named_classes(classes: int | tuple[str, ...], offset: int) -> tuple[str, ...]:
    """Returns class names; for a number of classes, their stored indices."""
    return classes if isinstance(classes, tuple) else tuple(map(str, range(offset, classes + offset)))


def read_labels(
    name: str,
    classes: Known,
    offset: int,
    given: Any,
    where: Callable[[int], str],
    notes: list[Note],
    lacking: tuple[str, ...] = ("leave out what has no label",),
) -> tuple[Ints, tuple[str, ...]]:
    """Returns the class index of each row, int64 `(n,)`, and the classes.

    Args:
        name: The feature, for messages.
        classes: Class names, their number, or `None` to take them from the labels.
        offset: Number subtracted from stored numbers.
        given: Stored labels, `(n,)` or `(n, 1)`, or `Values`.
        where: Describes the place of a row in messages.
        notes: Collects findings about the classes.
        lacking: What to do about empty labels.

    Raises:
        OpError: `PG402` without rows, `PG420` for invalid labels.
    """
    values = as_values(name, given)
    if not len(values):
        raise OpError("PG402", f"the array `{name}` has no rows")
    _check_texts(values, classes, where, lacking)
    meaning = meaning_of(values.texts, classes, offset)
    if meaning.missing:
        row = values.first(meaning.missing[0])
        message = f"{where(row)} is {meaning.missing[0]!r}, but the others are numbers"
        raise OpError("PG420", message, help=lacking)
    if meaning.fractions:
        number = meaning.fractions[0]
        odd = values.count(meaning.fractions)
        said = f"{where(values.first(number))} is {number}; {count(odd, 'label')} of {len(values):,} {is_are(odd)} not whole"
        help_ = ("use `kind: tensor` for numbers to predict", "or list such numbers in `classes` to make them class names")
        raise OpError("PG420", said, help=help_)
    if meaning.indices is None:
        return _named(name, classes, values, where, notes)
    named = BOOLEANS if meaning.boolean and classes is None and not offset else classes
    found, names = _numbered(name, named, offset, [meaning.indices[text] for text in values.texts], values.codes, where)
    if named is None:
        notes += _spellings(name, meaning.indices)
        notes += _gaps(name, offset, found, names)
    return found, names


def as_values(name: str, given: Any) -> Values:
    """Converts stored labels of all rows; `PG420` for values that cannot be labels."""
    if isinstance(given, Values):
        return given
    labels = given
    plain_list = isinstance(given, (list, tuple)) and not any(isinstance(value, (list, tuple, np.ndarray)) for value in given)
    if not plain_list:
        try:
            labels = np.asarray(given)
        except ValueError:
            labels = np.empty((0, 0), object)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise OpError("PG420", f"`{name}` needs one label per row, but has the shape {labels.shape}", help=_one_hot(name, labels))
        if isinstance(given, (list, tuple)) and labels.dtype.kind in "US":  # NumPy converts numbers beside texts to texts
            labels = given
    try:
        return Values.of(labels)
    except TypeError as error:
        raise OpError("PG420", f"the labels of `{name}` are {error}", help="labels must be class indices or class names") from None


def _one_hot(name: str, labels: Any) -> str | None:
    if labels.ndim != 2 or labels.dtype.kind not in "biuf":
        return None
    return f"for one-hot labels pass `y.argmax(axis=1)`; `output: {{encode: {{{name}: one_hot}}}}` encodes them again"


def _check_texts(values: Values, classes: Known, where: Callable[[int], str], lacking: tuple[str, ...]) -> None:
    """Raises `PG420` for empty labels, lists and invalid text."""
    if "" in values.texts:
        empty = values.count(("",))
        more = f"; {count(empty, 'label')} of {len(values):,} {is_are(empty)} empty" if empty > 1 else ""
        raise OpError("PG420", f"{where(values.first(''))} is empty{more}", help=lacking)
    several = next((text for text in values.texts if text.startswith(LIST)), None)
    if several is not None:
        help_ = "for examples with any number of labels, give the feature a `separator`; lists stay as they are"
        raise OpError("PG420", f"{where(values.first(several))} holds a list", help=help_)
    broken = not_text(values.texts)
    if broken is not None:
        shown = broken.encode("utf-8", "surrogateescape" if all("\udc80" <= c <= "\udcff" or c < "\ud800" for c in broken) else "replace")
        message = f"{where(values.first(broken))} is {shown[:20]!r}, which is not UTF-8"
        raise OpError("PG420", message, help="store class indices, or class names in UTF-8")
    check_written_lists(values.texts, classes, lambda text: where(values.first(text)))


def check_written_lists(texts: Sequence[str], classes: Known, where: Callable[[str], str]) -> None:
    """Raises `PG420` for lists written as text, as in Python or JSON; `where` describes the place of a text."""
    listed = classes if isinstance(classes, tuple) else ()
    example = written_lists([text for text in texts if text not in listed])
    if example is None:
        return
    if _OBJECT.match(example):
        what = "an object"
        help_ = ["to read a field, append it to the column or key: `about.label` is the field `label` of the JSON in `about`"]
    else:
        what = "a list"
        help_ = [
            "join the labels of a row, such as `cat,dog`, and give the feature `separator: ','`",
            "or use lists in `jsonl`, `parquet` or `dataframe`",
        ]
    named = "if these are class names, list them in `classes`"
    raise OpError("PG420", f"{where(example)} is {example!r}, {what} written as text", help=(*help_, named))


def _numbered(
    name: str, classes: Known, offset: int, stored: Sequence[int], codes: Ints, where: Callable[[int], str]
) -> tuple[Ints, tuple[str, ...]]:
    """Converts distinct stored integers to indices; `codes` has the place of each row's."""
    low, high = min(stored), max(stored)
    known = len(classes) if isinstance(classes, tuple) else classes
    if known is None:
        known = high - offset + 1
        if known > _MOST:
            message = f"`{name}` goes up to {high}, which would make {known:,} classes"
            raise OpError("PG420", message, help="set the number of `classes`, or list the numbers in `classes` as names")
    if low - offset < 0 or high - offset >= known:
        row = int(np.isin(codes, [i for i, number in enumerate(stored) if not 0 <= number - offset < known]).argmax())
        there = f"{count(known, 'class', 'classes')} are {offset} to {known - 1 + offset}" if known > 0 else f"classes begin with {offset}"
        shifted = low in (0, 1) and high - low < known and low != offset
        help_: str | tuple[str, ...] = _NO_LABEL if low == -1 else _ALL_OF_THEM
        help_ = f"use `offset: {low}` for classes from {low}" if shifted else help_
        message = f"{where(row)} is {stored[int(codes[row])]}, but {there}"
        raise OpError("PG420", message, field="classes" if classes is not None else None, help=help_)
    names = classes if isinstance(classes, tuple) else named_classes(known, offset)
    indices: Ints = np.array(stored, np.int64) - offset
    return indices[codes], names


def _named(name: str, classes: Known, values: Values, where: Callable[[int], str], notes: list[Note]) -> tuple[Ints, tuple[str, ...]]:
    if isinstance(classes, int):
        odd = next((text for text in values.texts if plain(text) == text and not text.removeprefix("-").isdecimal()), values.texts[0])
        said = f"the labels of `{name}` are names such as {odd!r}"
        numbers = order_of_numbers(sorted(values.texts)) is not None
        written = "write integers without leading zeros, such as `7`, or list the names in `classes` in order"
        help_ = written if numbers else "list the names in `classes`, or remove it"
        raise OpError("PG420", said, field="classes", help=help_)
    dates = as_dates(values.texts)
    names = classes if classes is not None else tuple(sorted(set(dates)))
    index = {known: i for i, known in enumerate(names)}
    codes = []
    for text, day in zip(values.texts, dates, strict=True):
        found = index.get(text, index.get(plain(text), index.get(day)))
        if found is None:
            near = closest(text, names)
            help_ = f"is {near!r} meant?" if near else _ALL_OF_THEM
            message = f"{where(values.first(text))} is {text!r}, which `classes` does not list"
            raise OpError("PG420", message, field="classes", help=help_)
        codes.append(found)
    if classes is None:
        notes += class_notes(names, f"features.{name}")
    return np.array(codes, np.int64)[values.codes], names


def class_notes(names: Sequence[str], field: str, *, folders: bool = False) -> Iterator[Note]:
    """Reports class names that mean the same, and numbers in text order.

    Args:
        names: The classes, in text order.
        field: The argument of the notes.
        folders: Whether they are folders.
    """
    same = twins(names)
    if same:
        group = same[0]
        also = f", like {count(len(same) - 1, 'other group')}" if len(same) > 1 else ""
        only = "differ only in case, blanks, Unicode form or number format"
        message = f"the classes {' and '.join(map(repr, group[:_SHOWN]))} {only}{also}"
        one = max(group, key=lambda name: (name[:1].isupper(), name))
        written = ", ".join(f"{other!r}: {one!r}" for other in group if other != one)
        mended = "put the files of a class into one folder" if folders else f"merge them by `map: {{{written}}}`"
        yield Note("PG665", message, (mended, "or list both in `classes` to keep them apart"), field)
    apart = order_of_numbers(names)
    if apart is None:
        return
    if apart[0] != apart[1]:
        message = f"the classes are numbers in text order: {apart[0]!r} comes before {apart[1]!r}"
        yield Note("PG664", message, ("list `classes` in another order", _WIDTH), field)
    else:
        message = f"the classes are numbers but not their own indices: {apart[0]!r} has the index {list(names).index(apart[0])}"
        yield Note("PG664", message, "list `classes` to set their indices", field, "info")


_WIDTH = "or write numbers with leading zeros, such as `007`, which sort alike as text"


def _gaps(name: str, offset: int, found: Ints, names: Sequence[str]) -> Iterator[Note]:
    """Reports unused class indices: numbers such as years are names rather than indices."""
    has = np.bincount(found, minlength=len(names)) > 0
    if has.all():
        return
    used, free = ([names[i] for i in np.flatnonzero(rows).tolist()] for rows in (has, ~has))
    have = "has" if len(free) == 1 else "have"
    message = f"the labels of `{name}` count as class indices, but {len(free):,} of these {len(names):,} classes {have} no record: "
    listed = f"`classes: [{', '.join(map(repr, used))}]`" if len(used) <= _LISTED else "listing them in `classes`"
    help_ = [
        f"{listed}{' without `offset`' if offset else ''} makes {count(len(used), 'class', 'classes')} of the used numbers",
        f"`classes: {len(names)}` keeps all these classes",
        "use `kind: tensor` for numbers to predict",
    ]
    if len(used) == int(used[-1]) - int(used[0]) + 1:
        help_.insert(0, f"`offset: {used[0]}` starts the classes at {used[0]}")
    yield Note("PG668", message + quoted(free), tuple(help_), f"features.{name}")


def _spellings(name: str, indices: Mapping[str, int]) -> Iterator[Note]:
    """Reports a number written in two ways, such as `2` and `2.0`, which is one class."""
    first: dict[int, str] = {}
    for text, number in indices.items():
        other = first.setdefault(number, text)
        if other != text:
            message = f"the labels {other!r} and {text!r} are one class: both equal {number}"
            yield Note("PG665", message, "write equal numbers alike", f"features.{name}")
            return
