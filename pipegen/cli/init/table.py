"""A first spec for tables and arrays: their columns or arrays of images and labels, and the folder of the images."""

from __future__ import annotations

import os
import re
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.columns import LABELS, Column, columns_of, is_image_path, unused
from pipegen.cli.init.pairs import classes_of, is_called_mask, masks_of
from pipegen.cli.init.records import database_tables
from pipegen.cli.init.spec import FLIP, OUTPUT, PARTS, RESCALE, ROTATION, batch_for, beside, pixels_of, relative_to, size_for, spec_text
from pipegen.cli.init.survey import sample_of
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.sources.array_rows.npz import read_array, read_arrays
from pipegen.ops.sources.array_rows.rows import read_image
from pipegen.ops.sources.features.arrays import ArrayFeature
from pipegen.ops.sources.features.classes import read_labels
from pipegen.ops.sources.tables.excel import ExcelTable
from pipegen.ops.sources.tables.jsonl import JsonLinesTable
from pipegen.ops.sources.tables.table import WHITESPACE, as_text, read_table
from pipegen.spec.compose import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from pipegen.cli.init.pairs import Levels
    from pipegen.ops.sources.tables.table import TextTable
    from pipegen.types import FeatureType


_NAMED = 40
_TARGET = "  # the last column; use another if the model predicts that"


def numbers_in(file: str, separators: Sequence[str | None]) -> tuple[TextTable, str | None, bool] | None:
    """Finds the first separator with which two columns or more are numbers.

    Returns:
        The table, the separator for the spec, and whether there is a header; `None` if there is none.
    """
    for separator in separators:
        try:
            table = read_table("", file, separator=separator, header=False)
        except OpError:
            continue
        if table.width < 2 or table.num_rows < 2:
            continue
        headed = read_table("", file, separator=separator, header=True)
        below = columns_of(headed)
        # If the first row is text and all others are numbers, it is a header.
        header = any(c.numbers is not None and not p.numbers for c, p in zip(below, columns_of(table), strict=True))
        if sum(c.numbers is not None for c in (below if header else columns_of(table))) >= 2:
            return (headed if header else table), separator, header
    return None


def number_lines(table: TextTable) -> tuple[list[str], list[str], str]:
    """Writes the parts of a spec for a table of numbers.

    Returns:
        The lines of `features`, those after the source, and a summary of the data.
    """
    columns = columns_of(table)
    label = _label(columns)
    target = None if label is not None else next(c for c in reversed(columns) if c.numbers is not None)
    chosen = label or target
    inputs = [c for c in columns if c.numbers is not None and c is not chosen and c.name.lower() not in ("id", "index")]
    shown = inputs[:_NAMED]
    features = [f"      inputs: {{kind: tensor, columns: [{', '.join(c.called for c in shown)}]}}"]
    name = "label" if label is not None else "target"
    if chosen is not None:
        kind = "label" if label is not None else "tensor"
        guessed = _TARGET if target is not None and target.name.lower() not in LABELS else ""
        features.append(f"      {name}: {{kind: {kind}, column: {chosen.called}}}{guessed}")
    features += unused(columns, {c.number for c in (*shown, *([chosen] if chosen else []))}, "      ")
    rows = table.num_rows
    stratify = ", stratify: label" if label is not None else ""
    after = [
        f"splits: {{{PARTS}{stratify}}}",
        f"batch: {{size: {batch_for(rows)}}}",
        f"output: {{x: inputs, y: {name}}}",
    ]
    classes = f", in {label.values} classes" if label is not None else ""
    return features, after, f"{rows:,} rows of {len(inputs)} numbers{classes}"


def _label(columns: list[Column]) -> Column | None:
    """Finds the column of classes: one with a usual name, else one of text."""
    named = [c for c in columns if c.labels and c.name.lower() in LABELS]
    text = [c for c in columns if c.labels and c.numbers is None]
    return next(iter(named), min(text, key=lambda c: c.values, default=None))


_SEPARATORS = (None, ";", "\t", "|", ",", WHITESPACE)
_OTHERS: dict[str, tuple[str, type[JsonLinesTable | ExcelTable]]] = {
    **dict.fromkeys((".jsonl", ".ndjson"), ("jsonl", JsonLinesTable)),
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), ("excel", ExcelTable)),
}
"""Tables other than text, by extension: the source, and their reader."""
_DUE = "add a column of image paths (JPEG, PNG, TIFF, …), or two of numbers"
_MOST_FOLDERS = 200
_MOST_TABLES = 8
_MOST_COLUMNS = 8
"""Maximal number of columns of files to search for masks."""


