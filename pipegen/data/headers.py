"""Values that the headers of files tell, such as sizes of images and lengths of arrays: read once, in threads, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pipegen.kept import INDEXES, keep_or_warn, kept_folder, open_kept
from pipegen.memory import threads
from pipegen.spec.models import Runtime

Array = np.ndarray[Any, Any]
WORTH_KEEPING = 1000  # files from which on the results of reading their headers are kept
AT_ONCE = 256  # files between two reports of progress


def kept_or_read(
    runtime: Runtime,
    name: str,
    files: Sequence[str],
    wanted: Array,
    nothing: Array,
    read: Callable[[str], tuple[int, ...] | None],
    what: str,
    progress: Callable[[int], None] | None,
) -> tuple[Array, bool]:
    """Reads whole numbers from the headers of files, and tests if they were kept by an earlier run.

    Args:
        runtime: Says where they are kept.
        name: Names them where they are kept.
        files: The paths of all files.
        wanted: The files to read, by their number.
        nothing: Zeros `(files, numbers)`, which stand for files that are not wanted, or whose header cannot be read.
        read: Reads the numbers of one file, not all of which are 0; `None` if its header cannot be read.
        what: Names them in messages.
        progress: Called with the number of files so far.
    """
    folder = kept_folder(runtime.cache, INDEXES) if len(wanted) >= WORTH_KEEPING else None
    held = read_kept(folder, name, nothing.dtype, nothing.size)
    if held is not None and held.reshape(nothing.shape)[wanted].any(1).all():
        return held.reshape(nothing.shape), True
    found, unread = nothing.copy(), (0,) * nothing.shape[1]
    with ThreadPoolExecutor(threads(runtime)) as pool:
        for begin in range(0, len(wanted), AT_ONCE):
            some = wanted[begin : begin + AT_ONCE]
            found[some] = [own or unread for own in pool.map(read, (files[i] for i in some.tolist()))]
            if progress is not None:
                progress(begin + len(some))
    keep_or_warn(folder, f"{name}.{INDEXES}", [found.tobytes()], what)
    return found, False


def read_kept(folder: Path | None, name: str, dtype: np.dtype[Any], length: int) -> Array | None:
    """Reads a kept array; `None` if it is missing or has another length."""
    with suppress(OSError, ValueError):
        if folder is not None:
            with open_kept(folder, f"{name}.{INDEXES}") as stream:
                held: Array = np.frombuffer(stream.read(), dtype)
            return held if len(held) == length else None
    return None
