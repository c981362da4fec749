"""Reads and parses scripts and notebooks; an unreadable file becomes a finding. Changed code gets back its line ends and its cells."""

from __future__ import annotations

import ast
import difflib
import io
import json
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from pipegen.frozen import dataclass
from pipegen.migrate.findings import Findings

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
    source: str  # as it is stored
    lines: list[str]  # as they are parsed, with `pass` for those that are not Python


@dataclass
class Code:
    """Python code of one file."""

    file: str  # its path as the user gave it
    text: str = ""  # the code, with line feeds as line ends; for a notebook, all code cells, joined
    tree: ast.Module | None = None  # the parsed code, or `None` if it could not be parsed
    cells: list[Cell] = field(default_factory=list)  # the code cells of a notebook; empty for a script
    raw: str = ""  # the text of the file, with its own line ends and its byte order mark
    encoding: str = "utf-8"  # the encoding of the file
    findings: Findings = field(default_factory=Findings)

    def hidden(self) -> str:
        """Lines of a notebook that are not Python."""
        pairs = (pair for cell in self.cells for pair in zip(plain_text(cell.source).split("\n"), cell.lines, strict=True))
        return "\n".join(line for line, parsed in pairs if line != parsed)

    def place(self, line: int) -> str:
        """A line number as readers look for it: in a notebook, the cell and its line."""
        if not line:
            return "the file"
        for cell in self.cells:
            if cell.before < line <= cell.before + len(cell.lines):
                return f"cell {cell.number}, line {line - cell.before}"
        return f"line {line}"


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
        problem, how = "invalid Python 3", "correct the line"
        if _PYTHON_2.search(code.text):
            problem, how = "this is Python 2, which cannot be read as Python 3", "convert it first, with a tool such as `2to3`"
        line = min(error.lineno or 0, len(code.text.splitlines()))
        code.findings.add("PG602", line, f"{problem}: {error.msg}", f"{how}, then run `pipegen migrate` again")
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
    lines: list[str] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = _cell_source(cell)
        if source is None:
            code.findings.add("PG603", 0, f"cell {number} has no text, and is skipped")
            continue
        own = _plain_python(source)
        lines.append(cell_mark(number))
        code.cells.append(Cell(number, len(lines), source, own))
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


def _cell_source(cell: dict[str, Any]) -> str | None:
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


_END = re.compile(r"\r\n|\r|\n")  # line ends in Python; a form feed, U+2028 and similar are ordinary characters


def plain_text(text: str) -> str:
    """Text with line feeds as its only line ends, as Python reads a source file."""
    return _END.sub("\n", text)


def lines_of(text: str) -> list[str]:
    """Splits a text only after line feeds."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def restored(original: str, own: list[str], changed: list[str]) -> str:
    """Joins changed lines with the line ends of the original.

    Args:
        original: The text as it is stored.
        own: Its lines as parsed; unchanged lines become the original's again.
        changed: The lines after the edits.
    """
    contents, ends = _END.split(original), [*_END.findall(original), ""]
    found: list[tuple[str, str]] = []
    for i, (new, here) in enumerate(_aligned(own, changed)):
        kept = [contents[i]] if here == [own[i]] else here
        found += [(line, ends[i]) for line in (*new, *kept)]
    usual = ends[0] or "\n"
    texts = [line for line, _ in found[-1:]]
    for line, end in reversed(found[:-1]):
        own_end = end or usual
        texts.append(line + ("\n" if own_end == "\r" and texts[-1].startswith("\n") else own_end))  # else both were one line end
    return "".join(reversed(texts))


def unified(before: str, after: str, old: str, new: str) -> str:
    """Unified diff, for any line ends; empty for equal texts."""
    lines = list(difflib.unified_diff(lines_of(before), lines_of(after), old, new))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def patch_name(name: str) -> str:
    """A file's name for `patch` and `git apply`: quoted as in C if needed, and followed by a tab if it has a space."""
    if re.search(r'["\\\x00-\x1f\x7f]', name):
        return '"' + re.sub(r'["\\\x00-\x1f\x7f]', lambda found: f"\\{ord(found[0]):03o}", name) + '"'
    return f"{name}\t" if " " in name else name


