"""Compares two specs, locks, or a spec and its stored half; renders that as text, and as GitHub's workflow commands.

The sides of a comparison are spec files, specs at a revision of git, standard input, and locks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Span, is_address, relative_path
from pipegen.diagnostics.machine_readable import workflow_command
from pipegen.errors import PipegenError
from pipegen.frozen import dataclass
from pipegen.ops.sources.prepared import Prepared
from pipegen.phases.compilation import inspect
from pipegen.phases.specs import Spec
from pipegen.spec.changes import GONE, KINDS, Change, Draws, Kind, differences, fold_runs, in_words, meaning_changes
from pipegen.spec.compose import MAX_BYTES, compose, decode
from pipegen.spec.expect import one_of
from pipegen.spec.lock_file import Data, Entry, Lock, read_lock
from pipegen.spec.places import ADDRESS, places, settings
from pipegen.spec.source_map import KeyPath, lookup, with_texts
from pipegen.spec.spec_hash import digest_of, meaning
from pipegen.terminal import masked_value

_TIMEOUT = 60  # the time limit of a git command in seconds
_MOST_FILES = 128


class RevisionError(PipegenError):
    """A revision, a file or a lock does not exist."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A file at a revision: the revision as it was given, its commit, the folder of the working tree, and the file relative to that."""

    name: str
    commit: str
    root: Path
    file: str


def find(text: str, like: str = "") -> Revision:
    """Finds the file that `REVISION:PATH` names.

    The path is relative to the repository's folder, as for git, or else to the working directory. Without a path, it is that of the file
    `like`. Raises `RevisionError` if it does not exist."""
    name, _, path = text.partition(":")
    if shutil.which("git") is None:
        raise RevisionError(f"{text} is a file at a revision, and git is not installed here")
    if name.startswith("-"):
        raise RevisionError(f"{name} is not a revision")
    root = Path(_git("rev-parse", "--show-toplevel", wrong="not in a working tree of a git repository").decode().strip())
    commit = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", wrong=f"unknown revision {name} in {root}").decode().strip()
    here = Path.cwd().resolve()
    below = here.relative_to(root.resolve()).as_posix() if here.is_relative_to(root.resolve()) else "."
    ways = [path] if path and not path.startswith("./") else []
    ways.append(os.path.normpath(f"{below}/{path or like}"))
    for way in ways:
        if not way.startswith("../") and _has(commit, way):
            return Revision(name, commit, root, way)
    raise RevisionError(f"{' or '.join(dict.fromkeys(ways))} does not exist at {name}")


def write_out(revision: Revision, folder: Path) -> Path:
    """Writes a spec, the bases beside it, and the nearest lock into a folder; returns the path of the spec. Raises `RevisionError` if
    git cannot read it."""
    wanted, seen = [revision.file], set[str]()
    while wanted and len(seen) < _MOST_FILES:
        file = wanted.pop()
        if file in seen or file.startswith("../") or not _has(revision.commit, file):
            continue  # missing files are reported when the spec is read
        seen.add(file)
        data = _put(revision, file, folder)[: MAX_BYTES + 1]
        text = decode(data, "")
        tree = compose(text, "", Diagnostics(most=None)) if isinstance(text, str) and len(data) <= MAX_BYTES else None
        value: Any = tree.value.get("extends") if tree is not None else None
        bases = [base for base in (value if isinstance(value, list) else [value]) if isinstance(base, str) and base]
        beside = (base for base in bases if not base.startswith(("pkg:", "git+", "/")))
        wanted += [os.path.normpath(PurePosixPath(file).parent / base) for base in beside]
    locks = ((place / "pipegen.lock").as_posix() for place in PurePosixPath(revision.file).parents)
    lock = next((file for file in locks if _has(revision.commit, file)), None)
    if lock is not None:  # its texts lie beside it
        names = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision.commit, "--", lock, f"{lock}.d")
        for name in _git(*names, wrong="git lists no files").decode("utf-8", "surrogateescape").split("\0"):
            if name:
                _put(revision, name, folder)
    return folder / revision.file


def _put(revision: Revision, file: str, folder: Path) -> bytes:
    """Writes a file of a revision into a folder; returns its content."""
    data = _git("cat-file", "blob", f"{revision.commit}:{file}", wrong=f"git cannot read {file}")
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return data


def _has(commit: str, file: str) -> bool:
    try:
        return _git("cat-file", "-t", f"{commit}:{file}", wrong="").strip() == b"blob"
    except RevisionError:
        return False


