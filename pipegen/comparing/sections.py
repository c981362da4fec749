"""Says what differs between the sections of two specs, other than their steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipegen.comparing.changes import GONE, Change
from pipegen.diagnostics.paths import relative_path
from pipegen.masking import masked_value
from pipegen.spec.rebase import ADDRESS, places, settings
from pipegen.spec.source_map import KeyPath
from pipegen.spec.spec_hash import alike, differences, in_words

_MEANS: tuple[tuple[KeyPath, str, str], ...] = (
    (("pipegen",), "the language differs", ""),
    (("source", "mix", "epoch"), "epochs have another length", "train"),
    (("source", "mix", "parts", "*", "weight"), "an epoch has other shares of the parts", "train"),
    (("source", "mix", "parts", "*", "transforms"), "other steps act on the examples of this part", ""),
    (("source", "mix", "parts", "*", "splits"), "other examples are in the splits, so scores cannot be compared", ""),
    (("source", "mix", "parts", "*", "sampling"), "examples are seen more or less often", "train"),
    (("source", "mix", "parts", "*", "order"), "examples are seen earlier or later in training", "train"),
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
    (("errors", "missing"), "nothing differs as long as no record lacks a file", ""),
    (("errors",), "nothing differs as long as every file is whole", ""),
    (("stages",), "training goes through other stages", "train"),
)
"""What a difference means, by the start of its path, and the splits that it reaches; all of them where nothing is said."""

_LONGEST = 60
"""Characters of a path that are shown."""
_SPEED: tuple[tuple[KeyPath, str], ...] = (
    (("cache",), "how fast, and what it takes of memory or disk"),
    (("shard",), "which host does which share"),
    (("jit",), "how fast; values move by rounding at most"),
    (("ram_budget",), "how much memory it may take"),
)


def section_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Yields what differs between the sections of two meanings; see `spec_hash.meaning`."""
    ours = ("transforms", "effects", "inner")
    old, new = ({key: value for key, value in side.items() if key not in ours} for side in alike(a, b))
    for path, before, after in differences(old, new):
        start = next(known for known in _MEANS if _begins(path, known[0]))
        reach = start[2]
        if path[:2] == ("batch", "remainder") and len(path) > 2:
            reach = str(path[2])
        at, text = _in_spec(path, old, new), f"{before} → {after}"
        if at[0] == "views" and len(path) == 4 and len(at) == 5:  # a whole step
            text = "it is new" if path[3] not in old["views"].get(path[1], {}).get("transforms", {}) else GONE
        yield Change("numbers", at, text, start[1], reach)


def _begins(path: KeyPath, start: KeyPath) -> bool:
    return len(path) >= len(start) and all(known in ("*", key) for known, key in zip(start, path, strict=False))


def _in_spec(path: KeyPath, old: dict[str, Any], new: dict[str, Any]) -> KeyPath:
    """Returns the path of a setting in a spec: there, stages and the steps of a branch of `views` stand in lists."""
    if path[0] == "stages":
        return (path[0], *map(int, path[1:2]), *path[2:])  # numbered by text, as in JSON
    if path[0] == "views" and path[2:3] == ("transforms",) and len(path) > 3:
        listed = [side["views"].get(path[1], {}).get("transforms", {}) for side in (new, old)]
        step = next(steps[path[3]] for steps in listed if path[3] in steps)
        op = next(key for key in step if key != "at")
        return (*path[:3], step["at"], *(path[4:] or (op,)))
    return path


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
        if path[-1] == "exclude":
            both = path in old and path in new
            same = "the same numbers if the lists name the same records" if both else "other numbers, unless the list names no record"
            yield Change("perhaps", path, what, same)
        elif path[:1] == ("source",):
            if path in old and path in new:
                same = "rows are there" if path[-1] == ADDRESS else "files lie there"
                yield Change("perhaps", path, what, f"the same numbers if the same {same}")
        else:
            yield Change("nothing", path, what, "where damaged files are listed")


def _shown(path: Any) -> str:
    """Returns a path, or several, relative to the working directory where they lie in it; of a long one, how it ends."""
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
        at: Any = spec
        for part in path:
            at = at.get(part) if isinstance(at, dict) else None
        if at is not None and path[0] != "runtime":
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
