"""Files of the UCR and UEA archives of time series: a header of lines that begin with `@`, and a line for each series.

The format is that of aeon and sktime: dimensions are separated by colons, values by commas, `?` is a missing value, and the last part is
the class if the header says `@classLabel true`, or a number to be predicted if it says `@targetLabel true`.
"""

from __future__ import annotations

from typing import Any, Literal

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.fields.numbers import first_rounded
from pipegen.ops.sources.timelines.columns import ArrayColumns

_HELP = "use a file of the UCR or UEA archive, in the form `.ts`"


def read_ts(file: str) -> ArrayColumns:
    """Reads a file: the arrays `values`, float32 `(rows, dimensions)`, or float64 if float32 would round an integer, and, for each row,
    `label`, the class of its series, or `target`, a number, if it has them. Classes are in the order of the header. `PG406` if it cannot be
    read, `PG402` without series."""
    try:
        with open(file, encoding="utf-8-sig") as stream:
            lines = [(number, line.strip()) for number, line in enumerate(stream, 1)]
    except (OSError, UnicodeDecodeError) as error:
        raise OpError("PG406", f"{file!r} cannot be read: {error}", field="path") from None
    lines = [(number, line) for number, line in lines if line and not line.startswith(("#", "%"))]
    begin = next((i for i, (_, line) in enumerate(lines) if line.lower() == "@data"), None)
    if begin is None:
        raise OpError("PG406", f"{file!r} has no `@data`", field="path", help=_HELP)
    last, classes = _header(file, lines[:begin])
    series: list[Any] = []
    ends: list[Any] = []
    for number, line in lines[begin + 1 :]:
        place, parts = f"{file}:{number}", line.split(":")
        if last is not None:
            ends.append(_end(place, parts.pop().strip(), last, classes))
        series.append(_values(place, parts))
        if series[-1].shape[1] != series[0].shape[1]:
            message = f"{place} has {count(series[-1].shape[1], 'dimension')}, and the series before it {series[0].shape[1]}"
            raise OpError("PG406", message, field="path")
    if not series:
        raise OpError("PG402", f"{file!r} has no series", field="path")
    lengths = np.array([len(one) for one in series], np.int64)
    values = np.concatenate(series)
    arrays = {"values": values if first_rounded(values, len(values)) is not None else values.astype(np.float32)}
    if last is not None:
        arrays[last] = np.repeat(np.array(ends), lengths)
    found = ArrayColumns(repr(file), arrays, lengths)
    found.classes = {"label": classes} if classes else {}
    return found


def _header(file: str, lines: list[tuple[int, str]]) -> tuple[Literal["label", "target"] | None, tuple[str, ...]]:
    """Checks the header; returns what the last part of a line is, if it is no dimension, and the classes, if they are listed."""
    found: dict[str, list[str]] = {}
    for number, line in lines:
        word, *rest = line.split()
        if not word.startswith("@"):
            raise OpError("PG406", f"{file}:{number} comes before `@data`, and is not a line of the header", field="path", help=_HELP)
        found[word.lower()] = rest
    given = {word: rest[0].lower() == "true" for word, rest in found.items() if rest}
    if given.get("@timestamps"):
        message = f"{file!r} has the time of each value, which is not supported"
        raise OpError("PG406", message, field="path", help="write it as a table with a row for each time")
    classes = (*found["@classlabel"][1:],) if given.get("@classlabel") else ()
    if len({*classes}) < len(classes):
        raise OpError("PG406", f"{file!r} names a class twice: {quoted(classes)}", field="path")
    return "label" if given.get("@classlabel") else "target" if given.get("@targetlabel") else None, classes


def _end(place: str, text: str, last: str, classes: tuple[str, ...]) -> Any:
    """Reads the last part of a line: a class, or a number."""
    if last == "label":
        if classes and text not in classes:
            message = f"{place} has the class {text!r}, and the header lists {quoted(classes)}"
            raise OpError("PG406", message, field="path", help="correct the header, `@classLabel true CLASS …`, or the line")
        return text
    try:
        return float(text)
    except ValueError:
        raise OpError("PG406", f"{place} ends in {text!r:.60}, and the target is a number", field="path") from None


def _values(place: str, parts: list[str]) -> Any:
    """Reads the dimensions of a series: float64 `(length, dimensions)`."""
    try:
        # Python also reads `1_0`, as 10.
        values = [[np.nan if cell.strip() == "?" else float(cell.replace("_", "x")) for cell in part.split(",")] for part in parts]
    except ValueError:
        help_ = "times such as `(0,1.5)` are not supported: write a table with a row for each time" if "(" in ":".join(parts) else None
        raise OpError("PG406", f"{place} holds a value that is not a number", field="path", help=help_) from None
    if not values or len({*map(len, values)}) > 1:
        raise OpError("PG406", f"the dimensions of {place} differ in length", field="path")
    return np.array(values, np.float64).T
