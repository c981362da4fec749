"""Files of the UCR and UEA archives of time series: a header of lines that begin with `@`, and a line for each series.

The format is that of aeon and sktime: dimensions are separated by colons, values by commas, `?` is a missing value, and the last part is
the class if the header says `@classLabel true`.
"""

from __future__ import annotations

from typing import Any

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.notes import count
from pipegen.ops.sources.timelines.columns import ArrayColumns

_HELP = "use a file of the UCR or UEA archive, in the form `.ts`"


def read_ts(file: str) -> ArrayColumns:
    """Reads a file: the arrays `values`, float32 `(rows, dimensions)`, and `label`, the class of each row's series, if it has classes.
    `PG406` if it cannot be read, `PG402` without series."""
    try:
        with open(file, encoding="utf-8") as stream:
            lines = [(number, line.strip()) for number, line in enumerate(stream, 1)]
    except (OSError, UnicodeDecodeError) as error:
        raise OpError("PG406", f"{file!r} cannot be read: {error}", field="path") from None
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    begin = next((i for i, (_, line) in enumerate(lines) if line.lower() == "@data"), None)
    if begin is None:
        raise OpError("PG406", f"{file!r} has no `@data`", field="path", help=_HELP)
    has_classes = _header(file, lines[:begin])
    series: list[Any] = []
    labels = []
    for number, line in lines[begin + 1 :]:
        parts = line.split(":")
        if has_classes:
            labels.append(parts.pop().strip())
        series.append(_values(f"{file}:{number}", parts))
        if series[-1].shape[1] != series[0].shape[1]:
            message = f"{file}:{number} has {count(series[-1].shape[1], 'dimension')}, and the series before it {series[0].shape[1]}"
            raise OpError("PG406", message, field="path")
    if not series:
        raise OpError("PG402", f"{file!r} has no series", field="path")
    lengths = np.array([len(one) for one in series], np.int64)
    arrays = {"values": np.concatenate(series)}
    if has_classes:
        arrays["label"] = np.repeat(np.array(labels), lengths)
    return ArrayColumns(repr(file), arrays, lengths)


def _header(file: str, lines: list[tuple[int, str]]) -> bool:
    """Checks the header; tells whether series have classes."""
    found: dict[str, str] = {}
    for number, line in lines:
        word, _, rest = line.partition(" ")
        if not word.startswith("@"):
            raise OpError("PG406", f"{file}:{number} comes before `@data`, and is not a line of the header", field="path", help=_HELP)
        found[word.lower()] = rest.strip().lower()
    if found.get("@timestamps", "").startswith("true"):
        message = f"{file!r} has the time of each value, which is not supported"
        raise OpError("PG406", message, field="path", help="write it as a table with a row for each time")
    return found.get("@classlabel", "").startswith("true")


def _values(place: str, parts: list[str]) -> Any:
    """Reads the dimensions of a series: float32 `(length, dimensions)`."""
    try:
        values = [[np.nan if cell.strip() == "?" else float(cell) for cell in part.split(",")] for part in parts]
    except ValueError:
        raise OpError("PG406", f"{place} holds a value that is not a number", field="path") from None
    if not values or len({*map(len, values)}) > 1:
        raise OpError("PG406", f"the dimensions of {place} differ in length", field="path")
    return np.array(values, np.float32).T
