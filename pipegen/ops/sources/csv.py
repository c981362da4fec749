"""`csv`: a table of text whose rows name image files and their labels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pipegen.errors import OpError
from pipegen.ops.base import Model
from pipegen.ops.sources.arrays import FeatureName
from pipegen.ops.sources.base import Listing, Note, Source
from pipegen.ops.sources.classes import read_labels
from pipegen.ops.sources.reports import count, quoted
from pipegen.ops.sources.table import WHITESPACE, Table, read_table
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Column = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]


class TableFeature(Model):
    """One feature of a table's rows: what it is, and the column that it stands in."""

    kind: Literal["image", "label"]
    """`image`: the column holds paths of image files. `label`: it holds class names, or class indices as whole numbers."""
    column: Column | None = None
    """The name of the column in the header, or its number from 0; by default the feature's own name."""
    root: Annotated[str, Field(min_length=1)] | None = None
    """The folder that the image paths are relative to, itself relative to the spec's file; by default the table's folder."""
    classes: Annotated[int, Field(ge=1)] | Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """The names of the classes in the order of their indices, or how many there are; by default the data says so."""
    offset: int = 0
    """What is subtracted from whole numbers to get class indices, such as 1 where classes are counted from 1."""

    @model_validator(mode="after")
    def _of_its_kind(self) -> TableFeature:
        if self.kind == "image" and (self.classes is not None or self.offset):
            raise ValueError("`classes` and `offset` belong to labels, and this is `kind: image`")
        if self.kind == "label" and self.root is not None:
            raise ValueError("`root` belongs to images, and this is `kind: label`")
        if isinstance(self.classes, tuple) and len(set(self.classes)) < len(self.classes):
            twice = next(name for name in self.classes if self.classes.count(name) > 1)
            raise ValueError(f"the class {twice!r} is listed twice")
        return self


