"""Columns of records that are no rows of a table: short values that are read once for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.diagnostics.suggest import suggested
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.label_values import label_texts, text_of
from pipegen.ops.sources.listing.base import ADD_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipegen.ops.fields.notes import Note
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.tables.join import Partners


class RecordColumns:
    """The columns of all records of a source, in its order, as text, and those of a table that is joined to them.

    Args:
        called: The name of the source, for messages.
        num_rows: The number of records.
    """

    unit: ClassVar[str] = "records"
    partners: Partners | None = None  # the joined table, once its rows are found by a column of the records

    def __init__(self, called: str, num_rows: int) -> None:
        self.called, self.num_rows = called, num_rows

    def own(self, name: str, field: str) -> tuple[str, ...]:
        """Returns the text of a column for every record, "" for records without it; for errors see `column`."""
        raise NotImplementedError

    def known(self) -> Sequence[str]:
        """Returns the columns of the records, as far as they are known."""
        raise NotImplementedError

    def place(self, row: int) -> str:
        """Describes the place of a record."""
        raise NotImplementedError

    def column(self, wanted: str | int, field: str) -> tuple[str, ...]:
        """Returns the text of a column of the table, else of the records, "" for those without it; `field` is the argument that names it.
        Raises `OpError`: `PG421` for a column that no record has, that holds no text, or that is also one of the table; `PG430` for a file
        that cannot be read."""
        joined = self._joined(wanted, field)
        if joined is None:
            return self.own(str(wanted), field)
        partners, number = joined
        return tuple(map(text_of, partners.cells(number)))

    def cells(self, column: str, rows: Sequence[int]) -> tuple[Sequence[str], Callable[[int], str]]:
        """Returns the texts of a column in `where` for some records, and a function that names the place of one."""
        joined = self._joined(column, "where")
        if joined is not None:
            joined[0].require(rows)
        whole = self.column(column, "where")
        return [whole[row] for row in rows], self.place if joined is None else joined[0].place_in(joined[1])

    def _joined(self, wanted: str | int, field: str) -> tuple[Partners, int] | None:
        """Returns the table and the number of a column of it, `None` for one of the records; `PG421` if both have one of that name."""
        if self.partners is None:
            return None
        right = self.partners.right
        column = right.json_place(wanted)[0]
        if not right.has(column) or right.number(column, field) not in self.partners.shown:
            return None
        if wanted in self.known():
            message = f"both the records and {right.called} have {wanted!r}"
            raise OpError("PG421", message, field=field or None, help="give the column another name")
        return self.partners, right.number(wanted, field)

    def labels(self, wanted: str | int, field: str) -> Sequence[str]:
        """Returns the labels of a column of the table, or of the records, as text."""
        if self.partners is None:
            return self.column(wanted, field)
        return label_texts(self.partners.cells(self.partners.right.number(wanted, field)))

    def notes(self) -> Iterable[Note]:
        return self.partners.notes() if self.partners is not None else ()


class ListedColumns(RecordColumns):
    """What a listing knows of each record.

    Args:
        called: The name of the source, for messages.
        listing: The records.
        names: Its columns: features, `path`, `height` and `width`.
        more: Further columns.
    """

    def __init__(self, called: str, listing: Listing, names: Sequence[str], more: Mapping[str, Sequence[Any]]) -> None:
        super().__init__(called, len(listing.keys))
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

    def place(self, row: int) -> str:
        return f"the record {self._listing.keys[row]!r}"


_SIDES = ("height", "width")
