"""Measures what a billion records in ten thousand files cost: to build on, to split, to order, to resume; `benchmarks.scale` runs it.

The files are made up as they are read, so that what is measured is the index alone.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.made_up import registered

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = 10_000
BATCH = 256
STEPS = 200
"""Steps that are timed, after as many."""
_BY_FILE = {"parts": {"train": "train", "validation": "validation"}, "method": "folder"}
_BY_HASH = {"parts": {"train": 0.9, "validation": 0.1}, "method": "hash"}
WAYS: dict[str, dict[str, Any]] = {
    "global, by file": {"splits": _BY_FILE},
    "windows, by file": {"splits": _BY_FILE, "shuffle": {"window": "100MiB"}},
    "global, by hash": {"splits": _BY_HASH},
    "windows, by hash": {"splits": _BY_HASH, "shuffle": {"window": "100MiB"}},
}


def measure(records: int, files: int = FILES) -> Iterator[str]:
    """Yields a line for each way to order and split so many records; what is kept on the disk lies in a folder of its own."""
    folder = Path(tempfile.mkdtemp())
    try:
        with registered():
            for way, sections in WAYS.items():
                yield f"{way}, {records:,} records in {files:,} files: {_of(sections, records, files, folder)}"
    finally:
        shutil.rmtree(folder)


def _of(sections: dict[str, Any], records: int, files: int, folder: Path) -> str:
    import pipegen

    took: dict[str, float] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        took[name] = time.process_time() - start

    spec = {"pipegen": 1, "source": {"made_up": {"files": files, "each": records // files}}, "batch": {"size": BATCH}}
    runtime = {"runtime": {"cache": {"disk": str(folder)}}}
    with timed("build"):
        pipe = pipegen.build(spec | runtime | sections)
    with timed("first batch, in the middle of epoch 3"):
        batches = iter(pipe.dataset("train", epoch=3, step=pipe.steps("train") // 2))
        next(batches)
    for _ in range(STEPS):
        next(batches)
    with timed("step"):
        for _ in range(STEPS):
            next(batches)
    took["step"] /= STEPS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return ", ".join(f"{name} {1000 * seconds:,.1f} ms CPU" for name, seconds in took.items()) + f", peak {peak:.2f} GiB with TensorFlow"
