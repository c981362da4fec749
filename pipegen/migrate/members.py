"""Evaluates attributes of modules, `self` and objects, and values from outside: the command line, the environment."""

from __future__ import annotations

import ast
from dataclasses import field, replace
from typing import Any, cast

from pipegen.frozen import dataclass
from pipegen.migrate import values as v
from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.nodes import DEFINITIONS, Comprehension, Function, called, is_undecorated, lies_in, names_in, parameters, start
from pipegen.migrate.scopes import Assignment, is_of_self

_LATE = (1 << 30, 0)
_SPECIAL = ("__getattr__", "__getattribute__", "__setattr__", "__new__", "__slots__")
"""Methods that make attributes differ from what is assigned."""


def attribute(evaluator: Evaluator, node: ast.Attribute, frame: v.Frame) -> v.Value:
    """Evaluates `owner.name`."""
    if is_of_self(node) and frame.class_frame is not None:
        return _of_self(evaluator, node, frame)
    owner = evaluator.value(node.value, frame)
    if isinstance(owner, v.Dotted):
        return v.Dotted(f"{owner.name}.{node.attr}")
    if isinstance(owner, v.Flow) and node.attr == "batch_size":
        return owner.args["batch_size"].value if "batch_size" in owner.args else v.Const(32)
    if isinstance(owner, v.Table) and node.attr in ("iloc", "loc"):
        return v.Unknown("its rows are selected by code", node.lineno)
    if isinstance(owner, (v.Class, v.Options, v.Record, v.Instance)):
        return _of_object(evaluator, owner, node)
    return v.unknown(owner, f"`.{node.attr}` is known only at run time", node.lineno)


def of_class(evaluator: Evaluator, owner: v.Class, name: str, line: int) -> v.Value:
    """Evaluates a name in the body of a class, or of its base in the file."""
    definition = owner.node
    inner = evaluator.frame(definition, owner.frame, {})
    if name in inner.scope.bindings:
        return evaluator.name(name, _LATE, inner)
    for base in definition.bases:
        above = evaluator.value(base, owner.frame)
        if isinstance(above, v.Dotted) and above.name == "builtins.object":
            continue
        if len(definition.bases) > 1 or not isinstance(above, v.Class) or above.node is definition:
            return v.Unknown(f"`{name}` may come from a base class of `{definition.name}`", line)
        return of_class(evaluator, above, name, line)
    return v.Unknown(f"`{name}` is not assigned in `{definition.name}`", line)


def is_plain_class(evaluator: Evaluator, of: v.Class) -> bool:
    """True if the attributes of a class's objects are just the assigned ones."""
    definition = of.node
    if definition.decorator_list or definition.keywords:
        return False
    names = evaluator.frame(definition, of.frame, {}).scope.bindings
    if any(name in names for name in _SPECIAL):
        return False
    bases = [evaluator.value(base, of.frame) for base in definition.bases]
    if all(isinstance(b, v.Dotted) and b.name == "builtins.object" for b in bases):
        return True
    single = bases[0] if len(bases) == 1 else None
    return isinstance(single, v.Class) and single.node is not definition and "__init__" in names and is_plain_class(evaluator, single)


def _of_object(evaluator: Evaluator, owner: v.Class | v.Options | v.Record | v.Instance, node: ast.Attribute) -> v.Value:
    """Attribute of a class, a command line's namespace, a record, or an object of the file: assigned by its constructor or its class."""
    name, line = node.attr, node.lineno
    if evaluator.is_assigned(name):
        return v.Unknown(f"`.{name}` is assigned elsewhere too", line)
    if isinstance(owner, v.Class):
        return of_class(evaluator, owner, name, line)
    if isinstance(owner, v.Options):
        return v.Unknown("it is a dict", line) if owner.as_map else evaluator.outside.option(name, line, fixed=owner.fixed)
    if isinstance(owner, v.Record):
        return owner.items.get(name, v.Unknown(f"`.{name}` is known only at run time", line))
    definition = owner.of.node
    found = evaluator.assignments(definition).get(name, [])
    if any(name in evaluator.assignments(above) for above in _classes_above(evaluator, owner.of)):
        return v.Unknown(f"`.{name}` is assigned by a base class of `{definition.name}`", line)
    if not found:
        return _bound(of_class(evaluator, owner.of, name, line), owner)
    if len(found) > 1 or found[0].value is None or not _by_constructor(found[0]) or owner.made is None:
        return v.Unknown(f"`.{name}` is assigned in `{definition.name}` in a way that is not followed", line)
    return evaluator.value(found[0].value, owner.made)


