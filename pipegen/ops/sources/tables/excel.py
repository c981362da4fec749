"""Reads a sheet of an Excel file as a table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipegen.errors import OpError
from pipegen.libraries import how_to_install
from pipegen.ops.sources.listing.wording import close_names, quoted
from pipegen.ops.sources.tables.reading import TableReading
from pipegen.ops.sources.tables.table import Table, find_table

if TYPE_CHECKING:
    from pathlib import Path


_OR_ELSE = "; or save the sheet as CSV"


class ExcelTable(TableReading):
    """A sheet of an Excel file."""

    path: Annotated[str, Field(min_length=1)]
    """The file, relative to the spec's file."""
    sheet: Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=0)] = 0
    """The name of the sheet, or its number from 0."""
    header: bool = True
    """Whether the first row names the columns; without it they are numbered from 0."""

    def read(self, base: Path) -> SheetTable:
        """Reads the sheet; rows that are empty all along are left out.

        Raises:
            OpError: `PG401` when there is no such file, `PG421` where it cannot be read or has no such sheet.
        """
        file = find_table(str(base), self.path)
        try:
            import pandas as pd
        except ImportError as error:
            message = f"Excel files are read by pandas, which cannot be imported here: {error}"
            help_ = how_to_install("pandas", "excel", error) + _OR_ELSE
            raise OpError("PG421", message, field="path", help=help_) from None
        try:
            with pd.ExcelFile(file) as book:
                sheets = list(map(str, book.sheet_names))
                sheet = self._sheet(file, sheets)
                frame = pd.read_excel(book, sheet_name=sheet, header=None, dtype=object, keep_default_na=False, na_values=[""])
        except OpError:
            raise
        except ImportError as error:
            message = f"pandas needs another library for {file!r}: {error}"
            raise OpError("PG421", message, field="path", help=f"pip install 'pipegen[excel]'{_OR_ELSE}") from None
        except Exception as error:  # a damaged file makes several libraries raise what they will
            raise OpError("PG421", f"{file!r} cannot be read as a sheet: {error}", field="path") from None
        blank = frame.isna().all(axis=1).tolist()
        rows = [(number, row) for number, row in enumerate(frame.itertuples(index=False, name=None), 1) if not blank[number - 1]]
        names = None
        if self.header and rows:
            names = tuple("" if cell != cell else str(cell).strip() for cell in rows[0][1])
            rows = rows[1:]
        numbers, cells = tuple(number for number, _ in rows), [row for _, row in rows]
        width = frame.shape[1]
        folder = os.path.dirname(file)
        return SheetTable(repr(file), file, folder, names, width, len(cells), lambda i: (row[i] for row in cells), sheet, numbers)

    def _sheet(self, file: str, sheets: list[str]) -> str:
        if isinstance(self.sheet, str) and self.sheet in sheets:
            return self.sheet
        if isinstance(self.sheet, int) and self.sheet < len(sheets):
            return sheets[self.sheet]
        near = close_names(str(self.sheet), sheets)
        help_ = f"is {near[0]!r} meant?" if near else f"its sheets are {quoted(sheets)}"
        raise OpError("PG421", f"{file!r} has no sheet {self.sheet!r}", field="sheet", help=help_)


@dataclass(frozen=True)
class SheetTable(Table):
    """A table in a sheet.

    Attributes:
        sheet: The sheet.
        numbers: The number of each row as Excel shows it, from 1.
    """

    sheet: str
    numbers: tuple[int, ...]

    def place(self, row: int) -> str:
        """Says the file, the sheet and the row as Excel shows it."""
        return f"{self.file}, sheet {self.sheet!r}, row {self.numbers[row]}"
