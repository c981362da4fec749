"""Checks of the sections of a spec, each on its own, so that no error hides another."""

from __future__ import annotations

import math
import os
import re
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Advice, Applicability, Diagnostic, Edit, Fix, Label, Span, write
from pipegen.diagnostics.suggest import closest, meanings, rows, split_named
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.transform import Transform
from pipegen.spec.choices import build_source, build_steps, build_tests, steps_of_each
from pipegen.spec.compose import flow, has_one_reading, number_trap
from pipegen.spec.drafts import Draft, draft
from pipegen.spec.expect import field_type, one_of, show
from pipegen.spec.locate import Place
from pipegen.spec.mismatch import certain, check, name_of, replacement, too_many, unknown_key
from pipegen.spec.models import Param, PipelineSpec
from pipegen.spec.source_map import Tree, lookup, scalars
from pipegen.spec.step_list import collisions, every_id

VERSION = 1
_SPLITS = frozenset({"train", "validation", "test", "predict"})
_BY_HAND = ("pipegen", "params", "source", "transforms", "tests")


def build(tree: Tree, place: Place, file: str | None, params: dict[str, Param]) -> Draft | None:
    """Builds the spec of a tree with merged bases and filled-in params; its default name is that of `file`."""
    out = place.out
    raw = tree.value
    _endless(raw, place)
    _version(raw, place, file)
    own = "" if file is None or file.startswith("<") or file == "-" else os.path.basename(file)
    name = re.sub(r"(?!\A)(\.pipegen)?\.ya?ml\Z", "", own) or None
    values: dict[str, Any] = {"pipegen": VERSION, "name": name, "params": params}
    values |= _sections(raw, place)
    if "source" in raw:
        values["source"] = build_source(raw["source"], place.at("source"))
    elif not tree.partial and not _meant(raw, "source"):
        help_ = (write("source: {image_folder: {path: photos/}}", "spec", "for a folder of images, write {}"),)
        out.add(make("PG101", "the spec has no `source`", _first_key(place), help=help_))
    steps = build_steps(raw["transforms"], place.at("transforms")) if "transforms" in raw else []
    if "tests" in raw:
        values["tests"] = build_tests(raw["tests"], place.at("tests"))
    if None not in steps:
        _same_ids(tuple(step for step in steps if step is not None), place)
    _parts(values.get("splits"), place)
    _odd_keys(tree, place)
    return None if tree.partial else draft(raw, values, steps, out)


def _sections(raw: dict[str, Any], place: Place) -> dict[str, Any]:
    values: dict[str, Any] = {}
    known = ["extends", *PipelineSpec.model_fields]
    for key, value in raw.items():
        if key not in PipelineSpec.model_fields:
            from pipegen.spec.translate import anywhere, in_its_section, instead_of_key

            near = closest(key, [k for k in known if k not in raw or place.locate.is_outside((key,))])
            listed = f"sections are {one_of(known, 'and')}"
            names_section = any(name in PipelineSpec.model_fields for row in rows(key, "key") for name in row.names)
            advice = instead_of_key(PipelineSpec, key, raw) if names_section else None
            if advice is None and not (names_section and isinstance(value, (dict, list))):
                advice = anywhere(key, value, raw, top=True)
            if advice is not None and near not in meanings(key):
                near = None
            if advice is None and near is None and (own := in_its_section(key, value, raw)) is not None:
                advice, listed = (own, listed) if isinstance(own, Advice) else (None, own)
            place.at(key).add(unknown_key(key, near, known, f"unknown section `{key}`", listed, place, advice))
        elif key not in _BY_HAND:
            kept = value
            if key == "splits" and isinstance(value, dict) and (bare := _bare_sizes(value, place.at(key))) is not None:
                place.out.add(bare[0])
                kept = {name: inner for name, inner in value.items() if name not in bare[1]}
            right = key != "views" or steps_of_each(kept, place.at(key))
            values[key] = check(field_type(PipelineSpec, key), kept, place.at(key)) if right else None
    return values


def _version(raw: dict[str, Any], place: Place, file: str | None) -> None:
    at = place.at("pipegen")
    if "pipegen" not in raw:
        if not place.partial and not _meant(raw, "pipegen"):
            spans = [s for p, s in place.locate.spans.keys.items() if len(p) == 1 and s.file == file]
            first = min(spans, key=lambda s: (s.line, s.column), default=None)
            fix = None
            if first is not None and first.column == 1:
                above = Span(first.file, first.line, 1, first.line, 1)
                fix = Fix(f"insert `pipegen: {VERSION}`", (Edit(above, f"pipegen: {VERSION}\n"),), Applicability.SAFE)
            help_ = (write(f"pipegen: {VERSION}", "spec", "begin the spec with {}"),)
            place.out.add(make("PG101", "the spec has no version of the language", _first_key(place), help=help_, fix=fix))
    elif raw["pipegen"] != VERSION or isinstance(raw["pipegen"], (bool, float)):
        value = raw["pipegen"]
        help_ = (write(str(VERSION), "value", "this version of pipegen reads {}", shown=f"pipegen: {VERSION}"),)
        code, message = "PG104", f"`pipegen` is the version of the language, got {show(value)}"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            code, message = "PG111", f"version {show(value)} of the language is not supported"
        at.add(make(code, message, at.label(), help=help_))


def _meant(raw: dict[str, Any], section: str) -> bool:
    """Tests if an unknown key was probably meant as this section, which then is not reported as missing."""
    return any(closest(key, [section]) for key in raw if key not in PipelineSpec.model_fields)


