"""Reads specs as they stand at a revision of a git repository: `HEAD~1:specs/flowers.pipegen.yaml`, with the bases beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.errors import PipegenError
from pipegen.spec.compose import MAX_BYTES, compose, decode

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
