"""Calls of `fit` and similar in the form of Keras 3, with a dataset of known length; how often their steps went through the data."""

from __future__ import annotations

import ast
import math
import re
from typing import cast

from pipegen.frozen import dataclass
from pipegen.migrate.edits import Edits
from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.findings import Findings
from pipegen.migrate.interpret import ModelCall
from pipegen.migrate.nodes import called, lies_in, name_of
from pipegen.migrate.reading import lines_of
from pipegen.migrate.signatures import DROPPED, STEPS
from pipegen.migrate.values import Flow, Frame, Unknown, Value, Zipped, is_number, origins_of, plain

_ARGUMENTS = {"training": "steps_per_epoch", "validation": "validation_steps", "evaluation": "steps"}
_EPOCHS = {"training": "an epoch", "validation": "each validation", "evaluation": "the call"}
_MOST_STEPS = 12
_ROUNDING = ("int", "float", "round", "ceil", "floor", "abs", "int32", "int64")
_BATCH = re.compile(r"batch|^bs$|_bs$|^bs_", re.IGNORECASE)
_ROWS = re.compile(r"sample|image|example|num_train|train_num|n_train|nb_train|train_size|train_len|len_train", re.IGNORECASE)
_OF_IMAGES = ("filenames", "filepaths", "classes", "labels")


@dataclass(frozen=True)
class Count:
    """A number times the number of examples, and times the size of batches, each to a power."""

    factor: float = 1.0
    rows: int = 0
    batches: int = 0

    def times(self, other: Count, power: int = 1) -> Count | None:
        """Product, or with -1 the quotient."""
        if power < 0 and not other.factor:
            return None
        return Count(self.factor * other.factor**power, self.rows + power * other.rows, self.batches + power * other.batches)


@dataclass(frozen=True)
class Rounds:
    """How often a number of steps goes through the data."""

    number: float | None  # how often; `None` if only `count` is known, since the batch size is not
    count: Count
    batch: int | None
    counts_examples: bool  # true if the code counts examples where Keras counts batches

    def text(self) -> str:
        """The number in words, as in "an epoch was … over the data"."""
        if self.number is None:
            times = "" if self.count.factor == 1 else f"{_short(self.count.factor)} times "
            return f"{times}as many passes as a batch has examples"
        return f"{_short(self.number)} passes" if self.number > 1 else f"{_short(self.number)} of a pass"


def rounds_of(evaluator: Evaluator, steps: ast.expr, frame: Frame, data: Value | None, *, of_examples: bool) -> Rounds | None:
    """How often a number of steps (or, with `of_examples`, of examples) goes through an iterator's data, if known."""
    flow = data.flows[0] if isinstance(data, Zipped) else data
    known = flow.known("batch_size", 32) if isinstance(flow, Flow) else None
    batch = known if isinstance(known, int) and known > 0 else None
    count = _Counter(evaluator, batch).count(steps, frame)
    if count is None or count.rows != 1:
        return None
    if batch is None and count.factor < 1 and not count.batches:
        count = Count(rows=1, batches=-1)  # divided by what must be the batch size
    power = count.batches + (not of_examples)
    number = count.factor if power == 0 else count.factor * batch**power if batch is not None else None
    taken_for_batches = count.batches == 0 and count.factor >= 1 and not of_examples
    return Rounds(number, count, batch, taken_for_batches) if number is not None or power == 1 else None


