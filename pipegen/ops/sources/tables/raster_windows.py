"""Windows of large rasters: each row of a table names a file and a window in it."""

from __future__ import annotations

import hashlib
import io
import os
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.errors import DataError, OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.sources.listing.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipegen.ops.sources.features.file_formats import GeoTiff
    from pipegen.ops.sources.listing.base import Files
    from pipegen.ops.sources.listing.reader import Hold, Together
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.tables.table import Table

_VALUE = 4  # bytes of a value in memory: float32


@dataclass(frozen=True, eq=False)
class RasterColumn:
    """The files of a feature, one for each row."""

    files: Files  # the files
    bands: tuple[int, ...] = ()  # the bands that are read; empty if files are read whole
    windows: Ints | None = None  # first row and column, height and width of each window, int64 `(n, 4)`; `None` if files are read whole


def windows_of(geotiff: GeoTiff, table: Table, field: str) -> Ints:
    """Returns the window of each row, int64 `(n, 4)`; `PG421` without a column, `PG423` for an invalid number."""
    assert geotiff.window is not None  # noqa: S101 - callers check it
    found: Ints = np.empty((table.num_rows, 4), np.int64)
    for i, (side, least) in enumerate(zip(geotiff.window, (0, 0, 1, 1), strict=True)):
        if isinstance(side, int):
            found[:, i] = side
            continue
        place = table.place_in(side)
        for row, cell in enumerate(table.column(side, f"{field}.{i}")):
            if not (cell.isascii() and cell.isdigit() and len(cell) < 10 and int(cell) >= least):
                message = f"{place(row)} holds {cell!r}, but a window needs an integer of {least} or more"
                raise OpError("PG423", message, field=f"{field}.{i}", help="remove such rows, or round them")
            found[row, i] = int(cell)
    return found


class WindowReader(Reader):
    """A reader of windows of rasters and of other files, by row number.

    Args:
        columns: The files of each feature.
        place: Describes the place of a row.
    """

    numbered: ClassVar[bool] = True

    def __init__(self, columns: Mapping[str, RasterColumn], place: Callable[[int], str]) -> None:
        self._columns, self._place = dict(columns), place
        self._stamps = {path: _stamp(path) for column in columns.values() for path in dict.fromkeys(column.files.paths)}
        self._rasters: Any = None

    def row_sizes(self) -> Ints:
        """Returns the bytes of each row in memory, or on disk for files read whole: int64 `(n,)`."""
        each = [
            column.files.sizes.astype(np.int64) if column.windows is None else column.windows[:, 2:].prod(1) * len(column.bands) * _VALUE
            for column in self._columns.values()
        ]
        return np.sum(each, axis=0, dtype=np.int64)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.stored_readers import called

        self.check()
        return called(lambda names, *place: [self._taken(name, *place) for name in names], dict.fromkeys(features, ("string", ())))

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "windows of GeoTIFF files"

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        """Returns the bytes of files, and windows as `.npy` files."""
        found: Sequence[Any] = self._taken(feature, *place)
        return found

    def check(self) -> None:
        for path, stamp in self._stamps.items():
            if _stamp(path) != stamp:
                raise DataError(f"{path} was changed since it was listed; build the pipeline again")

    def digest(self, *, whole: bool = False) -> str:
        """Identifies windows, and files by size or, with `whole`, by content."""
        found = hashlib.blake2b(digest_size=32)
        for name, column in sorted(self._columns.items()):
            found.update(f"{name} {column.bands}\n".encode())
            found.update(b"" if column.windows is None else column.windows.tobytes())
            for block in column.files.keys.blocks():
                found.update(b"\n".join(block) + b"\n")
            found.update(column.files.sizes.astype("<i8").tobytes())
        for path in self._stamps if whole else ():
            found.update(hashlib.blake2b(content_of(path)).digest())
        return found.hexdigest()

    def _taken(self, feature: str, rows: Any) -> Any:
        several = np.atleast_1d(rows)
        found: Any = np.empty(len(several), object)
        for place, row in enumerate(several.tolist()):
            found[place] = self._content(self._columns[feature], row)
        return found if np.ndim(rows) else found[0]

    def _content(self, column: RasterColumn, row: int) -> bytes:
        path = column.files.paths[row]
        if column.windows is None:
            return content_of(path)
        try:
            if _stamp(path) != self._stamps[path]:
                raise OSError("was changed since it was listed; build the pipeline again")
            values = self._cut(path, column.bands, column.windows[row].tolist())
        except Exception as error:  # libraries raise anything for damage
            raise OSError(f"{self._place(row)}: {path} {' '.join(str(error).split())}") from error
        stream = io.BytesIO()
        np.save(stream, values, allow_pickle=False)
        return stream.getvalue()

    def _cut(self, path: str, bands: Sequence[int], window: Sequence[int]) -> Any:
        from pipegen.ops.lowering.array_formats import Rasters

        if self._rasters is None:
            self._rasters = Rasters()
        return self._rasters.cut(path, self._stamps[path], bands, window)


def _stamp(path: str) -> tuple[int, int]:
    """Returns size and modification time of a file; -1 for a missing one."""
    try:
        about = os.stat(path)
    except OSError:
        return -1, -1
    return about.st_size, about.st_mtime_ns
