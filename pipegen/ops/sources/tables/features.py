"""Features in columns of tables and in files: their arguments, and the formats of files that hold arrays rather than images."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator, model_validator

from pipegen.errors import OpError, PartError
from pipegen.ops.arguments.geometry import BoxFormat, FixedSize, height_width
from pipegen.ops.arguments.timeline import EventFormat
from pipegen.ops.families.decoder import ArrayDecoder, missing_library
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import npy_of_list
from pipegen.ops.kinds.base import Levels
from pipegen.ops.model import Model, OneOf
from pipegen.ops.sources.features.feature import AnyKind, AnyKindName, ColumnKindName, EncodedFeature
from pipegen.ops.sources.features.predicate import Computed
from pipegen.ops.sources.tables.readings import Column

if TYPE_CHECKING:
    from pipegen.ops.sources.tables.table import ListFile

_ITEM_FORMATS = (*get_args(BoxFormat), *get_args(EventFormat))
_FOUR = range(4)
_Count = Annotated[int, Field(ge=1)]
ColumnName = Annotated[str, Field(min_length=1)]
_RANGE = re.compile(r"\{\d+\.\.\d+\}")
_Place = Annotated[int, Field(ge=0)]


class Npy(Model):
    """A `.npy` file for each example."""

    channels: _Count = 1
    """Number of channels of the array `(height, width, channels)`; an array of two axes has one."""


class Nifti(Model):
    """A NIfTI volume, `.nii` or `.nii.gz`, for each example."""

    slices: _Count | None = None
    """Number of slices of a volume along its third axis, which become the channels of the image."""
    slice: _Place | None = None
    """The only slice to read, counted from 0."""

    @model_validator(mode="after")
    def _one(self) -> Nifti:
        if (self.slices is None) == (self.slice is None):
            raise ValueError("give either the number of `slices` of a volume, or one `slice`")
        return self


class GeoTiff(Model):
    """A GeoTIFF for each example."""

    bands: Annotated[tuple[_Count, ...], Field(min_length=1)] = (1,)
    """Bands to read, counted from 1, which become the channels of the image in this order."""
    window: tuple[_Place | ColumnName, _Place | ColumnName, _Count | ColumnName, _Count | ColumnName] | None = None
    """First row and column, counted from 0, and height and width of the part to read, in pixels. In a table each may be the name of a
    column, `[top, left, 256, 256]`: every row then has a window of its own, and only that is read."""

    @property
    def by_row(self) -> bool:
        """Whether each row of a table has a window of its own."""
        return self.window is not None and any(isinstance(side, str) for side in self.window)


class ArrayFile(OneOf):
    """One format, with its options."""

    called: ClassVar[str] = "a format"

    npy: Npy | None = None
    """NumPy files: `{npy: {channels: 3}}`."""
    nifti: Nifti | None = None
    """NIfTI volumes: `{nifti: {slices: 32}}`, `{nifti: {slice: 16}}`."""
    dicom: Literal["stored", "rescaled"] | None = None
    """DICOM images: `{dicom: stored}` gives the stored values, `{dicom: rescaled}` the values that they represent, such as Hounsfield
    units."""
    geotiff: GeoTiff | None = None
    """GeoTIFF: `{geotiff: {bands: [4, 3, 2]}}`, `{geotiff: {window: [0, 0, 256, 256]}}`."""

    def decoder(self) -> ArrayDecoder:
        """Returns the decoder of such files."""
        if self.npy is not None:
            return _decoder("npy", self.npy.channels)
        if self.nifti is not None:
            return _decoder("nifti", self.nifti.slices or 1, index=self.nifti.slice)
        if self.geotiff is not None:
            window = self.geotiff.window
            cut = None if self.geotiff.by_row else window  # only the row's window is stored
            found = _decoder("geotiff", len(self.geotiff.bands), bands=self.geotiff.bands, window=cut)
            size = (None, None) if window is None else (side if isinstance(side, int) else None for side in window[2:])
            return found.model_copy(update={"shape": (*size, *found.shape[2:])})
        return _decoder("dicom", 1, values=str(self.dicom))


LISTED = "list"
Format = Literal["npy", "flo", "nifti", "geotiff", "list"] | ArrayFile


def _decoder(format: str, channels: int | None, **options: Any) -> ArrayDecoder:
    return ArrayDecoder(format=format, shape=(None, None, channels), options=tuple(options.items()))


def decoder_of(format: Format) -> ArrayDecoder:
    """Returns the decoder of files of a format."""
    if isinstance(format, ArrayFile):
        return format.decoder()
    if format == "geotiff":
        return ArrayFile(geotiff=GeoTiff()).decoder()
    if format == LISTED:
        return _decoder("npy", 1)
    return _decoder(format, {"npy": 1, "flo": 2, "nifti": None}[format])


class InTable(AnyKind):
    """A feature in columns of a table."""

    if TYPE_CHECKING:
        shape: Any

    column: Column | None = None
    """Name of the column in the header, or its number from 0; by default the feature's name. `about.label` is the field `label` of JSON in
    the column `about`."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """Several columns in place of one; `p{0..783}` stands for `p0` to `p783`. For a tensor: its numbers, in this order; for an image of a
    `size`: its pixels. For boxes: their four numbers, in the order of `format`, a
    list each or, in a table with a row per box, a number. For keypoints: x and y of each of the `names`, or x, y and visibility; a point
    with empty cells is absent."""

    value: Computed | None = None
    """For a tensor or a weight: a number computed from columns, or short values of records, such as `1 / count`, `(right - left) * height`
    or `count ** -0.5`, with `+`, `-`, `*`, `/`, `**` and brackets. Column names that are not plain words stand in backticks."""

    @field_validator("columns")
    @classmethod
    def _expanded(cls, columns: tuple[int | str, ...] | None) -> tuple[int | str, ...] | None:
        if not any(isinstance(column, str) and _RANGE.search(column) for column in columns or ()):
            return columns
        from pipegen.ops.sources.shards.paths import expand

        each = ([*expand(column)] if isinstance(column, str) and _RANGE.search(column) else [column] for column in columns or ())
        return tuple(column for some in each for column in some)

    @model_validator(mode="after")
    def _of_columns(self) -> InTable:
        if self.column is not None and self.columns is not None:
            raise ValueError("`column` names one column and `columns` several; leave one of them out")
        stored = ("column", "columns", "shape", "key", "keys", "path")
        other = next((name for name in stored if self.value is not None and getattr(self, name, None) is not None), None)
        if other is not None:
            raise ValueError(f"`value` is one number computed from columns; leave `{other}` out")
        if self.columns is not None and self.shape is not None:
            raise ValueError("`columns` have one number each, but `shape` is for arrays in one column; leave one of them out")
        kind, points = self.own_kind, len(self.names or ())
        if kind.numbers and len(self.columns or range(kind.numbers)) != kind.numbers:
            raise PartError(f"{kind.plural} need {kind.numbers} `columns`, in the order of their `format`, or one `column`", "columns")
        if kind.guides("points") and self.columns is not None and (self.home or len(self.columns) not in (2 * points, 3 * points)):
            has = f"{len(self.columns)} for {count(points, 'name')}" if points else "no `names`"
            message = f"keypoints in `columns` need x and y, or x, y and visibility, for each of the `names`; there are {has}"
            raise PartError(message if self.home is None else "keypoints `with` boxes need one `column` of lists", "columns")
        return self

    def column_of(self, name: str) -> str | int:
        """Returns the column of the feature `name`: its own argument, else its name."""
        return name if self.column is None else self.column

    @property
    def stored_shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.shape or ((len(self.columns),) if self.columns is not None else ())
        return self.own_kind.shape_of(shape) if shape else shape


class JoinedFeature(InTable):
    """One feature in columns of a joined table."""

    kind: ColumnKindName
    """`label`: class names, or class indices as integers. `tensor`: numbers of one `dtype`. `weight`: a number of 0 or more that weighs the
    example in the loss. `boxes`: four numbers for each box, as lists or one after another, or in four `columns`. `events`: likewise two
    numbers, start and end in seconds. `keypoints`: x and y, optionally with 0, 1 or 2 for absent, hidden or visible, as lists, or named
    points in `columns`. A `label` or `tensor` that is `with` boxes or events of the table has a list of one value for each."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """Several columns of the joined table: the numbers of a tensor; the four numbers of boxes or the two of events, in the order of
    `format`; or x and y of each of the `names` of keypoints, or x, y and visibility."""
    shape: Annotated[tuple[_Count, ...], Field(min_length=1, max_length=8)] | None = None
    """Shape of a tensor whose cells are lists of numbers, such as `[768]`; they stay in memory."""


class FormattedFeature(InTable, EncodedFeature):
    """A feature with a format: of boxes, or of its files."""

    format: BoxFormat | EventFormat | Format | None = None  # type: ignore[assignment]  # that of items, or of files
    """For boxes: the order and unit of their numbers, by default `xyxy`: left, top, right and bottom edge in pixels. `xywh`: left, top,
    width and height. `center_xywh`: centre, width and height. `yxyx`: top, left, bottom and right. `rel_xyxy` and so on: the same as
    fractions of the image's width and height. For events, in seconds: `start_end` (default), or `start_duration`. For an array, and for an
    image or a dense map in files of arrays: the format of the files. `npy`, `nifti`, `geotiff` and `flo` (optical flow of 2 channels; for
    arrays and dense maps) are names; `{npy: {channels: 3}}`, `{nifti: {slices: 32}}`, `{dicom: rescaled}` and `{geotiff: {bands: [4, 3,
    2]}}` have options. `list` is for arrays that are lists of numbers in the cells of a table. Values are float32, as stored. Vectors are
    in `.flo` or `.npy` files by default."""

    offset: int | Annotated[float, Field(ge=0)] | ColumnName = 0  # type: ignore[assignment]  # of labels, and of sound
    """For a label: the number subtracted from stored numbers to get class indices, such as 1 if they start at 1. For sound in files:
    seconds before the part to read, or in a table the column that has them for each row; a file that ends before is an error."""
    duration: Annotated[float, Field(gt=0)] | ColumnName | None = None
    """For sound in files: the most seconds to read, or in a table the column that has them for each row; an empty cell is the rest of the
    file. Of a shorter file there are fewer. By default up to the end."""

    @model_validator(mode="after")
    def _files_of_its_kind(self) -> FormattedFeature:
        if self.own_kind.samples is None and not isinstance(self.offset, int):
            raise PartError(f"the `offset` of {self.own_kind.plural} is an integer, not {self.offset!r}", "offset")
        if self.own_kind.samples is not None and not isinstance(self.offset, str) and self.offset < 0:
            raise PartError(f"the `offset` of {self.own_kind.plural} is 0 or more, in seconds", "offset")
        return self

    def check_format(self) -> None:
        geometry, form = self.own_kind.geometry, self.format
        if form is not None and (form in _ITEM_FORMATS or geometry is not None) and form not in (geometry.formats if geometry else ()):
            known = "boxes" if form in get_args(BoxFormat) else "events" if form in get_args(EventFormat) else "files"
            given = form if isinstance(form, str) else form.name
            raise PartError(f"`{given}` is a format of {known}, and this is `kind: {self.kind}`", "format")
        if form == LISTED and not self._holds_arrays:
            raise PartError(f"`{LISTED}` is a format of arrays, and this is `kind: {self.kind}`", "format")

    @property
    def _holds_arrays(self) -> bool:
        """Whether an example has a file of numbers of a shape."""
        return "shape" in self.own_kind.arguments and self.own_kind.storage == "encoded"

    def array_decoder(self) -> ArrayDecoder:
        """Returns the decoder of files of its `format`."""
        return decoder_of(self.format)  # type: ignore[arg-type]  # which a caller has checked

    def list_file(self) -> ListFile | None:
        """Returns the files for which a table may have lists of numbers in its cells, if any."""
        from pipegen.ops.sources.tables.table import ListFile

        samples = self.own_kind.samples
        if samples is not None:
            whole = not self.offset and self.duration is None
            return ListFile(partial(samples.file_of_list, feature=self), (self.channels or 1) if whole else None)
        return ListFile(partial(npy_of_list, shape=self.shape)) if self.format == LISTED else None

    def windows(self) -> GeoTiff | None:
        """Returns the options of rasters with a window per row; `None` for other files."""
        geotiff = self.format.geotiff if isinstance(self.format, ArrayFile) else None
        return geotiff if geotiff is not None and geotiff.by_row else None

    @property
    def cut_by(self) -> str | None:
        """The argument that names columns, so that each row has a part of a file of its own: `format`, `offset` or `duration`."""
        in_columns = (name for name in ("offset", "duration") if isinstance(getattr(self, name), str))
        return "format" if self.windows() is not None else next(in_columns, None)

    def check_whole(self) -> None:
        """Rejects parts of files by columns, and lists of numbers in place of files, which need a table."""
        if self.format == LISTED:
            raise PartError("lists of numbers in cells need a table", "format", help="such as `format: npy`")
        if self.cut_by is not None:
            what, help_ = (
                ("a window", "window: [0, 0, 256, 256]") if self.cut_by == "format" else (f"`{self.cut_by}`", f"{self.cut_by}: 1.5")
            )
            raise PartError(f"{what} by columns needs a table", self.cut_by, help=f"such as `{help_}`")


class FileFeature(FormattedFeature):
    """One feature in a file of each record, or in columns of a table."""

    kind: AnyKindName
    """`image`, `mask`, `dense` or `array` in files; these and all others in columns of a table."""
    shape: Annotated[tuple[_Count | None, ...], Field(min_length=1)] | None = None
    """For an array: its shape, the same in every file, such as `[436, 1024, 2]`; `null` for a length along the first axis that varies,
    which `batch.pad` pads, such as `[null, 40]`. For a tensor of a table with cells of lists of numbers, as in Parquet files: the shape of
    each, such as `[768]`; they stay in memory."""

    @model_validator(mode="after")
    def _whole_array(self) -> FileFeature:
        kind, in_files = self.own_kind, self._holds_arrays
        for name, example in (("format", "npy"), ("shape", "[64, 64]")):
            if getattr(self, name) is None and in_files:
                in_cells = ", or `format: list` for lists of numbers in the cells of a table" if name == "format" else ""
                raise PartError(f"an array needs its `{name}`", help=f"such as `{name}: {example}`{in_cells}")
        if self.shape is not None and None in self.shape[in_files:]:
            what = "only the first side of an array may be `null`" if in_files else f"`null` is for arrays in files, not {kind.plural}"
            raise PartError(what, "shape")
        return self


class TableFeature(FileFeature):
    """One feature of a table's rows, and its column."""

    kind: AnyKindName
    """`image`: paths of image files, or with a `size` the pixels as numbers. `mask`: paths of files with a class for each pixel of the
    image. `dense`: paths of files with numbers for each pixel. `label`: class names, or class indices as integers. `tensor`: numbers of one
    `dtype`. `weight`: a number of 0 or more that weighs the example in the loss. `array`: paths of files of numbers, or lists of them.
    `boxes`: four numbers for each box, as lists or one after another, or in four `columns`; `events`: likewise two, start and end in
    seconds. `keypoints`: x and y, optionally with 0, 1 or 2 for absent, hidden or visible, as lists, or named points in `columns`. A
    `label` or `tensor` that is `with` boxes or events has a list of one
    value for each. A list is one of the format, or text such as `[[0, 0, 8, 8]]`."""
    root: Annotated[str, Field(min_length=1)] | None = None
    """Folder that image paths are relative to, itself relative to the spec's file; by default the table's folder, and for a table in memory
    the spec's."""
    ending: Annotated[str, Field(min_length=2, pattern=r"^\.")] | None = None
    """Ending added to paths without it, such as `.jpg` if a column holds ids."""
    size: FixedSize | None = None
    """Size of images whose pixels are numbers in the table: the side of a square, or `[height, width]`, in pixels. The numbers are in one
    cell, as text or a list, or in `columns` of one each: row after row, with those of the `channels` (1 by default) together."""

    @model_validator(mode="after")
    def _consistent(self) -> TableFeature:
        levels = self.own_kind.has(Levels)
        if self.size is not None and not levels:
            raise PartError(f"`size` is for images whose pixels are in the table, and this is `kind: {self.kind}`", "size")
        if levels and self.columns is not None and len(self.columns) != math.prod(self.pixels):
            due = f"`size` and `channels` make {math.prod(self.pixels)}" if self.size is not None else "an image needs its `size`"
            raise PartError(f"there are {count(len(self.columns), 'column')} of pixels, but {due}", "columns")
        odd = next((name for name in ("root", "ending", "format") if getattr(self, name) is not None), None)
        if self.size is not None and odd is not None:
            raise PartError(f"`{odd}` is for files, and `size` for images whose pixels are in the table; leave one of them out", odd)
        return self

    @property
    def pixels(self) -> tuple[int, int, int]:
        """Height, width and channels of an image whose pixels are in the table; zeros without a `size`."""
        return (*(height_width(self.size) if self.size is not None else (0, 0)), self.channels or 1)


def unread_formats(features: Mapping[str, Any]) -> Iterator[OpError]:
    """Yields a `PG414` error for each feature whose files no installed library can read."""
    for name, feature in features.items():
        if feature.format is not None and feature.own_kind.storage == "encoded":
            format = feature.format if isinstance(feature.format, str) else feature.format.name
            missing = missing_library(format)
            if missing is not None:
                message = f"files of the format `{format}` need {missing[0]}, which is not installed"
                yield OpError("PG414", message, field=f"features.{name}.format", help=missing[1])
