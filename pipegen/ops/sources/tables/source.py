"""`TableSource`, the base of sources that read a table."""

from __future__ import annotations

import hashlib
import io
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from pipegen.errors import Attempts, DataError, OpError, OpErrors
from pipegen.files import stamp
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import content_of
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.fields.strings import Ints, Strings, as_sizes
from pipegen.ops.kinds.base import Levels
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import FeatureSource
from pipegen.ops.sources.features.file_formats import GeoTiff, unread_formats
from pipegen.ops.sources.features.predicate import Where
from pipegen.ops.sources.listing.base import Listing, Location, Missing, always
from pipegen.ops.sources.listing.blocks import BlockReader, TakingReader
from pipegen.ops.sources.listing.reader import FileReader, Reader
from pipegen.ops.sources.listing.rows import Rows
from pipegen.ops.sources.stores.base import byte_strings
from pipegen.ops.sources.tables.features import TableFeature
from pipegen.ops.sources.tables.held import read_held, read_images
from pipegen.ops.sources.tables.join import joined_to, kept_rows
from pipegen.ops.sources.tables.readings import Join
from pipegen.ops.sources.tables.table import Table

if TYPE_CHECKING:
    _Listed: TypeAlias = tuple[Location, tuple[Note, ...], tuple[Missing, ...]]
    """One file of each row, findings about them, and the missing ones."""

_ROOT = "the paths must be relative to `root`"
_ROWS = ("row", "rows")


