"""Locks specs, and refuses to build what a lock does not know."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.api.fitting import kept_numbers
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Label, Severity
from pipegen.diagnostics.suggest import closest
from pipegen.errors import SpecError
from pipegen.locking.entries import data_of, differences, entry_name, entry_of, numbers_of, unfound_functions
from pipegen.locking.git import Repositories, Resolving
from pipegen.locking.writing import drop_texts, put_file, write_lock
from pipegen.phases.compilation import bind, collect_data, inspect
from pipegen.spec.bases.lock_file import LOCK, Entry, Lock, find_lock, read_lock
from pipegen.spec.bases.packages import BaseProblem
from pipegen.terminal import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.phases.specs import FittedSpec, Inspection, Learned, Spec
    from pipegen.spec.bases.lock_file import Data, Pin


_AGAIN = "run `pipegen lock` with this spec, and commit the lock"


@dataclass(slots=True)
class Compared:
    """Holds what came of a comparison.

    Attributes:
        findings: What is wrong, and what has moved.
        entries: What is here of each spec that could be compared, by file.
        fine: Those of which nothing has moved.
        notes: What was not compared, in words.
        texts: The texts of the specs, for whoever shows the findings.
    """

    findings: list[Diagnostic] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    fine: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Looked:
    """Holds what is known of a spec's data: nothing where it is not on this machine."""

    data: Data | None = None
    learned: tuple[Learned, ...] = ()
    notes: list[str] = field(default_factory=list)