def _git(*arguments: str, wrong: str) -> bytes:
    """Runs git without prompts, and without hooks of the repository; raises `RevisionError` if it fails, with the message `wrong`."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, timeout=_TIMEOUT, check=False, env=environment)  # noqa: S603, S607
    except subprocess.TimeoutExpired:
        raise RevisionError(f"git {arguments[0]} took more than {_TIMEOUT} s") from None
    if done.returncode:
        raise RevisionError(wrong)
    return done.stdout


STDIN = "<stdin>"


class UnreadableSideError(Exception):
    """One of the two specs has errors; holds the findings, and the texts that they point at."""

    def __init__(self, findings: list[Diagnostic], texts: Mapping[str, str]) -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings = findings
        self.texts = texts


@dataclass(slots=True)
class Side:
    """One of the two specs, with its name in the comparison, and the plain values that its hash covers (`meaning`).

    `raw` are its plain values with absolute paths, `texts` those that it is read from, sorted.
    For a spec written out from a revision, `shown` has the folder that stands for the root of the file system, that of the working tree in
    it, and the text that replaces the latter in findings.
    """

    name: str
    hash: str
    meaning: dict[str, Any]
    runtime: dict[str, Any]
    raw: dict[str, Any]
    texts: tuple[str, ...]
    spec: Spec
    shown: tuple[str, str, str] | None = field(default=None)

    def place_from(self, folder: Path) -> str:
        """The path of its file, relative to a folder."""
        file = os.path.abspath(str(self.spec.loaded.file))
        if self.shown is not None:
            file = file.removeprefix(self.shown[0])
        return Path(os.path.relpath(file, folder)).as_posix()

    def span(self, path: KeyPath) -> Span | None:
        """The place of a value, or else of its parent."""
        span = self.spec.loaded.locate.label(path, key=len(path) == len(("transforms", 0, "op"))).span
        if span is not None and self.shown is not None:
            _, folder, name = self.shown
            span = replace(span, file=span.file.replace(folder, name))
        return span


@dataclass(frozen=True, slots=True)
class LockSide:
    """A lock as a side of a comparison; the paths of its specs are relative to `folder`."""

    name: str
    folder: Path
    lock: Lock


def read_side(text: str, other: str, overrides: Mapping[str, Any], stdin: bytes | None = None) -> Side | LockSide:
    """Reads one side; `other` is the text of the other one. Raises `UnreadableSideError` if the spec has errors; `RevisionError` if git
    does not have it; `OpError` if the lock cannot be read."""
    given, colon, _ = text.partition(":")
    if not (given and colon) or os.path.lexists(text):  # not of the form `REVISION:PATH`
        return _read(text, text, None, overrides, stdin)
    revision = find(text, like=other)
    with tempfile.TemporaryDirectory(prefix="pipegen-") as top:
        # As deep as the working tree, so that relative paths that lead out of it stay the same.
        folder = Path(os.path.realpath(top), *revision.root.parts[1:])
        folder.mkdir(parents=True)
        path = write_out(revision, folder)
        shown = (os.path.realpath(top), f"{folder}{os.sep}", f"{revision.name}:")
        return _read(str(path), f"{revision.name}:{revision.file}", shown, overrides, None)


def _read(path: str, name: str, shown: tuple[str, str, str] | None, overrides: Mapping[str, Any], stdin: bytes | None) -> Side | LockSide:
    if os.path.basename(path).endswith(".lock"):
        if not os.path.lexists(path):
            raise RevisionError(f"the lock {name} does not exist")
        folder = Path(path if shown is None else path.removeprefix(shown[0])).absolute().parent
        return LockSide(name, folder, read_lock(Path(path)))
    given, text = (STDIN, stdin or b"") if path == "-" else (path, None)
    found = inspect(given, overrides=overrides, overrides_from="--set", text=text)
    spec = found.spec
    if spec is None:
        raise UnreadableSideError(*_renamed(found.diagnostics.sorted(), found.loaded.texts, shown))
    model = spec.model
    runtime = _relocated(model.runtime.model_dump(mode="json"), shown)
    raw, texts = _relocated(spec.loaded.raw, shown), tuple(sorted(spec.loaded.texts.values()))
    return Side(STDIN if name == "-" else name, spec.hash, meaning(model), runtime, raw, texts, spec, shown)


def _relocated(value: Any, shown: tuple[str, str, str] | None) -> Any:
    """Removes the folder that stands for the root of the file system from paths."""
    return value if shown is None else with_texts(value, lambda text, _: text.replace(f"{shown[0]}{os.sep}", os.sep))


def _renamed(
    findings: list[Diagnostic], texts: Mapping[str, str], shown: tuple[str, str, str] | None
) -> tuple[list[Diagnostic], Mapping[str, str]]:
    """Replaces the folder that a revision was written to by the revision's name in findings and texts."""
    if shown is None:
        return findings, texts
    top, folder, name = shown

    def named(text: str) -> str:
        return text.replace(folder, name).replace(f"{top}{os.sep}", os.sep)

    renamed = []
    for d in findings:
        labels = tuple(
            replace(
                label, span=label.span and replace(label.span, file=named(label.span.file)), text=named(label.text), path=named(label.path)
            )
            for label in d.labels
        )
        renamed.append(replace(d, message=named(d.message), labels=labels, help=tuple(named(line) for line in d.help), fix=None))
    return renamed, {named(file): text for file, text in texts.items()}


