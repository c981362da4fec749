"""Tables in files: rows of text between separators, among them rows that a stray quote swallowed; JSON lines; and sheets of Excel."""

from __future__ import annotations

import csv
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from pipegen.errors import OpError
from pipegen.ops.fields.labels import WHITESPACE
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.sources.listing.paths import close_names, find_file
from pipegen.ops.sources.tables.table import Table, needed, not_text

_TABS = (".tsv", ".tab")
_MOST_FIELD = 1 << 24
_MARK = "\ufeff"
_SEPARATOR = re.compile(r'"?sep=([^"\n\r])"?\s*\Z')
_DOUBLED = 'close the quote on its line, or replace line breaks by blanks; double quotes within a cell: `"say ""hi"""`'


def read_table(base: str, path: str, *, separator: str | None, header: bool) -> Table:
    """Reads a text table in UTF-8 by the arguments of `CsvTable`; `base` is what a relative path is relative to. Raises `OpError`: `PG401`
    if the file is missing; `PG421` if it is not a text table, or its rows differ in length."""
    file = find_file(base, path)
    lines: list[int] = []
    cells: list[tuple[str, ...]] = []
    spanning: list[int] = []
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            said = _SEPARATOR.match(first)
            separator = separator or (said[1] if said else "\t" if file.lower().endswith(_TABS) else ",")
            begin = ["\n" if said else first] if first else []
            for line, last, row in _rows(_checked(chain(begin, stream), file), separator):
                if row:
                    if last > line:
                        spanning.append(len(cells))
                    lines.append(line)
                    cells.append(tuple(row))
    except UnicodeDecodeError as error:
        raise not_text(file, error) from None
    except (OSError, csv.Error) as error:
        help_ = _DOUBLED if isinstance(error, csv.Error) and lines else None
        after = f" after line {lines[-1]:,}" if help_ else ""
        raise OpError("PG421", f"{file!r} cannot be read as a table{after}: {error}", field="path", help=help_) from None
    width = len(cells[0]) if cells else 0
    odd = next((i for i, row in enumerate(cells) if len(row) != width), None)
    if odd is not None:
        message = f"{file}:{lines[odd]} has {count(len(cells[odd]), 'column')}, but the rows before it have {width}"
        one = separator != WHITESPACE and len(cells[odd]) == 1
        help_ = "set `separator`, such as `;` or `whitespace`" if one else "put cells that contain the separator in double quotes"
        raise OpError("PG421", message, field="path", help=help_)
    notes = _swallowed(file, lines, cells, spanning, separator, header=header)
    return Table.of_rows(file, cells, lines, width, header, notes)


def _checked(stream: Iterable[str], file: str) -> Iterator[str]:
    """Yields lines; raises for zero bytes and byte order marks, which would become parts of cells."""
    for number, line in enumerate(stream, 1):
        if "\0" in line:
            message = f"{file}:{number} holds a zero byte, as if a part of the file was lost"
            raise OpError("PG421", message, field="path", help="copy or write the file again; save it as UTF-8")
        if line[0] == _MARK:
            message = f"{file}:{number} begins with a byte order mark, as if a second file was appended"
            raise OpError("PG421", message, field="path", help="remove the mark, and the header after it")
        yield line


def _swallowed(
    file: str, lines: Sequence[int], cells: Sequence[Sequence[str]], spanning: Sequence[int], separator: str, *, header: bool
) -> tuple[Note, ...]:
    """Reports cells of several lines that hold rows: `PG421` if it is sure, else a note."""
    own = {*spanning, *([0] if header else [])}
    others = [row for i, row in enumerate(cells) if i not in own][:_COMPARED] if spanning else []
    perhaps: list[int] = []
    for place in spanning:
        rows, column = _rows_inside(cells[place], separator)
        sure = _are_rows(rows, column, others) if rows else None
        if sure or (rows and header and place == 0):
            message = f"a cell of {file}:{lines[place]} holds {count(len(rows) - 1, 'more row')}; it begins with a stray quote"
            raise OpError("PG421", message, field="path", help=_DOUBLED)
        if sure is not None:
            perhaps.append(place)
    if not perhaps:
        return ()
    more = f", like {count(len(perhaps) - 1, 'other row')}" if len(perhaps) > 1 else ""
    message = f"a cell of {file}:{lines[perhaps[0]]} spans lines with as many cells each as a row{more}"
    return (Note("PG421", message, _DOUBLED, "path", "warning"),)


