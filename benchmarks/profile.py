"""The command: `python -m benchmarks.profile FOLDER --recipe geometric`. Where pipegen's own time goes.

The pipeline is cut after each of its parts, from the first to the last, and each cut is run: what a part costs is what
its cut takes more than the one before. It is processor time, of all threads, to which other programs add least, and
counted between two moments at which every buffer is full, so that starting and reading ahead are not in it.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

from benchmarks.data import SUFFIXES, Dataset, Photos
from benchmarks.recipes import RECIPES
from benchmarks.systems.pipegen_system import build
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Read
from pipegen.types import ElementType

if TYPE_CHECKING:
    from pipegen.backend.execute import Executor
    from pipegen.plan.nodes import Node
    from pipegen.plan.stages import Stage

WARM_UP = 2
"""Batches before anything is counted."""
QUIET_S = 0.03
"""Without work for so long, every buffer is full."""


@dataclass
class Part:
    """One part of a pipeline, and the cut that ends with it.

    Attributes:
        name: What it is.
        make: Makes the dataset that ends here.
        per_batch: Whether its elements are batches.
        iterator: Runs it, once it has been made.
        times: Milliseconds of processor time per image of the whole cut, one figure a turn.
    """

    name: str
    make: Callable[[], Any]
    per_batch: bool
    iterator: Any = None
    times: list[float] = field(default_factory=list)


class _Unfinished:
    """A crop that leaves its window as it was decoded, so that decoding and resizing can be told apart."""

    def __init__(self, step: Any) -> None:
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    def finish(self, window: Any) -> Any:
        """Nothing is done."""
        return window


def parts(pipe: Any) -> list[Part]:
    """The cuts of a pipeline's training split, from the first to the last."""
    executor: Executor = pipe._engine.executor("train")
    nodes = executor.plan.nodes
    cached = any(isinstance(node, Cache) for node in nodes)
    found: list[Part] = []
    batched = isinstance(nodes[1], Batch)
    for i, node in enumerate(nodes):
        before = nodes[:i]
        if isinstance(node, Element):
            if not cached:  # what a full cache stands for does not run
                found += [Part(name, _cut(executor, (*before, cut)), False) for name, cut in _inside(node)]
            continue
        if cached and isinstance(node, Read):
            continue
        batched = batched or isinstance(node, Batch)
        if isinstance(node, (Index, Read, Cache, Batch, Kernel, Emit)):
            found.append(Part(_name(node), _cut(executor, (*before, node)), batched))
    return [*found, Part("framework: epochs, prefetch", lambda: itertools.chain.from_iterable(itertools.repeat(pipe.train)), True)]


def _inside(node: Element) -> list[tuple[str, Element]]:
    """An element node cut after each of its stages; its types hold no more, since they are those of its end."""
    cuts = []
    for i, stage in enumerate(node.stages):
        if isinstance(stage, s.DecodeWindow):
            unfinished: Any = _Unfinished(stage.crop.step)
            alone = dataclasses.replace(stage, crop=dataclasses.replace(stage.crop, step=unfinished))
            cuts.append(("decode: the window", (*node.stages[:i], alone)))
            cuts.append(("resize: the window", node.stages[: i + 1]))
        else:
            cuts.append((f"{_verb(stage)}: {_steps([stage])}", node.stages[: i + 1]))
    return [(name, dataclasses.replace(node, stages=chosen, out=ElementType(()))) for name, chosen in cuts]


def _verb(stage: Stage) -> str:
    return "decode" if isinstance(stage, s.Decode) else "element"


def _steps(stages: list[Any]) -> str:
    """The ops of some stages, as the spec names them."""
    inner = [stage.stage if isinstance(stage, s.Branch) else stage for stage in stages]
    names = [ref.step.op for stage in inner for ref in s.refs(stage)] or [type(stage).__name__ for stage in inner]
    return ", ".join(dict.fromkeys(names))


def _name(node: Node) -> str:
    """What a node is, for people."""
    if isinstance(node, Kernel):
        return f"{'kernel' if node.compiled else 'batch'}: {_steps(list(node.stages))}"
    words = {Index: "framework: order and draws", Read: "read", Cache: "cache", Batch: "copy: batch", Emit: "framework: emit"}
    return words[type(node)]


