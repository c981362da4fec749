"""The command: `python -m benchmarks.prepared FOLDER`. What a spec gives from a prepared store, beside the originals, in one run.

It prepares photographs with a shorter side of 256 pixels as `raw` and as `jpeg`, in a folder that is kept with `--stores`, and measures the
ImageNet recipe from each; then the geometric recipe from images that were prepared behind its resize, beside the cached one. Turns are
interleaved, and ratios are medians over the repeats.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

from benchmarks.measure import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDE = 256
STEPS = 400
_IMAGENET: list[Any] = [{"random_resized_crop": {"size": 224}}, "random_flip", {"normalize": {"preset": "torch"}}]
_TURNS = {"rotation": {"degrees": 20}, "translation": {"x": 0.1, "y": 0.1}, "shear": {"degrees": 10}, "zoom": {"factor": [0.8, 1.2]}}
_GEOMETRIC: list[Any] = [
    {"resize": {"size": 224}},
    *({f"random_{name}": arguments} for name, arguments in _TURNS.items()),
    "random_flip",
    {"random_brightness": {"factor": 0.2}},
]
GROUPS: dict[str, tuple[str, ...]] = {"ImageNet": ("originals", "jpeg", "raw"), "geometric": ("cached", "originals", "raw")}
"""The systems of each recipe; ratios are given against the first."""


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

    imagenet, geometric = spec(folder, _IMAGENET), spec(folder, _GEOMETRIC)
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


def turns(batches: dict[str, Any], repeats: int, seconds: float) -> dict[str, list[float]]:
    """Images per second of each system, a turn after another."""
    endless: dict[str, Iterator[Any]] = {name: itertools.chain.from_iterable(itertools.repeat(data)) for name, data in batches.items()}
    for name, data in endless.items():
        for _ in range(64 if name == "cached" else 8):  # a cache is filled by what is seen
            next(data)
    rates: dict[str, list[float]] = {name: [] for name in batches}
    for repeat in range(repeats):
        names = [*batches]
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            for _ in range(3):
                next(endless[name])
            images, began = 0, time.perf_counter()
            while (elapsed := time.perf_counter() - began) < seconds:
                images += len(next(endless[name])[1])
            rates[name].append(images / elapsed)
    return rates


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
        built = pipelines(args.folder, args.stores or Path(own), console)
        for recipe, names in GROUPS.items():
            rates = turns({name: built[recipe][name] for name in names}, args.repeats, args.seconds)
            table = Table("", "images/s", f"of {names[0]}", title=recipe)
            for name in names:
                table.add_row(name, f"{statistics.median(rates[name]):,.0f}", f"{ratio(rates[name], rates[names[0]]):.2f} ×")
            console.print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
