"""Turns what was written with words of other libraries into lines of a spec, with the user's values where they fit.

The table (`diagnostics/foreign.txt`) says what a word is; the models say which values are right, so that what is advised is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from pipegen.diagnostics.diagnostic import Advice, Applicability, Edit, Fix, Span, write
from pipegen.diagnostics.suggest import NOTHING, Row, meanings, plain
from pipegen.ops.model import OneOf
from pipegen.ops.registry import sources, transforms
from pipegen.ops.transform import Transform
from pipegen.spec.compose import flow
from pipegen.spec.expect import field_type, is_long, valid
from pipegen.spec.locate import Place
from pipegen.spec.models import PipelineSpec
from pipegen.spec.peers.words import Meaning, with_argument
from pipegen.spec.peers.words import meanings as meanings_elsewhere
from pipegen.spec.templates import accepts, entries_of, filled, fills, fitting_rows, further, marks_of, readings, steps_of, takes, written

_MOST = 2  # the most answers


def instead_of_step(name: str, given: Any) -> list[str]:
    """Advice in place of a step of another library, whose arguments are a map, a single value, or nothing.

    A single line is an exact equivalent; if there may be none, more lines explain why.
    """
    if known := meanings_elsewhere(name, given):
        return _of_peers(name, given, known)
    fitting = fitting_rows(name, given, "step") or _our_own(name)
    of_spec = fitting_rows(name, given, "spec")[:1]
    if not fitting and not of_spec and (steps := _steps_with(name, given)):
        return [*steps]
    if fitting and fitting[0].is_about_values(name):
        return [_step(fitting[0], given)]
    return [_step(row, given) for row in fitting[:_MOST]] or [_whole(row, name, given) for row in of_spec]


def _of_peers(name: str, given: Any, known: list[Meaning]) -> list[str]:
    """The steps that a word means in libraries, and the names, values and reasons of what has no form here."""
    found: list[str] = []
    step = name.rpartition(".")[2]
    several = len({repr(one.steps) for one in known}) > 1
    for one in known:
        its = f"{one.library}'{'' if one.library.endswith('s') else 's'} `{step}`"
        steps, left = _with_strange(one, given)
        if left:
            has = f"; it has {_list(one.arguments)}" if one.arguments else ""
            found.append(f"{its} has no argument {_list([name for name in left if not is_long(name)][:3])}{has}")
        elif not steps:
            value = flow(one.value) if one.value is not None and not is_long(one.value) else ""
            about = f"`{one.about}: {value}` of " if one.about and value else f"`{one.about}` of " if one.about else ""
            near = f"; the nearest is `{written(one.nearest)}`" if one.nearest is not None else ""
            found.append(f"pipegen has no form of {about}{its}: {one.why}{near}")
        elif one.lacking:
            found += [_peer(one, steps, "for example {}"), f"{its} has no default for {_list(one.lacking)}"]
        else:
            advice = _peer(one, steps, f"write {{}} for {its}" if several else "write {}")
            found += [] if any(isinstance(line, Advice) and line.lines == advice.lines for line in found) else [advice]
    return found


def _peer(one: Meaning, steps: list[dict[str, Any]], said: str) -> Advice:
    lines = written(steps[0]) if len(steps) == 1 else "\n".join(f"- {written(each)}" for each in steps)
    return write(lines, "step", said + (f" ({one.remark})" if one.remark else ""))


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _with_strange(one: Meaning, given: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Adds arguments that the library does not have, if we do; returns the names of the others, too."""
    steps, left = list(one.steps), []
    for name in one.strange:
        more = further({name: given[name]}, steps[0]) if len(steps) == 1 and not is_long(given[name]) else None
        if more is None or more == steps[0]:
            left.append(name)
        else:
            steps[0] = more
    return steps, left


