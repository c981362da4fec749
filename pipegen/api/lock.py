"""Writing `pipegen.lock`, and comparing specs with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pipegen import locking
from pipegen.api.fitting import kept_numbers
from pipegen.data.named_files import missing_data
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Label, Severity
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, SpecError
from pipegen.files import write_whole
from pipegen.frozen import dataclass
from pipegen.phases.compilation import bind, collect_data, inspect
from pipegen.phases.specs import FittedSpec, Learned, Spec
from pipegen.spec.lock_file import LOCK, Data, Entry, Lock, find_lock, read_lock
from pipegen.terminal import log

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest


_AGAIN = "run `pipegen lock` with this spec, and commit the lock"


@dataclass(slots=True)
class Compared:
    """The result of comparing specs with their locks: errors and differences, and notes on what was not compared.

    `entries` has the current entry of each spec that could be compared, by file; `fine` are the specs without differences.
    """

    findings: list[Diagnostic] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    fine: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Looked:
    """A spec's data and learned numbers; empty if the data is not on this machine."""

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
    """Compares each spec with the nearest lock above it; skips data that is not on this machine.

    With `content`, the contents of the data's files are compared, too; a spec that was locked without them is a finding. `overrides` are
    values for params and by path, as in `--set`; `progress` is called now and then with the number of data files listed. Raises `OSError`
    when a file of the data cannot be read.
    """
    result = Compared()
    for file in files:
        try:
            lock, entry = _locked_entry(file)
            found = inspect(file, overrides=overrides, overrides_from="--set")
            result.texts.update(found.loaded.texts)
            spec = found.require()
            locked = entry.data
            looked = Looked() if locked is None else look(spec, content and locked.content is not None, progress)
        except SpecError as error:
            result.findings += error.diagnostics
            continue
        result.notes += [f"{file}: {note}" for note in looked.notes]
        result.entries[file] = locking.entry_of(spec, lock, looked.data, looked.learned)
        moved = locking.differences(spec, entry, result.entries[file])
        if content and locked is not None and locked.content is None and looked.data is not None:
            message = f"{file} was locked without the contents of its files, so they cannot be compared"
            help_ = "run `pipegen lock --content` with this spec, and commit the lock"
            moved.append(make("PG530", message, spec.loaded.locate.label(()), help=(help_,)))
        result.findings += moved
        result.fine += [] if moved else [file]
    return result


def locked_specs(folder: Path) -> list[str]:
    """Lists the paths of the specs in the nearest lock, in a folder or above it; empty without a lock.

    Raises `SpecError` (`PG532`) for a damaged lock.
    """
    path = find_lock(folder)
    return [] if path is None else [os.path.relpath(path.parent / name) for name in sorted(read(path).specs)]


@dataclass(frozen=True, slots=True)
class LockCheck:
    """A check, phase by phase of a build, that a spec is as its entry in the lock."""

    spec: Spec
    entry: Entry

    @classmethod
    def of(cls, spec: Spec) -> LockCheck:
        """Finds the entry of a spec in the nearest lock above it, and checks all that needs no data.

        Raises:
            SpecError: `PG530` if it is not locked, `PG532` for a damaged lock, `PG531` for a difference.
        """
        file = spec.loaded.file
        if file is None or not os.path.isfile(file):
            help_ = ("save it as a file, and lock that",)
            raise SpecError([make("PG530", "a spec without a file cannot be locked", Label(None, path="locked=True"), help=help_)])
        lock, entry = _locked_entry(file)
        _refuse(locking.differences(spec, entry, locking.entry_of(spec, lock)))
        return cls(spec, entry)

    def data(self, manifest: Manifest) -> None:
        """Checks that the listed data is the locked data; arrays that the caller passes are not checked.

        Raises:
            SpecError: `PG531` for a difference, `PG530` if the lock has no data.
        """
        if self.spec.model.source.needs_data():
            return
        if self.entry.data is None:
            message = f"{self.spec.loaded.file} was locked on a machine without its data, so the lock does not contain the data"
            raise SpecError([make("PG530", message, self.spec.loaded.locate.label(("source",)), help=(_AGAIN,))])
        self._compare(data=locking.data_of(manifest))

    def numbers(self, fitted: FittedSpec) -> None:
        """Checks that the learned numbers are the locked ones; numbers that the lock lacks follow from the data.

        Raises `SpecError` (`PG531`) for a difference.
        """
        self._compare(fitted=locking.numbers_of(fitted.spec, fitted.learned))

    def _compare(self, **parts: object) -> None:
        _refuse(locking.differences(self.spec, self.entry, self.entry.model_copy(update=parts)))


