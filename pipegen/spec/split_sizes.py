"""The finding about sizes of splits outside of `parts`: `splits: {train: 0.8, val: 0.2}`."""

from __future__ import annotations

from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Edit, Fix, write
from pipegen.ops.sampling import Splits
from pipegen.spec.compose import flow, number_trap
from pipegen.spec.locate import Place
from pipegen.spec.mismatch import certain
from pipegen.spec.translate import split_named

_NAMES = frozenset({"train", "validation", "test", "predict"})


def bare_sizes(value: dict[str, Any], place: Place) -> tuple[Diagnostic, set[str]] | None:
    """Finds sizes of splits outside of `parts`; returns the finding and their keys."""
    found = {key: size for key, size in value.items() if key not in Splits.model_fields and _is_size(key, size)}
    if not found or "parts" in value:
        return None
    named = {key: key if key in _NAMES else split_named(key) or key for key in found}
    parts = _sizes({named[key]: size for key, size in found.items()})
    kept = {key: inner for key, inner in value.items() if key not in found}
    if any(isinstance(size, str) for size in parts.values()):
        kept["method"] = "folder"
    lines = flow({"parts": parts, **kept})
    first, *others = (place.at(key).label(key=True) for key in found)
    help_ = write(f"splits: {lines}", "sections")
    message = f"`splits` has no key `{next(iter(found))}`: sizes of splits belong in `parts`"
    kept_names = list(named) == list(named.values()) and list(parts.values()) == list(found.values())
    return make("PG102", message, first, *others, help=help_, fix=_fix(lines, place, kept_names=kept_names)), set(found)


def _is_size(key: str, size: Any) -> bool:
    if isinstance(size, bool) or not isinstance(size, (int, float, str)):
        return False
    return key in _NAMES or split_named(key) is not None or (isinstance(size, float) and 0 < size < 1)


def _sizes(given: dict[str, Any]) -> dict[str, Any]:
    """Converts sizes for `parts`: texts such as `80%` to numbers, percentages that add up to 100 to fractions, folders to names."""
    numbers = {name: trap[0] if isinstance(size, str) and (trap := number_trap(size)) else size for name, size in given.items()}
    if all(isinstance(size, int) for size in numbers.values()) and sum(numbers.values()) == 100:
        return {name: size / 100 for name, size in numbers.items()}
    return {name: size.strip("/") if isinstance(size, str) else size for name, size in numbers.items()}


def _fix(lines: str, place: Place, *, kept_names: bool) -> Fix | None:
    """The edit of the whole section, if it is on one line; safe if it only adds `parts`."""
    span = place.locate.editable(place.path)
    return None if span is None else Fix(f"write `splits: {lines}`", (Edit(span, lines),), certain(kept_names))
