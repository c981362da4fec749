"""Known values of expressions: plain values, objects of Keras or pandas, or unknown, with the reason; operators and functions on them."""

from __future__ import annotations

import ast
import math
import operator
import posixpath
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, Literal, TypeGuard

from pipegen.frozen import dataclass
from pipegen.migrate.scopes import Binding, Scope


@dataclass(frozen=True, eq=False)
class Value:
    """Base class of the following."""


@dataclass(frozen=True, eq=False)
class Unknown(Value):
    """A value that only running the code would show: the reason, to follow "because", and the line."""

    reason: str
    line: int = 0


@dataclass(frozen=True, eq=False)
class Const(Value):
    """A number, a text, a boolean or `None`."""

    value: Any
    origins: tuple[str, ...] = ()  # what outside the code may override it, such as `--batch`, in words for a sentence


@dataclass(frozen=True, eq=False)
class Parser(Value):
    """An `argparse.ArgumentParser`."""


@dataclass(frozen=True, eq=False)
class Options(Value):
    """Result of a command-line parser."""

    as_map: bool = False  # true for a dict, by `vars`
    fixed: bool = False  # true if it parsed an empty command line, so that every option has its default


@dataclass(frozen=True, eq=False)
class Seq(Value):
    """A tuple or a list."""

    items: tuple[Value, ...]
    is_list: bool = False


@dataclass(frozen=True, eq=False)
class Map(Value):
    """A dict with text keys."""

    items: dict[str, Value]


@dataclass(frozen=True, eq=False)
class Dotted(Value):
    """An imported object, by full name, such as `keras.applications.vgg16.preprocess_input`."""

    name: str


@dataclass(frozen=True, eq=False)
class Local(Value):
    """A function or lambda of the file, and the frame of its definition."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    frame: Frame
    bound: Value | None = None  # for a method: the object that it is called on, which may be unknown


@dataclass(frozen=True, eq=False)
class Class(Value):
    """A class of the file, and the frame of its definition."""

    node: ast.ClassDef
    frame: Frame


@dataclass(frozen=True, eq=False)
class Instance(Value):
    """An object of a plain class of the file."""

    of: Class
    made: Frame | None = None  # the frame of its constructor's call; `None` without a constructor


@dataclass(frozen=True, eq=False)
class Record(Value):
    """An object with only named values: a dataclass or a named tuple."""

    items: dict[str, Value]


@dataclass(frozen=True, eq=False)
class Table(Value):
    """A DataFrame that was read from a file."""

    path: str
    separator: str | None = None  # the text between cells, if given
    header: bool = True  # true if the first row has the column names
    names: tuple[str, ...] | None = None  # column names in the code, for a table without a header
    changed: frozenset[str] = frozenset()  # columns that the code computes
    part: str = ""  # `train` or `test` of `split`, for a share of it
    split: Share | None = None
    origins: tuple[str, ...] = ()  # what outside the code may choose another file, or another way to read it
    named: tuple[ast.expr, Frame] | None = None  # the expression of the path, and its frame


@dataclass(frozen=True, eq=False)
class Share(Value):
    """Result of `train_test_split`: the share of the second part, and whether it is stratified."""

    node: ast.Call
    test: float | int
    stratified: bool


@dataclass(frozen=True, eq=False)
class Labels(Value):
    """Labels as an array: rows made by `to_categorical`, or integers, such as in Keras' own datasets."""

    form: Literal["one-hot", "indices"]


@dataclass(eq=False)
class Frame:
    """A scope at run time: its arguments, and the frame around its definition."""

    scope: Scope
    parent: Frame | None = None
    args: dict[str, Value] = field(default_factory=dict)
    depth: int = 0
    class_frame: Frame | None = None  # for a method: the frame of its class
    known: dict[int, Value] = field(default_factory=dict)  # values of expressions, by node id

    @property
    def outward(self) -> Iterator[Frame]:
        """The frame itself and the frames around it, innermost first."""
        here: Frame | None = self
        while here is not None:
            yield here
            here = here.parent

    def bound(self, name: str) -> tuple[list[Binding], Frame]:
        """Bindings of a name read here, and their frame."""
        return next(((f.scope.bindings[name], f) for f in self.outward if f.scope.bindings.get(name)), ([], self))

    @property
    def module(self) -> Frame:
        """The outermost frame."""
        return self if self.parent is None else self.parent.module


