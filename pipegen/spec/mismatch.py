"""Findings about single values and keys: what is expected, and what is given."""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from functools import cache
from typing import Any, ClassVar, cast

from pydantic import BaseModel

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Advice, Applicability, Diagnostic, Edit, Fix, Label, write
from pipegen.diagnostics.foreign import meanings
from pipegen.diagnostics.suggest import closest, hints, is_certain
from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import BUCKET
from pipegen.ops.data_test import DataTest
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.model import field_docs
from pipegen.ops.registry import datatests, transforms
from pipegen.ops.sampling_sections import sized
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.step_bases import ColourTransform, GeometricTransform, PointwiseTransform
from pipegen.ops.traits import IMAGE_224, Family, Traits
from pipegen.ops.transform import Policy, Transform
from pipegen.spec.compose import bool_trap, flow, has_one_reading, number_trap, quoted, quoted_number
from pipegen.spec.expect import accepts, describe, field_type, one_of, schedules_of, shape, show, valid, validated, with_arguments, words_of
from pipegen.spec.locate import Place
from pipegen.spec.source_map import KeyPath, format_path
from pipegen.types import FeatureType

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
        return _unquoted(value, name, expected, place)
    kinds = next((kinds for type_, kinds in _KINDS_OF.items() if isinstance(value, type_)), ())
    code = "PG105" if accepts(annotation, *kinds) else "PG104"  # if the type is right, the value is wrong
    help_, fix = _meant_by_word(annotation, value, place) or (_meant_by_value(annotation, value, place), None)
    sized = place.path[:2] == ("splits", "parts")
    if isinstance(value, float) and not sized and value.is_integer() and accepts(annotation, "int") and valid(annotation, int(value)):
        help_, fix = [write(str(int(value)), "value")], replacement(place, str(int(value)), Applicability.SAFE)
    return make(code, f"{name} is {expected}, got {show(value)}", *labels(place), help=(*help_, *provenance(place)), fix=fix)


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
    from pipegen.spec.translate import wrong_value

    key = str(place.path[-1]) if place.path else ""
    if value is None:
        return ["indent its keys below it, or remove it"] if accepts(annotation, "model") else []
    only = shape(annotation).kind == "literal" and not isinstance(value, (dict, list))
    if len(words_of(annotation)) == 1 and (only or value is True):
        return [write(words_of(annotation)[0], "value")]
    if place.path[:2] == ("splits", "parts") and isinstance(value, float):
        return ["write a fraction below 1, or a whole number of examples"]
    if place.path[:2] == ("splits", "parts") and valid(annotation, [value]):
        return [write(flow([value]), "value")]
    if (form := _as_first(annotation, value)) is not None:
        return [write(form, "value", shown=f"{key}: {form}")]
    if (size := _without_channels(annotation, value)) is not None:
        return [write(size, "value", f"write {{}}; channels are those of `decode: {{channels: {value[2]}}}`")]
    if (entry := _as_entry(annotation, value, place)) is not None:
        return [write(entry, "value", shown=f"{key}: {entry}")]
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


def _without_channels(annotation: Any, value: Any) -> str | None:
    """Height and width of a size with channels, such as `input_shape`: `[224, 224, 3]`."""
    has_channels = isinstance(value, list) and len(value) == 3 and value[2] in (1, 3, 4)
    return str(value[:2]) if has_channels and valid(annotation, value[:2]) else None


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


def missing(model: type[BaseModel], key: str, place: Place) -> Diagnostic:
    """The finding about a missing key."""
    said = field_docs(model).get(key)
    help_ = [f"`{key}`: {_sentence(said)}" if said else f"`{key}` is {describe(field_type(model, key))}"]
    if issubclass(model, Transform) and model.examples:
        help_.append(write(model.examples[0].yaml, "step", "for example {}"))
    elif issubclass(model, DataTest):
        help_.append(f"for example `{model.examples[0]}`")
    return make("PG101", f"{name_of(place.path)} needs `{key}`", place.label(key=True), help=tuple(help_))


