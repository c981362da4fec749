"""The share of each global batch that this process takes, found from its launcher, and checks that shares come out even."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pipegen.data.shares import share_problem
from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import count as counted
from pipegen.spec.models import PipelineSpec, Runtime, ShardIndex

if TYPE_CHECKING:
    from pipegen.physical.extent import Extent, Position
    from pipegen.spec.locate import Locate


ALONE = ("`runtime: {shard: none}` gives this process whole batches", "`runtime: {shard: {index: I, count: N}}` sets its share")


@dataclass(frozen=True, slots=True)
class Share:
    """One process' share of each global batch, counted from 0; `origin` is the setting or launcher that says so, or ""."""

    index: int = 0
    count: int = 1
    origin: str = ""

    @property
    def pair(self) -> tuple[int, int]:
        """The index and the count."""
        return self.index, self.count

    def __str__(self) -> str:
        part = f"share {self.index} of {self.count}" if self.count > 1 else "whole batches"
        return f"{part}, as {self.origin}"


@dataclass(frozen=True, slots=True)
class Launcher:
    """A program or library that starts processes, or joins them; its name has the variables that reveal it.

    Of launchers that launch each other, the one of the lower level is nearer to this process. `ask` reads the process's number and their
    count from the environment; `None` if it did not launch this process. It raises `ValueError` for malformed variables.
    """

    name: str
    level: int
    ask: Callable[[Mapping[str, str]], tuple[int, int] | None]


def _variables(rank: str, size: str) -> Callable[[Mapping[str, str]], tuple[int, int] | None]:
    """Makes an `ask` that reads two variables, which mean nothing unless both are set."""

    def ask(environment: Mapping[str, str]) -> tuple[int, int] | None:
        if not (environment.get(rank) and environment.get(size)):
            return None
        values = {}
        for name in (rank, size):
            try:
                values[name] = int(environment[name])
            except ValueError:
                raise ValueError(f"{name} is `{environment[name]}`, not a number") from None
        return values[rank], values[size]

    return ask


def _jax(_: Mapping[str, str]) -> tuple[int, int] | None:
    """Asks JAX, if the program has imported it and joined its processes."""
    distributed = getattr(sys.modules.get("jax"), "distributed", None)
    joined = getattr(distributed, "is_initialized", None)  # since JAX 0.4.36
    if joined is None or not joined():
        return None
    jax = sys.modules["jax"]
    return (jax.process_index(), jax.process_count()) if jax.process_count() > 1 else None


def _tf_config(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Reads TensorFlow's cluster: its chief comes before its workers, and other tasks take no batches."""
    if not environment.get("TF_CONFIG"):
        return None
    try:
        config: dict[str, Any] = json.loads(environment["TF_CONFIG"])
        cluster: dict[str, list[str]] = config.get("cluster", {})
        task: dict[str, Any] = config.get("task", {})
        chiefs, workers = len(cluster.get("chief", [])), len(cluster.get("worker", []))
        if chiefs + workers == 0 or task.get("type") not in ("chief", "worker"):
            return None
        return (chiefs if task["type"] == "worker" else 0) + int(task.get("index", 0)), chiefs + workers
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"the variable TF_CONFIG does not describe a cluster: {error}") from None


