"""Measures sources of records beside the same images as files; `python -m benchmarks.sources` writes the table.

Photographs are written once to each format. Then every source reads and decodes them in turn, several times over, in one process: a
source's rate is compared with that of the files in the same turn, so that a machine that slows down favours none. The index is timed on
20,000 records of 2 kB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import ratio
from benchmarks.written_sources import SOURCES, output_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.written_sources import Photo, SourceOf

BATCH = 32
SIZE = 224
INDEXED = 20_000
"""Records of which the index is timed: few cost next to nothing, whatever one of them takes."""
SMALL = 2000
"""Bytes that each of them has."""


def photographs(folder: Path, most: int) -> list[Photo]:
    """Reads the JPEG files of class folders, at most so many."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    found = [(path, label) for label, one in enumerate(classes) for path in sorted(one.glob("*.jp*g"))][:most]
    return [(path.read_bytes(), label) for path, label in found]


class Measured:
    """One source as it is measured.

    Attributes:
        rates: Images for each second of CPU, of each turn.
        first: Seconds of CPU from the spec to the first batch.
        index: Microseconds of CPU for a record, to list and index the data.
    """

    def __init__(self, source: SourceOf, folder: Path, photos: Sequence[Photo]) -> None:
        import pipegen

        (folder / "photos").mkdir(parents=True)
        source.write(folder / "photos", photos)
        self.index = self._indexed(source, folder, photos)
        reads = source.spec(folder / "photos")
        output = {"dtype": "uint8", **output_of(reads)}
        spec = {"pipegen": 1, "source": reads, "transforms": [{"resize": {"size": SIZE}}], "output": output}
        own = {"batch": {"size": BATCH}, "runtime": {"cache": "none"}}
        start = time.process_time()
        pipe = pipegen.build(spec | own, allow_write=[folder])
        self.batches = pipe.dataset("train")
        next(iter(self.batches))
        self.first = time.process_time() - start
        self.rates: list[float] = []

    def _indexed(self, source: SourceOf, folder: Path, photos: Sequence[Photo]) -> float:
        from pipegen.ops.registry import sources

        own = folder / "photos"
        if not source.decodes:
            own, content = folder / "small", os.urandom(SMALL)
            own.mkdir()
            photos = [(content, i % 1000) for i in range(INDEXED)]
            source.write(own, photos)
        ((op, arguments),) = source.spec(own).items()
        took = []
        for _ in range(3):  # the first one imports what it needs
            start = time.process_time()
            sources()[op].model_validate(arguments).list(own)
            took.append(time.process_time() - start)
        if own != folder / "photos":
            shutil.rmtree(own)
        return min(took) / len(photos) * 1e6

    def turn(self) -> None:
        """Reads an epoch."""
        start, images = time.process_time(), 0
        for x, _ in self.batches:
            images += len(x)
        self.rates.append(images / (time.process_time() - start))


def table(photos: Sequence[Photo], folder: Path, repeats: int, names: Sequence[str]) -> Iterator[str]:
    """Yields the lines of the table."""
    measured: dict[str, Measured] = {}
    for name in names:
        if SOURCES[name].library and find_spec(SOURCES[name].library) is None:
            yield f"{name}: left out, since {SOURCES[name].library} is not installed"
            continue
        measured[name] = Measured(SOURCES[name], folder / name.replace(", ", "-"), photos)
    for _ in range(repeats):
        for one in measured.values():
            one.turn()
    size = statistics.mean(len(content) for content, _ in photos)
    yield f"{len(photos):,} JPEG files of {size / 1000:.0f} kB on average, decoded and resized to {SIZE}; medians of {repeats} turns"
    yield ""
    yield "| source | images for a second of CPU | beside files | first batch, s of CPU | index, µs of CPU a record |"
    yield "|---|--:|--:|--:|--:|"
    for name, one in measured.items():
        beside = ratio(one.rates, measured["files"].rates)
        yield f"| {name} | {statistics.median(one.rates):,.0f} | {beside:.2f} | {one.first:.1f} | {one.index:.1f} |"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition(";")[0])  # type: ignore[union-attr]
    parser.add_argument("photos", type=Path, help="a folder with a folder of JPEG files for each class")
    parser.add_argument("--most", type=int, default=2000, help="images that are taken")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[*SOURCES], choices=[*SOURCES], metavar="SOURCE")
    given = parser.parse_args()
    os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
    with tempfile.TemporaryDirectory() as folder:
        names = ["files", *(name for name in given.only if name != "files")]
        for line in table(photographs(given.photos, given.most), Path(folder), given.repeats, names):
            print(line, flush=True)


if __name__ == "__main__":
    main()
