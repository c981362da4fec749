"""Interfaces of `evaluate.py` for the modules that evaluate one kind of expression each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ast
    from collections import Counter
    from collections.abc import Callable

    from pipegen.migrate.nodes import Position
    from pipegen.migrate.scopes import Assignment, Node
    from pipegen.migrate.values import Frame, Instance, Local, Value


class Declared(Protocol):
    """Values that a program gets from outside: options, flags and environment; see `Outside`."""

    def option(self, name: str, line: int, *, fixed: bool = False) -> Value: ...

    def flag(self, name: str, line: int) -> Value: ...

    def environment(self, name: Value, default: Value, line: int) -> Value: ...


class Evaluator(Protocol):
    """Evaluates expressions of one parsed file; see `FileEvaluator`."""

    whole: frozenset[int]
    module: Frame
    calls: Counter[str]
    called: dict[int, Frame]
    objects: dict[int, list[Instance]]
    rounds: dict[tuple[int, int], list[Frame] | None]

    @property
    def assignments(self) -> Callable[[ast.ClassDef], dict[str, list[Assignment]]]: ...

    @property
    def given_below(self) -> Callable[[ast.ClassDef], frozenset[str]]: ...

    @property
    def outside(self) -> Declared: ...

    def is_assigned(self, name: str) -> bool: ...

    def frame(
        self, node: Node, parent: Frame, args: dict[str, Value], *, call: ast.AST | None = None, caller: Frame | None = None
    ) -> Frame: ...

    def inner_frame(self, node: Node, parent: Frame, args: dict[str, Value]) -> Frame: ...

    def value(self, node: ast.expr, frame: Frame) -> Value: ...

    def name(self, name: str, at: Position, frame: Frame, *, inside: bool = True) -> Value: ...

    def returned(self, function: Local, call: ast.Call, frame: Frame) -> tuple[Frame | None, Value]: ...

    def is_too_deep(self, node: ast.AST, frame: Frame) -> bool: ...