def first_table(file: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a table, with paths relative to the spec's folder.

    Returns:
        The text of the spec, and a summary of the data.

    Raises:
        CannotRun: When it cannot be read, or has neither images nor numbers.
    """
    source, table, separator, header, images = _look_at(file)
    features, after, summary = _image_lines(table, images, spec_folder) if images else number_lines(table)
    lines = [
        "source:",
        f"  {source}:",
        f"    path: {beside(file, spec_folder)}",
        *([f"    separator: {flow_scalar(separator)}"] if separator is not None else []),
        *([] if header else ["    header: false"]),
        "    features:",
        *features,
    ]
    return spec_text(summary, [], [*lines, *after]), summary


def first_table_of(folder: str, names: Sequence[str], spec_folder: str) -> tuple[str, str] | None:
    """Writes the spec of the only table in a folder that has labels and names existing images; `None` if there is none, or several."""
    found = []
    for name in names[:_MOST_TABLES]:
        file = os.path.join(folder, name)
        try:
            _, table, _, _, images = _look_at(file)
        except CannotRun:
            continue
        if images and os.path.isfile(_paths(table, images[0])[0]) and _label_column(table, images) is not None:
            found.append(file)
    return first_table(found[0], spec_folder) if len(found) == 1 else None


def first_database(file: str, spec_folder: str) -> tuple[str, str] | None:
    """Writes the spec of the first table of an SQLite file that names existing images, as `first_table`; `None` if there is none."""
    for query, table in database_tables(file):
        images = _image_columns(table, table.rows)
        if not images or not os.path.isfile(_paths(table, images[0])[0]):
            continue
        features, after, summary = _image_lines(table, images, spec_folder, rooted=True)
        lines = ["source:", "  sql:", f"    url: {flow_scalar('sqlite:///' + relative_to(file, spec_folder))}"]
        lines += [f"    query: {flow_scalar(query)}", "    features:", *features, *after]
        return spec_text(summary, [], lines), summary
    return None


def _look_at(file: str) -> tuple[str, TextTable, str | None, bool, list[int]]:
    """Reads a table by its extension.

    Returns:
        The source that reads it, and the results of `_look`.
    """
    reading = _OTHERS.get(os.path.splitext(file)[1].lower())
    if reading is None:
        return "csv", *_look(file)
    source, kind = reading
    try:
        table = as_text(kind(path=file).read(Path()))
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    images = _image_columns(table, table.rows)
    if not images and sum(column.numbers is not None for column in columns_of(table)) < 2:
        raise CannotRun(f"{file} has no column of image paths, and no two columns of numbers", _DUE)
    return source, table, None, True, images


def _image_lines(table: TextTable, columns: list[int], spec_folder: str, *, rooted: bool = False) -> tuple[list[str], list[str], str]:
    """Writes the lines of `features`, those after the source, and a summary of the data; `columns` contain image paths.

    Paths are relative to the table's folder or, if the source is `rooted`, to the spec's.
    """
    image, mask, levels = _with_mask(table, columns)
    label = _label_column(table, columns) if mask is None else None
    rows = len(table.rows)
    files = _paths(table, image)
    sample = sample_of(files, files.__getitem__)

    def feature(kind: str, column: int, more: str = "") -> str:
        root = _root(table, column) if kind != "label" else None
        if rooted and root is None and kind != "label" and not os.path.samefile(os.path.dirname(table.file), spec_folder):
            root = os.path.dirname(table.file)
        called = flow_scalar(table.names[column]) if table.names is not None else str(column)
        placed = f", root: {beside(root, spec_folder)}" if root is not None else ""
        return f"      {kind}: {{kind: {kind}, column: {called}{placed}{more}}}"

    features = [feature("image", image, f", {pixels_of(sample)}" if pixels_of(sample) else "")]
    steps = ["transforms:", f"  - resize: {{size: {size_for(sample)}}}"]
    summary, after = f"{rows:,} rows", []
    if mask is not None and levels is not None:
        summary += ", each with a mask"
        features.append(feature("mask", mask, classes_of(levels)))
        after = [f"splits: {{{PARTS}}}", *steps, "  # - random_flip  # left and right, the mask as the image", RESCALE, OUTPUT]
    elif label is not None:
        summary += f", in {len({row[label] for row in table.rows})} classes"
        features.append(feature("label", label))
        after = [f"splits: {{{PARTS}, stratify: label}}", *steps, "  # - random_flip  # where a mirrored image means the same", RESCALE]
    else:
        after = [*steps, RESCALE]
    features += unused(columns_of(table), {c for c in (image, mask, label) if c is not None}, "      ")
    return features, [*after, f"batch: {{size: {batch_for(rows)}}}"], summary


def _look(file: str) -> tuple[TextTable, str | None, bool, list[int]]:
    """Finds the first separator with which a column contains image paths, else several are numbers.

    Returns:
        The table, the separator for the spec, whether there is a header, and the columns of images.
    """
    problem: OpError | None = None
    for separator in _SEPARATORS:
        try:
            table = read_table("", file, separator=separator, header=False)
        except OpError as error:
            problem = problem or error
            continue
        columns = _image_columns(table, table.rows[1:] or table.rows)  # the first row may be a header
        if columns:
            header = not is_image_path(table.rows[0][columns[0]].strip())
            return read_table("", file, separator=separator, header=True) if header else table, separator, header, columns
    numbers = numbers_in(file, _SEPARATORS)
    if numbers is not None:
        return *numbers, []
    if problem is not None and problem.code != "PG421":
        raise CannotRun(problem.message, *problem.lines)
    raise CannotRun(f"{file} has no column of image paths, and no two columns of numbers", _DUE)


def _image_columns(table: TextTable, rows: Sequence[tuple[str, ...]]) -> list[int]:
    return [column for column in range(table.width) if rows and all(is_image_path(row[column].strip()) for row in rows)]


def _with_mask(table: TextTable, columns: list[int]) -> tuple[int, int | None, Levels | None]:
    """Chooses the column of images and, if there is one, that of their masks with their pixel values."""
    for image, mask in permutations(columns[:_MOST_COLUMNS], 2):
        told = table.names is not None and is_called_mask(table.names[mask]) and not is_called_mask(table.names[image])
        files = list(zip(_paths(table, image), _paths(table, mask), strict=True))
        there = all(os.path.isfile(path) for pair in files for path in pair)
        levels = masks_of(files, told=told) if there else None
        if levels is not None:
            return image, mask, levels
    return columns[0], None, None


def _paths(table: TextTable, column: int) -> list[str]:
    folder = _root(table, column) or os.path.dirname(table.file)
    return [os.path.join(folder, row[column].strip()) for row in table.rows]


def _label_column(table: TextTable, images: list[int]) -> int | None:
    """Finds the column of labels: one with a usual name, else the one with the fewest values, each in several rows."""
    counted: dict[int, int] = {}
    for column in range(len(table.rows[0])):
        values = {row[column].strip() for row in table.rows}
        if column not in images and 1 < len(values) <= len(table.rows) // 2 and "" not in values and not any("." in v for v in values):
            counted[column] = len(values)
    named = [c for c in counted if table.names is not None and table.names[c].lower() in LABELS]
    return next(iter(named), min(counted, key=lambda c: counted[c], default=None))


def _root(table: TextTable, image: int) -> str | None:
    """Finds the folder below the table's that contains the first file; `None` if it is the table's own."""
    first, own = table.rows[0][image].strip(), os.path.dirname(table.file)
    if os.path.isfile(os.path.join(own, first)):
        return None
    for number, (folder, inner, _) in enumerate(os.walk(own)):
        inner.sort()
        if os.path.isfile(os.path.join(folder, first)):
            return folder
        if number == _MOST_FOLDERS:
            break
    return None


_SPLITS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "dev": "validation", "test": "test"}


@dataclass(frozen=True)
class Pair:
    """An array of images, with its labels.

    Attributes:
        image: Its name in the file.
        label: The name of the labels, or `None`.
        split: The split in its name, or "".
        count: The number of rows.
        type: The type of an image.
        classes: The number of classes; 0 without labels.
    """

    image: str
    label: str | None
    split: str
    count: int
    type: FeatureType
    classes: int


def first_arrays(file: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a `.npz` file, of a `.npy` file or of a folder of those, with paths relative to the spec's folder.

    Returns:
        The text of the spec, and a summary of the data.

    Raises:
        CannotRun: When the file cannot be read, or has no images.
    """
    try:
        arrays, places = (read_arrays(file), None) if file.lower().endswith(".npz") else _single(file, spec_folder)
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    pairs = _pairs(arrays)
    if not pairs:
        shown = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in arrays.items()) or "nothing"
        raise CannotRun(f"{file} has no images: {shown}", "images are uint8, uint16 or floats, of shape (n, height, width, channels)")
    first = pairs[0]
    summary = f"{sum(p.count for p in pairs):,} images of {first.type.height}×{first.type.width}×{first.type.channels}, {first.type.dtype}"
    summary += f", in {first.classes} classes" if first.label else ""
    comments = [f"{p.image}: {p.count:,} rows" + (f", labels in {p.label}" if p.label else ", no labels") for p in pairs]
    batch = f"batch: {{size: {batch_for(first.count, most=128)}}}"
    return spec_text(summary, comments, [*_source(pairs, beside(file, spec_folder), places), *_steps(first), batch]), summary