def _cut(executor: Executor, nodes: tuple[Node, ...]) -> Callable[[], Any]:
    """The pipeline as far as these nodes."""

    def make() -> Any:
        import tensorflow as tf

        from pipegen.backend.walk import Run, plain_map

        run = Run(executor, name_damaged=False)
        ds = tf.data.Dataset.range(1_000_000).map(lambda epoch: (epoch, tf.zeros_like(epoch)))
        for node in nodes:
            ds = run.node(ds, node)
        if run.pending:
            ds = run.flush(ds)
        if run.together and not isinstance(nodes[-1], Emit):
            ds = plain_map(ds, run.whole_batch)
        return ds

    return make


def measure(found: list[Part], batch: int, batches: int, repeats: int, tell: Callable[[str], None]) -> None:
    """Time every cut, in turns."""
    for part in found:
        tell(f"tracing  {part.name}")
        ds = part.make()
        part.iterator = iter(ds if part.per_batch else ds.window(batch))  # a window copies nothing and is one element to Python
        _cpu(part.iterator, WARM_UP)
    for repeat in range(repeats):
        for part in found:
            tell(f"{repeat + 1}/{repeats}  {part.name}")
            part.times.append(1000 * _cpu(part.iterator, batches) / (batch * batches))


def _cpu(iterator: Iterator[Any], batches: int) -> float:
    """Seconds of processor time for so many batches of images."""
    began = _settle()
    for _ in range(batches):
        next(iterator)
    return _settle() - began


def _settle() -> float:
    """Wait for all threads to rest; the processor time then."""
    before, now = -1.0, time.process_time()
    while now - before > QUIET_S / 10:
        time.sleep(QUIET_S)
        before, now = now, time.process_time()
    return now


def rows(found: list[Part]) -> list[tuple[str, float, float]]:
    """Name, milliseconds per image and share of the whole, for each part."""
    whole = statistics.median(found[-1].times)
    cuts = [statistics.median(part.times) for part in found]
    return [(part.name, cut - before, (cut - before) / whole) for part, cut, before in zip(found, cuts, [0.0, *cuts], strict=False)]


def table(title: str, found: list[Part]) -> Table:
    """The parts as a table."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("part")
    shown.add_column("ms per image", justify="right")
    shown.add_column("share", justify="right")
    for name, cost, share in rows(found):
        shown.add_row(name, f"{cost:.3f}", f"{share:.0%}")
    shown.add_section()
    shown.add_row("whole", f"{statistics.median(found[-1].times):.3f}", "100%")
    return shown


def main(argv: list[str] | None = None) -> int:
    """Profile recipes and print the tables. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="the images that the recipe reads, one sub-folder per class; of any kind for arrays")
    parser.add_argument("--recipe", choices=list(RECIPES), default="geometric", help="which (default: geometric)")
    parser.add_argument("--batches", type=int, default=10, help="batches that are timed in a turn (default: 10)")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each cut (default: 5)")
    parser.add_argument("--size", type=int, help="side of the output in pixels, but of arrays (default: the recipe's)")
    parser.add_argument("--batch", type=int, help="batch size (default: the recipe's)")
    args = parser.parse_args(argv)
    recipe = RECIPES[args.recipe]
    size = recipe.size if args.size is None or recipe.data == "arrays" else args.size
    recipe = dataclasses.replace(recipe, size=size, batch=args.batch or recipe.batch)
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    console = Console(width=max(Console().width, 100))
    try:
        data = Dataset({} if recipe.data == "arrays" else {recipe.data: Photos.find(args.folder, SUFFIXES[recipe.data])})
    except FileNotFoundError as error:
        console.print(f"[red]error[/red]: {error}")
        return 2
    with console.status("building") as status:
        pipe = build(recipe, data)
        if recipe.cached:
            for _ in pipe.train:
                pass
        found = parts(pipe)
        measure(found, recipe.batch, args.batches, args.repeats, status.update)
    console.print(table(f"{recipe.name}: processor time, batches of {recipe.batch}", found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
