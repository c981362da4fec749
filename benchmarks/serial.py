"""The command: `python -m benchmarks.serial`. What runs on one thread however many cores there are, and the rate that it caps.

Pipelines of pictures of a few pixels run as they always do: their examples cost next to nothing, and what hands them on costs what it costs
for any picture. An operation of `tf.data` that has a thread of its own pulls its elements from what lies before it, one at a time. With it
run the maps between it and the one before, whose functions are called one by one. Both together are a stage. Stages work at the same time,
so the slowest one is the cap:

- a map's own thread: the processor time of just that thread, while the whole pipeline runs (Linux counts it). It takes elements from the
  operation before, splits and stacks them, and hands them to the pool;
- a serial map's function: processor time of all threads, for the map alone, on elements that were recorded and stay in memory;
- the hand-over: processor time of all threads, for Python's loop over `pipe.train`, with a recorded batch in place of those that are made.
  It notes the position, from which a run is resumed.

What runs on every core (the calls of parallel maps) is in no stage; the last row of a table has it, with the serial part taken off. Steps
are indexed by a few cores at a time, which is a stage: processor time of one call, divided by how many there may be.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

from pipegen.physical import nodes as p
from pipegen.physical.decide import INDEXED_AT_ONCE

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor

TARGET = 300_000
"""Images a second that the serial part has to allow, in batches of 256."""
TARGET_BATCH = 256
TASKS = Path("/proc/self/task")
SETTLED = 1 << 17
"""Examples before anything is counted: a run is long by then, and XLA has compiled what it compiles late."""
PICTURES, CLASSES = 8192, 8
HANDED_OVER, MADE = "hand-over: __next__, position", "in parallel: maps"

_NORMAL: list[Any] = [{"normalize": {"preset": "torch"}}]


def shapes(folder: Path, size: int = 4) -> dict[str, dict[str, Any]]:
    """The specs that are measured, without their batch size; `size` is the side of what a model gets, in pixels."""
    crop: list[Any] = [{"random_resized_crop": {"size": size}}, "random_flip"]
    files = {"image_folder": {"path": str(folder)}}
    usual: dict[str, Any] = {"pipegen": 1, "source": files, "epoch": {"steps": 1_000_000}, "runtime": {"cache": "none"}}
    parts = {name: {"weight": weight, "source": files} for name, weight in (("a", 0.5), ("b", 0.3), ("c", 0.2))}
    mix = {"mix": {"epoch": 100_000_000, "parts": parts}}
    return {
        "imagenet": usual | {"transforms": [*crop, *_NORMAL]},
        "randaugment": usual | {"transforms": [*crop, "rand_augment", *_NORMAL]},
        "mix": {key: value for key, value in usual.items() if key != "epoch"} | {"source": mix, "transforms": [*crop, *_NORMAL]},
        "mixup": usual
        | {
            "transforms": [{"resize": {"size": size}}, "random_flip", {"mixup": {"alpha": 0.2}}, *_NORMAL],
            "output": {"encode": {"label": "one_hot"}},
        },
        "skip": usual | {"transforms": [*crop, *_NORMAL], "errors": {"decode": {"skip": {"max_fraction": 0.1}}}},
    }


@dataclass
class Part:
    """A part of a pipeline that runs on one thread, or on a few.

    Attributes:
        stage: Parts with the same number follow one another. Odd numbers are threads, the last one Python's.
        name: What it is.
        at_once: How many calls of it run at a time.
        us: Microseconds of processor time a step, one figure a turn.
        bare: Those of what only feeds it, likewise.
    """

    stage: int
    name: str
    at_once: int = 1
    us: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    @property
    def least(self) -> float:
        """The least of the turns, since other programs only add to it, divided by the calls at a time."""
        return max(min(self.us) - min(self.bare, default=0.0), 0.0) / self.at_once


@dataclass
class Found:
    """What was measured of one shape in one batch size.

    Attributes:
        shape: The name of the spec.
        batch: Examples in a batch.
        parts: What is serial.
        whole: Microseconds of processor time a step, of all threads, while the whole pipeline ran; one figure a turn.
    """

    shape: str
    batch: int
    parts: list[Part]
    whole: list[float]

    def stage(self, number: int) -> float:
        """Microseconds a step of one stage."""
        return sum(part.least for part in self.parts if part.stage == number)

    @property
    def stages(self) -> list[int]:
        """The numbers of the stages."""
        return sorted({part.stage for part in self.parts})

    @property
    def cap(self) -> float:
        """Images a second that the slowest stage allows."""
        return self.batch * 1e6 / max(map(self.stage, self.stages))

    @property
    def parallel(self) -> float:
        """Microseconds of processor time an image of what runs on every core."""
        return max(min(self.whole) - sum(part.least for part in self.parts if part.at_once == 1), 0.0) / self.batch


def write_pictures(folder: Path, count: int = PICTURES) -> None:
    """Writes JPEGs of 4×4 pixels in class folders."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(count):
        file = folder / f"class_{number % CLASSES}" / f"{number:05}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (4, 4, 3), np.uint8)).save(file)


