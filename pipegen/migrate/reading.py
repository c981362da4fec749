"""Reads and parses a script or a notebook; an unreadable file becomes a finding."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import tokenize
import warnings
from dataclasses import field
from typing import Any

from pipegen.frozen import dataclass
from pipegen.migrate.findings import Findings
from pipegen.migrate.texts import plain_text

_MAGIC = re.compile(r"^(\s*)(%|!|\?)")
_HELP = re.compile(r"^(\s*)[\w.]+\?{1,2}\s*$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*)[\w, ]+=\s*(!|%(?=[a-z]))")
_PYTHON_2 = re.compile(
    r"^\s*print\s+[^\s(=.,:\[+\-*/]|^\s*print\s*>>|^\s*except\s+[\w.()]+\s*,\s*\w+\s*:|^\s*raise\s+\w+\s*,|^\s*exec\s+[\"'\w]|\bxrange\s*\(",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook: its number among all cells, from 1, and the line of the joined text before its first."""

    number: int
    before: int
    lines: int


@dataclass
class Code:
    """Python code of one file.

    Attributes:
        file: Its path as the user gave it.
        text: The code, with line feeds as line ends; for a notebook, all code cells, joined.
        tree: The parsed code, or `None` if it could not be parsed.
        cells: The code cells of a notebook; empty for a script.
        raw: The text of the file, with its own line ends and its byte order mark.
        encoding: The encoding of the file.
    """

    file: str
    text: str = ""
    tree: ast.Module | None = None
    cells: list[Cell] = field(default_factory=list)
    notebook: dict[str, Any] | None = None
    raw: str = ""
    encoding: str = "utf-8"
    findings: Findings = field(default_factory=Findings)

    def hidden(self) -> str:
        """Lines of a notebook that are not Python."""
        cells = _cells(self.notebook) or [] if self.cells else []
        lines, plain = [], self.text.split("\n")
        for cell in self.cells:
            original = plain_text(cell_source(cells[cell.number - 1]) or "").split("\n")
            own = plain[cell.before : cell.before + cell.lines]
            lines += [line for line, parsed in zip(original, own, strict=True) if line != parsed]
        return "\n".join(lines)

    def place(self, line: int) -> str:
        """A line number as readers look for it: in a notebook, the cell and its line."""
        if not line:
            return "the file"
        for cell in self.cells:
            if cell.before < line <= cell.before + cell.lines:
                return f"cell {cell.number}, line {line - cell.before}"
        return f"line {line}"


def read_code(file: str) -> Code:
    """Reads and parses a `.py` or `.ipynb` file.

    Raises:
        OSError: If the file cannot be opened.
    """
    with open(file, "rb") as stream:
        data = stream.read()
    return parse_code(file, data)


def parse_code(file: str, data: bytes) -> Code:
    """Parses the content of a `.py` or `.ipynb` file."""
    code = Code(file)
    try:
        if os.path.splitext(file)[1].lower() == ".ipynb":
            _read_notebook(code, data)
        else:
            code.encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0].removesuffix("-sig")
            code.raw = data.decode(code.encoding)
            code.text = plain_text(code.raw.removeprefix("\ufeff"))
            if code.raw.encode(code.encoding) != data:
                raise LookupError(f"it does not round-trip in the encoding {code.encoding}")
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        code.findings.add("PG601", 0, f"the file is not text: {_first_line(error)}", "save it as UTF-8")
        return code
    if code.text or not code.findings.items:
        _parse(code)
    return code


def _parse(code: Code) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code.tree = ast.parse(code.text)
    except SyntaxError as error:
        line = min(error.lineno or 0, len(code.text.splitlines()))
        what = f"{error.msg}"
        if _PYTHON_2.search(code.text):
            help_ = "convert it first, with a tool such as `2to3`, then run `pipegen migrate` again"
            code.findings.add("PG602", line, f"this is Python 2, which cannot be read as Python 3: {what}", help_)
        else:
            code.findings.add("PG602", line, f"invalid Python 3: {what}", "correct the line, then run `pipegen migrate` again")
    except (ValueError, RecursionError, MemoryError) as error:
        code.findings.add("PG601", 0, f"the code cannot be parsed: {_first_line(error) or type(error).__name__}")


def _read_notebook(code: Code, data: bytes) -> None:
    code.raw = data.decode()
    try:
        notebook = json.loads(code.raw.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        code.findings.add("PG603", getattr(error, "lineno", 0), f"the notebook is not valid JSON: {_first_line(error)}")
        return
    cells = _cells(notebook)
    if cells is None:
        code.findings.add("PG603", 0, "the file is JSON, but not a notebook: it has no list of cells")
        return
    code.notebook = notebook
    lines: list[str] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell_source(cell)
        if source is None:
            code.findings.add("PG603", 0, f"cell {number} has no text, and is skipped")
            continue
        own = _plain_python(source)
        lines.append(cell_mark(number))
        code.cells.append(Cell(number, len(lines), len(own)))
        lines += own
    code.text = "\n".join(lines) + "\n"


def _cells(notebook: object) -> list[Any] | None:
    if not isinstance(notebook, dict):
        return None
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list) and notebook["worksheets"]:
        first = notebook["worksheets"][0]  # the format before 2015
        cells = first.get("cells") if isinstance(first, dict) else None
    return cells if isinstance(cells, list) else None


def cell_mark(number: int) -> str:
    """Line before each cell in the joined text."""
    return f"# ⟨cell {number} of the notebook⟩"


def cell_source(cell: dict[str, Any]) -> str | None:
    """Text of a cell, which is stored as a text or as a list of lines."""
    source = cell.get("source", cell.get("input"))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return source if isinstance(source, str) else None


def _plain_python(source: str) -> list[str]:
    """Lines of a cell, with `pass` for each line that is not Python (magics, shell commands, help), so that line numbers stay."""
    lines = plain_text(source).split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("%%") and first.split()[0] not in ("%%time", "%%timeit", "%%capture"):
        return ["pass" for _ in lines]
    plain, going_on = [], False
    for line in lines:
        found = _MAGIC.match(line) or _HELP.match(line) or _ASSIGNED_MAGIC.match(line)
        if going_on or found:
            going_on = line.rstrip().endswith("\\")
            plain.append(f"{found[1] if found else ''}pass")
        else:
            plain.append(line)
    return plain


def _first_line(error: BaseException) -> str:
    return str(error).split("\n")[0]
