"""Says which rows of a global batch each host takes, and what stands in the way of that."""

from __future__ import annotations


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
