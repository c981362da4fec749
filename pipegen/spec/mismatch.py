"""Checks of values against their types, and findings in plain words: what is expected, and what is given.

Pydantic validates; only the places of its errors are used. Expectations are described from the types (`expect.py`), so that
a choice gives one finding for all of its forms.
"""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ValidationError

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Advice, Applicability, Diagnostic, Edit, Fix, Label, write
from pipegen.diagnostics.suggest import closest, hints, is_certain, meanings
from pipegen.errors import PartError
from pipegen.frozen import dataclass
from pipegen.ops.data_test import DataTest
from pipegen.ops.model import field_docs
from pipegen.ops.registry import datatests, transforms
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.transform import Transform
from pipegen.spec.compose import bool_trap, flow, has_one_reading, number_trap, quoted, quoted_number
from pipegen.spec.expect import accepts, describe, field_type, one_of, schedules_of, shape, show, valid, validated, with_arguments, words_of
from pipegen.spec.locate import Place
from pipegen.spec.source_map import KeyPath, format_path, lookup

_MOST_SPLITS = 100
_KINDS_OF: dict[type, tuple[str, ...]] = {
    bool: ("bool",),
    str: ("str", "literal", "size"),
    int: ("int", "float", "size"),
    float: ("float",),
    list: ("list", "pair"),
    dict: ("map", "model"),
}


def name_of(path: KeyPath) -> str:
    """The name of a setting in messages: `batch.size`, `resize.size`."""
    listed = path[:1] in (("transforms",), ("tests",)) and len(path) > 2
    short = path[2:] if listed else path[1:] if path[:1] == ("source",) and len(path) > 1 else path
    return f"`{format_path(short) or 'the spec'}`"


def mismatch(annotation: Any, value: Any, place: Place) -> Diagnostic:
    """The finding about a value that does not fit its type: a pitfall of YAML, a wrong type, or a value out of bounds."""
    name, expected = name_of(place.path), describe(annotation)
    plain_text = accepts(annotation, "str") and not words_of(annotation)
    if isinstance(value, str) and not plain_text:
        found = _trap(annotation, value, name, expected, place)
        if found is not None:
            return found
    if isinstance(value, (int, float)) and plain_text and not accepts(annotation, "int", "float"):
        source = place.locate.source(place.path)
        text = quoted(source if source is not None and place.path not in place.locate.filled else str(value))
        message = f"{name} is {expected}, but {show(value)} is {'true or false' if isinstance(value, bool) else 'a number'}"
        fix = replacement(place, text, Applicability.SAFE)
        return make("PG104", message, *labels(place), help=(write(text, "value"), *provenance(place)), fix=fix)
    kinds = next((kinds for type_, kinds in _KINDS_OF.items() if isinstance(value, type_)), ())
    code = "PG105" if accepts(annotation, *kinds) else "PG104"  # if the type is right, the value is wrong
    help_, fix = _meant_by_word(annotation, value, place) or (_meant_by_value(annotation, value, place), None)
    whole = int(value) if isinstance(value, float) and value.is_integer() and not _is_of_a_split(place) else None
    if whole is not None and accepts(annotation, "int") and valid(annotation, whole):
        help_, fix = [write(str(whole), "value")], replacement(place, str(whole), Applicability.SAFE)
    return make(code, f"{name} is {expected}, got {show(value)}", *labels(place), help=(*help_, *provenance(place)), fix=fix)


def _is_of_a_split(place: Place) -> bool:
    """Checks for the size of a split, of the data or of a part of a mix, or its values of a column."""
    return ("splits", "parts") in pairwise(place.path)


def _meant_by_word(annotation: Any, value: Any, place: Place) -> tuple[list[str], Fix | None] | None:
    """Help for a misspelt word of a choice."""
    word = json.dumps(value) if isinstance(value, bool) else value
    if isinstance(word, str) and (near := closest(word, words_of(annotation))):
        fix = replacement(place, near, certain(is_certain(word, near, words_of(annotation)))) if is_slip(word, near) else None
        return [write(near, "value", "did you mean {}?")], fix
    if isinstance(value, str) and (form := with_arguments(annotation, value)):
        return [f"`{value}` takes arguments: `{form}`"], None
    return None


