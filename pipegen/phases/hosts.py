"""Finds which share of each global batch is this process's, and whether all shares come out even."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.phases.launchers import Share, found_share
from pipegen.spec.models import ShardIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec, Runtime


def resolve_share(runtime: Runtime, environment: Mapping[str, str] = os.environ) -> Share:
    """Returns this host's share: what the spec says, else what the launcher of the process does.

    Raises:
        SpecError: `PG412` where launchers contradict themselves or each other.
    """
    if isinstance(runtime.shard, ShardIndex):
        return Share(runtime.shard.index, runtime.shard.count, "`runtime.shard` says")
    return Share() if runtime.shard == "none" else found_share(environment)


def share_line(runtime: Runtime, environment: Mapping[str, str] = os.environ) -> str:
    """Says which share of each batch this process takes, and why, where a launcher says so; else nothing."""
    if runtime.shard != "auto":
        return ""
    share = resolve_share(runtime, environment)
    whole = "; a sweep of runs that have nothing to do with each other sets `runtime: {shard: none}`" if share.count > 1 else ""
    return f"this process takes {share}{whole}" if share.origin else ""


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
