"""A sheet of an Excel file as a table."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from typing import Any

from pipegen.errors import OpError
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.sources.listing.paths import close_names, find_file
from pipegen.ops.sources.tables.table import Table, needed

_AS_STORED: dict[str, Any] = {"header": None, "dtype": object, "keep_default_na": False, "na_values": [""]}
_SEEN = 20  # rows of other sheets that are read to see whether they have data
_OR_ELSE = "; or save the sheet as CSV"


def read_sheet(base: str, path: str, wanted: str | int | None, *, header: bool) -> Table:
    """Reads a sheet, by default the first, without its empty rows. Raises `OpError`: `PG401` if the file is missing, `PG421` if it cannot
    be read or lacks the sheet."""
    file = find_file(base, path)
    _check_archive(file)
    with needed("Excel files", "pandas", "excel", _OR_ELSE):
        import pandas as pd
    try:
        with pd.ExcelFile(file) as book:
            sheets = list(map(str, book.sheet_names))
            sheet = _sheet(file, sheets, wanted or 0)
            frame = pd.read_excel(book, sheet_name=sheet, **_AS_STORED)
            others = [] if wanted is not None else [name for name in sheets if name != sheet and _has_rows(book, name)]
            height = _height(book, sheet)
    except OpError:
        raise
    except ImportError as error:
        message = f"pandas needs another library for {file!r}: {error}"
        raise OpError("PG421", message, field="path", help=f"pip install 'pipegen[excel]'{_OR_ELSE}") from None
    except Exception as error:  # libraries raise anything for a damaged file
        raise OpError("PG421", f"{file!r} cannot be read as a sheet: {error}", field="path") from None
    blank = frame.isna().all(axis=1).tolist()
    if any(blank) or height > len(frame):
        _check_formulas(file, sheet)
    before = f", sheet {sheet!r}, row "
    numbers = [number for number, is_blank in enumerate(blank, 1) if not is_blank]
    cells = [row for row, is_blank in zip(frame.itertuples(index=False, name=None), blank, strict=True) if not is_blank]
    return Table.of_rows(file, cells, numbers, frame.shape[1], header, _unread(file, sheet, others), before)


def _sheet(file: str, sheets: list[str], wanted: str | int) -> str:
    if isinstance(wanted, str) and wanted in sheets:
        return wanted
    if isinstance(wanted, int) and wanted < len(sheets):
        return sheets[wanted]
    near = close_names(str(wanted), sheets)
    help_ = f"is {near[0]!r} meant?" if near else f"its sheets are {quoted(sheets)}"
    raise OpError("PG421", f"{file!r} has no sheet {wanted!r}", field="sheet", help=help_)


def _check_archive(file: str) -> None:
    """Raises `PG421` unless a file is one complete ZIP archive: libraries read the last of several."""
    if not zipfile.is_zipfile(file):
        return  # another format, or damage that the library reports
    from pipegen.ops.sources.shards.findings import finding_notes, tallied
    from pipegen.ops.sources.shards.zip_directory import zip_members

    members, damage = zip_members(file, os.path.getsize(file))
    wrong = next((note for note in finding_notes([(file, tallied(members.seen))]) if note.severity == "error"), None)
    if damage or wrong is not None:
        message = f"{file!r} is damaged {damage}" if wrong is None else wrong.message
        raise OpError("PG421", message, field="path", help="copy or save the file again")


def _has_rows(book: Any, sheet: str) -> bool:
    """Tells whether a sheet has a row below its first; reads only its beginning."""
    import pandas as pd

    try:
        return len(pd.read_excel(book, sheet_name=sheet, nrows=_SEEN, **_AS_STORED).dropna(how="all")) > 1
    except (AttributeError, ValueError):  # a sheet with only a chart
        return False


def _height(book: Any, sheet: str) -> int:
    """Returns the number of the last row, including rows without values; 0 if unknown."""
    try:
        return int(book.book[sheet].max_row or 0)
    except (AttributeError, KeyError, TypeError, ValueError):  # another format, or a sheet without it
        return 0


def _check_formulas(file: str, sheet: str) -> None:
    """Raises `PG421` if rows without values have formulas: one that was never computed would look like an empty cell."""
    try:
        import openpyxl

        book = openpyxl.load_workbook(file, read_only=True)
        values = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception:  # another format, which pandas reads with another library
        return
    try:
        for number, (row, held) in enumerate(zip(book[sheet].iter_rows(), values[sheet].iter_rows(), strict=False), 1):
            formula = next((cell for cell in row if cell.data_type == "f"), None)
            if formula is not None and all(cell.value is None for cell in held):
                message = f"{file}, sheet {sheet!r}, row {number} holds formulas that were never computed, such as {formula.value!r}"
                raise OpError("PG421", message, field="path", help="open the file in Excel or LibreOffice and save it, or store values")
    finally:
        book.close()
        values.close()


def _unread(file: str, sheet: str, others: Sequence[str]) -> tuple[Note, ...]:
    """Reports other sheets with rows, if `sheet` is not given."""
    if not others:
        return ()
    message = f"{file!r} has {count(len(others), 'other sheet')} with rows, {quoted(others)}; only the first, {sheet!r}, is read"
    help_ = "name one by `sheet`; to read several, copy their rows into one, or use one source for each"
    return (Note("PG411", message, help_, "path", "warning"),)