def _meant_by_value(annotation: Any, value: Any, place: Place) -> list[str]:
    """Help for a value of another type: its likely meaning."""
    from pipegen.spec.translate import by_extension, wrong_value

    key = str(place.path[-1]) if place.path else ""
    if value is None:
        return ["indent its keys below it, or remove it"] if accepts(annotation, "model") else []
    only = shape(annotation).kind == "literal" and not isinstance(value, (dict, list))
    if len(words_of(annotation)) == 1 and (only or value is True):
        return [write(words_of(annotation)[0], "value")]
    if _is_of_a_split(place) and isinstance(value, float):
        return ["write a fraction below 1, or a whole number of examples"]
    if isinstance(value, (int, float, str)) and valid(annotation, [value]):
        return [write(flow([value]), "value")]
    if (form := _as_first(annotation, value)) is not None:
        return [write(form, "value", shown=f"{key}: {form}")]
    if isinstance(value, list) and len(value) == 3 and value[2] in (1, 3, 4) and valid(annotation, value[:2]):
        return [write(str(value[:2]), "value", f"write {{}}; channels are those of `decode: {{channels: {value[2]}}}`")]
    if (entry := _as_entry(annotation, value, place)) is not None:
        return [write(entry, "value", shown=f"{key}: {entry}")]
    choice = shape(annotation).annotation if isinstance(value, str) and shape(annotation).kind == "model" else None
    if choice is not None and (by_name := next(by_extension(choice, value), None)) is not None:
        return [write(flow(by_name), "value", shown=f"{key}: {flow(by_name)}")]
    if place.path and (lines := wrong_value(place.path, value)) is not None:
        return [lines]
    return _meant_by_map(annotation, value) if isinstance(value, dict) else []


def _meant_by_map(annotation: Any, value: dict[str, Any]) -> list[str]:
    """Help for an unexpected map: a param, or a schedule of another name."""
    if list(value) == ["a map"]:
        return ["write a param as `$name`"]
    schedules = schedules_of(annotation)
    if not schedules:
        takes_none = list(value) in (["linear"], ["cosine"], ["step"], ["table"])
        return ["this argument takes no schedule; the `probability` of a step takes one"] if takes_none else []
    form = f"a schedule over the epochs is {one_of(schedules)} with its arguments: `{{linear: {{from, to, epochs: [0, 20]}}}}`"
    return [*hints(next(iter(value), ""), schedules, form)]


def _as_first(annotation: Any, value: Any) -> str | None:
    """A bare value as the first key of the expected map, if it fits: `batch: 64`."""
    s = shape(annotation)
    if s.kind != "model" or isinstance(value, dict) or not s.annotation.model_fields:
        return None
    first = next(iter(s.annotation.model_fields))
    fits = isinstance(value, (int, float, str)) and valid(field_type(s.annotation, first), value)
    return f"{{{first}: {value}}}" if fits else None


def _as_entry(annotation: Any, value: Any, place: Place) -> str | None:
    """A bare value for the feature of `y`, in place of a map of features: `encode: one_hot`."""
    if place.path != ("output", "encode") or not isinstance(value, str):
        return None
    output = place.locate.raw.get("output")
    y = output.get("y") if isinstance(output, dict) else None
    name = y if isinstance(y, str) else "label"
    words = [value, *(near for near in (closest(value, words_of(shape(annotation).items[1])), *meanings(value)) if near)]
    word = next((word for word in words if valid(annotation, {name: word})), None)
    return f"{{{name}: {word}}}" if word is not None else None


_CLAUSE = re.compile(r"(?:`[^`]*`|[^`])+?(?=[.:;](?:\s|$)|$)")  # the first part of a sentence; what is in backticks is not cut


def missing(model: type[BaseModel], key: str, place: Place) -> Diagnostic:
    """The finding about a missing key."""
    said = " ".join((field_docs(model).get(key) or "").split())
    clause = _CLAUSE.match(said)
    help_ = [f"`{key}`: {clause[0]}" if clause is not None else f"`{key}` is {describe(field_type(model, key))}"]
    example = example_of(model)
    if example is not None:
        help_.append(f"for example `{example}`" if issubclass(model, DataTest) else write(example, "step", "for example {}"))
    return make("PG101", f"{name_of(place.path)} needs `{key}`", place.label(key=True), help=tuple(help_))


