"""Parts of files, one for each row of a table: windows of rasters, pieces of recordings."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pipegen.errors import DataError, OpError
from pipegen.files import stamp
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.fields.columns import Column
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import Timeline, having
from pipegen.ops.sources.features.feature import aligned_images
from pipegen.ops.sources.features.items import earlier
from pipegen.ops.sources.listing.base import Location
from pipegen.ops.sources.listing.blocks import TakingReader
from pipegen.ops.sources.stores.base import byte_strings
from pipegen.ops.sources.tables.features import GeoTiff, TableFeature
from pipegen.ops.sources.tables.table import Table

_VALUE = 4  # bytes of a value in memory: float32


class FileColumn:
    """The files of a feature, one for each row, which are read whole."""

    called = ""  # what parts of such files are, in messages

    def __init__(self, files: Location) -> None:
        self.files = files

    def sizes(self) -> Ints:
        """Returns the bytes of each row in memory, or on disk for files that are read whole: int64 `(n,)`."""
        return self.files.sizes.astype(np.int64)

    def places(self) -> bytes:
        """Identifies the parts of all rows."""
        return b"()\n"

    def content(self, path: str, seen: tuple[int, int], row: int) -> bytes:
        """Reads the part of a row in its file, which has a size and a modification time; any exception of a library on damage."""
        return content_of(path)


class RasterColumn(FileColumn):
    """The rasters of a feature: the `bands` that are read, and first row and column, height and width of each window, int64 `(n, 4)`."""

    called = "windows of GeoTIFF files"

    def __init__(self, files: Location, bands: tuple[int, ...], windows: Ints) -> None:
        from pipegen.ops.lowering.array_formats import Rasters

        super().__init__(files)
        self._bands, self._windows, self._rasters = bands, windows, Rasters()

    def sizes(self) -> Ints:
        return self._windows[:, 2:].prod(1) * len(self._bands) * _VALUE

    def places(self) -> bytes:
        return f"{self._bands}\n".encode() + self._windows.tobytes()

    def content(self, path: str, seen: tuple[int, int], row: int) -> bytes:
        """Reads a window as a `.npy` file."""
        stream = io.BytesIO()
        np.save(stream, self._rasters.cut(path, seen, self._bands, self._windows[row].tolist()), allow_pickle=False)
        return stream.getvalue()


class SoundColumn(FileColumn):
    """The recordings of a feature: seconds before the piece of each row, and its most seconds, float64 `(n, 2)`, NaN for all that follow;
    `values` a second are in memory."""

    called = "pieces of sound files"

    def __init__(self, files: Location, pieces: Any, values: int) -> None:
        super().__init__(files)
        self._pieces, self._values = pieces, values

    def sizes(self) -> Ints:
        seconds = self._pieces[:, 1]
        found: Ints = np.where(np.isnan(seconds), self.files.sizes, np.nan_to_num(seconds) * self._values * _VALUE).astype(np.int64)
        return found

    def places(self) -> bytes:
        return bytes(self._pieces.tobytes())

    def content(self, path: str, seen: tuple[int, int], row: int) -> bytes:
        """Reads a piece as a WAV file."""
        from pipegen.ops.lowering.library import UnreadableError
        from pipegen.ops.lowering.sounds import describe, piece_of_file

        offset, duration = self._pieces[row].tolist()
        try:
            return piece_of_file(path, offset, None if math.isnan(duration) else duration)
        except (OSError, UnreadableError):
            raise
        except Exception as error:
            raise OSError(describe(error)) from error


def column_of(feature: TableFeature, files: Location | None, table: Table, field: str) -> FileColumn | None:
    """Returns the files of a feature and their parts, `None` if files are missing; raises `OpError` as `windows_of` and `pieces_of`."""
    geotiff = feature.windows()
    if geotiff is not None:
        windows = windows_of(geotiff, table, f"{field}.format.geotiff.window")
        return None if files is None else RasterColumn(files, geotiff.bands, windows)
    if feature.cut_by is not None:
        pieces = pieces_of(feature, table, field)
        return None if files is None else SoundColumn(files, pieces, (feature.rate or 1) * (feature.channels or 1))
    return None if files is None else FileColumn(files)


def windows_of(geotiff: GeoTiff, table: Table, field: str) -> Ints:
    """Returns the window of each row, int64 `(n, 4)`; `PG421` without a column, `PG423` for an invalid number."""
    assert geotiff.window is not None  # noqa: S101 - callers check it
    found: Ints = np.empty((table.num_rows, 4), np.int64)
    for i, (side, least) in enumerate(zip(geotiff.window, (0, 0, 1, 1), strict=True)):
        if isinstance(side, int):
            found[:, i] = side
            continue
        cells, place = table.column(side, f"{field}.{i}"), table.at(side, f"{field}.{i}").place
        for row, cell in enumerate(cells):
            if not (cell.isascii() and cell.isdigit() and len(cell) < 10 and int(cell) >= least):
                message = f"{place(row)} holds {cell!r}, but a window needs an integer of {least} or more"
                raise OpError("PG423", message, field=f"{field}.{i}", help="remove such rows, or round them")
            found[row, i] = int(cell)
    return found


def happening_in_pieces(name: str, features: Mapping[str, TableFeature], held: Mapping[str, Column], table: Table) -> dict[str, Column]:
    """Moves what happens in recordings to the piece of each row: from seconds of the file to seconds of the piece."""
    homes, moved = aligned_images(features), {}
    for other in having(features, Timeline) if features[name].cut_by is not None else ():
        column = held.get(other)
        if homes[other] == name and column is not None:
            moved[other] = earlier(column, np.nan_to_num(pieces_of(features[name], table, f"features.{name}")[:, 0]))
    return moved


def pieces_of(feature: TableFeature, table: Table, field: str) -> Any:
    """Returns seconds before the piece of each row, and its most seconds, float64 `(n, 2)`, NaN for all that follow; `PG421` without a
    column, `PG423` for an invalid number."""
    pieces = np.full((table.num_rows, 2), np.nan)
    for i, name in enumerate(("offset", "duration")):
        given = getattr(feature, name)
        if not isinstance(given, str):
            pieces[:, i] = np.nan if given is None else given
            continue
        cells, place = table.column(given, f"{field}.{name}"), table.at(given, f"{field}.{name}").place
        for row, cell in enumerate(cells):
            if i == 1 and not cell.strip():  # up to the end
                continue
            seconds = _seconds(cell)
            if not 0 <= seconds < math.inf or (i == 1 and seconds == 0):
                due = "a number of seconds, 0 or more" if i == 0 else "a number of seconds above 0, or an empty cell"
                raise OpError("PG423", f"{place(row)} holds {cell!r}, but `{name}` needs {due}", field=f"{field}.{name}")
            pieces[row, i] = seconds
    return pieces


def _seconds(cell: str) -> float:
    """Converts a cell to a number; NaN for another text."""
    try:
        return float(cell)
    except ValueError:
        return math.nan


class FilePartReader(TakingReader):
    """A reader of parts of files, and of other files, by row number.

    Args:
        columns: The files of each feature.
        place: Describes the place of a row.
    """

    def __init__(self, columns: Mapping[str, FileColumn], place: Callable[[int], str]) -> None:
        self._columns, self._place = dict(columns), place
        self._stamps = {path: _stamp(path) for column in columns.values() for path in dict.fromkeys(column.files.paths)}

    def row_sizes(self) -> Ints:
        """Returns the bytes of each row; see `FileColumn.sizes`."""
        return np.sum([column.sizes() for column in self._columns.values()], axis=0, dtype=np.int64)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return " and ".join(dict.fromkeys(column.called for column in self._columns.values() if column.called))

    def take(self, feature: str, *place: Any) -> Any:
        """Returns the bytes of files, and of their parts."""
        return byte_strings([self._content(self._columns[feature], row) for row in place[0].tolist()])

    def check(self) -> None:
        for path, seen in self._stamps.items():
            if _stamp(path) != seen:
                raise DataError(f"{path} was changed since it was listed; build the pipeline again")

    def digest(self, *, whole: bool = False) -> str:
        """Identifies parts, and files by size or, with `whole`, by content."""
        found = hashlib.blake2b(digest_size=32)
        for name, column in sorted(self._columns.items()):
            found.update(f"{name} ".encode() + column.places())
            for block in column.files.keys.blocks():
                found.update(b"\n".join(block) + b"\n")
            found.update(column.files.sizes.astype("<i8").tobytes())
        for path in self._stamps if whole else ():
            found.update(hashlib.blake2b(content_of(path)).digest())
        return found.hexdigest()

    def _content(self, column: FileColumn, row: int) -> bytes:
        path = column.files.paths[row]
        if not column.called:
            return column.content(path, self._stamps[path], row)
        try:
            if _stamp(path) != self._stamps[path]:
                raise OSError("was changed since it was listed; build the pipeline again")
            return column.content(path, self._stamps[path], row)
        except Exception as error:  # libraries raise anything for damage
            raise OSError(f"{self._place(row)}: {path} {' '.join(str(error).split())}") from error


def _stamp(path: str) -> tuple[int, int]:
    """Returns size and modification time of a file; -1 for a missing one."""
    try:
        return stamp(path)
    except OSError:
        return -1, -1
