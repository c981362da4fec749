"""What is compared: a spec file, a spec at a revision of git, standard input, or a lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pipegen.comparing.changes import GONE, Change, Draws, Kind, fold_runs, section_changes, step_changes
from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Span
from pipegen.errors import PipegenError
from pipegen.phases.compilation import inspect
from pipegen.phases.specs import Spec
from pipegen.spec.bases.lock_file import Data, Entry, FunctionSource, Lock, read_lock
from pipegen.spec.compose import MAX_BYTES, compose, decode
from pipegen.spec.source_map import KeyPath
from pipegen.spec.spec_hash import in_words, known_hashes, meaning

_TIMEOUT = 60
"""Seconds that git may take to give one file."""
_MOST_FILES = 128


class RevisionError(PipegenError):
    """Git does not have what was asked for."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Names a file at a revision.

    Attributes:
        name: The revision as it was given.
        commit: What that is.
        root: The folder of the working tree.
        file: The file, relative to that.
    """

    name: str
    commit: str
    root: Path
    file: str


def is_revision(text: str) -> bool:
    """Returns whether a text is of the form `REVISION:PATH`, and no file."""
    name, colon, _ = text.partition(":")
    return bool(colon and name) and not os.path.lexists(text)


def find(text: str, like: str = "") -> Revision:
    """Returns the file that `REVISION:PATH` names. The path is relative to the repository's folder, as for git, or else to the working
    directory; without one, it is that of the file `like`.

    Raises:
        RevisionError: When there is none.
    """
    name, _, path = text.partition(":")
    if shutil.which("git") is None:
        raise RevisionError(f"{text} is a file at a revision, and git is not installed here")
    if name.startswith("-"):
        raise RevisionError(f"{name} is no revision")
    root = Path(_git("rev-parse", "--show-toplevel", wrong="this is no working tree of a git repository").decode().strip())
    commit = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", wrong=f"there is no revision {name} in {root}").decode().strip()
    here = Path.cwd().resolve()
    below = here.relative_to(root.resolve()).as_posix() if here.is_relative_to(root.resolve()) else "."
    ways = [path] if path and not path.startswith("./") else []
    ways.append(os.path.normpath(f"{below}/{path or like}"))
    for way in ways:
        if not way.startswith("../") and _has(commit, way):
            return Revision(name, commit, root, way)
    raise RevisionError(f"there is no {' nor '.join(dict.fromkeys(ways))} at {name}")


def write_out(revision: Revision, folder: Path) -> Path:
    """Writes a spec and the bases beside it into a folder, with the lock that their repositories are resolved by.

    Returns:
        Where the spec lies.

    Raises:
        RevisionError: When git does not give it.
    """
    wanted, seen = [revision.file], set[str]()
    while wanted and len(seen) < _MOST_FILES:
        file = wanted.pop()
        if file in seen or file.startswith("../") or not _has(revision.commit, file):
            continue  # what is missing is found missing when the spec is read
        seen.add(file)
        data = _git("cat-file", "blob", f"{revision.commit}:{file}", wrong=f"git does not give {file}")[: MAX_BYTES + 1]
        _put(folder / file, data)
        wanted += [os.path.normpath(PurePosixPath(file).parent / base) for base in _bases(data)]
    _lock(revision, folder)
    return folder / revision.file


def _bases(data: bytes) -> list[str]:
    """Returns the relative paths of the bases of a spec."""
    text = decode(data, "")
    tree = compose(text, "", Diagnostics(most=None)) if isinstance(text, str) and len(data) <= MAX_BYTES else None
    value: Any = tree.value.get("extends") if tree is not None else None
    listed = value if isinstance(value, list) else [value]
    return [base for base in listed if isinstance(base, str) and base and not base.startswith(("pkg:", "git+", "/"))]


def _lock(revision: Revision, folder: Path) -> None:
    """Writes out the nearest lock, with the texts beside it."""
    for place in PurePosixPath(revision.file).parents:
        lock = (place / "pipegen.lock").as_posix()
        if _has(revision.commit, lock):
            listed = _git(
                "ls-tree", "-r", "-z", "--name-only", "--full-tree", revision.commit, "--", lock, f"{lock}.d", wrong="git lists no files"
            )
            for name in listed.decode("utf-8", "surrogateescape").split("\0"):
                if name:
                    _put(folder / name, _git("cat-file", "blob", f"{revision.commit}:{name}", wrong=f"git does not give {name}"))
            return


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _has(commit: str, file: str) -> bool:
    try:
        return _git("cat-file", "-t", f"{commit}:{file}", wrong="").strip() == b"blob"
    except RevisionError:
        return False


def _git(*arguments: str, wrong: str) -> bytes:
    """Runs git, which asks for nothing and runs nothing of the repository's.

    Raises:
        RevisionError: When it fails; `wrong` says what that means.
    """
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
    """One of the two specs has errors: they are its findings, with the texts that they are about."""

    def __init__(self, findings: list[Diagnostic], texts: Mapping[str, str]) -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings = findings
        self.texts = texts


@dataclass(slots=True)
class Side:
    """Holds one of the two specs.

    Attributes:
        name: What it is called.
        hash: Its spec hash.
        meaning: What that covers, as plain values.
        runtime: Its `runtime` section.
        words: Its name, description and params.
        raw: Its plain values, paths made absolute.
        texts: The texts that it is read from, sorted.
        spec: The spec itself.
        shown: Where it was written out from a revision: the folder that stands for the root of the file system, that of the working tree in
            it, and what findings say in its place.
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

    @property
    def known(self) -> tuple[str, str]:
        """Its hash, and the one that it had in older versions."""
        return known_hashes(self.spec.model)

    def place_from(self, folder: Path) -> str:
        """Returns the path of its file from a folder."""
        file = os.path.abspath(str(self.spec.loaded.file))
        if self.shown is not None:
            file = file.removeprefix(self.shown[0])
        return Path(os.path.relpath(file, folder)).as_posix()

    def span(self, path: KeyPath) -> Span | None:
        """Returns the place of a value, or of what is around it."""
        span = self.spec.loaded.locate.label(path, key=len(path) == len(("transforms", 0, "op"))).span
        if span is not None and self.shown is not None:
            _, folder, name = self.shown
            span = replace(span, file=span.file.replace(folder, name))
        return span