def _refuse(found: list[Diagnostic]) -> None:
    wrong = [finding for finding in found if finding.severity is Severity.ERROR]
    if wrong:
        raise SpecError(wrong)
    for finding in found:
        log.warning("%s %s: %s", finding.code, finding.span or "the spec", finding.message)


def look(spec: Spec, content: bool, progress: Callable[[int], None] | None, held: Data | None = None) -> Looked:
    """Lists the data of a spec, if it is on this machine, and reads the stored numbers that its steps have learned.

    The contents of its files are hashed if `content` is set, or if the lock has `held` the hash of other data. Raises `SpecError` when the
    data is wrong and `OSError` when a file of it cannot be read.
    """
    if spec.model.source.needs_data():
        return Looked(notes=["the arrays come from `pipegen.build(data=)`, so they were not checked"])

    missing = missing_data(spec.loaded.raw, spec.loaded.locate.label)
    if missing:
        return Looked(notes=[f"the data was not checked: {missing[0].message}"])
    from pipegen.data.content import content_digest

    manifest = collect_data(spec, progress)
    data = locking.data_of(manifest)
    if content or (held is not None and held.content is not None and held.fingerprint != data.fingerprint):
        data = locking.data_of(manifest, content_digest(manifest.listing, progress))
    learned = kept_numbers(bind(spec, manifest))
    notes = ["what its steps learn is not measured yet, so it was not checked: `pipegen fit` measures it"] if learned is None else []
    return Looked(data, learned or (), notes)


def read(path: Path) -> Lock:
    """Reads a lock; raises `SpecError` (`PG532`) if it is damaged."""
    try:
        return read_lock(path)
    except OpError as problem:
        raise SpecError([make(problem.code, problem.message, Label(None, path=os.path.relpath(path)), help=problem.lines)]) from None


def _locked_entry(file: str) -> tuple[Path, Entry]:
    """Finds the lock of a spec and its entry there; raises `SpecError` (`PG530`) if it is not locked."""
    folder = Path(os.path.abspath(file)).parent
    path, at = find_lock(folder), Label(None, path=file)
    if path is None:
        raise SpecError([make("PG530", f"{file} is not locked: no {LOCK} in its folder or above", at, help=(_AGAIN,))])
    entry = read(path).specs.get(locking.entry_name(file, path))
    if entry is None and not os.path.isfile(file):
        raise SpecError(inspect(file).diagnostics.sorted())
    if entry is None:
        raise SpecError([make("PG530", f"{file} is not locked: it is not in {os.path.relpath(path)}", at, help=(_AGAIN,))])
    if not os.path.isfile(file):
        raise SpecError([make("PG531", f"{file} is locked, but the file is gone", at, help=("run `pipegen lock`, which removes it",))])
    return path, entry


