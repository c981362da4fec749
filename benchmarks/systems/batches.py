"""What several systems do to the batches that they hand over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def whole(batches: Iterator[tuple[Any, Any]], size: int) -> Iterator[tuple[Any, Any]]:
    """Leave out the smaller batch that ends each epoch, as the other systems do."""
    for x, y in batches:
        if len(x) == size:
            yield x, y
