"""Compares the speed of two checkouts of pipegen in one interleaved run.

    python -m benchmarks.compare OTHER FOLDER [--recipes geometric imagenet] [--turns 10]

Two processes build each recipe, one with pipegen of this checkout and one with pipegen of OTHER, and then take turns over the same images
while the other rests. Printed is the processor time of an image here divided by that of OTHER: of the least turn of each, which other
programs on the machine disturb least, and the median over pairs of turns, with the quartiles. Both use the recipes of this checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WARM_UP = 3
"""Turns of each process that do not count: buffers fill, XLA compiles, AUTOTUNE settles."""


class Side:
    """A process with one checkout's pipegen and one recipe."""

    def __init__(self, checkout: Path, folder: Path, recipe: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--serve", str(checkout), str(folder), "--recipes", recipe]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"TF_CPP_MIN_LOG_LEVEL": "3"}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def turn(self, batches: int) -> float:
        """Takes batches, and waits until what was read ahead is there again; returns the processor time of an image in seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended, which the answer says
            print(batches, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the comparison ended with {self._process.wait()}")
        return float(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()


def compare(other: Path, folder: Path, recipe: str, turns: int, seconds: float) -> dict[str, Any]:
    """Measures one recipe on both sides."""
    sides = [Side(ROOT, folder, recipe), Side(other, folder, recipe)]
    try:
        batch = _recipes()[recipe].batch
        batches = max(2, 256 // batch)
        for _ in range(WARM_UP):
            spent = [side.turn(batches) for side in sides]
        batches = max(2, round(seconds / (spent[0] * batch)))
        pairs = []
        for number in range(turns):
            order = (0, 1) if number % 2 else (1, 0)
            found = {at: sides[at].turn(batches) for at in order}
            pairs.append((found[0], found[1]))
    finally:
        for side in sides:
            side.close()
    low, middle, high = statistics.quantiles([here / there for here, there in pairs], n=4)
    here_ms, other_ms = (round(1000 * statistics.median(pair[at] for pair in pairs), 4) for at in (0, 1))
    about = {"recipe": recipe, "images": batches * batch, "turns": turns, "here_ms": here_ms, "other_ms": other_ms}
    least = min(here for here, _ in pairs) / min(there for _, there in pairs)
    return about | {"least": round(least, 4), "median": round(middle, 4), "quartiles": [round(low, 4), round(high, 4)]}


def _recipes() -> Any:
    from benchmarks.recipes import RECIPES

    return RECIPES


def serve(checkout: Path, folder: Path, recipe: str) -> None:
    """Answers how long batches took, for each line with a number of them."""
    sys.path[:] = [str(checkout), *(path for path in sys.path if Path(path or ".").resolve() not in (ROOT, ROOT / "benchmarks"))]
    import pipegen

    assert Path(pipegen.__file__).is_relative_to(checkout), pipegen.__file__
    sys.path.insert(0, str(ROOT))
    from benchmarks.data import SUFFIXES, Dataset, Photos
    from benchmarks.measure import rested
    from benchmarks.systems.pipegen_system import PipegenSystem

    folders = {"photos": Photos.find(folder)}
    for kind in ("large", "png"):
        beside = folder.resolve().with_name(f"{folder.resolve().name}-{kind}")
        if beside.is_dir():
            folders[kind] = Photos.find(beside, SUFFIXES[kind])
    batches = PipegenSystem().batches(_recipes()[recipe], Dataset(folders))
    for line in sys.stdin:
        rested()
        spent, images = time.process_time(), 0
        for _ in range(int(line)):
            images += len(next(batches)[0])
        print((rested() - spent) / images, flush=True)


def main() -> int:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("folder", type=Path, help="photographs, as for `python -m benchmarks`")
    parser.add_argument("--recipes", nargs="+", metavar="RECIPE", help="default: all")
    parser.add_argument("--turns", type=int, default=10, help="of each side (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="processor time of a turn (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="write what was measured to this JSON file")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.other.resolve(), args.folder, args.recipes[0])
        return 0
    if not (args.other / "pipegen" / "__init__.py").is_file():
        parser.error(f"{args.other} holds no `pipegen/`: name another checkout, such as one that `git worktree add` makes")
    if unknown := sorted({*(args.recipes or ())} - {*_recipes()}):
        parser.error(f"unknown recipe {', '.join(unknown)}: there are {', '.join(_recipes())}")
    found = []
    print(f"{'recipe':14}{'images a turn':>14}{'least':>9}{'median':>9}{'quartiles':>16}{'ms here':>10}{'ms other':>10}")
    for recipe in args.recipes or _recipes():
        found.append(one := compare(args.other, args.folder, recipe, args.turns, args.seconds))
        between = "{:.3f}-{:.3f}".format(*one["quartiles"])
        times = f"{one['here_ms']:10.3f}{one['other_ms']:10.3f}"
        print(f"{recipe:14}{one['images']:14,}{one['least']:9.3f}{one['median']:9.3f}{between:>16}{times}", flush=True)
        if args.out is not None:
            args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
