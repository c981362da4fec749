"""Files of the UCR and UEA archives of time series: a header of lines that begin with `@`, and a line for each series.

The format is that of aeon and sktime: dimensions are separated by colons, values by commas, `?` is a missing value, and the last part is the
class if the header says `@classLabel true`.
"""

from __future__ import annotations

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.notes import count
from pipegen.ops.sources.timelines.columns import ArrayColumns


def read_ts(file: str) -> ArrayColumns:
    """Reads a file: the arrays `values`, float32 `(rows, dimensions)`, and `label`, the class of each row's series, if it has classes.
    `PG406` if it cannot be read."""
    try:
        with open(file, encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OpError("PG406", f"{file!r} cannot be read: {error}", field="path") from None
    header: dict[str, str] = {}
    series, labels = [], []
    begun = False
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        if not begun:
            word, _, rest = line.partition(" ")
            begun = word.lower() == "@data"
            if not word.startswith("@"):
                raise OpError("PG406", f"{file}:{number} comes before `@data`, and is not a line of the header", field="path")
            header[word.lower()] = rest.strip().lower()
            if header.get("@timestamps", "").startswith("true"):
                message = f"{file!r} has the time of each value, which is not supported"
                raise OpError("PG406", message, field="path", help="write it as a table with a row for each time")
            continue
        parts = line.split(":")
        if header.get("@classlabel", "").startswith("true"):
            labels.append(parts.pop().strip())
        try:
            values = [[np.nan if cell.strip() == "?" else float(cell) for cell in part.split(",")] for part in parts]
        except ValueError:
            raise OpError("PG406", f"{file}:{number} holds a value that is not a number", field="path") from None
        if not values or len({*map(len, values)}) > 1:
            raise OpError("PG406", f"the dimensions of {file}:{number} differ in length", field="path")
        if series and len(values) != series[0].shape[1]:
            message = f"{file}:{number} has {count(len(values), 'dimension')}, and the series before it {series[0].shape[1]}"
            raise OpError("PG406", message, field="path")
        series.append(np.array(values, np.float32).T)
    if not begun:
        raise OpError("PG406", f"{file!r} ends before `@data`", field="path", help="use a file of the UCR or UEA archive, in the form `.ts`")
    if not series:
        raise OpError("PG402", f"{file!r} has no series", field="path")
    lengths = np.array([len(one) for one in series], np.int64)
    arrays = {"values": np.concatenate(series)}
    if labels:
        arrays["label"] = np.repeat(np.array(labels), lengths)
    return ArrayColumns(repr(file), arrays, lengths)
