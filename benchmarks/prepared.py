"""The command: `python -m benchmarks.prepared FOLDER`. What a spec gives from a prepared store, beside the originals, in one run.

It prepares photographs with a shorter side of 256 pixels as `raw` and as `jpeg`, in a folder that is kept with `--stores`, and measures the
ImageNet recipe from each, beside FFCV on files of its own where that is installed; then the geometric recipe from images that were prepared
behind its resize, beside the cached one. Turns are interleaved, and ratios are medians over the repeats. Beside other programs the
processor time of an image, of all threads, says more than rates do, and its least of all turns most.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

from benchmarks.data import Photos
from benchmarks.measure import ratio, rested

SIDE = 256
WARM_UP = 12
"""Batches before a turn is timed: they come out of what was read ahead."""
STEPS = 400
_IMAGENET: list[Any] = [{"random_resized_crop": {"size": 224}}, "random_flip", {"normalize": {"preset": "torch"}}]
_TURNS = {"rotation": {"degrees": 20}, "translation": {"x": 0.1, "y": 0.1}, "shear": {"degrees": 10}, "zoom": {"factor": [0.8, 1.2]}}
GEOMETRIC: list[Any] = [
    {"resize": {"size": 224}},
    *({f"random_{name}": arguments} for name, arguments in _TURNS.items()),
    "random_flip",
    {"random_brightness": {"factor": 0.2}},
]
GROUPS: dict[str, tuple[str, ...]] = {
    "ImageNet": ("originals", "jpeg", "raw", "FFCV jpeg", "FFCV raw"),
    "geometric": ("cached", "originals", "raw"),
}
"""The systems of each recipe; ratios are given against the first."""
FFCV_SIDE = 341
"""What FFCV shrinks longer sides to: images of 4 to 3 then have a shorter side of 256."""
TARGETS = (
    ("ImageNet", "jpeg", "originals", 2.1),
    ("ImageNet", "raw", "originals", 4.5),
    ("ImageNet", "raw", "FFCV raw", 1.0),
    ("ImageNet", "jpeg", "FFCV jpeg", 1.0),
    ("geometric", "raw", "cached", 1.0),
)
"""Of a recipe, a system, what it is compared to, and the least ratio."""


def spec(folder: Path, steps: list[Any]) -> dict[str, Any]:
    """A recipe on a folder of photographs."""
    return {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(folder.resolve())}},
        "transforms": steps,
        "batch": {"size": 64},
        "epoch": {"steps": STEPS},
    }


def pipelines(folder: Path, stores: Path, console: Console) -> dict[str, dict[str, Any]]:
    """The pipeline of each system by recipe, with the stores that it needs."""
    import pipegen

    imagenet, geometric = spec(folder, _IMAGENET), spec(folder, GEOMETRIC)
    found: dict[str, dict[str, Any]] = {"ImageNet": {"originals": imagenet}, "geometric": {"originals": geometric}}
    wanted = [("ImageNet", form, imagenet, {"format": form, "shorter_side": SIDE}) for form in ("raw", "jpeg")]
    wanted.append(("geometric", "raw", geometric, {"format": "raw"}))
    for recipe, form, sections, how in wanted:
        began = time.perf_counter()
        done = pipegen.prepare(sections, stores / f"{recipe}-{form}", **how)  # type: ignore[arg-type]
        took = time.perf_counter() - began
        there = "" if done.written else " (it was there)"
        console.print(f"{recipe}, {form}: {done.bytes / 1e6:,.0f} MB, prepared in {took:.0f} s{there}")
        found[recipe][form] = done.spec
    runtime = {"cache": "none"}
    built = {recipe: {name: pipegen.build(s, runtime=runtime).train for name, s in own.items()} for recipe, own in found.items()}
    built["geometric"]["cached"] = pipegen.build(geometric, runtime={"cache": "memory"}).train
    return built


def peers(folder: Path, stores: Path, console: Console) -> dict[str, Iterator[Any]]:
    """The batches of FFCV by system, from files that it writes into `stores`; none where it is not installed."""
    from benchmarks import steps
    from benchmarks.data import UnavailableError
    from benchmarks.recipes import RECIPES
    from benchmarks.systems import ffcv_loader

    imagenet = RECIPES["imagenet"]
    normalise = imagenet.find(steps.Normalise)
    assert normalise is not None
    found = {}
    try:
        for form in ("jpeg", "raw"):
            file = stores / f"ffcv-{form}.beton"
            ffcv_loader.write(Photos.find(folder), file, form, FFCV_SIDE)
            found[f"FFCV {form}"] = ffcv_loader.batches_of(file, imagenet.batch, imagenet.size, normalise)
    except UnavailableError as error:
        console.print(f"FFCV is left out: {error}")
    return found


@dataclass(frozen=True)
class Turn:
    """A turn of a system.

    Attributes:
        rate: Images per second.
        ms: Processor time of an image, in milliseconds, of all threads.
    """

    rate: float
    ms: float


def turns(batches: dict[str, Any], images: int, repeats: int, seconds: float) -> dict[str, list[Turn]]:
    """Measures each system, a turn after another.

    A turn is timed once what was read ahead before it is consumed, and the next one begins when nothing more is read ahead: so the images
    that are counted are those that were made meanwhile, and the processor's time is theirs.

    Args:
        batches: Of each system by its name; without an end, or datasets that can be iterated again.
        images: Taken from each before the first turn: all photographs once, so that caches are filled and the pages of stores mapped.
        repeats: Turns of each.
        seconds: How long a turn is timed.
    """
    endless = {
        name: data if isinstance(data, Iterator) else itertools.chain.from_iterable(itertools.repeat(data))
        for name, data in batches.items()
    }
    for data in endless.values():
        left = images
        while left > 0:
            left -= len(next(data)[1])
        rested()
    found: dict[str, list[Turn]] = {name: [] for name in batches}
    for repeat in range(repeats):
        names = [*batches]
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            for _ in range(WARM_UP):
                next(endless[name])
            found[name].append(_turn(endless[name], seconds))
            rested()
    return found


def _turn(data: Iterator[Any], seconds: float) -> Turn:
    """Takes batches for some seconds."""
    images, began, used = 0, time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - began) < seconds:
        images += len(next(data)[1])
    return Turn(images / elapsed, (time.process_time() - used) / images * 1e3)


def report(measured: dict[str, dict[str, list[Turn]]], console: Console) -> None:
    """Prints a table for each recipe, and a line for each target."""
    for recipe, found in measured.items():
        first = GROUPS[recipe][0]
        table = Table("", "images/s", "ms of processor", "the least", f"of {first}", title=recipe)
        for name, turned in found.items():
            rate, ms = (statistics.median(figures) for figures in zip(*((turn.rate, turn.ms) for turn in turned), strict=True))
            table.add_row(name, f"{rate:,.0f}", f"{ms:.3f}", f"{_least(turned):.3f}", f"{_ratio(found, name, first):.2f} ×")
        console.print(table)
    for recipe, name, other, least in TARGETS:
        found = measured[recipe]
        if other in found:
            reached, by_processor = _ratio(found, name, other), _least(found[other]) / _least(found[name])
            said = "reached" if reached >= least else "not reached"
            console.print(
                f"{recipe}: {name} is {reached:.2f} × {other}, at least {least:g} is wanted: {said} ({by_processor:.2f} × by processor)"
            )


def _ratio(found: dict[str, list[Turn]], name: str, other: str) -> float:
    return ratio([turn.rate for turn in found[name]], [turn.rate for turn in found[other]]) or 0.0


def _least(turned: list[Turn]) -> float:
    """The processor time of an image in the turn that other programs disturbed least."""
    return min(turn.ms for turn in turned)


def main(argv: list[str] | None = None) -> int:
    """Measure, and print a table for each recipe."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prepared", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("folder", type=Path, help="photographs, one sub-folder of JPEGs per class")
    parser.add_argument("--stores", type=Path, help="where the stores are kept (default: a temporary folder)")
    parser.add_argument("--repeats", type=int, default=5, help="interleaved turns of each system (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a turn is timed (default: %(default)s)")
    args = parser.parse_args(argv)
    console = Console()
    with tempfile.TemporaryDirectory() as own:
        stores = args.stores or Path(own)
        built = pipelines(args.folder, stores, console)
        built["ImageNet"] |= {name: batches for name, batches in peers(args.folder, stores, console).items()}
        measured, images = {}, len(Photos.find(args.folder).files)
        for recipe, names in GROUPS.items():
            measured[recipe] = turns({n: built[recipe][n] for n in names if n in built[recipe]}, images, args.repeats, args.seconds)
        report(measured, console)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
