"""Reference of steps and sources, generated from their classes, for the terminal and in Markdown."""

from __future__ import annotations

import inspect
import json
import textwrap
from typing import TYPE_CHECKING, Any

from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.model import field_docs
from pipegen.ops.registry import sources, transforms
from pipegen.ops.transform import Transform
from pipegen.spec.expect import describe_argument, field_type, shape
from pipegen.terminal import aligned, bold

if TYPE_CHECKING:
    from pipegen.ops.model import Model
    from pipegen.ops.sources.listing.base import Source


_WIDTH, _SUMMARY = 100, 66
"""Columns of a page, and of a line of text in the table."""
_COMMON = ("probability", "fill", "interpolation", "exact", "when", "feature", "id")
"""Arguments that many steps share; they come last on a page."""


def all_ops() -> dict[str, type[Any]]:
    """Lists every source and step by name, sources first."""
    return {**sources(), **transforms()}


def family(op: type[Model]) -> str:
    """Name of an op's family, which determines how it composes with its neighbours."""
    return op.family if issubclass(op, Transform) else "source"


def summary(op: type[Model]) -> str:
    """Extracts the first sentence of an op's documentation, up to a colon or semicolon."""
    text = " ".join(inspect.cleandoc(op.__doc__ or "").partition("\n\n")[0].split())
    first = text.partition(". ")[0].partition("; ")[0].partition(": ")[0].removesuffix(".")
    return first.rpartition(" (")[0] if first.count("(") > first.count(")") else first


def argument_names(op: type[Model]) -> list[str]:
    """Sorts an op's arguments: required ones, other own ones, and those that many steps share."""
    own = [name for name in op.model_fields if name not in _COMMON]
    own.sort(key=lambda name: not op.model_fields[name].is_required())
    return own + [name for name in _COMMON if name in op.model_fields]


def op_table() -> str:
    """Writes a line for each op, for the terminal."""
    rows = [(name, family(op), textwrap.shorten(summary(op), _SUMMARY, placeholder=" …")) for name, op in all_ops().items()]
    head, *lines = aligned([("name", "family", "what it does"), *rows])
    return "\n".join([bold(head), *lines])


def _markdown_table() -> str:
    """Writes a Markdown table of steps and sources, with links to their sections."""
    rows = [f"| [`{name}`](#{name}) | {family(op)} | {summary(op).replace('|', chr(92) + '|')} |" for name, op in all_ops().items()]
    return "\n".join(["| name | family | what it does |", "|---|---|---|", *rows])


def op_page(op: type[Transform] | type[Source]) -> str:
    """Writes the page of one op for the terminal: description, arguments and examples."""
    lines = [bold(f"{op.op}  ({_kind(op)})"), "", *_wrapped(inspect.cleandoc(op.__doc__ or ""), 0), "", bold("arguments"), *_arguments(op)]
    examples = getattr(op, "examples", ())
    if examples:
        lines += ["", bold("examples")]
        for example in examples:
            lines += [f"  - {example.yaml}", f"      {example.given}  →  {example.then}"]
    return "\n".join(lines)


def _kind(op: type[Transform] | type[Source]) -> str:
    return f"step, {family(op)}{', random' if op.random else ''}" if issubclass(op, Transform) else "source"


def _arguments(op: type[Model]) -> list[str]:
    if hasattr(op, "from_yaml"):
        return ["  SPLIT: SOURCE", *_wrapped("The source of each split, under the split's name.", 6)]
    docs = field_docs(op)
    lines: list[str] = []
    for name in argument_names(op):
        lines.append(f"  {bold(name)}: {describe_argument(field_type(op, name))}; {default_of(op, name)}")
        lines += _wrapped(docs.get(name, ""), 6)
        value = shape(field_type(op, name))
        inner = shape(value.items[1]) if value.kind == "map" else None
        if inner is not None and inner.kind == "model":
            lines += ["      Each takes:", *(f"      {line}" for line in _arguments(inner.annotation))]
    return lines or ["  none"]


def default_of(op: type[Model], name: str) -> str:
    """Describes the default of an argument."""
    info = op.model_fields[name]
    if info.is_required():
        return "required"
    default = _shown(info.get_default(call_default_factory=True))
    return "optional" if default == "null" else f"default {default}"


def _shown(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    return value if isinstance(value, str) else json.dumps(value)


def _wrapped(text: str, indent: int) -> list[str]:
    """Wraps paragraphs; lists and specs keep their lines."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [""] if lines else []
        verbatim = any(line.startswith((" ", "- ", "|")) for line in paragraph.splitlines())
        pad = " " * indent
        filled = paragraph.splitlines() if verbatim else textwrap.wrap(" ".join(paragraph.split()), _WIDTH - indent, break_on_hyphens=False)
        lines += [pad + line for line in filled]
    return lines


_HEAD = """# Steps and sources

Every source and step with its arguments; `pipegen ops NAME` prints the same. The first image of a picture is the input of the
step, the others are its outputs; random steps show several draws.

<!-- Generated by `pipegen schema --write`; the pictures by `python -m docs.make_pictures`. -->
"""


def reference() -> str:
    """Generates the page of all ops in Markdown."""
    return "\n".join([_HEAD, _markdown_table(), "", *map(section, all_ops().values())]).rstrip() + "\n"


def section(op: type[Transform] | type[Source]) -> str:
    """Writes the section of one op in Markdown."""
    lines = [f"## {op.op}", "", f"*{_kind(op)}*", "", inspect.cleandoc(op.__doc__ or ""), "", *_arguments_page(op), ""]
    examples = getattr(op, "examples", ())
    if examples:
        lines += ["| example | given | then |", "|---|---|---|"]
        lines += [*(f"| `- {' '.join(e.yaml.split())}` | {e.given} | {e.then} |" for e in examples), ""]
    if issubclass(op, Transform) and not issubclass(op, CustomTransform):
        lines += [f"![{op.op}](pictures/{op.op}.jpg)", ""]
    return "\n".join(lines)


def _arguments_page(op: type[Transform] | type[Source]) -> list[str]:
    if hasattr(op, "from_yaml"):
        return ["- **SPLIT**: SOURCE. The source of each split, under the split's name."]
    docs = {name: " ".join(text.split()) for name, text in field_docs(op).items()}
    names = ((name, f"{describe_argument(field_type(op, name))}; {default_of(op, name)}") for name in argument_names(op))
    return [f"- **{name}**: {accepts}. {docs.get(name, '')}".rstrip() for name, accepts in names] or ["No arguments."]
