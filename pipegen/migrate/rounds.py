"""Loops that make a new iterator in each round: Keras drew other numbers each time, a rebuilt pipeline draws the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pipegen.migrate.collected import Collected
from pipegen.migrate.draws import is_first, is_next
from pipegen.migrate.groups import Group
from pipegen.migrate.homes import of_function
from pipegen.migrate.nodes import Function, Loop, begins_in, called, given_to, names_in, root_name
from pipegen.migrate.steps import RANDOM
from pipegen.migrate.values import Flow, Generator


def round_of(tree: ast.Module, found: Collected, group: Group, home: ast.stmt, call: str) -> ast.stmt | None:
    """Loop whose rounds would each start with the same numbers, if `build` is called before a statement.

    `None` if the call depends on values that change between rounds, such as the rows of a fold, or if each round trains its own model.
    Single batches that rounds draw start with the same numbers even for other data.
    """
    if not any(map(varies, group.flows)):
        return None
    reads = names_in(ast.parse(call, mode="eval"))
    function = of_function(group.first.frame).scope.node
    drawn = any(is_next(u) or is_first(u) for f in group.flows for u in found.uses_of(f))
    for loop in _loops(function):
        if drawn and begins_in(home, *loop.body):
            return loop
        if begins_in(home, *loop.body) and not reads & _bound(loop) and not _trains_its_own(found, group, loop):
            return loop
    if not isinstance(function, Function):
        return None
    for loop in _loops(tree):
        calls = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Call) and called(n) == function.name]
        if any(not names_in(*given_to(n)) & (_bound(loop) - _counted(loop)) for n in calls):
            return loop
    return None


def varies(flow: Flow) -> bool:
    """True if a new iterator gives other batches than the previous one: without a seed, shuffled or augmented."""
    drawn = isinstance(flow.generator, Generator) and any(name in flow.generator.args for name in RANDOM)
    return "seed" not in flow.args and (drawn or flow.known("shuffle") is not False)


def _loops(node: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.While]:
    """Yields the loops of a function or module, including those of inner functions."""
    yield from (n for n in ast.walk(node) if isinstance(n, (ast.For, ast.AsyncFor, ast.While)) and isinstance(n, Loop))


def _bound(loop: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Names that a loop assigns."""
    targets = [] if isinstance(loop, ast.While) else [loop.target]
    return {n.id for part in (*targets, *loop.body) for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _counted(loop: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Variable of a loop that only counts its rounds, such as `epoch`."""
    counts = not isinstance(loop, ast.While) and isinstance(loop.iter, ast.Call) and called(loop.iter) in ("range", "trange", "count")
    return names_in(loop.target) if counts and not isinstance(loop, ast.While) else set()


def _trains_its_own(found: Collected, group: Group, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """True if a loop makes the models that it passes the iterators to."""
    uses = [u for f in group.flows for u in found.uses_of(f)]
    trained = [u.outer.func for u in uses if u.kind == "model" and isinstance(u.outer, ast.Call)]
    return bool(trained) and len(trained) == len(uses) and all(root_name(function) in _bound(loop) for function in trained)
