"""The command: `python -m benchmarks.startup FOLDER`. How long a training script takes to its first batch.

Each turn is a fresh process that makes its dataset and waits for one batch (`benchmarks.first_batch`), with empty caches;
pipegen and Keras' dataset with preprocessing layers take turns. What counts is processor time, user and system, of all threads:
other programs on the machine do not change it much. With `--warm`, pipegen has a third turn, in which TensorFlow's persistent
compilation cache holds what XLA has compiled before; pipegen does not turn that cache on by itself.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.data import Photos
from benchmarks.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.recipes import Recipe

TARGET = 0.95
"""What pipegen may take for each second of processor time that Keras takes."""

OURS, AFTER, THEIRS, WARM = "pipegen", "pipegen after Keras", "Keras", "pipegen, warm"


@dataclass(frozen=True)
class Turn:
    """What one process took.

    Attributes:
        cpu: Seconds of processor time, user and system.
        wall: Seconds on the clock.
    """

    cpu: float
    wall: float


@dataclass
class Row:
    """The turns of each system on one recipe."""

    recipe: Recipe
    turns: dict[str, list[Turn]] = field(default_factory=dict)

    def cpu(self, system: str) -> float:
        """The median processor time of a system, in seconds."""
        return statistics.median(turn.cpu for turn in self.turns[system])

    def wall(self, system: str) -> float:
        """The median time on the clock, in seconds."""
        return statistics.median(turn.wall for turn in self.turns[system])

    def ratio(self, system: str = OURS) -> float:
        """Pipegen's processor time by that of Keras."""
        return self.cpu(system) / self.cpu(THEIRS)


def take(system: str, recipe: Recipe, folder: Path, environment: Mapping[str, str]) -> Turn:
    """Run one process to its first batch.

    Raises:
        RuntimeError: If it fails, or hands over a batch of another shape.
    """
    command = [sys.executable, "-m", "benchmarks.first_batch", system, recipe.name, str(folder)]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=Path(__file__).resolve().parents[1], env=dict(environment), stdout=subprocess.PIPE, stderr=errors
        )
        assert process.stdout is not None
        printed = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        wall = time.perf_counter() - began
        if process.returncode or tuple(map(int, printed.split())) != recipe.shape:
            errors.seek(0)
            raise RuntimeError(
                f"{system} on {recipe.name}: {printed.strip() or 'no batch'}\n{errors.read().decode(errors='replace')[-3000:]}"
            )
    return Turn(usage.ru_utime + usage.ru_stime, wall)


def environments(cache: str) -> dict[str, dict[str, str]]:
    """The environment of each system's processes; the warm one's programs are kept in the folder `cache`."""
    kept = ("PYTHONDONTWRITEBYTECODE", "TF_XLA_FLAGS")
    plain = {name: value for name, value in os.environ.items() if name not in kept} | {"KERAS_BACKEND": "tensorflow"}
    warm = plain | {"TF_XLA_FLAGS": f"--tf_xla_persistent_cache_directory={cache}"}
    return {OURS: plain, AFTER: plain, THEIRS: plain, WARM: warm}


def measure(
    recipes: Sequence[Recipe],
    folder: Path,
    repeats: int,
    *,
    warm: bool,
    run: Callable[[str, Recipe, Path, Mapping[str, str]], Turn] = take,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Take interleaved turns. A first turn of each, which is not counted, leaves Python's byte code and the warm cache."""
    rows = [Row(recipe) for recipe in recipes]
    with tempfile.TemporaryDirectory(prefix="pipegen-startup-") as cache:
        given = environments(cache)
        systems = [OURS, AFTER, THEIRS, *[WARM] * warm]
        for row in rows:
            for repeat in range(-1, repeats):
                for system in systems if repeat % 2 == 0 else systems[::-1]:
                    tell(f"{row.recipe.name}  {repeat + 1}/{repeats}  {system}")
                    turn = run(system.partition(",")[0], row.recipe, folder, given[system])
                    if repeat >= 0:
                        row.turns.setdefault(system, []).append(turn)
    return rows


def table(rows: Sequence[Row]) -> Table:
    """Seconds of processor time by recipe and system, the ratio that counts, and time on the clock."""
    found = Table(title="from the start of a process to its first batch: medians in seconds", title_justify="left")
    found.add_column("recipe")
    found.add_column("system")
    for name in ("processor time", f"of {THEIRS}", "clock"):
        found.add_column(name, justify="right")
    for row in rows:
        for system in row.turns:
            ratio, style = row.ratio(system), "red" if row.ratio(system) > TARGET else "green"
            shown = "" if system == THEIRS else f"[{style}]{ratio:.2f}[/{style}]"
            found.add_row(row.recipe.name, system, f"{row.cpu(system):.2f}", shown, f"{row.wall(system):.1f}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the table. Returns 1 where a ratio is above the target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description="Time processes to their first batch.")
    parser.add_argument("folder", type=Path, help="photographs, one sub-folder of JPEGs per class; 300 are enough")
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=["geometric", "imagenet", "arrays"], metavar="RECIPE")
    parser.add_argument("--repeats", type=int, default=5, help="interleaved turns of each system (default: %(default)s)")
    parser.add_argument("--warm", action="store_true", help="also with a warm compilation cache")
    args = parser.parse_args(argv)
    console = Console()
    try:
        Photos.find(args.folder)
    except FileNotFoundError as error:
        console.print(f"[red]error[/red]: {error}")
        return 2
    recipes = [RECIPES[name] for name in args.recipes]
    with console.status("starting") as status:
        rows = measure(recipes, args.folder.resolve(), args.repeats, warm=args.warm, tell=status.update)
    console.print(table(rows))
    return int(any(row.ratio() > TARGET for row in rows))


if __name__ == "__main__":
    sys.exit(main())
