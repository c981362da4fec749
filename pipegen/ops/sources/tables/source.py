"""`TableSource`, the base of sources that read a table."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import Attempts, OpError, OpErrors
from pipegen.lazy import np
from pipegen.ops.fields.labels import LIST
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.fields.strings import Ints, Strings, as_sizes
from pipegen.ops.kinds.base import Levels
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import FeatureSource
from pipegen.ops.sources.features.predicate import Where
from pipegen.ops.sources.listing.base import Listing, Location, Missing, always
from pipegen.ops.sources.listing.blocks import BlockReader
from pipegen.ops.sources.listing.paths import find_root
from pipegen.ops.sources.listing.reader import FileReader, Reader
from pipegen.ops.sources.listing.rows import Rows
from pipegen.ops.sources.tables.features import LISTED, TableFeature, unread_formats
from pipegen.ops.sources.tables.file_parts import FilePartReader, column_of, happening_in_pieces
from pipegen.ops.sources.tables.held import has_lists, read_held, read_images, read_listed
from pipegen.ops.sources.tables.readings import Column, Join
from pipegen.ops.sources.tables.selecting import joined_to, kept_rows
from pipegen.ops.sources.tables.table import ListFile, Table

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
    group: Column | None = None
    """A column, for a table with several rows for an example, such as a row for each box: rows with the same value, such as the path of an
    image, are one example. It has the boxes, keypoints or events of all its rows, and the labels of those; in other columns, its rows have
    to agree. Rows that `where` leaves out are in none."""
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
        table = table if self.group is None else table.grouped(self.group, "group")
        tried = Attempts()
        tried.errors += unread_formats(self.features)
        inside = self._inside(table)
        lists = () if inside is not None else self._of_lists(table)
        for name in self.pictures if inside is not None or lists else ():
            if (by := self.features[name].cut_by) is not None:
                message = f"`{name}` is a part of a file in the table itself, which would be read whole for each row"
                tried.errors.append(OpError("PG421", message, field=f"features.{name}.{by}", help="use paths of files"))
        pixels = {name: feature for name, feature in self.features.items() if feature.size is not None}
        if pixels and self.pictures:
            message = f"the cells of `{self.pictures[0]}` are files, but those of `{next(iter(pixels))}` are pixels"
            tried.errors.append(OpError("PG446", message, field=f"features.{self.pictures[0]}", help="store both in the same way"))
        in_files = () if inside is not None or pixels or lists else self.pictures
        found: dict[str, _Listed | None] = {}
        for name in in_files:
            first = found.get(in_files[0])
            found[name] = tried.of(self._files, name, table, base, None if found else progress, first and first[0].keys)
        missing = tuple(group for listed in found.values() if listed is not None for group in listed[2])
        records = tried.of(self._rows, table, inside, bool(pixels or lists)) if not in_files else found[in_files[0]]
        reader: Reader | None = inside
        images = {name: tried.of(read_images, name, feature, table) for name, feature in pixels.items()}
        listed = {name: tried.of(read_listed, name, self.features[name], table) for name in lists}
        images |= {name: own and own[0] for name, own in listed.items()}
        if images and not tried.errors:
            reader = Rows(images, lengths={name: own[1] for name, own in listed.items() if own is not None and own[1] is not None})
        in_parts = any(self.features[name].cut_by is not None for name in in_files)
        if in_parts and records is not None and (cut := tried.of(self._in_parts, table, found)):
            windows = replace(records[0], sizes=cut.row_sizes(), rows=np.arange(table.num_rows), kind="row")
            reader, records, found = cut, (windows, (), ()), {}
        held = read_held(self.features, table, tried)
        for name in in_files if in_parts and not tried.errors else ():
            held |= happening_in_pieces(name, self.features, held, table)
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

    def _of_lists(self, table: Table) -> tuple[str, ...]:
        """Lists the sounds and arrays whose cells are lists of numbers, in a table that is in memory; `PG446` if others are paths."""
        able = [name for name in self.pictures if self.features[name].list_file() is not None]
        found = tuple(
            name for name in able if table.has(column := self.features[name].column_of(name)) and self._is_listed(table, name, column)
        )
        self._require_all(found)
        return found

    def _is_listed(self, table: Table, name: str, column: str | int) -> bool:
        return self.features[name].format == LISTED or has_lists(table.at(column, f"features.{name}.column"))

    def _require_all(self, inside: Collection[str]) -> None:
        """Raises `PG446` if only some of the images and sounds are in the table itself."""
        path = next((name for name in self.pictures if name not in inside), None)
        if inside and path is not None:
            held = next(iter(inside))
            hold = "are lists of numbers" if self.features[held].format == LISTED else "are the bytes of files"
            message = f"the cells of `{path}` are paths, but those of `{held}` {hold}"
            raise OpError("PG446", message, field=f"features.{path}", help="store both in the same way")

    def _inside(self, table: Table) -> BlockReader | None:
        """Returns the reader of images in the table itself; `None` if its cells are paths, `PG446` if it has both."""
        columns = {name: self.features[name].column_of(name) for name in self.pictures}
        inside: dict[str, str | int] = {}
        files: dict[str, ListFile] = {}
        for name, column in columns.items():
            if not table.has(column):
                continue  # which is reported later
            found, file = table.at(column, f"features.{name}.column"), self.features[name].list_file()
            if file is not None and found.holds_lists:
                files[name] = file
            elif not found.holds_bytes or self.features[name].format == LISTED:
                continue
            if found.joined:
                message = f"the images in {column!r} are in the joined table, whose rows are in another order"
                help_ = "make the table with the images the source, and join the other one to it"
                raise OpError("PG446", message, field=f"features.{name}.column", help=help_)
            inside[name] = column
        if not inside:
            return None
        for path in (name for name in columns if name not in inside):
            table.at(columns[path], f"features.{path}.column")  # which may be missing
        self._require_all(inside)
        return table.reader(inside, files)

    def _in_parts(self, table: Table, found: Mapping[str, _Listed | None]) -> FilePartReader:
        """Returns the reader of parts of files, and of other files; all of them exist."""
        tried = Attempts()
        tries = {name: tried.of(column_of, self.features[name], own and own[0], table, f"features.{name}") for name, own in found.items()}
        columns = {name: column for name, column in tries.items() if column is not None}
        if tried.errors:
            raise OpErrors(tried.errors)
        return FilePartReader(columns, table.place)

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
        root = None if feature.root is None else find_root(str(base), feature.root, field=f"{field}.root")
        about = feature.column_of(image), f"{field}.column"
        texts, column = table.whole.column(*about), table.at(*about)
        of_list = next((at for at, row in enumerate(table.kept) if texts[row].startswith(LIST)), None)
        if of_list is not None:
            values, kind = texts[table.kept[of_list]].count(LIST), feature.own_kind
            file = kind.values.file if kind.values is not None else "a file"
            message = f"{column.place(of_list)} holds a list of {count(values, 'value')}, not the path of {file}"
            help_ = "pixels in a list need the `size` of the image" if kind.pixels is not None else "write each to a file of its own"
            help_ = write("format: list", "arguments", "for lists of numbers, write {}") if "shape" in kind.arguments else help_
            raise OpError("PG421", message, field=about[1], help=help_)
        root = root or column.folder
        every = paths_of(texts, root, feature.ending)
        heads = range(len(every)) if table.heads is None else [*dict.fromkeys(table.heads)]
        key_of = dict(zip(heads, row_keys([every[row] for row in heads]), strict=True))
        keys, cells = [key_of[row] for row in table.named()], [every[row] for row in table.kept]
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
        return files, self._repeated(repeated), tuple(lost)

    def _repeated(self, names: Sequence[str]) -> tuple[Note, ...]:
        if not names:
            return ()
        message = f"{count(len(names), 'file')} in several rows, such as {quoted(names[:1])}; each row is an example"
        help_ = "remove the repetitions, or keep the rows of a file together with `splits: {group: {path: '([^#]*)'}}`"
        several = {name: feature for name, feature in self.features.items() if feature.own_kind.ragged}
        of_items = next((name for name, feature in several.items() if not feature.own_kind.guides("points")), None)
        if of_items is not None and self.group is None:
            column = self.features[self.pictures[0]].column_of(self.pictures[0])
            help_ = f"if a file has several rows for its {of_items}, make them one example: `group: {column}`"
        return (Note("PG422", message, help_),)


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
