"""A first spec for a table: which column names images, where those lie, which column is their label, and what else there is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from pipegen.cli.columns import LABELS, batch_for, columns_of, unused
from pipegen.cli.failures import CannotRun
from pipegen.cli.init.image_pairs import classes_of
from pipegen.cli.init.numbers import number_lines, numbers_in
from pipegen.cli.init.pairing import is_called_mask, masks_of
from pipegen.cli.init.spec import pixels_of, size_for
from pipegen.cli.init.survey import sample_of
from pipegen.errors import OpError
from pipegen.ops.sources.sniff import IMAGE_EXTENSIONS
from pipegen.ops.sources.table import WHITESPACE, read_table
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from pipegen.cli.init.survey import Sample
    from pipegen.ops.sources.table import TextTable

_SEPARATORS = (None, ";", "\t", "|", ",", WHITESPACE)
_MOST_FOLDERS = 200
_MOST_COLUMNS = 8
"""Columns of files among which masks are looked for."""


@dataclass(frozen=True)
class _Found:
    """Holds what a table turns out to be.

    Attributes:
        table: Its cells.
        separator: What to say of the separator; `None` where the default is right.
        header: Whether the first row names the columns.
        image: The column of paths, or `None` for a table of numbers.
        root: The folder that they are relative to, or `None` for the table's own.
        mask: The column of paths of masks, or `None`.
        mask_root: The folder that those are relative to, or `None` for the table's own.
        label: The column of labels, or `None`.
        classes: How many there are.
    """

    table: TextTable
    separator: str | None
    header: bool
    image: int | None
    root: str | None
    mask: int | None
    mask_root: str | None
    label: int | None
    classes: int

    def name(self, column: int) -> str:
        """Returns the name of a column in a spec."""
        return flow_scalar(self.table.names[column]) if self.table.names is not None else str(column)


def first_table(file: str, spec_folder: str) -> tuple[str, str]:
    """Write a spec for a table.

    Args:
        file: The table.
        spec_folder: Where the spec will stand; its paths are relative to that.

    Returns:
        The text of the spec, and what was found in a few words.

    Raises:
        CannotRun: When it cannot be read, or has neither images nor numbers.
    """
    found = _look(file)

    def relative(path: str) -> str:
        return flow_scalar(os.path.relpath(os.path.abspath(path), os.path.abspath(spec_folder)).replace(os.sep, "/"))

    root, mask_root = (f", root: {relative(folder)}" if folder is not None else "" for folder in (found.root, found.mask_root))
    features, after, summary = _image_lines(found, root, mask_root) if found.image is not None else number_lines(found.table)
    lines = [
        "# yaml-language-server: $schema=pipegen.schema.json",
        f"# `pipegen init` found {summary}.",
        "pipegen: 1",
        "source:",
        "  csv:",
        f"    path: {relative(file)}",
        *([f"    separator: {flow_scalar(found.separator)}"] if found.separator is not None else []),
        *([] if found.header else ["    header: false"]),
        "    features:",
        *features,
        *after,
    ]
    return "\n".join(lines) + "\n", summary


def _image_lines(found: _Found, root: str, mask_root: str) -> tuple[list[str], list[str], str]:
    """Writes the lines of `features`, those after the source, and a few words on what was found."""
    assert found.image is not None  # noqa: S101 - the caller has looked
    rows, columns = len(found.table.rows), columns_of(found.table)
    summary = f"{rows:,} rows" + (f", in {found.classes} classes" if found.label is not None else "")
    sample = _sample(found)
    deep = f", {pixels_of(sample)}" if sample.deep and sample.deep == len(sample.sizes) else ""
    features = [f"      image: {{kind: image, column: {found.name(found.image)}{root}{deep}}}"]
    after = []
    masks = masks_of(_files(found), told=True, sample=sample) if found.mask is not None else None
    if found.mask is not None and masks is not None:
        summary = f"{rows:,} rows, each with a mask"
        features.append(f"      mask: {{kind: mask, column: {found.name(found.mask)}{mask_root}{classes_of(masks)}}}")
        after.append("splits: {parts: {train: 0.8, validation: 0.2}}")
    elif found.label is not None:
        features.append(f"      label: {{kind: label, column: {found.name(found.label)}}}")
        after.append("splits: {parts: {train: 0.8, validation: 0.2}, stratify: label}")
    features += unused(columns, {c for c in (found.image, found.mask, found.label) if c is not None}, "      ")
    after += ["transforms:", f"  - resize: {{size: {size_for(sample)}}}"]
    if found.mask is not None:
        after.append("  # - random_flip  # left and right, the mask as the image")
    elif found.label is not None:
        after.append("  # - random_flip  # where a mirrored image means the same")
    after.append("  - rescale: {to: [0, 1]}  # or what a pretrained model wants, such as normalize: {preset: resnet50}")
    if found.mask is not None:
        after.append("output: {x: image, y: mask}  # the mask holds the class index of each pixel")
    after.append(f"batch: {{size: {batch_for(rows)}}}")
    return features, after, summary


def _look(file: str) -> _Found:
    """The first way of reading the table in which a column names images."""
    problem: OpError | None = None
    for separator in _SEPARATORS:
        try:
            table = read_table("", file, separator=separator, header=False)
        except OpError as error:
            problem = problem or error
            continue
        columns = _image_columns(table)
        if not columns:
            continue
        header = not _is_image(table.rows[0][columns[0]])
        if header:
            table = read_table("", file, separator=separator, header=True)
        image, mask = _with_mask(table, columns)
        label = _label_column(table, columns) if mask is None else None
        classes = len({row[label] for row in table.rows}) if label is not None else 0
        return _Found(
            table, separator, header, image, _root(table, image), mask, None if mask is None else _root(table, mask), label, classes
        )
    numbers = numbers_in(file, _SEPARATORS)
    if numbers is not None:
        return _Found(*numbers, None, None, None, None, None, 0)
    if problem is not None and problem.code != "PG421":
        raise CannotRun(problem.message, *problem.lines)
    raise CannotRun(
        f"no column of {file} names image files, and no two hold numbers",
        "one is needed whose every cell is the path of an image, such as a JPEG, PNG or TIFF, or several of numbers",
    )


def _sample(found: _Found) -> Sample:
    """Returns what the headers of some images say."""
    folder = found.root if found.root is not None else os.path.dirname(found.table.file)
    cells = [row[found.image or 0].strip() for row in found.table.rows]
    return sample_of(cells, lambda i: os.path.join(folder, cells[i]))


def _is_image(cell: str) -> bool:
    return os.path.splitext(cell.strip().lower())[1].removeprefix(".") in IMAGE_EXTENSIONS


def _image_columns(table: TextTable) -> list[int]:
    """The columns with image paths in every row but the first, which may be a header."""
    body = table.rows[1:] or table.rows
    columns = range(len(table.rows[0])) if table.rows else range(0)
    return [column for column in columns if all(_is_image(row[column]) for row in body)]


def _with_mask(table: TextTable, columns: list[int]) -> tuple[int, int | None]:
    """Chooses the column of images, and that of their masks where the files of one are masks of the other's."""
    for image, mask in permutations(columns[:_MOST_COLUMNS], 2):
        told = table.names is not None and is_called_mask(table.names[mask]) and not is_called_mask(table.names[image])
        if masks_of(_pairs(table, image, mask), told=told, sample=sample_of([], str)) is not None:
            return image, mask
    return columns[0], None


