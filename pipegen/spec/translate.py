"""Turns what was written with words of other libraries into lines of a spec, with the user's values where they fit.

The table (`diagnostics/foreign.py`) says what a word is; the models say which values are right, so that what is advised is accepted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.diagnostic import Applicability, Edit, Fix, Span
from pipegen.diagnostics.foreign import NOTHING, Row, plain, rows
from pipegen.ops.base import Transform
from pipegen.ops.registry import sources, transforms
from pipegen.spec.expect import field_type, words_of
from pipegen.spec.flow import flow
from pipegen.spec.models import PipelineSpec
from pipegen.spec.traps import number_trap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from pipegen.diagnostics.advice import Advice
    from pipegen.diagnostics.foreign import Kind
    from pipegen.spec.validate import Place

_MOST = 2
"""Answers that are given at most."""
_EXAMPLE = re.compile(r"(\w+)~(1-)?([\w+]*?)(?:\*([\d.]+))?")


def instead_of_step(name: str, given: Any) -> list[Advice]:
    """Returns what to write in place of a step of another library.

    Args:
        name: The step's name there.
        given: Its arguments: a map, a single value, or nothing.
    """
    fitting = _fitting(name, given, "step") or _our_own(name)
    if fitting and fitting[0].is_about_values(name):
        return [_step(fitting[0], given)]
    return [_step(row, given) for row in fitting[:_MOST]] or [_whole(row, name, given) for row in _fitting(name, given, "spec")[:1]]


def _our_own(name: str) -> list[Row]:
    """Returns a row for a step of ours in another spelling, such as `RandomHue`: its worked example."""
    own = next((op for op in transforms() if plain(op) == plain(name)), None)
    if own is None:
        return []
    example = transforms()[own].examples[0].yaml
    return [Row("step", (name,), example if "steps:" in example else re.sub(r"(?<=[{ ])(\w+): (?!\{)", r"\1~: ", example))]


def instead_of_source(name: str, given: Any) -> list[Advice]:
    """Returns what to write in place of a source of another library."""
    made = [_filled(_parsed(row), given) for row in _fitting(name, given, "source")[:1]]
    return [write(_one(node), "source", shown=f"source: {{{_one(node)}}}") for node in made]


def bare_arguments(op: str, given: Any) -> Advice | None:
    """Returns a step or a source of ours that was given one value in place of a map, with the argument that the value fits."""
    for row in _fitting(op, given, "step"):
        if row.is_about_values(op):
            return _step(row, given)
    cls = {**sources(), **transforms()}[op] if op in sources() else transforms()[op]
    own = [name for name in cls.model_fields if name in cls.__annotations__ or cls.model_fields[name].is_required()]
    for name in [*own, *(n for n in cls.model_fields if n not in own)]:
        for value in _readings(given, field_type(cls, name)):
            if _accepts(op, {name: value}):
                return _replaced(op, {name: value})
    return None


def instead_of_key(model: type[BaseModel], key: str, given: Mapping[str, Any]) -> Advice | None:
    """Returns the entries to write in place of one that a map has not, where the map has what it means.

    Args:
        model: The map's model.
        key: The key.
        given: The whole map.
    """
    others = {name: value for name, value in given.items() if name != key}
    alone = all(name in model.model_fields for name in others)
    fitting = _fitting(key, given[key], "key")
    for row in fitting:
        if row.names and all(name in model.model_fields and name not in given for name in row.names):
            if not all(_takes(model, name, value) for name, value in _entries(model, row, None).items()):
                continue  # the key of another map
            tried = [_entries(model, row, given[key]), _entries(model, row, None)]
            entries = next((e for e in tried if not alone or _fills(model, {**others, **e})), None)
            if entries is None:
                continue  # what is said of the whole map would not do
            if isinstance(given[key], (dict, list)) and model is PipelineSpec and list(entries.values()) == [given[key]]:
                return None  # another key is all it needs
            if isinstance(given[key], (dict, list)) and list(entries.values()) != [given[key]] and "~" in row.lines and len(row.names) == 1:
                return None  # more was said than a line can say again
            return write(", ".join(f"{name}: {flow(value)}" for name, value in entries.items()), "entry", said=_said(row))
    if alone and issubclass(model, Transform) and any(set(row.names) & set(model.model_fields) for row in fitting):
        return write(model.examples[0].yaml, "step", "for example {}")
    return None


def anywhere(word: str, given: Any, *, top: bool) -> Advice | None:
    """Returns lines of the whole spec for a word that has no place where it stands.

    Args:
        word: The word.
        given: Its value.
        top: Whether it stands among the sections.
    """
    for row in _fitting(word, given, "spec"):
        return _whole(row, word, given, top=top)
    for row in _fitting(word, given, "step"):
        if given is False and not row.is_about_values(word):
            return write("", "nothing", f"leave `{word}` out: a step that is not wanted is not written")
        if row.lines == NOTHING:
            return write("", "nothing", f"leave `{word}` out: {row.remark}")
        steps = "\n".join(f"- {_one(step)}" for step in _steps(row, given))
        return write(steps, "transforms", _said(row, " under `transforms`"), instead=True)
    return None


def wrong_value(path: tuple[str | int, ...], value: Any) -> Advice | None:
    """Returns lines of the whole spec for a key of ours that was given what another library would give it, such as `shuffle: 1000`."""
    for row in _fitting(str(path[-1]), value, "spec"):
        section = row.names[0] if row.names else None
        if section == path[0] and row.is_about_values(str(path[-1])):
            return write(_filled_text(row, value), "spec", said=_said(row))
    return None


def entry_fix(advice: Advice, place: Place, key: str) -> Fix | None:
    """Returns the edit that follows advice about an entry of a map, where it stands in one line and nothing else has to change."""
    here, locate = place.at(key).path, place.locate
    start, end = locate.spans.keys.get(here), locate.spans.values.get(here)
    section = re.match(r"\w+", advice.lines)
    at_home = advice.into == "entry" or (advice.into == "spec" and not place.path and section is not None and section[0] not in locate.raw)
    if not at_home or start is None or end is None or locate.source(here) is None or start.line != end.line or start.file != end.file:
        return None
    if any(known[: len(here)] == here for known in locate.params):
        return None
    span = Span(start.file, start.line, start.column, end.line, end.end_column)
    return Fix(f"write `{advice.lines}`", (Edit(span, advice.lines),), Applicability.SUGGESTION)


def step_fix(advice: Advice, place: Place, name: str) -> Fix | None:
    """Returns the edit that puts one step in the place of another, where that stands in one line; `place` is the step's."""
    span = place.locate.span(place.path)
    written = place.locate.source(place.path)
    if advice.into != "step" or "\n" in advice.lines or span is None or written is None or not written.startswith(name):
        return None
    if any(known[: len(place.path)] == place.path for known in place.locate.params):
        return None
    return Fix(f"write `{advice.lines}`", (Edit(span, advice.lines),), Applicability.SUGGESTION)


