"""The command: `python -m benchmarks FOLDER`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

from rich.console import Console

from benchmarks import measure, report
from benchmarks.recipes import RECIPES
from benchmarks.systems import SYSTEMS, Photos


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure pipegen and its peers side by side in one run.")
    parser.add_argument("folder", type=Path, help="photographs, one sub-folder of JPEGs per class (`python -m benchmarks.make_photos`)")
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES), help="what to measure (default: all)")
    names = [s.name for s in SYSTEMS]
    listed = ", ".join(names)
    parser.add_argument("--systems", nargs="+", choices=names, metavar="SYSTEM", help=f"whom to measure (default: all of {listed})")
    parser.add_argument("--repeats", type=int, default=3, help="interleaved turns of each system (default: 3)")
    parser.add_argument("--images", type=int, default=1920, help="images in a turn (default: 1920)")
    parser.add_argument("--seconds", type=float, default=15.0, help="a turn ends after so many seconds in any case (default: 15)")
    parser.add_argument("--size", type=int, default=224, help="side of the output, in pixels (default: 224)")
    parser.add_argument("--batch", type=int, default=64, help="batch size (default: 64)")
    parser.add_argument("--out", type=Path, help="write everything that was measured to this JSON file")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the tables, write the JSON. Returns the exit code."""
    args = _arguments(argv)
    console = Console()
    try:
        photos = Photos.find(args.folder)
    except FileNotFoundError as error:
        console.print(f"[red]error[/red]: {error}")
        return 2
    _prepare()
    recipes = [RECIPES[name](size=args.size, batch=args.batch) for name in args.recipes]
    systems = [s for s in SYSTEMS if args.systems is None or s.name in args.systems]
    effort = measure.Effort(args.repeats, args.images, args.seconds)
    with console.status("starting") as status:
        rows = measure.run(
            recipes, systems, photos, effort,
            lambda row, repeat: status.update(f"{repeat + 1}/{effort.repeats}  {row.recipe.name}  {row.system.name}"),
        )  # fmt: skip
    for recipe in recipes:
        console.print(report.table(recipe, rows))
    for line in filter(None, (report.verdict(recipe, rows) for recipe in recipes)):
        console.print(line, highlight=False)
    if args.out:
        args.out.write_text(json.dumps(report.to_json(rows, photos, effort), indent=2) + "\n", encoding="utf-8")
        console.print(f"Written to {args.out}.", highlight=False)
    return 0


def _prepare() -> None:
    """Import what every system imports, and keep tensors on the host: the input is measured, not the copy to a device."""
    import keras  # noqa: F401
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")


if __name__ == "__main__":
    sys.exit(main())