def unknown(model: type[BaseModel], key: str, place: Place, values: dict[str, Any], given: set[str]) -> tuple[Diagnostic, str | None]:
    """The finding about an unknown key of a model, and the key that was probably meant, which is not one of `given`.

    `place` is that of the map, and `values` is the whole map.
    """
    from pipegen.spec.translate import anywhere, entries_in, instead_of_key, instead_of_our_own

    known, values = arguments(model), place.as_written(values)
    near = closest(key, [k for k in known if k not in given])
    taken = {name: None for name in given if name in model.model_fields}  # meant by other unknown keys
    advice = instead_of_key(model, key, {**taken, **values})
    if advice is None and (near is None or key.rstrip("s") != near.rstrip("s")):  # `epoch` of a stage means its `epochs`, not Keras' word
        advice = anywhere(key, values.get(key), place.locate.raw, top=False)
    if advice is None and near is None and issubclass(model, Transform):
        advice = instead_of_our_own(model.op, values, key)
    if advice is not None and near not in meanings(key):
        near = None
    elif advice is not None and advice.into == "entry" and near not in entries_in(advice):
        near = next(iter(entries_in(advice)))
    what = "argument" if issubclass(model, (Transform, Source, DataTest)) else "key"
    listed = f"{name_of(place.path)} takes {one_of(known, 'and')}"
    return unknown_key(key, near, known, f"{name_of(place.path)} has no {what} `{key}`", listed, place, advice), near


def unknown_key(
    key: str, near: str | None, known: list[str], message: str, listed: str, place: Place, advice: Advice | None = None
) -> Diagnostic:
    """The finding about a key that is not one of the `known` ones; `place` is that of the map."""
    here = place.at(key)
    help_: list[str] = [f"did you mean `{near}`?"] if near else []
    help_ += [advice] if advice is not None else []
    if key.isdigit():
        help_.append("a decimal number has a point: `1.5`")
    elif ":" in key and near is None:
        help_.append(f"put a space after the colon: `{key.replace(':', ': ', 1)}`")
    fix = None
    if advice is not None:
        from pipegen.spec.translate import entry_fix

        fix = entry_fix(advice, place, key)
    elif near is not None and (is_slip(key, near) or near in meanings(key)) and (span := here.locate.spans.keys.get(here.path)) is not None:
        fix = Fix(f"rename `{key}` to `{near}`", (Edit(span, near),), certain(is_certain(key, near, known)))
        return make("PG102", message, here.label(key=True), help=tuple(help_), fix=fix)
    return make("PG102", message, here.label(key=True), help=(*help_, *([listed] if advice is None else [])), fix=fix)


def bad_key(place: Place, keys: Any = str) -> Diagnostic:
    """The finding about an invalid name, or a key of the wrong type."""
    if accepts(keys, "int"):
        return make("PG105", f"`{place.path[-1]}` in {name_of(place.path[:-1])} is not {describe(keys)}", place.label(key=True))
    help_ = ("a name consists of letters, digits and `_`, and does not begin with a digit",)
    return make("PG105", f"`{place.path[-1]}` is not a valid name in `{format_path(place.path[:-1])}`", place.label(key=True), help=help_)


def too_many(splits: dict[str, Any], place: Place) -> Diagnostic | None:
    """The finding about too many splits: each is compiled, so a damaged file could keep the loader busy."""
    if len(splits) <= _MOST_SPLITS:
        return None
    return make("PG105", f"{name_of(place.path)} names {len(splits):,} splits; at most {_MOST_SPLITS} are allowed", place.label(key=True))


def rejected(message: str, place: Place, help_: str | tuple[str, ...] | None = None) -> Diagnostic:
    """The finding about a value that a validator rejects."""
    name = name_of(place.path)
    told = (help_,) if isinstance(help_, str) else help_ or ()
    last = next((str(p) for p in reversed(place.path) if isinstance(p, str)), "")
    if message.startswith("give "):
        step = place.path[:3] if place.path[:1] in (("transforms",), ("tests",)) else place.path
        if place.path[:1] == ("tests",):
            told = (*told, f"for example `{datatests()[str(place.path[2])].examples[0]}`")
        elif last in transforms():
            told = (*told, write(transforms()[last].examples[0].yaml, "step", "for example {}"))
        text = f"{name_of(step)}: {message}"
    elif message.startswith(f"`{last}` "):
        text = name + message.removeprefix(f"`{last}`")
    else:
        text = message if message.startswith("`") else f"{name}: {message}"
    return make("PG105", text, *labels(place), help=(*told, *provenance(place)))


def example_of(model: type[BaseModel]) -> str | None:
    """The first example of a step or a test; `None` for other models."""
    examples: tuple[Any, ...] = getattr(model, "examples", ())
    return getattr(examples[0], "yaml", examples[0]) if examples else None


def arguments(model: type[BaseModel]) -> list[str]:
    """The keys of a model, its own before inherited ones."""
    own = [name for name in model.model_fields if name in model.__annotations__]
    return own + [name for name in model.model_fields if name not in own]