def unknown(model: type[BaseModel], key: str, place: Place, values: dict[str, Any], given: set[str]) -> tuple[Diagnostic, str | None]:
    """The finding about an unknown key of a model, and the key that was probably meant, which is not one of `given`.

    `place` is that of the map, and `values` is the whole map.
    """
    from pipegen.spec.translate import anywhere, entries_in, instead_of_key

    known = arguments(model)
    near = closest(key, [k for k in known if k not in given])
    taken = {name: None for name in given if name in model.model_fields}  # meant by other unknown keys
    advice = instead_of_key(model, key, {**taken, **values})
    if advice is None and (near is None or key.rstrip("s") != near.rstrip("s")):  # `epoch` of a stage means its `epochs`, not Keras' word
        advice = anywhere(key, values.get(key), place.locate.raw, top=False)
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


def arguments(model: type[BaseModel]) -> list[str]:
    """The keys of a model, its own before inherited ones."""
    own = [name for name in model.model_fields if name in model.__annotations__]
    return own + [name for name in model.model_fields if name not in own]


def labels(place: Place) -> tuple[Label, ...]:
    """The place of a value, and the declarations of its params."""
    names = place.locate.params.get(place.path, [])
    declared = (place.locate.label(("params", name), f"`{name}` is declared here", key=True) for name in names)
    return (place.label(), *(label for label in declared if label.span is not None))


def provenance(place: Place) -> tuple[str, ...]:
    """Help that names the params of a value."""
    names = place.locate.params.get(place.path)
    return (f"the value is from {one_of([f'${n}' for n in names], 'and')} ({place.locate.origin(place.path)})",) if names else ()


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


