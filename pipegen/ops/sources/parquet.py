"""`parquet`: Parquet files whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.readings import ParquetTable
from pipegen.ops.sources.tables.source import TableSource


class Parquet(ParquetTable, TableSource):
    """Parquet files; each row is an example, as with `csv`. Needs PyArrow: `pip install 'pipegen[parquet]'`.

    Only the columns that the spec names are read. A dot names a field of a struct: `meta.age`. A list holds several labels if the feature
    has a `separator`. An image is the path of a file, or its bytes: a binary column, or the field `bytes` of a struct. Bytes are read one
    row group at a time.
    """

    op: ClassVar[str] = "parquet"
