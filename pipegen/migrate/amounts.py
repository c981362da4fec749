"""Arguments of the constructor as numbers, booleans and params of the spec; other values are reported."""

from __future__ import annotations

import ast
import math
from dataclasses import field

from pipegen.frozen import dataclass
from pipegen.migrate.findings import Findings
from pipegen.migrate.known import origins_of, reason_of
from pipegen.migrate.nodes import Row
from pipegen.migrate.signatures import is_keras
from pipegen.migrate.values import Dotted, Generator, Local, Unknown, plain

_LIBRARIES = ("builtins", "numpy", "cv2", "skimage", "scipy", "PIL")
NOT_KNOWN = "not known from the code"
_READING = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.operator, ast.expr_context, ast.Tuple, ast.List,
)  # fmt: skip


@dataclass(frozen=True)
class Knob:
    """One param.

    Attributes:
        argument: The constructor argument that it comes from.
        form: Python expression for its value, with `{}` for the argument.
        item: Index into the argument, if that is a pair.
    """

    param: str
    argument: str
    form: str = "{}"
    item: int | None = None


@dataclass
class Knobs:
    """The params of the constructor's arguments."""

    params: dict[str, str]
    found: list[Knob] = field(default_factory=list)

    def add(self, knob: Knob, default: str, limits: str = "", comment: str = "") -> str:
        """Declares a numeric param and returns its reference, `$NAME`."""
        self.params[knob.param] = f"{{type: float, default: {default}{limits}}}" + (f"  # {comment}" if comment else "")
        self.found.append(knob)
        return f"${knob.param}"


def varies(generator: Generator, name: str) -> bool:
    """True if an argument is known, but may differ at run time."""
    return bool(origins_of(generator.argument(name))) and not isinstance(generator.known(name), Unknown)


def is_open(generator: Generator, name: str) -> bool:
    """True if an argument is unknown and its expression can be passed to `build`."""
    if name not in generator.args:
        return False
    argument = generator.args[name]
    unknown = isinstance(plain(argument.value), Unknown) and not isinstance(argument.value, Local)
    return unknown and all(isinstance(n, _READING) for n in ast.walk(argument.node)) and not isinstance(argument.node, ast.Constant)


def expression(knob: Knob, node: ast.expr, text: str, *, inside: bool) -> tuple[ast.expr, str]:
    """Expression that a param depends on, and Python text for the param's value.

    Args:
        knob: The param.
        node: The argument, or the dict that it is unpacked from.
        text: The text of the node.
        inside: True for such a dict.
    """
    item = knob.item
    if inside:
        text = f'{text}["{knob.argument}"]'
    elif item is not None and isinstance(node, Row):
        node, item = node.elts[item], None
        text = ast.unparse(node)
    if not inside and (knob.form != "{}" or item is not None):
        text = grouped(node, text)
    return node, knob.form.format(text if item is None else f"{text}[{item}]")


def grouped(node: ast.expr, text: str) -> str:
    """Text of an expression, in brackets if an attribute of it needs them."""
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)) else f"({text})"


@dataclass(frozen=True)
class Step:
    """Text of one step in a spec, and a comment for it."""

    text: str
    comment: str = ""


@dataclass
class Amounts:
    """Reads the arguments of one generator.

    Attributes:
        size: Height and width of the images, if known.
        files: True if the images come from files, so that their values are 0 to 255.
        fitted: True if `fit` is called on the generator.
        channels: Number of channels of the images.
    """

    generator: Generator
    size: tuple[int, int] | None
    files: bool
    findings: Findings
    fitted: bool
    channels: int
    knobs: Knobs
    found: list[Step] = field(default_factory=list)

    def _say(self, code: str, name: str, message: str, help: str = "") -> None:
        self.findings.add(code, self.generator.line_of(name), message, help)

    def _number(self, name: str) -> float | None:
        """A given, non-zero number; reports any other value."""
        value = self.generator.known(name)
        if isinstance(value, Unknown):
            self._unknown(name, value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value) if value else None
        elif value not in (None, False):
            self._say("PG610", name, f"`{name}={value!r}` is not a number", "it is left out of the spec")
        return None

    def _amount(self, name: str) -> str:
        """An absolute number, or its param; empty for zero."""
        if is_open(self.generator, name):
            return self._open(Knob(name, name), "0", ", min: 0")
        value = self._number(name)
        if varies(self.generator, name):
            return self.knobs.add(Knob(name, name), number(abs(value or 0.0)), ", min: 0")
        return "" if value is None else number(abs(value))

    def _open(self, knob: Knob, default: str, limits: str = "") -> str:
        """Adds a param for an unknown value, with a default that does nothing."""
        message = f"`{knob.argument}` is not known: {reason_of(self.generator.known(knob.argument))}"
        self._say("PG610", knob.argument, message, f"the spec has `{knob.param}`, by default {default}: put the value there")
        return self.knobs.add(knob, default, limits, NOT_KNOWN)

    def _truth(self, name: str) -> bool:
        given, value = self.generator.argument(name), self.generator.known(name)
        if isinstance(given, Local) or (isinstance(given, Dotted) and (is_keras(given.name) or given.name.split(".")[0] in _LIBRARIES)):
            return True  # a function or a class
        if isinstance(value, Unknown):
            self._unknown(name, value)
            return False
        return bool(value)

    def _unknown(self, name: str, value: Unknown) -> None:
        line = value.line or self.generator.line_of(name)
        self.findings.add("PG610", line, f"`{name}` is not known: {reason_of(value)}", "add its step by hand")


def number(value: float) -> str:
    """A number in YAML, with at most twelve digits."""
    if value == int(value) and abs(value) < 1e9:
        return str(int(value))
    text = f"{value:.12g}"
    return text if len(text) < 8 else f"{value:.6g}" if "e" not in f"{value:.6g}" and abs(value) >= 0.01 else repr(value)
