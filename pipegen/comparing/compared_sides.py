"""The sides of a comparison: spec files, specs at a revision of git, standard input, and locks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Span
from pipegen.errors import PipegenError
from pipegen.frozen import dataclass
from pipegen.phases.compilation import inspect
from pipegen.phases.specs import Spec
from pipegen.spec.changes import GONE, Change, Kind, in_words, meaning_changes
from pipegen.spec.compose import MAX_BYTES, compose, decode
from pipegen.spec.lock_file import Data, Entry, Lock, read_lock
from pipegen.spec.source_map import KeyPath, with_texts
from pipegen.spec.spec_hash import meaning

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

    `words` are its name, description and params, `raw` its plain values with absolute paths, `texts` those that it is read from, sorted.
    For a spec written out from a revision, `shown` has the folder that stands for the root of the file system, that of the working tree in
    it, and the text that replaces the latter in findings.
    """

    name: str
    hash: str
    meaning: dict[str, Any]
    runtime: dict[str, Any]
    words: dict[str, Any]
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
    does not have it; `BaseProblem` if the lock cannot be read."""
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
    words: dict[str, Any] = {key: spec.loaded.raw.get(key) for key in ("name", "description")}  # the default name does not count
    words |= {"params": {name: param.model_dump(mode="json") for name, param in model.params.items()}}
    runtime = _relocated(model.runtime.model_dump(mode="json"), shown)
    raw, texts = _relocated(spec.loaded.raw, shown), tuple(sorted(spec.loaded.texts.values()))
    return Side(STDIN if name == "-" else name, spec.hash, meaning(model), runtime, words, raw, texts, spec, shown)


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


def lock_changes(a: Lock, b: Lock) -> Iterator[Change]:
    """Yields what differs between two locks."""
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
    found += _data(a.data, b.data)
    for step, numbers in a.fitted.items():
        if b.fitted.get(step, numbers) != numbers:
            found.append(Change("numbers", ("fitted", step), "other numbers were learned", "the step works with those"))
    for name, source in a.functions.items():
        other = b.functions.get(name, source)
        if source.function != other.function:
            found.append(Change("numbers", ("functions", name), "its source differs", _OTHER_CODE))
        elif source.module != other.module:
            effect = f"its own lines are the same; {_OTHER_CODE} if it uses the rest"
            found.append(Change("perhaps", ("functions", name), "its module differs", effect))
    for what, old, new in (("packages", a.packages, b.packages), ("versions", a.versions, b.versions)):
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                kind: Kind = "perhaps" if what == "versions" else "nothing"
                effect = "bits are promised within one version, and rounding across them" if kind == "perhaps" else "a base comes from it"
                found.append(Change(kind, (what, name), f"{in_words(old.get(name))} → {in_words(new.get(name))}", effect))
    if not found and a.texts != b.texts:
        names = [name for name in {**a.texts, **b.texts} if a.texts.get(name) != b.texts.get(name)]
        found.append(Change("nothing", ("texts",), ", ".join(names), "the texts differ, and mean the same"))
    return found


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
        yield Change("numbers", path, "files of the same names and sizes have other contents", "the data is not the same")
    if a.classes != b.classes:
        yield Change("numbers", (*path, "classes"), f"{a.classes} → {b.classes}", "labels have other values")