def split_named(word: str) -> str | None:
    """Returns the name that this library gives a split of another name, or `None`."""
    return next((row.lines for row in rows(word, "split")), None)


def _fitting(word: str, value: Any, place: Kind) -> list[Row]:
    """Returns the rows that hold for a word with its value, those about the value first."""
    found = [row for row in rows(word, place) if row.holds(word, value)]
    return sorted(found, key=lambda row: not row.is_about_values(word))


def _said(row: Row, where: str = "") -> str:
    return f"write {{}}{where}" + (f" ({row.remark})" if row.remark else "")


def _step(row: Row, given: Any) -> Advice:
    if row.lines == NOTHING:
        return write("", "nothing", f"leave it out: {row.remark}")
    steps = [_one(step) for step in _steps(row, given)]
    return write(steps[0] if len(steps) == 1 else "\n".join(f"- {step}" for step in steps), "step", said=_said(row))


def _replaced(op: str, arguments: dict[str, Any]) -> Advice:
    lines = _one({op: arguments})
    return write(lines, "step") if op in transforms() else write(lines, "source")


def _whole(row: Row, word: str, given: Any, *, top: bool = False) -> Advice:
    if row.lines == NOTHING:
        return write("", "nothing", f"leave `{word}` out: {row.remark}")
    return write(_filled_text(row, given), "spec", _said(row, "" if top else " at the top level"), instead=True)


