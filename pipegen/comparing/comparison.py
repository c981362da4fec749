"""Compares two specs, locks, or a spec and its stored half."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipegen.comparing.changes import Comparison, path_changes, runtime_changes, word_changes
from pipegen.comparing.sides import LockSide, RevisionError, Side, lock_changes, read_side
from pipegen.ops.sources.prepared import Prepared
from pipegen.spec.changes import KINDS, Change, Draws, fold_runs, meaning_changes
from pipegen.spec.expect import one_of
from pipegen.spec.source_map import KeyPath
from pipegen.spec.spec_hash import digest_of

_DONE = ("source", "splits", "errors")
"""Sections that a prepared store fixes: the examples, and their splits."""


def store_changes(a: Side, b: Side) -> tuple[list[Change], Draws] | None:
    """Compares a spec with one that reads a store of it: what the store changes, and what was edited since. `None` for other specs."""
    source = b.spec.model.source
    if not isinstance(source, Prepared) or source.of != a.hash:
        return None
    encoded = any(feature.dtype == "string" for feature in source.features.values())
    first = sum(step.op == "decode" for step in b.spec.model.transforms[:1]) if encoded else 0
    done = len(a.meaning["transforms"]) - (len(b.meaning["transforms"]) - first)
    expected = {**a.meaning, **{name: b.meaning[name] for name in _DONE if name in b.meaning}}
    for name in ("transforms", "effects"):
        if done >= 0 and name in a.meaning and name in b.meaning:
            expected[name] = [*b.meaning[name][:first], *a.meaning[name][done:]]
    found, draws = meaning_changes(expected, b.meaning)
    steps = ", ".join(str(step[0]) for step in a.meaning["transforms"][: max(done, 0)])
    what = f"reads what `pipegen prepare` has stored of {a.name}" + (f", after {steps}" if steps else "")
    changed = source.remarks()
    if not changed:
        return [Change("nothing", ("source",), what, "the same splits, ids, draws and pixels, bit for bit"), *found], draws
    stored = [Change("numbers", ("source", "prepared", "changes"), what, f"{said}; splits, ids and draws are the same") for said in changed]
    return [*stored, *found], draws


_NOTHING: Mapping[str, Any] = {}


def compare(a: str, b: str, *, overrides: Mapping[str, Any] = _NOTHING, stdin: bytes | None = None) -> Comparison:
    """Compares two specs, two locks, or one with the other.

    Args:
        a: A spec or a lock: a file, a file at a revision as `HEAD~1:flowers.pipegen.yaml`, or `-` for `stdin`.
        b: Another one, in the same forms.
        overrides: Values for both, as texts, by param or by path.
        stdin: The text of a spec.

    Raises:
        UnreadableSideError: If one of them has errors.
        RevisionError: If git does not have it, or a lock does not have the spec.
        BaseProblem: If a lock cannot be read.
    """
    sides = read_side(a, b, overrides, stdin), read_side(b, a, overrides, stdin)
    names = (sides[0].name, sides[1].name)
    locks = [side.lock for side in sides if isinstance(side, LockSide)]
    specs = [side for side in sides if isinstance(side, Side)]
    if len(specs) == 2:
        return _of_specs(*specs)
    if len(locks) == 2:
        return Comparison(names, (), _ordered(lock_changes(*locks)))
    return _of_both(sides, names)


def _of_specs(a: Side, b: Side) -> Comparison:
    stored = store_changes(a, b)
    found, draws = stored or meaning_changes(a.meaning, b.meaning)
    found += [
        *(path_changes(a.raw, b.raw) if stored is None else ()),
        *runtime_changes(a.runtime, b.runtime),
        *word_changes(a.words, b.words),
    ]
    if stored is None and not _same_hash(a, b) and not any(change.kind == "numbers" for change in found):
        found.append(Change("numbers", (), "the hashes differ", "the reason cannot be described"))
    if not found and a.texts != b.texts:
        found.append(Change("nothing", (), "the texts differ", "comments, order, or default values"))
    placed = [replace(change, span=(a if change.gone else b).span(change.path) if change.path else None) for change in found]
    return Comparison((a.name, b.name), (a.hash, b.hash), _ordered(placed), draws, tuple(_notes(a, b)))


def _same_hash(a: Side, b: Side) -> bool:
    """Compares the hashes, also with runs of arithmetic folded to one step."""
    if a.hash == b.hash:
        return True
    *meanings, folded = fold_runs(a.meaning, b.meaning)
    return bool(folded) and digest_of(meanings[0]) == digest_of(meanings[1])


def _notes(*sides: Side) -> Iterator[str]:
    """Lists the bases that are not read from the revision."""
    for side in sides:
        for name in side.spec.loaded.texts if side.shown is not None else ():
            if name.startswith("pkg:"):
                yield f"{name} is read as it is installed here, not as it was at {side.name}; compare the locks of both"


def _of_both(sides: tuple[Side | LockSide, Side | LockSide], names: tuple[str, str]) -> Comparison:
    """Compares a spec with its entry in a lock."""
    spec = next(side for side in sides if isinstance(side, Side))
    lock = next(side for side in sides if isinstance(side, LockSide))
    entry = lock.lock.specs.get(spec.place_from(lock.folder))
    if entry is None:
        raise RevisionError(f"{lock.name} does not know {spec.name}: it has {one_of(lock.lock.specs, 'and')}")
    pairs = [(entry.hash, entry.meaning), (spec.hash, spec.meaning)]
    if sides[0] is spec:
        pairs.reverse()
    (a, old), (b, new) = pairs
    found, draws = meaning_changes(old, new) if a != b else ([], Draws())
    if sides[1] is spec:
        found = [replace(change, span=spec.span(change.path)) for change in found]
    return Comparison(names, (a, b), _ordered(found), draws)


def _ordered(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Sorts changes by kind, then by section."""
    found = list(changes)
    sections: dict[KeyPath, int] = {}
    for change in found:
        sections.setdefault(change.path[:2], len(sections))
    return tuple(sorted(found, key=lambda change: (KINDS.index(change.kind), sections[change.path[:2]])))
