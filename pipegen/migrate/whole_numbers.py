"""Arrays of images from a table, whose integers are int64: Keras cast them, but a pipeline needs to know their type."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.nodes import called, start
from pipegen.migrate.values import Dotted

if TYPE_CHECKING:
    from pipegen.migrate.evaluate import FileEvaluator
    from pipegen.migrate.values import Frame

_READS = ("pandas.read_csv", "pandas.read_table", "pandas.read_excel", "pandas.DataFrame")
_OF_TABLES = ("drop", "sample", "head", "tail", "copy", "reset_index", "dropna", "sort_values", "sort_index", "iloc", "loc", "T")
"""Methods and attributes of tables that keep the cells."""
_TO_ARRAY = ("values", "to_numpy", "as_matrix")
_METHODS = ("reshape", "copy", "squeeze", "transpose")
_FUNCTIONS = ("array", "asarray", "reshape", "expand_dims", "squeeze", "vstack", "stack", "transpose")
"""Functions and methods that keep the dtype of an array."""
_DEPTH = 30


def hold_table_numbers(evaluator: FileEvaluator, node: ast.expr, frame: Frame) -> bool:
    """True if an array has the integers of a table, as far as known: not divided or cast."""
    return _Search(evaluator).is_array(node, frame, 0)


class _Search:
    def __init__(self, evaluator: FileEvaluator) -> None:
        self.evaluator = evaluator

    def is_array(self, node: ast.expr, frame: Frame, depth: int) -> bool:
        if depth > _DEPTH:
            return False
        if isinstance(node, ast.Attribute):
            return node.attr in _TO_ARRAY and self.is_table(node.value, frame, depth + 1)
        if isinstance(node, ast.Subscript):
            return self.is_array(node.value, frame, depth + 1)
        if isinstance(node, ast.Name):
            return self._named(node, frame, depth, table=False)
        if not isinstance(node, ast.Call) or any(k.arg == "dtype" for k in node.keywords):
            return False
        name = called(node)
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if name in _TO_ARRAY and self.is_table(owner, frame, depth + 1):
                return True
            if name in _METHODS and self.is_array(owner, frame, depth + 1):
                return True
        first = next(iter(node.args), None)
        library = self.evaluator.value(node.func, frame)
        if first is None or name not in _FUNCTIONS or not isinstance(library, Dotted) or not library.name.startswith("numpy."):
            return False
        if len(node.args) > 1 and name in ("array", "asarray"):
            return False  # the second argument is a dtype
        return self.is_array(first, frame, depth + 1) or self.is_table(first, frame, depth + 1)

    def is_table(self, node: ast.expr, frame: Frame, depth: int) -> bool:
        if depth > _DEPTH:
            return False
        if isinstance(node, ast.Attribute):
            return node.attr in _OF_TABLES and self.is_table(node.value, frame, depth + 1)
        if isinstance(node, ast.Subscript):
            return self.is_table(node.value, frame, depth + 1)
        if isinstance(node, ast.Name):
            return self._named(node, frame, depth, table=True)
        if not isinstance(node, ast.Call):
            return False
        function = self.evaluator.value(node.func, frame)
        if isinstance(function, Dotted):
            return function.name in _READS
        return isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TABLES and self.is_table(node.func.value, frame, depth + 1)

    def _named(self, node: ast.Name, frame: Frame, depth: int, *, table: bool) -> bool:
        """Follows a name to the last assignment before it: a plain one, or a split of arrays into two parts each."""
        bindings, around = frame.bound(node.id)
        prior = [b for b in bindings if around is not frame or b.after <= start(node)]
        if not prior or prior[-1].kind != "value" or prior[-1].value is None:
            return False
        value, path = prior[-1].value, prior[-1].path
        if path and isinstance(value, (ast.Tuple, ast.List)) and path[0] < len(value.elts):
            value, path = value.elts[path[0]], path[1:]
        if path:
            splits = isinstance(value, ast.Call) and called(value) == "train_test_split" and len(path) == 1
            if not splits or not isinstance(value, ast.Call) or path[0] >= 2 * len(value.args):
                return False
            value = value.args[path[0] // 2]
        return (self.is_table if table else self.is_array)(value, around, depth + 1)
