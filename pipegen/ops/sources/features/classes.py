"""From stored labels to class indices and class names, by the rule in `label_values`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.sources.features.label_values import (
    BOOLEANS,
    LIST,
    Values,
    as_dates,
    meaning_of,
    not_text,
    order_of_numbers,
    plain,
    twins,
    written_lists,
)
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import count, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipegen.ops.sources.listing.strings import Ints

Classes = int | tuple[str, ...] | None
_MOST = 100_000
_LISTED = 12
"""Classes that advice writes out at most."""
_ALL_OF_THEM = "give `classes` all of them, or leave such rows out"
_NO_LABEL = "`ignore: [-1]` leaves rows of -1 out; where all are -1, which stands for no label, leave the feature out"
_SHOWN = 3
_OBJECT = re.compile(r"""\{\s*["'][^"']*["']\s*:""")


def read_labels(
    name: str,
    classes: Classes,
    offset: int,
    given: Any,
    place: Callable[[int], str] | None = None,
    notes: list[Note] | None = None,
) -> tuple[Ints, tuple[str, ...]]:
    """The class index of each row, int64 `(n,)`, and the classes.

    Args:
        name: The feature, for messages.
        classes: The names of the classes, or how many there are, or `None` where the labels say so.
        offset: What is subtracted from stored numbers.
        given: What is stored, `(n,)` or `(n, 1)`; or its `Values`.
        place: Where a row stands, for messages; by default its number.
        notes: Takes what is odd about the classes.

    Raises:
        OpError: `PG402` for no rows, `PG420` for labels that name no class.
    """
    where = place or (lambda row: f"row {row} of `{name}`")
    values = as_values(name, given)
    if not len(values):
        raise OpError("PG402", f"the array `{name}` has no rows")
    if values.numbers is None or isinstance(classes, tuple):
        values = values.as_texts()
        _check_texts(values, classes, where)
        meaning = meaning_of(values.texts, classes, offset)
        if meaning.missing:
            row = values.first(meaning.missing[0])
            message = f"{where(row)} is {meaning.missing[0]!r}, and the others are numbers"
            raise OpError("PG420", message, help=_LEAVE_OUT)
        if meaning.fractions:
            number = meaning.fractions[0]
            odd = values.count(meaning.fractions)
            said = f"{where(values.first(number))} is {number}, and {count(odd, 'label')} of {len(values):,} {_is(odd)} not whole"
            help_ = ("`kind: tensor` is a number to predict", "to make such numbers the names of classes, list them in `classes`")
            raise OpError("PG420", said, help=help_)
        if meaning.indices is None:
            return _named(name, classes, values, where, notes)
        named = BOOLEANS if meaning.boolean and classes is None and not offset else classes
        found, names = _numbered(name, named, offset, [meaning.indices[text] for text in values.texts], values.codes, where)
        if notes is not None and named is None:
            notes += _spellings(name, meaning.indices)
    else:
        found, names = _numbered(name, classes, offset, values.numbers, None, where)
        named = classes
    if notes is not None and named is None:
        notes += _gaps(name, offset, found, names)
    return found, names


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


_LEAVE_OUT = "leave rows without a label out"


def as_values(name: str, given: Any) -> Values:
    """Reads what is stored of the labels of all rows.

    Raises:
        OpError: `PG420` for what cannot be labels.
    """
    import numpy as np

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
            raise OpError("PG420", f"`{name}` needs one label a row, and its shape is {labels.shape}", help=_one_hot(name, labels))
        if isinstance(given, (list, tuple)) and labels.dtype.kind in "US":  # NumPy makes texts of what is beside them
            labels = given
    try:
        return Values.of(labels)
    except TypeError as error:
        raise OpError("PG420", f"the labels of `{name}` are {error}", help="labels are class indices or class names") from None


def _one_hot(name: str, labels: Any) -> str | None:
    if labels.ndim != 2 or labels.dtype.kind not in "biuf":
        return None
    return f"for one-hot labels pass `y.argmax(axis=1)`; `output: {{encode: {{{name}: one_hot}}}}` encodes them again"


def _check_texts(values: Values, classes: Classes, where: Callable[[int], str]) -> None:
    """Checks that every value is a label: not empty, not a list, text.

    Raises:
        OpError: `PG420`.
    """
    if "" in values.texts:
        empty = values.count(("",))
        more = f", and {count(empty, 'label')} of {len(values):,} {_is(empty)} empty" if empty > 1 else ""
        raise OpError("PG420", f"{where(values.first(''))} has no label{more}", help=_LEAVE_OUT)
    several = next((text for text in values.texts if text.startswith(LIST)), None)
    if several is not None:
        help_ = "for an example with any number of labels give the feature a `separator`; lists are taken as they are"
        raise OpError("PG420", f"{where(values.first(several))} holds a list", help=help_)
    broken = not_text(values.texts)
    if broken is not None:
        shown = broken.encode("utf-8", "surrogateescape" if all("\udc80" <= c <= "\udcff" or c < "\ud800" for c in broken) else "replace")
        message = f"{where(values.first(broken))} is {shown[:20]!r}, which is not text in UTF-8"
        raise OpError("PG420", message, help="store class indices, or the names of classes in UTF-8")
    check_written_lists(values.texts, classes, lambda text: where(values.first(text)))


def check_written_lists(texts: Sequence[str], classes: Classes, where: Callable[[str], str]) -> None:
    """Checks that texts are not lists as Python or JSON writes them; `where` says where a text stands.

    Raises:
        OpError: `PG420`.
    """
    listed = classes if isinstance(classes, tuple) else ()
    example = written_lists([text for text in texts if text not in listed])
    if example is None:
        return
    if _OBJECT.match(example):
        what = "an object"
        help_ = ["to read one field, write it after the column or key: `about.label` is the field `label` of the JSON in `about`"]
    else:
        what = "a list"
        help_ = [
            "write the labels of a row joined, such as `cat,dog`, and give the feature `separator: ','`",
            "`jsonl`, `parquet` and `dataframe` take lists as they are",
        ]
    named = "if these are the names of classes, list them in `classes`"
    raise OpError("PG420", f"{where(example)} is {example!r}, {what} that was written as text", help=(*help_, named))


def _numbered(
    name: str, classes: Classes, offset: int, stored: Any, codes: Ints | None, where: Callable[[int], str]
) -> tuple[Ints, tuple[str, ...]]:
    """Indices of stored whole numbers: of each row, or where there are `codes`, the distinct ones."""
    import numpy as np

    low, high = (min(stored), max(stored)) if codes is not None else (int(stored.min()), int(stored.max()))
    known = len(classes) if isinstance(classes, tuple) else classes
    if known is None:
        known = high - offset + 1
        if known > _MOST:
            message = f"`{name}` goes up to {high}, which would be {known:,} classes"
            raise OpError("PG420", message, help="say how many `classes` there are, or list the numbers that are names in `classes`")
    if low - offset < 0 or high - offset >= known:
        odd = next(i for i, number in enumerate(stored if codes is not None else stored.tolist()) if not 0 <= number - offset < known)
        row = odd if codes is None else int(np.argmax(codes == odd))
        there = f"{count(known, 'class', 'classes')} are {offset} to {known - 1 + offset}" if known > 0 else f"classes begin with {offset}"
        shifted = low in (0, 1) and high - low < known and low != offset
        help_ = f"`offset: {low}` counts classes from {low}" if shifted else _ALL_OF_THEM
        help_ = _NO_LABEL if low == -1 and not shifted else help_
        message = f"{where(row)} is {int(stored[odd])}, and {there}"
        raise OpError("PG420", message, field="classes" if classes is not None else None, help=help_)
    names = classes if isinstance(classes, tuple) else tuple(map(str, range(offset, known + offset)))
    indices: Ints = np.asarray(stored, np.int64) - offset
    return (indices if codes is None else indices[codes]), names


def _named(
    name: str, classes: Classes, values: Values, where: Callable[[int], str], notes: list[Note] | None
) -> tuple[Ints, tuple[str, ...]]:
    import numpy as np

    if isinstance(classes, int):
        odd = next((text for text in values.texts if plain(text) == text and not text.removeprefix("-").isdecimal()), values.texts[0])
        said = f"the labels of `{name}` are names such as {odd!r}"
        numbers = order_of_numbers(sorted(values.texts)) is not None
        written = "write whole numbers, such as `7`, without leading zeros, or list the names in `classes` in their order"
        help_ = written if numbers else "list the names in `classes`, or leave it out"
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
    if notes is not None and classes is None:
        notes += class_notes(names, f"features.{name}")
    return np.array(codes, np.int64)[values.codes], names


def class_notes(names: Sequence[str], field: str, *, folders: bool = False) -> Iterator[Note]:
    """Reports what is odd about classes that the data names: names that mean the same, and numbers in the order of text.

    Args:
        names: The classes, in the order of text.
        field: The argument that the notes are about.
        folders: Whether they are folders.
    """
    same = twins(names)
    if same:
        group = same[0]
        also = f", and so {'do' if len(same) > 2 else 'does'} {count(len(same) - 1, 'other group')}" if len(same) > 1 else ""
        only = "differ only in case, blanks, Unicode form or how a number is written"
        message = f"the classes {' and '.join(map(repr, group[:_SHOWN]))} {only}{also}"
        one = max(group, key=lambda name: (name[:1].isupper(), name))
        written = ", ".join(f"{other!r}: {one!r}" for other in group if other != one)
        mended = "put the files of one class into one folder" if folders else f"`map: {{{written}}}` makes them one class"
        yield Note("PG665", message, (mended, "list both in `classes` if they are two"), field)
    apart = order_of_numbers(names)
    if apart is None:
        return
    if apart[0] != apart[1]:
        message = f"the classes are numbers in the order of text: {apart[0]!r} comes before {apart[1]!r}"
        yield Note("PG664", message, ("to give them another order, list `classes`", _WIDTH), field)
    else:
        message = f"the classes are numbers and not their own indices: {apart[0]!r} has the index {list(names).index(apart[0])}"
        yield Note("PG664", message, "`classes` lists them in the order of their indices", field, "info")


_WIDTH = "numbers of one width, such as `007`, have the same order as numbers and as text"


def _gaps(name: str, offset: int, found: Ints, names: Sequence[str]) -> Iterator[Note]:
    """Reports class indices below the largest that no record has: numbers such as years are names, and not indices."""
    import numpy as np

    has = np.bincount(found, minlength=len(names)) > 0
    if has.all():
        return
    used, free = ([names[i] for i in np.flatnonzero(rows).tolist()] for rows in (has, ~has))
    have = "has" if len(free) == 1 else "have"
    message = f"the labels of `{name}` are taken as class indices, and {len(free):,} of these {len(names):,} classes {have} no record: "
    listed = f"`classes: [{', '.join(map(repr, used))}]`" if len(used) <= _LISTED else "a list of them in `classes`"
    help_ = [
        f"{listed}{' without `offset`' if offset else ''} makes {count(len(used), 'class', 'classes')} of the numbers that there are",
        f"`classes: {len(names)}` says that there are so many classes",
        "`kind: tensor` is a number to predict",
    ]
    if len(used) == int(used[-1]) - int(used[0]) + 1:
        help_.insert(0, f"`offset: {used[0]}` counts the classes from {used[0]}")
    yield Note("PG668", message + quoted(free), tuple(help_), f"features.{name}")


def _spellings(name: str, indices: Mapping[str, int]) -> Iterator[Note]:
    """Reports a number that is written in two ways, such as `2` and `2.0`: both are one class."""
    first: dict[int, str] = {}
    for text, number in indices.items():
        other = first.setdefault(number, text)
        if other != text:
            message = f"the labels {other!r} and {text!r} are one class: both are the number {number}"
            yield Note("PG665", message, "write whole numbers in one way", f"features.{name}")
            return