def thread_times() -> dict[int, int]:
    """The processor time of each thread of this process in nanoseconds, by its number."""
    found = {}
    for task in TASKS.iterdir():
        try:
            found[int(task.name)] = int((task / "schedstat").read_text(encoding="ascii").split()[0])
        except OSError:  # it has ended
            continue
    return found


def owners(plan: p.Physical) -> list[str]:
    """The operations that have a thread of their own, from the first on."""
    named = [(name, operation) for name, operation in plan.named() if not p.hands_over(operation)]
    behind = [operation for _, operation in named[1:]] + [None]
    found = []
    for (name, operation), after in zip(named, behind, strict=True):
        if isinstance(operation, p.Prefetch) or (isinstance(operation, p.Map) and (operation.threads or isinstance(after, p.Stack))):
            found.append(name)
    return found


def limited_maps(plan: p.Physical) -> Iterator[tuple[Part, int]]:
    """Yields the part of each map whose calls follow one another, or of which only a few run at a time, and its place in the plan."""
    stage, kept = 0, set(owners(plan))
    for place, (name, operation) in enumerate(plan.named()):
        indexes = isinstance(operation, p.Map) and isinstance(operation.functions[0], p.Index)
        if isinstance(operation, p.Map) and (name not in kept or (indexes and name != "whole_batch")) and not p.hands_over(operation):
            functions = ", ".join(p.node_name(function) for function in operation.functions)
            if name in kept:
                yield Part(2 * stage, f"{functions}: {INDEXED_AT_ONCE} at a time", INDEXED_AT_ONCE), place
            else:
                yield Part(2 * stage + 1, f"{functions}: function"), place
        stage += name in kept


def cut(executor: Executor, plan: p.Physical, operations: Sequence[p.Operation], ds: Any) -> Any:
    """Some operations of a plan on a dataset."""
    from pipegen.backend.process.devices import make_options
    from pipegen.backend.running.walk import Run

    made = Run(executor, dataclasses.replace(plan, operations=tuple(operations))).dataset(ds)
    return made.with_options(make_options(executor.spec.runtime))


