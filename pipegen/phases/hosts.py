"""Finds which share of each global batch is this process's, and whether all shares come out even."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.spec.models import ShardIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec, Runtime


def resolve_shard(runtime: Runtime, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """This host's share and how many there are: what the spec says, else TensorFlow's cluster (`TF_CONFIG`)."""
    if isinstance(runtime.shard, ShardIndex):
        return runtime.shard.index, runtime.shard.count
    if runtime.shard == "none" or not environment.get("TF_CONFIG"):
        return 0, 1
    try:
        config: dict[str, Any] = json.loads(environment["TF_CONFIG"])
        cluster: dict[str, list[str]] = config.get("cluster", {})
        task: dict[str, Any] = config.get("task", {})
        chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
        count = len(chiefs) + len(workers)
        if count < 2 or task.get("type") not in ("chief", "worker"):
            return 0, 1
        offset = len(chiefs) if task["type"] == "worker" else 0
        return offset + int(task.get("index", 0)), count
    except (ValueError, TypeError, AttributeError) as error:
        help_ = ("set it as TensorFlow's multi-worker guide says", "`runtime: {shard: none}`, or an index and a count, does without it")
        raise SpecError([make("PG412", f"the variable TF_CONFIG does not describe a cluster: {error}", help=help_)]) from None


def uneven(spec: PipelineSpec, shard: tuple[int, int]) -> str | None:
    """Says why a share cannot be had of every global batch; `None` where it can."""
    index, count = shard
    if not 0 <= index < count:
        return f"there is no share {index} of {count}: shares count from 0"
    if spec.batch.size % count:
        return f"a global batch of {spec.batch.size} does not divide among {count} hosts"
    return None


def check_last_batch(spec: PipelineSpec, split: str, examples: int, hosts: int, locate: Locate) -> None:
    """Checks that every host gets something of the last batch, or it would take fewer steps than the others.

    Raises:
        SpecError: `PG412` where it is too small.
    """
    rest = examples % spec.batch.size
    if hosts > 1 and spec.batch.remainder_for(split) == "keep" and 0 < rest < hosts:
        message = f"the last batch of split `{split}` has {rest} examples, fewer than the {hosts} hosts"
        lines = f"batch: {{remainder: {{{split}: pad}}}}"
        help_ = (write(lines, "spec", "use {}, so that every host takes the same number of steps"),)
        raise SpecError([make("PG412", message, locate(("batch",)), help=help_)])
