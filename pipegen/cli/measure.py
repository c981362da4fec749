"""Times a pipeline that feeds nobody, and works out what a model would wait."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.cli.failures import CannotRun
from pipegen.spec.units import format_bytes
from pipegen.terminal import aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipegen.api.pipeline import Pipeline

_WARM_UP = 5
"""Batches between the first one and the clock."""
_SECONDS = 10.0


@dataclass(frozen=True)
class Figures:
    """Holds what was measured.

    Attributes:
        split: The split.
        batch: Examples in a batch of this host.
        steps: Batches that were timed.
        images: Examples in them.
        seconds: The time that they took.
        first_batch_s: From asking for the first batch to having it, in seconds, compilation included.
        peak_bytes: Memory of the process at its highest, above what it had before the first batch; `None` where unknown.
        service: What workers of the tf.data service made of them, and this process beside them; `None` without workers.
    """

    split: str
    batch: int
    steps: int
    images: int
    seconds: float
    first_batch_s: float
    peak_bytes: int | None
    service: dict[str, float] | None = None

    @property
    def batch_ms(self) -> float:
        """Milliseconds between two batches."""
        return 1000 * self.seconds / self.steps

    def waits_ms(self, model_ms: float) -> float:
        """Returns the part of a batch's time that a model of this step time waits for."""
        return max(0.0, self.batch_ms - model_ms)

    def as_json(self, model_ms: float) -> dict[str, Any]:
        """The figures as plain values."""
        waits = self.waits_ms(model_ms)
        return {
            "version": 1,
            **{name: value for name, value in asdict(self).items() if name != "service" or value is not None},
            "images_per_s": self.images / self.seconds,
            "batch_ms": self.batch_ms,
            "model_ms": model_ms,
            "model_waits_ms": waits,
            "model_waits_share": waits / max(model_ms + waits, 1e-9),
        }

    def as_text(self, model_ms: float) -> str:
        """The figures for people."""
        waits = self.waits_ms(model_ms)
        share = waits / max(model_ms + waits, 1e-9)
        verdict = f"waits {waits:.1f} ms for each batch: {share:.0%} of its time" if waits else "never waits"
        memory = "unknown" if self.peak_bytes is None else f"{format_bytes(self.peak_bytes)} above the start"
        rows = [
            ("images/s", f"{self.images / self.seconds:,.0f}"),
            ("a batch", f"{self.batch_ms:.1f} ms for {self.batch} images"),
            ("first batch", f"after {self.first_batch_s:.2f} s, compilation included"),
            (f"a model of {model_ms:g} ms", verdict),
            ("peak memory", memory),
            ("measured", f"{self.steps:,} batches of split {self.split} in {self.seconds:.1f} s"),
        ]
        if self.service is not None:
            rows += self._of_workers(self.service)
        return "\n".join(aligned(rows))

    @staticmethod
    def _of_workers(fed: dict[str, float]) -> list[tuple[str, str]]:
        """Says who made the batches, and how long this process waited for workers; batches are taken ahead, so that more may count."""
        there, here = fed["there"], fed["here"]
        why = [f"{fed[name]:g} {what}" for name, what in (("damaged", "with damaged records"), ("refused", "refused")) if fed[name]]
        late = f"; {fed['late']:g} came too late" if fed["late"] else ""
        made, kept = max(there + here, 1), "".join(f", {said}" for said in why)
        return [
            ("made by workers", f"{there:,.0f} batches"),
            ("made here", f"{here:,.0f} batches{kept}{late}"),
            ("wait for workers", f"{1000 * fed['waited'] / made:.1f} ms a batch, {fed['waited']:.1f} s in all"),
        ]


def measure(pipe: Pipeline, split: str, steps: int | None, tick: Callable[[int], None]) -> Figures:
    """Run a split, epoch after epoch.

    Args:
        pipe: The pipeline.
        split: The split.
        steps: Batches to time; `None` for what fits in ten seconds.
        tick: Called with how many are done.

    Raises:
        CannotRun: If the split has no batch.
    """
    if pipe.steps(split) == 0:
        raise CannotRun(f"split `{split}` has no batch to time")
    before = _memory("VmRSS")
    start = time.perf_counter()
    batches = _endless(pipe, split)
    size = next(batches)
    first = time.perf_counter() - start
    for _ in range(min(_WARM_UP, steps or _WARM_UP)):
        next(batches)
    images = done = 0
    earlier = asdict(pipe.fed())
    start = time.perf_counter()
    seconds = 0.0
    while done < steps if steps is not None else seconds < _SECONDS:
        images += next(batches)
        done += 1
        seconds = time.perf_counter() - start
        tick(done)
    highest = _memory("VmHWM")
    peak = None if before is None or highest is None else max(0, highest - before)
    fed = {name: value - earlier[name] for name, value in asdict(pipe.fed()).items()}
    served = pipe.spec.model.runtime.service is not None and split == "train"
    return Figures(split, size, done, images, seconds, first, peak, fed if served else None)


def _endless(pipe: Pipeline, split: str) -> Iterator[int]:
    """The number of examples in each batch, for ever."""
    from pipegen.waiting import num_rows

    dataset = pipe[split]
    while True:
        for batch in dataset:
            yield num_rows(batch)


def _memory(name: str) -> int | None:
    """A figure of this process in bytes, where the system tells."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = next((line for line in text.splitlines() if line.startswith(f"{name}:")), None)
    return None if found is None else int(found.split()[1]) * 1024