class TableSource(FeatureSource):
    """Rows of a table, each an example: image files, labels and numbers."""

    features: Annotated[dict[FeatureName, TableFeature], Field(min_length=1)]
    """Features of each row, by name: `{image: {kind: image, column: file}, label: {kind: label, column: breed}}`."""

    where: Where | None = None
    """Rows that are examples: a comparison of columns, such as `age >= 18 and site in ['a', 'b']`, with `and`, `or`, `not`, brackets and
    `in`. Put texts in quotes, and column names that are not plain words in backticks. Rows keep the ids that they have without it."""
    join: Join | None = None
    """A second table whose columns are added by key: `{table: {csv: {path: patients.csv}}, on: patient}`."""

    fetched_as_read = always(frozenset({"root"}))
    reads_addresses = always(True)
    column_names = always(None)
    has_folders = always(False)  # the table has the labels

    @property
    def pictures(self) -> tuple[str, ...]:
        """The features in files, images first; the first one identifies a record."""
        found = [name for name, feature in self.features.items() if feature.own_kind.storage == "encoded" and feature.size is None]
        return tuple(sorted(found, key=lambda name: not self.features[name].own_kind.has(Levels)))

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        return self.listing(self.read(base), base, progress)

    def read(self, base: Path) -> Table:
        raise NotImplementedError

    def listing(self, table: Table, base: Path, progress: Callable[[int], None] | None) -> Listing:
        """Lists the records of a table. Raises `OpErrors` as `Table.column`; `PG420` for invalid labels, `PG423` for invalid numbers; as
        `kept_rows`."""
        table = table if self.join is None else joined_to(self.join, table, base)
        rows, chosen = kept_rows(table, self.where, self.features)
        table = table if len(rows) == table.num_rows else table.only(rows)
        tried = Attempts()
        tried.errors += unread_formats(self.features)
        inside = self._inside(table)
        for name in self.pictures if inside is not None else ():
            if self.features[name].windows() is not None:
                message = f"`{name}` is a window of a file in the table itself, which would be read whole for each window"
                tried.errors.append(OpError("PG421", message, field=f"features.{name}.format", help="use paths of files"))
        pixels = {name: feature for name, feature in self.features.items() if feature.size is not None}
        if pixels and self.pictures:
            message = f"the cells of `{self.pictures[0]}` are files, but those of `{next(iter(pixels))}` are pixels"
            tried.errors.append(OpError("PG446", message, field=f"features.{self.pictures[0]}", help="store both in the same way"))
        in_files = () if inside is not None or pixels else self.pictures
        found: dict[str, _Listed | None] = {}
        for name in in_files:
            first = found.get(in_files[0])
            found[name] = tried.of(self._files, name, table, base, None if found else progress, first and first[0].keys)
        missing = tuple(group for listed in found.values() if listed is not None for group in listed[2])
        records = tried.of(self._rows, table, inside, bool(pixels)) if not in_files else found[in_files[0]]
        reader: Reader | None = inside
        images = {name: tried.of(read_images, name, feature, table) for name, feature in pixels.items()}
        if images and not tried.errors:
            reader = Rows(images)
        windowed = any(self.features[name].windows() is not None for name in in_files)
        if windowed and records is not None and (cut := tried.of(self._windowed, table, found)):
            windows = replace(records[0], sizes=cut.row_sizes(), rows=np.arange(table.num_rows), kind="row")
            reader, records, found = cut, (windows, (), ()), {}
        held = read_held(self.features, table, tried)
        if tried.errors or records is None:
            known = None if records is None else Listing(table.folder, records[0], missing=missing)
            raise OpErrors(dict.fromkeys(tried.errors), table.column, known)
        location, notes, _ = records
        beside = {name: further[0] for name, further in found.items() if further is not None and name != in_files[0]}
        listing = Listing(
            table.folder,
            location,
            (*chosen, *notes),
            in_table=True,
            beside=beside,
            cells=table.column,
            label=self.labelled_by(),
            readers={"": reader or FileReader()},
            missing=missing,
        )
        return listing.with_columns(held, self.infer())

    def _inside(self, table: Table) -> BlockReader | None:
        """Returns the reader of images in the table itself; `None` if its cells are paths, `PG446` if it has both."""
        columns = {name: self.features[name].column_of(name) for name in self.pictures}
        inside: dict[str, str | int] = {}
        for name, column in columns.items():
            if not table.has(column) or not (found := table.at(column, f"features.{name}.column")).holds_bytes:
                continue  # others are reported later
            if found.joined:
                message = f"the images in {column!r} are in the joined table, whose rows are in another order"
                help_ = "make the table with the images the source, and join the other one to it"
                raise OpError("PG446", message, field=f"features.{name}.column", help=help_)
            inside[name] = column
        if not inside:
            return None
        if len(inside) < len(columns):
            path = next(name for name in columns if name not in inside)
            table.at(columns[path], f"features.{path}.column")  # which may be missing
            message = f"the cells of `{path}` are paths, but those of `{next(iter(inside))}` are the bytes of files"
            raise OpError("PG446", message, field=f"features.{path}", help="store both in the same way")
        return table.reader(inside)

    def _windowed(self, table: Table, found: Mapping[str, _Listed | None]) -> WindowReader:
        """Returns the reader of windows and other files; all of them exist."""
        columns, tried = {}, Attempts()
        for name, own in found.items():
            geotiff = self.features[name].windows()
            windows = None if geotiff is None else tried.of(windows_of, geotiff, table, f"features.{name}.format.geotiff.window")
            if own is not None:
                columns[name] = RasterColumn(own[0], geotiff.bands if geotiff is not None else (), windows)
        if tried.errors:
            raise OpErrors(tried.errors)
        return WindowReader(columns, table.place)

    def _rows(self, table: Table, reader: BlockReader | None, pixels: bool) -> _Listed:
        """Lists rows without files, identified by number from 0; messages name them by their place."""
        n = table.num_rows
        if not n:
            raise OpError("PG402", f"{table.called} has no rows", field="path" if table.file else None)
        if reader is not None:
            rows: Ints = np.array(table.kept, np.int64)
            return Location(table.row_names(), table.row_places(), reader.row_sizes()[rows], rows, "row"), (), ()
        sizes = np.full(n, sum(t.num_bytes or 1 for _, t in self.infer().items()))
        about = (np.arange(n), "row") if pixels else (None, "memory")
        return Location(table.row_names(), Strings.hold(map(table.place, range(n))), sizes, *about), (), ()

    def _files(self, image: str, table: Table, base: Path, progress: Callable[[int], None] | None, known: Strings | None) -> _Listed:
        """Lists the file of each row for a feature. Rows are named by their first file, whose keys are `known` for other features."""
        feature, field = self.features[image], f"features.{image}"
        root = None
        if feature.root is not None:
            root = os.path.abspath(os.path.join(str(base), os.path.expanduser(feature.root)))
            if not os.path.isdir(root):
                raise OpError("PG401", f"the folder {root!r} does not exist", field=f"{field}.root")
        about = feature.column_of(image), f"{field}.column"
        texts, column = table.whole.column(*about), table.at(*about)
        root = root or column.folder
        every = paths_of(texts, root, feature.ending)
        every_key, kept = row_keys(every), table.kept
        keys, cells = [every_key[row] for row in kept], [every[row] for row in kept]
        paths = [os.path.join(root, cell) for cell in cells]
        sizes: list[int] = []
        for row, path in enumerate(paths):
            try:
                sizes.append(os.stat(path).st_size if os.path.isfile(path) else -1)
            except (OSError, ValueError):
                sizes.append(-1)
            if progress is not None and row % 1000 == 999:
                progress(row + 1)
        names = Strings.hold(keys)
        alike = all(path == f"{root}/{key}" for path, key in zip(paths, keys, strict=True))
        there = as_sizes([size if size >= 0 else 1 for size in sizes])
        files = Location(names, names.below(f"{root}/") if alike else Strings.hold(paths), there)
        repeated = [name for name, rows in Counter(map(file_name, cells)).items() if rows > 1]

        place, of_rows = column.place, names if known is None else known
        lacking = np.flatnonzero(np.array(sizes) < 0)
        bare: Ints = np.array([not cells[row] for row in lacking.tolist()], bool)
        empty, missing, lost = lacking[bare], lacking[~bare], list[Missing]()
        if len(empty):
            told = f"names no {feature.kind}"
            said = lambda i: f"{place(int(empty[i]))} {told}"  # noqa: E731
            lost.append(Missing("PG421", of_rows.take(empty), said, empty, _ROWS, "a file", field=f"{field}.column"))
        if len(missing):
            at = f"{field}.{'root' if feature.root else 'column'}"
            put = "add the files" if len(missing) > 1 else "add the file"
            first, folder = paths[missing[0]], os.path.join(base, feature.root or "")
            help_ = why_missing(first) or ((where_instead(first, folder) or _ROOT) if len(missing) == len(paths) else put)
            said = lambda i: f"{place(int(missing[i]))} names {paths[missing[i]]!r}, which does not exist"  # noqa: E731
            lost.append(Missing("PG401", of_rows.take(missing), said, missing, _ROWS, "a file", (help_,), at))
        return files, _repeated(repeated), tuple(lost)


