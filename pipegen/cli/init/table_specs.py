"""A first spec for tables and arrays: their columns or arrays of images and labels, and the folder of the images."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.folder_survey import readable, sample_of, some_folders, split_of
from pipegen.cli.init.guessed_columns import IMAGE, LABELS, SOUND, SPLITS, Column, columns_of, pixels_among, told_by, unused
from pipegen.cli.init.guessed_items import Features, boxed, fields_of, keys_read, listed, points_among, with_classes
from pipegen.cli.init.pairs import MASKS, Levels, masks_of, says
from pipegen.cli.init.record_specs import database_tables
from pipegen.cli.init.sound_specs import sample_of_sounds, spec_of_sounds
from pipegen.cli.init.spec import Step, Written, beside, block, by_split, output_of, parts_of, pixels_of, spec_of
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.fields.labels import LIST, WHITESPACE, read_labels
from pipegen.ops.fields.numbers import EXACT
from pipegen.ops.kinds.image import read_image
from pipegen.ops.sources.features.feature import ArrayFeature
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.listing.npz import read_array, read_arrays
from pipegen.ops.sources.tables.files import read_table
from pipegen.ops.sources.tables.readings import ExcelTable, JsonLinesTable
from pipegen.ops.sources.tables.table import Table
from pipegen.ops.sources.timelines.columns import as_moments
from pipegen.ops.sources.timelines.ts_files import read_ts
from pipegen.types import FeatureType

_NAMED = 40
_TARGET = "the last column; use another if the model predicts that"


def _numbers_in(file: str, tables: Mapping[str | None, Table]) -> tuple[Table, str | None, bool] | None:
    """Finds the first separator with which two columns or more are numbers; returns the table, the separator, and if there is a header."""
    for separator, table in tables.items():
        headed = read_table("", file, separator=separator, header=True)
        below = columns_of(headed)
        # If the first row is text and all others are numbers, it is a header.
        header = any(c.numbers is not None and not p.numbers for c, p in zip(below, columns_of(table), strict=True))
        if sum(c.numbers is not None for c in (below if header else columns_of(table))) >= 2:
            return (headed if header else table), separator, header
    return None


def _number_spec(table: Table, op: str, arguments: Mapping[str, Any]) -> Written:
    columns = columns_of(table)
    usual = next((c for c in columns if c.labels and c.name.lower() in LABELS), None)
    label = usual or min((c for c in columns if c.labels and c.numbers is None), key=lambda c: c.values, default=None)
    chosen = label or next(c for c in reversed(columns) if c.numbers is not None)
    inputs = [c for c in columns if c.numbers is not None and c is not chosen and c.name.lower() not in ("id", "index")]
    if not inputs:
        raise CannotRun(f"{table.called} has no numbers but ids and `{chosen.called}`, which would be predicted", DUE)
    shown = inputs[:_NAMED]
    name = "label" if label is not None else "target"
    target = label.label(label.called) if label is not None else {"kind": "tensor", "column": chosen.called, **_dtype(chosen)}
    features: Features = {"inputs": {"kind": "tensor", "columns": [c.called for c in shown], **_dtype(*shown)}, name: target}
    source = block(op, arguments, features, unused(columns, {c.number for c in (*shown, chosen)}))
    if label is None and chosen.name.lower() not in LABELS:
        source = [f"{line}  # {_TARGET}" if line.lstrip().startswith("target: ") else line for line in source]
    classes = f", in {label.values} classes" if label is not None else ""
    return spec_of(
        f"{table.num_rows:,} rows of {len(inputs)} numbers{classes}",
        [],
        ["source:", *source],
        table.num_rows,
        splits=parts_of(stratified=label is not None),
        steps=[],
        output=f"output: {{x: inputs, y: {name}}}",
    )


def _dtype(*columns: Column) -> dict[str, str]:
    """The argument that lets float32 round integers, if a column may have some that it cannot represent."""
    return {"dtype": "float32"} if any(max(map(abs, c.numbers)) > EXACT for c in columns if c.numbers is not None) else {}


def _series_spec(table: Table, op: str, arguments: Mapping[str, Any]) -> Written | None:
    """Writes the spec of a table whose rows have times, each once in a series; `None` if they have not."""
    columns, names = columns_of(table), table.names
    time = next((c for c in columns if c.name.lower() in _TIMES and c.numbers is None and not c.empty), None)
    if names is None or time is None:
        return None
    cells = [row[time.number] for row in table.rows]
    try:
        as_moments(cells)
    except ValueError:
        return None
    groups = sorted((c for c in columns if c.labels and c is not time and not c.empty), key=lambda c: c.values)
    ways: list[Column | None] = [None, *groups]
    own = next(
        (c for c in ways if len({(row[c.number] if c is not None else "", row[time.number]) for row in table.rows}) == len(cells)), time
    )
    if own is time:
        return None
    values = [c for c in columns if c.numbers is not None and c is not own][:_NAMED]
    shortest = min(Counter(row[own.number] for row in table.rows).values()) if own is not None else len(cells)
    length = min(_LONGEST, shortest // 10)
    if not values or length < 2:
        return None
    horizon = max(1, length // 4)
    given = {op: arguments, "order": time.called, "group": None if own is None else own.called}
    given |= {"window": {"length": length, "horizon": horizon}}
    features: Features = {
        "x": {"kind": "series", "columns": [c.called for c in values], **_dtype(*values)},
        "y": {"kind": "series", "column": values[0].called, "at": "horizon", **_dtype(values[0])},
    }
    used = {c.number for c in (time, own, *values) if c is not None}
    source = block("series", {name: value for name, value in given.items() if value is not None}, features, unused(columns, used))
    source = [
        f"{line}  # what is predicted; use other columns, and another horizon" if line.lstrip().startswith("y: ") else line
        for line in source
    ]
    series = f" of {own.values:,} series" if own is not None else ""
    summary = f"{table.num_rows:,} rows{series} with times and {len(values)} number{'s' * (len(values) > 1)}"
    return spec_of(summary, [], ["source:", *source], shortest // 5, splits=parts_of(), steps=[], output="output: {x: x, y: y}")


_TIMES = frozenset({"time", "timestamp", "date", "datetime", "ds"})  # names of columns of times
_LONGEST = 96  # rows of a window
_SEPARATORS = (None, ";", "\t", "|", ",", WHITESPACE)
_OTHERS: dict[str, tuple[str, type[JsonLinesTable | ExcelTable]]] = {
    **dict.fromkeys((".jsonl", ".ndjson"), ("jsonl", JsonLinesTable)),
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), ("excel", ExcelTable)),
}
"""Tables other than text, by extension: the source, and their reader."""
DUE = "add a column of paths of images (JPEG, PNG, TIFF, …) or sounds (WAV, FLAC, MP3, …), or two of numbers"
_LACKS = "has no column of paths of images or sounds, and no two columns of numbers"
_MOST_TABLES = 8
_MOST_COLUMNS = 8  # maximal number of columns of files to search for masks


def first_table(file: str, spec_folder: str) -> Written:
    """Writes the spec of a table; raises `CannotRun` if it cannot be read, or has no images, sounds or numbers."""
    op, table, separator, header, files = _look_at(file)
    arguments = {"path": beside(file, spec_folder), "separator": separator, "header": None if header else False}
    given = {name: value for name, value in arguments.items() if value is not None}
    if files:
        return _file_spec(table, files, op, given, spec_folder)
    columns, pixels = pixels_among(table)
    if columns:
        return _image_spec(table, columns, op, given, spec_folder, pixels)
    return of_numbers(table, op, given)


def of_numbers(table: Table, op: str, arguments: Mapping[str, Any]) -> Written:
    """Writes the spec of a table with two columns of numbers or more: of windows, if its rows have times, else of rows."""
    return _series_spec(table, op, arguments) or _number_spec(table, op, arguments)


def first_ts(file: str, spec_folder: str) -> Written:
    """Writes the spec of the series of a `.ts` file: whole or, if they differ in length, in windows that fit into each part. Raises
    `CannotRun` if it cannot be read."""
    with readable():
        held = read_ts(os.path.abspath(file))
    lengths: list[int] = [] if held.series is None else held.series.tolist()
    last = next((name for name in ("label", "target") if name in (held.names or ())), None)
    arguments: dict[str, Any] = {"ts": {"path": beside(file, spec_folder)}}
    arguments |= {"window": {"length": max(1, min(lengths) // 5)}} if len({*lengths}) > 1 else {}
    features: Features = {"x": {"kind": "series", "column": "values"}}
    features |= {last: {"kind": "label" if last == "label" else "tensor", "at": "series"}} if last is not None else {}
    long = f"{min(lengths)}" if len({*lengths}) == 1 else f"{min(lengths)} to {max(lengths)}"
    return spec_of(
        f"{len(lengths):,} series of {long} values",
        [],
        ["source:", *block("series", arguments, features)],
        len(lengths),
        splits=parts_of(stratified=last == "label"),
        steps=[],
        output=f"output: {{x: x, y: {last or 'null'}}}",
    )


def first_table_of(folder: str, names: Sequence[str], spec_folder: str) -> Written | None:
    """Writes the spec of the only table in a folder that has labels and names existing files; `None` if there is none, or several."""
    found = []
    for name in names[:_MOST_TABLES]:
        file = os.path.join(folder, name)
        try:
            _, table, _, _, files = _look_at(file)
        except CannotRun:
            continue
        if files and os.path.isfile(_paths(table, files[0])[0]) and _label_column(table, files) is not None:
            found.append(file)
    return first_table(found[0], spec_folder) if len(found) == 1 else None


def first_database(file: str, spec_folder: str) -> Written | None:
    """Writes the spec of the first table of an SQLite file that names existing images or sounds; `None` if there is none."""
    for query, table in database_tables(file):
        files = _file_columns(table, table.rows)
        if files and os.path.isfile(_paths(table, files[0])[0]):
            return _file_spec(table, files, "sql", {"url": f"sqlite:///{beside(file, spec_folder)}", "query": query}, spec_folder)
    return None


def _look_at(file: str) -> tuple[str, Table, str | None, bool, list[int]]:
    """Reads a table by its extension; returns the source that reads it, and the results of `_look`."""
    op, kind = _OTHERS.get(os.path.splitext(file)[1].lower(), ("csv", None))
    if kind is None:
        return op, *_look(file)
    with readable():
        table = kind(path=file).read(Path())
        files = _file_columns(table, table.rows)
    if not (files or pixels_among(table)[0]) and sum(column.numbers is not None for column in columns_of(table)) < 2:
        raise CannotRun(f"{file} {_LACKS}", DUE)
    return op, table, None, True, files


def _stored_at(table: Table, op: str, spec_folder: str, column: int) -> dict[str, Any]:
    """Arguments of a feature whose files a column names: relative to the table's folder or, for a database, to the spec's."""
    root, own = _root(table, column), os.path.dirname(table.file)
    if op == "sql" and root is None and not os.path.samefile(own, spec_folder):
        root = own
    called = table.names[column] if table.names is not None else column
    return {"column": called, **({"root": beside(root, spec_folder)} if root is not None else {})}


def _file_spec(table: Table, columns: list[int], op: str, arguments: Mapping[str, Any], spec_folder: str) -> Written:
    """Writes the spec of a table whose `columns` contain paths of images, or of sounds."""
    if told_by(table.rows[0][columns[0]]) != SOUND:
        return _image_spec(table, columns, op, arguments, spec_folder)
    column, rows = columns[0], len(table.rows)
    sample = sample_of_sounds([row[column] for row in table.rows], _paths(table, column))
    features: Features = {"audio": {"kind": "audio", "rate": sample.rate, **_stored_at(table, op, spec_folder, column)}}
    label, events, used = _label_column(table, columns), _events_in(table, column), {column}
    label = None if label is not None and label.several and events is not None else label
    summary = f"{rows:,} rows, each with a sound"
    about: dict[str, Any] = {"splits": "", "labelled": False}
    if events is not None:
        features["events"] = events
        used |= {table.number(name, "") for name in events["columns"]}
    if label is not None:
        features["label"] = label.label(label.called) if events is None else {"kind": "label", "with": "events", "column": label.called}
        used.add(label.number)
        summary, about = f"{summary}, in {label.values} classes", {"splits": parts_of(stratified=not label.several), "labelled": True}
    if events is not None:
        arguments = {**arguments, "group": features["audio"]["column"]}
        examples = len({row[column] for row in table.rows})
        summary, rows = f"{examples:,} sounds with events in {rows:,} rows", examples
        about = {"splits": parts_of(), "labelled": True, "happening": "events" if label is None else "label"}
    source = ["source:", *block(op, arguments, features, unused(columns_of(table), used))]
    return spec_of_sounds(summary, sample.comments(), source, rows, sample, **about)


_EVENTS = {("onset", "offset"): "start_end", ("onset", "duration"): "start_duration", ("begin time (s)", "end time (s)"): "start_end"}
"""Names of columns of tables with a row for each event of a sound: those of DCASE, and of selection tables of Raven."""
_STRETCHES = {
    **dict.fromkeys([("start", "end"), ("start_time", "end_time"), ("start_s", "end_s"), ("begin", "end")], "start_end"),
    ("start", "duration"): "start_duration",
}
"""Names that are those of events if a sound has several rows."""


def _events_in(table: Table, sounds: int) -> dict[str, Any] | None:
    """Describes the events of sounds, in a column, in a table with a row for each, if its columns of times have usual names and hold
    numbers."""
    names = {name.lower(): name for name in table.names or ()}
    repeated = len({row[sounds] for row in table.rows}) < len(table.rows)
    for usual, form in {**_EVENTS, **(_STRETCHES if repeated else {})}.items():
        columns = [names[name] for name in usual if name in names]
        if len(columns) == len(usual) and all(_is_time(cell) for name in columns for cell in table.column(name, "")):
            return {"kind": "events", "columns": columns, **({"format": form} if form != "start_end" else {})}
    return None


def _is_time(cell: str) -> bool:
    """Tells whether a cell is empty, or a number of seconds."""
    with suppress(ValueError):
        return not cell or 0 <= float(cell) < math.inf
    return False


def _image_spec(
    table: Table, columns: list[int], op: str, arguments: Mapping[str, Any], spec_folder: str, pixels: dict[str, Any] | None = None
) -> Written:
    """Writes the spec of a table whose `columns` contain image paths: relative to the table's folder or, for a database, to the spec's.

    If they have the `pixels` of an image, these are the arguments of its feature.
    """
    rows, lists = len(table.rows), partial(listed, op, arguments, spec_folder)

    def feature(kind: str, column: int) -> dict[str, Any]:
        return {"kind": kind, **_stored_at(table, op, spec_folder, column)}

    mask = levels = sample = None
    if pixels is None:
        image, mask, levels = _with_mask(table, columns)
        files, used = _paths(table, image), [image]
        sample = sample_of(files, files)
        features, remarks = {"image": {**feature("image", image), **pixels_of(sample)}}, []
    else:
        features, used, form = {"image": pixels}, columns, "gray" if pixels.get("channels", 1) == 1 else "RGB"
        remarks = [f"The pixels of images of {pixels['size']}×{pixels['size']}, {form}, are numbers in the table"]
    items, doubts = _items(lists, features, table, used) if levels is None else ({}, [])
    label = _label_column(table, columns) if levels is None and not items else None
    summary, splits = f"{rows:,} rows", parts_of() if items or pixels else ""
    examples = len({row[used[0]] for row in table.rows})
    if pixels is None and items and "points" not in items and examples < rows:
        summary, rows = f"{examples:,} images in {summary}", examples
        arguments = {**arguments, "group": features["image"]["column"]}
    steps: list[Step] = ["rescale"]
    if mask is not None and levels is not None:
        summary, splits = f"{summary}, each with a mask", parts_of()
        features["mask"] = {**feature("mask", mask), **levels.arguments()}
        steps.insert(0, "maybe flip mask")
    elif label is not None:
        summary, splits = f"{summary}, in {label.values} classes", parts_of(stratified=not label.several)
        features["label"] = label.label(table.names[label.number] if table.names is not None else label.number)
        steps[:0] = ["maybe flip"] if pixels is None else []
    read = keys_read(items, "column")
    known = {i for i, name in enumerate(table.names or ()) if any(key == name or key.startswith(f"{name}.") for key in read)}
    left = unused(columns_of(table), known | {c for c in (*used, mask, label.number if label is not None else None) if c is not None})
    source, output = ["source:", *block(op, arguments, features | items, left)], output_of(features | items)
    return spec_of(summary, remarks + doubts, source, rows, splits=splits, sample=sample, steps=steps, output=output)


def _items(lists: Callable[[Features], Listing], features: Features, table: Table, images: list[int]) -> tuple[Features, list[str]]:
    """Describes the boxes of a table, or the keypoints, if it has any, with remarks on them."""
    cells = {name: next((row[i] for row in table.rows if row[i]), "") for i, name in enumerate(table.names or ()) if i not in images}
    lists_in = {name: f"[{','.join(cell.split(LIST)[1:])}]" if cell.startswith(f"{LIST}{{") else cell for name, cell in cells.items()}
    keys = list(dict.fromkeys([*cells, *(path for name, cell in lists_in.items() for path, _ in fields_of(name, cell))]))
    found, doubts = boxed(lists, features, keys, "column")
    if not found and (points := points_among(list(cells))):
        with suppress(OpError, OSError, ValueError):
            lists(features | {"points": points})
            return {"points": points}, doubts
    if found:
        found = {name: own for name, own in with_classes(lists, features | found, keys, "column")[0].items() if name != "image"}
    return found, doubts


def _look(file: str) -> tuple[Table, str | None, bool, list[int]]:
    """Finds the first separator with which a column contains paths of images or sounds, else several are numbers.

    Returns the table, the separator for the spec, whether there is a header, and the columns of paths.
    """
    problem: OpError | None = None
    tables: dict[str | None, Table] = {}
    for separator in _SEPARATORS:
        try:
            table = read_table("", file, separator=separator, header=False)
        except OpError as error:
            problem = problem or error
            continue
        columns = _file_columns(table, table.rows[1:] or table.rows)  # the first row may be a header
        if columns:
            header = told_by(table.rows[0][columns[0]]) is None
            return read_table("", file, separator=separator, header=True) if header else table, separator, header, columns
        if table.width > 1 and table.num_rows > 1:
            tables[separator] = table
    with suppress(OpError):
        table = read_table("", file, separator=None, header=True)
        if pixels_among(table)[0]:
            return table, None, True, []
    numbers = _numbers_in(file, tables)
    if numbers is not None:
        return *numbers, []
    if problem is not None and problem.code != "PG421":
        raise CannotRun(problem.message, *problem.lines)
    raise CannotRun(f"{file} {_LACKS}", DUE)


def _file_columns(table: Table, rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Finds the columns of paths of images, else those of sounds."""
    held = {column: {told_by(row[column]) for row in rows} for column in range(table.width) if rows}
    return next((found for what in (IMAGE, SOUND) if (found := [column for column, own in held.items() if own == {what}])), [])


