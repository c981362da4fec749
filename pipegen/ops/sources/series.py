"""`series`: windows of time series, in tables and in arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, model_validator

from pipegen.ops.model import Model
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.tables.readings import AnyTable, TableReading
from pipegen.ops.sources.timelines.source import SeriesSource

if TYPE_CHECKING:
    from pipegen.ops.sources.timelines.columns import RowColumns


class ArrayFile(Model):
    """A file of arrays."""

    path: Annotated[str, Field(min_length=1)]
    """The file, relative to the spec's file."""


_TABLES = (*AnyTable.model_fields,)
_ARRAYS = ("npz", "npy", "hdf5", "ts")


class Series(AnyTable, SeriesSource):
    """Windows of time series: consecutive rows of a table or of arrays, with the rows after them to be predicted.

    The rows are those of one of `csv`, `parquet`, `jsonl`, `excel`, `sql`, `npz`, `npy`, `hdf5` and `ts`, or of `build(data=)`: a
    DataFrame, or arrays by name. An array has a row for each time, `(rows,)` or `(rows, channels)`; or holds series of one length,
    `(series, rows, channels)`. Values stay in one array, in memory or in their file, and a window is a place in it: any number of windows
    takes no more memory. No window reaches from one series into another.

    A window is named by its series and its number in it, from 0, such as `meter_7#120`. Rows can be appended to a series, and series added,
    without a change to the ids and the draws of other windows.
    """

    op: ClassVar[str] = "series"
    later: ClassVar[frozenset[str]] = frozenset({*_TABLES, *_ARRAYS})

    npz: ArrayFile | None = None
    """Arrays in a `.npz` file: `{path: energy.npz}`."""
    npy: ArrayFile | None = None
    """One array in a `.npy` file, mapped into memory: `{path: load.npy}`."""
    hdf5: ArrayFile | None = None
    """Datasets of an HDF5 file, by their paths in it: `{path: energy.h5}`. Those without compression are mapped into memory."""
    ts: ArrayFile | None = None
    """A file of the UCR and UEA archives: `{path: GunPoint_TRAIN.ts}`. Its arrays are `values` `(rows, dimensions)` and, for each series,
    `label`."""

    @model_validator(mode="after")
    def _one_place(self) -> Series:
        given = [name for name in (*_TABLES, *_ARRAYS) if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"`{given[0]}` and `{given[1]}` both say where the rows are; leave one of them out")
        return self

    @property
    def reading(self) -> str | None:
        """The argument that says where the rows are; `None` for those of `build(data=)`."""
        return next((name for name in (*_TABLES, *_ARRAYS) if getattr(self, name) is not None), None)

    def needs_data(self) -> bool:
        return self.reading is None

    def has_single_columns(self) -> bool:
        return self.reading in _TABLES

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Reads the rows, and lists the windows of each series; see `Source.list`. For errors see `list_windows`."""
        from pipegen.ops.sources.timelines.windows import list_windows

        return list_windows(self, self._columns(base, data))

    def _columns(self, base: Path, data: object) -> RowColumns:
        """Opens the rows; `PG418` if `build(data=)` was given none."""
        from pipegen.ops.sources.timelines.columns import TableColumns
        from pipegen.ops.sources.timelines.reading import columns_in_memory, read_arrays_of

        name = self.reading
        if name is None:
            return columns_in_memory(data, str(base), self._wanted())
        reading: Any = getattr(self, name)
        if isinstance(reading, TableReading):
            return TableColumns(reading.read(base))
        return read_arrays_of(name, str(base), reading.path, self._wanted())

    def _wanted(self) -> Sequence[str | int]:
        """Lists the columns that are read."""
        own = [column for name, feature in self.features.items() if feature.calendar is None for column in feature.named(name)]
        return (*own, *(column for column in (self.order, self.group) if column is not None))