def labels(place: Place) -> tuple[Label, ...]:
    """The place of a value, and the declarations of its params."""
    names = (one.name for one in place.locate.filled.get(place.path, ()))
    declared = (place.locate.label(("params", name), f"`{name}` is declared here", key=True) for name in names)
    return (place.label(), *(label for label in declared if label.span is not None))


def provenance(place: Place) -> tuple[str, ...]:
    """Help that names the params of a value."""
    names = [f"${one.name}" for one in place.locate.filled.get(place.path, ())]
    return (f"the value is from {one_of(names, 'and')} ({place.locate.origin(place.path)})",) if names else ()


def certain(known: bool) -> Applicability:
    """The applicability of a fix: safe if its meaning is certain."""
    return Applicability.SAFE if known else Applicability.SUGGESTION


def replacement(place: Place, text: str, applicability: Applicability) -> Fix | None:
    """The fix that replaces a value by `text`, if it is in a file and not from a param."""
    span = place.locate.editable(place.path)
    return Fix(f"write `{text}`", (Edit(span, text),), applicability) if span is not None else None


def is_slip(word: str, near: str) -> bool:
    """Tests if a word is similar enough to another one to offer a fix; a name from another library is not."""
    return abs(len(word) - len(near)) <= 2 and SequenceMatcher(None, word.lower(), near).ratio() >= 0.6


def _trap(annotation: Any, value: str, name: str, expected: str, place: Place) -> Diagnostic | None:
    truth = bool_trap(value)
    if truth is not None and accepts(annotation, "bool"):
        word = json.dumps(truth)
        help_ = (write(word, "value", f"write {{}}; in YAML 1.2 `{value}` is text"), *provenance(place))
        fix = replacement(place, word, Applicability.SAFE)  # for a boolean, `yes` can only mean true
        return make("PG008", f"{name} is {expected}, but `{value}` is text", *labels(place), help=help_, fix=fix)
    if not accepts(annotation, "int", "float"):
        return None
    trap = number_trap(value)
    if trap is not None:
        number, why = trap
        if isinstance(number, float) and number.is_integer() and valid(annotation, int(number)):
            number = int(number)
        if valid(annotation, number):
            help_ = (write(str(number), "value", f"write {{}}: {why}"), *provenance(place))
            fix = replacement(place, str(number), certain(has_one_reading(value)))
            return make("PG008", f"{name} is {expected}, but `{value}` is text", *labels(place), help=help_, fix=fix)
    bare = quoted_number(value)
    if bare is not None and valid(annotation, bare):
        help_ = ("remove the quotes", *provenance(place))
        fix = replacement(place, value.strip(), Applicability.SAFE)
        return make("PG104", f"{name} is {expected}, but a number in quotes is text", *labels(place), help=help_, fix=fix)
    return None


def check(annotation: Any, value: Any, place: Place) -> Any:
    """Converts a value to its type; `None`, with findings, if it is not valid."""
    try:
        return validated(annotation, value)
    except ValidationError as error:
        before = len(place.out)
        _report(annotation, value, error.errors(include_url=False), place)
        if len(place.out) == before and not place.spoiled and not place.partial:
            place.add(mismatch(annotation, value, place))
        return None


@dataclass(frozen=True, slots=True)
class _At:
    """The resolved part of an error's location: the path, the type there, and the rest of the location."""

    path: KeyPath
    annotation: Any
    rest: tuple[str | int, ...]


def _report(annotation: Any, value: Any, errors: list[Any], place: Place) -> None:
    found = [(_follow(annotation, error), error) for error in errors]
    unions: set[KeyPath] = set()
    # An error about a part of a value is more precise than one about the whole.
    wholes = {at.path[:n] for at, _ in found for n in range(len(at.path))}
    meant = _unknown_keys(found, value, place)
    wrong = {at.path for at, error in found if error["type"] not in ("missing", "value_error", "extra_forbidden")}
    misplaced = {path for path in sorted(wrong, key=str) if _is_misplaced(annotation, path, value, place)}
    for at, error in found:
        if at.path in misplaced:
            continue
        here = place.at(*at.path)
        kind = shape(at.annotation).kind
        if at.rest and kind == "union":
            if at.path not in unions:
                unions.add(at.path)
                given = lookup(value, at.path)
                # The form that is clearly meant, else the choice as a whole.
                member = _chosen(shape(at.annotation).items, given)
                here.add(mismatch(at.annotation, given, here)) if member is None else check(member, given, here)
        elif at.rest[-1:] == ("[key]",):
            key = here.at(at.rest[0])
            key.add(bad_key(key, shape(at.annotation).items[0] if kind == "map" else str))
        elif error["type"] == "missing" and kind == "model":
            if (*at.path, at.rest[0]) not in meant and not place.partial:
                here.add(missing(shape(at.annotation).annotation, str(at.rest[0]), here))
        elif error["type"] == "value_error":
            _rejected(at, error["ctx"]["error"], value, here)
        elif error["type"] != "extra_forbidden" and at.path not in wholes:
            here.add(mismatch(at.annotation, lookup(value, at.path), here))