def _filled_text(row: Row, given: Any) -> str:
    node = _parsed(row)
    return "\n".join(f"{section}: {flow(value)}" for section, value in _filled(node, given).items())


def _steps(row: Row, given: Any) -> list[dict[str, Any]]:
    return [_filled(_parsed(row, lines), given) for lines in row.lines.split(" ; ")]


def _parsed(row: Row, lines: str | None = None) -> dict[str, Any]:
    """Returns lines of the table as a map; their examples are still marked."""
    import yaml

    node = yaml.safe_load(f"{{{row.lines}}}" if row.place in ("key", "spec") else lines or row.lines)
    return {node: {}} if isinstance(node, str) else {k: v or {} for k, v in node.items()} if row.place in ("step", "source") else node


def _filled(node: dict[str, Any], given: Any) -> dict[str, Any]:
    """Returns a step, a source or sections with the user's values in the place of examples, as far as they are accepted."""
    marks = _marks(node)
    given = _share(marks, given)
    examples = {path: example for path, _, example in marks}
    best = _put(node, examples)
    taken: dict[tuple[str, ...], Any] = {}
    ((op, _),) = best.items() if len(best) == 1 else [("", None)]
    for path, mark, _ in marks:
        wanted = _wanted(mark, given, first=path == marks[0][0])
        for value in _readings(wanted, _type_at(path)) if wanted is not None else ():
            if _right(tried := _put(node, {**examples, **taken, path: value})):
                taken[path], best = value, tried
                break
    for path in [p for p in examples if p not in taken] if taken else ():
        left = {p: v for p, v in {**examples, **taken}.items() if p != path}
        if _right(tried := _put(node, left)):
            examples.pop(path)
            best = tried
    return _with_further(op, best, given) if op in transforms() else best


def _with_further(op: str, best: dict[str, Any], given: Any) -> dict[str, Any]:
    """Adds the other arguments of a step of another library that have a counterpart, such as its probability."""
    for key, value in given.items() if isinstance(given, dict) else ():
        cls = transforms()[op]
        further = [{key: value}] if key in cls.model_fields else _counterparts(cls, key, value)
        fitting = (tried for more in further if not more.keys() & best[op].keys() and _right(tried := {op: {**best[op], **more}}))
        best = next(fitting, best)
    return best


def _counterparts(model: type[BaseModel], key: str, value: Any) -> list[dict[str, Any]]:
    """Returns what an argument of another library may be in a map of ours."""
    fitting = [row for row in _fitting(key, value, "key") if row.names and all(name in model.model_fields for name in row.names)]
    return [_entries(model, row, value) for row in fitting]


def _entries(model: type[BaseModel], row: Row, given: Any) -> dict[str, Any]:
    """Returns the entries of a row about keys, the user's values in the place of examples where their types allow."""
    node = _parsed(row)
    given = _share(_marks(node), given)
    values: dict[tuple[str, ...], Any] = {path: example for path, _, example in _marks(node)}
    for path, mark, _ in _marks(node):
        wanted = _wanted(mark, given)
        for value in _readings(wanted, field_type(model, path[0])) if wanted is not None else ():
            tried = _put(node, {**values, path: value})
            if _takes(model, path[0], tried[path[0]]):
                values[path] = value
                break
    return _put(node, values)


def _share(marks: list[tuple[tuple[str, ...], re.Match[str], Any]], given: Any) -> Any:
    """Returns the user's value, or `None` where it is to be a share of 1 and is none."""
    shared = any(mark[2] for _, mark, _ in marks)
    return given if not shared or (isinstance(given, float) and 0 < given < 1) else None


def _marks(node: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], re.Match[str], Any]]:
    """Returns the examples of a node: the path with plain keys, the mark, and the value."""
    found = []
    for key, inner in node.items() if isinstance(node, dict) else ():
        mark = _EXAMPLE.fullmatch(str(key))
        if mark is not None:
            found.append(((*path, mark[1]), mark, inner))
        else:
            found += _marks(inner, (*path, str(key)))
    return found