def _sentence(text: str) -> str:
    """The first sentence, on one line."""
    return re.split(r"(?<=[.:;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".:;")


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


def _unquoted(value: float, name: str, expected: str, place: Place) -> Diagnostic:
    source = place.locate.source(place.path)
    text = quoted(source if source is not None and place.path not in place.locate.params else str(value))
    given = "true or false" if isinstance(value, bool) else "a number"
    help_ = (write(text, "value"), *provenance(place))
    fix = replacement(place, text, Applicability.SAFE)
    return make("PG104", f"{name} is {expected}, but {show(value)} is {given}", *labels(place), help=help_, fix=fix)


_FAMILIES: tuple[type[Transform], ...] = (GeometricTransform, ColourTransform, LookupTableTransform, NeighbourhoodTransform)
_MOST_WORDS = 24
_TYPO_OF_WORD = 0.75
_TYPO = 0.85
"""The least similarity of a name to the one that it surely means."""
_TELLING = ("when", "feature", "fill")
"""The arguments that decide the values after a step of a family that keeps the shape."""


class UnknownStep(Transform):
    """A placeholder of an invalid step: images keep their shape; their values are unknown after it.

    Class attributes:
        keeps_size: Whether images keep their height and width.
        keeps_channels: Whether images keep their channels.
        keeps_values: Whether only the shape is unknown.
    """

    op = "unknown"
    keeps_size: ClassVar[bool] = True
    keeps_channels: ClassVar[bool] = True
    keeps_values: ClassVar[bool] = False

    def infer(self, x: FeatureType) -> FeatureType:
        return x

    def traits(self, x: FeatureType) -> Traits:
        """The traits of a family that keeps the shape, or of one that may fix it, so that no fixed size is asked for."""
        return Traits(Family.POLICY if self.keeps_size else Family.ELEMENT)


class ResizingStep(UnknownStep):
    """A placeholder of a step that changes sizes and keeps values."""

    moves = True
    keeps_size = False
    keeps_values = True


class AnyStep(UnknownStep):
    """A placeholder of a step after which only the kinds of features are known."""

    moves = True
    keeps_size = False
    keeps_channels = False


def keeps_shape(step: type[Transform]) -> bool:
    """Tests if all steps of the family keep the shape of images."""
    return _same_values(step) or issubclass(step, (PointwiseTransform, NeighbourhoodTransform, CombiningTransform, FittedTransform, Policy))


def _same_values(step: type[Transform]) -> bool:
    """Tests if the family decides the values after a step."""
    return step.infer in (f.infer for f in _FAMILIES)


def stand_ins(raw: Any) -> tuple[Transform, ...]:
    """Valid steps that an invalid one, as plain values, may mean: one, or one for each word that fits.

    An error after all of them is an error whatever is meant.
    """
    name, given = next(iter(raw.items())) if isinstance(raw, dict) and len(raw) == 1 else (raw, {})
    given = {} if given is None else given
    cls = _class(name)
    if cls is None:
        return (AnyStep(when="all"),)
    if isinstance(given, dict):
        meant: list[Transform | None] = [_built(cls, given)] if name != cls.op else [*_each_word(cls, given)]
        if cls.only_sizes:
            meant = meant or [_built(cls, {key: value for key, value in given.items() if _fits(cls, key, value)})]
        found = tuple(step for step in meant if step is not None)
        if found:
            return found
    if cls.only_sizes:
        return (ResizingStep(when="all"),)
    if not keeps_shape(cls) or not cls.acts_on(kind_of(IMAGE_224)):
        return (AnyStep(when="all"),)
    if not _same_values(cls) or not isinstance(given, dict) or not _tells(cls, given):
        return (UnknownStep(when="all"),)
    return (_like(cls)(**{key: given[key] for key in ("when", "feature") if key in given}),)


def _class(name: Any) -> type[Transform] | None:
    """The step of a name, or of the one that it misspells."""
    if not isinstance(name, str):
        return None
    near = name if name in transforms() else closest(name, transforms())
    if near is None or (near != name and (abs(len(near) - len(name)) > 1 or SequenceMatcher(None, name, near).ratio() < _TYPO)):
        return None
    return transforms()[near]


def _each_word(cls: type[Transform], given: dict[str, Any]) -> list[Transform]:
    """The step with each possible word for its only invalid argument."""
    wrong = [key for key, value in given.items() if not _fits(cls, key, value)]
    if len(wrong) != 1 or wrong[0] not in cls.model_fields or wrong[0] in ("when", "id", "feature"):
        return []
    words = words_of(field_type(cls, wrong[0]))
    value = given[wrong[0]]
    near = [word for word in words if isinstance(value, str) and SequenceMatcher(None, value, word).ratio() >= _TYPO_OF_WORD]
    if len(words) > _MOST_WORDS or (BUCKET in words and not near):  # a size in pixels is meant
        return []
    built = [step for word in (near[:1] or words) if (step := _built(cls, {**given, wrong[0]: word})) is not None]
    # A word is meant to have an effect: one that keeps the values is not meant if others change them.
    return [step for step in built if _moves_values(step)] or [*built]


def _moves_values(step: Transform) -> bool:
    try:
        return sized(step, (224, 224)).infer(IMAGE_224).interval != IMAGE_224.interval
    except OpError:
        return False


class AnyTest(DataTest):
    """A placeholder of an invalid test."""

    op = "test"


def _fits(cls: type[Transform], key: str, value: Any) -> bool:
    return key in cls.model_fields and valid(field_type(cls, key), value)


def _built(cls: type[Transform], given: dict[str, Any]) -> Transform | None:
    return validated(cls, given) if valid(cls, given) else None


@cache
def _like(cls: type[Transform]) -> type[Transform]:
    """A class of the same name and family that needs no arguments."""
    family = next(f for f in _FAMILIES if issubclass(cls, f))
    same = {key: getattr(cls, key) for key in ("op", "random", "min_channels") if hasattr(cls, key)}
    return cast("type[Transform]", type("StandIn", (family,), {"__module__": __name__, **same}))


def _tells(cls: type[Transform], given: dict[str, Any]) -> bool:
    """Tests if the valid arguments decide the values after the step; an unknown key may have been meant to."""
    for key, value in given.items():
        if key not in cls.model_fields:
            if closest(key, cls.model_fields) in (None, *_TELLING):
                return False
        elif key in _TELLING and (not isinstance(value, (str, list)) or not valid(field_type(cls, key), value)):
            return False
    return True