def _classes_above(evaluator: Evaluator, of: v.Class) -> list[ast.ClassDef]:
    found: list[ast.ClassDef] = []
    todo = [of]
    while todo and len(found) < 20:
        here = todo.pop()
        classes = [above for base in here.node.bases if isinstance(above := evaluator.value(base, here.frame), v.Class)]
        found += [c.node for c in classes]
        todo += classes
    return found


def _by_constructor(assignment: Assignment) -> bool:
    """True if every object has the attribute from its start."""
    return assignment.method.name == "__init__" and assignment.straight


def _bound(value: v.Value, owner: v.Value) -> v.Value:
    """A class attribute as its object returns it: a function becomes a method, a property its value."""
    if not isinstance(value, v.Local) or not isinstance(value.node, Function):
        return value
    decorators = [d.id if isinstance(d, ast.Name) else "" for d in value.node.decorator_list]
    if decorators == ["property"]:
        return v.Unknown(f"`.{value.node.name}` is a property", value.node.lineno)
    return value if decorators and is_undecorated(value.node) else replace(value, bound=owner)


def _receiver(evaluator: Evaluator, node: ast.Attribute, frame: v.Frame, of: v.Frame) -> v.Instance | None:
    """The object `self`: the one that the method is called on, or the only one of its class in the file."""
    known = evaluator.value(node.value, frame)
    if isinstance(known, v.Instance):
        return known if known.of.node is of.scope.node else None
    made = evaluator.objects.get(id(of.scope.node), [])
    return made[0] if len(made) == 1 else None


def _of_self(evaluator: Evaluator, node: ast.Attribute, frame: v.Frame) -> v.Value:
    """Evaluates `self.name`, if the class assigns it only once."""
    inner = cast("v.Frame", frame.class_frame)
    of = v.Class(cast("ast.ClassDef", inner.scope.node), cast("v.Frame", inner.parent))
    definition = of.node
    name, line = node.attr, node.lineno
    found = evaluator.assignments(definition).get(name, [])
    if evaluator.is_assigned(name) or name in evaluator.given_below(definition):
        return v.Unknown(f"`self.{name}` is assigned elsewhere too", line)
    if not found:
        owner = evaluator.value(node.value, frame)
        return _bound(of_class(evaluator, of, name, line), owner)
    if len(found) > 1 or found[0].value is None:
        how = f"{len(found)} times" if len(found) > 1 else "in a way that is not followed"
        return v.Unknown(f"`self.{name}` is assigned {how}", line)
    home = found[0].method
    above = _classes_above(evaluator, of)
    bound = {b.id for d in above for b in ast.walk(d) if isinstance(b, ast.Name)}
    if any(name in evaluator.assignments(d) for d in above):
        return v.Unknown(f"`self.{name}` is also assigned by a base class of `{definition.name}`", line)
    if (name in bound or name in inner.scope.bindings) and (not _by_constructor(found[0]) or frame.scope.node is home):
        return v.Unknown(f"`self.{name}` has one value in the class and another in `{home.name}`", line)
    if frame.scope.node is home:
        return evaluator.value(found[0].value, frame)
    receiver = _receiver(evaluator, node, frame, inner)
    if receiver is None or receiver.made is None or receiver.made.scope.node is not home:
        called = evaluator.called.get(id(home)) if evaluator.calls[home.name] == 1 else None
        return evaluator.value(found[0].value, called or evaluator.frame(home, inner, {}))
    value = evaluator.value(found[0].value, receiver.made)
    given = names_in(found[0].value) & {a.arg for a in parameters(home.args)}
    return v.told({name: value}, f"the caller of `{definition.name}`").get(name, value) if given else value