class Csv(Source):
    """A table of text: CSV, TSV or any other separator, with or without a header; each row is an example.

    One column holds the paths of image files, and one may hold the label. A record is known by its path as the table has it, so
    rows can be added and moved. A file that stands in several rows is as many examples.
    """

    op: ClassVar[str] = "csv"

    path: Annotated[str, Field(min_length=1)]
    """The table, relative to the spec's file: text in UTF-8."""
    features: Annotated[dict[FeatureName, TableFeature], Field(min_length=1)]
    """What the columns hold, by the name of the feature: `{image: {kind: image, column: file}, label: {kind: label, column: breed}}`."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """What stands between cells: one character, or `whitespace` for blanks and tabs in any number. By default a tab in `.tsv` and
    `.tab` files, else a comma."""
    header: bool = True
    """Whether the first row names the columns; without it they are numbered from 0."""

    @field_validator("features")
    @classmethod
    def _one_of_each(cls, features: dict[str, TableFeature]) -> dict[str, TableFeature]:
        kinds = [str(feature.kind) for feature in features.values()]
        if "image" not in kinds:
            raise ValueError("`features` names no image; such as `image: {kind: image, column: file}`")
        twice = next((kind for kind in ("image", "label") if kinds.count(kind) > 1), None)
        if twice is not None:
            raise ValueError(f"`features` has {kinds.count(twice)} of `kind: {twice}`; one is read so far")
        return features

    @field_validator("separator")
    @classmethod
    def _one_character(cls, separator: str | None) -> str | None:
        if separator is not None and separator != WHITESPACE and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(f"a separator is one character, or `{WHITESPACE}`; got {separator!r}")
        return separator

    @model_validator(mode="after")
    def _numbers_without_header(self) -> Csv:
        named = next((n for n, f in self.features.items() if not self.header and not isinstance(f.column, int)), None)
        if named is not None:
            raise ValueError(f"without a header columns have numbers: give `features.{named}` a `column`, from 0")
        return self

    @property
    def image(self) -> str:
        """The name of the image feature."""
        return next(name for name, feature in self.features.items() if feature.kind == "image")

    @property
    def label(self) -> str | None:
        """The name of the label feature, if there is one."""
        return next((name for name, feature in self.features.items() if feature.kind == "label"), None)

    def infer(self) -> ElementType:
        """An encoded image, and the class index where there is a label, in the order that the features are listed in."""
        types = []
        for name, feature in self.features.items():
            count_ = len(feature.classes) if isinstance(feature.classes, tuple) else feature.classes
            image = FeatureType("encoded", "string", ())
            types.append((name, image if feature.kind == "image" else FeatureType("label", "int64", (), classes=count_)))
        return ElementType(tuple(types))

    def has_labels(self) -> bool:
        """Whether a column holds labels."""
        return self.label is not None

    def has_folders(self) -> bool:
        """No: the table has the labels."""
        return False

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Read the table and look for its files; see `Source.list`.

        Raises:
            OpError: As `read_table` and `Table.column`; `PG401` for files that do not exist, `PG420` for labels that name no class.
        """
        table = read_table(str(base), self.path, separator=self.separator, header=self.header)
        keys, paths, sizes, notes = self._files(table, base, progress)
        labels: tuple[int, ...] | None = None
        names: tuple[str, ...] = ()
        if self.label is not None:
            labels, names = self._labels(table, self.label)
        return Listing(os.path.dirname(table.file), keys, labels, names, sizes, notes, paths=paths, in_table=True)

    def _files(
        self, table: Table, base: Path, progress: Callable[[int], None] | None
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...], tuple[Note, ...]]:
        """The key, the absolute path and the size of each row's file, and what is odd about them."""
        feature, field = self.features[self.image], f"features.{self.image}"
        root = os.path.dirname(table.file)
        if feature.root is not None:
            root = os.path.abspath(os.path.join(str(base), os.path.expanduser(feature.root)))
            if not os.path.isdir(root):
                raise OpError("PG401", f"there is no folder {root!r}", field=f"{field}.root")
        rows_of: dict[str, int] = {}
        keys: dict[str, None] = {}
        paths, sizes, missing = [], [], []
        for row, cell in enumerate(table.column(self.image if feature.column is None else feature.column, f"{field}.column")):
            if not cell:
                raise OpError("PG421", f"{table.place(row)} names no image", field=f"{field}.column", help="leave such rows out")
            path = os.path.join(root, cell)
            try:
                size = os.stat(path).st_size if os.path.isfile(path) else -1
            except (OSError, ValueError):
                size = -1
            if size < 0:
                missing.append(row)
            name = os.path.normpath(cell).replace(os.sep, "/")
            rows_of[name] = rows_of.get(name, 0) + 1
            key = name if rows_of[name] == 1 else f"{name}#{rows_of[name]}"
            while key in keys:  # a file may be called like another one's second row
                key += "#"
            keys[key] = None
            paths.append(path)
            sizes.append(size)
            if progress is not None and row % 1000 == 999:
                progress(row + 1)
        if missing:
            raise _not_there(table, [paths[row] for row in missing], missing, len(paths), f"{field}.{'root' if feature.root else 'column'}")
        return tuple(keys), tuple(paths), tuple(sizes), _repeated([name for name, rows in rows_of.items() if rows > 1])

    def _labels(self, table: Table, name: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The class index of each row, and the classes."""
        import numpy as np

        feature = self.features[name]
        cells = table.column(name if feature.column is None else feature.column, f"features.{name}.column")
        empty = next((row for row, cell in enumerate(cells) if not cell), None)
        if empty is not None:
            raise OpError("PG420", f"{table.place(empty)} has no label", field=f"features.{name}.column", help="leave such rows out")
        numbers = not isinstance(feature.classes, tuple) and all(_is_whole(cell) for cell in cells)
        try:
            return read_labels(name, feature.classes, feature.offset, np.array([int(c) for c in cells] if numbers else cells))
        except OpError as error:
            raise OpError(error.code, error.message, field=f"features.{name}.{error.field or 'column'}", help=error.help) from None


def _is_whole(cell: str) -> bool:
    return cell.isascii() and cell.removeprefix("-").isdigit()


def _not_there(table: Table, files: list[str], rows: list[int], total: int, field: str) -> OpError:
    first = f"{table.place(rows[0])} names {files[0]!r}, which does not exist"
    if len(rows) == 1:
        return OpError("PG401", first, field=field, help="leave the row out, or put the file there")
    help_ = "`root` is the folder that the paths are relative to" if len(rows) == total else "leave the rows out, or put the files there"
    return OpError("PG401", f"{first}; nor do the files of {count(len(rows) - 1, 'other row')} of {total}", field=field, help=help_)


def _repeated(names: list[str]) -> tuple[Note, ...]:
    """What is said of files that stand in several rows."""
    if not names:
        return ()
    stands = "stands" if len(names) == 1 else "stand"
    message = f"{count(len(names), 'file')} {stands} in several rows, such as {quoted(names[:1])}: each row is an example"
    help_ = "leave the repeats out, or keep the rows of a file together with `splits: {group: {path: '([^#]*)'}}`"
    return (Note("PG422", message, help_),)
