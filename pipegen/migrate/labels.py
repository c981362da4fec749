"""Data of iterators: the kinds of labels, also of arrays that code transforms, the folders that they read, and integers from tables."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from pipegen.migrate.known import Evaluator
from pipegen.migrate.nodes import Row, called, start
from pipegen.migrate.signatures import is_keras
from pipegen.migrate.values import ClassIndices, Dotted, Flow, Frame, Generator, OneHot, Seq, Table, Unknown, Value

_KEEPING = ("array", "asarray", "astype", "copy", "concatenate")  # functions of NumPy and methods of arrays that keep the form of labels
_ENCODERS = ("sklearn.preprocessing.LabelEncoder", "sklearn.preprocessing._label.LabelEncoder")


def form_of(value: Value | None) -> type[Value] | None:
    """Form of labels of a value, if known."""
    return type(value) if isinstance(value, (OneHot, ClassIndices)) else None


def of_call(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value | None:
    """Labels that a function or a method of an array returns; `None` for other calls."""
    name = called(node)
    if name in ("fit_transform", "transform") and isinstance(node.func, ast.Attribute):
        return ClassIndices() if _is_encoder(evaluator, node.func.value, frame) else None
    if name not in _KEEPING:
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in ("astype", "copy") and owner is not None and form_of(evaluator.value(owner, frame)) is not None:
        return evaluator.value(owner, frame)
    joined = name == "concatenate" and len(node.args) == 1 and not node.keywords and isinstance(node.args[0], Row)
    parts = node.args[0].elts if joined and isinstance(node.args[0], Row) else node.args[: name != "concatenate"]
    values = [evaluator.value(part, frame) for part in parts]
    forms = {form_of(value) for value in values}
    return values[0] if len(forms) == 1 and None not in forms else None


def _is_encoder(evaluator: Evaluator, node: ast.expr, frame: Frame) -> bool:
    if isinstance(node, ast.Call):
        return getattr(evaluator.value(node.func, frame), "name", "") in _ENCODERS
    bindings, around = frame.bound(node.id) if isinstance(node, ast.Name) else ([], frame)
    return len(bindings) == 1 and isinstance(bindings[0].value, ast.Call) and _is_encoder(evaluator, bindings[0].value, around)


def of_rows(value: Value, chosen: ast.expr) -> Value | None:
    """Some rows of labels; `None` for other values and for columns."""
    if isinstance(value, ClassIndices):
        return value
    return value if isinstance(value, OneHot) and not isinstance(chosen, ast.Tuple) else None


def of_arrays(name: str, values: list[Value], node: ast.Call) -> Value | None:
    """Labels and arrays that functions of Keras and scikit-learn return; `None` for other functions."""
    last, several = name.rsplit(".", 1)[-1], are_several(values, node)
    if is_keras(name) and last == "to_categorical":
        return OneHot()
    if is_keras(name) and last == "load_data":
        pair = Seq((Unknown("it is a dataset of Keras", node.lineno), ClassIndices()))
        return Seq((pair, pair))
    if last in ("shuffle", "resample") and name.split(".")[0] == "sklearn" and values and len(values) == len(node.args):
        return values[0] if len(values) == 1 else Seq(tuple(values), is_list=True)  # each array with the same content, in another order
    if last == "train_test_split" and name.split(".")[0] == "sklearn" and several:  # two parts of each
        split = Unknown("the data is split by `train_test_split`", node.lineno)
        return Seq(tuple(value if form_of(value) is not None else split for value in values for _ in range(2)), is_list=True)
    return None


def are_several(values: list[Value], node: ast.Call) -> bool:
    """True if a call has several arrays and no table."""
    return len(values) > 1 and len(values) == len(node.args) and not any(isinstance(v, Table) for v in values)


UNLABELLED = (None, "input")
WITHOUT_CLASSES = ("raw", "other", "multi_output")  # class modes whose labels are numbers or several columns


def takes_share(flow: Flow) -> bool:
    """True if `subset` is less than all of the data, as far as known."""
    return not isinstance(flow.generator, Generator) or flow.generator.known("validation_split") not in (None, 0, False)


def class_mode(flow: Flow) -> Any:
    """Class mode of an iterator, in Keras' words; for `flow`, from its labels."""
    if flow.method == "flow":
        return "categorical" if isinstance(flow.argument("y"), OneHot) else "sparse"
    return flow.get("class_mode", "categorical")


