"""Checks of plain values against the models, with findings in plain words.

Pydantic validates; only the places of its errors are used. Expectations are described from the types (`expect.py`), so that
a choice gives one finding for all of its forms.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from pipegen.errors import PartError
from pipegen.frozen import dataclass
from pipegen.spec.expect import Shape, field_type, shape, validated
from pipegen.spec.locate import Place
from pipegen.spec.mismatch import bad_key, mismatch, missing, rejected, unknown
from pipegen.spec.source_map import KeyPath, lookup


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
                member = _chosen(shape(at.annotation), given)
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
    """Reports a wrong value of an argument that has no meaning beside the others: to correct it would not help."""
    above = _follow(annotation, {"loc": path[:-1], "type": ""})
    given = lookup(value, above.path)
    if not path or above.rest or shape(above.annotation).kind != "model" or not isinstance(given, dict):
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


def _chosen(s: Shape, value: Any) -> Any:
    """The only member of a union that a value of this form can mean."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, dict):
        fitting = [m for m in s.items if shape(m).kind in ("model", "map")]
        known = [m for m in fitting if shape(m).kind == "model" and set(value) & set(m.model_fields)]
        fitting = known or fitting
    elif isinstance(value, list):
        fitting = [m for m in s.items if shape(m).kind in ("list", "pair")]
    elif isinstance(value, str):
        fitting = [m for m in s.items if shape(m).kind == "size"] if re.match(r"\s*\d", value) else []
    else:
        fitting = []
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
