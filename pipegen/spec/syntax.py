"""YAML's syntax errors in plain words, each at the place of its likely cause."""

from __future__ import annotations

import re

from yaml.error import Mark, MarkedYAMLError

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Edit, Fix, Label, Span
from pipegen.frozen import dataclass
from pipegen.spec.source_map import LONGEST_KEY

_GLUED = re.compile(r"(\s*(?:- +)?[A-Za-z_][\w.-]*):(?=[^\s:/\\])")  # a key whose colon is not followed by a space


@dataclass(frozen=True, slots=True)
class _Place:
    """A syntax error with its text."""

    file: str
    lines: list[str]
    error: MarkedYAMLError

    @property
    def problem(self) -> str:
        return str(self.error.problem or "")

    @property
    def context(self) -> str:
        return str(self.error.context or "")

    def line(self, number: int) -> str:
        """The text of a line, counted from 0; empty past the end."""
        return self.lines[number] if 0 <= number < len(self.lines) else ""

    def span(self, mark: Mark | None) -> Span:
        """The character at `mark`; past the end of the text, its last line."""
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        if line >= len(self.lines) or (line == len(self.lines) - 1 and line > 0 and not self.lines[line]):
            line = max(i for i, text in enumerate(self.lines) if text.strip() or i == 0)
            column = len(self.lines[line])
        return Span(self.file, line + 1, column + 1, line + 1, column + 2)

    def here(self, text: str = "") -> Label:
        return Label(self.span(self.error.problem_mark), text)

    def opened(self, text: str = "") -> Label:
        """The place where the unfinished node began."""
        return Label(self.span(self.error.context_mark), text)

    def innermost(self) -> tuple[Span, str]:
        """The bracket around the problem; between two entries, where YAML names none, the last open one."""
        context, problem = self.error.context_mark, self.error.problem_mark
        begun = self.line(context.line)[context.column : context.column + 1] if context is not None else ""
        if context is None or problem is None or begun in ("[", "{"):
            return self.span(context), begun or ("[" if "sequence" in self.context else "{")
        stack: list[tuple[int, int]] = []
        for number in range(problem.line + 1):
            line = re.sub(r"\"[^\"]*\"|'[^']*'|(^|\s)#.*", lambda found: " " * len(found[0]), self.line(number))
            for column, character in enumerate(line[: problem.column] if number == problem.line else line):
                if character in "[{":
                    stack.append((number, column))
                elif character in "]}" and stack:
                    stack.pop()
        line_number, column = stack[-1] if stack else (context.line, context.column)
        at = Span(self.file, line_number + 1, column + 1, line_number + 1, column + 2)
        return at, self.line(line_number)[column] if stack else "{"


def explain_syntax(error: MarkedYAMLError, text: str, file: str) -> Diagnostic:
    """The finding for a syntax error."""
    place = _Place(file, text.splitlines() or [""], error)
    for rule in (_tab, _long_key, _bracket, _glued, _colon, _indentation, _by_message):
        found = rule(place)
        if found is not None:
            return found
    return make("PG002", f"this is not valid YAML: {_plain(place.problem) or 'unreadable'}", place.here())


def _tab(p: _Place) -> Diagnostic | None:
    mark = p.error.problem_mark
    line = p.line(mark.line) if mark is not None else ""
    if "'\\t'" not in p.problem and not (mark is not None and "\t" in line[: mark.column + 1] and not line[: mark.column].strip()):
        return None
    return make("PG002", "a tab where YAML allows only spaces", p.here("a tab"), help=("indent with spaces, two for each level",))


def _long_key(p: _Place) -> Diagnostic | None:
    mark = p.error.problem_mark
    if mark is None or not ("':'" in p.problem or "mapping values are not allowed" in p.problem):
        return None
    opened = p.error.context_mark if "could not find" in p.problem else None
    line, end = (opened.line, opened.column + LONGEST_KEY + 1) if opened is not None else (mark.line, mark.column)
    before = p.line(line)[:end].rstrip()
    start = max((found + len(c) for c in (",", "{", "[", ": ") if (found := before.rfind(c)) >= 0), default=0)
    if len(before) - start <= LONGEST_KEY:
        return None
    start += len(before[start:]) - len(before[start:].lstrip())
    at = Label(Span(p.file, line + 1, start + 1, line + 1, start + 2), "it begins here")
    return make("PG003", f"a key is longer than {LONGEST_KEY:,} characters", at, help="YAML does not support longer keys")