@dataclass(frozen=True)
class Argument:
    """An argument of a call, bound to a name of the signature."""

    name: str
    value: Value
    node: ast.expr  # the expression; for an unpacked argument, the dict
    positional: bool = False
    unpacked: bool = False  # true if it comes from an unpacked dict

    @property
    def line(self) -> int:
        """Line in the original code."""
        return self.node.lineno


@dataclass(frozen=True, eq=False)
class Made(Value):
    """An object made by a call of Keras, with the arguments by name."""

    line: int
    args: dict[str, Argument]
    node: ast.Call
    frame: Frame
    wrong: tuple[Argument, ...]  # those that the signature does not have

    def known(self, name: str, default: Any = None) -> Any:
        """Python value of an argument; `default` if it is not given, `Unknown` if it is not known."""
        return plain(self.args[name].value) if name in self.args else default

    def get(self, name: str, default: Any = None) -> Any:
        """The same, with `default` also for unknown values."""
        value = self.known(name, default)
        return default if isinstance(value, Unknown) else value

    def argument(self, name: str) -> Value | None:
        """An argument of any kind."""
        return self.args[name].value if name in self.args else None

    def line_of(self, name: str) -> int:
        """Line of an argument, else of the call."""
        return getattr(self.args[name].node, "lineno", self.line) if name in self.args else self.line


@dataclass(frozen=True, eq=False)
class Generator(Made):
    """A construction of `ImageDataGenerator`."""

    classes: tuple[ast.ClassDef, ...] = ()  # for a subclass: the classes of the file from it up to `ImageDataGenerator`


@dataclass(frozen=True, eq=False)
class Flow(Made):
    """An iterator: a call of `flow`, `flow_from_directory` or `flow_from_dataframe`."""

    method: str
    generator: Generator | Unknown


@dataclass(frozen=True, eq=False)
class Zipped(Value):
    """Two iterators joined by `zip`, in its order; also what a function or expression yields that passes its pairs on."""

    flows: tuple[Flow, Flow]
    node: ast.Call
    frame: Frame


def plain(value: Value | None) -> Any:
    """Python value of constants, sequences and maps; an `Unknown` for others and for infinity, which specs cannot hold."""
    if isinstance(value, Const):
        infinite = isinstance(value.value, float) and not math.isfinite(value.value)
        return Unknown("it is not a finite number") if infinite else value.value
    if isinstance(value, Seq):
        items = [plain(item) for item in value.items]
        bad = next((item for item in items if isinstance(item, Unknown)), None)
        return bad if bad is not None else items if value.is_list else tuple(items)
    if isinstance(value, Map):
        found: Mapping[str, Any] = {key: plain(item) for key, item in value.items.items()}
        bad = next((item for item in found.values() if isinstance(item, Unknown)), None)
        return bad if bad is not None else found
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Dotted) and not value.name.startswith("builtins."):
        return Unknown(f"`{value.name.lstrip('.')}` is not in this file")
    return Unknown("it is not a plain value")


def origins_of(*values: Value | None) -> tuple[str, ...]:
    """What may override some values, each once."""
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, (Const, Table)):
            found.update(dict.fromkeys(value.origins))
        elif isinstance(value, (Seq, Map)):
            inner = value.items if isinstance(value, Seq) else value.items.values()
            found.update(dict.fromkeys(origins_of(*inner)))
    return tuple(found)


def setting(value: Value, origin: str) -> Value:
    """A default that something outside the code may override."""
    if isinstance(value, Seq):
        return Seq(tuple(setting(item, origin) for item in value.items), value.is_list)
    return Const(plain(value), tuple(dict.fromkeys((*origins_of(value), origin))))


def told(values: dict[str, Value], origin: str) -> dict[str, Value]:
    """The plain values, each as a default that something outside the code may override."""
    return {name: setting(v, origin) for name, v in values.items() if isinstance(plain(v), (int, float, str, list, tuple))}