@dataclass(frozen=True, slots=True)
class LockSide:
    """Holds a lock.

    Attributes:
        name: What it is called.
        folder: What the paths of its specs are relative to.
        lock: What it says.
    """

    name: str
    folder: Path
    lock: Lock


def read_side(text: str, other: str, overrides: Mapping[str, Any], stdin: bytes | None = None) -> Side | LockSide:
    """Reads one of the two; `other` is what the other one is called.

    Raises:
        UnreadableSideError: When the spec has errors.
        RevisionError: When git does not have it.
        BaseProblem: When the lock cannot be read.
    """
    if not is_revision(text):
        return _read(text, text, None, overrides, stdin)
    revision = find(text, like=other)
    with tempfile.TemporaryDirectory(prefix="pipegen-") as top:
        # As deep as the working tree lies, so that a relative path that leads out of it leads to the same place.
        folder = Path(os.path.realpath(top), *revision.root.parts[1:])
        folder.mkdir(parents=True)
        path = write_out(revision, folder)
        shown = (os.path.realpath(top), f"{folder}{os.sep}", f"{revision.name}:")
        return _read(str(path), f"{revision.name}:{revision.file}", shown, overrides, None)


def _read(path: str, name: str, shown: tuple[str, str, str] | None, overrides: Mapping[str, Any], stdin: bytes | None) -> Side | LockSide:
    if os.path.basename(path).endswith(".lock"):
        if not os.path.lexists(path):
            raise RevisionError(f"there is no lock {name}")
        folder = Path(path if shown is None else path.removeprefix(shown[0])).absolute().parent
        return LockSide(name, folder, read_lock(Path(path)))
    if path == "-":
        found = inspect(STDIN, overrides=overrides, overrides_from="--set", text=stdin or b"")
    else:
        found = inspect(path, overrides=overrides, overrides_from="--set")
    spec = found.spec
    if spec is None:
        raise UnreadableSideError(*_renamed(found.diagnostics.sorted(), found.loaded.texts, shown))
    model = spec.model
    words: dict[str, Any] = {key: spec.loaded.raw.get(key) for key in ("name", "description")}  # a file's own name is none
    words |= {"params": {name: param.model_dump(mode="json") for name, param in model.params.items()}}
    runtime = _relocated(model.runtime.model_dump(mode="json"), shown)
    raw = _relocated(spec.loaded.raw, shown)
    return Side(
        STDIN if name == "-" else name,
        spec.hash,
        meaning(model),
        runtime,
        words,
        raw,
        tuple(sorted(spec.loaded.texts.values())),
        spec,
        shown,
    )


def _relocated(value: Any, shown: tuple[str, str, str] | None) -> Any:
    """Paths below the folder that stands for the root of the file system, as they are from there."""
    if shown is None:
        return value
    if isinstance(value, dict):
        return {key: _relocated(inner, shown) for key, inner in value.items()}
    if isinstance(value, list):
        return [_relocated(inner, shown) for inner in value]
    return value.replace(f"{shown[0]}{os.sep}", os.sep) if isinstance(value, str) else value


def _renamed(
    findings: list[Diagnostic], texts: Mapping[str, str], shown: tuple[str, str, str] | None
) -> tuple[list[Diagnostic], Mapping[str, str]]:
    """Findings and texts by the name of the revision, in place of that of the folder that it was written to."""
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
