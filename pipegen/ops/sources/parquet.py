"""`parquet`: Parquet files whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.parquet import ParquetTable
from pipegen.ops.sources.tables.source import TableSource


class Parquet(ParquetTable, TableSource):
    """Parquet files; each row is an example, as with `csv`. They are read by PyArrow: `pip install 'pipegen[parquet]'`.

    Only the columns that the spec names are read; one inside of a struct is named with a dot, such as `meta.age`. A cell with a
    list holds several labels, where the feature has a `separator`. A picture is the path of a file; or its bytes, by themselves or in the
    field `bytes` of a struct, and is then read a row group at a time.
    """

    op: ClassVar[str] = "parquet"
