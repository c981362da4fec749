"""`excel`: spreadsheets whose rows name image files, their labels and numbers."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.sources.tables.readings import ExcelTable
from pipegen.ops.sources.tables.source import TableSource


class Excel(ExcelTable, TableSource):
    """A sheet of an Excel file or of another spreadsheet that pandas reads (`.xlsx`, `.ods`, …). Each row is an example, as with `csv`.

    Needs pandas and openpyxl: `pip install 'pipegen[excel]'`. A formula has the value that was computed last.
    """

    op: ClassVar[str] = "excel"
