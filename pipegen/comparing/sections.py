"""Says what differs between the sections of two specs, other than their steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipegen.comparing.changes import GONE, Change
from pipegen.diagnostics.paths import relative_path
from pipegen.masking import masked
from pipegen.spec.rebase import ADDRESS, PATHS, PLACES
from pipegen.spec.source_map import KeyPath
from pipegen.spec.spec_hash import differences, in_words

_MEANS: tuple[tuple[KeyPath, str, str], ...] = (
    (("pipegen",), "the language differs", ""),
    (("source",), "other records, or other values of theirs", ""),
    (("splits",), "other examples are in the splits, so scores cannot be compared", ""),
    (("seed",), "another order, and other draws of every step", "train"),
    (("shuffle",), "the same examples in another order", "train"),
    (("epoch",), "epochs have another length", "train"),
    (("sampling", "subset"), "other examples are trained on", "train"),
    (("sampling",), "examples are seen more or less often", "train"),
    (("order",), "examples are seen earlier or later in training", "train"),
    (("batch", "size"), "the same examples in batches of another size, and another number of steps", ""),
    (("batch", "remainder"), "another fate of a last batch that is not full", ""),
    (("images",), "images that no other one goes with draw other numbers", "train"),
    (("views",), "the model sees other views of an example", "train"),
    (("output",), "what the model receives has another form", ""),
    (("errors",), "nothing differs as long as every file is whole", ""),
    (("stages",), "training goes through other stages", "train"),
)
"""What a difference means, by the start of its path, and the splits that it reaches; all of them where nothing is said."""

_SPEED: tuple[tuple[KeyPath, str], ...] = (
    (("cache",), "how fast, and what it takes of memory or disk"),
    (("shard",), "which host does which share"),
    (("jit",), "how fast; values move by rounding at most"),
    (("ram_budget",), "how much memory it may take"),
)


def section_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Yields what differs between the sections of two meanings; see `spec_hash.meaning`."""
    ours = ("transforms", "effects")
    old, new = ({key: value for key, value in side.items() if key not in ours} for side in (a, b))
    for path, before, after in differences(old, new):
        start = next(known for known in _MEANS if path[: len(known[0])] == known[0])
        reach = start[2]
        if path[:2] == ("batch", "remainder") and len(path) > 2:
            reach = str(path[2])
        # Stages are numbered by text, as in JSON.
        at = (path[0], *map(int, path[1:2]), *path[2:]) if path[0] == "stages" else path
        yield Change("numbers", at, f"{before} → {after}", start[1], reach)


def runtime_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Yields what differs between two `runtime` sections."""
    for path, before, after in differences(a, b):
        effect = next((effect for start, effect in _SPEED if path[: len(start)] == start), "how fast")
        yield Change("speed", ("runtime", *path), f"{before} → {after}", effect)


def path_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Yields what differs between the paths to data of two specs as plain values, with their paths made absolute."""
    old, new = dict(_paths(a)), dict(_paths(b))
    for path in {**old, **new}:
        if old.get(path) == new.get(path):
            continue
        what = f"{_shown(old.get(path))} → {_shown(new.get(path))}"
        if path[:1] == ("source",):
            if path in old and path in new:
                same = "rows are there" if path[-1] == ADDRESS else "files lie there"
                yield Change("perhaps", path, what, f"the same numbers if the same {same}")
        elif path == ("errors", "exclude"):
            yield Change("perhaps", path, what, "the same numbers if the lists name the same files")
        else:
            yield Change("nothing", path, what, "where damaged files are listed")


def _shown(path: Any) -> str:
    """Returns a path, or several, relative to the working directory where they lie in it."""
    given = [
        relative_path(one) if isinstance(one, str) and "://" not in one else one for one in (path if isinstance(path, list) else [path])
    ]
    return in_words(given if isinstance(path, list) else given[0])


def _paths(spec: dict[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    def below(node: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
        for key, value in node.items() if isinstance(node, dict) else ():
            if key in PLACES and not isinstance(value, dict):
                yield (*path, key), masked(value) if isinstance(value, str) else value
            else:
                yield from below(value, (*path, key))

    yield from below(spec.get("source"), ("source",))
    for path in PATHS:
        at: Any = spec
        for key in path:
            at = at.get(key) if isinstance(at, dict) else None
        if at is not None and path[0] == "errors":
            yield path, at


def word_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Yields what differs between the names, descriptions and params of two specs as plain values."""
    for key, effect in (("name", "the name only"), ("description", "words for people")):
        if a.get(key) != b.get(key):
            yield Change("nothing", (key,), f"{in_words(a.get(key))} → {in_words(b.get(key))}", effect)
    old, new = a.get("params") or {}, b.get("params") or {}
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    for name in names:
        how = "is new" if name not in old else GONE.removeprefix("it ") if name not in new else "is declared otherwise"
        yield Change("nothing", ("params", name), f"it {how}", "what its values change is said where they stand")