def row_keys(cells: Sequence[str]) -> list[str]:
    """Names records by the paths of their files, with a number if a file is in several rows. Names are unique."""
    rows_of: dict[str, int] = {}
    keys: dict[str, None] = {}
    for cell in cells:
        name = file_name(cell)
        rows_of[name] = rows_of.get(name, 0) + 1
        key = name if rows_of[name] == 1 else f"{name}#{rows_of[name]}"
        while key in keys:  # a file may have the name of another one's second row
            key += "#"
        keys[key] = None
    return list(keys)


def file_name(cell: str) -> str:
    """Normalises the path in a cell."""
    return os.path.normpath(cell).replace(os.sep, "/")


def _repeated(names: list[str]) -> tuple[Note, ...]:
    if not names:
        return ()
    message = f"{count(len(names), 'file')} in several rows, such as {quoted(names[:1])}; each row is an example"
    help_ = "remove the repetitions, or keep the rows of a file together with `splits: {group: {path: '([^#]*)'}}`"
    return (Note("PG422", message, help_),)


_MOST = 200  # folders below the root that are searched for a missing file


def paths_of(cells: Sequence[str], root: str, ending: str | None) -> Sequence[str]:
    """Converts cells to paths: adds a missing `ending`, and replaces backslashes by `/` if the files have that."""
    if ending is not None:
        cells = [cell if not cell or cell.endswith(ending) else f"{cell}{ending}" for cell in cells]
    first = next((cell for cell in cells if "\\" in cell), "")
    if [os.path.isfile(os.path.join(root, cell)) for cell in (first, first.replace("\\", "/"))] == [False, True]:
        return [cell.replace("\\", "/") for cell in cells]
    return cells


