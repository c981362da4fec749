"""Measures what many records in files cost: to index, to find again, to split and to begin with; `benchmarks.scale --source` runs it.

A few shards are written, and copied as often as it takes: what a record costs does not depend on what is in it, and the disk needs room.
Each source has a process of its own, in which a pipeline of a few records has run before.
"""

from __future__ import annotations

import gc
import io
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks.written_sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARDS = 1000
WRITTEN = 4
"""Shards that the writers of `written_sources` make."""
BATCH = 256
STATUS = Path("/proc/self/status")
TARGET_US, TARGET_BYTES = 5.0, 40
FORMS = ("tfrecord", "webdataset", "zip, stored", "mds", "array_record", "lmdb", "arrow", "sqlite")


def write(name: str, folder: Path, records: int, shards: int, size: int) -> None:
    """Writes shards of so many records together, whose pictures have at least `size` bytes."""
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (8, 8), (200, 100, 50)).save(stream, "PNG")
    picture = stream.getvalue() + bytes(max(0, size - len(stream.getvalue())))  # what stands behind the end of a PNG is passed over
    each = records // shards
    with tempfile.TemporaryDirectory(dir=folder.parent) as first:
        SOURCES[name].write(Path(first), [(picture, i % 10) for i in range(each * WRITTEN)])
        made = sorted(Path(first).iterdir())
        for number in range(shards):
            one = made[number % len(made)]
            shutil.copyfile(one, folder / f"{number:05}{one.suffix}")


def measure(name: str, records: int, shards: int = SHARDS, size: int = 0, folder: str | None = None) -> dict[str, Any]:
    """Returns what each phase takes with one source, in this process; all that is written lies in a folder that is removed."""
    with tempfile.TemporaryDirectory(dir=folder) as own, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": f"{own}/kept"}):
        few, many = Path(own, "few"), Path(own, "many")
        few.mkdir()
        many.mkdir()
        write(name, few, 8 * WRITTEN, WRITTEN, size)
        write(name, many, records, shards, size)
        _phases(name, few)
        return _phases(name, many)


def _phases(name: str, folder: Path) -> dict[str, Any]:
    import pipegen

    took: dict[str, float] = {}

    @contextmanager
    def timed(phase: str) -> Iterator[None]:
        start = time.process_time()
        yield
        took[phase] = time.process_time() - start

    spec = {
        "pipegen": 1,
        "source": SOURCES[name].spec(folder),
        "splits": {"parts": {"train": 0.9, "validation": 0.1}},
        "transforms": [{"resize": {"size": 8}}],
        "batch": {"size": BATCH if folder.name == "many" else 4},
        "runtime": {"cache": "none"},
    }
    gc.collect()
    before = memory()
    with timed("index"):
        pipe = pipegen.build(spec)
    with timed("build again"):
        pipe = pipegen.build(spec)
    with timed("first batch"):
        next(iter(pipe.dataset("train", epoch=3, step=pipe.steps("train") // 2)))
    gc.collect()
    after, records = memory(), pipe.num_examples("train") + pipe.num_examples("validation")
    kept = sum(file.stat().st_size for file in Path(os.environ["XDG_CACHE_HOME"]).rglob("*") if file.is_file())
    return {
        "source": name,
        "records": records,
        "shards": len(list(folder.iterdir())),
        "seconds": took,
        "index_us": (took["index"] - took["build again"]) / records * 1e6,
        "held": (after["RssAnon"] - before["RssAnon"]) / records,
        "mapped": (after["RssFile"] - before["RssFile"]) / records,
        "kept": kept / records,
        "peak": after["VmHWM"],
    }


def memory() -> dict[str, int]:
    """Returns what this process holds, in bytes: that no file has, that files have, and the most so far."""
    lines = (line.split() for line in STATUS.read_text(encoding="ascii").splitlines())
    return {words[0][:-1]: 1024 * int(words[1]) for words in lines if words[0] in ("RssAnon:", "RssFile:", "VmHWM:")}


def show(found: dict[str, Any]) -> str:
    """A few lines about one source, and whether the targets are met."""
    index, held = found["index_us"], found["held"]
    took = ", ".join(f"{phase} {seconds:.1f} s of CPU" for phase, seconds in found["seconds"].items())
    within = "within" if index <= TARGET_US and held <= TARGET_BYTES else "beyond"
    return "\n".join(
        [
            f"{found['source']}, {found['records']:,} records in {found['shards']:,} shards: {took}",
            f"  a record: index {index:.2f} µs, {held:.1f} bytes held, {found['mapped']:.1f} mapped, {found['kept']:.1f} kept on the disk; "
            f"{within} {TARGET_US:g} µs and {TARGET_BYTES} bytes",
            f"  peak {found['peak'] / 2**30:.2f} GiB with TensorFlow",
        ]
    )
