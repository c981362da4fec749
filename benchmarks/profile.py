"""The command: `python -m benchmarks.profile FOLDER --recipe geometric`. Where pipegen's own time goes.

The pipeline is cut after each of its parts, from the first to the last, and each cut is run: what a part costs is what
its cut takes more than the one before. It is processor time, of all threads, to which other programs add least, and
counted between two moments at which every buffer is full, so that starting and reading ahead are not in it.

Python takes a batch at a time from every cut. One that ends among single examples leaves a pixel of each image, in the very
map that made it, and batches that: so whatever comes before the batch runs as it always does, and what Python costs for
each element, or another map would, is in no part.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import itertools
import os
import resource
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

from benchmarks.data import SUFFIXES, Dataset, Photos
from benchmarks.measure import rested
from benchmarks.recipes import RECIPES
from benchmarks.systems.base import cores
from benchmarks.systems.pipegen_system import build
from pipegen.ops.families.decoder import Decode, DecodeWindow
from pipegen.physical import nodes as p
from pipegen.physical.decide import last_combining
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Read
from pipegen.types import ElementType

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor
    from pipegen.ops.stage import Stage
    from pipegen.plan.nodes import Node

WARM_UP = 2
"""Batches of a turn before anything is counted."""
IN_USE = cores() + 6
"""The same from the first kernel on: as many as may be on their way, so that those counted find the memory that these have left."""


class Use(NamedTuple):
    """What an image needs of the machine.

    Attributes:
        ms: Milliseconds of processor time, of all threads.
        system_ms: Those of them that the kernel of the operating system takes, most of them for fresh pages of memory.
        faults: Pages of memory that were touched for the first time.
    """

    ms: float
    system_ms: float
    faults: float

    def less(self, other: Use) -> Use:
        """What is more than another's."""
        return Use(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass
class Part:
    """One part of a pipeline, and the cut that ends with it.

    Attributes:
        name: What it is.
        make: Makes the dataset that ends here, of batches.
        warm_up: Batches of a turn before anything is counted.
        iterator: Runs it, once it has been made.
        turns: What an image needs in the whole cut, one figure a turn.
    """

    name: str
    make: Callable[[], Any]
    warm_up: int = WARM_UP
    iterator: Any = None
    turns: list[Use] = field(default_factory=list)

    @property
    def median(self) -> Use:
        """The median over the turns."""
        return Use(*map(statistics.median, zip(*self.turns, strict=True)))


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
    warm_up = WARM_UP
    for i, node in enumerate(nodes):
        before = nodes[:i]
        warm_up = IN_USE if isinstance(node, Kernel) else warm_up
        if cached and isinstance(node, (Read, Element)):
            continue  # what a full cache stands for does not run
        if isinstance(node, Element):
            found += [Part(name, _cut(executor, (*before, cut))) for name, cut in _inside(node)]
        elif isinstance(node, (Index, Read, Cache, Batch, Kernel, Emit)):
            found.append(Part(_name(node), _cut(executor, (*before, node)), warm_up))
    return [*found, Part("framework: epochs, prefetch", lambda: itertools.chain.from_iterable(itertools.repeat(pipe.train)), IN_USE)]


def _inside(node: Element) -> list[tuple[str, Element]]:
    """An element node cut after each of its stages."""
    cuts = []
    for i, stage in enumerate(node.stages):
        if isinstance(stage, DecodeWindow):
            unfinished: Any = _Unfinished(stage.crop.step)
            alone = dataclasses.replace(stage, crop=dataclasses.replace(stage.crop, step=unfinished))
            cuts.append(("decode: the window", (*node.stages[:i], alone)))
            cuts.append(("resize: the window", node.stages[: i + 1]))
        else:
            cuts.append((f"{_verb(stage)}: {_steps([stage])}", node.stages[: i + 1]))
    return [(name, dataclasses.replace(node, stages=chosen)) for name, chosen in cuts]


def _verb(stage: Stage) -> str:
    return "decode" if isinstance(stage, Decode) else "element"


def _steps(stages: list[Any]) -> str:
    """The ops of some stages, as the spec names them."""
    inner = [stage.stage if isinstance(stage, s.Branch) else stage for stage in stages]
    names = [ref.step.op for stage in inner for ref in stage.uses()] or [type(stage).__name__ for stage in inner]
    return ", ".join(dict.fromkeys(names))


def _name(node: Node) -> str:
    """What a node is, for people."""
    if isinstance(node, Kernel):
        return f"{'kernel' if node.compiled else 'batch'}: {_steps(list(node.stages))}"
    words = {Index: "framework: order and draws", Read: "read", Cache: "cache", Batch: "copy: batch", Emit: "framework: emit"}
    return words[type(node)]


def _cut(executor: Executor, nodes: tuple[Node, ...]) -> Callable[[], Any]:
    """The pipeline as far as these nodes, in batches."""

    def make() -> Any:
        import tensorflow as tf

        from pipegen.backend.process.devices import make_options
        from pipegen.backend.running.walk import Run

        element = next((node for node in executor.plan.nodes if isinstance(node, Element)), None)
        alone = element is not None and not any(isinstance(node, (Cache, Batch)) for node in nodes)
        kept = nodes
        if alone and element is not None and not isinstance(nodes[-1], Element):  # the map that reading runs in
            kept = (*nodes, dataclasses.replace(element, stages=(), out=nodes[-1].out if isinstance(nodes[-1], Read) else ElementType(())))
        run = Run(_leaving_little(executor, kept[-1]) if alone else executor, _as_far_as(executor.physical(p.FIXED), kept))
        ds = run.dataset(tf.data.Dataset.range(1_000_000).map(lambda epoch: (epoch, tf.zeros_like(epoch))))
        return ds.with_options(make_options(executor.spec.runtime))

    return make


def _as_far_as(plan: p.Physical, nodes: tuple[Node, ...]) -> p.Physical:
    """What of a physical plan runs for these nodes."""
    kept: list[p.Operation] = []
    for operation in plan.operations:
        if isinstance(operation, p.Map):
            functions = tuple(f for f in (_of(function, nodes) for function in operation.functions) if f is not None)
            kept += [dataclasses.replace(operation, functions=functions)] if functions else []
        elif not isinstance(operation, p.Prefetch):
            kept.append(operation)
    return dataclasses.replace(plan, operations=tuple(kept))


def _of(function: p.Function, nodes: tuple[Node, ...]) -> p.Function | None:
    """A function as far as it runs these nodes, or `None`."""
    match function:
        case p.Examples():
            own = tuple(node for node in nodes if isinstance(node, (Read, Element)))
            return dataclasses.replace(function, nodes=own) if own else None
        case p.Rows() | p.Kernel() | p.Emit():
            return function if function.node in nodes else None
        case p.FillCache():
            return function if function.cache in nodes else None
        case p.ReadCache() | p.SetBatchSize() | p.Join() | p.Trim():
            return function if any(isinstance(node, Batch) for node in nodes) else None
        case p.SliceOwnRows():
            return function if last_combining(nodes) is not None else None
    return function


def _leaving_little(executor: Executor, last: Node) -> Executor:
    """The executor, which keeps a pixel of each image, and the length of each file, behind the last node of a cut."""
    import tensorflow as tf

    ending: Any = copy.copy(executor)

    def element(node: Any, features: Any, found: Any = None) -> None:
        if node is not last:
            executor.element(node, features, found)
            return
        executor.element(dataclasses.replace(node, out=ElementType(())), features, found)
        for name, value in features.items():
            if value.dtype == tf.string:
                features[name] = tf.strings.length(value)
            elif value.shape.rank == 3:
                features[name] = value[0, 0]

    ending.element = element
    ending._traced = []  # what was traced with the executor's own is none of its
    return ending


def measure(found: list[Part], batch: int, batches: int, repeats: int, tell: Callable[[str], None]) -> None:
    """Measure every cut, in turns."""
    for part in found:
        tell(f"tracing  {part.name}")
        part.iterator = iter(part.make())
        next(part.iterator)
    for repeat in range(repeats):
        for part in found:
            tell(f"{repeat + 1}/{repeats}  {part.name}")
            _take(part.iterator, part.warm_up)
            began = _settle()
            _take(part.iterator, batches)
            used = _settle().less(began)
            part.turns.append(Use(*(figure / (batch * batches) for figure in used)))


def _take(iterator: Iterator[Any], batches: int) -> None:
    for _ in range(batches):
        next(iterator)


def _settle() -> Use:
    """Wait for all threads to rest; what the process has used then."""
    rested()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Use(1000 * (used.ru_utime + used.ru_stime), 1000 * used.ru_stime, used.ru_minflt)


def rows(found: list[Part]) -> list[tuple[str, Use]]:
    """What each part adds."""
    cuts = [part.median for part in found]
    return [(part.name, cut.less(before)) for part, cut, before in zip(found, cuts, [Use(0, 0, 0), *cuts], strict=False)]


def table(title: str, found: list[Part]) -> Table:
    """The parts as a table."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("part")
    for column in ("ms per image", "share", "of it system", "page faults"):
        shown.add_column(column, justify="right")
    whole = found[-1].median
    for name, use in rows(found):
        shown.add_row(name, f"{use.ms:.3f}", f"{use.ms / whole.ms:.0%}", f"{use.system_ms:.3f}", f"{use.faults:.0f}")
    shown.add_section()
    shown.add_row("whole", f"{whole.ms:.3f}", "100%", f"{whole.system_ms:.3f}", f"{whole.faults:.0f}")
    return shown


def main(argv: list[str] | None = None) -> int:
    """Profile recipes and print the tables. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="the images that the recipe reads, one sub-folder per class; of any kind for arrays")
    parser.add_argument("--recipe", choices=list(RECIPES), default="geometric", help="which (default: geometric)")
    parser.add_argument("--batches", type=int, default=10, help="batches that are timed in a turn (default: 10)")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each cut (default: 7)")
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
