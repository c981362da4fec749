"""Keeps what steps have learned from a training split as files, found again as long as what they came from is the same."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeVar

from pipegen.cache.key import key_of
from pipegen.cache.store import file_stamp
from pipegen.kept import keep, open_kept
from pipegen.ops.arguments.learned import Statistics
from pipegen.ops.sources.listing.strings import encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipegen.data.manifest import Manifest
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec

N = TypeVar("N", bound=Statistics)

FORMAT = 1


def statistics_key(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> str:
    """32 hexadecimal digits that name what is learned from a training split.

    They cover the source, the data's fingerprint, which of its records are trained on and when their files were last changed,
    every step before, and the versions of pipegen and TensorFlow. What comes later leaves them alone: other steps, the batch, the
    augmentation. The plan is the one that measures, before any pass.
    """
    keys = hashlib.sha256()
    for part in _trained_on(manifest):
        keys.update(part)
    draws = [spec.seed, [ref.id for ref in plan.index.draws]] if plan.index.draws else None
    return key_of(spec, manifest.fingerprint, plan.stages(), train=keys.hexdigest(), draws=draws)


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


def statistics_file(folder: Path, key: str, kind: type[Statistics]) -> Path:
    """The file of a key."""
    return folder / f"{key}.{kind.suffix}"


def read_statistics(folder: Path, key: str, kind: type[N]) -> N | None:
    """Reads what is kept under a key; `None` where that is nothing, or nothing whole."""
    try:
        with open_kept(folder, statistics_file(folder, key, kind).name) as stream:
            about, numbers = kind.from_bytes(stream.read())
        return numbers if about["pipegen_statistics"] == FORMAT and about["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_statistics(folder: Path, key: str, numbers: Statistics, spec: str, steps: str) -> None:
    """Keep what was learned; the spec's name and the steps before are for people.

    Raises:
        OSError: When it cannot be written.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    content = numbers.to_bytes({"pipegen_statistics": FORMAT, "key": key, "spec": spec, "steps": steps, "created": now})
    keep(folder, statistics_file(folder, key, type(numbers)).name, [content])