def _put(node: Any, values: Mapping[tuple[str, ...], Any], path: tuple[str, ...] = ()) -> Any:
    """Returns a node with plain keys and values for its examples; an example without a value is left out."""
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
    """Returns the user's value for an example, or `None`; a single value goes to the first of several that take it from a name."""
    ours, rest, theirs, times = mark[1], mark[2], mark[3], float(mark[4] or 1)
    value: Any = None
    if isinstance(given, dict):
        named = {plain(str(k)): v for k, v in given.items()}
        pair = [named.get(plain(part)) for part in theirs.split("+")] if "+" in theirs else []
        if pair and None not in pair:
            return pair
        meant = (k for k, v in given.items() if any(row.names[:1] == (ours,) and row.holds(str(k), v) for row in rows(str(k), "key")))
        names = [n for n in (theirs, ours, *meant) if n and n != "value"]
        found = [(n, named[plain(n)]) for n in names if plain(n) in named]
        if not found:
            return None
        value = found[0][1]
        times = times if found[0][0] == theirs else 1
    elif first or theirs in ("", "value"):
        value = given
    if isinstance(value, bool) or value is None:
        return value
    if rest and isinstance(value, (int, float)):
        return _tidy(1 - value)
    if times != 1:
        scaled = [_tidy(v * times) for v in (value if isinstance(value, list) else [value]) if isinstance(v, (int, float))]
        return (scaled if isinstance(value, list) else scaled[0]) if scaled else None
    return value


def _tidy(number: float) -> float:
    """Returns a number without the noise of its last digits, whole where it is."""
    return int(number) if float(number).is_integer() else round(number, 6)


def _readings(value: Any, annotation: Any) -> list[Any]:
    """Returns what a value may be in a spec: itself, the number that a text such as `1/255` is, or the word for a word from elsewhere."""
    found = [value]
    if isinstance(value, str):
        trap = number_trap(value)
        found += [trap[0]] if trap is not None else []
        words = words_of(annotation) if annotation is not None else []
        found += [row.lines for row in rows(value, "value") if row.lines in words]
    if isinstance(value, list) and len(set(map(str, value))) == 1:
        found.append(value[0])
    return found


def _type_at(path: tuple[str, ...]) -> Any:
    """Returns the type of an argument of a step or a source, where it is one."""
    cls = transforms().get(path[0]) or sources().get(path[0])
    return field_type(cls, path[1]) if cls is not None and len(path) > 1 and path[1] in cls.model_fields else None


def _right(node: dict[str, Any]) -> bool:
    """Tells whether a step, a source, or every section of a node is accepted."""
    return all(_accepts(name, value) for name, value in node.items())


def _fills(model: type[BaseModel], value: dict[str, Any]) -> bool:
    """Tells whether a map is right as a whole, as far as that shows without what is around it."""
    from pipegen.spec.validate import valid

    return model is PipelineSpec or "steps" in model.model_fields or valid(model, value)


def _takes(model: type[BaseModel], name: str, value: Any) -> bool:
    """Tells whether a map takes a value for one of its keys."""
    from pipegen.spec.validate import valid

    return _accepts(name, value) if model is PipelineSpec else valid(field_type(model, name), value)


def _accepts(name: str, value: Any) -> bool:
    """Tells whether a section, a source or a step takes a value."""
    from pipegen.spec.validate import valid

    if name == "transforms":
        steps = [{step: {}} if isinstance(step, str) else step for step in value] if isinstance(value, list) else [None]
        return all(isinstance(step, dict) and all(_accepts(op, given) for op, given in step.items()) for step in steps)
    if name == "source":
        return isinstance(value, dict) and all(_accepts(op, arguments) for op, arguments in value.items())
    if name in PipelineSpec.model_fields:
        return valid(field_type(PipelineSpec, name), value)
    if name == "by_split":
        return all(_accepts("source", part) for part in value.values())
    cls = transforms().get(name) or sources().get(name)
    return cls is not None and ("steps" in cls.model_fields or valid(cls, value))


def _one(step: Mapping[str, Any]) -> str:
    """Returns a step or a source as it is written: a word, or a word with its arguments."""
    ((name, arguments),) = step.items()
    return f"{name}: {flow(arguments)}" if arguments else name