@dataclass
class _Counter:
    evaluator: Evaluator
    batch: int | None
    left: int = _MOST_STEPS

    def count(self, node: ast.expr, frame: Frame) -> Count | None:
        """What an expression counts."""
        if self.left <= 0:
            return None
        known = plain(self.evaluator.value(node, frame))
        if is_number(known):
            return Count(float(known))
        if isinstance(node, ast.BinOp):
            return self._combined(node, frame)
        if isinstance(node, ast.Call):
            return self._called(node, frame)
        if isinstance(node, ast.Subscript):
            of_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
            return Count(rows=1) if of_shape and isinstance(node.slice, ast.Constant) and node.slice.value == 0 else None
        return self._named(node, frame) if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(known, Unknown) else None

    def _named(self, node: ast.Name | ast.Attribute, frame: Frame) -> Count | None:
        given = assigned(node, frame)
        if given is not node:
            self.left -= 1
            return self.count(given, frame)
        name = node.id if isinstance(node, ast.Name) else node.attr
        if isinstance(node, ast.Attribute) and name in ("samples", "n"):
            return Count(rows=1)
        return Count(batches=1) if _BATCH.search(name) else Count(rows=1) if _ROWS.search(name) else None

    def _combined(self, node: ast.BinOp, frame: Frame) -> Count | None:
        left, right = self.count(node.left, frame), self.count(node.right, frame)
        by_batch = right is not None and (right == Count(batches=1) or (right == Count(right.factor) and right.factor == self.batch))
        if left is None and by_batch and isinstance(node.op, (ast.Div, ast.FloorDiv)) and isinstance(node.left, (ast.Name, ast.Attribute)):
            left = Count(rows=1)  # divided by the batch size
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left.times(right)
        if isinstance(node.op, (ast.Div, ast.FloorDiv)):
            return left.times(right, -1)
        rounds = right == Count(right.factor) and abs(right.factor) <= 2
        return left if isinstance(node.op, (ast.Add, ast.Sub)) and rounds else None

    def _called(self, node: ast.Call, frame: Frame) -> Count | None:
        name = called(node)
        if name == "len" and len(node.args) == 1:
            of, whose = self.evaluator.value(node.args[0], frame), name_of(node.args[0])
            batches = re.search(r"gen(erator)?s?$|batches$|iterator$", whose) and whose not in _OF_IMAGES
            # of an iterator, else of a list of files or an array
            return Count(rows=1, batches=-1) if isinstance(of, (Flow, Zipped)) else None if batches else Count(rows=1)
        if name in ("max", "min") and len(node.args) == 2:
            sides = [self.count(side, frame) for side in node.args]
            return next((s for s in sides if s is not None and s.rows), None)
        return self.count(node.args[0], frame) if name in _ROUNDING and node.args else None


def assigned(value: ast.expr, frame: Frame) -> ast.expr:
    """The single expression that a variable is assigned; other expressions as they are."""
    bindings = frame.bound(value.id)[0] if isinstance(value, ast.Name) else []
    only = bindings[0] if len(bindings) == 1 else None
    return only.value if only is not None and only.value is not None and not only.path else value


def _short(number: float) -> str:
    return f"{number:.0f}" if abs(number - round(number)) < 0.02 * abs(number) and number >= 0.9 else f"{number:.2g}"


def edit_model_call(edits: Edits, call: ModelCall, evaluator: Evaluator, findings: Findings, replaced: dict[int, str]) -> None:
    """Edits one call, with other texts for some of its arguments, by node id."""
    node = call.node
    function = cast("ast.Attribute", node.func)
    method = function.attr.removesuffix("_generator")
    if function.attr == "predict_classes":
        findings.add("PG615", node.lineno, "`predict_classes` does not exist in Keras 3", "write `predict(…).argmax(axis=1)`")
        return
    if not _is_sure(node):
        findings.add("PG615", node.lineno, f"the arguments of `{function.attr}` are not edited, since they are positional", "name them")
        return
    kept = {name: value for name, value in call.args.items() if name not in STEPS and name not in DROPPED}
    dropped = [name for name in call.args if name not in kept]
    if method == function.attr and not dropped and not replaced:
        return
    for name in (n for n in dropped if n in STEPS):
        _tell(name, call, evaluator, edits, findings)
    texts: list[str] = []
    for name, value in kept.items():
        text = replaced.get(id(value)) or edits.source_edited(value)
        texts.append(text if name == "x" and not texts else f"{name}={text}")
    callee = f"{edits.source(function.value)}.{method}"
    opening = node.col_offset + len(callee.split("\n")[-1]) + 1
    edits.replace(node, f"{callee}({_layout(edits, node, texts, opening)})")


