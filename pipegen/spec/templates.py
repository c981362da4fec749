"""Insertion of the user's values into lines of the table of foreign words, if the models accept them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from pipegen.diagnostics.suggest import Kind, Row, plain, rows
from pipegen.errors import OpError
from pipegen.ops.registry import sources, transforms
from pipegen.ops.sampling_sections import sized
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transform import Transform
from pipegen.spec.compose import flow, number_trap
from pipegen.spec.expect import field_type, is_long, valid, validated, words_of
from pipegen.spec.models import PipelineSpec
from pipegen.spec.peers.converting import tidy

_EXAMPLE = re.compile(r"(\w+)~(1[-+])?([\w+/-]*?)(?:\*([\d.]+))?")


def fitting_rows(word: str, value: Any, place: Kind) -> list[Row]:
    """The rows for a word with its value, those about the value first."""
    return sorted((row for row in rows(word, place) if row.holds(word, value)), key=lambda row: not row.is_about_values(word))


def steps_of(row: Row, given: Any) -> list[dict[str, Any]]:
    """The steps of a row with the user's values."""
    return [filled(row, given, lines) for lines in row.lines.split(" ; ")]


def parsed(row: Row, lines: str | None = None) -> dict[str, Any]:
    """Lines of the table as a map with marked examples."""
    node = yaml.safe_load(f"{{{row.lines}}}" if row.place in ("key", "spec") else lines or row.lines)
    return {node: {}} if isinstance(node, str) else {k: v or {} for k, v in node.items()} if row.place in ("step", "source") else node


def marks_of(row: Row) -> list[tuple[str, str, str, str]]:
    """The arguments of another library in the steps of a row.

    Each is our name, a sign (`1-` for one minus theirs, `1+` for one plus theirs), their name or names, and a factor.
    """
    found = [mark for lines in row.lines.split(" ; ") for _, mark, _ in _marks(parsed(row, lines))]
    return [(mark[1], mark[2] or "", mark[3], mark[4] or "") for mark in found]


def filled(row: Row, given: Any, lines: str | None = None) -> dict[str, Any]:
    """Replaces examples in lines of a row, a step, a source or sections, by the user's values, if accepted."""
    node = parsed(row, lines)
    marks = _marks(node)
    given = _share(marks, given)
    examples = {path: example for path, _, example in marks}
    best = _put(node, examples)
    right = _right_in_part if best.keys() == {"source"} and not _right(best) else _right
    taken: dict[tuple[str, ...], Any] = {}
    ((op, _),) = best.items() if len(best) == 1 else [("", None)]
    for path, mark, _ in marks:
        wanted = _wanted(mark, given, first=path == marks[0][0])
        for value in _fitting(wanted, path) if wanted is not None else ():
            if right(tried := _put(node, {**examples, **taken, path: value})):
                taken[path], best = value, tried
                break
    for path in [p for p in examples if p not in taken] if taken else ():
        left = {p: v for p, v in {**examples, **taken}.items() if p != path}
        if right(tried := _put(node, left)):
            examples.pop(path)
            best = tried
    return further(given, best) if op in transforms() else best


def further(given: Any, best: dict[str, Any]) -> dict[str, Any]:
    """Adds other arguments of a step of another library that have a counterpart, such as its probability."""
    ((op, _),) = best.items()
    for key, value in given.items() if isinstance(given, dict) else ():
        cls = transforms()[op]
        forms = [{key: value}]
        if key not in cls.model_fields:
            known = [row for row in fitting_rows(key, value, "key") if row.names and cls.model_fields.keys() >= {*row.names}]
            forms = [entries_of(cls, row, value) for row in known]
        fitting = (tried for more in forms if not more.keys() & best[op].keys() and _right(tried := {op: {**best[op], **more}}))
        best = next(fitting, best)
    return best


