"""`dataframe`: a table in memory, passed to `build(data=)`, whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.errors import OpError
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.tables.columnar import from_memory
from pipegen.ops.sources.tables.source import TableSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class DataFrame(TableSource):
    """A table passed to `pipegen.build(spec, data=df)`: a DataFrame of pandas or Polars, an Arrow table, or a map from column names to
    lists. Each row is an example, as with `csv`.

    Image paths are relative to the spec's folder, unless a feature has a `root`. A list holds several labels if the feature has a
    `separator`.
    """

    op: ClassVar[str] = "dataframe"

    def needs_data(self) -> bool:
        return True

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Read the columns and look for the images; see `Source.list`. `PG418` without a table; else as `from_memory` and
        `TableSource.listing`."""
        if data is None:
            message = "`dataframe` needs the table from `pipegen.build(data=)`, and none was passed"
            raise OpError("PG418", message, help="pass it: `pipegen.build(spec, data=df)`")
        return self.listing(from_memory(data, str(base)), base, progress)
