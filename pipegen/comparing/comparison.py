"""Compares two specs, locks, or a spec and its stored half; renders that as text, and as GitHub's workflow commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from pipegen.comparing.compared_sides import LockSide, RevisionError, Side, lock_changes, read_side
from pipegen.diagnostics.diagnostic import is_address, relative_path
from pipegen.diagnostics.machine_readable import workflow_command
from pipegen.frozen import dataclass
from pipegen.ops.sources.prepared import Prepared
from pipegen.spec.changes import GONE, KINDS, Change, Draws, Kind, differences, fold_runs, in_words, meaning_changes
from pipegen.spec.expect import one_of
from pipegen.spec.rebase import ADDRESS, places, settings
from pipegen.spec.source_map import KeyPath, lookup
from pipegen.spec.spec_hash import digest_of
from pipegen.terminal import masked_value


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two specs or locks, by kind and then by place; `hashes` is empty for locks of several specs.

    `draws` has the effects on the random draws, and `notes` remarks on what was not compared.
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


_DONE = ("source", "splits", "errors")  # sections that a prepared store fixes: the examples, and their splits


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


_LONGEST = 60  # characters of a path that are shown
_SPEED: tuple[tuple[KeyPath, str], ...] = (
    (("cache",), "how fast, and how much memory or disk it needs"),
    (("shard",), "which host does which share"),
    (("jit",), "how fast; values move by rounding at most"),
    (("ram_budget",), "how much memory it may use"),
)


def _path_changes(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    """Compares the paths to data of two specs, given as plain values with absolute paths."""
    old, new = dict(_paths(a)), dict(_paths(b))
    for path in {**old, **new}:
        if old.get(path) == new.get(path):
            continue
        what = f"{_shown(old.get(path))} → {_shown(new.get(path))}"
        if path[-1] in ("exclude", "file"):
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


_NOTHING: Mapping[str, Any] = {}


def compare(a: str, b: str, *, overrides: Mapping[str, Any] = _NOTHING, stdin: bytes | None = None) -> Comparison:
    """Compares two specs, two locks, or one with the other.

    Each is a file, a file at a revision as `HEAD~1:flowers.pipegen.yaml`, or `-` for the text of a spec in `stdin`. `overrides` has values
    for both, as texts, by param or by path. Raises `UnreadableSideError` if one of them has errors; `RevisionError` if git does not have
    it, or a lock does not have the spec; `BaseProblem` if a lock cannot be read."""
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
    found += _path_changes(a.raw, b.raw) if stored is None else ()
    for path, before, after in differences(a.runtime, b.runtime):
        effect = next((effect for start, effect in _SPEED if path[: len(start)] == start), "how fast")
        found.append(Change("speed", ("runtime", *path), f"{before} → {after}", effect))
    for key, effect in (("name", "the name only"), ("description", "words for people")):
        if a.words.get(key) != b.words.get(key):
            found.append(Change("nothing", (key,), f"{in_words(a.words.get(key))} → {in_words(b.words.get(key))}", effect))
    old, new = a.words["params"], b.words["params"]
    for name in (name for name in {**old, **new} if old.get(name) != new.get(name)):
        how = "is new" if name not in old else GONE.removeprefix("it ") if name not in new else "is declared otherwise"
        found.append(Change("nothing", ("params", name), f"it {how}", "the effects of its values are listed with the keys that use it"))
    if stored is None and a.hash != b.hash and not any(change.kind == "numbers" for change in found):
        *meanings, folded = fold_runs(a.meaning, b.meaning)
        if not folded or digest_of(meanings[0]) != digest_of(meanings[1]):
            found.append(Change("numbers", (), "the hashes differ", "the reason cannot be described"))
    if not found and a.texts != b.texts:
        found.append(Change("nothing", (), "the texts differ", "comments, order, or default values"))
    placed = [replace(change, span=(a if change.gone else b).span(change.path) if change.path else None) for change in found]
    bases = [(side, name) for side in (a, b) if side.shown is not None for name in side.spec.loaded.texts if name.startswith("pkg:")]
    notes = (f"{name} is read as it is installed here, not as it was at {at.name}; compare the locks of both" for at, name in bases)
    return Comparison((a.name, b.name), (a.hash, b.hash), _ordered(placed), draws, tuple(notes))


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


_TITLES: dict[Kind, str] = {
    "numbers": "other numbers",
    "perhaps": "other numbers, perhaps: the specs alone do not tell",
    "speed": "the same numbers, at another speed",
    "nothing": "nothing but words",
}


def verdict(comparison: Comparison) -> str:
    """The outcome as a sentence."""
    counts = {kind: len(comparison.of(kind)) for kind in KINDS}
    if counts["numbers"]:
        return "The model sees other numbers."
    if counts["perhaps"]:
        return "The model may see other numbers: that depends on the data."
    if counts["speed"]:
        rounds = any(change.path[:2] == ("runtime", "jit") for change in comparison.of("speed"))
        return f"The model sees the same numbers{', up to rounding' if rounds else ''}; only speed differs."
    return "The model sees the same numbers." if comparison.changes else "Nothing differs."


def render_text(comparison: Comparison, strong: Callable[[str], str] = str) -> str:
    """Renders a comparison as text; `strong` marks headings."""
    lines = [f"{comparison.names[0]} → {comparison.names[1]}: {verdict(comparison)}"]
    for kind in KINDS:
        changes = comparison.of(kind)
        if changes:
            lines += ["", strong(_TITLES[kind])]
        for change in changes:
            where = f"  ({change.span})" if change.span is not None else ""
            lines += [f"  {change}{where}", f"      {change.whole_effect}"]
    return "".join(f"{line}\n" for line in [*lines, *_draws(comparison)])


def render_github(comparison: Comparison) -> str:
    """Renders a comparison as workflow commands, one a line: warnings for other numbers, notices for the rest."""
    revisions = tuple(f"{name.partition(':')[0]}:" for name in comparison.names if ":" in name)
    commands = []
    for change in comparison.changes:
        properties = {}
        # Files at a revision or in a package are not in the working tree.
        if change.span is not None and not is_address(change.span.file) and not change.span.file.startswith(revisions):
            properties = {"file": relative_path(change.span.file), "line": str(change.span.line)}
        command = "warning" if change.kind in ("numbers", "perhaps") else "notice"
        properties["title"] = f"pipegen diff: {_TITLES[change.kind]}"
        commands.append(workflow_command(command, properties, f"{change}\n{change.whole_effect}"))
    commands.append(workflow_command("notice", {"title": "pipegen diff"}, "\n".join([verdict(comparison), *_draws(comparison)[1:]])))
    return "".join(f"{command}\n" for command in commands)


def _draws(comparison: Comparison) -> list[str]:
    """Describes the effects on the draws, if numbers change."""
    if comparison.same_numbers:
        return []
    lines = []
    if comparison.draws.kept:
        lines.append(f"The same draws as before: {', '.join(comparison.draws.kept)}.")
    if comparison.draws.moved:
        lines.append(f"Other draws: {', '.join(f'{step} ({why})' for step, why in comparison.draws.moved)}.")
    return ["", *lines] if lines else []