_SWITCHES = {"store": None, "store_true": False, "store_false": True}
_CONVERTED = {"builtins.int": int, "builtins.float": float, "builtins.str": str, "pathlib.Path": v.KnownPath}
_NOWHERE = ("setdefault", "update", "pop", "clear", "putenv")


@dataclass
class Outside:
    """Options and variables that a file lets its user set."""

    evaluator: Evaluator
    tree: ast.Module
    _options: dict[str, list[ast.Call]] = field(default_factory=dict)  # calls that declare each of them
    _reset: set[str] = field(default_factory=set)  # options whose default is set elsewhere, too; `*` for any
    _stored: set[str] = field(default_factory=set)  # environment variables that the code sets; `*` for any
    _read: bool = False
    _known: dict[tuple[str, bool], v.Value] = field(default_factory=dict)

    def option(self, name: str, line: int, *, fixed: bool = False) -> v.Value:
        """An option of the command line by its name in the namespace; `fixed` if no command line is parsed.

        Each call returns the same object, so that two arguments from one option are known to be equal.
        """
        if (name, fixed) not in self._known:
            self._scan()
            value = self._agreed([self._default(call, name, fixed) for call in self._options.get(name, [])], name, line)
            if "*" in self._reset or name in self._reset or self.evaluator.is_assigned("default"):
                value = v.Unknown(f"the default of `{name}` is set in a way that is not followed", line)
            self._known[name, fixed] = value
        return self._known[name, fixed]

    def environment(self, name: v.Value, default: v.Value, line: int) -> v.Value:
        """A variable of the environment, with a default."""
        self._scan()
        key = v.plain(name)
        if not isinstance(key, str) or v.origins_of(name):
            return v.Unknown("it is an environment variable", line)
        if "*" in self._stored or key in self._stored:
            return v.Unknown(f"the code itself may set the environment variable `{key}`", line)
        if v.plain(default) is None or not isinstance(default, v.Const):
            return v.Unknown(f"the environment variable `{key}` has no known default", line)
        return v.setting(default, f"the environment variable `{key}`")

    # Defaults

    def _agreed(self, defaults: list[v.Value], name: str, line: int) -> v.Value:
        if not defaults:
            return v.Unknown(f"the option `{name}` is not declared in this file", line)
        first = v.plain(defaults[0])
        if any(type(v.plain(d)) is not type(first) or v.plain(d) != first for d in defaults[1:]):
            return v.Unknown(f"the option `{name}` has several defaults", line)
        return defaults[0]

    def _default(self, call: ast.Call, name: str, fixed: bool) -> v.Value:
        frame = self._frame(call)
        args = {k.arg: self.evaluator.value(k.value, frame) for k in call.keywords if k.arg is not None}
        names = [v.plain(self.evaluator.value(a, frame)) for a in call.args]  # as users write them
        shown = next((n for n in names if n.startswith("--")), names[0] if names else name)
        positional = not shown.startswith("-")
        action = v.plain(args.get("action", v.Const("store")))
        if not isinstance(action, str) or action not in _SWITCHES:
            return v.Unknown(f"`{shown}` has an `action` that is not followed", call.lineno)
        required = v.plain(args.get("required", v.Const(False)))
        if required is not False or (positional and v.plain(args.get("nargs")) != "?"):
            return v.Unknown(f"`{shown}` has to be given on the command line", call.lineno)
        value = _converted(args.get("default", v.Const(_SWITCHES[action])), args.get("type"))
        if isinstance(value, v.Unknown) or v.plain(value) is None:
            reason = f": {value.reason}" if isinstance(value, v.Unknown) and value.reason else ""
            return v.Unknown(f"`{shown}` of the command line has no known default{reason}", call.lineno)
        return value if fixed else v.setting(value, f"`{shown}`")

    # Reading the file

    def _scan(self) -> None:
        for node in () if self._read else sorted(ast.walk(self.tree), key=start):
            self._read = True
            if isinstance(node, ast.Call):
                self._call(node, called(node))
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _is_environment(node.value):
                self._stored.add(_text(node.slice))

    def _frame(self, call: ast.Call) -> v.Frame:
        """Frame of the scopes around a call."""
        frame = self.evaluator.module
        for node in ast.walk(self.tree):  # outer ones first
            if isinstance(node, (*DEFINITIONS, ast.Lambda, Comprehension)) and lies_in(call, node):
                frame = self.evaluator.frame(node, frame, {})
        return frame

    def _call(self, call: ast.Call, name: str) -> None:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name == "add_argument" and owner is not None:
            self._options.setdefault(self._destination(call), []).append(call)
        elif name == "set_defaults":
            self._reset.update(k.arg or "*" for k in call.keywords)
        elif name in _NOWHERE and (name == "putenv" or (owner is not None and _is_environment(owner))):
            single = name in ("setdefault", "putenv", "pop") and call.args
            self._stored.add(_text(call.args[0]) if single else "*")

    def _destination(self, call: ast.Call) -> str:
        """Name of an option in the namespace; an uncertain name may be any, and makes all unknown."""
        frame = self._frame(call)
        names = [v.Unknown("") if isinstance(a, ast.Starred) else v.plain(self.evaluator.value(a, frame)) for a in call.args]
        given = {k.arg: k.value for k in call.keywords}
        if None in given or not all(isinstance(n, str) and n for n in names) or not (names or "dest" in given):
            self._reset.add("*")
            return "*"
        if "dest" in given:
            named = v.plain(self.evaluator.value(given["dest"], frame))
            self._reset.update(() if isinstance(named, str) else ("*",))
            return named if isinstance(named, str) else "*"
        texts = [n for n in names if isinstance(n, str)]
        first = next((n for n in texts if n.startswith("--")), texts[0])
        return first.lstrip("-").replace("-", "_") if first.startswith("-") else first