def late(executor: Executor) -> tuple[int, int]:
    """An epoch and a step that are late in a long run."""
    return divmod(-(-SETTLED // executor.order.batch), executor.steps)


def beginning(executor: Executor) -> Any:
    """One epoch, from a late step on."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(tuple(tf.constant(number, tf.int64) for number in late(executor)))


def drained(ds: Any, count: int) -> Callable[[], float]:
    """Makes a function that has TensorFlow take `count` elements of an endless dataset; it returns the microseconds of each."""
    taken = iter(ds.shard(count, count - 1).map(lambda *_: 0))  # one of `count`: Python sees no other
    next(taken)

    def turn() -> float:
        began = time.process_time()
        next(taken)
        return 1e6 * (time.process_time() - began) / count

    return turn


def function_of(executor: Executor, plan: p.Physical, place: int, steps: int) -> Callable[[], tuple[float, float]]:
    """Makes a function that measures a serial map alone, on one recorded element: microseconds of a call, and of taking the element."""
    import tensorflow as tf

    operation: Any = plan.operations[place]
    element = next(iter(cut(executor, plan, plan.operations[:place], beginning(executor))))
    recorded = tf.data.Dataset.from_tensors(element).repeat()
    mapped = drained(cut(executor, plan, [dataclasses.replace(operation, threads=None)], recorded), steps)
    bare = drained(recorded, steps)
    return lambda: (mapped(), bare())


class _Recorded:
    """Stands for machines that make batches: the same one for every step, from memory."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def batches(self, entering: Any, form: p.Form) -> Any:
        import tensorflow as tf

        def steps(epoch: Any, first: Any, _since: Any) -> Any:
            numbers = tf.data.Dataset.range(first, tf.int64.max)
            return tf.data.Dataset.zip(
                (tf.data.Dataset.from_tensors(epoch).repeat(), numbers, tf.data.Dataset.from_tensors(self._batch).repeat())
            )

        return entering.flat_map(steps)

    def check(self, at: Any) -> None:
        """Nothing has to be there."""


def handing_over(pipe: Any, steps: int) -> Callable[[], float]:
    """Makes a function that measures Python's loop over a batch from memory: microseconds of a step."""
    from pipegen.backend.datasets.pipeline_dataset import training_dataset

    executor, progress = pipe._engine.executor("train"), pipe._engine.train_progress()
    feed: Any = _Recorded(next(iter(pipe.train)))
    batches = iter(training_dataset(executor, progress, None, feed=feed))
    _take(batches, 10)

    def turn() -> float:
        began = time.process_time()
        _take(batches, steps)
        return 1e6 * (time.process_time() - began) / steps

    return turn


def _take(batches: Iterator[Any], count: int) -> None:
    for _ in range(count):
        next(batches)


def whole_run(pipe: Any, names: Sequence[str], steps: int) -> Callable[[], tuple[list[float], float]]:
    """Makes a function that runs the whole pipeline: microseconds a step of each operation's own thread, and of all threads together.

    TensorFlow starts these threads as the first batch is asked for, that of the last operation first. It makes the pool with the iterator.
    """
    batches = iter(pipe.train)
    before = thread_times()
    _take(batches, 4)
    begun = sorted(thread_times().keys() - before.keys())
    if len(begun) < len(names):
        raise RuntimeError(f"{len(begun)} threads were started for {', '.join(names)}")
    own = begun[: len(names)][::-1]

    def turn() -> tuple[list[float], float]:
        began, all_ = thread_times(), time.process_time()
        _take(batches, steps)
        ended, all_ = thread_times(), time.process_time() - all_
        return [(ended[thread] - began[thread]) / 1000 / steps for thread in own], 1e6 * all_ / steps

    return turn


def measure(shape: str, spec: dict[str, Any], batch: int, steps: int, repeats: int) -> Found:
    """Measures one shape: every part in turn, again and again."""
    import pipegen

    pipe = pipegen.build(spec | {"batch": {"size": batch}})
    executor = pipe._engine.executor("train")
    plan = executor.physical(p.FIXED)
    names = owners(plan)
    pipe.seek(*late(executor))
    maps = [(part, function_of(executor, plan, place, steps)) for part, place in limited_maps(plan)]
    threads = [Part(2 * number + 1, f"{name}: own thread") for number, name in enumerate(names)]
    running, over = whole_run(pipe, names, steps), Part(2 * len(names) + 1, HANDED_OVER)
    running()
    pipe.seek(*late(executor))
    handed, whole = handing_over(pipe, steps), []
    for _ in range(repeats):
        for part, turn in maps:
            us, bare = turn()
            part.us.append(us)
            part.bare.append(bare)
        of_threads, all_ = running()
        whole.append(all_)
        for part, us in zip(threads, of_threads, strict=True):
            part.us.append(us)
        over.us.append(handed())
    found = sorted([*(part for part, _ in maps), *threads, over], key=lambda part: part.stage)
    return Found(shape, batch, found, whole)


def table(found: Found) -> Table:
    """The parts of one shape, by stage."""
    shown = Table(title=f"{found.shape}, batches of {found.batch}: processor time of what is serial", title_justify="left")
    shown.add_column("stage")
    shown.add_column("part")
    for heading in ("µs a step", "µs an image", "cap of the stage, images/s"):
        shown.add_column(heading, justify="right")
    for row, number in enumerate(found.stages, 1):
        own = [part for part in found.parts if part.stage == number]
        for place, part in enumerate(own):
            cap = f"{found.batch * 1e6 / found.stage(number):,.0f}" if place == len(own) - 1 else ""
            shown.add_row("" if place else str(row), part.name, f"{part.least:.0f}", f"{part.least / found.batch:.3f}", cap)
        shown.add_section()
    shown.add_row("", MADE, "", f"{found.parallel:.3f}", "")
    return shown


def summary(every: Sequence[Found]) -> Table:
    """The cap of each shape."""
    shown = Table(title="the rate that the slowest serial stage allows, images/s", title_justify="left")
    shown.add_column("shape")
    shown.add_column("batch", justify="right")
    shown.add_column("cap", justify="right")
    for found in every:
        style = "" if found.batch != TARGET_BATCH else "green" if found.cap >= TARGET else "red"
        shown.add_row(found.shape, str(found.batch), f"[{style}]{found.cap:,.0f}[/{style}]" if style else f"{found.cap:,.0f}")
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints the tables. Returns 1 if a shape in batches of 256 is capped below the target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serial", description="Measure what does not run in parallel.")
    known = list(shapes(Path()))
    parser.add_argument("--shapes", nargs="+", choices=known, default=known, metavar="SHAPE", help=f"out of {', '.join(known)}")
    parser.add_argument("--batches", nargs="+", type=int, default=[64, TARGET_BATCH], metavar="SIZE", help="batch sizes (default: 64 256)")
    parser.add_argument("--steps", type=int, default=100, help="steps of a turn (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each part (default: %(default)s)")
    parser.add_argument("--size", type=int, default=4, help="side of the output in pixels (default: %(default)s)")
    parser.add_argument("--pictures", type=int, default=PICTURES, help="pictures that are written (default: %(default)s)")
    args = parser.parse_args(argv)
    console = Console(width=max(Console().width, 100))
    if not TASKS.exists():
        console.print("[red]error[/red]: the processor time of each thread is read from /proc, which this system does not have")
        return 2
    with tempfile.TemporaryDirectory(prefix="pipegen-serial-") as folder, console.status("writing pictures") as status:
        write_pictures(Path(folder), args.pictures)
        every = []
        for shape in args.shapes:
            for batch in args.batches:
                status.update(f"{shape}, batches of {batch}")
                every.append(measure(shape, shapes(Path(folder), args.size)[shape], batch, args.steps, args.repeats))
                console.print(table(every[-1]))
    console.print(summary(every))
    return int(any(found.batch == TARGET_BATCH and found.cap < TARGET for found in every))


if __name__ == "__main__":
    sys.exit(main())
