"""Says which rows of a global batch each host takes, what stands in the way of that, and where a short last batch weighs too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


def rows_of(size: int, index: int, count: int) -> tuple[int, int]:
    """Returns the rows of a batch of `size` that one host of `count` takes: the first, and one past the last."""
    return size * index // count, size * (index + 1) // count


def share_problem(size: int, count: int, *, uneven: bool) -> tuple[str, tuple[str, ...]] | None:
    """Says why a global batch cannot be shared out, and what to do; `None` where it can.

    Args:
        size: Examples of the batch.
        count: Hosts.
        uneven: Whether some hosts may take more examples than others.
    """
    if size < count:
        return f"a global batch of {size} has less than one example for each of {count} hosts", (f"use {count} or more",)
    if size % count and not uneven:
        each = " + ".join(str(b - a) for a, b in (rows_of(size, index, count) for index in range(min(count, 4))))
        own = f"`runtime: {{shares: uneven}}` shares it out as {each}{' + …' if count > 4 else ''}, for own loops that weigh examples alike"
        return f"a global batch of {size} does not divide among {count} hosts", (f"use a multiple of {count}", own)
    return None


def last_batch(spec: PipelineSpec, split: str, examples: int, hosts: int, locate: Locate) -> Iterator[Diagnostic]:
    """Yields what is wrong with the last batch of an epoch of so many examples, which hosts share.

    Args:
        spec: The spec; of a stage, its own.
        split: The split.
        examples: Examples in an epoch.
        hosts: How many hosts there are.
        locate: Finds the place of a key.
    """
    rest = examples % spec.batch.size
    if not _ends_short(spec, split) or not 0 < rest < hosts:
        yield from unequal_parts(spec, split, examples, hosts, "hosts", locate)
        return
    message = f"the last batch of split `{split}` has {_count(rest)}, fewer than the {hosts} hosts"
    help_ = write(f"batch: {{remainder: {{{split}: pad}}}}", "spec", "use {}, so that every host takes the same number of steps")
    yield make("PG412", message, locate(("batch",)), help=(help_,))


def unequal_parts(spec: PipelineSpec, split: str, examples: int, count: int, who: str, locate: Locate) -> Iterator[Diagnostic]:
    """Yields a warning where the parts of a training batch that so many hosts or replicas take are of different sizes.

    Where hosts may have uneven shares, their loops weigh examples alike.
    """
    size, own = spec.batch.size, who == "hosts" and spec.runtime.shares == "uneven"
    if split != "train" or count < 2 or own:
        return
    rest = examples % size if _ends_short(spec, split) else 0
    if size % count:
        message, help_ = f"batches of {size} do not divide among {count} {who}", (f"use a multiple of {count}",)
    elif rest % count:
        drop = write("batch: {remainder: {train: drop}}", "spec", "use {}, which is the default")
        message, help_ = f"the last batch of split `{split}`, {_count(rest)}, does not divide among {count} {who}", (drop,)
    else:
        return
    weighed = "or weigh each host's gradients by its examples" if who == "hosts" else "or compile with `pipegen.WeightedMean(loss)`"
    yield make("PG667", f"{message}, and the mean of each counts the same", locate(("batch",)), help=(*help_, weighed))


def _ends_short(spec: PipelineSpec, split: str) -> bool:
    return spec.batch.remainder_for(split) == "keep" and (split != "train" or spec.epoch == "pass")


def _count(examples: int) -> str:
    return f"{examples} example{'' if examples == 1 else 's'}"