def _aligned(before: list[str], after: list[str]) -> list[tuple[list[str], list[str]]]:
    """For each old line: new lines before it, and new lines in its place."""
    inserted: list[list[str]] = [[] for _ in range(len(before) + 1)]
    places: list[list[str]] = [[] for _ in before]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            for i in range(b - a):
                places[a + i] = [after[c + i]]
        elif tag == "insert":
            inserted[a] = list(after[c:d])
        else:
            places[a] = list(after[c:d])
    places[-1] += inserted[-1]
    return list(zip(inserted[:-1], places, strict=True))


_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
Span = tuple[int, int]


def with_sources(raw: str, sources: dict[int, str]) -> str:
    """Notebook file with other texts for some of its cells.

    Args:
        raw: The file, which is valid JSON with a list of cells.
        sources: The new texts by the number of the cell among all cells, from 1.
    """
    notebook = _members(raw, (1 if raw.startswith("\ufeff") else 0, len(raw)))
    if "cells" not in notebook:
        notebook = _members(raw, _items(raw, notebook["worksheets"])[0])
    cells = _items(raw, notebook["cells"])
    done, at = [], 0
    for number in sorted(sources):
        members = _members(raw, cells[number - 1])
        first, last = members["source"] if "source" in members else members["input"]
        done += [raw[at:first], _stored(raw, (first, last), sources[number])]
        at = last
    return "".join([*done, raw[at:]])


def _stored(raw: str, span: Span, text: str) -> str:
    """A cell's text in the format of the one that it replaces: as a list of lines or one text, with its spaces and escapes."""
    old = raw[slice(*span)]
    if not old.startswith("["):
        return _written(raw, text)
    items = _items(raw, span)
    known = {json.loads(raw[a:b]): raw[a:b] for a, b in items}
    stored = [json.loads(raw[a:b]) for a, b in items]
    lines = text.splitlines(keepends=True) if stored == "".join(stored).splitlines(keepends=True) else lines_of(text)
    opening, closing = raw[span[0] : items[0][0]], raw[items[-1][1] : span[1]]
    between = raw[items[0][1] : items[1][0]] if len(items) > 1 else f",{opening[1:]}"
    return opening + between.join(known.get(line) or _written(raw, line) for line in lines) + closing if lines else "[]"


def _written(raw: str, text: str) -> str:
    """A text as JSON, with characters outside ASCII escaped if the file has none."""
    return json.dumps(text, ensure_ascii=raw.isascii() or any("\ud800" <= c <= "\udfff" for c in text))


def _items(raw: str, span: Span) -> list[Span]:
    return [value for _, value in _values(raw, span[0], keys=False)]


def _members(raw: str, span: Span) -> dict[str, Span]:
    """Places of the values of an object; of a repeated key the last counts, as in `json`."""
    return dict(_values(raw, span[0], keys=True))


def _values(raw: str, at: int, *, keys: bool) -> Iterator[tuple[str, Span]]:
    """Keys and places of the values in an object or list."""
    at = _after_space(raw, _after_space(raw, at) + 1)
    while raw[at] not in "]}":
        key = ""
        if keys:
            key, at = _DECODER.raw_decode(raw, at)
            at = _after_space(raw, _after_space(raw, at) + 1)
        _, end = _DECODER.raw_decode(raw, at)
        yield key, (at, end)
        at = _after_space(raw, end)
        at = _after_space(raw, at + 1) if raw[at] == "," else at


def _after_space(raw: str, at: int) -> int:
    found = _SPACE.match(raw, at)
    return found.end() if found is not None else at
