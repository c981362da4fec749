"""Keeps what steps have learned from a training split as files, found again as long as what they came from is the same."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeVar

from pipegen.cache.key import plain, tensorflow_version
from pipegen.cache.store import file_stamp
from pipegen.kept import keep, kept_folder, open_kept
from pipegen.ops.arguments.learned import Statistics
from pipegen.ops.sources.strings import encode
from pipegen.release import __version__
from pipegen.spec.spec_hash import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipegen.data.manifest import Manifest
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec, Runtime

N = TypeVar("N", bound=Statistics)

FORMAT = 1


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
    for part in _trained_on(manifest):
        keys.update(part)
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


def _trained_on(manifest: Manifest) -> Iterator[bytes]:
    """Yields the keys of the records and when their files were changed: names and sizes alone would take another data set for this one."""
    held, listing = manifest.in_shards("train"), manifest.listing
    if held is not None:
        texts = [listing.keys.take(held.selected.shards), held.files.take(held.selected.shards)]
        yield b"" if held.selected.bitmap is None else held.selected.bitmap.bits.tobytes()
    else:
        texts = [manifest.keys("train"), *([manifest.files("train"), *manifest.beside("train").values()] if not listing.numbered else [])]
    order = texts[0].order()
    for key, *files in zip(*(texts if order is None else [column.take(order) for column in texts]), strict=True):
        yield encode(key) + b"".join(b"\x00%d" % file_stamp(file) for file in files) + b"\n"


def statistics_folder(runtime: Runtime) -> Path | None:
    """Returns the folder that keeps them: that of the spec's caches, else the user's cache folder, if there is one."""
    return kept_folder(runtime, "statistics")


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
        with open_kept(folder, statistics_file(folder, key, kind).name) as stream:
            about, numbers = kind.from_bytes(stream.read())
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
    keep(folder, statistics_file(folder, key, type(numbers)).name, [content])
