"""Identifies a cache on disk by everything that decides the bytes at the cache point, and nothing that comes after it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from pipegen.cache.store import About, Column
from pipegen.errors import InternalError
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import Stage, StepRef
from pipegen.plan.nodes import Cache, Element
from pipegen.spec.spec_hash import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

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
"""Folders of pipegen whose code decides about pixels."""
_PLACE = frozenset({"when", "probability"})
"""Arguments that say where a step acts, not what it does: a cache holds steps that act on every example of its split."""


def upstream(plan: Plan) -> tuple[Stage, ...]:
    """The stages whose result a plan caches, in order; none without a cache."""
    found: list[Stage] = []
    for node in plan.nodes:
        if isinstance(node, Cache):
            return (*plan.part_stages(), *found)
        if isinstance(node, Element):
            found.extend(node.stages)
    return ()


def cache_key(spec: PipelineSpec, plan: Plan, fingerprint: str) -> str:
    """32 hexadecimal digits that name a cache.

    They cover the source, the stages before the cache point, the type there, the data's fingerprint, and all that makes
    pixels (see `makers`). Splits with the same stages share one cache, and so
    do specs that differ in what comes later: other steps, the batch, the seed, the splits themselves.
    """
    node = next(n for n in plan.nodes if isinstance(n, Cache))
    return key_of(
        spec, fingerprint, upstream(plan), type=[[name, t.dtype, t.shape] for name, t in node.out.items() if not kind_of(t).indexed]
    )


def key_of(spec: PipelineSpec, fingerprint: str, stages: Iterable[Stage], **more: object) -> str:
    """32 hexadecimal digits that stand for what stages make of data, and for `more`, as it is made here."""
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
    """Describes the cache of a plan: a row for each record of the data, whichever split it is in."""
    node = next(n for n in plan.nodes if isinstance(n, Cache))
    columns = []
    for name, t in node.out.items():
        if not kind_of(t).indexed or not manifest.lists(name):
            if t.num_bytes is None:
                raise InternalError(f"a cache was placed where `{name}` is {t}")
            columns.append(Column(name, t.dtype, tuple(d or 0 for d in t.shape), t.num_bytes))
    key = cache_key(spec, plan, manifest.fingerprint)
    return About(key, spec.name or "", steps_in_words(plan), manifest.total, tuple(columns))


def steps_in_words(plan: Plan) -> str:
    """The steps that a cache stands behind: `decode → resize`."""
    return " → ".join(dict.fromkeys(ref.step.op for stage in upstream(plan) for ref in stage.uses()))


@cache
def makers() -> dict[str, str]:
    """Returns what makes pixels beside TensorFlow: the libraries that decode, by their versions, and pipegen's code, by a digest, since a
    decoder can change within one version."""
    folder = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(file for name in _CODE for file in (folder / name).rglob("*.py")):
        digest.update(b"%s\0%s\0" % (file.relative_to(folder).as_posix().encode(), file.read_bytes()))
    return {"pipegen": digest.hexdigest()} | {name: _version(name) for name in _DECODERS}


def tensorflow_version() -> str:
    """The installed version, found without importing it; empty where no distribution of a known name is installed."""
    return next(filter(None, map(_version, _DISTRIBUTIONS)), "")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def plain(value: Any) -> Any:
    """A stage as plain values: which step it is and its arguments, less its place in the spec and among the draws."""
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
