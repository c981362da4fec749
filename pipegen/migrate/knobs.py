"""Arguments of the constructor that may be others at run time: each becomes params of the spec, which the call of `build` gives."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pipegen.migrate.values import Generator, Local, Seq, Unknown, origins_of, plain

NOT_KNOWN = "not known from the code"
_READING = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.operator, ast.expr_context, ast.Tuple, ast.List,
)  # fmt: skip


@dataclass(frozen=True)
class Knob:
    """One param.

    Attributes:
        param: Its name.
        argument: The argument of the constructor that it comes from.
        form: What is made of the argument, as Python, with `{}` for it.
        item: Which number of a pair it is, where the argument is one.
    """

    param: str
    argument: str
    form: str = "{}"
    item: int | None = None


@dataclass
class Knobs:
    """The params of the constructor's arguments.

    Attributes:
        params: Takes their declarations.
        found: Those that were made.
    """

    params: dict[str, str]
    found: list[Knob] = field(default_factory=list)

    def add(self, knob: Knob, default: str, limits: str = "", comment: str = "") -> str:
        """Declare a param, a number, and give its name as a spec has it."""
        self.params[knob.param] = f"{{type: float, default: {default}{limits}}}" + (f"  # {comment}" if comment else "")
        self.found.append(knob)
        return f"${knob.param}"


def varies(generator: Generator, name: str) -> bool:
    """Returns whether an argument is known, and may be another at run time."""
    if name not in generator.args:
        return False
    value = generator.args[name].value
    return bool(origins_of(value)) and not isinstance(plain(value), Unknown)


def is_open(generator: Generator, name: str) -> bool:
    """Returns whether an argument is not known, and is an expression that the call of `build` may give in its place."""
    if name not in generator.args:
        return False
    argument = generator.args[name]
    unknown = isinstance(plain(argument.value), Unknown) and not isinstance(argument.value, Local)
    return unknown and all(isinstance(n, _READING) for n in ast.walk(argument.node)) and not isinstance(argument.node, ast.Constant)


def expression(knob: Knob, node: ast.expr, text: str, *, inside: bool) -> tuple[ast.expr, str]:
    """The expression that a param depends on, and the text that gives the param.

    Args:
        knob: The param.
        node: The argument, or the dict that it is unpacked from.
        text: The text of the node.
        inside: Whether it is such a dict.
    """
    if inside:
        text, grouped = f'{text}["{knob.argument}"]', True
    elif knob.item is not None and isinstance(node, (ast.Tuple, ast.List)):
        node = node.elts[knob.item]
        return node, knob.form.format(_grouped(node, ast.unparse(node)) if knob.form != "{}" else ast.unparse(node))
    else:
        grouped = knob.form == "{}" and knob.item is None
    text = text if grouped else _grouped(node, text)
    return node, knob.form.format(text if knob.item is None else f"{text}[{knob.item}]")


def _grouped(node: ast.expr, text: str) -> str:
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)) else f"({text})"


def is_pair(generator: Generator, name: str) -> bool:
    """Returns whether an argument is a pair of numbers."""
    value = generator.args[name].value
    return isinstance(value, Seq) and len(value.items) == 2
