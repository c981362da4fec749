"""The reader of YAML 1.2: from text to plain values with their places, and back to text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from types import NoneType
from typing import Any, Literal

import yaml
from yaml import events as ev

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Label, Span, is_binary, split_lines
from pipegen.spec.source_map import LONGEST_KEY, KeyPath, Tree
from pipegen.terminal import ODD

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], Scalar]], ...] = (
    (re.compile(r"[-+]?[0-9]+\Z"), int),
    (re.compile(r"0o[0-7]+\Z"), partial(int, base=8)),
    (re.compile(r"0x[0-9a-fA-F]+\Z"), partial(int, base=16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)\Z"), lambda text: float(text.replace(".", ""))),
)
_RAW = re.compile(f"{ODD.pattern}|[\ufdd0-\ufdef\ufffe\uffff]")  # characters that are written as escapes
_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_MAX_DIGITS = 400  # digits from which on a number is text: Python refuses to convert thousands of them, and no setting needs any


def resolve(text: str) -> Scalar:
    """The value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    known = (convert for pattern, convert in _NUMBERS if pattern.match(text))
    return text if len(text) > _MAX_DIGITS else next(known, str)(text)


def needs_quotes(text: str) -> bool:
    """Tests if `text` without quotes would be read as something else."""
    if _RAW.search(text) or resolve(text) != text or text != text.strip():
        return True
    return text[:1] in "-?:,[]{}#&*!|>'\"%@`" or ": " in text or " #" in text


def quoted(text: str) -> str:
    """`text` in quotes, valid anywhere in a spec, with escapes for control characters."""
    return double_quoted(text) if _RAW.search(text) else "'" + text.replace("'", "''") + "'"


