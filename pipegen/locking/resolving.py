"""Resolves bases from git while specs are locked: by what the lock has, or anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipegen.spec.bases.address import BaseProblem
from pipegen.spec.bases.lock_file import Pin, digest, kept_text, text_path

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.locking.git import Repositories
    from pipegen.spec.bases.address import GitFile


@dataclass(slots=True)
class Resolving:
    """Gives the texts of bases, of which it notes the commits.

    Attributes:
        lock: Where the lock is, or will be.
        pins: What the lock had.
        update: Which repositories are resolved anew, by name; the empty text stands for all, `None` for none.
        repositories: Fetches what is not kept.
        resolved: The commits of those that were asked for.
        texts: The texts that were fetched, by where they are to be kept.
        met: The names of the repositories that were asked for.
    """

    lock: Path
    pins: dict[str, Pin]
    update: str | None
    repositories: Repositories
    resolved: dict[str, Pin] = field(default_factory=dict)
    texts: dict[Path, bytes] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def text(self, address: GitFile, most: int) -> bytes:
        """Returns the text of a base.

        Raises:
            BaseProblem: `PG533` where it cannot be fetched.
        """
        names = {address.repository, address.url, address.place}
        self.met |= names
        anew = self.update == "" or self.update in names
        known = self.resolved.get(address.place) or (None if anew else self.pins.get(address.place))
        commit = known.commit if known is not None else self.repositories.resolve(address)
        data = self._kept(address, commit, most)
        if data is None:
            data = self.repositories.text(address, commit, most)
            self.texts[text_path(self.lock, address, commit)] = data
        earlier = self.resolved.get(address.place, Pin(commit=commit)).texts
        self.resolved[address.place] = Pin(commit=commit, texts=dict(sorted({**earlier, address.file: digest(data)}.items())))
        return data

    def _kept(self, address: GitFile, commit: str, most: int) -> bytes | None:
        """The text that this run has fetched before, or that the lock has of the same commit."""
        fresh, pin = self.texts.get(text_path(self.lock, address, commit)), self.pins.get(address.place)
        if fresh is not None or pin is None or pin.commit != commit or address.file not in pin.texts:
            return fresh
        try:
            return kept_text(self.lock, address, commit, pin.texts[address.file], most)
        except BaseProblem:  # missing or changed: the commit says what it was
            return None

    def moved(self) -> list[str]:
        """Says which tags stand for another commit than the lock had, and which are new."""
        lines = []
        for place, pin in sorted(self.resolved.items()):
            old = self.pins.get(place)
            if old is None:
                lines.append(f"{place} is commit {pin.commit[:12]}")
            elif old.commit != pin.commit:
                lines.append(f"{place} has moved from commit {old.commit[:12]} to {pin.commit[:12]}")
        return lines