def _single(path: str, spec_folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Reads the arrays of `.npy` files, by name, and their paths for the spec."""
    names = sorted(os.listdir(path)) if os.path.isdir(path) else [path]
    files = [os.path.join(path, name) if os.path.isdir(path) else name for name in names if name.lower().endswith(".npy")]
    stems = [os.path.splitext(os.path.basename(file))[0] for file in files]
    arrays = {stem: read_array(os.path.abspath(file), "path") for stem, file in zip(stems, files, strict=True)}
    return arrays, {stem: beside(file, spec_folder) for stem, file in zip(stems, files, strict=True)}


def _pairs(arrays: Mapping[str, Any]) -> list[Pair]:
    """Pairs images with labels: those whose names contain a split, training first; else only the first pair."""
    found = []
    for name, array in arrays.items():
        try:
            rows, type_ = read_image(name, ArrayFeature(kind="image"), array)
        except OpError:
            continue
        label, classes = _label_array(name, len(rows), arrays)
        found.append(Pair(name, label, _split(name), len(rows), type_, classes))
    by_split = {pair.split: pair for pair in reversed(found) if pair.split}
    order = [s for s in ("train", "validation", "test") if s in by_split]
    alike = [by_split[s] for s in order if _alike(by_split[s], by_split[order[0]])]
    return alike if order[:1] == ["train"] else found[:1]


def _alike(pair: Pair, other: Pair) -> bool:
    same = (pair.type.dtype, pair.type.shape) == (other.type.dtype, other.type.shape)
    return same and (pair.label is None) == (other.label is None) and pair.classes <= other.classes


def _label_array(image: str, count: int, arrays: Mapping[str, Any]) -> tuple[str | None, int]:
    """Finds the labels of an array of images: as many, of the same split, with names of classes or few numbers."""
    for name, array in arrays.items():
        if name == image or len(array.shape) not in (1, 2) or len(array) != count or _split(name) != _split(image):
            continue
        try:
            return name, len(read_labels(name, None, 0, array)[1])
        except OpError:
            continue
    return None, 0


def _split(name: str) -> str:
    words = re.split(r"[^a-z]+", name.lower())
    return next((_SPLITS[word] for word in words if word in _SPLITS), "")


def _source(pairs: list[Pair], path: str, places: Mapping[str, str] | None) -> list[str]:
    if len(pairs) == 1:
        splits = f"splits: {{{PARTS}, stratify: label}}"
        return [f"source: {_arrays(pairs[0], path, places)}", *([splits] if pairs[0].label else [])]
    return ["source:", "  by_split:", *(f"    {pair.split}: {_arrays(pair, path, places)}" for pair in pairs)]


def _arrays(pair: Pair, path: str, places: Mapping[str, str] | None) -> str:
    """Writes the source of a pair: by the names of the arrays in the file `path`, or by the `places` of their own files."""

    def place(name: str) -> str:
        return f"key: {flow_scalar(name)}" if places is None else f"path: {places[name]}"

    label = f", label: {{kind: label, {place(pair.label)}}}" if pair.label else ""
    height, width, channels = pair.type.shape
    size = height if height == width else f"[{height}, {width}]"
    image = f"image: {{kind: image, {place(pair.image)}, size: {size}, channels: {channels}}}"
    whole = f"path: {path}, " if places is None else ""
    return f"{{arrays: {{{whole}features: {{{image}{label}}}}}}}"


def _steps(pair: Pair) -> list[str]:
    steps = [FLIP, ROTATION] if pair.label else []
    if pair.type.interval is not None and pair.type.interval.high > 1:
        steps.append(RESCALE)
    return ["transforms:", *steps] if steps else []
