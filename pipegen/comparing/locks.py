"""Compares what locks hold of their specs: what the specs mean, and what else decides their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipegen.comparing.changes import GONE, Change, Draws, Kind, fold_runs, section_changes, step_changes
from pipegen.spec.bases.lock_file import Data, Entry, FunctionSource, Lock
from pipegen.spec.source_map import KeyPath
from pipegen.spec.spec_hash import in_words

_OTHER_CODE = "the function may give other values"


def lock_changes(a: Lock, b: Lock) -> Iterator[Change]:
    """Yields what differs between two locks."""
    for name in {**a.specs, **b.specs}:
        if name not in a.specs or name not in b.specs:
            how = "it is new" if name not in a.specs else GONE
            yield Change("nothing", (name,), how, "a spec is locked" if name not in a.specs else "no lock holds it to anything")
        else:
            for change in entry_changes(a.specs[name], b.specs[name])[0]:
                yield replace(change, path=(name, *change.path))
    for name in {**a.git, **b.git}:
        old, new = a.git.get(name), b.git.get(name)
        if old != new:
            commits = (in_words(pin.commit[:12] if pin is not None else None) for pin in (old, new))
            yield Change("nothing", ("git", name), " → ".join(commits), "what that changes is said of the specs that extend it")


def entry_changes(a: Entry, b: Entry) -> tuple[list[Change], Draws]:
    """Returns what differs between a spec as it was locked once and as it was locked again, and what becomes of its draws."""
    found: list[Change] = []
    draws = Draws()
    if a.hash != b.hash:
        found, draws = meaning_changes(a.meaning, b.meaning)
    found += _data(a.data, b.data)
    for step in {**a.fitted, **b.fitted}:
        if step in a.fitted and step in b.fitted and a.fitted[step] != b.fitted[step]:
            found.append(Change("numbers", ("fitted", step), "other numbers were learned", "the step works with those"))
    for name in {**a.functions, **b.functions}:
        found += _function(name, a.functions.get(name), b.functions.get(name))
    for what, old, new in (("packages", a.packages, b.packages), ("versions", a.versions, b.versions)):
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                kind: Kind = "perhaps" if what == "versions" else "nothing"
                effect = "bits are promised within one version, and rounding across them" if kind == "perhaps" else "a base comes from it"
                found.append(Change(kind, (what, name), f"{in_words(old.get(name))} → {in_words(new.get(name))}", effect))
    if not found and a.texts != b.texts:
        names = [name for name in {**a.texts, **b.texts} if a.texts.get(name) != b.texts.get(name)]
        found.append(Change("nothing", ("texts",), ", ".join(names), "the texts differ, and mean the same"))
    return found, draws


def meaning_changes(a: dict[str, object], b: dict[str, object]) -> tuple[list[Change], Draws]:
    """Returns what differs between two meanings, and what becomes of the draws."""
    a, b, folded = fold_runs(a, b)
    steps, draws = step_changes(a, b)
    return [*section_changes(a, b), *steps, *folded], draws


def _data(a: Data | None, b: Data | None) -> Iterator[Change]:
    if a is None or b is None:
        return
    moved = [name for name in {**a.examples, **b.examples} if a.examples.get(name) != b.examples.get(name)]
    counts = [f"{name}: {in_words(a.examples.get(name))} → {in_words(b.examples.get(name))} examples" for name in moved]
    path: KeyPath = ("data",)
    if a.fingerprint != b.fingerprint:
        text = "files were added, removed, renamed or changed in size"
        yield Change("numbers", path, "; ".join([text, *counts]), "the data is not the same")
    elif None not in (a.content, b.content) and a.content != b.content:
        yield Change("numbers", path, "files of the same names and sizes hold something else", "the data is not the same")
    if a.classes != b.classes:
        yield Change("numbers", (*path, "classes"), f"{a.classes} → {b.classes}", "labels have other values")


def _function(name: str, a: FunctionSource | None, b: FunctionSource | None) -> Iterator[Change]:
    if a is None or b is None or a == b:
        return
    if a.function != b.function:
        yield Change("numbers", ("functions", name), "its source differs", _OTHER_CODE)
    else:
        yield Change("perhaps", ("functions", name), "its module differs", f"its own lines are the same; {_OTHER_CODE} if it uses the rest")
