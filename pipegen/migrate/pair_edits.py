"""Edits of images and masks that `zip` joins: one split of a pipeline gives both."""

from __future__ import annotations

import ast

from pipegen.migrate.collected import Collected, PairUse, Use
from pipegen.migrate.homes import is_read_elsewhere, of_function
from pipegen.migrate.model_calls import edit_model_call
from pipegen.migrate.nodes import Function, end, flattened, start
from pipegen.migrate.unrolling import hands_on, passing_loop
from pipegen.migrate.uses import UseEdits, access, is_dropped
from pipegen.migrate.values import Flow, Unknown, Zipped, certain

_COUNTS = ("samples", "n", "batch_size", "target_size")
"""Members of an iterator of images that its pairs have, too."""


def edit_pair(edits: UseEdits, zipped: Zipped) -> None:
    """Put a split in the place of two iterators and of what joins them, and edit what is done with them."""
    text = edits.edits
    split = access(edits.pipe, edits.split)
    text.replace(zipped.node, split)
    for flow in zipped.flows:
        statement = edits.found.statements.get(id(flow))
        if statement is not None:
            text.delete(statement[0])
        for use in edits.found.uses_of(flow):
            if use.kind == "member":
                edits.edit(use)
            elif use.kind == "len":
                text.replace(use.node, split)
    uses = [u for u in edits.found.pair_uses if u.pair is zipped]
    for pair_use in sorted(uses, key=lambda u: u.kind == "model"):  # last, since their arguments take in what was edited
        _edit_use(edits, pair_use, split)


def _edit_use(edits: UseEdits, use: PairUse, split: str) -> None:
    whole = passes_on(use)
    given = split if use.node is use.pair.node else edits.edits.source(use.node)
    if use.kind == "model":
        call = next(c for c in edits.found.calls if c.node is use.outer)
        edit_model_call(edits.edits, call, edits.found.evaluator, edits.findings, {})
    elif isinstance(whole, ast.GeneratorExp):
        around = (n for n in ast.walk(edits.edits.tree) if isinstance(n, ast.Call) and whole in n.args)
        shares = any(end(call.func) == start(whole) for call in around)  # its brackets are those of the call
        edits.edits.replace(whole, f"({given})" if shares else given)
    elif whole is not None:
        edits.edits.replace(whole, f"return {given}")
    else:
        message = "a loop over the pairs never ended by itself; over the dataset it is one pass"
        edits.findings.add("PG622", use.line, message)


def passes_on(use: PairUse) -> ast.stmt | ast.GeneratorExp | None:
    """The loop or the generator expression that does nothing but hand the pairs on, where the use is that."""
    around = use.frame.scope.node
    if isinstance(use.outer, ast.For) and isinstance(around, Function):
        last = flattened(around.body)[-1]
        return last if passing_loop(last) is use.outer else None
    if isinstance(use.outer, ast.comprehension):
        inside = (n for n in ast.walk(around) if isinstance(n, ast.GeneratorExp))
        return next((n for n in inside if n.generators[0] is use.outer and hands_on(n, use.outer)), None)
    return None


def problem_of(found: Collected, zipped: Zipped, image: Flow, mask: Flow) -> str:
    """Why the code around a pair is not edited; empty where it is."""
    if zipped.flows != (image, mask):
        return "the masks come first in the `zip`, and second in the spec"
    if of_function(zipped.frame) is not of_function(image.frame):
        return "its iterators are joined in another function"
    if len([p for p in found.pairs if p.node is zipped.node]) > 1:
        return "one line joins several of the iterators"
    for flow in zipped.flows:
        odd = next((u for u in found.uses_of(flow) if u.outer is not zipped.node and not _counts(found, u)), None)
        if odd is not None:
            return f"an iterator of its pairs is used alone in line {odd.line}"
        if not _is_taken_out(found, flow, zipped):
            return "an iterator of its pairs is made or kept in a way that is not followed"
    uses = [u for u in found.pair_uses if u.pair is zipped]
    problem = next((p for p in (_of_use(found, u) for u in uses) if p), "")
    if not problem and not any(u.kind == "model" or (u.kind == "loop" and passes_on(u) is None) for u in uses):
        return "no use of its pairs is seen in this file"
    return problem


def _counts(found: Collected, use: Use) -> bool:
    """Returns whether a use of one of the two only asks how many there are, and can be edited."""
    if use.kind == "len" or is_dropped(found, use):
        return True
    given = use.flow.argument(use.name)
    return use.kind == "member" and use.name in _COUNTS and (given is None or not isinstance(certain(given), Unknown))


def _of_use(found: Collected, use: PairUse) -> str:
    if len(found.served_by(use)) > 1:
        return f"line {use.line} serves several iterators"
    if use.kind == "model" or (use.kind == "loop" and passes_on(use) is not None):
        return ""
    if use.kind != "loop":
        return f"the pairs are used in line {use.line} in a way that is not followed"
    frame = of_function(use.frame)
    yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(frame.scope.node))
    in_place = isinstance(use.outer, ast.For) and not (yields and frame.parent is not None)
    return "" if in_place else f"the pairs are changed or chosen by code in line {use.line}, before the model gets them"


def _is_taken_out(found: Collected, flow: Flow, zipped: Zipped) -> bool:
    """Returns whether an iterator goes with its `zip`, or with a statement of its own whose variable nothing else reads."""
    if start(zipped.node) <= start(flow.node) and end(flow.node) <= end(zipped.node):
        return True
    if id(flow) not in found.statements:
        return False
    statement, frame = found.statements[id(flow)]
    return not is_read_elsewhere(found.evaluator, statement, frame, frozenset(id(u.node) for u in found.uses_of(flow)))