def _steps_with(argument: str, given: Any) -> list[Advice]:
    """Steps with an argument that was written as a step, such as `degrees` or `height_factor`, random ones first."""
    said = f"`{argument}` is an argument, and stands in the braces of its step: write {{}}"
    own = [op for op, cls in transforms().items() if argument in cls.model_fields and argument not in Transform.model_fields]
    own.sort(key=lambda op: (not op.startswith("random_"), not transforms()[op].model_fields[argument].is_required()))
    tried = ({op: {argument: value}} for op in own for value in readings(given, field_type(transforms()[op], argument)))
    steps = [write(written(step), "step", said) for step in islice((step for step in tried if accepts(*next(iter(step.items())))), _MOST)]
    if steps:
        return steps
    elsewhere = [_peer(one, list(one.steps), said) for one in with_argument(argument, given) if len(one.steps) == 1]
    return list({one.lines: one for one in elsewhere}.values())[:_MOST]


def _our_own(name: str) -> list[Row]:
    """A row for a step of ours in another spelling, such as `RandomHue`, with its example."""
    letters = plain(name)
    own = next((op for op in transforms() if plain(op) == letters), None)
    if own is None:
        return []
    example = transforms()[own].examples[0].yaml
    return [Row("step", (name,), example if "steps:" in example else re.sub(r"(?<=[{ ])(\w+): (?!\{)", r"\1~: ", example))]


def instead_of_our_own(op: str, given: Any, strange: str | None = None) -> Advice | None:
    """Advice in place of a step of ours that is named as a step of other libraries with another meaning, such as `random_shift`.

    With a `strange` argument, only if the other step has it.
    """
    others = (row for row in fitting_rows(op, given, "step") if op not in row.names)
    return next((_step(row, given) for row in others if strange is None or any(strange in mark[2] for mark in marks_of(row))), None)


def instead_of_source(name: str, given: Any) -> list[Advice]:
    """Advice in place of a source of another library."""
    made = [filled(row, given) for row in fitting_rows(name, given, "source")[:1]]
    return [write(written(node), "source", shown=f"source: {{{written(node)}}}") for node in made]


def bare_arguments(op: str, given: Any) -> Advice | None:
    """A step or a source of ours with a single value, as the argument that it fits."""
    for row in fitting_rows(op, given, "step"):
        if row.is_about_values(op):
            return _step(row, given)
    cls = transforms().get(op) or sources()[op]
    names = [name for name in cls.model_fields if name not in getattr(cls, "of_some_kinds", ())]
    own = [name for name in names if name in cls.__annotations__ or cls.model_fields[name].is_required()]
    for name in [*own, *(n for n in names if n not in own)]:
        for value in readings(given, field_type(cls, name)):
            if accepts(op, {name: value}):
                return write(written({op: {name: value}}), "step" if op in transforms() else "source")
    return None