def check_specs(
    files: Iterable[str],
    *,
    content: bool = False,
    overrides: Mapping[str, object] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Compared:
    """Compares specs with what the nearest lock above each holds; data that is not on this machine is passed over.

    Args:
        files: The specs.
        content: Whether the contents of the data's files are compared, too; a spec that was locked without them is a finding.
        overrides: Values for params and by path, as `--set` has them.
        progress: Called with the number of files of data listed so far, now and then.

    Raises:
        OSError: When a file of the data cannot be read.
    """
    result = Compared()
    for file in files:
        try:
            lock, entry = _locked_entry(file)
            found = inspect(file, overrides=overrides, overrides_from="--set")
            result.texts.update(found.loaded.texts)
            spec = spec_of(found)
            locked = entry.data
            looked = Looked() if locked is None else look(spec, content and locked.content is not None, progress)
        except SpecError as error:
            result.findings += error.diagnostics
            continue
        result.notes += [f"{file}: {note}" for note in looked.notes]
        result.entries[file] = entry_of(spec, lock, looked.data, looked.learned)
        moved = differences(spec, entry, result.entries[file])
        if content and locked is not None and locked.content is None and looked.data is not None:
            message = f"{file} was locked without the contents of its files, so they cannot be compared"
            help_ = "run `pipegen lock --content` with this spec, and commit the lock"
            moved.append(make("PG530", message, spec.loaded.locate.label(()), help=(help_,)))
        result.findings += moved
        result.fine += [] if moved else [file]
    return result


def locked_specs(folder: Path) -> list[str]:
    """Returns the specs that the nearest lock in a folder or above it holds, as paths; none without a lock.

    Raises:
        SpecError: `PG532` for a damaged lock.
    """
    path = find_lock(folder)
    return [] if path is None else [os.path.relpath(path.parent / name) for name in sorted(read(path).specs)]


@dataclass(frozen=True, slots=True)
class LockCheck:
    """Refuses, stage by stage, to build what the lock of a spec does not know.

    Attributes:
        spec: The spec.
        entry: What the lock holds of it.
    """

    spec: Spec
    entry: Entry

    @classmethod
    def of(cls, spec: Spec) -> LockCheck:
        """Finds what the nearest lock above a spec holds of it, and checks all that shows without its data.

        Raises:
            SpecError: `PG530` where there is nothing, `PG532` for a damaged lock, `PG531` where something has moved.
        """
        file = spec.loaded.file
        if file is None or not os.path.isfile(file):
            help_ = ("save it as a file, and lock that",)
            raise SpecError([make("PG530", "a spec without a file is in no lock", Label(None, path="locked=True"), help=help_)])
        lock, entry = _locked_entry(file)
        _refuse(differences(spec, entry, entry_of(spec, lock)))
        return cls(spec, entry)

    def data(self, manifest: Manifest) -> None:
        """Checks that listed data is the locked one; arrays that the caller hands over are the caller's.

        Raises:
            SpecError: `PG531` where it is not, `PG530` where the lock knows no data.
        """
        if self.spec.model.source.needs_data():
            return
        if self.entry.data is None:
            message = f"{self.spec.loaded.file} was locked where its data was not at hand, so the lock does not know the data"
            raise SpecError([make("PG530", message, self.spec.loaded.locate.label(("source",)), help=(_AGAIN,))])
        self._compare(data=data_of(manifest))

    def numbers(self, fitted: FittedSpec) -> None:
        """Checks that what steps have learned is what was locked; what the lock does not have of them follows from the data.

        Raises:
            SpecError: `PG531` where it is not.
        """
        self._compare(fitted=numbers_of(fitted.spec, fitted.learned))

    def _compare(self, **parts: object) -> None:
        _refuse(differences(self.spec, self.entry, self.entry.model_copy(update=parts)))


def _refuse(found: list[Diagnostic]) -> None:
    wrong = [finding for finding in found if finding.severity is Severity.ERROR]
    if wrong:
        raise SpecError(wrong)
    for finding in found:
        log.warning("%s %s: %s", finding.code, finding.span or "the spec", finding.message)


def look(spec: Spec, content: bool, progress: Callable[[int], None] | None, held: Data | None = None) -> Looked:
    """Lists the data of a spec, where it is on this machine, and finds what was kept of the numbers that its steps learn.

    What is in its files is hashed for `content`, and where a lock has `held` that of other data.

    Raises:
        SpecError: When the data is wrong.
        OSError: When a file of it cannot be read.
    """
    if spec.model.source.needs_data():
        return Looked(notes=["the arrays come from `pipegen.build(data=)`, so they were not looked at"])
    from pipegen.data.ownership import missing_data

    missing = missing_data(spec.loaded.raw, spec.loaded.locate.label)
    if missing:
        return Looked(notes=[f"the data was not looked at: {missing[0].message}"])
    from pipegen.data.content import content_digest

    manifest = collect_data(spec, progress)
    data = data_of(manifest)
    if content or (held is not None and held.content is not None and held.fingerprint != data.fingerprint):
        data = data_of(manifest, content_digest(manifest.listing, progress))
    learned = kept_numbers(bind(spec, manifest))
    notes = ["what its steps learn was not measured yet, so it was not looked at: `pipegen fit` measures it"] if learned is None else []
    return Looked(data, learned or (), notes)


def spec_of(found: Inspection) -> Spec:
    """Returns a spec without errors.

    Raises:
        SpecError: With every finding, when there are errors.
    """
    if found.spec is None:
        raise SpecError(found.diagnostics.sorted())
    return found.spec


def read(path: Path) -> Lock:
    """Reads a lock.

    Raises:
        SpecError: `PG532` where it is damaged.
    """
    try:
        return read_lock(path)
    except BaseProblem as problem:
        raise SpecError([make(problem.code, problem.message, Label(None, path=os.path.relpath(path)), help=problem.help)]) from None


def _locked_entry(file: str) -> tuple[Path, Entry]:
    """The lock of a spec, and what it holds of it.

    Raises:
        SpecError: `PG530` where there is nothing.
    """
    folder = Path(os.path.abspath(file)).parent
    path, at = find_lock(folder), Label(None, path=file)
    if path is None:
        raise SpecError([make("PG530", f"{file} is not locked: there is no {LOCK} beside it or above", at, help=(_AGAIN,))])
    entry = read(path).specs.get(entry_name(file, path))
    if entry is None and not os.path.isfile(file):
        raise SpecError(inspect(file).diagnostics.sorted())
    if entry is None:
        raise SpecError([make("PG530", f"{file} is not locked: {os.path.relpath(path)} does not know it", at, help=(_AGAIN,))])
    if not os.path.isfile(file):
        raise SpecError([make("PG531", f"{file} is locked, and no longer there", at, help=("run `pipegen lock`, which leaves it out",))])
    return path, entry


@dataclass(slots=True)
class Locked:
    """Holds what came of locking.

    Attributes:
        lock: The lock file.
        written: Whether its text has changed.
        entries: What it holds of the specs that were locked, by their files.
        git: Which tags were resolved to which commits, in words.
        notes: What could not be locked, in words.
    """

    lock: Path
    written: bool = False
    entries: dict[str, Entry] = field(default_factory=dict)
    git: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def lock_specs(
    files: Iterable[str],
    *,
    update: str | None = None,
    content: bool = False,
    overrides: Mapping[str, object] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Locked]:
    """Writes down what specs are made of, each in the nearest lock above it, or in a new one.

    Args:
        files: The specs.
        update: The name of a repository whose tags are resolved anew, as it ends its URL; the empty text for all; `None` to keep commits.
        content: Whether the contents of the data's files are hashed, too.
        overrides: Values for params and by path, as `--set` has them.
        progress: Called with the number of files of data listed so far, now and then.

    Returns:
        What each lock holds now.

    Raises:
        SpecError: With every finding, when a spec, its data or a lock is wrong; then no lock is written.
        OSError: When a lock cannot be written.
    """
    by_lock: dict[Path, list[str]] = {}
    for file in files:
        by_lock.setdefault(_lock_of(file), []).append(file)
    met = set[str]()
    with Repositories() as repositories:
        runs = [_Run(path, Resolving(path, {}, update, repositories), content, overrides, progress) for path in by_lock]
        for run, names in zip(runs, by_lock.values(), strict=True):
            for name in names:
                run.add(name)
            met |= run.resolving.met
        if update and update not in met:
            names = sorted(name for name in met if "/" not in name)
            near = closest(update, names)
            hint = f"did you mean `{near}`?" if near else f"bases come from {', '.join(names) or 'no repository'}"
            raise SpecError([make("PG533", f"no base comes from a repository called `{update}`", Label(None), help=(hint,))])
        return [run.write() for run in runs]


class _Run:
    """Locks the specs of one lock file, which is written at the end, or not at all."""

    def __init__(
        self,
        path: Path,
        resolving: Resolving,
        content: bool,
        overrides: Mapping[str, object] | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.old = read(path) if path.is_file() else Lock(pipegen_lock=1)
        self.resolving = resolving
        resolving.pins = dict(self.old.git)
        self.content = content
        self.overrides = overrides
        self.progress = progress
        self.result = Locked(path)

    def add(self, file: str) -> None:
        """Locks a spec.

        Raises:
            SpecError: When it or its data is wrong.
        """
        spec = spec_of(inspect(file, overrides=self.overrides, overrides_from="--set", git=self.resolving.text))
        earlier = self.old.specs.get(entry_name(file, self.result.lock))
        looked = look(spec, self.content, self.progress, earlier.data if earlier is not None else None)
        entry = _with_earlier(entry_of(spec, self.result.lock, looked.data, looked.learned), earlier)
        if looked.data is None and entry.data is not None:
            looked.notes = [f"{note}; what the lock had of it stays" for note in looked.notes]
        self.result.entries[file] = entry
        self.result.notes += [f"{file}: {note}" for note in looked.notes]
        self.result.notes += [f"{file}: the source of `{name}` is not found here, so it is not locked" for name in unfound_functions(spec)]

    def write(self) -> Locked:
        """Writes the lock and the texts beside it; specs that are gone go from it, too."""
        path = self.result.lock
        specs = {name: entry for name, entry in self.old.specs.items() if (path.parent / name).is_file()}
        self.result.notes += [f"{name} is no longer there, and no longer locked" for name in self.old.specs.keys() - specs.keys()]
        specs |= {entry_name(file, path): entry for file, entry in self.result.entries.items()}
        wanted = {name for entry in specs.values() for name in entry.texts}
        git = {
            place: pin
            for place, pin in self._pins().items()
            if pin.texts.keys() & {n[len(place) + 1 :] for n in wanted if n.startswith(place)}
        }
        for kept, data in self.resolving.texts.items():
            put_file(kept, data)
        self.result.written = write_lock(path, Lock(pipegen_lock=1, git=git, specs=specs))
        drop_texts(path, self.old.git, git)
        self.result.git = self.resolving.moved()
        return self.result

    def _pins(self) -> dict[str, Pin]:
        """Joins what was resolved now with what other specs of the lock have of the same commits and of others."""
        pins = dict(self.old.git)
        for place, pin in self.resolving.resolved.items():
            same = place in pins and pins[place].commit == pin.commit
            texts = {**pins[place].texts, **pin.texts} if same else pin.texts
            pins[place] = pin.model_copy(update={"texts": dict(sorted(texts.items()))})
        return pins


def _with_earlier(entry: Entry, earlier: Entry | None) -> Entry:
    """A new entry with what is not looked at each time, and holds on: data that is elsewhere, contents, learned numbers."""
    if earlier is None or earlier.data is None:
        return entry
    if entry.data is None:
        same = earlier.meaning.get("source") == entry.meaning["source"]
        return entry.model_copy(update={"data": earlier.data, "fitted": earlier.fitted}) if same else entry
    if entry.data.fingerprint != earlier.data.fingerprint:
        return entry
    data = entry.data.model_copy(update={"content": entry.data.content or earlier.data.content})
    fitted = entry.fitted or (earlier.fitted if entry.hash == earlier.hash else {})
    return entry.model_copy(update={"data": data, "fitted": fitted})


def _lock_of(file: str) -> Path:
    """The lock that a spec belongs to: the nearest one above it, else one in the working directory, where the spec lies below that."""
    folder, here = Path(os.path.abspath(file)).parent, Path.cwd()
    return find_lock(folder) or (here if folder.is_relative_to(here) else folder) / LOCK