def _bracket(p: _Place) -> Diagnostic | None:
    if "flow" not in p.context:
        return None
    opened, opening = p.innermost()
    closing = {"[": "]", "{": "}"}[opening]
    found = _plain(p.problem.rpartition("got ")[2])
    if "end" in found and "stream" in p.problem:
        return make("PG002", f"`{opening}` is opened and never closed", Label(opened, "opened here"), help=(f"add the `{closing}`",))
    message = f"expected `,` or `{closing}`"
    help_ = (f"look for a missing `{closing}` in an earlier line, or a missing comma between two entries",)
    first, last = (m.line if m is not None else 0 for m in (p.error.context_mark, p.error.problem_mark))
    if any(re.search(r"(^|\s)//", p.line(number)) for number in range(first, last + 1)):
        help_ = ("a comment begins with `#`, not with `//`",)
    return make("PG002", message, p.here("unexpected"), Label(opened, f"in the `{opening}` opened here"), help=help_)


def _glued(p: _Place) -> Diagnostic | None:
    if "mapping values are not allowed" not in p.problem and "could not find expected ':'" not in p.problem:
        return None
    mark = p.error.context_mark or p.error.problem_mark
    for number in () if mark is None else (mark.line, mark.line - 1):
        glued = _GLUED.match(p.line(number))
        if glued is not None:
            at = Span(p.file, number + 1, glued.end(), number + 1, glued.end() + 1)
            after = Span(p.file, number + 1, glued.end() + 1, number + 1, glued.end() + 1)
            fix = Fix("put a space after the colon", (Edit(after, " "),), Applicability.SAFE)  # without it this is not YAML
            help_ = "a key and its value are written `key: value`"
            return make("PG002", "a space is missing after the colon", Label(at), help=help_, fix=fix)
    return None


def _colon(p: _Place) -> Diagnostic | None:
    mark = p.error.problem_mark
    if "mapping values are not allowed" not in p.problem or mark is None:
        return None
    if ": " in p.line(mark.line)[: mark.column]:
        help_ = ("put text that holds a colon in quotes", "write a map within a line with braces: `key: {name: value}`")
        return make("PG002", "a second `: ` in one line", p.here("this colon"), help=help_)
    above = p.line(mark.line - 1)
    if mark.line and above.strip() and not p.line(mark.line).startswith(above[: len(above) - len(above.lstrip())] + " "):
        at = Span(p.file, mark.line, len(above) - len(above.lstrip()) + 1, mark.line, len(above.rstrip()) + 1)
        return make("PG002", "a key without a colon", Label(at), help=("a key and its value are written `key: value`",))
    help_ = ("keys of one map start in the same column", "a key either has a value on its line or indented lines below, not both")
    return make("PG002", "this line is indented deeper than the one above allows", p.here(), help=help_)


def _indentation(p: _Place) -> Diagnostic | None:
    if "expected <block end>" not in p.problem:
        return None
    found = _plain(p.problem.rpartition("found ")[2])
    if found in ("}", "]"):
        return make("PG002", f"`{found}` closes nothing", p.here(), help=(f"remove it, or open one with `{'{' if found == '}' else '['}`",))
    mark = p.error.problem_mark
    before = p.line(mark.line)[: mark.column].rstrip() if mark is not None else ""
    if before.endswith(("'", '"')):
        help_ = ("inside single quotes write '' for a quote, inside double quotes \\\"",)
        return make("PG002", "text after the closing quote", p.here(), help=help_)
    help_ = ("keys of one map, and the dashes of one list, start in the same column",)
    if "block collection" in p.context and mark is not None and not p.line(mark.line)[mark.column :].startswith("-"):
        help_ = ("each entry of a list begins with a dash, in the column of the first: `- name`",)
    return make("PG002", "this line is not aligned with those above", p.here(), help=help_)


def _by_message(p: _Place) -> Diagnostic | None:
    """Explains errors that the message of YAML tells apart."""
    if "quoted scalar" in p.context and "unexpected" in p.problem:
        help_ = "close it on the same line, or leave it out"
        return make("PG002", "a quote is opened and never closed", p.opened("opened here"), help=help_)
    if match := re.search(r"found character '(.+)' that cannot start", p.problem):
        return make("PG002", f"plain text cannot begin with {match[1]}", p.here(), help="put the text in quotes")
    if match := re.search(r"unknown escape character '(.+)'", p.problem):
        help_ = "in single quotes a backslash is a backslash, which suits regular expressions: '\\d+'"
        return make("PG002", f"`\\{match[1]}` means nothing in double quotes", p.here(), help=help_)
    if "could not find expected ':'" in p.problem:
        return make("PG002", "a key without a colon", p.opened(), help="a key and its value are written `key: value`")
    if "expected the node content" in p.problem:
        return make("PG002", f"a value is missing before `{_plain(p.problem.rpartition('found ')[2])}`", p.here())
    return None


def _plain(text: str) -> str:
    return text.replace("<stream end>", "the end of the file").replace("'", "").replace("<", "").replace(">", "").strip()