def _is_sure(node: ast.Call) -> bool:
    """True if the name of each argument is certain."""
    method = called(node)
    unsure = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    most = len(node.args) if method == "fit_generator" else 1 if method in ("fit", "evaluate", "predict") else 2
    return not unsure and len(node.args) <= most


def drops(call: ModelCall, node: ast.expr) -> bool:
    """True if the edit of a call drops the argument that contains an expression."""
    if not _is_sure(call.node) or called(call.node) == "predict_classes":
        return False
    return any(lies_in(node, value) for name, value in call.args.items() if name in (*STEPS, *DROPPED))


def _layout(edits: Edits, node: ast.Call, texts: list[str], opening: int) -> str:
    """Arguments on one line, or on one line each if they had several; `opening` is the column after the bracket."""
    first = node.args[0] if node.args else node.keywords[0].value if node.keywords else node
    lines = {n.lineno for n in (*node.args, *(k.value for k in node.keywords))}
    if len(lines) <= 1 or len(texts) <= 1:
        return ", ".join(texts)
    if first.lineno == node.lineno:
        return (",\n" + " " * opening).join(texts)
    starts = [lines_of(edits.text)[number - 1] for number in (first.lineno, node.lineno)]
    indent, back = (line[: len(line) - len(line.lstrip())] for line in starts)
    return f"\n{indent}" + f",\n{indent}".join(texts) + f",\n{back}"


def _tell(name: str, call: ModelCall, evaluator: Evaluator, edits: Edits, findings: Findings) -> None:
    """Reports the effect of dropping a number of steps."""
    value, line = call.args[name], call.args[name].lineno
    part = next(part for part, argument in _ARGUMENTS.items() if argument == name)
    found = evaluator.value(value, call.frame)
    known = plain(found)
    counted = is_number(known)
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
    told = assigned(value, call.frame)
    divisions = [n for n in ast.walk(told) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv)]
    named = [d for d in divisions if not isinstance(d.right, ast.Constant)]
    sides = [[plain(evaluator.value(side, call.frame)) for side in (d.left, d.right)] for d in named]
    leaves_out = any(isinstance(a, int) and isinstance(b, int) and b and a % b for a, b in sides)
    if part != "training" and (leaves_out if counted else divisions):
        message = f"`{name}` rounds down, so the last examples of the {part} data were left out"
        findings.add("PG649", line, message, "now every example counts once")


def _tell_rounds(shown: str, part: str, rounds: Rounds | None, call: ModelCall, evaluator: Evaluator, findings: Findings) -> None:
    """Reports the effect of dropping steps that are computed at run time: how often they went through the data, if not once."""
    line = call.args[_ARGUMENTS[part]].lineno
    if rounds is None:
        help_ = "if it was another number, add `epoch: {steps: N}` to the spec" if part == "training" else ""
        findings.add("PG622", line, f"{shown} is removed, and its value is not known: now {_EPOCHS[part]} is one pass over the data", help_)
    elif rounds.number is None or abs(rounds.number - 1) >= 0.02:  # not once, apart from rounding
        batch = "a batch" if rounds.batch is None else f"{rounds.batch} of them"
        why = f" counts examples, but a step takes {batch}" if rounds.counts_examples else ""
        message = f"{shown}{why}: {_EPOCHS[part]} was {rounds.text()} over the data; now it is one"
        findings.add("PG625", line, message, _instead(rounds, part, call, evaluator))


def _instead(rounds: Rounds, part: str, call: ModelCall, evaluator: Evaluator) -> str:
    """Advice for taking as many steps as before."""
    if part == "evaluation" and called(call.node).startswith("predict"):
        return "predictions now have one row for each example, in order"
    if part != "training":
        return "metrics now count every example once"
    epochs = plain(evaluator.value(call.args["epochs"], call.frame)) if "epochs" in call.args else 1
    more = rounds.number * epochs if rounds.number is not None and isinstance(epochs, int) else 0.0
    exact = round(more) and abs(round(more) - more) < 0.1 * more
    as_many = f"`epochs={round(more)}` takes as many steps as before; " if exact else ""
    return f"{as_many}`epoch: {{steps: N}}` in the spec sets another length of an epoch"
