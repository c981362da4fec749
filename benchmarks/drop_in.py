"""The command: `python -m benchmarks.drop_in FOLDER`. What `pipegen.compat` costs beside the pipeline that it stands on.

One generator and one flow from a folder. Its iterator, which gives NumPy arrays, and its `dataset` run beside the pipeline that
`pipegen.build` makes of the same spec; interleaved turns, compared within a turn. All images come from memory, since there decoding does
not hide what the iterator adds. The target is at least 0.9 of the pipeline's rate.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

import pipegen
from benchmarks.measure import ratio
from pipegen.compat import ImageDataGenerator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BATCH = 64
DIRECT = "pipegen.build"


def walks(folder: str) -> dict[str, Iterator[Any]]:
    """Batches without an end, of each of the three, with caches that are full."""
    generator = ImageDataGenerator(rotation_range=20, zoom_range=0.2, horizontal_flip=True, rescale=1 / 255)
    settings: dict[str, Any] = {"target_size": (224, 224), "batch_size": BATCH, "seed": 1}
    flow, other = generator.flow_from_directory(folder, **settings), generator.flow_from_directory(folder, **settings)
    direct = pipegen.build(flow.pipeline.spec)
    found = {DIRECT: _passes(direct.train), "flow.dataset": _passes(flow.dataset), "next(flow)": iter(other)}
    for walk in found.values():
        _rate(walk, direct.steps("train"))
    return found


def _passes(dataset: Any) -> Iterator[Any]:
    return itertools.chain.from_iterable(itertools.repeat(dataset))


def _rate(walk: Iterator[Any], batches: int) -> float:
    began = time.perf_counter()
    for _ in range(batches):
        next(walk)
    return batches * BATCH / (time.perf_counter() - began)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drop_in", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", help="photographs, one sub-folder of JPEGs per class (`python -m benchmarks.make_photos`)")
    parser.add_argument("--repeats", type=int, default=9, help="interleaved turns of each (default: 9)")
    parser.add_argument("--batches", type=int, default=40, help="batches in a turn (default: 40)")
    args = parser.parse_args(argv)
    found = walks(args.folder)
    rates: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(args.repeats):
        names = list(found) if turn % 2 == 0 else list(found)[::-1]
        for name in names:
            rates[name].append(_rate(found[name], args.batches))
    table = Table(title=f"images from memory, batches of {BATCH}, {args.repeats} turns of {args.batches} batches")
    for column in ("", "images/s", "of the pipeline's"):
        table.add_column(column, justify="left" if not column else "right")
    for name, measured in rates.items():
        table.add_row(name, f"{statistics.median(measured):,.0f}", f"{ratio(measured, rates[DIRECT]):.2f}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
