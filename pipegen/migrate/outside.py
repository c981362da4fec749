"""Values from outside the code: options of the command line, flags of absl, the environment, each with its default."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import Any

from pipegen.frozen import dataclass
from pipegen.migrate.known import Evaluator, KnownPath, derived, origins_of, setting
from pipegen.migrate.nodes import DEFINITIONS, Comprehension, Row, called
from pipegen.migrate.values import Const, Dotted, Frame, Options, Parser, Seq, Unknown, Value, plain

_FLAGS = {
    "integer": (int,), "float": (int, float), "string": (str,), "bool": (bool,), "boolean": (bool,), "enum": (str,),
}  # fmt: skip
"""Supported kinds of flags, with the types of their defaults."""
_SWITCHES = {"store": None, "store_true": False, "store_false": True}
_CONVERTED = {"builtins.int": int, "builtins.float": float, "builtins.str": str, "pathlib.Path": KnownPath}
_NOWHERE = ("setdefault", "update", "pop", "clear", "putenv")


@dataclass(frozen=True)
class _Declared:
    """A call that declares an option or a flag, and the scopes around it, outermost first."""

    call: ast.Call
    scopes: tuple[ast.AST, ...]

    def frame(self, evaluator: Evaluator) -> Frame:
        """Frame of the call."""
        frame = evaluator.module
        for node in self.scopes:
            frame = evaluator.frame(node, frame, {})  # type: ignore[arg-type]
        return frame


@dataclass
class Outside:
    """Options, flags and variables that a file lets its user set."""

    evaluator: Evaluator
    tree: ast.Module
    _options: dict[str, list[_Declared]] = field(default_factory=dict)
    _flags: dict[str, list[_Declared]] = field(default_factory=dict)
    _reset: set[str] = field(default_factory=set)  # options whose default is set elsewhere, too; `*` for any
    _stored: set[str] = field(default_factory=set)  # environment variables that the code sets; `*` for any
    _read: bool = False
    _known: dict[tuple[str, bool], Value] = field(default_factory=dict)

    def option(self, name: str, line: int, *, fixed: bool = False) -> Value:
        """An option of the command line by its name in the namespace; `fixed` if no command line is parsed.

        Each call returns the same object, so that two arguments from one option are known to be equal.
        """
        if (name, fixed) not in self._known:
            self._scan()
            value = self._agreed([self._default(declared, name, fixed) for declared in self._options.get(name, [])], name, line)
            if "*" in self._reset or name in self._reset or self.evaluator.is_assigned("default"):
                value = Unknown(f"the default of `{name}` is set in a way that is not followed", line)
            self._known[name, fixed] = value
        return self._known[name, fixed]

    def flag(self, name: str, line: int) -> Value:
        """A flag of absl by its name."""
        self._scan()
        if "*" in self._reset:
            return Unknown(f"the default of the flag `{name}` is set in a way that is not followed", line)
        return self._agreed([self._flag_default(declared, name) for declared in self._flags.get(name, [])], name, line)

    def environment(self, name: Value, default: Value, line: int) -> Value:
        """A variable of the environment, with a default."""
        self._scan()
        key = plain(name)
        if not isinstance(key, str) or origins_of(name):
            return Unknown("it is an environment variable", line)
        if "*" in self._stored or key in self._stored:
            return Unknown(f"the code itself may set the environment variable `{key}`", line)
        if plain(default) is None or not isinstance(default, Const):
            return Unknown(f"the environment variable `{key}` has no known default", line)
        return setting(default, f"the environment variable `{key}`")

    # Defaults

    def _agreed(self, defaults: list[Value], name: str, line: int) -> Value:
        if not defaults:
            return Unknown(f"the option `{name}` is not declared in this file", line)
        first = plain(defaults[0])
        if any(type(plain(d)) is not type(first) or plain(d) != first for d in defaults[1:]):
            return Unknown(f"the option `{name}` has several defaults", line)
        return defaults[0]

    def _default(self, declared: _Declared, name: str, fixed: bool) -> Value:
        call, frame = declared.call, declared.frame(self.evaluator)
        args = {k.arg: self.evaluator.value(k.value, frame) for k in call.keywords if k.arg is not None}
        names = [plain(self.evaluator.value(a, frame)) for a in call.args]  # as users write them
        shown = next((n for n in names if n.startswith("--")), names[0] if names else name)
        positional = not shown.startswith("-")
        action = plain(args.get("action", Const("store")))
        if not isinstance(action, str) or action not in _SWITCHES:
            return Unknown(f"`{shown}` has an `action` that is not followed", call.lineno)
        required = plain(args.get("required", Const(False)))
        if required is not False or (positional and plain(args.get("nargs")) != "?"):
            return Unknown(f"`{shown}` has to be given on the command line", call.lineno)
        value = _converted(args.get("default", Const(_SWITCHES[action])), args.get("type"))
        if isinstance(value, Unknown) or plain(value) is None:
            reason = f": {value.reason}" if isinstance(value, Unknown) and value.reason else ""
            return Unknown(f"`{shown}` of the command line has no known default{reason}", call.lineno)
        return value if fixed else setting(value, f"`{shown}`")

    def _flag_default(self, declared: _Declared, name: str) -> Value:
        call, frame = declared.call, declared.frame(self.evaluator)
        kind = called(call).removeprefix("DEFINE_")
        node = next((k.value for k in call.keywords if k.arg in ("default", "default_value")), call.args[1] if len(call.args) > 1 else None)
        value = self.evaluator.value(node, frame) if node is not None else Unknown("")
        known = plain(value)
        if kind not in _FLAGS or not isinstance(known, _FLAGS[kind]) or (isinstance(known, bool) and bool not in _FLAGS[kind]):
            return Unknown(f"the flag `{name}` has no known default", call.lineno)
        return setting(derived(float(known) if kind == "float" else known, value), f"`--{name}`")

    # Reading the file

    def _scan(self) -> None:
        if not self._read:
            self._read = True
            self._visit(self.tree, ())

    def _visit(self, node: ast.AST, scopes: tuple[ast.AST, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                self._call(_Declared(child, scopes))
            elif isinstance(child, ast.Subscript) and not isinstance(child.ctx, ast.Load) and _is_environment(child.value):
                self._stored.add(_text(child.slice))
            inner = isinstance(child, (*DEFINITIONS, ast.Lambda, Comprehension))
            self._visit(child, (*scopes, child) if inner else scopes)

    def _call(self, declared: _Declared) -> None:
        call, name = declared.call, called(declared.call)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name == "add_argument" and owner is not None:
            self._options.setdefault(self._destination(declared), []).append(declared)
        elif name == "set_defaults":
            self._reset.update(k.arg or "*" for k in call.keywords)
        elif name == "set_default" or (name == "FLAGS" and any(isinstance(a, Row) and len(a.elts) > 1 for a in call.args)):
            self._reset.add("*")
        elif name.startswith("DEFINE_"):
            first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in ("name", "flag_name")), None)
            self._flags.setdefault(_text(first), []).append(declared)
        elif name in _NOWHERE and (name == "putenv" or (owner is not None and _is_environment(owner))):
            single = name in ("setdefault", "putenv", "pop") and call.args
            self._stored.add(_text(call.args[0]) if single else "*")

    def _destination(self, declared: _Declared) -> str:
        """Name of an option in the namespace; an uncertain name may be any, and makes all unknown."""
        call, frame = declared.call, declared.frame(self.evaluator)
        names = [Unknown("") if isinstance(a, ast.Starred) else plain(self.evaluator.value(a, frame)) for a in call.args]
        given = {k.arg: k.value for k in call.keywords}
        if None in given or not all(isinstance(n, str) and n for n in names) or not (names or "dest" in given):
            self._reset.add("*")
            return "*"
        if "dest" in given:
            named = plain(self.evaluator.value(given["dest"], frame))
            self._reset.update(() if isinstance(named, str) else ("*",))
            return named if isinstance(named, str) else "*"
        texts = [n for n in names if isinstance(n, str)]
        first = next((n for n in texts if n.startswith("--")), texts[0])
        return first.lstrip("-").replace("-", "_") if first.startswith("-") else first


def _converted(default: Value, kind: Value | None) -> Value:
    """A default as `argparse` returns it: only texts are converted by the option's type."""
    known = plain(default)
    if isinstance(known, Unknown) or not isinstance(default, (Const, Seq)):
        return known if isinstance(known, Unknown) else Unknown("it is not a plain value")
    if not isinstance(known, str) or kind is None or plain(kind) is None:
        return default
    convert: Any = _CONVERTED.get(kind.name) if isinstance(kind, Dotted) else None
    try:
        return derived(convert(known), default) if convert is not None else Unknown("its type is a function that is not followed")
    except ValueError:
        return Unknown("it is not of its type")


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "*"