def derived(value: Any, *sources: Value) -> Const:
    """A plain value computed from others; what may override one of them may override it, too."""
    return Const(value, origins_of(*sources))


def picked(value: Value, by: Value) -> Value | None:
    """A value chosen by another one that may be overridden; `None` if it is not a plain value."""
    if isinstance(value, Const):
        return derived(value.value, value, by)
    if isinstance(value, (Seq, Map)):
        items = value.items.values() if isinstance(value, Map) else value.items
        found = [picked(item, by) for item in items]
        known = [item for item in found if item is not None]
        if len(known) == len(found):
            return Map(dict(zip(value.items, known, strict=True))) if isinstance(value, Map) else Seq(tuple(known), value.is_list)
    return None


def unknown(value: object, reason: str, line: int) -> Unknown:
    """The value itself if it is unknown with a line; else a new unknown value for a reason."""
    return value if isinstance(value, Unknown) and value.line else Unknown(reason, line)


def is_number(value: object) -> TypeGuard[float]:
    """True for a number that is not a boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def certain(value: Value | None) -> Any:
    """Python value that nothing outside the code changes; else an `Unknown`."""
    return Unknown(f"{origins_of(value)[0]} can change it") if origins_of(value) else plain(value)


def same(a: Value, b: Value) -> bool:
    """True if two values are known to be equal, whatever is set outside the code."""
    if a is b:
        return True
    left, right = plain(a), plain(b)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return isinstance(a, Dotted) and isinstance(b, Dotted) and a.name == b.name
    return type(left) is type(right) and bool(left == right) and set(origins_of(a)) == set(origins_of(b))


_LONGEST = 10_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class KnownPath(str):
    """A text that is a `pathlib.Path` in the code."""

    __slots__ = ()


def combine(op: ast.operator, left: Value, right: Value, line: int) -> Value:
    """Computes `left op right` of known values."""
    if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(op, ast.Add) and left.is_list == right.is_list:
        return Seq((*left.items, *right.items), left.is_list)
    if isinstance(left, Map) and isinstance(right, Map) and isinstance(op, ast.BitOr):
        return Map({**left.items, **right.items})
    a, b = plain(left), plain(right)
    for side in (a, b):
        if isinstance(side, Unknown):
            return unknown(side, "it is computed at run time", line)
    if isinstance(op, ast.Div) and isinstance(a, KnownPath) and isinstance(b, str):
        return derived(KnownPath(posixpath.join(a, b)), left, right)
    if type(op) not in _OPERATORS or not _is_small(op, a, b):
        return Unknown("it is computed at run time", line)
    try:
        result = _OPERATORS[type(op)](a, b)
    except (ArithmeticError, TypeError, ValueError, KeyError, IndexError):
        return Unknown("the expression has no value", line)
    if isinstance(result, (int, float)) or (isinstance(result, str) and len(result) <= _LONGEST):
        return derived(result, left, right)
    return Unknown("it is computed at run time", line)


def _is_small(op: ast.operator, a: object, b: object) -> bool:
    if isinstance(op, ast.Pow):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a) < 1e6 and abs(b) <= 64
    if isinstance(op, ast.Mod) and isinstance(a, str):
        return len(a) < _LONGEST and "*" not in a and not any(c.isdigit() for c in a) and not isinstance(b, float)
    if isinstance(op, ast.Add) and isinstance(a, str) and isinstance(b, str):
        return True
    return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a) < 1e300 and abs(b) < 1e300


def compare(node: ast.Compare, left: Value, right: Value) -> Value:
    """Compares two values by `==` or `!=`, or by `is` if one side is `None`."""
    op, line, a, b = node.ops[0], node.lineno, plain(left), plain(right)
    same = isinstance(op, (ast.Eq, ast.Is))
    by_name = isinstance(op, (ast.Is, ast.IsNot))
    if len(node.ops) > 1 or not (by_name or isinstance(op, (ast.Eq, ast.NotEq))):
        return Unknown("it is computed at run time", line)
    if by_name and (a is None or b is None):
        other = left if b is None else right
        if not isinstance(other, Unknown):
            return derived((a is None and b is None) == same, left, right)
    if by_name or isinstance(a, Unknown) or isinstance(b, Unknown):
        return Unknown("it is compared at run time", line)
    return derived((a == b) == same, left, right)


def either(op: ast.boolop, sides: list[Value], line: int) -> Value:
    """Evaluates `a or b`, `a and b`: the deciding side, if it is certain."""
    for side in sides[:-1]:
        truth = truth_of(side)
        if truth is None:
            return Unknown("it is decided at run time", line)
        if truth == isinstance(op, ast.Or):
            return side
    return sides[-1]


def truth_of(value: Value) -> bool | None:
    """Truth of a value; `None` if uncertain."""
    if isinstance(value, (Generator, Flow, Local, Class)):
        return True
    known = certain(value)
    return None if isinstance(known, Unknown) else bool(known)


def negate(op: ast.unaryop, value: Value, line: int) -> Value:
    """Evaluates `-x`, `+x`, `not x` of a known value."""
    a = plain(value)
    if isinstance(a, Unknown):
        return unknown(a, "it is computed at run time", line)
    if isinstance(op, ast.Not):
        return derived(not a, value)
    if isinstance(a, (int, float)) and isinstance(op, (ast.USub, ast.UAdd)):
        return derived(-a if isinstance(op, ast.USub) else a, value)
    return Unknown("it is computed at run time", line)


_JOINS = ("os.path.join", "posixpath.join")
_SEQUENCES = ("builtins.tuple", "builtins.list")
_PLAIN: dict[str, Callable[[Any], Any]] = {
    **{f"builtins.{f.__name__}": f for f in (int, float, bool, abs, len)},
    **dict.fromkeys(("math.ceil", "numpy.ceil"), math.ceil),
    **dict.fromkeys(("math.floor", "numpy.floor"), math.floor),
}
_TEXTS = ("os.path.normpath", "os.path.expanduser", "builtins.str")


def plain_call(name: str, values: list[Value], node: ast.Call) -> Value:
    """Evaluates a call of a plain library function on known values."""
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
        return derived(KnownPath(posixpath.join(*given) if given else "."), *values)
    if name in _JOINS and texts and given:
        return derived(posixpath.join(*given), *values)
    if name in _TEXTS and isinstance(first, (str, int)):
        return derived(str(first), *values)
    if name in _SEQUENCES and len(values) == 1 and isinstance(values[0], Seq):
        return Seq(values[0].items, name.endswith("list"))
    try:
        return derived(_PLAIN[name](first), *values) if name in _PLAIN and len(given) == 1 else unknown
    except (TypeError, ValueError, ArithmeticError):
        return Unknown("the expression has no value", node.lineno)


def plain_method(owner: Value, name: str, values: list[Value], node: ast.Call) -> Value:
    """Evaluates a method of a known text or path."""
    text = plain(owner)
    given = [plain(v) for v in values]
    if isinstance(text, str) and name == "format" and not node.keywords and len(values) == len(node.args):
        plainly = "{:" not in text and "!" not in text and "{0:" not in text
        with suppress(ValueError, IndexError, KeyError, AttributeError):
            if plainly and all(isinstance(g, (str, int)) for g in given):
                return derived(text.format(*given), owner, *values)
    if isinstance(text, KnownPath) and name == "joinpath" and all(isinstance(g, str) for g in given) and len(values) == len(node.args):
        return derived(KnownPath(posixpath.join(text, *given)), owner, *values)
    return unknown(owner, f"it is the result of `.{name}(…)`", node.lineno)


def text_of(node: ast.JoinedStr, values: list[Value]) -> Value:
    """Evaluates an f-string from the values of its parts."""
    parts: list[str] = []
    for piece, value in zip(node.values, values, strict=True):
        inner = plain(value)
        if isinstance(inner, Unknown):
            return unknown(inner, "a part of the text is known only at run time", node.lineno)
        form = isinstance(piece, ast.FormattedValue) and (piece.format_spec is not None or piece.conversion != -1)
        if form or not isinstance(inner, (str, int)):
            return Unknown("a part of the text is formatted", node.lineno)
        parts.append(str(inner))
    return derived("".join(parts), *values)
