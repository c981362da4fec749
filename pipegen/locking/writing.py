"""Writes a lock in a stable order, and the texts of bases from git beside it, as far as they changed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipegen.files import write_whole
from pipegen.spec.lock_file import Entry, Lock, Pin, text_path
from pipegen.spec.shared_bases import BaseProblem, GitFile, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_HEAD = "# Written by `pipegen lock`, to be committed. `pipegen lock --check` says what has moved since; do not edit it by hand.\n"


_LISTED = ("texts", "packages", "fitted")
"""Keys whose maps have a line for each name."""


class _Lines(dict[str, Any]):
    """A map written line by line."""


class _Line(list[Any]):
    """A list written on one line, if it fits."""


def lock_text(lock: Lock) -> str:
    """Formats a lock as YAML: sections in a fixed order, names sorted, a line for each small value."""
    from pipegen.spec.runtime_fix import Dumper as Plain
    from pipegen.spec.runtime_fix import to_yaml

    class Dumper(Plain):
        """A dumper with representers of its own."""

    Dumper.add_representer(_Lines, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=False))
    Dumper.add_representer(_Line, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True))
    git = {place: _plain(pin) for place, pin in sorted(lock.git.items())}
    specs = {name: _plain(entry) for name, entry in sorted(lock.specs.items())}
    values: dict[str, Any] = {"pipegen_lock": lock.pipegen_lock, **({"git": git} if git else {}), "specs": specs}
    return _HEAD + to_yaml(values, Dumper, width=140, default_flow_style=None)


def _plain(part: Pin | Entry) -> dict[str, Any]:
    """Converts a part to plain values, without empty ones."""
    values = part.model_dump(mode="json")
    if "transforms" in values.get("meaning", {}):
        values["meaning"]["transforms"] = [_Line(step) for step in values["meaning"]["transforms"]]
    if values.get("data") is not None:
        values["data"] = {key: value for key, value in values["data"].items() if value is not None}
    return {key: _Lines(value) if key in _LISTED else value for key, value in values.items() if value not in ({}, None)}


def write_lock(path: Path, lock: Lock) -> bool:
    """Writes a lock if its text changed; returns true if it did.

    Raises:
        OSError: If it cannot be written.
    """
    text = lock_text(lock)
    with suppress(OSError, UnicodeDecodeError):  # missing or unreadable
        if path.read_text(encoding="utf-8") == text:
            return False
    put_file(path, text.encode())
    return True


def put_file(path: Path, data: bytes) -> None:
    """Writes a file atomically, and makes its folder.

    Raises:
        OSError: If it cannot be written.
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
            with suppress(BaseProblem):  # a malformed line, edited by hand
                address = parse(f"{place}#{file}")
                if isinstance(address, GitFile):
                    yield text_path(path, address, pin.commit)
