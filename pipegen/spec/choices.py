"""Builders of steps, sources and tests from a word or a single-key map `word: {arguments}`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import ValidationError

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Advice, Applicability, Diagnostic, Edit, Fix, write
from pipegen.diagnostics.suggest import closest, meanings, plain
from pipegen.ops.data_test import DataTest
from pipegen.ops.families.selections import Selection
from pipegen.ops.registry import datatests, goes_bare, sources, transforms
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.sources.mix import Mix
from pipegen.ops.transform import SplitName, Transform
from pipegen.spec.compose import flow, resolve
from pipegen.spec.drafts import AnyTest
from pipegen.spec.expect import one_of, show, valid
from pipegen.spec.locate import Place
from pipegen.spec.mismatch import arguments, bad_key, check, example_of, is_slip, rejected, too_many
from pipegen.spec.step_list import ids_of, is_edit

_What = Literal["step", "source", "test"]
_EXAMPLES = {"step": "resize: {size: 224}", "source": "image_folder: {path: photos/}", "test": "examples: {split: train, min: 1000}"}


def build_steps(value: Any, place: Place) -> list[Transform | None]:
    """Builds the steps of a spec; `None` for an invalid one."""
    if is_edit(value):
        if not place.partial:
            help_: tuple[str, ...] = (
                "name the base: `extends: base.pipegen.yaml`",
                write("- resize: {size: 224}", "value", "or, without a base, write each step on its own line, such as {}"),
            )
            message = "`transforms` as a map edits the steps of a base, but this spec has none"
            place.add(make("PG120", message, place.label(key=True), help=help_))
        return []
    if not isinstance(value, list):
        listed = write("- resize: {size: 224}", "value", "write each step on its own line, such as {}")
        help_ = (listed, "for no steps, leave `transforms` out")
        fix = _with_dashes(value, place)
        place.add(make("PG104", f"`transforms` is a list of steps, got {show(value)}", place.label(), help=help_, fix=fix))
        return []
    return [build_step(item, place.at(i)) for i, item in enumerate(value)]


def _with_dashes(value: Any, place: Place) -> Fix | None:
    """The fix that puts a dash before each step of a map of steps, if each has its own line."""
    if not isinstance(value, dict) or not value or not all(key in transforms() for key in value):
        return None
    spans = [place.locate.spans.keys.get(place.at(key).path) for key in value]
    ends = [place.locate.editable(place.at(key).path) for key in value]
    lines = {(span.file, span.line) for span in spans if span is not None}
    whole = all(s is not None and e is not None and s.line == e.line == e.end_line for s, e in zip(spans, ends, strict=True))
    if not whole or len(lines) < len(value):
        return None
    edits = tuple(Edit(span, f"- {key}") for key, span in zip(value, spans, strict=True) if span is not None)
    return Fix("put `- ` before each step", edits, Applicability.SAFE)


def build_step(value: Any, place: Place) -> Transform | None:
    """Builds one step; `None` if it is invalid."""
    chosen = _chosen(value, "step", place)
    if chosen is None:
        return None
    cls, given, here = chosen
    if issubclass(cls, Selection) and not _inner_steps(cls, given.get("steps"), here.at("steps")):
        return None
    result: Transform | None = check(cls, given, here)
    return result


def _inner_steps(cls: type[Selection], value: Any, place: Place) -> bool:
    """Checks the steps inside a step; returns `False` if one is invalid."""
    right = True
    for i, item in enumerate(value if isinstance(value, list) else []):
        step = build_step(item, place.at(i))
        problem = cls.refuses(step) if step is not None else None
        if step is not None and problem is not None:
            place.add(make("PG226", problem[0], place.at(i, step.op).label(key=True), help=problem[1]))
        right = right and step is not None and problem is None
    return right


def build_tests(value: Any, place: Place) -> tuple[DataTest, ...]:
    """Builds the tests of a spec, with placeholders for invalid ones."""
    if not isinstance(value, list):
        help_ = ("write each test on its own line, such as `- examples: {split: train, min: 1000}`", "for no tests, leave `tests` out")
        place.add(make("PG104", f"`tests` is a list of tests, got {show(value)}", place.label(), help=help_))
        return ()
    chosen = (_chosen(item, "test", place.at(i)) for i, item in enumerate(value))
    tests: tuple[DataTest, ...] = tuple((check(*one) if one is not None else None) or AnyTest() for one in chosen)
    ids = ids_of(tests)
    for i, test_id in enumerate(ids):
        if test_id in ids[:i]:
            first, second = (place.at(n, tests[n].op, "id") for n in (ids.index(test_id), i))
            places = second.label("again here"), first.label("first here")
            place.add(make("PG703", f"two tests have the id `{test_id}`", *places, help="give one of them another `id`"))
    return tests


def build_source(value: Any, place: Place) -> Source | None:
    """Builds a source, with those inside it; `None` if one is invalid."""
    chosen = _chosen(value, "source", place)
    if chosen is None:
        return None
    cls, given, here = chosen
    if hasattr(cls, "from_yaml"):
        return _nested(cls, given, here)
    if issubclass(cls, Mix):
        parts = given.get("parts")
        right = steps_of_each(parts, here.at("parts"))
        for name, part in parts.items() if isinstance(parts, dict) else ():
            if isinstance(part, dict) and "source" in part:
                right = build_source(part["source"], here.at("parts", name, "source")) is not None and right
        if not right:
            return None
    result: Source | None = check(cls, cls.written_out(given), here)
    return result


def steps_of_each(parts: Any, place: Place) -> bool:
    """Checks the own steps of each part of a mix, or branch of views; returns `False` if one is invalid."""
    right = True
    for name, part in parts.items() if isinstance(parts, dict) else ():
        if isinstance(part, dict) and isinstance(part.get("transforms"), list):
            right = None not in build_steps(part["transforms"], place.at(name, "transforms")) and right
    return right


def _nested(cls: type[Source], given: dict[str, Any], place: Place) -> Source | None:
    for split in given:
        if not valid(dict[SplitName, Any], {split: None}):
            place.add(bad_key(place.at(split)))
    if (many := too_many(given, place)) is not None:
        place.add(many)
        return None
    built = {split: build_source(inner, place.at(split)) for split, inner in given.items()}
    if any(source is None for source in built.values()):
        return None
    try:
        return cls(parts=built)  # type: ignore[call-arg]
    except ValidationError as error:
        for e in error.errors(include_url=False):
            if "[key]" not in e["loc"]:
                place.add(rejected(str(e.get("ctx", {}).get("error", e["msg"])), place.at(*e["loc"][1:])))
        return None


def _chosen(value: Any, what: _What, place: Place) -> tuple[Any, dict[str, Any], Place] | None:
    """The class that a choice names, with its arguments and their place; `None` if invalid."""
    given: Any = {}
    if isinstance(value, str):
        name = value
    elif not isinstance(value, dict) or not value:
        message = f"a {what} is a word or a single-key map, got {show(value)}"
        place.add(make("PG112", message, place.label(), help=_form(_EXAMPLES[what], what)))
        return None
    elif len(value) > 1:
        place.add(_several(value, what, place))
        return None
    else:
        ((name, given),) = value.items()
    here, cls = place.at(name), _classes(what).get(name)
    if cls is None:
        place.add(_unknown(what, name, given, place))
        return None
    if isinstance(given, dict):
        return cls, given, here
    bare = getattr(cls, "bare", None)
    if given is None:
        place.add(_hanging(cls, name, what, place))
    elif bare is not None:
        return cls, {bare: given}, here
    else:
        message = f"the arguments of `{name}` are a map `{{NAME: VALUE}}`, got {show(given)}"
        place.add(make("PG112", message, here.label(), help=_as_map(cls, name, given, what)))
    return None


def _as_map(cls: Any, name: str, given: Any, what: _What) -> str:
    """Help for arguments that are not a map: their likely form."""
    glued = re.fullmatch(r"(\w+):([^\s\[{].*|\[[^\[\]{}]*\])", given) if isinstance(given, str) else None
    if glued is not None and glued[1] in arguments(cls):
        value = glued[2] if glued[2][0] in "[" else flow(resolve(glued[2]))
        return _form(f"{name}: {{{glued[1]}: {value}}}", what, "put a space after the colon: {}")
    if what != "test":
        from pipegen.spec.translate import bare_arguments

        meant = bare_arguments(name, given)
        if meant is not None:
            return meant
    example = example_of(cls)
    return _form(example, what) if example is not None else f"its arguments are {one_of(arguments(cls), 'and')}"


def _several(value: dict[str, Any], what: _What, place: Place) -> Diagnostic:
    names = list(value)
    message = f"a {what} is a single-key map, but this one has {one_of(names, 'and')}"
    op = next((n for n in names if n in _classes(what)), None)
    help_ = [f"begin each {what} with a dash: `- name: {{arguments}}`"]
    if op is not None and value[op] is None:
        help_ = [f"indent the arguments of `{op}` below it, or put them in braces: `{op}: {{{names[1]}: …}}`"]
    elif what == "source":
        help_ = [_form(_EXAMPLES[what], what), "for a source for each split, use `by_split: {train: SOURCE, test: SOURCE}`"]
    return make("PG112", message, place.at(names[1]).label(key=True), help=tuple(help_))


def _hanging(cls: Any, name: str, what: _What, place: Place) -> Diagnostic:
    """The finding about `- random_flip:` without a value."""
    span = place.locate.spans.keys.get((*place.path, name))
    fix = None
    bare, example = what != "source" and goes_bare(cls), example_of(cls)
    # Before a `null`, or in braces, the word without its colon would still be a map.
    alone = place.locate.source(place.at(name).path) == place.locate.source(place.path) == name
    if span is not None and bare and alone and place.locate.char_after(span) == ":":
        fix = Fix("remove the colon", (Edit(replace(span, end_column=span.end_column + 1), name),), Applicability.SAFE)
    deeper = "indent the arguments below it, or put them in braces"
    help_: tuple[str, ...] = (deeper,)
    if bare:
        help_ = (_form(name, what, "without arguments, write {}"), deeper)
    elif example is not None:
        help_ = (_form(example, what, f"{deeper}: {{}}"),)
    return make("PG112", f"`{name}:` has no value", place.at(name).label(key=True), help=help_, fix=fix)


def _form(lines: str, what: _What, said: str = "such as {}") -> str:
    """Help with a step, a source or a test in place of the braces; only steps and sources are advice to paste."""
    return said.replace("{}", f"`{lines}`") if what == "test" else write(lines, what, said)


def _unknown(what: _What, name: str, given: Any, place: Place) -> Diagnostic:
    from pipegen.spec.peers.words import is_elsewhere
    from pipegen.spec.translate import instead_of_source, instead_of_step, step_fix

    near, given = closest(name, _classes(what)), place.at(name).as_written(given)
    listed = "`pipegen ops` lists every step" if what == "step" else f"{what}s are {one_of(_classes(what), 'and')}"
    fix = None
    advice: list[str] = [] if what == "test" else list((instead_of_step if what == "step" else instead_of_source)(name, given))
    several = any(isinstance(one, Advice) and "\n" in one.lines for one in advice)  # several steps, none of which is meant alone
    other = several or near not in meanings(name)
    if advice and ((what == "step" and is_elsewhere(name)) or (other and plain(near or "") != plain(name))):
        near = None
    help_: list[str] = [f"did you mean `{near}`?"] if near else [listed] if not advice else []
    span = place.locate.span(place.at(name).path, key=True)
    if advice:
        help_ += advice
        fix = step_fix(advice[0], place, name) if len(advice) == 1 and isinstance(advice[0], Advice) else None
    elif near and not is_slip(name, near) and (example := example_of(_classes(what)[near])) is not None:
        help_.append(_form(example, what, "for example {}"))
    elif near and span is not None and place.path not in place.locate.filled:
        # Not safe: a step with a similar name may do something else, as `cutmix` for `aug_mix`.
        fix = Fix(f"write `{near}`", (Edit(span, near),), Applicability.SUGGESTION) if is_slip(name, near) else None
    if name.startswith("$"):
        help_ = [f"a param is a value; it cannot name a {what}"]
    elif what == "source" and not near and ("/" in name or "." in name):
        folder = write(f"image_folder: {flow({'path': name})}", "source", "for a folder of images, write {}")
        help_.append(f"`pipegen init {name}` writes a first spec for a file" if os.path.splitext(name)[1] else folder)
    return make("PG103", f"unknown {what} `{name}`", place.at(name).label(key=True), help=tuple(help_), fix=fix)


def _classes(what: _What) -> Mapping[str, Any]:
    return {"step": transforms, "source": sources, "test": datatests}[what]()