@dataclass(slots=True)
class Locked:
    """The result of locking: the lock file, true if its text was changed, and the entries of the specs, by file.

    `git` has the tags resolved and their commits, and `notes` what could not be locked, in words.
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
    """Locks specs, each in the nearest lock above it, or in a new one.

    Args:
        files: The specs.
        update: The repository whose tags are resolved again, by the last part of its URL; "" for all; `None` to keep commits.
        content: Whether to hash the contents of the data's files, too.
        overrides: Values for params and by path, as in `--set`.
        progress: Called now and then with the number of data files listed so far.

    Returns:
        The new content of each lock.

    Raises:
        SpecError: With every finding, when a spec, its data or a lock is wrong; then no lock is written.
        OSError: When a lock cannot be written.
    """
    by_lock: dict[Path, list[str]] = {}
    for file in files:  # the nearest lock above it, else in the working directory if that contains the spec, else beside the spec
        above, here = Path(os.path.abspath(file)).parent, Path.cwd()
        lock = find_lock(above) or (here if above.is_relative_to(here) else above) / LOCK
        by_lock.setdefault(lock, []).append(file)
    met = set[str]()
    with TemporaryDirectory(prefix="pipegen-lock-") as folder:
        repositories = locking.Repositories(Path(folder))
        runs = [_Run(path, locking.Resolving(path, {}, update, repositories), content, overrides, progress) for path in by_lock]
        for run, names in zip(runs, by_lock.values(), strict=True):
            for name in names:
                run.add(name)
            met |= run.resolving.met
        if update and update not in met:
            names = sorted(name for name in met if "/" not in name)
            near = closest(update, names)
            hint = f"did you mean `{near}`?" if near else f"repositories of bases: {', '.join(names) or 'none'}"
            raise SpecError([make("PG533", f"no base comes from a repository called `{update}`", Label(None), help=(hint,))])
        return [run.write() for run in runs]


@dataclass
class _Run:
    """The locking of the specs of one lock file, which is written at the end, or not at all."""

    path: Path
    resolving: locking.Resolving
    content: bool
    overrides: Mapping[str, object] | None
    progress: Callable[[int], None] | None

    def __post_init__(self) -> None:
        self.old = read(self.path) if self.path.is_file() else Lock(pipegen_lock=1)
        self.resolving.pins = dict(self.old.git)
        self.result = Locked(self.path)

    def add(self, file: str) -> None:
        """Locks a spec; raises `SpecError` when it or its data is wrong."""
        spec = inspect(file, overrides=self.overrides, overrides_from="--set", git=self.resolving.text).require()
        earlier = self.old.specs.get(locking.entry_name(file, self.path))
        looked = look(spec, self.content, self.progress, earlier.data if earlier is not None else None)
        entry = _with_earlier(locking.entry_of(spec, self.path, looked.data, looked.learned), earlier)
        if looked.data is None and entry.data is not None:
            looked.notes = [f"{note}; its entry in the lock stays" for note in looked.notes]
        self.result.entries[file] = entry
        self.result.notes += [f"{file}: {note}" for note in looked.notes]
        unfound = [name for name in locking.python_functions(spec.model) if name not in entry.functions]
        self.result.notes += [f"{file}: the source of `{name}` is not found here, so it is not locked" for name in unfound]

    def write(self) -> Locked:
        """Writes the lock and the texts beside it; removes specs whose files are gone."""
        path = self.path
        specs = {name: entry for name, entry in self.old.specs.items() if (path.parent / name).is_file()}
        self.result.notes += [f"{name} is gone, so it was removed from the lock" for name in self.old.specs.keys() - specs.keys()]
        specs |= {locking.entry_name(file, path): entry for file, entry in self.result.entries.items()}
        wanted = {name for entry in specs.values() for name in entry.texts}
        pins = dict(self.old.git)  # those of other specs in the lock stay
        for place, pin in self.resolving.resolved.items():
            same = place in pins and pins[place].commit == pin.commit
            texts = {**pins[place].texts, **pin.texts} if same else pin.texts
            pins[place] = pin.model_copy(update={"texts": dict(sorted(texts.items()))})
        used = {place: {name[len(place) + 1 :] for name in wanted if name.startswith(place)} for place in pins}
        git = {place: pin for place, pin in pins.items() if pin.texts.keys() & used[place]}
        for kept, data in self.resolving.texts.items():
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, data)
        self.result.written = locking.write_lock(path, Lock(pipegen_lock=1, git=git, specs=specs))
        locking.drop_texts(path, self.old.git, git)
        self.result.git = self.resolving.moved()
        return self.result


def _with_earlier(entry: Entry, earlier: Entry | None) -> Entry:
    """Carries over from an earlier entry what is not checked each time: absent data, content hashes, learned numbers."""
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
