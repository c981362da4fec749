"""The command: `python -m benchmarks FOLDER`."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

from rich.console import Console

from benchmarks import measure, memory, report
from benchmarks.data import ARRAYS, SUFFIXES, Dataset, Photos
from benchmarks.recipes import RECIPES, Recipe
from benchmarks.systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Sequence


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure pipegen and its peers side by side in one run.")
    folder = "photographs, one sub-folder of JPEGs per class (`python -m benchmarks.make_photos`)"
    parser.add_argument("folder", type=Path, help=folder)
    parser.add_argument("--large", type=Path, help="JPEGs of 12 megapixels, alike (default: FOLDER-large, where there is one)")
    parser.add_argument("--png", type=Path, help="PNGs, alike (default: FOLDER-png, where there is one)")
    names = ", ".join(RECIPES)
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), metavar="RECIPE", help=f"what (default: all of {names})")
    names = ", ".join(s.name for s in SYSTEMS)
    parser.add_argument("--systems", nargs="+", choices=[s.name for s in SYSTEMS], metavar="SYSTEM", help=f"whom (default: all of {names})")
    effort = measure.Effort()
    parser.add_argument("--repeats", type=int, default=effort.repeats, help="interleaved turns of each system (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=effort.seconds, help="how long a turn is timed (default: %(default)s)")
    parser.add_argument("--images", type=int, help="a turn ends after so many images in any case (default: no bound)")
    parser.add_argument("--warm-up", type=float, default=effort.warm_up, help="seconds before a turn is timed (default: %(default)s)")
    parser.add_argument("--size", type=int, help="side of the output in pixels, but of arrays (default: the recipe's)")
    parser.add_argument("--batch", type=int, help="batch size (default: the recipe's)")
    parser.add_argument("--arrays", type=int, default=ARRAYS, help="images in memory (default: %(default)s)")
    memory_too = parser.add_mutually_exclusive_group()
    memory_too.add_argument("--no-memory", action="store_true", help="do not measure the peak memory")
    memory_too.add_argument("--memory-only", action="store_true", help="measure nothing else")
    parser.add_argument("--out", type=Path, help="write what was measured to this JSON file, after every recipe")
    parser.add_argument("--chart", type=Path, help="draw the rates to this PNG or SVG file; needs Matplotlib")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the tables, write the JSON and the chart. Returns the exit code."""
    args = _arguments(argv)
    console = Console()
    try:
        data = _data(args)
    except FileNotFoundError as error:
        console.print(f"[red]error[/red]: {error}")
        return 2
    measure.prepare()
    recipes = [_resized(RECIPES[name], args) for name in args.recipes or RECIPES]
    systems = [s for s in SYSTEMS if args.systems is None or s.name in args.systems]
    effort = measure.Effort(args.repeats, args.seconds, args.images, args.warm_up)
    results = report.results(data, effort)

    def done(group: Sequence[measure.Row]) -> None:
        records = report.records(group)
        report.add(results, records)
        console.print(report.table(records))
        report.write(args.out, results)

    with console.status("starting") as status:

        def tell(row: measure.Row, repeat: int) -> None:
            status.update(f"{repeat + 1}/{effort.repeats}  {row.recipe.name}  {row.system.name}")

        if not args.memory_only:
            measure.run(recipes, systems, data, effort, tell, done)
        watched = [s for s in systems if s.name in memory.MEASURED] if not args.no_memory else []
        for recipe in (r for r in recipes if watched and not r.cached):
            results["peak_memory"][recipe.name] = peaks = {}
            for system in watched:
                status.update(f"peak memory  {recipe.name}  {system.name}")
                peaks[system.name] = memory.peak(recipe, system, data)
                report.write(args.out, results)
    report.conclude(results, args.out, args.chart, console)
    return 0


def _data(args: argparse.Namespace) -> Dataset:
    """The folders: the one that is named, and those beside it that are there or are named.

    Raises:
        FileNotFoundError: If a named one holds no images.
    """
    folders = {"photos": Photos.find(args.folder)}
    for kind in ("large", "png"):
        named = getattr(args, kind)
        beside = args.folder.resolve().with_name(f"{args.folder.resolve().name}-{kind}")
        if named is not None or beside.is_dir():
            folders[kind] = Photos.find(named or beside, SUFFIXES[kind])
    return Dataset(folders, args.arrays)


def _resized(recipe: Recipe, args: argparse.Namespace) -> Recipe:
    """A recipe with the size and batch of the command line."""
    size = recipe.size if args.size is None or recipe.data == "arrays" else args.size
    return dataclasses.replace(recipe, size=size, batch=args.batch or recipe.batch)


if __name__ == "__main__":
    sys.exit(main())