def instead_of_key(model: type[BaseModel], key: str, given: Mapping[str, Any]) -> Advice | None:
    """The entries in place of an unknown key of a map, if the map has their meaning."""
    others = {name: value for name, value in given.items() if name != key}
    for form in by_extension(model, given[key]):
        if not others.keys() & form.keys():
            return write(", ".join(f"{name}: {flow(value)}" for name, value in form.items()), "entry")
    alone = all(name in model.model_fields for name in others)
    known = [row for row in fitting_rows(key, given[key], "key") if row.names]
    # Not for arguments that another word also means, as `height` and `width` are both a `size`.
    strange = (fitting_rows(other, value, "key") for other, value in others.items() if other not in model.model_fields)
    taken = {row.names for rows in strange for row in rows[:1]}
    known_here = [row for row in known if all(name in model.model_fields for name in row.names)]
    fitting = [row for row in known_here if row.names not in taken]
    if known_here and not fitting:
        op = next((name for name, cls in transforms().items() if cls is model), "")
        return next((_step(row, given) for row in fitting_rows(op, None, "step") if row.names == (op,)), None)
    for row in fitting:
        if all(name not in given for name in row.names):
            if not all(takes(model, name, value) for name, value in entries_of(model, row, None).items()):
                continue  # the key of another map
            tried = [entries_of(model, row, given[key]), entries_of(model, row, None)]
            entries = next((e for e in tried if not alone or fills(model, {**others, **e})), None)
            if entries is None:
                continue  # what is said of the whole map would not do
            if isinstance(given[key], (dict, list)) and model is PipelineSpec and list(entries.values()) == [given[key]]:
                return None  # another key is all it needs
            if isinstance(given[key], (dict, list)) and list(entries.values()) != [given[key]] and "~" in row.lines and len(row.names) == 1:
                return None  # more was said than a line can say again
            return write(", ".join(f"{name}: {flow(value)}" for name, value in entries.items()), "entry", said=_said(row))
    said = next((row.names for row in known if all(name in given for name in row.names)), None)
    if said is not None and all(name in model.model_fields for name in said):
        names = " and ".join(f"`{name}: {flow(given[name])}`" for name in said)
        return write("", "nothing", f"leave `{key}` out: it means the same as {names}, which is there already")
    if alone and issubclass(model, Transform) and any(set(row.names) & set(model.model_fields) for row in known):
        return write(model.examples[0].yaml, "step", "for example {}")
    return None


def by_extension(model: type[BaseModel], value: Any) -> Iterator[dict[str, Any]]:
    """The entry for a file under the key that is named as its extension, such as `csv` of `series`; or `table: {csv: …}` of a `join`."""
    name = value.rpartition(".")[2].lower() if isinstance(value, str) else ""
    if name in model.model_fields:
        forms: tuple[Any, ...] = (value, {"path": value})
        yield from ({name: form} for form in forms if valid(field_type(model, name), form))
    for outer in model.model_fields:
        inner = field_type(model, outer)
        if isinstance(inner, type) and issubclass(inner, OneOf):
            yield from ({outer: form} for form in by_extension(inner, value))


def entries_in(advice: Advice) -> list[str]:
    """The keys in advice about an entry of a map."""
    return list(yaml.safe_load(f"{{{advice.lines}}}"))


def anywhere(word: str, given: Any, raw: Any, *, top: bool) -> Advice | None:
    """Lines of the whole spec `raw` for a misplaced word, at the `top` level or below."""
    for row in fitting_rows(word, given, "spec"):
        said = filled(row, None).get("source") if row.lines != NOTHING else None
        own = raw.get("source") if isinstance(raw, dict) else None
        another = isinstance(said, dict) and isinstance(own, dict) and said.keys().isdisjoint(own) and not accepts("source", said)
        if not another:
            return _whole(row, word, given, top=top)
        if (lines := _at_a_feature(word, given, raw["source"])) is not None:
            return lines
    if given is not False and (known := meanings_elsewhere(word, given)):
        meant = known[0].steps
        if len(known) == 1 and meant and not known[0].strange and not known[0].lacking:
            return write("\n".join(f"- {written(step)}" for step in meant), "transforms", "write {} under `transforms`", instead=True)
    for row in fitting_rows(word, given, "step"):
        if given is False and not row.is_about_values(word):
            return write("", "nothing", f"leave `{word}` out: a step that is not wanted is not written")
        if row.lines == NOTHING:
            return write("", "nothing", f"leave `{word}` out: {row.remark}")
        steps = "\n".join(f"- {written(step)}" for step in steps_of(row, given))
        return write(steps, "transforms", _said(row, " under `transforms`"), instead=True)
    return None


