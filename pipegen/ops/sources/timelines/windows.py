"""The listing of windows: a series is listed as a file of many records, so that no window takes memory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import Attempts, OpError, OpErrors
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column
from pipegen.ops.fields.labels import Values
from pipegen.ops.fields.notes import LeftOut, Note, count, quoted
from pipegen.ops.fields.numbers import first_rounded, read_numbers, rounded
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.kinds.base import LossWeight
from pipegen.ops.sources.features.series import SeriesFeature, Window
from pipegen.ops.sources.listing.base import Listing, Location, Shards, Timeline
from pipegen.ops.sources.timelines.calendar import calendar_of
from pipegen.ops.sources.timelines.columns import RowColumns, TableColumns
from pipegen.ops.sources.timelines.reader import SeriesReader, View
from pipegen.ops.sources.timelines.rows import SeriesRows, same_in_series, series_rows
from pipegen.ops.sources.timelines.source import SeriesSource
from pipegen.types import FeatureType

_MOST = 1 << 24  # windows of a stretch of a series: the row of a record in a shard has 24 bits in its id
_LARGEST = 3.4028234663852886e38  # the largest float32
_HELD = frozenset({"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16"})
"""Dtypes that rows may stay in; they are converted when they are read."""
_AT_ONCE = 1 << 20  # rows looked at together


class _Arrays:
    """The values by row that windows are read from, each held once."""

    def __init__(self, source: SeriesSource, columns: RowColumns, rows: SeriesRows) -> None:
        self.source, self.columns, self.rows = source, columns, rows
        self.held: dict[str, Any] = {}
        self.made: set[str] = set()
        self.widths: dict[str | int, int] = {}  # the channels of each column
        # Columns of a table that some feature reads together are one array, of which others read some channels.
        several = (f.named(name) for name, f in source.features.items() if f.is_series and f.calendar is None and len(f.named(name)) > 1)
        self.together = (*dict.fromkeys(chain.from_iterable(several)),)
        exact = (f.named(name) for name, f in source.features.items() if f.is_series and not f.observed and f.dtype is None)
        self.exact = frozenset(chain.from_iterable(exact))  # columns that float32 may not round

    def numbers(self, name: str | int, field: str) -> Any:
        """Reads a column of numbers, `(rows, channels)`; `PG666` for an integer that float32 would round, unless a spec allows it."""
        values = _two_axes(self.columns.numbers(name, field))
        found = first_rounded(values, _AT_ONCE) if name in self.exact else None
        if found is not None:
            raise rounded(self.columns.place(found[0]), found[1], ".".join(field.split(".")[:2]), exact=False)
        self.widths[name] = values.shape[1]
        return values

    def put(self, key: str, values: Any, *, made: bool = True) -> str:
        """Holds values that are sorted."""
        self.held[key] = values
        self.made |= {key} if made else set()
        return key

    def channels_of(self, names: Sequence[str | int]) -> list[str | int]:
        """Returns the column of each channel of some columns that are held."""
        widths = [self.widths[name] for name in names]
        return [*chain.from_iterable([name] * width for name, width in zip(names, widths, strict=True))]

    def of_columns(self, names: Sequence[str | int], field: str) -> tuple[str, tuple[int, ...] | None]:
        """Returns the array of some columns, and the channels in it; `None` for all."""
        if set(names) <= {*self.together}:
            if "@together" not in self.held:
                each = [self.numbers(name, field) for name in self.together]
                self.put("@together", self.rows.sorted(np.concatenate([_float32(one) for one in each], 1)))
            widths = [self.widths[name] for name in self.together]
            ends = np.cumsum(widths).tolist()
            at = {name: range(end - width, end) for name, end, width in zip(self.together, ends, widths, strict=True)}
            channels = (*chain.from_iterable(at[name] for name in names),)
            return "@together", None if channels == (*range(ends[-1]),) else channels
        (name,) = names
        key = f"column {name!r}"  # a number is another column than its text, and neither is what is made, such as `x@observed`
        if key not in self.held:
            values = self.numbers(name, field)
            table = isinstance(self.columns, TableColumns)
            made = table or values.dtype.name not in _HELD or not values.dtype.isnative
            values = _float32(values) if made else values
            self.put(key, self.rows.sorted(values), made=made or self.rows.order is not None)
        return key, None


def list_windows(source: SeriesSource, columns: RowColumns) -> Listing:
    """Lists the windows of all series.

    Raises:
        OpError: As `series_rows` and `RowColumns`; `PG402` if no series is as long as a window; `PG418` for series of several lengths
            without a `window`; `PG492` for missing values; `PG421` for a value that changes within a series.
    """
    rows = series_rows(columns, source.order, source.group)
    frame = _frame(source, columns, rows)
    counts = np.maximum((rows.lengths - frame.span) // frame.stride + 1, 0)
    notes = [*rows.notes, *_short(columns, rows, counts, frame)]
    arrays, tried = _Arrays(source, columns, rows), Attempts()
    found: dict[str, tuple[View, FeatureType, Column | None] | None] = {}
    for name, feature in source.features.items():
        found[name] = tried.of(_view, arrays, name, feature, frame)
    if tried.errors:
        raise OpErrors(tried.errors)
    views = {name: one[0] for name, one in found.items() if one is not None}
    types = {name: one[1] for name, one in found.items() if one is not None}
    held = {name: one[2] for name, one in found.items() if one is not None and one[2] is not None}
    names, owners, firsts, sizes = _stretches(rows, counts, frame.stride)
    begins = rows.firsts[owners]
    keys = Strings.hold(names)
    window_bytes = sum(t.num_bytes or 1 for t in types.values())
    called = columns.called.strip("'")
    timeline = Timeline(
        firsts,
        begins,
        begins + rows.lengths[owners],
        frame.stride,
        frame.span,
        frame.lead if frame.horizon else 0,
        None if rows.times is None else rows.times.values,
        None if rows.times is None else rows.times.parsed,
        overlap=frame.stride < frame.span,
    )
    group = source.group
    return Listing(
        "",
        Location(
            keys,
            Strings.hold([called if names == ("series",) else f"{called}[{name}]" for name in names]),
            sizes * window_bytes,
            kind="row",
        ),
        (*notes, *(note for column in held.values() for note in column.notes)),
        readers={"": SeriesReader(arrays.held, frozenset(arrays.made), views, firsts, sizes, frame.stride)},
        classes={name: column.classes for name, column in held.items() if column.classes},
        label=source.labelled_by(),
        type=source.record(types),
        shards=Shards(sizes, np.arange(len(names)), Strings.hold([""] * len(names))),
        cells=None if group is None else partial(_cells, group, [rows.names[i] for i in owners.tolist()], sizes),
        timeline=timeline,
    )


def _frame(source: SeriesSource, columns: RowColumns, rows: SeriesRows) -> Window:
    """Returns the rows of a window; `PG418` if series without a `window` differ in length."""
    window = source.window
    if window is not None:
        return window
    low, high = int(rows.lengths.min()), int(rows.lengths.max())
    if low != high:
        message = f"the series of {columns.called} have {low:,} to {high:,} rows, and whole series must have the same length"
        raise OpError("PG418", message, field="window", help=f"cut windows out of them, such as `window: {{length: {low}}}`")
    return Window(length=low, stride=low)


def _short(columns: RowColumns, rows: SeriesRows, counts: Ints, frame: Window) -> Iterator[Note]:
    """Yields a finding about series that are shorter than a window; raises `PG402` if all are."""
    short = np.flatnonzero(counts == 0)
    if not len(short):
        return
    what = f"a window takes {count(frame.span, 'row')}" + (", with its horizon" if frame.horizon else "")
    if len(short) == len(counts):
        longest = int(rows.lengths.max())
        whose = f"the longest of {count(len(counts), 'series', 'series')}" if len(counts) > 1 else columns.called
        message = f"{whose} has {count(longest, 'row')}, and {what}"
        raise OpError("PG402", message, field="window", help="use a shorter window, or add rows")
    names = quoted([rows.names[i] for i in short.tolist()])
    message = f"{count(len(short), 'series is', 'series are')} shorter than a window and left out: {names}; {what}"
    left = LeftOut(len(short), "series that is shorter than a window", "series that are shorter than a window")
    yield Note("PG493", message, "use a shorter window, or add rows", "window", left_out=(left,))


def _stretches(rows: SeriesRows, counts: Ints, stride: int) -> tuple[tuple[str, ...], Ints, Ints, Ints]:
    """Cuts series of too many windows; returns the name of each stretch, the number of its series, the first row of its first window, and
    its windows: int64 `(stretches,)` each. Series without a window have none."""
    names, found = [], []
    for owner, (name, begin, total) in enumerate(zip(rows.names, rows.firsts.tolist(), counts.tolist(), strict=True)):
        for first in range(0, total, _MOST):
            names.append(name if not first else f"{name}+{first}")
            found.append((owner, begin + first * stride, min(total - first, _MOST)))
    owners, firsts, sizes = np.array(found, np.int64).T
    return (*names,), owners, firsts, sizes


def _cells(group: str | int, names: Sequence[str], sizes: Ints, column: str | int, field: str) -> tuple[str, ...]:
    """Returns the series of each window."""
    if str(column) != str(group):
        message = f"windows have no column {column!r}"
        raise OpError("PG421", message, field=field, help=f"their only column is {str(group)!r}, which tells series apart")
    return (*chain.from_iterable([name] * n for name, n in zip(names, sizes.tolist(), strict=True)),)


def _view(arrays: _Arrays, name: str, feature: SeriesFeature, frame: Window) -> tuple[View, FeatureType, Column | None]:
    """Reads the values of a feature by row; returns what its windows take of them, and their type."""
    field = f"features.{name}"
    place = f"{field}.columns" if feature.columns is not None else f"{field}.column" if feature.column is not None else field
    offsets = frame.rows(feature.at or ("past" if feature.is_series else "last"))
    if feature.is_series:
        return _along(arrays, name, feature, offsets, place)
    columns, rows = arrays.columns, arrays.rows
    if feature.is_label:
        own = feature.named(name)[0]
        texts = columns.texts(own, place)
        values: Any = Values.of_texts(feature.chosen.renamed(texts, None))
        listed = (*dict.fromkeys(feature.chosen.renamed(columns.classes.get(str(own), ()), None)),)
        plain = feature.model_copy(update={"map": None} | ({"classes": listed} if listed and feature.classes is None else {}))
        column = _read(feature, name, plain, values, lambda row: f"the label at {columns.place(row)}", field)
    else:
        given = _exact(columns, feature, name, place)
        column = _read(feature, name, feature, given, columns.place, field)
    values = rows.sorted(column.values)
    if feature.at == "series":
        same_in_series(values, rows, columns, name, f"{field}.at")
    key = arrays.put(f"{name}@rows", values)
    if feature.is_along:
        x = arrays.source.type_of(feature).with_(shape=(len(np.atleast_1d(offsets)),), classes=column.type.classes, uniform=False)
        return View(key, offsets, "int64"), x, column
    return View(key, offsets, "int64" if feature.is_label else str(values.dtype)), column.type, column


def _read(feature: SeriesFeature, name: str, plain: SeriesFeature, given: Any, place: Any, field: str) -> Column:
    try:
        return feature.row_kind.read_array(name, plain, given, place)
    except OpError as error:
        raise error.below(field) from None


def _exact(columns: RowColumns, feature: SeriesFeature, name: str, field: str) -> Any:
    """Reads numbers of which none is missing; `(rows,)`, or `(rows, columns)` for several columns."""
    each = []
    weights = feature.own_kind.has(LossWeight)
    for column in feature.named(name):
        if isinstance(columns, TableColumns):
            each.append(read_numbers(columns.texts(column, field), columns.place, field, feature.dtype, weights=weights))
        else:
            each.append(columns.array(column, field))  # type: ignore[attr-defined]  # one of arrays
    if feature.columns is None:
        return each[0]
    # Beside floats, NumPy would make large integers floats, too.
    return np.stack([_as_integers(one) for one in each] if feature.dtype == "int64" else each, -1)


def _as_integers(values: Any) -> Any:
    """Converts floats that are all whole numbers of 64 bits; leaves others."""
    whole = values.dtype.kind == "f" and bool((np.abs(values) < 2.0**63).all()) and bool((values == np.rint(values)).all())
    return values.astype(np.int64) if whole else values


def _along(
    arrays: _Arrays, name: str, feature: SeriesFeature, offsets: tuple[int, ...] | int, field: str
) -> tuple[View, FeatureType, Column | None]:
    """Reads a feature along time. `PG492` for missing values, `PG423` for infinite ones."""
    source, rows = arrays.source, arrays.rows
    channels: tuple[int, ...] | None = None
    lacking: tuple[str, ...] = ()
    if feature.calendar is not None:
        if rows.times is None or not rows.times.are_dates:
            message = f"`{name}` needs dates, but the column `order` holds numbers"
            raise OpError("PG421", message, field=f"{field}.calendar", help="write times such as `2024-05-31 13:00:00`")
        key = arrays.put(f"{name}@calendar", calendar_of(rows.times.values, feature.calendar, cyclic=feature.cyclic))
    else:
        key, channels = arrays.of_columns(feature.named(name), field)
        if feature.observed:
            known = ~np.isnan(arrays.held[key])
            key, channels = arrays.put(f"{name}@observed", (known if channels is None else known[:, channels]).astype(np.uint8)), None
        else:
            lacking = _check_values(arrays, key, channels, name, feature, field)
    width = len(channels) if channels is not None else arrays.held[key].shape[1]
    fill = feature.missing if isinstance(feature.missing, float) and arrays.held[key].dtype.kind == "f" else None
    length = len(np.atleast_1d(offsets))
    x = source.type_of(feature, width).with_(shape=(length, width), uniform=False, missing=lacking if fill is None else ())
    return View(key, offsets, "float32", channels, fill), x, None


def _check_values(
    arrays: _Arrays, key: str, channels: tuple[int, ...] | None, name: str, feature: SeriesFeature, field: str
) -> tuple[str, ...]:
    """Returns the columns that lack values; `PG492` if that is an error, `PG423` for infinite values."""
    values = arrays.held[key]
    if values.dtype.kind != "f":
        return ()
    missing: Ints = np.zeros(values.shape[1] if channels is None else len(channels), np.int64)
    first = -1
    for at in range(0, len(values), _AT_ONCE):
        some = values[at : at + _AT_ONCE]
        some = some if channels is None else some[:, channels]
        large: Any = np.abs(some) > _LARGEST if some.dtype.itemsize > 4 else np.isinf(some)
        if not np.isfinite(some).all() or large.any():
            wild = (np.isinf(some) | large).any(1)
            if wild.any():
                where = arrays.columns.place(arrays.rows.stored(at + int(np.argmax(wild))))
                raise OpError("PG423", f"{where} holds a value of `{name}` that is infinite", field=field, help="correct such rows")
            gone = np.isnan(some)
            first = first if missing.any() else at + int(np.argmax(gone.any(1)))
            missing += gone.sum(0)
    if missing.any() and feature.missing == "error":
        where = arrays.columns.place(arrays.rows.stored(first))
        message = f"`{name}` lacks {count(int(missing.sum()), 'value')}, first in {where}"
        step = "fill_missing" if feature.at in (None, "past") else f"fill_missing: {{feature: {name}}}"  # steps leave others alone
        keep = write("missing: keep", "arguments", f"write {{}}, and `{step}` as the first step")
        zero = write(
            "missing: 0", "arguments", "or {}, beside a feature of the same columns with `observed: true`, which a model sees, too"
        )
        raise OpError("PG492", message, field=field, help=(keep, zero))
    columns = arrays.channels_of(feature.named(name))
    return (*dict.fromkeys(str(column) for column, gone in zip(columns, missing.tolist(), strict=True) if gone),)


def _float32(values: Any) -> Any:
    with np.errstate(all="ignore"):  # overflow becomes infinite, which is reported with its row
        return values.astype(np.float32)


def _two_axes(values: Any) -> Any:
    """Gives a column of single values the axis of its channels."""
    return values[:, None] if values.ndim == 1 else values
