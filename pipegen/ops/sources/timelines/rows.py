"""The rows of each series, in order of their time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.timelines.columns import RowColumns, Times, read_times


@dataclass(frozen=True, eq=False)
class SeriesRows:
    """Rows sorted by series, and in each by time.

    Attributes:
        order: The stored number of each row, int64 `(rows,)`; `None` if they are stored so.
        names: The series, in order of their first row.
        lengths: The rows of each, int64 `(series,)`.
        times: The time of each row, sorted; `None` if rows have only their order.
        notes: Findings about the times.
    """

    order: Ints | None
    names: tuple[str, ...]
    lengths: Ints
    times: Times | None
    notes: tuple[Note, ...]

    @property
    def firsts(self) -> Ints:
        """The first row of each series: int64 `(series,)`."""
        return np.cumsum(self.lengths) - self.lengths

    def sorted(self, values: Any) -> Any:
        """Sorts values by row as they are stored."""
        return values if self.order is None else values[self.order]

    def stored(self, row: int) -> int:
        """Returns the stored number of a sorted row."""
        return row if self.order is None else int(self.order[row])


def series_rows(columns: RowColumns, order: str | int | None, group: str | int | None) -> SeriesRows:
    """Sorts rows by series and time. `PG490` for two rows of one series with the same time; `PG423` for a row without one; `PG421` as
    `RowColumns.cells`; `PG402` without rows."""
    if not columns.num_rows:
        raise OpError("PG402", f"{columns.called} has no rows", field="path")
    codes, names = _groups(columns, group)
    times = None if order is None else read_times(columns, order, "order")
    keys = ([] if times is None else [times.values]) + ([] if codes is None else [codes])
    rows = np.lexsort(keys) if keys else None
    if rows is not None and (rows[1:] > rows[:-1]).all():
        rows = None
    if codes is None:
        lengths: Ints = np.array([columns.num_rows], np.int64)
    else:
        lengths = np.bincount(codes, minlength=len(names))
    kept = times if times is None or rows is None else Times(times.values[rows], times.are_dates)
    found = SeriesRows(rows, names, lengths, kept, ())
    notes = () if kept is None else _check_times(columns, found, kept, order)
    return SeriesRows(rows, names, lengths, kept, notes)


def _groups(columns: RowColumns, group: str | int | None) -> tuple[Ints | None, tuple[str, ...]]:
    """Returns the number of each row's series, int64 `(rows,)`, or `None` for a single one, and the names of the series."""
    if columns.series is not None:
        if group is not None:
            message = f"{columns.called} has {count(len(columns.series), 'series', 'series')} of its own, so `group` is not allowed"
            raise OpError("PG421", message, field="group", help="remove `group`")
        return np.repeat(np.arange(len(columns.series)), columns.series), tuple(map(str, range(len(columns.series))))
    if group is None:
        return None, ("series",)
    codes, names = columns.numbered(group, "group")
    if "" in names:
        message = (
            f"{columns.place(int(np.argmax(codes == names.index(''))))} has no value in the column {group!r}, which tells series apart"
        )
        raise OpError("PG421", message, field="group", help="remove such rows, or name their series")
    return codes, names


def _check_times(columns: RowColumns, rows: SeriesRows, times: Times, order: str | int | None) -> tuple[Note, ...]:
    """Raises `PG490` for repeated times; returns a finding about steps of time that differ from the usual one of their series."""
    apart = np.diff(times.values)
    within: Any = np.ones(len(apart), bool)
    within[rows.firsts[1:] - 1] = False  # from a series to the next
    again = np.flatnonzero(within & (apart == 0))
    if len(again):
        first, second = rows.stored(int(again[0])), rows.stored(int(again[0]) + 1)
        more = f", like {count(len(again) - 1, 'other row')}" if len(again) > 1 else ""
        several = len(rows.names) == 1
        message = f"{columns.place(second)} has the time {times.said(times.values[again[0]])} of {columns.place(first)}{more}"
        help_ = "name the column that tells series apart: `group: COLUMN`" if several else "keep one row of each time in a series"
        raise OpError("PG490", message, field="order", help=help_)
    odd, example = 0, -1
    day = 86400 * 10**9
    daily = times.are_dates and not (times.values % day).any()
    firsts = rows.firsts
    # Most series are regular: a step that differs from the first one of its series shows the others.
    differ = within & (apart != np.repeat(apart[np.minimum(firsts, max(len(apart) - 1, 0))], rows.lengths)[:-1]) if len(apart) else within
    some = np.unique(np.searchsorted(firsts, np.flatnonzero(differ), side="right") - 1)
    for first, length in zip(firsts[some].tolist(), rows.lengths[some].tolist(), strict=True):
        steps = apart[first : first + max(length - 1, 0)]
        usual = np.median(steps) if len(steps) else 0
        # Months differ in length, and days of business leave out up to four days in a row.
        most = 4 * day if daily and usual == day else 1.5 * usual
        unlike = np.flatnonzero((steps < 0.5 * usual) | (steps > most))
        if len(unlike):
            odd += len(unlike)
            example = first + int(unlike[0]) if example < 0 else example
    if not odd:
        return ()
    shown = f"{columns.place(rows.stored(example + 1))}, after {times.said(times.values[example])}"
    message = f"the time between rows differs from the usual one of their series at {count(odd, 'row')}, first at {shown}"
    help_ = f"windows count rows, not time: add the missing rows, with empty cells, or remove repeated ones in the column {order!r}"
    return (Note("PG491", message, help_, "order"),)


def same_in_series(values: Sequence[Any] | Any, rows: SeriesRows, columns: RowColumns, name: str, field: str) -> None:
    """Raises `PG421` if sorted values differ within a series."""
    array = np.asarray(values)
    apart = array[1:] != array[:-1]
    apart = apart.reshape(len(apart), -1).any(1) if apart.ndim > 1 else apart
    apart[rows.firsts[1:] - 1] = False
    if apart.any():
        row = int(np.argmax(apart)) + 1
        series = int(np.searchsorted(np.cumsum(rows.lengths), row, side="right"))
        message = (
            f"`{name}` is one value for each series, but changes within {quoted([rows.names[series]])}: {columns.place(rows.stored(row))}"
        )
        raise OpError("PG421", message, field=field, help="`at: last` takes the value at the end of each window")
