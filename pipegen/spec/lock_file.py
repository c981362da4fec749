"""The reader of `pipegen.lock` and of the texts of bases from git beside it; `pipegen.locking` writes them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipegen.errors import OpError
from pipegen.files import is_irregular, read_regular
from pipegen.frozen import dataclass
from pipegen.spec.shared_bases import GitFile

LOCK = "pipegen.lock"
TEXTS = f"{LOCK}.d"  # the folder beside a lock with the texts of bases from git
_MOST = 2**24  # the largest size of a lock in bytes
_UNLOCKED = (
    "run `pipegen lock` with this spec, which resolves the tag to a commit and stores the text; commit both",
    "nothing is fetched when a spec is built or checked",
)
"""Help for a base that is in no lock."""
_SHOWN = 12  # digits of a commit in the name of a folder

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # a SHA-256 in hexadecimal


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pin(_Part):
    """The resolution of a tag of a repository."""

    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]  # the commit
    texts: dict[str, Digest] = {}  # the files used as bases, with the hashes of their texts


class FunctionSource(_Part):
    """The source of a Python function that a spec names."""

    function: Digest | None = None  # the hash of the function's own lines, if they were found
    module: Digest  # the hash of its module


class Data(_Part):
    """The data that a spec was locked with."""

    fingerprint: Digest  # hash of the names and sizes of files, and of the content of tables
    examples: dict[str, int]  # examples of each split
    classes: int = 0  # classes of the label; 0 without one
    content: Digest | None = None  # hash of every byte of the files, if asked for


class Entry(_Part):
    """The locked state of one spec."""

    hash: Digest  # the spec's hash
    texts: dict[str, Digest]  # the texts of the spec and of its bases, by path from the lock or by address
    packages: dict[str, str | None] = {}  # the versions of the packages that bases come from
    functions: dict[str, FunctionSource] = {}  # the functions of `python` steps
    data: Data | None = None  # the data, if it was accessible
    fitted: dict[str, Digest] = {}  # the numbers that steps are fitted with, by step and feature
    versions: dict[str, str] = {}  # the versions of pipegen and TensorFlow
    meaning: dict[str, Any]  # the content of the hash, to describe differences


class Lock(_Part):
    """A lock file."""

    pipegen_lock: Literal[1]  # the version of the format
    git: dict[str, Pin] = {}  # repositories at a tag, as `git+URL@TAG`
    specs: dict[str, Entry] = {}  # the specs, by their paths from the lock


def find_lock(folder: Path) -> Path | None:
    """Finds the nearest lock in a folder or above it; skips locks of other users, as in a temporary folder."""
    for place in (folder, *folder.parents):
        path = place / LOCK
        try:
            owner = path.stat().st_uid
            if owner in (0, os.geteuid(), folder.stat().st_uid) and not is_irregular(str(path)):
                return path
        except OSError:
            continue
    return None


def read_lock(path: Path) -> Lock:
    """Reads a lock. Raises `OpError`: `PG532` if it is damaged, or of another version."""
    shown = os.path.relpath(path)
    mend = f"restore {shown} with your version control, or delete it and run `pipegen lock` for its specs"
    data = b""
    try:
        data = read_regular(path, _MOST + 1)
        if len(data) > _MOST:
            raise OpError("PG532", f"the lock {shown} is larger than {_MOST // 2**20} MiB", help=mend)
        value = yaml.load(data.decode(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe one either way
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        hint = "it has a merge conflict" if b"\n<<<<<<<" in data else "it is not YAML"
        said = error.strerror.lower() if isinstance(error, OSError) and error.strerror else hint
        raise OpError("PG532", f"the lock {shown} cannot be read: {said}", help=mend) from None
    version = value.get("pipegen_lock") if isinstance(value, dict) else None
    if isinstance(version, int) and version != 1:
        update = "update pipegen, or delete the lock and run `pipegen lock` for its specs"
        raise OpError("PG532", f"the lock {shown} has format {version}, but this version of pipegen reads 1", help=update)
    try:
        return Lock.model_validate(value)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise OpError("PG532", f"the lock {shown} is damaged" + (f" at `{where}`" if where else ""), help=mend) from None


def text_path(lock: Path, address: GitFile, commit: str) -> Path:
    """The path of the text of a base beside a lock."""
    return lock.with_name(TEXTS) / f"{address.repository}-{commit[:_SHOWN]}" / address.file


def digest(data: bytes) -> str:
    """The SHA-256 of a text in hexadecimal, without carriage returns, which a checkout may change."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


@dataclass(slots=True)
class LockedTexts:
    """The texts of bases from git in the lock nearest to the folder of a spec; nothing is fetched."""

    folder: Path
    _read: tuple[Path, Lock] | None = field(default=None, init=False)

    def text(self, address: GitFile, most: int) -> bytes:
        """Reads at most `most` bytes of a base. Raises `OpError`: `PG116` if it is in no lock, `PG117` if its text differs from the
        locked one."""
        if self._read is None:
            found = find_lock(self.folder)
            if found is None:
                raise OpError("PG116", f"{address.place} is not resolved: no {LOCK} in the spec's folder or above", help=_UNLOCKED)
            self._read = found, read_lock(found)
        path, lock = self._read
        pin = lock.git.get(address.place)
        wanted = pin.texts.get(address.file) if pin is not None else None
        if pin is None or wanted is None:
            what = address.place if pin is None else address
            raise OpError("PG116", f"{what} is not resolved: it is not in {os.path.relpath(path)}", help=_UNLOCKED)
        return kept_text(path, address, pin.commit, wanted, most)


def kept_text(lock: Path, address: GitFile, commit: str, wanted: str, most: int) -> bytes:
    """Reads the text of a base beside a lock. Raises `OpError`: `PG117` if it is missing, or differs from the locked one."""
    kept = text_path(lock, address, commit)
    shown = os.path.relpath(kept)
    again = f"restore it with your version control, or run `pipegen lock --update={address.repository}` with this spec"
    try:
        data = read_regular(kept, most)
    except OSError:
        raise OpError("PG117", f"the text of {address} is missing: {shown}", help=(again, f"commit {TEXTS}/ along with {LOCK}")) from None
    if digest(data) != wanted:
        raise OpError("PG117", f"{shown} differs from the text of {address} in {LOCK}", help=again)
    return data
