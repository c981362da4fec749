"""Evaluates calls that make a generator or iterator of Keras, a pandas table, a path or a plain value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from pipegen.migrate import records
from pipegen.migrate.arithmetic import plain_call, plain_method
from pipegen.migrate.calling import arguments
from pipegen.migrate.labels import are_several, of_arrays, of_call
from pipegen.migrate.outside import from_outside, parsed
from pipegen.migrate.signatures import CONSTRUCTOR, FLOWS, is_keras
from pipegen.migrate.tables import read_table, split_table, table_method
from pipegen.migrate.values import Dotted, Flow, Frame, Generator, Local, Map, Parser, RecordType, Seq, Table, Unknown, Value, Zipped

if TYPE_CHECKING:
    from pipegen.migrate.evaluator import Evaluator

_MOST_CLASSES = 20


def call_value(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value:
    """Evaluates a call."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in FLOWS:
        owner = evaluator.value(node.func.value, frame)
        if isinstance(owner, Generator) or (node.func.attr != "flow" and not isinstance(owner, (Dotted, Local))):
            return _flow(evaluator, node, frame, owner)
    labels = of_call(evaluator, node, frame)
    if labels is not None:
        return labels
    function = evaluator.value(node.func, frame)
    if isinstance(function, Local):
        if isinstance(function.node, ast.ClassDef):
            return _instance(evaluator, node, frame, function)
        return evaluator.returned(function, node, frame)[1]
    if isinstance(function, RecordType):
        return records.of_type(evaluator, node, frame, function)
    if isinstance(function, Dotted):
        return _of_library(evaluator, node, frame, function.name)
    if isinstance(node.func, ast.Attribute):
        return _method(evaluator, node, frame)
    return Unknown("it is the result of a call", node.lineno)


def _flow(evaluator: Evaluator, node: ast.Call, frame: Frame, owner: Value) -> Flow:
    method = cast("ast.Attribute", node.func).attr
    args, wrong = arguments(evaluator, node, frame, FLOWS[method])
    generator = owner if isinstance(owner, (Generator, Unknown)) else Unknown("it is not an ImageDataGenerator", node.lineno)
    return Flow(node.lineno, args, node, frame, wrong, method, generator)


def _instance(evaluator: Evaluator, node: ast.Call, frame: Frame, of: Local) -> Value:
    """Object of a class of the file: a generator, if the class is a subclass that keeps the constructor."""
    definition = cast("ast.ClassDef", of.node)
    classes = _generator_classes(evaluator, of)
    if not classes:
        made = records.instance(evaluator, node, frame, of)
        return made if made is not None else Unknown(f"it is an object of `{definition.name}`", node.lineno)
    if any(isinstance(m, ast.FunctionDef) and m.name == "__init__" for c in classes for m in c.body):
        return Unknown(f"`{definition.name}` is a subclass of ImageDataGenerator with a constructor of its own", node.lineno)
    args, wrong = arguments(evaluator, node, frame, CONSTRUCTOR)
    return Generator(node.lineno, args, node, frame, wrong, classes)


def _generator_classes(evaluator: Evaluator, of: Local, depth: int = 0) -> tuple[ast.ClassDef, ...]:
    """A class of the file and its bases up to `ImageDataGenerator`; empty if it does not derive from that."""
    definition = cast("ast.ClassDef", of.node)
    for base in (evaluator.value(b, of.frame) for b in definition.bases):
        if isinstance(base, Dotted) and _is_generator(base.name):
            return (definition,)
        if isinstance(base, Local) and isinstance(base.node, ast.ClassDef) and depth < _MOST_CLASSES:
            above = _generator_classes(evaluator, base, depth + 1)
            if above:
                return (definition, *above)
    return ()


def _is_generator(name: str) -> bool:
    return name.endswith(".ImageDataGenerator") and is_keras(name)


def _of_library(evaluator: Evaluator, node: ast.Call, frame: Frame, name: str) -> Value:
    if _is_generator(name):
        args, wrong = arguments(evaluator, node, frame, CONSTRUCTOR)
        return Generator(node.lineno, args, node, frame, wrong)
    last = name.rsplit(".", 1)[-1]
    values = [evaluator.value(a, frame) for a in node.args if not isinstance(a, ast.Starred)]
    if last in ("read_csv", "read_table") and name.split(".")[0] == "pandas":
        return read_table(evaluator, node, frame, tab=last == "read_table")
    if last == "train_test_split" and name.split(".")[0] == "sklearn" and not are_several(values, node):
        return split_table(evaluator, node, frame, values)
    given = (
        of_arrays(name, values, node)
        or from_outside(evaluator, node, name, values)
        or records.of_library(evaluator, node, frame, name, values)
    )
    if given is not None:
        return given
    if name == "builtins.zip" and len(values) == len(node.args) == 2 and not node.keywords:
        first, second = values
        if isinstance(first, Flow) and isinstance(second, Flow) and first is not second:
            return Zipped((first, second), node, frame)
    made = _dict(evaluator, node, frame, values) if name == "builtins.dict" else None
    return made if made is not None else plain_call(name, values, node)


def _dict(evaluator: Evaluator, node: ast.Call, frame: Frame, values: list[Value]) -> Map | None:
    """Evaluates `dict(…)` of keywords and an optional dict."""
    if len(values) != len(node.args) or len(values) > 1 or not all(isinstance(v, Map) for v in values):
        return None
    names = {k.arg or "" for k in node.keywords}
    found, more = arguments(evaluator, ast.Call(node.func, [], node.keywords), frame, tuple(names))
    if "**" in found or more:
        return None
    start = cast("Map", values[0]).items if values else {}
    return Map({**start, **{key: argument.value for key, argument in found.items()}})


def _method(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value:
    attribute = cast("ast.Attribute", node.func)
    owner, name = evaluator.value(attribute.value, frame), attribute.attr
    if isinstance(owner, Table):
        return table_method(owner, name, node)
    if isinstance(owner, Parser):
        return parsed(evaluator, node, frame, name)
    if name == "copy" and not node.args and not node.keywords and isinstance(owner, (Map, Seq)):
        return owner
    values = [evaluator.value(a, frame) for a in node.args if not isinstance(a, ast.Starred)]
    return plain_method(owner, name, values, node)
