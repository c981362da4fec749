"""Calls of `fit` and its kin as Keras 3 has them, with a dataset of known length."""

from __future__ import annotations

import ast
import math
from typing import cast

from pipegen.migrate.collected import ModelCall
from pipegen.migrate.edits import Edits
from pipegen.migrate.epochs import Rounds, expression, rounds_of
from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.findings import Findings
from pipegen.migrate.nodes import end, start
from pipegen.migrate.signatures import DROPPED, STEPS
from pipegen.migrate.texts import lines_of
from pipegen.migrate.values import Frame, origins_of, plain

_ARGUMENTS = {"training": "steps_per_epoch", "validation": "validation_steps", "evaluation": "steps"}
_EPOCHS = {"training": "an epoch", "validation": "each validation", "evaluation": "the call"}


def edit_model_call(edits: Edits, call: ModelCall, evaluator: Evaluator, findings: Findings, replaced: dict[int, str]) -> None:
    """Edit one call, with other texts for some of its arguments, by the ids of their nodes."""
    node = call.node
    function = cast("ast.Attribute", node.func)
    method = function.attr.removesuffix("_generator").replace("predict_classes", "predict")
    if function.attr == "predict_classes":
        findings.add("PG615", node.lineno, "`predict_classes` does not exist in Keras 3", "take `predict(…).argmax(axis=1)`")
        return
    if not _is_sure(node):
        findings.add(
            "PG615", node.lineno, f"the arguments of `{function.attr}` are not edited, since they are given by position", "name them"
        )
        return
    kept = {name: value for name, value in call.args.items() if name not in STEPS and name not in DROPPED}
    dropped = [name for name in call.args if name not in kept]
    if method == function.attr and not dropped and not replaced:
        return
    for name in dropped:
        _tell(name, call, evaluator, edits, findings)
    texts: list[str] = []
    for name, value in kept.items():
        text = replaced.get(id(value)) or _edited(edits, value)
        texts.append(text if name == "x" and not texts else f"{name}={text}")
    callee = f"{edits.source(function.value)}.{method}"
    opening = node.col_offset + len(callee.split("\n")[-1]) + 1
    edits.replace(node, f"{callee}({_layout(edits, node, texts, opening)})")


def _is_sure(node: ast.Call) -> bool:
    """Returns whether it is known which argument is which."""
    method = cast("ast.Attribute", node.func).attr
    unsure = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    most = len(node.args) if method == "fit_generator" else 1 if method in ("fit", "evaluate", "predict") else 2
    return not unsure and len(node.args) <= most


def drops(call: ModelCall, node: ast.expr) -> bool:
    """Returns whether the edit of a call takes out the argument that an expression stands in."""
    if not _is_sure(call.node) or cast("ast.Attribute", call.node.func).attr == "predict_classes":
        return False
    gone = [value for name, value in call.args.items() if name in STEPS or name in DROPPED]
    return any(start(value) <= start(node) and end(node) <= end(value) for value in gone)


def _edited(edits: Edits, node: ast.expr) -> str:
    """The text of an argument with the edits inside it."""
    first, last = edits.span(node)
    inner = sorted((a, b, text) for (a, b), text in edits.pending() if first <= a and b <= last)
    done: list[str] = []
    at = first
    for a, b, text in inner:
        if a >= at:
            done += [edits.text[at:a], text]
            at = b
    return "".join([*done, edits.text[at:last]])


def _layout(edits: Edits, node: ast.Call, texts: list[str], opening: int) -> str:
    """Arguments on one line, or one a line where they were on several; `opening` is the column after the bracket."""
    first = node.args[0] if node.args else node.keywords[0].value if node.keywords else node
    lines = {n.lineno for n in (*node.args, *(k.value for k in node.keywords))}
    if len(lines) <= 1 or len(texts) <= 1:
        return ", ".join(texts)
    lines_of_text = lines_of(edits.text)
    line = lines_of_text[first.lineno - 1]
    if first.lineno == node.lineno:
        return (",\n" + " " * opening).join(texts)
    indent = line[: len(line) - len(line.lstrip())]
    outer = lines_of_text[node.lineno - 1]
    back = outer[: len(outer) - len(outer.lstrip())]
    return f"\n{indent}" + f",\n{indent}".join(texts) + f",\n{back}"


