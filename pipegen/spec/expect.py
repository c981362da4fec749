"""The values that a setting accepts, described from its type ("a whole number of 1 or more"), and checks of values by Pydantic."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError

from pipegen.frozen import dataclass
from pipegen.ops.arguments.magnitudes import Schedule
from pipegen.ops.transform import Transform
from pipegen.spec.units import parse_bytes

_LONGEST = 40
_MOST = 30
_LONGEST_TEXT, _LONGEST_LIST = 200, 20  # the longest values of the user that are repeated
_LARGEST = 2**53  # the largest integer of the user that is repeated


def show(value: Any) -> str:
    """A value for a message: short, on one line, and as written in a spec."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, (int, float)):
        return f"`{shorten(str(value))}`"
    if isinstance(value, str):
        return f"`{shorten(value)}`" if value else "empty text"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, dict):
        return f"a map with {one_of(list(value)[:4], 'and')}" if value else "an empty map"
    return f"a {type(value).__name__}"


def shorten(text: str) -> str:
    """The text without line breaks, cut if it is long."""
    text = text.replace("\n", "⏎")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_long(value: Any) -> bool:
    """Tests if a value of the user is too long, or too large, to be repeated."""
    if isinstance(value, int):
        return abs(value) > _LARGEST
    if isinstance(value, list) and any(map(is_long, value)):
        return True
    return len(value) > (_LONGEST_TEXT if isinstance(value, str) else _LONGEST_LIST) if isinstance(value, (str, list, dict)) else False


def one_of(words: Iterable[object], last: str = "or") -> str:
    """Joins words as `a`, `b` or `c`; of very many, the first ones."""
    listed = [str(w) for w in words]
    more = [f"{len(listed) - _MOST:,} more"] if len(listed) > _MOST + 1 else []
    return join([f"`{shorten(w)}`" for w in (listed[:_MOST] if more else listed)] + more, "and" if more else last)


def join(parts: list[str], last: str = "or") -> str:
    """Joins parts as "a, b or c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}" if parts else "nothing"


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of a type."""

    kind: str  # `literal`, `bool`, `int`, `float`, `str`, `size` (bytes), `list`, `pair`, `map`, `model`, `union` or `other`
    annotation: Any  # the whole type, to check values against
    items: tuple[Any, ...] = ()  # the words of a literal, the members of a union, the item types of a list, pair or map
    bounds: tuple[tuple[str, float], ...] = ()  # `gt`, `ge`, `lt` and `le`, if given


def shape(annotation: Any) -> Shape:
    """Splits a type into its parts, one level deep."""
    bare, metadata = _bare(annotation)
    if any(isinstance(m, BeforeValidator) and m.func is parse_bytes for m in metadata):
        return Shape("size", annotation)
    origin, args = get_origin(bare), get_args(bare)
    if origin in (Union, types.UnionType):
        inner = ((a, shape(a)) for a in args if a is not type(None))
        members = tuple(m for a, s in inner for m in (s.items if s.kind == "union" else (a,)))
        return shape(members[0]) if len(members) == 1 else Shape("union", annotation, members)
    if origin is Literal:
        return Shape("literal", annotation, args)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return Shape("model", bare)
    if origin in (list, set, frozenset) or (origin is tuple and args[-1:] == (Ellipsis,)):
        return Shape("list", annotation, args[:1])
    if origin is tuple:
        return Shape("pair", annotation, args)
    if origin is dict:
        return Shape("map", annotation, args)
    kind = {bool: "bool", int: "int", float: "float", str: "str"}.get(bare, "other")
    known = ((name, getattr(part, name, None)) for part in metadata for name in ("gt", "ge", "lt", "le"))
    bounds = {name: value for name, value in known if isinstance(value, (int, float))}
    return Shape(kind, annotation, (), tuple(bounds.items()))


def describe(annotation: Any) -> str:
    """The values that a type accepts, in words."""
    s = shape(annotation)
    if s.kind == "union":
        others = (describe(m) for m in s.items if shape(m).kind != "literal" and not _is_schedule(m))
        return join([*(f"`{w}`" for w in words_of(annotation)), *dict.fromkeys(others)])
    if s.kind == "literal":
        return one_of(s.items)
    if s.kind == "model":
        return _model(s.annotation)
    if s.kind == "list":
        return f"a list of {_plural(s.items[0])}"
    if s.kind == "pair":
        return f"a pair of {_plural(s.items[0])}" if len(s.items) == 2 else f"a list of {len(s.items)} {_plural(s.items[0])}"
    if s.kind == "map":
        return f"a map `{{NAME: {_placeholder('value', s.items[1])}, …}}`"
    words = {"bool": "`true` or `false`", "str": "text", "size": "a size such as `512MiB`", "int": "a whole number", "float": "a number"}
    return words.get(s.kind, "something else") + _range(s)


