"""Evaluates calls: to a generator or an iterator of Keras, a table of pandas, a path, a plain value."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from pipegen.migrate import records
from pipegen.migrate.arithmetic import KnownPath, join
from pipegen.migrate.calling import arguments
from pipegen.migrate.labels import of_call, shuffled, split
from pipegen.migrate.signatures import CONSTRUCTOR, FLOWS, is_keras
from pipegen.migrate.tables import read_table, split_table, table_method
from pipegen.migrate.values import (
    ClassIndices,
    Const,
    Dotted,
    Flow,
    Frame,
    Generator,
    Local,
    Map,
    OneHot,
    Options,
    Parser,
    Record,
    RecordType,
    Seq,
    Table,
    Unknown,
    Value,
    Zipped,
    certain,
    derived,
    plain,
    unknown,
)

if TYPE_CHECKING:
    from pipegen.migrate.evaluate import Evaluator

_MOST_CLASSES = 20
_JOINS = ("os.path.join", "posixpath.join")
_SEQUENCES = ("builtins.tuple", "builtins.list")
_PLAIN: dict[str, Callable[[Any], Any]] = {
    **{f"builtins.{f.__name__}": f for f in (int, float, bool, abs, len)},
    **dict.fromkeys(("math.ceil", "numpy.ceil"), math.ceil),
    **dict.fromkeys(("math.floor", "numpy.floor"), math.floor),
}
_TEXTS = ("os.path.normpath", "os.path.expanduser", "builtins.str")


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
    generator = owner if isinstance(owner, (Generator, Unknown)) else Unknown("it is no ImageDataGenerator", node.lineno)
    return Flow(node.lineno, args, node, frame, wrong, method, generator)


def _instance(evaluator: Evaluator, node: ast.Call, frame: Frame, of: Local) -> Value:
    """An object of a class of the file: a generator where the class is a subclass that leaves the constructor alone."""
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
    """A class of the file and those between it and `ImageDataGenerator`; none where it is not derived from that."""
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
    if is_keras(name) and last == "to_categorical":
        return OneHot()
    if is_keras(name) and last == "load_data":
        pair = Seq((Unknown("it is a data set of Keras", node.lineno), ClassIndices()))
        return Seq((pair, pair))
    if last in ("read_csv", "read_table") and name.split(".")[0] == "pandas":
        return read_table(evaluator, node, frame, tab=last == "read_table")
    if last == "train_test_split" and name.split(".")[0] == "sklearn":
        several = len(values) > 1 and len(values) == len(node.args) and not any(isinstance(v, Table) for v in values)
        return split(values, node.lineno) if several else split_table(evaluator, node, frame, values)
    if last in ("shuffle", "resample") and name.split(".")[0] == "sklearn" and values and len(values) == len(node.args):
        return shuffled(values)
    given = _from_outside(evaluator, node, name, values) or records.of_library(evaluator, node, frame, name)
    if given is not None:
        return given
    if name == "builtins.zip" and len(values) == len(node.args) == 2 and not node.keywords:
        first, second = values
        if isinstance(first, Flow) and isinstance(second, Flow) and first is not second:
            return Zipped((first, second), node, frame)
    return _plain_call(evaluator, node, frame, name, values)


def _from_outside(evaluator: Evaluator, node: ast.Call, name: str, values: list[Value]) -> Value | None:
    """A parser of the command line, a flag, a variable of the environment."""
    parts = name.split(".")
    if name == "argparse.ArgumentParser":
        known = all(k.arg not in (None, "argument_default") for k in node.keywords)
        return Parser() if known else Unknown("its parser has defaults that are not followed", node.lineno)
    if name in ("os.environ.get", "os.getenv") and len(values) == 2 and not node.keywords:
        return evaluator.outside.environment(values[0], values[1], node.lineno)
    if parts[-2:-1] == ["flags"] and parts[-1].startswith("DEFINE_") and values:
        flag = certain(values[0])
        return Record({"value": evaluator.outside.flag(flag, node.lineno)}) if isinstance(flag, str) else None
    if name == "builtins.vars" and len(values) == 1 and isinstance(values[0], Options):
        return Options(as_map=True, fixed=values[0].fixed)
    return None


def _parsed(evaluator: Evaluator, node: ast.Call, frame: Frame, name: str) -> Value:
    """Returns what a parser of the command line gives: every option with its default, which the words of the command line may change."""
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "args")]
    if name not in ("parse_args", "parse_known_args") or len(given) > 1 or any(k.arg != "args" for k in node.keywords):
        return Unknown(f"it is the result of `.{name}(…)`", node.lineno)
    words = evaluator.value(given[0], frame) if given else None
    fixed = isinstance(words, (Seq, Const)) and plain(words) in ([], (), "")
    if isinstance(words, Seq) and not fixed:
        return Unknown("the words of its command line are written in the code", node.lineno)
    options = Options(fixed=fixed)
    return options if name == "parse_args" else Seq((options, Unknown("it is the rest of the command line", node.lineno)))


def _dict(evaluator: Evaluator, node: ast.Call, frame: Frame, values: list[Value]) -> Map | None:
    """Returns what `dict(…)` makes of words, and of a dict before them."""
    if len(values) != len(node.args) or len(values) > 1 or not all(isinstance(v, Map) for v in values):
        return None
    names = {k.arg or "" for k in node.keywords}
    found, more = arguments(evaluator, ast.Call(node.func, [], node.keywords), frame, tuple(names))
    if "**" in found or more:
        return None
    start = cast("Map", values[0]).items if values else {}
    return Map({**start, **{key: argument.value for key, argument in found.items()}})


def _plain_call(evaluator: Evaluator, node: ast.Call, frame: Frame, name: str, values: list[Value]) -> Value:
    made = _dict(evaluator, node, frame, values) if name == "builtins.dict" else None
    if made is not None:
        return made
    if name in ("copy.copy", "copy.deepcopy") and len(values) == len(node.args) == 1 and isinstance(values[0], (Map, Seq)):
        return values[0]
    unknown = Unknown(f"it is the result of `{name.removeprefix('builtins.')}`", node.lineno)
    is_path = name.startswith("pathlib.") and name.endswith("Path")
    if not is_path and name not in (*_JOINS, *_SEQUENCES, *_PLAIN, *_TEXTS):
        return unknown
    given = [plain(v) for v in values]
    bad = next((v for v in given if isinstance(v, Unknown)), None)
    if bad is not None or node.keywords or len(values) != len(node.args):
        return bad if bad is not None and bad.line else unknown
    texts, first = all(isinstance(g, str) for g in given), given[0] if len(given) == 1 else None
    if is_path and texts:
        return derived(KnownPath(join(*given) if given else "."), *values)
    if name in _JOINS and texts and given:
        return derived(join(*given), *values)
    if name in _TEXTS and isinstance(first, (str, int)):
        return derived(str(first), *values)
    if name in _SEQUENCES and len(values) == 1 and isinstance(values[0], Seq):
        return Seq(values[0].items, name.endswith("list"))
    try:
        return derived(_PLAIN[name](first), *values) if name in _PLAIN and len(given) == 1 else unknown
    except (TypeError, ValueError, ArithmeticError):
        return Unknown("the expression has no value", node.lineno)


def _method(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value:
    attribute = cast("ast.Attribute", node.func)
    owner, name = evaluator.value(attribute.value, frame), attribute.attr
    if isinstance(owner, Table):
        return table_method(owner, name, node)
    if isinstance(owner, Parser):
        return _parsed(evaluator, node, frame, name)
    if name == "copy" and not node.args and not node.keywords and isinstance(owner, (Map, Seq)):
        return owner
    text = plain(owner)
    values = [evaluator.value(a, frame) for a in node.args if not isinstance(a, ast.Starred)]
    given = [plain(v) for v in values]
    if isinstance(text, str) and name == "format" and not node.keywords and len(values) == len(node.args):
        plainly = "{:" not in text and "!" not in text and "{0:" not in text
        try:
            if plainly and all(isinstance(g, (str, int)) for g in given):
                return derived(text.format(*given), owner, *values)
        except (ValueError, IndexError, KeyError, AttributeError):
            pass
    if isinstance(text, KnownPath) and name == "joinpath" and all(isinstance(g, str) for g in given) and len(values) == len(node.args):
        return derived(KnownPath(join(text, *given)), owner, *values)
    return unknown(owner, f"it is the result of `.{name}(…)`", node.lineno)