def _with_mask(table: Table, columns: list[int]) -> tuple[int, int | None, Levels | None]:
    """Chooses the column of images and, if there is one, that of their masks with their pixel values."""
    for image, mask in permutations(columns[:_MOST_COLUMNS], 2):
        told = table.names is not None and says(table.names[mask], MASKS) and not says(table.names[image], MASKS)
        files = list(zip(_paths(table, image), _paths(table, mask), strict=True))
        there = all(os.path.isfile(path) for pair in files for path in pair)
        levels = masks_of(files, told=told) if there else None
        if levels is not None:
            return image, mask, levels
    return columns[0], None, None


def _paths(table: Table, column: int) -> list[str]:
    folder = _root(table, column) or os.path.dirname(table.file)
    return [os.path.join(folder, row[column].strip()) for row in table.rows]


def _label_column(table: Table, images: list[int]) -> Column | None:
    """Finds the column of labels: one with a usual name, else the one with the fewest values, and one class for each row before several."""
    left = [c for c in columns_of(table) if (c.labels or c.several) and c.number not in images and c.name.lower() not in SPLITS]
    usual = next((c for c in left if c.name.lower() in LABELS), None)
    return usual or min(left, key=lambda c: (c.several, c.values), default=None)


def _root(table: Table, image: int) -> str | None:
    """Finds the folder below the table's that contains the first file; `None` if it is the table's own."""
    first, own = table.rows[0][image].strip(), os.path.dirname(table.file)
    found = next((folder for folder, _ in some_folders(own) if os.path.isfile(os.path.join(folder, first))), own)
    return found if found != own else None


