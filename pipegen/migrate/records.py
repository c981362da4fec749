"""Settings objects: of classes of the file, data classes, named tuples, namespaces."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from pipegen.migrate.calling import arguments, bind
from pipegen.migrate.members import is_plain_class
from pipegen.migrate.nodes import flattened
from pipegen.migrate.values import Frame, Instance, Local, Record, RecordType, Seq, Unknown, Value, certain, plain

if TYPE_CHECKING:
    from pipegen.migrate.evaluator import Evaluator

_NAMESPACES = ("types.SimpleNamespace", "argparse.Namespace")


def instance(evaluator: Evaluator, node: ast.Call, frame: Frame, of: Local) -> Value | None:
    """Object of a class of the file, if its attributes can be followed; else `None`."""
    definition = cast("ast.ClassDef", of.node)
    fields = _fields(evaluator, of)
    if fields is not None:
        return _record(evaluator, node, frame, fields, definition)
    if not is_plain_class(evaluator, of):
        return None
    constructor = next((m for m in definition.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    if constructor is None:
        return _seen(evaluator, Instance(of)) if not node.args and not node.keywords else None
    args = bind(evaluator, constructor.args, node, frame, of.frame, method=True)
    if constructor.decorator_list or args is None or evaluator.is_too_deep(constructor, frame):
        return None
    inner = evaluator.frame(definition, of.frame, {})
    made = evaluator.frame(constructor, inner, args, call=node, caller=frame)
    made.depth = max(made.depth, frame.depth + 1)
    found = _seen(evaluator, Instance(of, made))
    for statement in flattened(constructor.body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            evaluator.value(statement.value, made)  # a method that sets attributes is called before they are read
    return found


def _seen(evaluator: Evaluator, made: Instance) -> Instance:
    """Registers an object with the evaluator and returns it."""
    evaluator.objects.setdefault(id(made.of.node), []).append(made)
    return made


def _fields(evaluator: Evaluator, of: Local) -> list[tuple[str, Value | None]] | None:
    """Fields of a data class or a `NamedTuple` with their defaults, in order; `None` for other classes."""
    definition = cast("ast.ClassDef", of.node)
    bases = [getattr(evaluator.value(b, of.frame), "name", "") for b in definition.bases]
    made_by = [evaluator.value(d.func if isinstance(d, ast.Call) else d, of.frame) for d in definition.decorator_list]
    data_class = not bases and [getattr(d, "name", "") for d in made_by] == ["dataclasses.dataclass"]
    if not data_class and not (bases == ["typing.NamedTuple"] and not made_by):
        return None
    odd = ("__init__", "__new__", "__getattr__", "__getattribute__", "__setattr__", "__post_init__")
    if any(isinstance(m, ast.FunctionDef) and m.name in odd for m in definition.body):
        return None
    inner = evaluator.frame(definition, of.frame, {})
    found: list[tuple[str, Value | None]] = []
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if any(word in ast.dump(statement.annotation) for word in ("ClassVar", "InitVar", "KW_ONLY")):
                return None
            found.append((statement.target.id, _default(evaluator, statement.value, inner)))
    return found


def _default(evaluator: Evaluator, node: ast.expr | None, inner: Frame) -> Value | None:
    if node is None:
        return None
    if not isinstance(node, ast.Call) or getattr(evaluator.value(node.func, inner), "name", "") != "dataclasses.field":
        return evaluator.value(node, inner)
    given = {k.arg: k.value for k in node.keywords}
    if set(given) <= {"default", "repr", "compare", "hash", "metadata"} and "default" in given:
        return evaluator.value(given["default"], inner)
    factory = given.get("default_factory")
    if set(given) == {"default_factory"} and isinstance(factory, ast.Lambda):
        return evaluator.value(factory.body, inner)
    return Unknown("its field has a default that is not followed", node.lineno) if factory is not None or "default" in given else None


def _record(
    evaluator: Evaluator, node: ast.Call, frame: Frame, fields: list[tuple[str, Value | None]], definition: ast.ClassDef | None = None
) -> Value | None:
    """Object that a call makes from these fields."""
    names = tuple(name for name, _ in fields)
    given, wrong = arguments(evaluator, node, frame, names)
    if "**" in given or wrong or len(node.args) > len(names):
        return None
    items = {name: given[name].value if name in given else default for name, default in fields}
    changed = evaluator.assignments(definition) if definition is not None else {}
    missing = Unknown("no value is given", node.lineno)
    unsure = Unknown("a method assigns it, too", node.lineno)
    return Record({name: unsure if name in changed else value if value is not None else missing for name, value in items.items()})


def of_library(evaluator: Evaluator, node: ast.Call, frame: Frame, name: str, values: list[Value]) -> Value | None:
    """Evaluates `namedtuple`, namespaces of the standard library and declarations of flags."""
    parts = name.split(".")
    if parts[-2:-1] == ["flags"] and parts[-1].startswith("DEFINE_") and values:
        flag = certain(values[0])
        return Record({"value": evaluator.outside.flag(flag, node.lineno)}) if isinstance(flag, str) else None
    if name in _NAMESPACES and not node.args:
        names = tuple(k.arg or "" for k in node.keywords)
        given, wrong = arguments(evaluator, node, frame, names)
        return None if "**" in given or wrong else Record({key: argument.value for key, argument in given.items()})
    if name != "collections.namedtuple" or len(node.args) != 2 or any(k.arg != "defaults" for k in node.keywords):
        return None
    told = plain(evaluator.value(node.args[1], frame))
    names = tuple(told.replace(",", " ").split()) if isinstance(told, str) else tuple(told) if isinstance(told, (list, tuple)) else ()
    defaults = evaluator.value(node.keywords[0].value, frame) if node.keywords else Seq(())
    if not names or not all(isinstance(n, str) for n in names) or not isinstance(defaults, Seq) or len(defaults.items) > len(names):
        return None
    return RecordType(names, defaults.items)


def of_type(evaluator: Evaluator, node: ast.Call, frame: Frame, of: RecordType) -> Value:
    """Object of a named tuple's type."""
    missing = len(of.names) - len(of.defaults)
    fields: list[tuple[str, Value | None]] = [(name, of.defaults[i - missing] if i >= missing else None) for i, name in enumerate(of.names)]
    return _record(evaluator, node, frame, fields) or Unknown("its fields are not followed", node.lineno)
