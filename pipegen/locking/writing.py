"""Writes a lock, and the texts of bases from git beside it: in a stable order, and only what has changed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipegen.files import write_whole
from pipegen.spec.bases.lock_file import Entry, Lock, Pin, text_path
from pipegen.spec.bases.packages import BaseProblem, GitFile, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_HEAD = "# Written by `pipegen lock`, to be committed. `pipegen lock --check` says what has moved since; do not edit it by hand.\n"


_LISTED = ("texts", "packages", "fitted")
"""What has a line for each name."""


class _Lines(dict[str, Any]):
    """Holds a map that is written line by line."""


class _Line(list[Any]):
    """Holds a list that is written on one line, as far as that goes."""


def lock_text(lock: Lock) -> str:
    """The lock as YAML: sections in one order, names sorted, a line for each small thing."""
    from pipegen.spec.runtime_fix import Dumper as Plain
    from pipegen.spec.runtime_fix import to_yaml

    class Dumper(Plain):
        """Writes what a person reads line by line as blocks, and what belongs together on a line."""

    Dumper.add_representer(_Lines, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=False))
    Dumper.add_representer(_Line, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True))
    git = {place: _plain(pin) for place, pin in sorted(lock.git.items())}
    specs = {name: _plain(entry) for name, entry in sorted(lock.specs.items())}
    values: dict[str, Any] = {"pipegen_lock": lock.pipegen_lock, **({"git": git} if git else {}), "specs": specs}
    return _HEAD + to_yaml(values, Dumper, width=140, default_flow_style=None)


def _plain(part: Pin | Entry) -> dict[str, Any]:
    """A part less what says nothing."""
    values = part.model_dump(mode="json")
    if "transforms" in values.get("meaning", {}):
        values["meaning"]["transforms"] = [_Line(step) for step in values["meaning"]["transforms"]]
    if values.get("data") is not None:
        values["data"] = {key: value for key, value in values["data"].items() if value is not None}
    return {key: _Lines(value) if key in _LISTED else value for key, value in values.items() if value not in ({}, None)}


def write_lock(path: Path, lock: Lock) -> bool:
    """Writes a lock where its text is another than the one that is there; returns whether it was.

    Raises:
        OSError: When it cannot be written.
    """
    text = lock_text(lock)
    with suppress(OSError, UnicodeDecodeError):  # there is none yet, or none that can be read
        if path.read_text(encoding="utf-8") == text:
            return False
    put_file(path, text.encode())
    return True


def put_file(path: Path, data: bytes) -> None:
    """Writes a file that is there whole or not at all, and its folder.

    Raises:
        OSError: When it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def drop_texts(path: Path, old: Mapping[str, Pin], new: Mapping[str, Pin]) -> None:
    """Removes the kept texts that a lock no longer names, and the folders that they leave empty."""
    gone = {*_kept(path, old)} - {*_kept(path, new)}
    for kept in gone:
        kept.unlink(missing_ok=True)
        for folder in kept.parents:
            if folder == path.parent or any(folder.iterdir()):
                break
            folder.rmdir()


def _kept(path: Path, git: Mapping[str, Pin]) -> Iterator[Path]:
    for place, pin in git.items():
        for file in pin.texts:
            with suppress(BaseProblem):  # a line that nobody has written who knows the form
                address = parse(f"{place}#{file}")
                if isinstance(address, GitFile):
                    yield text_path(path, address, pin.commit)
