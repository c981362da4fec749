"""`excel`: a sheet whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.excel import ExcelTable
from pipegen.ops.sources.tables.source import TableSource


class Excel(ExcelTable, TableSource):
    """A sheet of an Excel file, or of another that pandas reads (`.xlsx`, `.ods`, …); each row is an example, as with `csv`.

    pandas and openpyxl read it: `pip install 'pipegen[excel]'`. Of a formula the value counts that was last computed.
    """

    op: ClassVar[str] = "excel"
