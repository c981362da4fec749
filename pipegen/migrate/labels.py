"""Finds whether arrays of labels are class indices or one-hot rows, through what code does to them on the way to an iterator."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.values import ClassIndices, Frame, OneHot, Seq, Unknown, Value

if TYPE_CHECKING:
    from pipegen.migrate.evaluate import Evaluator

_KEEPING = ("array", "asarray", "astype", "copy", "concatenate")
"""Functions of NumPy, and methods of arrays, that keep the form of labels."""
_ENCODERS = ("sklearn.preprocessing.LabelEncoder", "sklearn.preprocessing._label.LabelEncoder")


def form_of(value: Value | None) -> type[Value] | None:
    """The form of labels that a value is known to have."""
    return type(value) if isinstance(value, (OneHot, ClassIndices)) else None


def of_call(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value | None:
    """The labels that a function or a method of an array gives; `None` for any other call."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in ("fit_transform", "transform") and isinstance(node.func, ast.Attribute):
        return ClassIndices(node.lineno) if _is_encoder(evaluator, node.func.value, frame) else None
    if name not in _KEEPING:
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in ("astype", "copy") and owner is not None and form_of(evaluator.value(owner, frame)) is not None:
        return evaluator.value(owner, frame)
    joined = name == "concatenate" and len(node.args) == 1 and not node.keywords and isinstance(node.args[0], (ast.Tuple, ast.List))
    parts = node.args[0].elts if joined and isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args[: name != "concatenate"]
    values = [evaluator.value(part, frame) for part in parts]
    forms = {form_of(value) for value in values}
    return values[0] if len(forms) == 1 and None not in forms else None


def _is_encoder(evaluator: Evaluator, node: ast.expr, frame: Frame) -> bool:
    """Returns whether an expression is a `LabelEncoder`, or a name that such an object is assigned to."""
    if isinstance(node, ast.Call):
        return getattr(evaluator.value(node.func, frame), "name", "") in _ENCODERS
    here: Frame | None = frame
    while isinstance(node, ast.Name) and here is not None:
        bindings = here.scope.bindings.get(node.id, [])
        if bindings:
            return len(bindings) == 1 and isinstance(bindings[0].value, ast.Call) and _is_encoder(evaluator, bindings[0].value, here)
        here = here.parent
    return False


def of_rows(value: Value, chosen: ast.expr) -> Value | None:
    """Some rows of labels; `None` for what is none, and for columns."""
    if isinstance(value, ClassIndices):
        return value
    return value if isinstance(value, OneHot) and not isinstance(chosen, ast.Tuple) else None


def shuffled(values: list[Value]) -> Value:
    """Returns what scikit-learn's `shuffle` and `resample` give: each array as it is, in another order."""
    return values[0] if len(values) == 1 else Seq(tuple(values), is_list=True)


def split(values: list[Value], line: int) -> Seq:
    """Returns what `train_test_split` gives for several arrays: two parts of each."""
    unknown = Unknown("the data is split by `train_test_split`", line)
    return Seq(tuple(value if form_of(value) is not None else unknown for value in values for _ in range(2)), is_list=True)