def entries_of(model: type[BaseModel], row: Row, given: Any) -> dict[str, Any]:
    """The entries of a row about keys, with the user's values if their types fit."""
    node = parsed(row)
    given = _share(_marks(node), given)
    values: dict[tuple[str, ...], Any] = {path: example for path, _, example in _marks(node)}
    for path, mark, _ in _marks(node):
        wanted = _wanted(mark, given)
        for value in readings(wanted, field_type(model, path[0])) if wanted is not None else ():
            tried = _put(node, {**values, path: value})
            if takes(model, path[0], tried[path[0]]):
                values[path] = value
                break
    return _put(node, values)


def _share(marks: list[tuple[tuple[str, ...], re.Match[str], Any]], given: Any) -> Any:
    """Removes values that do not fit on a line; `None` if one should be a share of 1 and is not."""
    if isinstance(given, dict):
        given = {key: value for key, value in given.items() if not is_long(value)}
    elif is_long(given):
        return None
    shared = any(mark[2] == "1-" for _, mark, _ in marks)
    return given if not shared or (isinstance(given, float) and 0 < given < 1) else None


def _marks(node: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], re.Match[str], Any]]:
    """The examples of a node: the path with plain keys, the mark, and the value."""
    found = []
    for key, inner in node.items() if isinstance(node, dict) else ():
        mark = _EXAMPLE.fullmatch(str(key))
        if mark is not None:
            found.append(((*path, mark[1]), mark, inner))
        else:
            found += _marks(inner, (*path, str(key)))
    return found


def _put(node: Any, values: Mapping[tuple[str, ...], Any], path: tuple[str, ...] = ()) -> Any:
    """Replaces the examples of a node by values; leaves out examples without one."""
    if not isinstance(node, dict):
        return node
    result: dict[str, Any] = {}
    for key, inner in node.items():
        mark = _EXAMPLE.fullmatch(str(key))
        at = (*path, mark[1] if mark is not None else str(key))
        if mark is None:
            result[at[-1]] = _put(inner, values, at)
        elif at in values:
            result[at[-1]] = values[at]
    return result


def _wanted(mark: re.Match[str], given: Any, *, first: bool = True) -> Any:
    """The user's value for an example, if any; a single value is for the first of several examples with one name."""
    ours, rest, theirs, times = mark[1], mark[2], mark[3], float(mark[4] or 1)
    value: Any = None
    if isinstance(given, dict):
        named = {plain(str(k)): v for k, v in given.items()}
        pair = [_difference(part, named) for part in theirs.split("+")]
        if len(pair) > 1 and None not in pair:
            return pair
        meant = (
            k
            for k, v in given.items()
            if any(row.names[:1] == (ours,) and "~" in row.lines and row.holds(str(k), v) for row in rows(str(k), "key"))
        )
        alike = theirs.split("/")
        names = [n for n in (*alike, ours, *meant) if n and n != "value"]
        found = [(n, named[plain(n)]) for n in names if plain(n) in named]
        if not found:
            return None
        value = found[0][1]
        if found[0][0] not in alike:
            times, rest = 1, "" if rest == "1+" else rest
    elif first or theirs in ("", "value"):
        value = given
    if isinstance(value, bool) or value is None:
        return value
    if rest == "1-" and isinstance(value, (int, float)):
        return tidy(1 - value)
    if rest == "1+" and isinstance(value, list):
        return [tidy(1 + v) if isinstance(v, (int, float)) else v for v in value]
    if times != 1:
        scaled = [tidy(v * times) for v in (value if isinstance(value, list) else [value]) if isinstance(v, (int, float))]
        return (scaled if isinstance(value, list) else scaled[0]) if scaled else None
    return value


def _difference(part: str, named: Mapping[str, Any]) -> Any:
    """The user's value for one of a pair, or for `a-b`, the difference of two, or `a` if it is the only one."""
    end, _, start = part.partition("-")
    last, first = named.get(plain(end)), named.get(plain(start), 0)
    return last - first if start and isinstance(last, int) and isinstance(first, int) else last