def _at_a_feature(word: str, given: Any, source: Mapping[str, Any]) -> Advice | None:
    """The lines that set a word's value on the first feature of a source that accepts it."""
    for op, arguments in source.items():
        cls, features = sources().get(op), arguments.get("features") if isinstance(arguments, dict) else None
        if cls is None or "features" not in cls.model_fields or not isinstance(features, dict):
            continue
        _, model = get_args(cls.model_fields["features"].annotation)
        for name in (name for name in meanings(word) if name in model.model_fields):
            for feature, own in features.items():
                if isinstance(own, dict) and name not in own and valid(model, {**own, name: given}):
                    return write(f"source: {flow({op: {'features': {feature: {name: given}}}})}", "spec", instead=True)
    return None


def in_its_section(key: str, value: Any, raw: Mapping[str, Any]) -> Advice | str | None:
    """The place of a key of ours that is misplaced among the sections, such as `folds`."""
    for section in PipelineSpec.model_fields:
        model = field_type(PipelineSpec, section)
        if not isinstance(model, type) or key not in getattr(model, "model_fields", ()) or section in ("source", "transforms"):
            continue
        beside = raw.get(section)
        whole = {**beside, key: value} if isinstance(beside, dict) else {key: value}
        if accepts(section, whole) and not isinstance(beside, dict):
            return write(f"{section}: {flow(whole)}", "spec", instead=True)
        return f"`{key}` is a key of `{section}`: `{section}: {{{key}: …}}`"
    op = next((op for op, source in sources().items() if key in source.model_fields), None)
    return f"`{key}` is an argument of sources: `source: {{{op}: {{{key}: …}}}}`" if op is not None else None


def wrong_value(path: tuple[str | int, ...], value: Any) -> Advice | None:
    """Lines of the whole spec for a key of ours with a value of another library, such as `shuffle: 1000`."""
    for row in fitting_rows(str(path[-1]), value, "spec"):
        section = row.names[0] if row.names else None
        if section == path[0] and row.is_about_values(str(path[-1])):
            return write(_filled_text(row, value), "spec", said=_said(row))
    return None


def entry_fix(advice: Advice, place: Place, key: str) -> Fix | None:
    """The edit for advice about an entry of a map, if it is on one line and nothing else has to change."""
    here, locate = place.at(key).path, place.locate
    start, end = locate.spans.keys.get(here), locate.editable(here)
    section = re.match(r"\w+", advice.lines)
    at_home = advice.into == "entry" or (advice.into == "spec" and not place.path and section is not None and section[0] not in locate.raw)
    if not at_home or start is None or end is None or start.line != end.line or start.file != end.file:
        return None
    span = Span(start.file, start.line, start.column, end.line, end.end_column)
    return Fix(f"write `{advice.lines}`", (Edit(span, advice.lines),), Applicability.SUGGESTION)


def step_fix(advice: Advice, place: Place, name: str) -> Fix | None:
    """The edit that replaces a step, if it is on one line; `place` is that of the step."""
    span, written = place.locate.editable(place.path), place.locate.source(place.path)
    if advice.into != "step" or "\n" in advice.lines or span is None or written is None or not written.startswith(name):
        return None
    return Fix(f"write `{advice.lines}`", (Edit(span, advice.lines),), Applicability.SUGGESTION)


def _said(row: Row, where: str = "") -> str:
    return f"write {{}}{where}" + (f" ({row.remark})" if row.remark else "")


def _step(row: Row, given: Any) -> Advice:
    if row.lines == NOTHING:
        return write("", "nothing", f"leave it out: {row.remark}")
    steps = [written(step) for step in steps_of(row, given)]
    return write(steps[0] if len(steps) == 1 else "\n".join(f"- {step}" for step in steps), "step", said=_said(row))


def _whole(row: Row, word: str, given: Any, *, top: bool = False) -> Advice:
    if row.lines == NOTHING:
        return write("", "nothing", f"leave `{word}` out: {row.remark}")
    return write(_filled_text(row, given), "spec", _said(row, "" if top else " at the top level"), instead=True)


def _filled_text(row: Row, given: Any) -> str:
    return "\n".join(f"{section}: {flow(value)}" for section, value in filled(row, given).items())
