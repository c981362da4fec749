"""Locks specs: writes down what each is made of, and resolves the bases that come from git."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.api.lock_check import look, read, spec_of
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Label
from pipegen.diagnostics.suggest import closest
from pipegen.errors import SpecError
from pipegen.locking.entries import entry_name, entry_of, unfound_functions
from pipegen.locking.git import Repositories
from pipegen.locking.resolving import Resolving
from pipegen.locking.writing import drop_texts, put_file, write_lock
from pipegen.phases.compilation import inspect
from pipegen.spec.bases.lock_file import LOCK, Entry, Lock, find_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipegen.spec.bases.lock_file import Pin


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
