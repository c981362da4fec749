"""Records chosen by their columns, and joined to a table: rows of another table, or records that have columns of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import model_validator

from pipegen.diagnostics.suggest import suggested
from pipegen.errors import Attempts, OpError, OpErrors, PartError
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.labels import label_texts, text_of
from pipegen.ops.fields.notes import LeftOut, Note, quoted
from pipegen.ops.kinds.base import ExampleClass, Levels, Numbers, having, single_values
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import aligned_images, lacking
from pipegen.ops.sources.features.items import item_numbers
from pipegen.ops.sources.features.predicate import Where, parse_predicate
from pipegen.ops.sources.listing.base import ADD_COLUMNS, Listing, Source
from pipegen.ops.sources.tables.features import InTable, JoinedFeature
from pipegen.ops.sources.tables.held import computed, read_held
from pipegen.ops.sources.tables.readings import Join
from pipegen.ops.sources.tables.table import NO_ROW, SEVERAL_ROWS, Columns, Partners, Table, TableColumn
from pipegen.types import ElementType


class SelectingSource(Source):
    """A source whose records are no rows of a table, but have columns: their path, and features of one class or number."""

    later: ClassVar[frozenset[str]] = frozenset({"where", "join", "features"})
    attributes: ClassVar[tuple[str, ...]] = ("path",)
    """Columns of the records that are none of their features: `path`; `height` and `width` in pixels according to annotations."""

    where: Where | None = None
    """Records that are examples: a comparison of their columns, such as `label in ['cat', 'dog'] and age >= 2`, with `and`, `or`, `not`,
    brackets and `in`. Columns are the records' own features of one class or one number, those of a joined table under their names there,
    the `path` that identifies a record, and, of images with boxes, `height` and `width` by the annotations; for `coco` also the other
    numbers and texts of `images`, and `image_id`. Put texts in quotes, and column names that are not plain words in backticks. Records keep
    the ids that they have without it."""
    join: Join | None = None
    """A table whose columns are added to the records with the same key, for `where`, splits, sampling, tests, and `features` of images in
    files: `{table: {csv: {path: patients.csv}}, on: {path: file}}`."""

    @model_validator(mode="after")
    def _of_a_table(self) -> SelectingSource:
        first = next((name for name, feature in self.joined.items() if feature.value is None), None)
        if first is not None and self.join is None:
            help_ = "such as `join: {table: {csv: {path: FILE}}, on: {path: COLUMN}}`"
            raise PartError(f"`{first}` is in a joined table, which needs a `join`", "features", first, help=help_)
        return self

    @property
    def joined(self) -> Mapping[str, InTable]:
        """The features in columns of the joined table."""
        return {}

    def with_joined(self, own: ElementType) -> ElementType:
        """Adds the features of the joined table to those that records have without it. Raises `PartError` for a name that is taken, and as
        `aligned_images`."""
        taken = next((name for name in self.joined if name in own), None)
        if taken is not None:
            raise PartError(f"`{taken}` is already a feature of `{self.op}`", taken, help="rename the feature of the joined table")
        images: dict[str, Any] = {name: own[name] for name in having(own, Levels)}
        of = aligned_images({**images, **self.joined}) if self.joined else {}
        return own.replace(**{name: feature.type().with_(of=of.get(name)) for name, feature in self.joined.items()})

    def column_names(self) -> tuple[str, ...] | None:
        return None if self.join is not None else self._own_columns()

    def _own_columns(self) -> tuple[str, ...]:
        """Returns the `attributes`, and the features that are one class or one number of a record."""
        type_ = self.infer()
        single = (n for n in single_values(type_, ExampleClass, Numbers) if len(type_[n].shape) <= 1 and n not in self.joined)
        return tuple(dict.fromkeys((*self.attributes, *single)))

    def selected(self, listing: Listing, base: Path, more: Mapping[str, Sequence[Any]] | None = None) -> Listing:
        """Keeps the records that `where` and `join` choose, and adds the columns, and features of the joined table.

        Args:
            listing: The records; without any after an error.
            base: What relative paths are relative to.
            more: Further columns, a value for each record; `None` for one without it.

        Raises:
            OpErrors: As `RecordColumns.choose`.
        """
        if not len(listing.keys):
            return listing
        columns = ListedColumns(f"`{self.op}`", listing, self._own_columns(), more or {})
        listing = replace(listing, cells=columns.column)
        rows, notes, held = columns.choose(self.where, self.join, self.joined, base)
        kept = listing if len(rows) == columns.num_rows else listing.take(np.fromiter(rows, np.int64, len(rows)))
        kept = replace(kept, notes=(*kept.notes, *notes))
        marks: dict[str, Any] = {name: feature for name, feature in getattr(self, "features", {}).items() if feature.home in held}
        if not held:
            return kept
        label = self.labelled_by() or kept.label
        kept = replace(kept, label=label, in_table=kept.in_table or label in held)
        return kept.with_columns(held | item_numbers(marks, held), self.infer())


class JoiningSource(SelectingSource):
    """A source of images whose further features are columns of a joined table."""

    features: dict[FeatureName, JoinedFeature] = {}
    """Further features of each image, in columns of the joined table: `{age: {kind: tensor}, breed: {kind: label, column: name}}`."""

    @model_validator(mode="after")
    def _beside_its_own(self) -> JoiningSource:
        try:
            if self.features:
                self.infer()
        except PartError as error:
            raise PartError(str(error), "features", *error.path, help=error.help) from None
        except ValueError:  # another argument is wrong, which has a check of its own
            pass
        return self

    def lacks(self, split: str) -> frozenset[str]:
        return lacking(self.features, split)

    @property
    def joined(self) -> Mapping[str, JoinedFeature]:
        return self.features


class RecordColumns(Columns):
    """The columns of all records of a source, in its order, and those of a table that is joined to them.

    Args:
        called: The name of the source, for messages.
        num_rows: The number of records.
        place: Describes the place of a record.
    """

    unit: ClassVar[str] = "records"

    def __init__(self, called: str, num_rows: int, place: Place) -> None:
        self.called, self.num_rows, self.place = called, num_rows, place

    def own(self, name: str, field: str) -> tuple[str, ...]:
        """Returns the text of a column for every record, "" for records without it; for errors see `column`."""
        raise NotImplementedError

    def known(self) -> Sequence[str]:
        """Returns the columns of the records, as far as they are known."""
        raise NotImplementedError

    def choose(
        self, where: str | None, join: Join | None, joined: Mapping[str, InTable], base: Path
    ) -> tuple[Sequence[int], tuple[Note, ...], dict[str, Column]]:
        """Joins a table by a column of the records, and chooses records; for errors see `partners_of`, `kept_rows` and `read_held`.

        Args:
            where: The predicate.
            join: The joined table.
            joined: The features in columns of it, and those computed from these and the records' own columns.
            base: What relative paths are relative to.

        Returns:
            The chosen records, rising; findings; and the columns of `joined`, with a row for each of these records.
        """
        if join is not None:
            self.partners = partners_of(join, self, base)
        elif where is None and not joined:
            return range(self.num_rows), (), {}
        rows, notes = kept_rows(self, where, joined)
        tried = Attempts()
        stored = {name: feature for name, feature in joined.items() if feature.value is None}
        held = read_held(stored, self.partners.beside.only(rows), tried) if self.partners is not None and stored else {}
        made = {name: tried.of(computed, self, name, feature, rows) for name, feature in joined.items() if name not in stored}
        if tried.errors:
            raise OpErrors(dict.fromkeys(tried.errors))
        return rows, notes, {**held, **{name: column for name, column in made.items() if column is not None}}

    def at(self, wanted: str | int, field: str) -> TableColumn | None:
        """Returns a column of the table, `None` for one of the records; `PG421` if both have one of that name."""
        if self.partners is None:
            return None
        table = self.partners.beside
        name, _ = table.json_place(wanted)
        if not table.has(name) or table.number(name, field) not in self.partners.shown:
            return None
        if wanted in self.known():
            message = f"both the records and {table.called} have {wanted!r}"
            raise OpError("PG421", message, field=field or None, help="give the column another name")
        return table.at(wanted, field)

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """Returns the text of a column of the table, else of the records, "" for those without it. Raises `OpError`: `PG421` also for a
        column that no record has, or that holds no text; `PG430` for a file that cannot be read."""
        found = self.at(wanted, field)
        return self.own(str(wanted), field) if found is None else tuple(map(text_of, found.read()))

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        if self.partners is None:
            return self.column(wanted, field)
        return label_texts(self.partners.beside.at(wanted, field).read())


class ListedColumns(RecordColumns):
    """What a listing knows of each record.

    Args:
        called: The name of the source, for messages.
        listing: The records.
        names: Its columns: features, `path`, `height` and `width`.
        more: Further columns.
    """

    def __init__(self, called: str, listing: Listing, names: Sequence[str], more: Mapping[str, Sequence[Any]]) -> None:
        super().__init__(called, len(listing.keys), lambda row: f"the record {listing.keys[row]!r}")
        self._listing, self._names, self._more = listing, names, more

    def own(self, name: str, field: str) -> tuple[str, ...]:
        values = self._more.get(name) if name not in self._names else self._values(name)
        if values is not None:
            return tuple(map(text_of, values))
        joined = () if self.partners is None else self.partners.right.names or ()
        help_ = suggested(name, dict.fromkeys((*self.known(), *joined)))
        message = f"the records of {self.called} have no column {name!r}"
        raise OpError("PG421", message, field=field or None, help=(help_, ADD_COLUMNS) if self.partners is None else help_)

    def _values(self, name: str) -> Sequence[Any] | None:
        """Returns the values of a feature or attribute; `None` if a record has several, or the listing does not know them."""
        listing, values = self._listing, self._listing.columns.get(name)
        if values is not None:
            if np.size(values) != self.num_rows:
                return None
            classes = listing.classes.get(name)
            numbers: list[Any] = np.reshape(values, -1).tolist()
            return numbers if classes is None else [classes[i] for i in numbers]
        if name == "path":
            return listing.keys
        if listing.sides is None or name not in _SIDES:
            return None
        sides = listing.sides[:, _SIDES.index(name)].tolist()
        return [None if side != side else int(side) if side == int(side) else side for side in sides]

    def known(self) -> Sequence[str]:
        return (*self._names, *self._more)


_SIDES = ("height", "width")


def partners_of(join: Join, first: Columns, base: Path) -> Partners:
    """Reads the second table and looks up the key of each record in it. Raises `OpError` as the source of the second table; `PG421` for a
    missing column."""
    at = f"join.table.{join.table.name}"
    try:
        right: Table = getattr(join.table, join.table.name).read(base)
    except OpError as error:
        raise OpErrors(e.below(at) for e in error.every) from None
    other = join.on[join.own] if isinstance(join.on, dict) else join.on
    rows_of: dict[str, int] = {}
    twice: dict[str, int] = {}
    for row, key in enumerate(right.column(other, "join.on")):
        if rows_of.setdefault(key, row) != row:
            twice.setdefault(key, row)
    keys = first.column(join.own, "join.on")
    partner = [SEVERAL_ROWS if key in twice else rows_of.get(key, NO_ROW) if key else NO_ROW for key in keys]
    columns = [replace(column.take(partner, first.place), joined=True) for column in right.columns]
    beside = replace(right, columns=columns, num_rows=len(partner), place=first.place)
    shown = tuple(i for i in range(right.width) if right.json_place(other)[1] or i != right.number(other, "join.on"))
    notes = tuple(replace(note, field=f"{at}.{note.field}" if note.field else at) for note in right.notes)
    return Partners(right, other, beside, shown, keys, partner, twice, join.missing == "drop", notes)


def joined_to(join: Join, left: Table, base: Path) -> Table:
    """Joins the second table to one, whose rows get its columns; for errors see `partners_of`."""
    partners = partners_of(join, left, base)
    right, names = partners.beside, None
    if left.names is not None or right.names is not None:
        names = (*(left.names or ("",) * left.width), *(right.names[i] if right.names is not None else "" for i in partners.shown))
    columns = [*left.columns, *(right.columns[i] for i in partners.shown)]
    return replace(left, names=names, columns=columns, partners=partners)


def kept_rows(table: Columns, where: str | None, features: Mapping[str, InTable]) -> tuple[Sequence[int], tuple[Note, ...]]:
    """Leaves out rows that a join drops, rows that `where` excludes, and rows of ignored classes.

    Args:
        table: The rows, joined if there is a join.
        where: The predicate.
        features: The features in columns.

    Returns:
        The remaining rows, rising, and findings.

    Raises:
        OpErrors: `PG402` if no row is left, `PG421` for unknown columns, `PG450` for keys with no or several partners, `PG452` for cells
            that cannot be compared.
    """
    rows: Sequence[int] = range(table.num_rows)
    partners = table.partners
    notes = [*table.notes, *(partners.notes if partners is not None else ())]
    if partners is not None and partners.drops:
        rows = [row for row, partner in enumerate(partners.partner) if partner != NO_ROW]
        if len(rows) < table.num_rows:
            one, several = (f"{what} whose key the joined table lacks" for what in (table.unit.removesuffix("s"), table.unit))
            gone = LeftOut(table.num_rows - len(rows), one, several)
            told = f"{gone.number} {one.split()[0] if gone.number == 1 else table.unit} of {table.num_rows:,} left out"
            notes.append(Note("PG411", f"{told}: {partners.right.called} lacks the key", field="join.missing", left_out=(gone,)))
        rows = some(rows, table, "join.on", "has a key of the joined table")
    if where is not None:
        rows = matching(table, where, rows)
    for name, feature in features.items():
        if feature.chosen:  # of a label
            field = f"features.{name}"
            cells = table.labels(feature.column_of(name), f"{field}.column")
            notes += replace(feature.chosen, unlabelled=()).notes(cells, feature.separator, field)  # these are reported when read
            renamed = feature.chosen.renamed([cells[row] for row in rows], feature.separator)
            stays = feature.chosen.without_ignored(renamed, feature.separator)
            rows = some([rows[i] for i in stays], table, f"{field}.ignore", "has a class that `ignore` keeps")
    if partners is not None:
        partners.require(rows)
    return rows, tuple(notes)


def matching(table: Columns, where: str, rows: Sequence[int]) -> Sequence[int]:
    """Returns the rows that a predicate selects. Raises `OpErrors`: `PG402` if no row is left, `PG421` for unknown columns, `PG452` for
    cells that cannot be compared."""
    predicate = parse_predicate(where)
    unknown = Attempts()
    for column in predicate.columns:
        unknown.of(table.cells, column, ())
    if unknown.errors:
        raise OpErrors(dict.fromkeys(unknown.errors), table.column)
    try:
        kept = predicate.select(table.cells, rows)
    except OpError as error:
        raise OpErrors([error], table.column) from None
    names = dict.fromkeys(predicate.columns)
    held = (f"the column `{name}` holds {quoted(sorted(set(table.cells(name, rows)[0])))}" for name in names)
    return some(kept, table, "where", "matches `where`", held)


def some(rows: Sequence[int], table: Columns, field: str, what: str, help_: Iterable[str] = ()) -> Sequence[int]:
    """Returns the rows; `PG402` if there are none."""
    if not rows:
        message = f"none of the {table.num_rows:,} {table.unit} of {table.called} {what}"
        raise OpErrors([OpError("PG402", message, field=field, help=tuple(help_))], table.column)
    return rows
