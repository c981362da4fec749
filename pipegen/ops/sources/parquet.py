"""`parquet`: a Parquet file whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from pipegen.ops.sources.base import Listing
from pipegen.ops.sources.columnar import read_parquet
from pipegen.ops.sources.table import find_table
from pipegen.ops.sources.table_source import TableSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class Parquet(TableSource):
    """A Parquet file; each row is an example, as with `csv`. It is read by PyArrow: `pip install 'pipegen[parquet]'`.

    Only the columns that the spec names are read. A cell with a list holds several labels, where the feature has a `separator`.
    """

    op: ClassVar[str] = "parquet"

    path: Annotated[str, Field(min_length=1)]
    """The file, relative to the spec's file."""

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Read the file's columns and look for the images; see `Source.list`, and for errors `read_parquet` and `TableSource.listing`."""
        return self.listing(read_parquet(find_table(str(base), self.path)), base, progress)