@dataclass(frozen=True)
class Pair:
    """An array of `count` images with its labels, by their names in the file; the split in its name, or ""; and the number of classes."""

    image: str
    label: str | None
    split: str
    count: int
    type: FeatureType
    classes: int

    @property
    def alike(self) -> tuple[Any, ...]:
        """Equal for arrays that may be splits of one dataset."""
        return self.type.dtype, self.type.shape, self.label is None


def first_arrays(file: str, spec_folder: str) -> Written:
    """Writes the spec of a `.npz` file, of a `.npy` file or of a folder of those; raises `CannotRun` if it has no images."""
    places: dict[str, str] | None = None
    with readable():
        if file.lower().endswith(".npz"):
            arrays = read_arrays(file)
        else:
            inside = [os.path.join(file, name) for name in sorted(os.listdir(file))] if os.path.isdir(file) else [file]
            files = {os.path.splitext(os.path.basename(one))[0]: one for one in inside if one.lower().endswith(".npy")}
            arrays = {stem: read_array(os.path.abspath(one), "path") for stem, one in files.items()}
            places = {stem: beside(one, spec_folder) for stem, one in files.items()}
    pairs = _pairs(arrays)
    if not pairs:
        shown = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in arrays.items()) or "nothing"
        raise CannotRun(f"{file} has no images: {shown}", "images are uint8, uint16 or floats, of shape (n, height, width, channels)")
    first = pairs[0]
    kind = f"{first.type.height}×{first.type.width}×{first.type.channels}, {first.type.dtype}"
    steps: list[Step] = ["flip", "rotate"] if first.label else []
    steps += ["rescale"] if first.type.interval is not None and first.type.interval.high > 1 else []
    return spec_of(
        f"{sum(p.count for p in pairs):,} images of {kind}" + (f", in {first.classes} classes" if first.label else ""),
        [f"{p.image}: {p.count:,} rows" + (f", labels in {p.label}" if p.label else ", no labels") for p in pairs],
        by_split({pair.split: _arrays(pair, beside(file, spec_folder), places) for pair in pairs}),
        first.count,
        most=128,
        splits=parts_of(stratified=True) if len(pairs) == 1 and first.label else "",
        steps=steps,
    )


