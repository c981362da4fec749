"""Finds which share of each global batch is this process's, and whether all shares come out even."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.data.shares import share_problem
from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.phases.launchers import Share, found_share
from pipegen.spec.models import ShardIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.physical.extent import Extent
    from pipegen.physical.position import Position
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


def check_share(spec: PipelineSpec, count: int, locate: Locate) -> None:
    """Checks that so many hosts can share every global batch.

    Raises:
        SpecError: `PG412` where they cannot.
    """
    problem = share_problem(spec.batch.size, count, uneven=spec.runtime.shares == "uneven")
    if problem is not None:
        raise SpecError([make("PG412", problem[0], locate(("batch", "size")), help=problem[1])])


def check_given_share(spec: PipelineSpec, shard: tuple[int, int]) -> None:
    """Checks that a share that code asks for can be had of every global batch.

    Raises:
        ValueError: Where it cannot.
    """
    index, count = shard
    if not 0 <= index < count:
        raise ValueError(f"there is no share {index} of {count}: shares count from 0")
    problem = share_problem(spec.batch.size, count, uneven=spec.runtime.shares == "uneven")
    if problem is not None:
        raise ValueError(f"{problem[0]}: {', or '.join(problem[1])}")


def check_rest(split: str, extent: Extent, at: Position, locate: Locate) -> None:
    """Checks that every host gets something of the last batch of what is left of an epoch that was begun with batches of another size.

    Raises:
        SpecError: `PG412`, with a size that works, or as many hosts.
    """
    hosts, left = extent.shard[1], extent.num_examples - extent.slot(at)
    rest = left % extent.batch
    if not extent.ends_short or not at.origin or not 0 < rest < hosts:
        return
    message = (
        f"what is left of epoch {at.epoch} of split `{split}`, {_examples(left)}, ends in a batch of {_examples(rest)}, fewer than the "
        f"{hosts} hosts"
    )
    near = sorted(range(hosts, 4 * extent.batch + 1, hosts), key=lambda size: abs(size - extent.batch))
    size = next((size for size in near if left % size == 0 or left % size >= hosts), None)
    ways = [f"with batches of {size}"] if size is not None else []
    ways.append(f"on {rest} host{'s' if rest > 1 else ''}")
    raise SpecError([make("PG412", message, locate(("batch",)), help=(f"go on {' or '.join(ways)} to the end of the epoch",))])


def _examples(count: int) -> str:
    return f"{count} example{'' if count == 1 else 's'}"