def weighted(flow: Flow) -> bool:
    """True if the examples have weights."""
    return flow.known({"flow": "sample_weight", "flow_from_dataframe": "weight_col"}.get(flow.method, "")) is not None


def folder_below(flow: Flow) -> str | None:
    """The one folder below `directory` that an iterator without labels reads; empty for all, `None` if unknown."""
    classes = flow.get("classes")
    if all_in_one(flow) or flow.known("classes") is None:
        return ""
    single = isinstance(classes, (list, tuple)) and len(classes) == 1 and isinstance(classes[0], str)
    return classes[0] if single else None


def names_folders(flow: Flow) -> bool:
    """True if an iterator reads only the folders in `classes`."""
    classes = flow.get("classes")
    named = isinstance(classes, (list, tuple)) and bool(classes) and all(isinstance(c, str) for c in classes)
    return flow.method == "flow_from_directory" and named and not all_in_one(flow)


def all_in_one(flow: Flow) -> bool:
    """True if a folder is read without classes: by `classes=['.']`, or as the only class of its parent."""
    classes = flow.get("classes")
    return flow.method == "flow_from_directory" and isinstance(classes, (list, tuple)) and list(classes) in (["."], [""])


_READS = ("pandas.read_csv", "pandas.read_table", "pandas.read_excel", "pandas.DataFrame")
_OF_TABLES = ("drop", "sample", "head", "tail", "copy", "reset_index", "dropna", "sort_values", "sort_index", "iloc", "loc", "T")
"""Methods and attributes of tables that keep the cells."""
_TO_ARRAY = ("values", "to_numpy", "as_matrix")
_METHODS = ("reshape", "copy", "squeeze", "transpose")
_FUNCTIONS = ("array", "asarray", "reshape", "expand_dims", "squeeze", "vstack", "stack", "transpose")
"""Functions and methods that keep the dtype of an array."""
_DEPTH = 30


def hold_table_numbers(evaluator: Evaluator, node: ast.expr, frame: Frame, *, table: bool = False, depth: int = 0) -> bool:
    """True if an array has the integers of a table, as far as known: not divided or cast. With `table`, true for the table itself."""
    if depth > _DEPTH:
        return False
    found = partial(hold_table_numbers, evaluator, frame=frame, depth=depth + 1)
    if isinstance(node, ast.Subscript):
        return found(node.value, table=table)
    if isinstance(node, ast.Attribute):
        return node.attr in (_OF_TABLES if table else _TO_ARRAY) and found(node.value, table=True)
    if isinstance(node, ast.Name):
        value, around = _assigned(node, frame)
        return value is not None and hold_table_numbers(evaluator, value, around, table=table, depth=depth + 1)
    if not isinstance(node, ast.Call) or (not table and any(k.arg == "dtype" for k in node.keywords)):
        return False
    name, function = called(node), evaluator.value(node.func, frame)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if table and isinstance(function, Dotted):
        return function.name in _READS
    if table:
        return owner is not None and name in _OF_TABLES and found(owner, table=True)
    if owner is not None and ((name in _TO_ARRAY and found(owner, table=True)) or (name in _METHODS and found(owner))):
        return True
    if not node.args or name not in _FUNCTIONS or not isinstance(function, Dotted) or not function.name.startswith("numpy."):
        return False
    if len(node.args) > 1 and name in ("array", "asarray"):
        return False  # the second argument is a dtype
    return found(node.args[0]) or found(node.args[0], table=True)


def _assigned(node: ast.Name, frame: Frame) -> tuple[ast.expr | None, Frame]:
    """Value of the last assignment to a name before it, and its frame: a plain one, or a split of arrays into two parts each."""
    bindings, around = frame.bound(node.id)
    prior = [b for b in bindings if around is not frame or b.after <= start(node)]
    if not prior or prior[-1].kind != "value":
        return None, around
    value, path = prior[-1].value, prior[-1].path
    if path and isinstance(value, Row) and path[0] < len(value.elts):
        value, path = value.elts[path[0]], path[1:]
    if not path:
        return value, around
    splits = isinstance(value, ast.Call) and called(value) == "train_test_split" and len(path) == 1 and path[0] < 2 * len(value.args)
    return value.args[path[0] // 2] if splits and isinstance(value, ast.Call) else None, around
