"""The rows of a global batch that each host takes, and the sizes of shuffle windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.memory import ram_budget
from pipegen.ops.fields.notes import count as counted
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


def rows_of(size: int, index: int, count: int) -> tuple[int, int]:
    """Computes the rows of a batch of `size` that one host of `count` takes: the first, and one past the last."""
    return size * index // count, size * (index + 1) // count


def share_problem(spec: PipelineSpec, count: int) -> tuple[str, tuple[str, ...]] | None:
    """Describes why hosts cannot share a global batch of a spec, and the ways out; `None` if they can."""
    size = spec.batch.size
    if size < count:
        return f"a global batch of {size} has less than one example for each of {count} hosts", (f"use {count} or more",)
    if size % count and spec.runtime.shares != "uneven":
        each = " + ".join(str(b - a) for a, b in (rows_of(size, index, count) for index in range(min(count, 4))))
        own = f"`runtime: {{shares: uneven}}` shares it out as {each}{' + …' if count > 4 else ''}, for own loops that weigh examples alike"
        return f"a global batch of {size} does not divide among {count} hosts", (f"use a multiple of {count}", own)
    return None


def last_batch(spec: PipelineSpec, split: str, examples: int, hosts: int, locate: Locate) -> Iterator[Diagnostic]:
    """Checks that hosts can share the last batch of an epoch of a spec, or of the resolved one of a stage."""
    rest = examples % spec.batch.size
    if not _ends_short(spec, split) or not 0 < rest < hosts:
        yield from unequal_parts(spec, split, examples, hosts, "hosts", locate)
        return
    message = f"the last batch of split `{split}` has {counted(rest, 'example')}, fewer than the {hosts} hosts"
    help_ = write(f"batch: {{remainder: {{{split}: pad}}}}", "spec", "use {}, so that every host takes the same number of steps")
    yield make("PG412", message, locate(("batch",)), help=(help_,))


def unequal_parts(spec: PipelineSpec, split: str, examples: int, count: int, who: str, locate: Locate) -> Iterator[Diagnostic]:
    """Warns if hosts or replicas take parts of different sizes of a training batch.

    Hosts with `shares: uneven` are exempt: their loops weigh examples alike.
    """
    size, own = spec.batch.size, who == "hosts" and spec.runtime.shares == "uneven"
    if split != "train" or count < 2 or own:
        return
    rest = examples % size if _ends_short(spec, split) else 0
    if size % count:
        message, help_ = f"batches of {size} do not divide among {count} {who}", (f"use a multiple of {count}",)
    elif rest % count:
        drop = write("batch: {remainder: {train: drop}}", "spec", "use {}, which is the default")
        message, help_ = f"the last batch of split `{split}`, {counted(rest, 'example')}, does not divide among {count} {who}", (drop,)
    else:
        return
    weighed = "or weigh each host's gradients by its examples" if who == "hosts" else "or compile with `pipegen.WeightedMean(loss)`"
    yield make("PG667", f"{message}, and the mean of each counts the same", locate(("batch",)), help=(*help_, weighed))


def _ends_short(spec: PipelineSpec, split: str) -> bool:
    return spec.batch.remainder_for(split) == "keep" and (split != "train" or spec.epoch == "pass")


USUAL = 2**30  # bytes of a window of a global shuffle if records cannot be read one by one
HELD = 2  # windows in memory at a time: the current one, and the beginning of the next


def window_bytes(asked: int | None, manifest: Manifest, split: str) -> int:
    """The size of a window in bytes: the spec's, else the default, but at least one block."""
    return asked or max(USUAL, int(manifest.listing.reader(split).at_once * manifest.mean_bytes(split)))


def judge_windows(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> Iterator[Diagnostic]:
    """Warns if the shuffle windows of the training split do not fit in memory, or in the cache of remote files: blocks would be read, or
    fetched, again and again."""
    if "train" not in manifest.splits or spec.shuffle == "none":
        return
    asked, reader = spec.shuffle.window if spec.shuffle != "global" else None, manifest.listing.reader("train")
    if reader.at_once == 1 and not reader.fetches:
        return
    size = manifest.mean_bytes("train") * manifest.num_examples("train")
    window, budget = window_bytes(asked, manifest, "train"), ram_budget(spec.runtime)
    if reader.at_once != 1 and HELD * window > budget and size > budget:
        message = (
            f"records are read in whole {reader.called}, and {HELD} windows of {format_bytes(window)} are in memory at a time; the RAM "
            f"budget is {format_bytes(budget)}, so {reader.called} would be read again and again"
        )
        help_ = write(f"shuffle: {{window: {_rounded(budget // HELD)}}}", "spec", "make windows smaller: {}; or raise `ram_budget`")
        yield make("PG445", message, locate(("shuffle",)), help=help_)
    reach, limit = min(int(size), asked or int(size)), spec.runtime.remote_cache.size
    if reader.fetches and reach > limit:
        message = (
            f"the order jumps about in {format_bytes(reach)} of remote files, but `remote_cache` keeps at most {format_bytes(limit)}, so "
            "most blocks are fetched again in each epoch"
        )
        smaller = write(f"shuffle: {{window: {_rounded(limit // HELD)}}}", "spec", "or shuffle in smaller windows: {}")
        advice = ("raise it if the disk has room: `runtime: {remote_cache: {size: …}}`", smaller)
        yield make("PG745", message, locate(("runtime", "remote_cache", "size")), help=advice)


def _rounded(num_bytes: int) -> str:
    """Formats a size for a spec, rounded down."""
    unit, name = next(((unit, name) for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")) if num_bytes >= 4 * unit), (1, "B"))
    return f"{max(1, num_bytes // unit)}{name}"