def readings(value: Any, annotation: Any) -> list[Any]:
    """The possible forms of a value in a spec: itself, the number of a text such as `1/255`, or our word for a foreign one."""
    found = [value]
    if isinstance(value, str):
        trap = number_trap(value)
        found += [trap[0]] if trap is not None else []
        words = words_of(annotation) if annotation is not None else []
        found += [row.lines for row in rows(value, "value") if row.lines in words]
    if isinstance(value, list) and len(set(map(str, value))) == 1:
        found.append(value[0])
    return found


def _fitting(value: Any, path: tuple[str, ...]) -> list[Any]:
    """The possible forms of a value for an argument of a step or a source: a single number may be a range."""
    cls = transforms().get(path[0]) or sources().get(path[0])
    annotation = field_type(cls, path[1]) if cls is not None and len(path) > 1 and path[1] in cls.model_fields else None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    pair = number and not any(valid(annotation, one) for one in (0, 0.2, 1)) and valid(annotation, [value, value])
    return readings(value, annotation) + ([[value, value]] if pair else [])


def _right(node: dict[str, Any]) -> bool:
    """Tests if a step, a source, or every section of a node is valid."""
    return all(accepts(name, value) for name, value in node.items())


def _right_in_part(node: dict[str, Any]) -> bool:
    """Tests if each argument of a source in a node is valid; the source has others in the spec."""
    own = [(sources().get(op), arguments) for op, arguments in node.get("source", {}).items()]
    return all(cls is not None and all(valid(field_type(cls, key), value) for key, value in given.items()) for cls, given in own)


def fills(model: type[BaseModel], value: dict[str, Any]) -> bool:
    """Tests if a map is valid as a whole, without its surroundings."""
    return model is PipelineSpec or _holds_steps(model) or valid(model, value)


def _holds_steps(model: type[BaseModel]) -> bool:
    """Tests if a map contains steps, rather than a number of them."""
    return "steps" in model.model_fields and not valid(field_type(model, "steps"), 8)


def takes(model: type[BaseModel], name: str, value: Any) -> bool:
    """Tests if a map accepts a value for one of its keys."""
    return accepts(name, value) if model is PipelineSpec else valid(field_type(model, name), value)


def accepts(name: str, value: Any) -> bool:
    """Tests if a section, a source or a step accepts a value."""
    if name == "transforms":
        steps = [{step: {}} if isinstance(step, str) else step for step in value] if isinstance(value, list) else [None]
        return all(isinstance(step, dict) and all(accepts(op, given) for op, given in step.items()) for step in steps)
    if name == "source":
        return isinstance(value, dict) and all(accepts(op, arguments) for op, arguments in value.items())
    if name in PipelineSpec.model_fields:
        return valid(field_type(PipelineSpec, name), value)
    if name == "by_split":
        return all(accepts("source", part) for part in value.values())
    cls = transforms().get(name) or sources().get(name)
    if cls is None:
        return False
    if _holds_steps(cls):  # steps inside may have names of another library, which findings of their own answer
        inner = value.get("steps") if isinstance(value, dict) else None
        return isinstance(inner, list) and valid(cls, {**value, "steps": ["random_flip"] * len(inner)})
    return valid(cls, value) and (name not in transforms() or _suits_photos(validated(cls, value)))


def _suits_photos(step: Transform) -> bool:
    """Tests if a step of valid types can run on a uint8 photograph."""
    try:
        sized(step, (224, 224)).infer(IMAGE_224)
    except OpError as error:
        return error.code != "PG105"  # other refusals are about what enters, which a photograph may not be
    return True


def written(step: Mapping[str, Any]) -> str:
    """A step or a source as written: a word, or a word with its arguments."""
    ((name, arguments),) = step.items()
    return f"{name}: {flow(arguments)}" if arguments else name
