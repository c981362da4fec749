"""Keys of caches and statistics: hashes of all that decides the bytes at the cache point, and of nothing after it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from pipegen.cache.store import About, Column, file_stamp
from pipegen.errors import InternalError
from pipegen.kept import keep, open_kept
from pipegen.ops.arguments.learned import Statistics
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.listing.strings import encode
from pipegen.ops.stage import Stage, StepRef
from pipegen.plan.nodes import Cache, Element
from pipegen.spec.spec_hash import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipegen.data.manifest import Manifest
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec


_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos", "tf-nightly")
_DECODERS = (
    "pillow", "pillow-heif", "pillow-avif-plugin", "pillow-jxl-plugin", "tifffile", "imagecodecs", "pydicom", "pylibjpeg", "nibabel",
    "rasterio",
)  # fmt: skip
"""Distributions that decode images, or files of arrays."""
_CODE = ("ops", "backend")
"""Folders of pipegen whose code computes pixels."""
_PLACE = frozenset({"when", "probability"})
"""Arguments that choose the examples of a step: the steps before a cache act on every example of its split."""


def upstream(plan: Plan) -> tuple[Stage, ...]:
    """The stages before a plan's cache, in order; none without a cache."""
    found: list[Stage] = []
    for node in plan.nodes:
        if isinstance(node, Cache):
            return (*plan.part_stages(), *found)
        if isinstance(node, Element):
            found.extend(node.stages)
    return ()


def cache_key(spec: PipelineSpec, plan: Plan, fingerprint: str) -> str:
    """Hashes what decides the contents of a cache: 32 hexadecimal digits.

    They cover the source, the stages before the cache point, the type there, the data's fingerprint, and the code that computes
    pixels (see `makers`). Splits with the same stages share one cache, and so do specs that differ only in what comes later: other
    steps, the batch, the seed, the splits themselves.
    """
    node = next(n for n in plan.nodes if isinstance(n, Cache))
    types = [[name, t.dtype, t.shape] for name, t in node.out.items() if not kind_of(t).indexed]
    return key_of(spec, fingerprint, upstream(plan), type=types)


def key_of(spec: PipelineSpec, fingerprint: str, stages: Iterable[Stage], **more: object) -> str:
    """Hashes the data, stages, `more`, and the code that computes pixels on this machine: 32 hexadecimal digits."""
    covered = {
        "makers": {**makers(), "tensorflow": tensorflow_version()},
        "source": canonical(spec)["source"],
        "data": fingerprint,
        "stages": [plain(stage) for stage in stages],
        **more,
    }
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def describe_cache(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> About:
    """Describes the cache of a plan, which has a row for each record of the data, in all splits."""
    node = next(n for n in plan.nodes if isinstance(n, Cache))
    columns = []
    for name, t in node.out.items():
        if not kind_of(t).indexed or not manifest.lists(name):
            if t.num_bytes is None:
                raise InternalError(f"a cache at a point where `{name}` is {t}")
            columns.append(Column(name, t.dtype, tuple(d or 0 for d in t.shape), t.num_bytes))
    key = cache_key(spec, plan, manifest.fingerprint)
    return About(key, spec.name or "", steps_in_words(plan), manifest.total, tuple(columns))


def steps_in_words(plan: Plan) -> str:
    """Lists the steps before a cache: `decode → resize`."""
    return " → ".join(dict.fromkeys(ref.step.op for stage in upstream(plan) for ref in stage.uses()))


@cache
def makers() -> dict[str, str]:
    """The code that computes pixels beside TensorFlow: versions of decoding libraries, and a digest of pipegen's code."""
    folder = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(file for name in _CODE for file in (folder / name).rglob("*.py")):
        digest.update(b"%s\0%s\0" % (file.relative_to(folder).as_posix().encode(), file.read_bytes()))
    return {"pipegen": digest.hexdigest()} | {name: _version(name) for name in _DECODERS}


def tensorflow_version() -> str:
    """The installed version of TensorFlow, found without importing it; "" if no known distribution is installed."""
    return next(filter(None, map(_version, _DISTRIBUTIONS)), "")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def plain(value: Any) -> Any:
    """Converts a stage to plain values: its steps and their arguments, without their place in the spec and among the draws."""
    if isinstance(value, StepRef):
        return [value.step.op, {k: v for k, v in value.step.meaning().items() if k not in _PLACE}]
    if is_dataclass(value):
        name = value.name if isinstance(value, Stage) else type(value).__name__
        return [name, {f.name: plain(getattr(value, f.name)) for f in fields(value)}]
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


N = TypeVar("N", bound=Statistics)

FORMAT = 1


def statistics_key(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> str:
    """Hashes what decides the statistics of a training split: 32 hexadecimal digits.

    They cover the source, the data's fingerprint, the training records and the times of their files, every step before, and the versions
    of pipegen and TensorFlow. Later steps, the batch and the augmentation do not matter. The plan is the one that measures, before any
    pass.
    """
    keys = hashlib.sha256()
    for part in _trained_on(manifest):
        keys.update(part)
    draws = [spec.seed, [ref.id for ref in plan.index.draws]] if plan.index.draws else None
    return key_of(spec, manifest.fingerprint, plan.stages(), train=keys.hexdigest(), draws=draws)


def _trained_on(manifest: Manifest) -> Iterator[bytes]:
    """Yields the keys of the training records and the times of their files: with names and sizes alone, two data sets can look alike."""
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
    """The path of the statistics of a key."""
    return folder / f"{key}.{kind.suffix}"


def read_statistics(folder: Path, key: str, kind: type[N]) -> N | None:
    """Reads the statistics of a key; `None` if they are missing or damaged."""
    try:
        with open_kept(folder, statistics_file(folder, key, kind).name) as stream:
            about, numbers = kind.from_bytes(stream.read())
        return numbers if about["pipegen_statistics"] == FORMAT and about["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_statistics(folder: Path, key: str, numbers: Statistics, spec: str, steps: str) -> None:
    """Writes the statistics of a key, with the spec's name and the steps before for human readers.

    Raises:
        OSError: If they cannot be written.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    content = numbers.to_bytes({"pipegen_statistics": FORMAT, "key": key, "spec": spec, "steps": steps, "created": now})
    keep(folder, statistics_file(folder, key, type(numbers)).name, [content])