def _is_misplaced(annotation: Any, path: KeyPath, value: Any, place: Place) -> bool:
    """Reports a wrong value in an argument that has no meaning beside the others: to correct it would not help."""
    every = (_follow(annotation, {"loc": path[:n], "type": ""}) for n in reversed(range(len(path))))
    above = next((at for at in every if not at.rest and shape(at.annotation).kind == "model"), None)
    if above is None or not isinstance(given := lookup(value, above.path), dict):
        return False
    try:
        shape(above.annotation).annotation.reject_misplaced(given)
    except ValueError as error:
        _rejected(above, error, value, place.at(*above.path))
        return True
    return False


def _unknown_keys(found: list[tuple[_At, Any]], value: Any, place: Place) -> set[KeyPath]:
    """Reports unknown keys of models; returns the keys that they probably mean."""
    meant: set[KeyPath] = set()
    for at, error in found:
        if error["type"] == "extra_forbidden" and len(at.rest) == 1 and shape(at.annotation).kind == "model":
            here = place.at(*at.path)
            model = shape(at.annotation).annotation
            key = str(at.rest[0])
            values = lookup(value, at.path)
            # A key from outside may mean to replace an existing one. Two keys never mean the same one.
            given = set() if place.locate.is_outside((*here.path, key)) else set(values)
            given |= {str(path[-1]) for path in meant if path[:-1] == at.path}
            finding, near = unknown(model, key, here, values, given)
            here.at(at.rest[0]).add(finding)
            meant |= {(*at.path, near)} if near else set()
    return meant


def _rejected(at: _At, error: Exception, value: Any, here: Place) -> None:
    """Reports the error of a model's validator, at the part that it names, else at the first argument in its message."""
    s, message = shape(at.annotation), str(error)
    if isinstance(error, PartError) and error.path:
        here = here.at(*error.path)
    elif s.kind == "model":
        given = lookup(value, at.path)
        named = next((w for w in re.findall(r"`(\w+)", message) if isinstance(given, dict) and w in given), None)
        if named is not None:
            here = here.at(named)
    here.add(rejected(message, here, getattr(error, "help", None)))


def _chosen(members: tuple[Any, ...], value: Any) -> Any:
    """The only member of a union that a value of this form can mean."""
    fitting: list[Any] = []
    if isinstance(value, dict):
        fitting = [m for m in members if shape(m).kind in ("model", "map")]
        known = {m: len(set(value) & set(m.model_fields)) for m in fitting if shape(m).kind == "model"}
        complete = {m: n for m, n in known.items() if all(name in value for name, f in m.model_fields.items() if f.is_required())}
        most = max((complete or known).values(), default=0)
        named = [m for m, n in (complete or known).items() if n == most > 0]
        fitting = named or [m for m in fitting if shape(m).kind == "map"] or fitting
    elif isinstance(value, list):
        fitting = [m for m in members if shape(m).kind in ("list", "pair")]
    elif isinstance(value, str):
        fitting = [m for m in members if shape(m).kind == "size"] if re.match(r"\s*\d", value) else []
    return fitting[0] if len(fitting) == 1 else None


def _follow(annotation: Any, error: Any) -> _At:
    """Resolves an error's location through the types, as far as it consists of keys and positions."""
    loc: tuple[str | int, ...] = error["loc"]
    # Errors about a missing or unknown key are about the map.
    stop = len(loc) - (error["type"] in ("missing", "extra_forbidden"))
    path: KeyPath = ()
    for i, part in enumerate(loc):
        s = shape(annotation)
        if i == stop:
            return _At(path, annotation, loc[i:])
        if s.kind == "model" and part in s.annotation.model_fields:
            annotation = field_type(s.annotation, str(part))
        elif s.kind == "map" and loc[i + 1 : i + 2] != ("[key]",):
            annotation = s.items[1]
        elif s.kind in ("list", "pair") and isinstance(part, int) and (s.kind == "list" or part < len(s.items)):
            annotation = s.items[0 if s.kind == "list" else part]
        else:
            return _At(path, annotation, loc[i:])
        path = (*path, part)
    return _At(path, annotation, ())