def _rows(stream: Iterator[str], separator: str) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Yields rows with their first and last lines; blank lines are empty rows."""
    if separator == WHITESPACE:
        for number, text in enumerate(stream, 1):
            yield number, number, text.split()
        return
    csv.field_size_limit(_MOST_FIELD)
    reader = csv.reader(stream, delimiter=separator, strict=True, skipinitialspace=True)
    line = 1
    for row in reader:
        yield line, reader.line_num, row
        line = reader.line_num + 1


_ENDING = re.compile(r"\.[^\W\d_]\w{0,4}\Z")
_COMPARED = 1000  # rows whose cells are compared


def _rows_inside(row: Sequence[str], separator: str) -> tuple[list[list[str]], int]:
    """Returns the rows in a cell of several lines, if each line has as many cells as the row, and the column of the cell. The first and the
    last one include the other cells of the row."""
    for place, cell in enumerate(row):
        lines = cell.splitlines()
        found = [[part.strip() for part in line.split(separator)] for line in lines]
        if len(lines) > 1:
            found[0], found[-1] = [*row[:place], *found[0]], [*found[-1], *row[place + 1 :]]
            if all(len(inner) == len(row) for inner in found):
                return found, place
    return [], 0


def _are_rows(rows: Sequence[Sequence[str]], place: int, others: Sequence[Sequence[str]]) -> bool | None:
    """Compares possible rows in the cell of a column with other rows of the table: numbers, file names, and repeated texts. `False` if only
    the number of cells agrees, `None` if a line differs."""
    sure = False
    last = len(rows) - 1
    for column, every in enumerate(zip(*rows, strict=True)):
        # The row's own cells before and after the cell prove nothing.
        own = [cell for i, cell in enumerate(every) if (i or column >= place) and (i < last or column <= place)]
        there = [row[column] for row in others] or [every[0]]
        forms, values = set(map(_form, there)), set(there)
        if any(_form(cell) not in forms for cell in own):
            return None
        sure |= any(_form(cell) not in ("text", "nothing") or (cell and cell in values) for cell in own)
    return sure


def _form(cell: str) -> str:
    """Classifies a cell: a number, a file ending, a text, or nothing."""
    cell = cell.strip()
    if not cell:
        return "nothing"
    try:
        float(cell)
    except ValueError:
        ending = _ENDING.search(cell)
        return ending[0].lower() if ending is not None else "text"
    return "number"


def read_json_lines(base: str, path: str) -> Table:
    """Reads JSON lines, except blank ones: a column for each key, with a dot between nested keys. Raises `OpError`: `PG401` if the file is
    missing, `PG421` for a line that is not a JSON object."""
    file = find_file(base, path)
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    names: dict[str, None] = {}
    try:
        with open(file, encoding="utf-8-sig") as stream:
            for number, text in enumerate(stream, 1):
                if not text.isspace():
                    row = _row(text, f"{file}:{number}")
                    names.update(dict.fromkeys(row))
                    rows.append(row)
                    lines.append(number)
    except UnicodeDecodeError as error:
        raise not_text(file, error) from None
    except OSError as error:
        raise OpError("PG421", f"{file!r} cannot be read: {error}", field="path") from None
    cells = [tuple(map(row.get, names)) for row in rows]
    about = repr(file), file, os.path.dirname(file), tuple(names), len(names), len(rows)
    return Table.of(*about, lambda i: (row[i] for row in cells), lambda row: f"{file}:{lines[row]}")


class _TwiceError(ValueError):
    """A repeated key of an object, of which Python's JSON keeps the last."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i])))
    return found


def _row(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        message = f"{place}:{error.colno} is not JSON: {error.msg}"
        raise OpError("PG421", message, field="path", help="each line must hold one complete object") from None
    except _TwiceError as error:
        raise OpError("PG421", f"{place} has two values for the key {error.args[0]!r}", field="path", help="keep one of them") from None
    except (ValueError, RecursionError) as error:  # a number of too many digits, or too deep nesting
        raise OpError("PG421", f"{place} cannot be read as JSON: {error}", field="path") from None
    if not isinstance(value, dict):
        help_ = 'each line must hold one object, such as `{"file": "a.jpg", "label": "cat"}`'
        raise OpError("PG421", f"{place} holds a {type(value).__name__}, not an object", field="path", help=help_)
    row: dict[str, Any] = {}
    for name, cell in _cells(value, ""):
        if name in row:
            raise OpError("PG421", f"{place} has two values for {name!r}: a key with a dot, and a nested one", field="path")
        row[name] = cell
    return row


def _cells(value: dict[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        name = f"{before}{key}"
        if isinstance(inner, dict):
            yield from _cells(inner, f"{name}.")
        else:
            yield name, inner


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
