"""Known values of expressions: plain values, objects of Keras or pandas, or unknown, with the reason; what evaluates them."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.migrate.scopes import Binding, Scope

if TYPE_CHECKING:
    pass


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


@dataclass(frozen=True, eq=False)
class Setting(Const):
    """A value that something outside the code may override."""

    origins: tuple[str, ...] = ()  # what may override it, such as `--batch`, in words for a sentence


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
    """A function, lambda or class of the file, and the frame of its definition."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    frame: Frame
    bound: Value | None = None  # for a method: the object that it is called on, which may be unknown


@dataclass(frozen=True, eq=False)
class Instance(Value):
    """An object of a plain class of the file."""

    of: Local
    made: Frame | None = None  # the frame of its constructor's call; `None` without a constructor


@dataclass(frozen=True, eq=False)
class Record(Value):
    """An object with only named values: a dataclass, a named tuple, a namespace."""

    items: dict[str, Value]


@dataclass(frozen=True, eq=False)
class RecordType(Value):
    """A class made by `namedtuple`: the names, and the defaults of the last of them."""

    names: tuple[str, ...]
    defaults: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Table(Value):
    """A DataFrame that was read from a file."""

    path: str
    separator: str | None = None  # the text between cells, if given
    header: bool = True  # true if the first row has the column names
    names: tuple[str, ...] | None = None  # column names in the code, for a table without a header
    changed: dict[str, int] = field(default_factory=dict)  # columns that the code computes, and the line
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
class OneHot(Value):
    """Labels made by `to_categorical`."""


@dataclass(frozen=True, eq=False)
class ClassIndices(Value):
    """Integer labels, such as those of Keras' own datasets."""


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
    moved_from: int = 0  # its original line, if the node is a replacement

    @property
    def line(self) -> int:
        """Line in the original code."""
        return self.moved_from or self.node.lineno


@dataclass(frozen=True, eq=False)
class Made(Value):
    """An object made by a call of Keras, with the arguments by name."""

    line: int
    args: dict[str, Argument]
    node: ast.Call
    frame: Frame
    wrong: tuple[tuple[str, int], ...]  # keywords that the signature does not have, with their lines

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