def _files(found: _Found) -> list[tuple[str, str]]:
    return _pairs(found.table, found.image or 0, found.mask or 0)


def _pairs(table: TextTable, image: int, mask: int) -> list[tuple[str, str]]:
    """The files of two columns; none where one of them names files that are not there."""
    folders = [_root(table, column) or os.path.dirname(table.file) for column in (image, mask)]
    files = [(os.path.join(folders[0], row[image].strip()), os.path.join(folders[1], row[mask].strip())) for row in table.rows]
    return files if all(os.path.isfile(path) for pair in files for path in pair) else []


def _label_column(table: TextTable, images: list[int]) -> int | None:
    """The column that is called a label, or else the one with the fewest values, each of them in several rows."""
    counted: dict[int, int] = {}
    for column in range(len(table.rows[0])):
        values = {row[column].strip() for row in table.rows}
        if column not in images and 1 < len(values) <= len(table.rows) // 2 and "" not in values and not any("." in v for v in values):
            counted[column] = len(values)
    named = [c for c in counted if table.names is not None and table.names[c].lower() in LABELS]
    return next(iter(named), min(counted, key=lambda c: counted[c], default=None))


def _root(table: TextTable, image: int) -> str | None:
    """The folder that the paths are relative to, where it is not the table's: one below that which has the first file."""
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
