"""Converts stored labels to class indices and names, by the rule in `label_values`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field, WithJsonSchema

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.label_values import (
    BOOLEANS,
    LIST,
    Values,
    as_dates,
    meaning_of,
    not_text,
    order_of_numbers,
    parts,
    plain,
    twins,
    written_lists,
)
from pipegen.ops.fields.notes import Note, count, is_are, quoted

if TYPE_CHECKING:
    from pipegen.ops.fields.strings import Ints


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"the class {next(name for name in names if names.count(name) > 1)!r} is listed twice")
    return names


ClassName: TypeAlias = int | str  # a class by name, or by stored number
_LIST = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_NAMED = {"description": "A file with one class a line, in index order.", "type": "string", "minLength": 1}
_FILE = {"type": "object", "properties": {"file": _NAMED}, "required": ["file"], "additionalProperties": False}
ClassNames: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1), WithJsonSchema({"anyOf": [_LIST, _FILE]})]
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
                stored = [str(own) for own, to in self.names.items() if str(to) == str(name)]
                help_ = f"`unlabelled` takes stored values: {quoted(stored)}" if stored else "remove it from one of the two"
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

    def without_unlabelled(self, cells: Sequence[str]) -> list[int]:
        """Returns the numbers of the cells that have a class."""
        return Classes(ignored=self.unlabelled).without_ignored(cells, None)

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
    "leave rows of -1 out with `ignore: [-1]`; if they are only predicted on, write `unlabelled: [-1]`",
    "if all are -1, for no label, remove the feature",
)
_SHOWN = 3
_OBJECT = re.compile(r"""\{\s*["'][^"']*["']\s*:""")


def named_classes(classes: int | tuple[str, ...], offset: int) -> tuple[str, ...]:
    """Returns class names; for a number of classes, their stored indices."""
    return classes if isinstance(classes, tuple) else tuple(map(str, range(offset, classes + offset)))


def read_labels(
    name: str, classes: Known, offset: int, given: Any, where: Callable[[int], str], notes: list[Note]
) -> tuple[Ints, tuple[str, ...]]:
    """Returns the class index of each row, int64 `(n,)`, and the classes.

    Args:
        name: The feature, for messages.
        classes: Class names, their number, or `None` to take them from the labels.
        offset: Number subtracted from stored numbers.
        given: Stored labels, `(n,)` or `(n, 1)`, or `Values`.
        where: Describes the place of a row in messages.
        notes: Collects findings about the classes.

    Raises:
        OpError: `PG402` without rows, `PG420` for invalid labels.
    """
    values = as_values(name, given)
    if not len(values):
        raise OpError("PG402", f"the array `{name}` has no rows")
    _check_texts(values, classes, where)
    meaning = meaning_of(values.texts, classes, offset)
    if meaning.missing:
        row = values.first(meaning.missing[0])
        message = f"{where(row)} is {meaning.missing[0]!r}, but the others are numbers"
        raise OpError("PG420", message, help=_LEAVE_OUT)
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


_LEAVE_OUT = ("remove rows without a label", "or, if they are only predicted on, name what they hold, such as `unlabelled: ['']`")


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


def _check_texts(values: Values, classes: Known, where: Callable[[int], str]) -> None:
    """Raises `PG420` for empty labels, lists and invalid text."""
    if "" in values.texts:
        empty = values.count(("",))
        more = f"; {count(empty, 'label')} of {len(values):,} {is_are(empty)} empty" if empty > 1 else ""
        raise OpError("PG420", f"{where(values.first(''))} is empty{more}", help=_LEAVE_OUT)
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