def _tell(name: str, call: ModelCall, evaluator: Evaluator, edits: Edits, findings: Findings) -> None:
    """Tells what it means that an argument goes."""
    value, line = call.args[name], call.args[name].lineno
    if name in DROPPED:
        return
    part = next(part for part, argument in _ARGUMENTS.items() if argument == name)
    found = evaluator.value(value, call.frame)
    known = plain(found)
    counted = isinstance(known, (int, float)) and not isinstance(known, bool)
    old = next((k.arg for k in call.node.keywords if k.value is value), name) or name
    shown = f"`{old}={' '.join(edits.source(value).split())}`"
    if counted:
        unit = "examples" if "samples" in old else "steps"
        which = "" if isinstance(value, ast.Constant) else f", which is {known}{' by default' if origins_of(found) else ''},"
        message = f"{shown}{which} counted {unit} by hand; now an epoch is one pass over the data"
        longer = part == "training" and unit == "steps"
        help_ = f"for epochs of that length, add `epoch: {{steps: {math.ceil(known)}}}` to the spec" if longer else ""
        findings.add("PG622", line, message, help_)
    elif known is not None:
        data = call.args.get("validation_data" if part == "validation" else "x")
        given = evaluator.value(data, call.frame) if data is not None else None
        rounds = rounds_of(evaluator, value, call.frame, given, of_examples="samples" in old)
        _tell_rounds(shown, part, rounds, call, evaluator, findings)
    told = expression(value, call.frame)
    if part != "training" and (_leaves_out(told, evaluator, call.frame) if counted else bool(_divisions(told))):
        message = f"`{name}` rounds down, so that the last examples of the {part} data were left out"
        findings.add("PG649", line, message, "now every example counts once")


def _tell_rounds(shown: str, part: str, rounds: Rounds | None, call: ModelCall, evaluator: Evaluator, findings: Findings) -> None:
    """Tells what it means that steps go which are counted when the code runs: how often they went through the data, if not once."""
    line = call.args[_ARGUMENTS[part]].lineno
    if rounds is None:
        help_ = "where it was another number, add `epoch: {steps: N}` to the spec" if part == "training" else ""
        findings.add("PG622", line, f"{shown} is left out, and is not known: now {_EPOCHS[part]} is one pass over the data", help_)
    elif not rounds.is_one:
        batch = "a batch" if rounds.batch is None else f"{rounds.batch} of them"
        why = f" counts examples, and a step takes {batch}" if rounds.counts_examples else ""
        message = f"{shown}{why}: {_EPOCHS[part]} was {rounds.text()} over the data; now it is one"
        findings.add("PG625", line, message, _instead(rounds, part, call, evaluator))


def _instead(rounds: Rounds, part: str, call: ModelCall, evaluator: Evaluator) -> str:
    """Returns what to do for as many steps as before."""
    if part == "evaluation" and call.method.startswith("predict"):
        return "predictions have one row for each example now, in its order"
    if part != "training":
        return "the figures are of every example once"
    epochs = plain(evaluator.value(call.args["epochs"], call.frame)) if "epochs" in call.args else 1
    more = rounds.number * epochs if rounds.number is not None and isinstance(epochs, int) else 0.0
    exact = round(more) and abs(round(more) - more) < 0.1 * more
    as_many = f"`epochs={round(more)}` takes as many steps as before; " if exact else ""
    return f"{as_many}`epoch: {{steps: N}}` in the spec makes epochs of another length"


def _divisions(value: ast.expr) -> list[ast.BinOp]:
    """The divisions in an expression that round down."""
    return [n for n in ast.walk(value) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv)]


def _leaves_out(value: ast.expr, evaluator: Evaluator, frame: Frame) -> bool:
    """Returns whether a division of known numbers by what has a name, as the size of batches has, leaves a rest."""
    for division in _divisions(value):
        sides = [plain(evaluator.value(side, frame)) for side in (division.left, division.right)]
        if not isinstance(division.right, ast.Constant) and all(isinstance(s, int) for s in sides) and sides[1] and sides[0] % sides[1]:
            return True
    return False
