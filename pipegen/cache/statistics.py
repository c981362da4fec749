"""Keeps what steps have learned from a training split as files, found again as long as what they came from is the same."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pipegen.cache.key import plain, tensorflow_version
from pipegen.cache.store import file_stamp
from pipegen.ops.arguments.learned import Statistics
from pipegen.ops.sources.strings import encode
from pipegen.regular import open_folder, open_owned
from pipegen.release import __version__
from pipegen.spec.models import DiskCache
from pipegen.spec.spec_hash import canonical

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec, Runtime

N = TypeVar("N", bound=Statistics)

FORMAT = 1
_FOLDER = "statistics"


def statistics_key(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> str:
    """32 hexadecimal digits that name what is learned from a training split.

    They cover the source, the data's fingerprint, which of its records are trained on and when their files were last changed,
    every step before, and the versions of pipegen and TensorFlow. What comes later leaves them alone: other steps, the batch, the
    augmentation.

    Args:
        spec: The spec.
        plan: The plan that measures, as built.
        manifest: The data.
    """
    keys = hashlib.sha256()
    columns = [manifest.files("train"), *manifest.beside("train").values()] if manifest.listing.rows is None else []
    texts, order = [manifest.keys("train"), *columns], manifest.keys("train").order()
    for key, *files in zip(*(texts if order is None else [column.take(order) for column in texts]), strict=True):
        # Names and sizes alone would take another data set of the same names for this one.
        keys.update(encode(key) + b"".join(b"\x00%d" % file_stamp(file) for file in files) + b"\n")
    covered = {
        "pipegen": __version__,
        "tensorflow": tensorflow_version(),
        "source": canonical(spec)["source"],
        "data": manifest.fingerprint,
        "train": keys.hexdigest(),
        "stages": [plain(stage) for stage in plan.stages()],
        "draws": [spec.seed, [ref.id for ref in plan.index.draws]] if plan.index.draws else None,
    }
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def statistics_folder(runtime: Runtime) -> Path | None:
    """Returns the folder that keeps them: that of the spec's caches, else the user's cache folder, if there is one."""
    if isinstance(runtime.cache, DiskCache):
        return Path(runtime.cache.disk) / _FOLDER
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        caches = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return caches / "pipegen" / _FOLDER


def statistics_file(folder: Path, key: str, kind: type[Statistics]) -> Path:
    """The file of a key."""
    return folder / f"{key}.{kind.suffix}"


def read_statistics(folder: Path, key: str, kind: type[N]) -> N | None:
    """Reads what is kept under a key; `None` where that is nothing, or nothing whole.

    Args:
        folder: The folder.
        key: From `statistics_key`.
        kind: What was learned.
    """
    try:
        about, numbers = kind.from_bytes(_read(folder, statistics_file(folder, key, kind).name))
        return numbers if about["pipegen_statistics"] == FORMAT and about["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_statistics(folder: Path, key: str, numbers: Statistics, spec: str, steps: str) -> None:
    """Keep what was learned. The file is there whole or not at all, whatever happens meanwhile and whoever else writes it.

    Args:
        folder: The folder.
        key: From `statistics_key`.
        numbers: What was learned.
        spec: The name of the spec, for people.
        steps: The steps that it was learned behind, for people.

    Raises:
        OSError: When it cannot be written.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    content = numbers.to_bytes({"pipegen_statistics": FORMAT, "key": key, "spec": spec, "steps": steps, "created": now})
    folder.mkdir(parents=True, exist_ok=True)
    os.close(open_folder(folder, _owners(folder)))
    number, fresh = tempfile.mkstemp(prefix=f".{key}.", dir=folder)
    try:
        with open(number, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, statistics_file(folder, key, type(numbers)))
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def _read(folder: Path, name: str) -> bytes:
    """Reads a file of this user or of the folder's owner; no link is followed."""
    within = open_folder(folder, _owners(folder))
    try:
        owners = {*_owners(folder), os.fstat(within).st_uid}
        with os.fdopen(open_owned(name, os.O_RDONLY, within=within, owners=owners), "rb") as stream:
            return stream.read()
    finally:
        os.close(within)


def _owners(folder: Path) -> set[int]:
    """Returns who may have laid a link in the folder's place: the owner of the folder above, and the system."""
    return {0, os.stat(folder.parent).st_uid}
