"""Takes out generators that nothing uses any more, with their `fit`, and the dicts and lists that hold nothing else."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pipegen.migrate.collected import Collected
from pipegen.migrate.edits import Edits
from pipegen.migrate.homes import is_read_elsewhere
from pipegen.migrate.nodes import Function, Row
from pipegen.migrate.signatures import FLOWS
from pipegen.migrate.values import Flow, Frame, Generator


@dataclass
class Removal:
    """Takes out what only made the iterators that are done, once some functions are gone."""

    edits: Edits
    found: Collected
    done: list[Flow]
    gone: list[Function]

    def run(self) -> None:
        """Take out each generator that can go."""
        for generator in self.found.generators:
            if all(self._is_done(g) for g in self.found.generators if g.node is generator.node):
                self._take_out(generator)

    def _is_done(self, generator: Generator) -> bool:
        """Returns whether all that is done with a generator is gone."""
        flows = [f for f in self.found.flows if f.generator is generator]
        others = any(owner is generator and name not in FLOWS for owner, name, _ in self.found.members)
        return bool(flows) and all(f in self.done for f in flows) and not others

    def _take_out(self, generator: Generator) -> None:
        statement, frame = self.found.statements.get(id(generator), (None, generator.frame))
        if statement is None:
            statement = self._holder(generator)
        if statement is None or self._is_read(statement, frame):
            return
        self.edits.delete(statement)
        calls = [call for owner, call in self.found.fits if owner is generator]
        for expression in ast.walk(self.edits.tree):
            if isinstance(expression, ast.Expr) and expression.value in calls:
                self.edits.delete(expression)

    def _is_read(self, statement: ast.stmt, frame: Frame) -> bool:
        """Returns whether other code reads what a statement assigns than the calls that were exchanged, and `fit`."""
        calls = [call for _, call in self.found.fits]
        owners = [c.func.value for c in calls if isinstance(c.func, ast.Attribute)]
        replaced = [f.node for f in self.done]
        known = frozenset(id(n) for root in (*owners, *replaced, *self.gone) for n in ast.walk(root))
        return is_read_elsewhere(self.found.evaluator, statement, frame, known)

    def _holder(self, generator: Generator) -> ast.stmt | None:
        """The assignment of a dict or a list that holds nothing but generators that are done."""
        done = {id(g.node) for g in self.found.generators if self._is_done(g)}
        for statement in ast.walk(self.edits.tree):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
                value = statement.value
                held = value.values if isinstance(value, ast.Dict) else value.elts if isinstance(value, Row) else []
                held = [value.value] if isinstance(value, ast.DictComp) else held
                if generator.node in held and all(id(h) in done for h in held):
                    return statement
        return None