def double_quoted(text: str) -> str:
    """`text` in double quotes, on one line."""
    return '"' + _RAW.sub(_escaped, text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _escaped(match: re.Match[str]) -> str:
    point = ord(match[0])
    return _SHORT.get(match[0]) or (f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}")


def flow_scalar(text: str) -> str:
    """`text` as valid inside `{…}` and `[…]`, with dollars escaped."""
    text = text.replace("$", "$$")
    return quoted(text) if needs_quotes(text) or any(c in text for c in ",[]{}#:") else text


def flow(value: Any) -> str:
    """A value as YAML on one line, valid anywhere in a spec: `{size: [224, 224]}`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(inner)}" if inner != {} else f"{key}: {{}}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return flow_scalar(value)
    if isinstance(value, float) and "e" in repr(value):
        return f"{value:.12f}".rstrip("0") if abs(value) < 1 else repr(value)
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


MAX_BYTES = 2**20
MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_ALIASES = 64
MAX_SCALAR = 2**16

_CORE = "tag:yaml.org,2002:"
_TYPES = {"str": (str,), "int": (int,), "float": (float, int), "bool": (bool,), "null": (NoneType,), "map": (dict,), "seq": (list,)}
_MERGE = "<<"


class _StopError(Exception):
    """Stops the reader with a last finding."""


@dataclass(slots=True, eq=False)
class _Node:
    """A value with its place in the text; an alias has a span of its own and shares the rest."""

    kind: Literal["scalar", "map", "list"]
    span: Span
    scalar: Any = None
    text: str = ""
    pairs: list[tuple[_Node, _Node]] = field(default_factory=list)
    items: list[_Node] = field(default_factory=list)


def decode(data: bytes, file: str) -> str | Diagnostic:
    """Decodes the bytes of a spec; returns a finding if they are not text."""
    if len(data) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 2**20} MiB"
        return make("PG003", message, _top(file), help="keep data in files of its own, beside the spec")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return make("PG001", "the file is UTF-16 text, but a spec is UTF-8", _top(file), help=("save it as UTF-8",))
    if is_binary(data):
        return make("PG001", "this is a binary file, not a spec", _top(file), help=("a spec is YAML text in UTF-8",))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8-sig", "replace")) + 1
        at = Label(Span(file, line, column, line, column + 1), "not UTF-8")
        message = f"the file is not UTF-8 text: invalid byte 0x{data[error.start]:02X}"
        return make("PG001", message, at, help=("save it as UTF-8",))


def compose(text: str, file: str, out: Diagnostics) -> Tree | None:
    """Reads the values of a spec's text; `None`, with a finding, if it cannot be read."""
    text = text.removeprefix("\ufeff")
    try:
        if len(text) > MAX_BYTES:
            raise _StopError(make("PG003", f"the text is larger than {MAX_BYTES // 2**20} MiB", _top(file)))
        composer = _Composer(text, file, out)
        composer.result.value = composer.value(composer.document(), ())
        return composer.result
    except _StopError as stop:
        out.add(stop.args[0])
    except yaml.MarkedYAMLError as error:
        from pipegen.spec.syntax import explain_syntax

        out.add(explain_syntax(error, text, file))
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        char = ord(error.character) if isinstance(error.character, str) else error.character
        at = Label(Span(file, line, column, line, column + 1))
        help_ = "remove it, or write it as an escape in double quotes"
        out.add(make("PG001", f"the control character U+{char:04X} is not allowed in a spec", at, help=help_))
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        out.add(make("PG002", f"this is not valid YAML: {error}", _top(file)))
    return None


class _Composer:
    """The composer of nodes from events, and of plain values and spans from nodes, without aliases."""

    def __init__(self, text: str, file: str, out: Diagnostics) -> None:
        self.lines = split_lines(text)
        self.file = file
        self.out = out
        self.events: Iterator[ev.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        self.anchors: dict[str, _Node | None] = {}
        self.nodes = 0
        self.aliases = 0
        self.expanded = 0
        self.size = 0
        self.result = Tree({})

    def document(self) -> _Node:
        """Reads the only document, which must be a map."""
        next(self.events)
        if isinstance(next(self.events), ev.StreamEndEvent):
            raise _StopError(make("PG006", "the file is empty", _top(self.file), help=("a spec begins with `pipegen: 1`",)))
        root = self.node(next(self.events), 0)
        next(self.events)
        more = next(self.events)
        if not isinstance(more, ev.StreamEndEvent):
            at = Label(self.span(more.start_mark, more.end_mark), "the second one starts here")
            raise _StopError(make("PG006", "the file has several documents", at, help=("a file has one spec: remove the `---`",)))
        if root.kind != "map":
            text = "nothing" if root.scalar is None else "text"
            message = f"a spec is a map of sections, got {'a list' if root.kind == 'list' else text}"
            raise _StopError(make("PG006", message, Label(root.span), help="a spec begins with `pipegen: 1`"))
        return root

    def node(self, event: Any, depth: int) -> _Node:
        if isinstance(event, ev.AliasEvent):
            return self.alias(event)
        self.nodes += 1
        _limit(self.nodes <= MAX_NODES, f"the spec has more than {MAX_NODES:,} values", self.span(event.start_mark, event.start_mark))
        _limit(depth <= MAX_DEPTH, f"the spec is nested more than {MAX_DEPTH} levels deep", self.span(event.start_mark, event.start_mark))
        anchor = event.anchor
        if anchor is not None:
            self.anchors[anchor] = None
        if isinstance(event, ev.ScalarEvent):
            node = self.scalar(event)
        elif isinstance(event, ev.SequenceStartEvent):
            node = self.sequence(event, depth)
        else:
            node = self.mapping(event, depth)
        self.check_tag(event, node)
        if anchor is not None:
            self.anchors[anchor] = node
        return node

    def alias(self, event: ev.AliasEvent) -> _Node:
        """The node of an anchor, with the place of the alias."""
        span = self.span(event.start_mark, event.end_mark)
        self.aliases += 1
        _limit(self.aliases <= MAX_ALIASES, f"the spec has more than {MAX_ALIASES} aliases", span)
        if event.anchor not in self.anchors:
            message = f"the alias `*{event.anchor}` has no anchor `&{event.anchor}` before it"
            raise _StopError(make("PG002", message, Label(span), help="text that begins with `*` needs quotes"))
        node = self.anchors[event.anchor]
        if node is None:
            raise _StopError(make("PG003", f"the alias `*{event.anchor}` is inside its own anchor `&{event.anchor}`", Label(span)))
        return replace(node, span=span)

    def scalar(self, event: ev.ScalarEvent) -> _Node:
        """Reads a scalar: plain text is resolved, quoted text is text."""
        text: str = event.value
        span = self.span(event.start_mark, event.end_mark)
        start = Span(self.file, span.line, span.column, span.line, span.column + 1)
        _limit(len(text) <= MAX_SCALAR, f"one value is longer than {MAX_SCALAR // 1024} KiB", start)
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise _StopError(make("PG001", "the text has half of a surrogate pair, which is not a character", Label(span)))
        plain = event.style is None and event.tag not in ("!", f"{_CORE}str")
        return _Node("scalar", span, resolve(text) if plain else text, text)

    def sequence(self, event: ev.SequenceStartEvent, depth: int) -> _Node:
        node = _Node("list", self.span(event.start_mark, event.end_mark))
        while not isinstance(inner := next(self.events), ev.SequenceEndEvent):
            node.items.append(self.node(inner, depth + 1))
        self.close(node, event, inner, node.items[-1] if node.items else None)
        return node

    def mapping(self, event: ev.MappingStartEvent, depth: int) -> _Node:
        """Reads a map; reports repeated keys, of which the first one counts."""
        node = _Node("map", self.span(event.start_mark, event.end_mark))
        seen: dict[str, _Node] = {}
        while not isinstance(inner := next(self.events), ev.MappingEndEvent):
            key = self.node(inner, depth + 1)
            if key.kind == "list" and all(item.kind == "scalar" for item in key.items):
                key.text = f"[{', '.join(item.text for item in key.items)}]"  # a list of scalars is a name, such as that of a colour
            _limit(len(key.text) <= LONGEST_KEY, f"a key is longer than {LONGEST_KEY:,} characters", key.span)
            value = self.node(next(self.events), depth + 1)
            if value.kind == "scalar" and value.text == "" and value.scalar is None:
                value.span = key.span
            if (key.kind == "scalar" or key.text) and key.text != _MERGE and key.text in seen:
                first = Label(seen[key.text].span, "first here")
                self.out.add(make("PG007", f"duplicate key `{key.text}` in one map", Label(key.span, "again here"), first))
                continue
            seen[key.text] = key
            node.pairs.append((key, value))
        self.close(node, event, inner, node.pairs[-1][1] if node.pairs else None)
        return node

    def close(self, node: _Node, start: ev.Event, end: ev.Event, last: _Node | None) -> None:
        """Sets the end: in block style that of the last child, since YAML's own is the start of the next node."""
        if getattr(start, "flow_style", False) or last is None:
            node.span = self.span(start.start_mark, end.end_mark)
        else:
            node.span = Span(self.file, node.span.line, node.span.column, last.span.end_line, last.span.end_column)

    def check_tag(self, event: Any, node: _Node) -> None:
        """Reports a tag that is not one of YAML's own, or that the value contradicts."""
        tag: str | None = event.tag
        if tag is None or tag == "!":
            return
        types = _TYPES.get(tag.removeprefix(_CORE)) if tag.startswith(_CORE) else None
        value = {"scalar": node.scalar, "map": {}, "list": []}[node.kind]
        if types is None or not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            shown = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
            help_ = ("a spec is plain data: remove the tag", "text that begins with `!` needs quotes")
            at = Label(self.span(event.start_mark, event.start_mark))
            self.out.add(make("PG004", f"the tag `{shown}` is not supported", at, help=help_))

    def span(self, start: Any, end: Any) -> Span:
        """The span from mark to mark, without line breaks at the end; one character wide if both are equal."""
        first, column = start.line + 1, start.column + 1
        last, until = end.line + 1, end.column + 1
        while until == 1 and last > first:
            last -= 1
            until = len(self.lines[last - 1].rstrip()) + 1
        if last == first and until == column:
            here = bool(self.lines[first - 1][column - 1 : column])
            return Span(self.file, first, column if here else max(column - 1, 1), last, until + here)
        return Span(self.file, first, column, last, until)

    def value(self, node: _Node, path: KeyPath) -> Any:
        """Expands a node, of which an alias is another copy."""
        self.expanded += 1
        _limit(self.expanded <= MAX_NODES, f"the aliases expand to more than {MAX_NODES:,} values", node.span)
        self.size += len(node.text)
        _limit(self.size <= MAX_BYTES, f"the aliases expand to more than {MAX_BYTES // 2**20} MiB of text", node.span)
        _limit(len(path) <= MAX_DEPTH, f"the aliases nest more than {MAX_DEPTH} levels deep", node.span)
        self.result.spans.values[path] = node.span
        if node.kind == "list":
            return [self.value(item, (*path, i)) for i, item in enumerate(node.items)]
        return self.map_value(node, path) if node.kind == "map" else node.scalar

    def map_value(self, node: _Node, path: KeyPath) -> dict[str, Any]:
        """Expands a map; `<<` is reported and still merged, so that no key is reported as missing."""
        result: dict[str, Any] = {}
        merged: list[_Node] = []
        for key, value in node.pairs:
            if key.kind == "scalar" and key.text == _MERGE and key.scalar == _MERGE:
                help_ = ("to share sections between specs, use `extends: FILE`", "to share single values, use params: `$name`")
                self.out.add(make("PG009", "the merge key `<<` is not supported", Label(key.span), help=help_))
                merged += value.items if value.kind == "list" else [value]
                continue
            self.entry(result, key, value, path)
        for key, value in (pair for part in merged if part.kind == "map" for pair in part.pairs):
            if key.text not in result and key.text != _MERGE:
                self.entry(result, key, value, path)
        return result

    def entry(self, result: dict[str, Any], key: _Node, value: _Node, path: KeyPath) -> None:
        name = key.text if key.kind == "scalar" else key.text or f"a {key.kind}"
        at = (*path, name)
        self.size += len(key.text)
        if not isinstance(key.scalar, str):
            reading = {NoneType: "nothing", bool: "true or false"}.get(type(key.scalar), "a number")
            self.result.odd_keys[at] = f"a {key.kind}" if key.kind != "scalar" else reading
        result[name] = self.value(value, at)
        self.result.spans.keys[at] = key.span


def _limit(holds: bool, message: str, span: Span) -> None:
    if not holds:
        raise _StopError(make("PG003", message, Label(span), help="this limit protects against damaged and hostile files"))


def _top(file: str) -> Label:
    return Label(Span(file, 1, 1, 1, 1))


_FRACTION = re.compile(r"([-+]?\d+(?:\.\d+)?) */ *(\d+(?:\.\d+)?)")
_UNDERSCORES = re.compile(r"[-+]?\d+(_\d+)+(\.\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")
_COMMA = re.compile(r"[-+]?\d+,\d+")
_RATIO = re.compile(r"(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)")
_PERCENT = re.compile(r"([-+]?\d+(?:\.\d+)?) *%")
_YES = frozenset({"yes", "on", "y", "true"})
_NO = frozenset({"no", "off", "n", "false"})


def has_one_reading(text: str) -> bool:
    """Tests if a text that `number_trap` reads is unambiguous.

    `1/255` and `1_000` are. `50%` may be a share of something else, `1,000` one or a thousand, `0,5` a pair, and `4:3` a time.
    """
    return bool(_FRACTION.fullmatch(text.strip()) or _UNDERSCORES.fullmatch(text.strip()))


def number_trap(text: str) -> tuple[int | float, str] | None:
    """The number that a text probably means, and why YAML reads it as text; `None` if it means none."""
    text = text.strip()
    if len(text) > 40:
        return None
    if m := _FRACTION.fullmatch(text) or _RATIO.fullmatch(text):
        return (float(m[1]) / float(m[2]), "YAML does not divide") if float(m[2]) else None
    if m := _PERCENT.fullmatch(text):
        return float(m[1]) / 100, "YAML has no percentages"
    if _UNDERSCORES.fullmatch(text):
        return _read_number(text.replace("_", "")), "YAML numbers have no underscores"
    if _THOUSANDS.fullmatch(text):
        return _read_number(text.replace(",", "")), "YAML numbers have no commas"
    if _COMMA.fullmatch(text):
        return float(text.replace(",", ".")), "a decimal number has a point"
    return None


def quoted_number(text: str) -> int | float | None:
    """The number in a quoted text, if it would be a number without its quotes."""
    value = resolve(text.strip()) if text.strip() else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def bool_trap(text: str) -> bool | None:
    """The boolean that a word such as `yes` means, if any."""
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


def _read_number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
