"""`dataframe`: a table in memory, passed to `build(data=)`, whose rows name image files, their labels and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipegen.errors import OpError
from pipegen.ops.sources.listing.base import Listing, always
from pipegen.ops.sources.tables.source import TableSource
from pipegen.ops.sources.tables.table import Table


class DataFrame(TableSource):
    """A table passed to `pipegen.build(spec, data=df)`: a DataFrame of pandas or Polars, an Arrow table, or a map from column names to
    lists. Each row is an example, as with `csv`.

    Image paths are relative to the spec's folder, unless a feature has a `root`. A list holds several labels if the feature has a
    `separator`.
    """

    op: ClassVar[str] = "dataframe"

    needs_data = always(True)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Read the columns and look for the images; see `Source.list`. `PG418` without a table; else as `from_memory` and
        `TableSource.listing`."""
        if data is None:
            message = "`dataframe` needs the table from `pipegen.build(data=)`, and none was passed"
            raise OpError("PG418", message, help="pass it: `pipegen.build(spec, data=df)`")
        return self.listing(from_memory(data, str(base)), base, progress)


def from_memory(data: Any, base: str) -> Table:
    """Wraps a DataFrame of pandas or Polars, an Arrow table, or a map from names to columns.

    Args:
        data: The argument of `build(data=)`.
        base: The folder of the spec, which paths are relative to.

    Raises:
        OpError: `PG418` for anything else, and for columns of different lengths.
    """
    names: list[Any]
    of: Callable[[int], Iterable[Any]]
    if isinstance(data, Mapping):
        names = list(data)
        bare = next((name for name in names if not hasattr(data[name], "__len__") or isinstance(data[name], (str, bytes))), None)
        if bare is not None:
            kind = type(data[bare]).__name__
            raise OpError("PG418", f"the column {bare!r} of `data` is of type {kind}", help="pass a list or an array")
        number = {len(column) for column in data.values()}

        def of(i: int) -> Iterable[Any]:
            return iter(data[names[i]])

    elif hasattr(data, "column_names") and hasattr(data, "column"):
        names, of, number = list(data.column_names), lambda i: data.column(i).to_pylist(), {len(data)}
    elif hasattr(data, "iloc"):
        names, of, number = list(data.columns), lambda i: data.iloc[:, i].tolist(), {len(data)}
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        names, of, number = list(data.columns), lambda i: data[names[i]].to_list(), {len(data)}
    else:
        help_ = "pass a DataFrame, or a map from column names to lists"
        raise OpError("PG418", f"`data` is not a table but a {type(data).__name__}", help=help_)
    if len(number) > 1:
        raise OpError("PG418", f"the columns of `data` differ in length: {', '.join(map(str, sorted(number)))} rows")
    called = "`data`" if isinstance(data, Mapping) else f"the {type(data).__name__}"
    rows = next(iter(number), 0)
    return Table.of(called, "", base, tuple(map(str, names)), len(names), rows, of)