def _pairs(arrays: Mapping[str, Any]) -> list[Pair]:
    """Pairs images with labels: those whose names contain a split, training first; else only the first pair."""
    found = []
    for name, array in arrays.items():
        try:
            rows, type_ = read_image(name, ArrayFeature(kind="image"), array)
        except OpError:
            continue
        label, classes = _label_array(name, len(rows), arrays)
        found.append(Pair(name, label, split_of(name) or "", len(rows), type_, classes))
    by_name = {pair.split: pair for pair in reversed(found) if pair.split}
    order = [s for s in ("train", "validation", "test") if s in by_name]
    alike = [by_name[s] for s in order if by_name[s].alike == by_name[order[0]].alike and by_name[s].classes <= by_name[order[0]].classes]
    return alike if order[:1] == ["train"] else found[:1]


def _label_array(image: str, count: int, arrays: Mapping[str, Any]) -> tuple[str | None, int]:
    """Finds the labels of an array of images: as many, of no other split, with names of classes or few numbers."""
    for name, array in arrays.items():
        is_other_split = len({split_of(name), split_of(image)} - {None}) > 1
        if name != image and len(array.shape) in (1, 2) and len(array) == count and not is_other_split:
            with suppress(OpError):
                return name, len(read_labels(name, None, 0, array, str, [])[1])
    return None, 0


def _arrays(pair: Pair, path: str, places: Mapping[str, str] | None) -> dict[str, Any]:
    """Makes the source of a pair: by the names of the arrays in the file `path`, or by the `places` of their own files."""
    height, width, channels = pair.type.shape
    named = {"image": pair.image, **({"label": pair.label} if pair.label else {})}
    found: Features = {
        kind: {"kind": kind, **({"key": name} if places is None else {"path": places[name]})} for kind, name in named.items()
    }
    found["image"] |= {"size": height if height == width else [height, width], "channels": channels}
    return {"arrays": {**({"path": path} if places is None else {}), "features": found}}