def describe_argument(annotation: Any) -> str:
    """The values that an argument accepts, in words, schedules included: for documentation."""
    return describe(annotation) + (", or a schedule over the epochs" if schedules_of(annotation) else "")


def accepts(annotation: Any, *kinds: str) -> bool:
    """Tests if a type, or a member of a union, is of one of the kinds."""
    s = shape(annotation)
    return s.kind in kinds or (s.kind == "union" and any(accepts(m, *kinds) for m in s.items))


def words_of(annotation: Any) -> list[str]:
    """The words that a type accepts."""
    s = shape(annotation)
    if s.kind == "union":
        return [w for m in s.items for w in words_of(m)]
    return [str(w) for w in s.items] if s.kind == "literal" else []


def field_type(model: type[BaseModel], name: str) -> Any:
    """The whole type of a field, constraints included."""
    info = model.model_fields[name]
    annotation: Any = info.annotation
    for constraint in info.metadata:
        annotation = Annotated[annotation, constraint]
    return annotation


def _bare(annotation: Any) -> tuple[Any, list[Any]]:
    metadata: list[Any] = []
    while get_origin(annotation) is Annotated:
        annotation, *extra = get_args(annotation)
        metadata += [part for item in extra for part in (item, *getattr(item, "metadata", ()))]
    return annotation, metadata


def _range(s: Shape) -> str:
    b = dict(s.bounds)
    if b.get("le", 0) >= 2**31:
        del b["le"]
    if "ge" in b and "le" in b:
        return f" from {b['ge']:g} to {b['le']:g}"
    words = {"gt": "above {:g}", "ge": "of {:g} or more", "lt": "below {:g}", "le": "of {:g} or less"}
    parts = [words[name].format(b[name]) for name in ("gt", "ge", "lt", "le") if name in b]
    return f" {' and '.join(parts)}" if parts else ""


def _is_schedule(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Schedule)


def schedules_of(annotation: Any) -> list[str]:
    """The schedules that a type accepts, as words; `describe` leaves them out."""
    members = shape(annotation).items if shape(annotation).kind == "union" else ()
    return [name for member in members if _is_schedule(member) for name in member.model_fields]


def with_arguments(annotation: Any, word: str) -> str | None:
    """A word of a choice with its arguments, if it needs some."""
    for member in shape(annotation).items if shape(annotation).kind == "union" else ():
        if shape(member).kind == "model" and list(member.model_fields) == [word]:
            return describe(member).strip("`")
    return None


def _model(model: type[BaseModel]) -> str:
    required = [name for name, f in model.model_fields.items() if f.is_required() or len(model.model_fields) == 1]
    if not required:
        return f"a map with {one_of(model.model_fields, 'and')}"
    return "`{" + ", ".join(f"{name}: {_placeholder(name, field_type(model, name))}" for name in required) + "}`"


def _placeholder(name: str, annotation: Any) -> str:
    s = shape(annotation)
    fixed = {"size": "SIZE", "int": "N", "float": "VALUE", "model": "{…}", "list": "[…]"}
    if s.kind == "literal" and len(s.items) == 1:
        return str(s.items[0])
    return fixed.get(s.kind) or ("WORD" if words_of(annotation) else name.upper())


def _plural(annotation: Any) -> str:
    s = shape(annotation)
    if s.annotation is Transform:
        return "steps"
    named = s.kind == "str" and any(getattr(part, "pattern", None) for part in _bare(annotation)[1])
    words = {"int": "whole numbers", "float": "numbers", "str": "names" if named else "texts", "bool": "`true` or `false`"}
    return words[s.kind] + _range(s).replace(" of ", ", each ") if s.kind in words else "values"


_adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(maxsize=256)(TypeAdapter)


def valid(annotation: Any, value: Any) -> bool:
    """Tests if a plain value is valid for a type."""
    try:
        validated(annotation, value)
    except ValidationError:
        return False
    return True


def validated(annotation: Any, value: Any) -> Any:
    """Converts a plain value to a type. Raises `ValidationError` if it is not valid."""
    # JSON, as only there strict checks (no "yes" for a bool, no "3" for a number) accept a list for a tuple.
    return _adapter(annotation).validate_json(json.dumps(value), strict=True)