def _is_environment(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (isinstance(node, ast.Name) and node.id == "environ")


def from_outside(evaluator: Evaluator, node: ast.Call, name: str, values: list[Value]) -> Value | None:
    """A parser of the command line, or a variable of the environment."""
    if name == "argparse.ArgumentParser":
        known = all(k.arg not in (None, "argument_default") for k in node.keywords)
        return Parser() if known else Unknown("its parser has defaults that are not followed", node.lineno)
    if name in ("os.environ.get", "os.getenv") and len(values) == 2 and not node.keywords:
        return evaluator.outside.environment(values[0], values[1], node.lineno)
    if name == "builtins.vars" and len(values) == 1 and isinstance(values[0], Options):
        return Options(as_map=True, fixed=values[0].fixed)
    return None


def parsed(evaluator: Evaluator, node: ast.Call, frame: Frame, name: str) -> Value:
    """Result of a command-line parser: every option with its default, which the command line may change."""
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "args")]
    if name not in ("parse_args", "parse_known_args") or len(given) > 1 or any(k.arg != "args" for k in node.keywords):
        return Unknown(f"it is the result of `.{name}(…)`", node.lineno)
    words = evaluator.value(given[0], frame) if given else None
    fixed = isinstance(words, (Seq, Const)) and plain(words) in ([], (), "")
    if isinstance(words, Seq) and not fixed:
        return Unknown("the code contains the arguments of its command line", node.lineno)
    options = Options(fixed=fixed)
    return options if name == "parse_args" else Seq((options, Unknown("it is the rest of the command line", node.lineno)))
