"""`pipegen bench`: benchmarks a pipeline without a model, and estimates a model's input wait."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipegen.cli.common import NOTHING, SpecFile, SplitName, WithStage
from pipegen.cli.failures import CannotRun
from pipegen.frozen import dataclass
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned, progress, say

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline


def bench(
    spec: SpecFile,
    split: SplitName = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, metavar="N", help="Batches to time; by default ten seconds of them.")
    ] = None,
    model_ms: Annotated[float, typer.Option("--model-ms", min=0, metavar="MS", help="Time of your model's training step, in ms.")] = 50,
    service: Annotated[bool, typer.Option("--service", help="Require `runtime.service`, and count the batches of its workers.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print the figures.")] = "text",
    given: WithStage = NOTHING,
) -> None:
    """Measure images/s or sounds/s, and how long a model would wait.

    The pipeline runs alone. The first batch has a line of its own, since it includes compilation; a few more run before
    the clock starts. The next batch is made while the model computes, so a model whose step takes --model-ms waits for
    the rest of a batch's time. If a cache is filled, the first epoch and later ones have separate figures. With
    workers of the tf.data service (`runtime.service` in the spec), it also shows how many batches the workers and this
    process made, and how long this process waited for the workers.

    Examples:
      pipegen bench flowers.pipegen.yaml
      pipegen bench flowers.pipegen.yaml --model-ms 120 --steps 200
      pipegen bench flowers.pipegen.yaml --service --set runtime.service.address=grpc://dispatcher:5050
    """
    loaded, chosen = given.load_split(spec, split)
    if service and loaded.model.runtime.service is None:
        help_ = "add it to the spec, or `--set runtime.service.address=grpc://dispatcher:5050`"
        raise CannotRun("`--service` needs the address of a dispatcher in `runtime.service`, but the spec has none", help_)
    if service and chosen != "train":
        raise CannotRun(f"workers make batches of the training split only, not of `{chosen}`", "leave `--service` out")
    pipe = given.open(loaded)
    with progress("batches", steps) as tick:
        figures = measure(pipe, chosen, steps, tick)
    say(json.dumps(figures.as_json(model_ms), indent=2) if output_format == "json" else figures.as_text(model_ms))


_WARM_UP = 5  # batches between the first one and the clock, and between the epoch that fills a cache and later ones
_SECONDS = 10.0


@dataclass(frozen=True)
class Timed:
    """The number of timed batches, the examples in them, and their time."""

    steps: int
    images: int
    seconds: float

    @property
    def images_per_s(self) -> float:
        """Examples per second."""
        return self.images / self.seconds


@dataclass(frozen=True)
class Figures:
    """The results of a benchmark."""

    split: str
    batch: int  # the number of examples in a batch of this host
    steps: int  # the number of timed batches, with so many `images` in so many `seconds`
    images: int
    seconds: float
    first_batch_s: float  # seconds from the request to the first batch, compilation included
    peak_bytes: int | None  # peak memory of the process, minus its memory before the first batch; `None` if unknown
    service: dict[str, float] | None = None  # batches made by workers of the tf.data service and by this process; `None` without workers
    cache: str | None = None  # where the split is cached, `memory` or `disk`; `None` without a cache
    is_warm: bool = False  # whether the batches come from the cache
    first_epoch: Timed | None = None  # batches made while the cache was filled; `None` if there were none, or too few to time
    records: str = "images"  # the word for the examples

    @property
    def batch_ms(self) -> float:
        """Milliseconds between two batches."""
        return 1000 * self.seconds / self.steps

    def as_json(self, model_ms: float) -> dict[str, Any]:
        """Lists the figures as plain values."""
        waits, first = max(0.0, self.batch_ms - model_ms), self.first_epoch
        more = {} if first is None else {"first_epoch": {**asdict(first), "images_per_s": first.images_per_s}}
        return {
            "version": 1,
            **{name: value for name, value in asdict(self).items() if name != "records" and (name != "service" or value is not None)},
            **more,
            "images_per_s": self.images / self.seconds,
            "batch_ms": self.batch_ms,
            "model_ms": model_ms,
            "model_waits_ms": waits,
            "model_waits_share": waits / max(model_ms + waits, 1e-9),
        }

    def as_text(self, model_ms: float) -> str:
        """Describes the figures as text."""
        memory = "unknown" if self.peak_bytes is None else f"{format_bytes(self.peak_bytes)} above the start"
        first = self.first_epoch
        later = "in later epochs " if self.is_warm else ""
        model = f"a model of {model_ms:g} ms"
        models = [(model, "in the first epoch ", 1000 * first.seconds / first.steps)] if first else []
        models.append(("" if first else model, later, self.batch_ms))
        rows = [
            *self._of_cache(),
            ("a batch", f"{later}{self.batch_ms:.1f} ms for {self.batch} {self.records}"),
            ("first batch", f"after {self.first_batch_s:.2f} s, compilation included"),
            *((name, f"{when}{_verdict(ms, model_ms)}") for name, when, ms in models),
            ("peak memory", memory),
            ("measured", f"{self.steps:,} batches of split {self.split} in {self.seconds:.1f} s"),
        ]
        if self.service is not None:
            rows += self._of_workers(self.service)
        return "\n".join(aligned(rows))

    def _of_cache(self) -> list[tuple[str, str]]:
        rate = f"{self.images / self.seconds:,.0f}"
        if self.cache is None:
            return [(f"{self.records}/s", rate)]
        if not self.is_warm:
            return [(f"{self.records}/s", f"{rate} while the cache ({self.cache}) is filled; later epochs were not reached")]
        if self.first_epoch is None:
            return [(f"{self.records}/s", f"{rate} from the warm cache ({self.cache}); the first epoch is slower, and was not timed")]
        return [
            (f"{self.records}/s", f"{self.first_epoch.images_per_s:,.0f} in the first epoch, while the cache ({self.cache}) is filled"),
            ("", f"{rate} in later epochs, from the warm cache"),
        ]

    def _of_workers(self, fed: dict[str, float]) -> list[tuple[str, str]]:
        there, here = fed["there"], fed["here"]
        why = [f"{fed[name]:g} {what}" for name, what in (("damaged", "with damaged records"), ("refused", "refused")) if fed[name]]
        late = f"; {fed['late']:g} came too late" if fed["late"] else ""
        made, kept = max(there + here, 1), "".join(f", {said}" for said in why)
        return [
            (
                "made by workers",
                f"{there:,.0f} batches" + (f", {fed['bytes'] / there / self.batch:,.0f} bytes each sent" if there else ""),
            ),
            ("made here", f"{here:,.0f} batches{kept}{late}"),
            ("wait for workers", f"{1000 * fed['waited'] / made:.1f} ms a batch, {fed['waited']:.1f} s in all"),
        ]


def measure(pipe: Pipeline, split: str, steps: int | None, tick: Callable[[int], None]) -> Figures:
    """Benchmarks a split, epoch after epoch: `steps` batches, else as many as fit in ten seconds. `tick` is called with the number done.
    Raises `CannotRun` if the split has no batch."""
    from pipegen.observe.measured import endless
    from pipegen.ops.kinds.base import called
    from pipegen.waiting import num_rows

    if pipe.steps(split) == 0:
        raise CannotRun(f"split `{split}` has no batch to time")
    served = pipe.spec.model.runtime.service is not None and split == "train"
    filling, cache = (0, None) if served else _filling(pipe, split)
    before = _memory("VmRSS")
    start = time.perf_counter()
    batches = map(num_rows, endless(pipe, split))
    size = next(batches)
    first = time.perf_counter() - start
    warm = min(_WARM_UP, steps or _WARM_UP)
    for _ in range(warm):
        next(batches)
    filled = _timed(batches, filling - warm - 1, steps, lambda _: None) if filling > warm + 1 else None
    is_warm = cache is not None and (filled is None or filled.steps == filling - warm - 1)
    for _ in range(warm if filled is not None and is_warm else 0):  # these were prefetched during the first epoch
        next(batches)
    earlier = asdict(pipe.fed())
    timed = filled if filled is not None and not is_warm else _timed(batches, None, steps, tick)
    highest = _memory("VmHWM")
    peak = None if before is None or highest is None else max(0, highest - before)
    fed = {name: value - earlier[name] for name, value in asdict(pipe.fed()).items()}
    first_epoch = filled if is_warm else None
    seen = timed.steps, timed.images, timed.seconds, first, peak
    word = called(x for _, x in pipe._engine.executor(split).plan.read.items())
    return Figures(split, size, *seen, fed if served else None, cache, is_warm, first_epoch, word)


def _filling(pipe: Pipeline, split: str) -> tuple[int, str | None]:
    """Number of batches that fill the split's cache (0 if an earlier run filled it on disk), and the kind of cache."""
    from pipegen.backend.reading.graph_caches import DiskCache
    from pipegen.observe.measured import filling_steps
    from pipegen.plan.nodes import Cache

    executor = pipe._engine.executor(split)
    node = next((n for n in executor.plan.nodes if isinstance(n, Cache)), None)
    if node is None:
        return 0, None
    cache = executor.cache
    whole = isinstance(cache, DiskCache) and len(list(cache.store.filled())) >= len(executor.records)
    return 0 if whole else filling_steps(executor), node.kind.name


def _timed(batches: Iterator[int], most: int | None, steps: int | None, tick: Callable[[int], None]) -> Timed:
    """Times `steps` batches, or as many as fit in ten seconds; at most `most`."""
    images = done = 0
    seconds, start = 0.0, time.perf_counter()
    while (most is None or done < most) and (done < steps if steps is not None else seconds < _SECONDS):
        images += next(batches)
        done += 1
        seconds = time.perf_counter() - start
        tick(done)
    return Timed(done, images, seconds)


def _verdict(batch_ms: float, model_ms: float) -> str:
    waits = max(0.0, batch_ms - model_ms)
    return f"waits {waits:.1f} ms for each batch: {waits / max(model_ms + waits, 1e-9):.0%} of its time" if waits else "never waits"


def _memory(name: str) -> int | None:
    """Reads a field of /proc/self/status in bytes; `None` if there is none."""
    from pipegen.observe.examination import Machine

    found = Machine().status(name)
    return int(found.split()[0]) * 1024 if found else None
