"""Files that pipegen keeps for the next run: in the folder of a spec's caches, or else in the user's cache folder."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pipegen.regular import open_folder, open_owned
from pipegen.spec.models import DiskCache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.spec.models import Runtime

SPLITS = "splits"
"""The folder of the split assignments that take long to count."""
SPLITS_SUFFIX = ".splits"


def kept_folder(runtime: Runtime, name: str) -> Path | None:
    """Returns a folder of this name in that of the spec's caches, else in the user's cache folder, if there is one."""
    if isinstance(runtime.cache, DiskCache):
        return Path(runtime.cache.disk) / name
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        caches = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return caches / "pipegen" / name


def open_kept(folder: Path, name: str) -> IO[bytes]:
    """Opens a file of this user or of the folder's owner; no link is followed.

    Raises:
        OSError: When it cannot be opened, or someone else has laid something in its place.
    """
    within = open_folder(folder, _owners(folder))
    try:
        owners = {*_owners(folder), os.fstat(within).st_uid}
        return os.fdopen(open_owned(name, os.O_RDONLY, within=within, owners=owners), "rb")
    finally:
        os.close(within)


def keep(folder: Path, name: str, content: Iterable[bytes | memoryview]) -> None:
    """Writes a file, which is there whole or not at all, whatever happens meanwhile and whoever else writes it.

    Raises:
        OSError: When it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.close(open_folder(folder, _owners(folder)))
    number, fresh = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(number, "wb") as stream:
            stream.writelines(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, folder / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def _owners(folder: Path) -> set[int]:
    """Returns who may have laid a link in the folder's place: the owner of the folder above, and the system."""
    return {0, os.stat(folder.parent).st_uid}
