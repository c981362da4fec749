"""Shows a person at a terminal what nobody else needs to see."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def is_terminal(stream: TextIO) -> bool:
    """Returns whether a person looks at a stream."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while something long runs; nothing unless that is a terminal.

    Args:
        title: What runs.
        total: How many there are to do, where that is known.

    Yields:
        To be called with how many are done.
    """
    if not is_terminal(sys.stderr):
        yield lambda _done: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = [bars.TextColumn("{task.description}"), bars.MofNCompleteColumn()]
    columns[1:1] = [bars.BarColumn()] if total else [bars.SpinnerColumn()]
    columns += [bars.TimeRemainingColumn()] if total else []
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