_OTHER_CODE = "the function may give other values"
_OTHER_VERSION = "from version to version numbers agree to rounding, and within one to the bit"


def lock_changes(a: Lock, b: Lock) -> Iterator[Change]:
    """Yields the differences between two locks."""
    for name in {**a.specs, **b.specs}:
        if name not in a.specs or name not in b.specs:
            how = "it is new" if name not in a.specs else GONE
            yield Change("nothing", (name,), how, "the spec is locked now" if name not in a.specs else "the spec is not locked any more")
        else:
            yield from (replace(change, path=(name, *change.path)) for change in _entry_changes(a.specs[name], b.specs[name]))
    for name in {**a.git, **b.git}:
        old, new = a.git.get(name), b.git.get(name)
        if old != new:
            commits = (in_words(pin.commit[:12] if pin is not None else None) for pin in (old, new))
            yield Change("nothing", ("git", name), " → ".join(commits), "its effects are listed with the specs that extend it")


def _entry_changes(a: Entry, b: Entry) -> list[Change]:
    found = meaning_changes(a.meaning, b.meaning)[0] if a.hash != b.hash else []
    found += changes_beside(a, b)
    packages = differences(a.packages, b.packages, ("packages",))
    found += (Change("nothing", path, f"{old} → {new}", "a base comes from it") for path, old, new in packages)
    if not found and a.texts != b.texts:
        names = [name for name in {**a.texts, **b.texts} if a.texts.get(name) != b.texts.get(name)]
        found.append(Change("nothing", ("texts",), ", ".join(names), "the texts differ, and mean the same"))
    return found


def changes_beside(a: Entry, b: Entry) -> Iterator[Change]:
    """Yields the differences between two entries in data, statistics, functions and versions."""
    yield from _data(a.data, b.data)
    for step, numbers in a.fitted.items():
        if b.fitted.get(step, numbers) != numbers:
            yield Change("numbers", ("fitted", step), "other numbers were learned", "the step works with those")
    for name, source in a.functions.items():
        other = b.functions.get(name, source)
        if source.function != other.function:
            yield Change("numbers", ("functions", name), "its source differs", _OTHER_CODE)
        elif source.module != other.module:
            effect = f"its own lines are the same; {_OTHER_CODE} if it uses the rest"
            yield Change("perhaps", ("functions", name), "its module differs", effect)
    for path, old, new in differences(a.versions, b.versions, ("versions",)):
        yield Change("perhaps", path, f"{old} → {new}", _OTHER_VERSION)


def _data(a: Data | None, b: Data | None) -> Iterator[Change]:
    if a is None or b is None:
        return
    counts = [f"{split}: {old} → {new} examples" for (split,), old, new in differences(a.examples, b.examples)]
    path: KeyPath = ("data",)
    if a.fingerprint != b.fingerprint:
        text = "files or rows were added, removed, renamed or changed"
        yield Change("numbers", path, "; ".join([text, *counts]), "the data is not the same")
    elif None not in (a.content, b.content) and a.content != b.content:
        yield Change("numbers", path, "files of the same names and sizes have other contents", "the data is not the same")
    if a.classes != b.classes:
        yield Change("numbers", (*path, "classes"), f"{a.classes} → {b.classes}", "labels have other values")


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
    it, or a lock does not have the spec; `OpError` if a lock cannot be read."""
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
        said, other = (side.spec.loaded.raw.get(key) for side in (a, b))  # the default name does not count
        if said != other:
            found.append(Change("nothing", (key,), f"{in_words(said)} → {in_words(other)}", effect))
    old, new = a.spec.model.params, b.spec.model.params
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