def _converted(default: v.Value, kind: v.Value | None) -> v.Value:
    """A default as `argparse` returns it: only texts are converted by the option's type."""
    known = v.plain(default)
    if isinstance(known, v.Unknown) or not isinstance(default, (v.Const, v.Seq)):
        return known if isinstance(known, v.Unknown) else v.Unknown("it is not a plain value")
    if not isinstance(known, str) or kind is None or v.plain(kind) is None:
        return default
    convert: Any = _CONVERTED.get(kind.name) if isinstance(kind, v.Dotted) else None
    try:
        return v.derived(convert(known), default) if convert is not None else v.Unknown("its type is a function that is not followed")
    except ValueError:
        return v.Unknown("it is not of its type")


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "*"


def _is_environment(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (isinstance(node, ast.Name) and node.id == "environ")


def from_outside(evaluator: Evaluator, node: ast.Call, name: str, values: list[v.Value]) -> v.Value | None:
    """A parser of the command line, or a variable of the environment."""
    if name == "argparse.ArgumentParser":
        known = all(k.arg not in (None, "argument_default") for k in node.keywords)
        return v.Parser() if known else v.Unknown("its parser has defaults that are not followed", node.lineno)
    if name in ("os.environ.get", "os.getenv") and len(values) == 2 and not node.keywords:
        return evaluator.outside.environment(values[0], values[1], node.lineno)
    if name == "builtins.vars" and len(values) == 1 and isinstance(values[0], v.Options):
        return v.Options(as_map=True, fixed=values[0].fixed)
    return None


def parsed(evaluator: Evaluator, node: ast.Call, frame: v.Frame, name: str) -> v.Value:
    """Result of a command-line parser: every option with its default, which the command line may change."""
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "args")]
    if name not in ("parse_args", "parse_known_args") or len(given) > 1 or any(k.arg != "args" for k in node.keywords):
        return v.Unknown(f"it is the result of `.{name}(…)`", node.lineno)
    words = evaluator.value(given[0], frame) if given else None
    fixed = isinstance(words, (v.Seq, v.Const)) and v.plain(words) in ([], (), "")
    if isinstance(words, v.Seq) and not fixed:
        return v.Unknown("the code contains the arguments of its command line", node.lineno)
    options = v.Options(fixed=fixed)
    return options if name == "parse_args" else v.Seq((options, v.Unknown("it is the rest of the command line", node.lineno)))
