"""What an expression can be known to be: a plain value, something of Keras or pandas, or unknown, with the reason."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.migrate.scopes import Scope


@dataclass(frozen=True, eq=False)
class Value:
    """Any of the following."""


@dataclass(frozen=True, eq=False)
class Unknown(Value):
    """Not known without running the code.

    Attributes:
        reason: Why, to stand after "because".
        line: Where.
    """

    reason: str
    line: int = 0


@dataclass(frozen=True, eq=False)
class Const(Value):
    """A number, a text, a boolean, `None`."""

    value: Any


@dataclass(frozen=True, eq=False)
class Seq(Value):
    """A tuple or a list."""

    items: tuple[Value, ...]
    is_list: bool = False


@dataclass(frozen=True, eq=False)
class Map(Value):
    """A dict with texts as keys."""

    items: dict[str, Value]


@dataclass(frozen=True, eq=False)
class Dotted(Value):
    """Something imported, by its full name, such as `keras.applications.vgg16.preprocess_input`."""

    name: str


@dataclass(frozen=True, eq=False)
class Local(Value):
    """A function, a lambda or a class of the file, and the frame that it was defined in."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    frame: Frame


@dataclass(frozen=True, eq=False)
class Table(Value):
    """A DataFrame that was read from a file.

    Attributes:
        path: The file.
        separator: What stands between cells, where it was said.
        header: Whether the first row names the columns.
        names: The names that the code gives columns of a table without a header.
        changed: Columns that the code builds, and the line.
        part: `train` or `test` of `split`, for a share of it.
        split: How it was dealt out.
    """

    path: str
    separator: str | None = None
    header: bool = True
    names: tuple[str, ...] | None = None
    changed: dict[str, int] = field(default_factory=dict)
    part: str = ""
    split: Share | None = None


@dataclass(frozen=True, eq=False)
class Share(Value):
    """`train_test_split`: what share is the second part, and whether it is stratified."""

    node: ast.Call
    test: float | int
    stratified: bool


@dataclass(frozen=True, eq=False)
class OneHot(Value):
    """Labels made by `to_categorical`."""

    line: int


@dataclass(frozen=True, eq=False)
class ClassIndices(Value):
    """Labels as whole numbers, as Keras' own data sets have them."""

    line: int


@dataclass(eq=False)
class Frame:
    """A scope as it runs: with arguments, inside the frame that it was defined in."""

    scope: Scope
    parent: Frame | None = None
    args: dict[str, Value] = field(default_factory=dict)
    depth: int = 0
    class_frame: Frame | None = None
    """For a method: the frame of its class."""
    known: dict[int, Value] = field(default_factory=dict)
    """What expressions were found to be, by the id of the node."""

    @property
    def module(self) -> Frame:
        """The outermost frame."""
        return self if self.parent is None else self.parent.module


@dataclass(frozen=True)
class Argument:
    """An argument of a call that was bound to a name of the signature."""

    name: str
    value: Value
    node: ast.expr
    positional: bool = False


@dataclass(frozen=True, eq=False)
class Generator(Value):
    """A construction of `ImageDataGenerator`.

    Attributes:
        line: Where.
        args: By name.
        node: The call.
        wrong: Keywords that the constructor does not have, with their lines.
        subclass: The class of the file that is constructed, if it is one.
    """

    line: int
    args: dict[str, Argument]
    node: ast.Call
    frame: Frame
    wrong: tuple[tuple[str, int], ...] = ()
    subclass: ast.ClassDef | None = None

    def get(self, name: str) -> Any:
        """A plain argument; `None` where it is not given or not known."""
        return plain(self.args[name].value) if name in self.args else None


@dataclass(frozen=True, eq=False)
class Flow(Value):
    """An iterator: a call of `flow`, `flow_from_directory` or `flow_from_dataframe`."""

    line: int
    method: str
    generator: Generator | Unknown
    args: dict[str, Argument]
    node: ast.Call
    frame: Frame
    wrong: tuple[tuple[str, int], ...] = ()

    def get(self, name: str, default: Any = None) -> Any:
        """A plain argument; `default` where it is not given or not known."""
        if name not in self.args:
            return default
        value = plain(self.args[name].value)
        return default if isinstance(value, Unknown) else value

    def argument(self, name: str) -> Value | None:
        """An argument, whatever it is."""
        return self.args[name].value if name in self.args else None


def plain(value: Value | None) -> Any:
    """The Python value of constants, sequences and maps; an `Unknown` for what has none, and for infinity, which no spec holds."""
    if isinstance(value, Const):
        infinite = isinstance(value.value, float) and not math.isfinite(value.value)
        return Unknown("it is no finite number") if infinite else value.value
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
    return Unknown("it is no plain value")


def same(a: Value, b: Value) -> bool:
    """Whether two values are known to be equal."""
    if a is b:
        return True
    left, right = plain(a), plain(b)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return isinstance(a, Dotted) and isinstance(b, Dotted) and a.name == b.name
    return type(left) is type(right) and bool(left == right)
