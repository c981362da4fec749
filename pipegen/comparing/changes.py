"""The differences between two specs beside those of their meanings, and all of them as a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from pipegen.diagnostics.diagnostic import relative_path
from pipegen.frozen import dataclass
from pipegen.spec.changes import GONE, KINDS, Change, Draws, Kind, differences, in_words
from pipegen.spec.rebase import ADDRESS, places, settings
from pipegen.spec.source_map import KeyPath, lookup
from pipegen.terminal import masked_value


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two specs or locks.

    Attributes:
        names: The names of the two.
        hashes: Their spec hashes; empty for locks of several specs.
        changes: The differences, by kind and then by place.
        draws: The effects on the random draws.
        notes: Remarks on what was not compared.
    """

    names: tuple[str, str]
    hashes: tuple[str, str] | tuple[()] = ()
    changes: tuple[Change, ...] = ()
    draws: Draws = field(default_factory=Draws)
    notes: tuple[str, ...] = ()

    @property
    def same_numbers(self) -> bool:
        """The model sees the same numbers, as far as the specs alone can tell."""
        return not self.of("numbers")

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Selects the changes of one kind."""
        return tuple(change for change in self.changes if change.kind == kind)

    def as_json(self) -> dict[str, Any]:
        """Converts the comparison to plain values."""
        return {
            "version": 1,
            "names": list(self.names),
            "spec_hashes": list(self.hashes),
            "same_numbers": self.same_numbers,
            "changes": [change.as_json() for change in self.changes],
            "draws": {"kept": list(self.draws.kept), "moved": [{"id": step, "why": why} for step, why in self.draws.moved]},
            "notes": list(self.notes),
            "summary": {kind: len(self.of(kind)) for kind in KINDS},
        }


_LONGEST = 60
"""Characters of a path that are shown."""
_SPEED: tuple[tuple[KeyPath, str], ...] = (
    (("cache",), "how fast, and how much memory or disk it needs"),
    (("shard",), "which host does which share"),
    (("jit",), "how fast; values move by rounding at most"),
    (("ram_budget",), "how much memory it may use"),
)


def runtime_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Compares two `runtime` sections."""
    for path, before, after in differences(a, b):
        effect = next((effect for start, effect in _SPEED if path[: len(start)] == start), "how fast")
        yield Change("speed", ("runtime", *path), f"{before} → {after}", effect)


def path_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Compares the paths to data of two specs, given as plain values with absolute paths."""
    old, new = dict(_paths(a)), dict(_paths(b))
    for path in {**old, **new}:
        if old.get(path) == new.get(path):
            continue
        what = f"{_shown(old.get(path))} → {_shown(new.get(path))}"
        if path[-1] == "exclude":
            both = path in old and path in new
            same = "the same numbers if the lists name the same records" if both else "other numbers, unless the list is empty"
            yield Change("perhaps", path, what, same)
        elif path[:1] == ("source",):
            if path in old and path in new:
                same = "rows are there" if path[-1] == ADDRESS else "files are there"
                yield Change("perhaps", path, what, f"the same numbers if the same {same}")
        else:
            yield Change("nothing", path, what, "where damaged files are listed")


def _shown(path: Any) -> str:
    """Formats a path, or several: relative to the working directory if they are in it, and the end of a long one."""
    if isinstance(path, list):
        return in_words([relative_path(one) if isinstance(one, str) and "://" not in one else one for one in path])
    if not isinstance(path, str):
        return in_words(path)
    text = path if "://" in path else relative_path(path)
    return text if len(text) <= _LONGEST else f"…{text[1 - _LONGEST :]}"


def _paths(spec: dict[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    for node, key, path in places(spec.get("source"), ("source",)):
        value = node[key]
        yield path, masked_value(value) if isinstance(value, str) else value
    for path in settings(spec):
        value = lookup(spec, path)
        if value is not None and path[0] != "runtime":
            yield path, value


def word_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Compares the names, descriptions and params of two specs, given as plain values."""
    for key, effect in (("name", "the name only"), ("description", "words for people")):
        if a.get(key) != b.get(key):
            yield Change("nothing", (key,), f"{in_words(a.get(key))} → {in_words(b.get(key))}", effect)
    old, new = a.get("params") or {}, b.get("params") or {}
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    for name in names:
        how = "is new" if name not in old else GONE.removeprefix("it ") if name not in new else "is declared otherwise"
        yield Change("nothing", ("params", name), f"it {how}", "the effects of its values are listed with the keys that use it")