def why_missing(path: str) -> str:
    """Suggests another name for a missing file, or why its cell is not a path; "" if unknown."""
    folder, name = os.path.split(path)
    at = path.find("://")
    if at > 0:
        return "cells are local paths; put the address into `root`, and the rest into the cells"
    if "\\" in path and os.path.isfile(path.replace("\\", "/")):
        return "the file exists with `/` for `\\`; cells are converted only if the first one needs it"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    longer = sorted(other for other in names if other.startswith(f"{name}."))
    if name and longer:
        ending = longer[0][len(name) :]
        return f"{longer[0]!r} exists; use `ending: {ending}`"
    other = next((other for other in names if other.casefold() == name.casefold()), None)
    if other is not None:
        return f"{folder!r} holds {other!r}, which differs in upper and lower case"
    stem = os.path.splitext(name)[0]
    other = next((other for other in sorted(names) if stem and os.path.splitext(other)[0] == stem), None)
    if other is not None:
        return f"{folder!r} holds {other!r}; correct the ending in the column"
    return ""


def where_instead(path: str, root: str) -> str:
    """Finds a missing file below the root, under as much of its path as possible; else ""."""
    relative = path.removeprefix(os.path.join(root, "")).replace("\\", "/")
    parts, folders = [part for part in relative.split("/") if part], [os.path.normpath(folder) for folder in _folders(root)]
    for i in range(len(parts)):
        end = "/".join(parts[i:])
        there = next((folder for folder in folders if os.path.isfile(os.path.join(folder, end))), None)
        if there is not None:
            begin = relative[: len(relative) - len(end)]
            cut = f", without {begin!r} in the cells" if begin else ""
            return f"{end!r} is in {there!r}; use `root: {there}`{cut}"
    return ""


def _folders(root: str) -> Iterator[str]:
    """Yields a folder and those below it, level by level, up to a limit."""
    queue, seen = deque([root]), 1
    while queue:
        folder = queue.popleft()
        yield folder
        try:
            below = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        taken = below[: _MOST - seen]
        seen += len(taken)
        queue.extend(taken)


_VALUE = 4  # bytes of a value in memory: float32


@dataclass(frozen=True, eq=False)
class RasterColumn:
    """The files of a feature, one for each row."""

    files: Location  # the files
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
        cells, place = table.column(side, f"{field}.{i}"), table.at(side, f"{field}.{i}").place
        for row, cell in enumerate(cells):
            if not (cell.isascii() and cell.isdigit() and len(cell) < 10 and int(cell) >= least):
                message = f"{place(row)} holds {cell!r}, but a window needs an integer of {least} or more"
                raise OpError("PG423", message, field=f"{field}.{i}", help="remove such rows, or round them")
            found[row, i] = int(cell)
    return found


class WindowReader(TakingReader):
    """A reader of windows of rasters and of other files, by row number.

    Args:
        columns: The files of each feature.
        place: Describes the place of a row.
    """

    def __init__(self, columns: Mapping[str, RasterColumn], place: Callable[[int], str]) -> None:
        from pipegen.ops.lowering.array_formats import Rasters

        self._columns, self._place = dict(columns), place
        self._stamps = {path: _stamp(path) for column in columns.values() for path in dict.fromkeys(column.files.paths)}
        self._rasters = Rasters()

    def row_sizes(self) -> Ints:
        """Returns the bytes of each row in memory, or on disk for files read whole: int64 `(n,)`."""
        each = [
            column.files.sizes.astype(np.int64) if column.windows is None else column.windows[:, 2:].prod(1) * len(column.bands) * _VALUE
            for column in self._columns.values()
        ]
        return np.sum(each, axis=0, dtype=np.int64)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "windows of GeoTIFF files"

    def take(self, feature: str, *place: Any) -> Any:
        """Returns the bytes of files, and windows as `.npy` files."""
        return byte_strings([self._content(self._columns[feature], row) for row in place[0].tolist()])

    def check(self) -> None:
        for path, seen in self._stamps.items():
            if _stamp(path) != seen:
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

    def _content(self, column: RasterColumn, row: int) -> bytes:
        path = column.files.paths[row]
        if column.windows is None:
            return content_of(path)
        try:
            if _stamp(path) != self._stamps[path]:
                raise OSError("was changed since it was listed; build the pipeline again")
            values = self._rasters.cut(path, self._stamps[path], column.bands, column.windows[row].tolist())
        except Exception as error:  # libraries raise anything for damage
            raise OSError(f"{self._place(row)}: {path} {' '.join(str(error).split())}") from error
        stream = io.BytesIO()
        np.save(stream, values, allow_pickle=False)
        return stream.getvalue()


def _stamp(path: str) -> tuple[int, int]:
    """Returns size and modification time of a file; -1 for a missing one."""
    try:
        return stamp(path)
    except OSError:
        return -1, -1