LAUNCHERS = (
    Launcher("JAX", 0, _jax),
    Launcher("TensorFlow's cluster (TF_CONFIG)", 1, _tf_config),
    Launcher("Horovod (HOROVOD_RANK, HOROVOD_SIZE)", 1, _variables("HOROVOD_RANK", "HOROVOD_SIZE")),
    Launcher("torchrun (RANK, WORLD_SIZE)", 1, _variables("RANK", "WORLD_SIZE")),
    Launcher("Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)", 2, _variables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")),
    # A script run by `sbatch` has SLURM_PROCID and SLURM_NTASKS, too, but only `srun` sets the number of tasks of its step.
    Launcher("SLURM (SLURM_PROCID, SLURM_STEP_NUM_TASKS)", 3, _variables("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")),
)
"""The known launchers, the nearest to a process first."""


def resolve_share(runtime: Runtime, environment: Mapping[str, str] = os.environ) -> Share:
    """Determines this host's share from the spec, else from the nearest launcher of the process. Raises `PG412` if the launcher's
    variables make no sense, or two equally near launchers disagree."""
    if isinstance(runtime.shard, ShardIndex):
        return Share(runtime.shard.index, runtime.shard.count, "`runtime.shard` says")
    if runtime.shard == "none":
        return Share()
    first: tuple[Launcher, tuple[int, int]] | None = None
    for launcher in LAUNCHERS:
        if first is not None and launcher.level > first[0].level:
            break
        try:
            pair = launcher.ask(environment)
        except ValueError as error:
            raise SpecError([make("PG412", str(error), help=("set it as its launcher does", *ALONE))]) from None
        if pair is None:
            continue
        said = f"{launcher.name} says that this is process {pair[0]} of {pair[1]}"
        if not 0 <= pair[0] < pair[1]:
            raise SpecError([make("PG412", f"{said}, and processes count from 0", help=ALONE)])
        if first is None:
            first, told = (launcher, pair), said
        elif first[1] != pair:
            message = f"{told}, and {launcher.name} that it is {pair[0]} of {pair[1]}"
            raise SpecError([make("PG412", message, help=ALONE)])
    return Share() if first is None else Share(*first[1], f"{first[0].name} says")


def share_line(runtime: Runtime, environment: Mapping[str, str] = os.environ) -> str:
    """Describes the share of this process if a launcher determines it; else ""."""
    if runtime.shard != "auto":
        return ""
    share = resolve_share(runtime, environment)
    whole = "; for independent runs, set `runtime: {shard: none}`" if share.count > 1 else ""
    return f"this process takes {share}{whole}" if share.origin else ""


def check_share(spec: PipelineSpec, count: int, locate: Locate) -> None:
    """Checks that a number of hosts can share every global batch; raises `PG412` if they cannot."""
    problem = share_problem(spec, count)
    if problem is not None:
        raise SpecError([make("PG412", problem[0], locate(("batch", "size")), help=problem[1])])


def check_given_share(spec: PipelineSpec, shard: tuple[int, int]) -> None:
    """Checks a share of every global batch that code asks for. Raises `ValueError` if it does not exist, or hosts cannot share batches
    so."""
    index, count = shard
    if not 0 <= index < count:
        raise ValueError(f"share {index} of {count} is out of range: shares count from 0")
    problem = share_problem(spec, count)
    if problem is not None:
        raise ValueError(f"{problem[0]}: {', or '.join(problem[1])}")


def check_rest(split: str, extent: Extent, at: Position, locate: Locate) -> None:
    """Checks that every host gets a share of the last batch, if an epoch begun with another batch size is resumed. Raises `SpecError`:
    `PG412`, with a batch size or a number of hosts that works."""
    hosts, left = extent.shard[1], extent.num_examples - extent.slot(at)
    rest = left % extent.batch
    if not extent.ends_short or not at.origin or not 0 < rest < hosts:
        return
    message = (
        f"the rest of epoch {at.epoch} of split `{split}`, {counted(left, 'example')}, ends in a batch of {counted(rest, 'example')}, "
        f"fewer than the {hosts} hosts"
    )
    near = sorted(range(hosts, 4 * extent.batch + 1, hosts), key=lambda size: abs(size - extent.batch))
    size = next((size for size in near if left % size == 0 or left % size >= hosts), None)
    ways = [f"with batches of {size}"] if size is not None else []
    ways.append(f"on {counted(rest, 'host')}")
    raise SpecError([make("PG412", message, locate(("batch",)), help=(f"go on {' or '.join(ways)} to the end of the epoch",))])