def _first_key(place: Place) -> Label:
    """The place of findings about missing sections: the first key."""
    return place.locate.label(next((p for p in place.locate.spans.keys if len(p) == 1), ()), key=True)


def _odd_keys(tree: Tree, place: Place) -> None:
    told = {d.primary for d in place.out.items}
    for path, reading in tree.odd_keys.items():
        deep = len(path) > 3 and (path[:1] in (("transforms",), ("views",)) or path[:3] == ("source", "mix", "parts"))
        schedule = deep or path[:2] == ("order", "pace")
        described = path[:1] == ("source",) and "features" in path
        here = place.at(*path)
        label = here.label(key=True)
        if schedule or described or label in told:
            continue
        span = here.locate.spans.keys.get(path)
        fix = None
        if span is not None and span.line == span.end_line:
            fix = Fix("put the key in quotes", (Edit(span, f"'{path[-1]}'"),), Applicability.SAFE)
        where = f" in {name_of(path[:-1])}" if len(path) > 1 else ""
        here.add(make("PG104", f"keys are text, but `{path[-1]}`{where} is {reading}", label, help="put it in quotes", fix=fix))


def _endless(raw: dict[str, Any], place: Place) -> None:
    """Reports infinities and NaNs, and replaces them by zero, so that nothing else is reported about them."""
    for path, value in [*scalars(raw)]:
        if not isinstance(value, float) or math.isfinite(value) or (path[0] == "params" and path[-1] == "default"):
            continue
        here = place.at(*path)
        here.add(make("PG105", f"{name_of(path)} must be a finite number, got {show(value)}", here.label()))
        lookup(raw, path[:-1])[path[-1]] = 0.0
        place.spoiled.update({path, path[:-1]} if isinstance(path[-1], int) else {path})


def _same_ids(steps: tuple[Transform, ...], place: Place) -> None:
    for (first, step_id), (second, other) in collisions(every_id(steps)):
        a, b = (place.at("transforms", *path, "id") for path in (first, second))
        message = f"two steps have the id `{step_id}`"
        if step_id != other:
            message = f"the step ids `{step_id}` and `{other}` have the same 32-bit hash"
        help_ = ("give one of them another `id`: steps with equal ids draw the same random numbers",)
        place.out.add(make("PG216", message, b.label("again here"), a.label("first here"), help=help_))


def _parts(splits: Splits | None, place: Place) -> None:
    """Finds sizes of splits that are text, for methods that need numbers."""
    if splits is None:
        return
    place.at("splits", "parts").add(too_many(splits.parts, place.at("splits", "parts")))
    if splits.method not in ("random", "hash", "keras", "keras_utility"):
        return
    for name, size in splits.parts.items():
        if not isinstance(size, str):
            continue
        here = place.at("splits", "parts", name)
        trap = number_trap(size)
        expected = "a fraction above 0 and below 1 or a whole number of examples"
        if trap is not None and trap[0] > 0:
            help_ = (write(str(trap[0]), "value", f"write {{}}: {trap[1]}"),)
            # 80% of a whole can only be 0.8.
            fix = replacement(here, str(trap[0]), certain(has_one_reading(size) or size.rstrip().endswith("%")))
            message = f"{name_of(here.path)} is {expected}, but `{size}` is text"
            here.add(make("PG008", message, here.label(), help=help_, fix=fix))
        else:
            meant = ("to name a value in the data, use `method: folder` or `method: {column: NAME}`",)
            here.add(make("PG104", f"{name_of(here.path)} is {expected}, got {show(size)}", here.label(), help=meant))


def _bare_sizes(value: dict[str, Any], place: Place) -> tuple[Diagnostic, set[str]] | None:
    """Finds sizes of splits outside of `parts`; returns the finding and their keys.

    In `parts`, texts such as `80%` become numbers, and percentages that add up to 100 fractions.
    """
    found = {key: size for key, size in value.items() if key not in Splits.model_fields and _is_size(key, size)}
    if not found or "parts" in value:
        return None
    named = {key: key if key in _SPLITS else split_named(key) or key for key in found}
    numbers = {named[key]: trap[0] if isinstance(size, str) and (trap := number_trap(size)) else size for key, size in found.items()}
    parts = {name: size.strip("/") if isinstance(size, str) else size for name, size in numbers.items()}  # a folder is a name
    if all(isinstance(size, int) for size in numbers.values()) and sum(numbers.values()) == 100:
        parts = {name: size / 100 for name, size in numbers.items()}
    kept = {key: inner for key, inner in value.items() if key not in found}
    if any(isinstance(size, str) for size in parts.values()):
        kept["method"] = "folder"
    lines = flow({"parts": parts, **kept})
    first, *others = (place.at(key).label(key=True) for key in found)
    help_ = write(f"splits: {lines}", "sections")
    message = f"`splits` has no key `{next(iter(found))}`: sizes of splits belong in `parts`"
    kept_names = list(named) == list(named.values()) and list(parts.values()) == list(found.values())
    span = place.locate.editable(place.path)
    # Safe if it only adds `parts`.
    fix = None if span is None else Fix(f"write `splits: {lines}`", (Edit(span, lines),), certain(kept_names))
    return make("PG102", message, first, *others, help=help_, fix=fix), set(found)


def _is_size(key: str, size: Any) -> bool:
    if isinstance(size, bool) or not isinstance(size, (int, float, str)):
        return False
    return key in _SPLITS or split_named(key) is not None or (isinstance(size, float) and 0 < size < 1)
