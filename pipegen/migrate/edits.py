"""Edits of a source text by nodes of its tree."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from itertools import accumulate, chain, count
from typing import Any

from pipegen.migrate.nodes import Function
from pipegen.migrate.reading import lines_of


@dataclass
class Edits:
    """Collects replacements and applies them together."""

    text: str
    tree: ast.Module
    _found: dict[tuple[int, int], str] = field(default_factory=dict)
    _starts: list[int] = field(init=False)
    _lines: list[str] = field(init=False)
    _blocks: dict[int, list[ast.stmt]] = field(default_factory=dict)
    _branches: dict[int, ast.If | ast.Try] = field(default_factory=dict)
    _gone: set[int] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)  # modules of the standard library that the edits need
    _taken: set[str] = field(init=False)  # words of the source, and new names

    def __post_init__(self) -> None:
        self._taken = set(re.findall(r"\w+", self.text))
        self._lines = lines_of(self.text)
        self._starts = [0, *accumulate(map(len, self._lines))]
        for node in ast.walk(self.tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    self._blocks.update({id(s): block for s in block if isinstance(s, ast.stmt)})
            if isinstance(node, (ast.If, ast.Try)):
                self._branches.update({id(s): node for s in _inner(node)})

    def new_name(self, wanted: str) -> str:
        """A name that is not used in the code, and from now on taken."""
        name = next(n for n in chain([wanted], (f"{wanted}{i}" for i in count(2))) if n not in self._taken)
        self._taken.add(name)
        return name

    def offset(self, line: int, column: int) -> int:
        """Offset of a line and a column, which is in bytes, as in nodes."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Start and end of a node."""
        at: Any = node  # only nodes with a position are passed
        return self.offset(at.lineno, at.col_offset), self.offset(at.end_lineno, at.end_col_offset)

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        first, last = self.span(node)
        return self.text[first:last]

    def replace(self, node: ast.AST, text: str) -> None:
        """Replaces a node by another text."""
        self._found[self.span(node)] = text

    def delete(self, statement: ast.stmt) -> None:
        """Deletes a statement with its lines. An emptied block gets `pass`; an emptied branch is deleted, too."""
        self._gone.add(id(statement))
        branch = self._branches.get(id(statement))
        asked = ast.walk(branch.test) if isinstance(branch, ast.If) else ()
        asks = any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in asked)  # its condition may have side effects
        if branch is not None and not asks and all(id(s) in self._gone for s in _inner(branch)):
            self.delete(branch)
            return
        block = self._blocks.get(id(statement), [])
        top, bottom = self.span(statement)
        decorators = getattr(statement, "decorator_list", [])
        if decorators:
            top = self._starts[decorators[0].lineno - 1] + statement.col_offset
        begin = self.text.rfind("\n", 0, top) + 1
        if not self.is_alone(statement) or (block is not self.tree.body and all(id(s) in self._gone for s in block)):
            self._found[top, bottom] = "pass"
            return
        bottom += len(self._rest(statement))
        if isinstance(statement, Function):
            bottom += len(self.text[bottom:]) - len(re.sub(r"\A([ \t]*\n)+", "", self.text[bottom:]))
        self._found[begin, bottom] = ""

    def is_alone(self, statement: ast.stmt) -> bool:
        """True if only a comment shares the lines of a statement."""
        first, _ = self.span(statement)
        rest = self._rest(statement).strip()
        return not self.text[self.text.rfind("\n", 0, first) + 1 : first].strip() and (not rest or rest.startswith("#"))

    def _rest(self, statement: ast.stmt) -> str:
        line = (statement.end_lineno or 1) - 1
        return self.text[self.span(statement)[1] : self._starts[line] + len(self._lines[line])]

    def before(self, statement: ast.stmt, text: str) -> None:
        """Inserts a line before a statement, or a statement if its line has several."""
        at, here = self._starts[statement.lineno - 1], self.offset(statement.lineno, statement.col_offset)
        indent = self.text[at:here]
        place = (here, here) if indent.strip() else (at, at)
        self._found[place] = self._found.get(place, "") + (f"{text}; " if indent.strip() else f"{indent}{text}\n")

    def apply(self) -> str:
        """The edited text."""
        return self._joined(self._found, 0, len(self.text))

    def source_edited(self, node: ast.AST) -> str:
        """The text of a node with the edits inside it."""
        first, last = self.span(node)
        return self._joined({at: text for at, text in self._found.items() if first <= at[0] and at[1] <= last}, first, last)

    def _joined(self, edits: dict[tuple[int, int], str], at: int, end: int) -> str:
        """The text between two offsets with its edits; an edit inside a larger one is dropped."""
        kept: list[tuple[int, int]] = []
        start, reach = -1, -1
        for first, last in sorted(edits, key=lambda place: (place[0], -place[1])):
            inserts = first == last == start
            if first >= reach or inserts:
                kept.append((first, last))
            if first >= reach and not inserts:
                start, reach = first, last
        done: list[str] = []
        for first, last in sorted(kept):
            done += [self.text[at:first], edits[first, last]]
            at = last
        return "".join([*done, self.text[at:end]])


def _inner(branch: ast.If | ast.Try) -> list[ast.stmt]:
    handlers = branch.handlers if isinstance(branch, ast.Try) else []
    last = branch.finalbody if isinstance(branch, ast.Try) else []
    return [*branch.body, *(s for handler in handlers for s in handler.body), *branch.orelse, *last]
