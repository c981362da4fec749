"""Counts how often a number of steps went through the data, where it is made of the number of examples and the size of batches."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.nodes import called
from pipegen.migrate.values import Flow, Frame, Unknown, Value, Zipped, plain

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
        """The product, or with -1 the quotient."""
        if power < 0 and not other.factor:
            return None
        return Count(self.factor * other.factor**power, self.rows + power * other.rows, self.batches + power * other.batches)


@dataclass(frozen=True)
class Rounds:
    """Holds how often a number of steps goes through the data.

    Attributes:
        number: How many; `None` where they are as many as `count` says, and the size of batches is not known.
        counts_examples: Whether the steps are examples that were taken for batches.
    """

    number: float | None
    count: Count
    batch: int | None
    counts_examples: bool

    @property
    def is_one(self) -> bool:
        """Returns whether it is once, but for what rounding left out."""
        return self.number is not None and abs(self.number - 1) < 0.02

    def text(self) -> str:
        """In words, as in "an epoch was … over the data"."""
        if self.number is None:
            times = "" if self.count.factor == 1 else f"{_short(self.count.factor)} times "
            return f"{times}as many passes as a batch has examples"
        return f"{_short(self.number)} passes" if self.number > 1 else f"{_short(self.number)} of a pass"


def rounds_of(evaluator: Evaluator, steps: ast.expr, frame: Frame, data: Value | None, *, of_examples: bool) -> Rounds | None:
    """Returns how often a number of steps, or with `of_examples` of examples, goes through an iterator's data, where that is said."""
    batch = _batch_size(data)
    count = _Counter(evaluator, batch).count(steps, frame)
    if count is None or count.rows != 1:
        return None
    if batch is None and count.factor < 1 and not count.batches:
        count = Count(rows=1, batches=-1)  # divided by what must be the size of batches
    power = count.batches + (not of_examples)
    number = count.factor if power == 0 else count.factor * batch**power if batch is not None else None
    taken_for_batches = count.batches == 0 and count.factor >= 1 and not of_examples
    return Rounds(number, count, batch, taken_for_batches) if number is not None or power == 1 else None


def _batch_size(data: Value | None) -> int | None:
    """The size of batches of an iterator, where it is known."""
    flow = data.flows[0] if isinstance(data, Zipped) else data
    if not isinstance(flow, Flow):
        return None
    known = flow.known("batch_size", 32)
    return known if isinstance(known, int) and known > 0 else None


@dataclass
class _Counter:
    evaluator: Evaluator
    batch: int | None
    left: int = _MOST_STEPS

    def count(self, node: ast.expr, frame: Frame) -> Count | None:
        """Returns what an expression counts."""
        if self.left <= 0:
            return None
        known = plain(self.evaluator.value(node, frame))
        if isinstance(known, (int, float)) and not isinstance(known, bool):
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
        given = expression(node, frame)
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
            left = Count(rows=1)  # what is divided by the size of batches
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
            of = self.evaluator.value(node.args[0], frame)
            return Count(rows=1, batches=-1) if isinstance(of, (Flow, Zipped)) else self._length(node.args[0])
        if name in ("max", "min") and len(node.args) == 2:
            sides = [self.count(side, frame) for side in node.args]
            return next((s for s in sides if s is not None and s.rows), None)
        return self.count(node.args[0], frame) if name in _ROUNDING and node.args else None

    def _length(self, node: ast.expr) -> Count | None:
        """Returns what a length is: of a list of files, or of an array, the number of examples."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return None if re.search(r"gen(erator)?s?$|batches$|iterator$", name) and name not in _OF_IMAGES else Count(rows=1)


def expression(value: ast.expr, frame: Frame) -> ast.expr:
    """Returns what a variable is assigned, where that is one expression; any other expression as it is."""
    bindings = frame.bound(value.id)[0] if isinstance(value, ast.Name) else []
    only = bindings[0] if len(bindings) == 1 else None
    return only.value if only is not None and only.value is not None and not only.path else value


def _short(number: float) -> str:
    return f"{number:.0f}" if abs(number - round(number)) < 0.02 * abs(number) and number >= 0.9 else f"{number:.2g}"
