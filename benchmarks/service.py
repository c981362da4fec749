"""The command: `python -m benchmarks.service FOLDER`. What the tf.data service, and putting its batches in order, cost on one machine.

A dispatcher and a worker run on the loopback address, beside the training process, and share its cores. The pipeline with the worker and
the one without have turns. Images per second say what one machine loses by it; the processor time of an image, of all processes, says the
same beside other programs; that of the training process alone is what is left there when workers are on other machines. Bytes are those
that workers send: the plan says where they send a batch (`pipegen explain`).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

from benchmarks.measure import rested
from benchmarks.prepared import GEOMETRIC, spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.api.pipeline import Pipeline

_TICKS = os.sysconf("SC_CLK_TCK")
_READY_S = 120.0
WARM_UP = 24
"""Batches before the clock starts: more than are ready by then."""


@dataclass(frozen=True)
class Turn:
    """Holds what one turn took.

    Attributes:
        images: Images handed over.
        seconds: The wall clock.
        trainer_s: Processor time of this process, in seconds.
        servers_s: That of the servers.
        sent: Bytes of an image from a worker; 0 without workers.
    """

    images: int
    seconds: float
    trainer_s: float
    servers_s: float
    sent: float = 0.0

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.images / self.seconds

    def per_image(self, *, servers: bool) -> float:
        """Milliseconds of processor time per image: of this process, or of the servers, too.

        Without workers, the servers have no share: they finish what was asked for in the turn before.
        """
        return 1000 * (self.trainer_s + (self.servers_s if servers and self.sent else 0)) / self.images


def table(turns: dict[str, list[Turn]]) -> Table:
    """Medians over the turns, and for each way how it stands beside the first."""
    columns = ("batches made", "images/s", "of alone", "CPU ms/image", "of alone", "in the trainer", "bytes/image sent")
    made = Table(*columns, title="tf.data service on one machine")
    first = next(iter(turns.values()))
    for name, own in turns.items():
        rate, base = (statistics.median(t.rate for t in several) for several in (own, first))
        whole, alone = (statistics.median(t.per_image(servers=True) for t in several) for several in (own, first))
        trainer = statistics.median(t.per_image(servers=False) for t in own)
        sent = f"{own[0].sent:,.0f}" if own[0].sent else ""
        made.add_row(name, f"{rate:,.0f}", f"{rate / base:.2f}", f"{whole:.3f}", f"{whole / alone:.2f}", f"{trainer:.3f}", sent)
    return made


def processor_time(processes: list[int]) -> float:
    """Seconds of processor time that processes have taken, user and system."""
    fields = [Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split() for pid in processes]
    return sum(int(f[11]) + int(f[12]) for f in fields) / _TICKS


@contextlib.contextmanager
def servers(workers: int) -> Iterator[tuple[str, list[int]]]:
    """A dispatcher and workers on the loopback address: the dispatcher's address, and their process ids."""
    started: list[subprocess.Popen[str]] = []
    ports = [_free_port() for _ in range(workers + 1)]
    to = f"127.0.0.1:{ports[0]}"
    commands = [["dispatcher", "--port", str(ports[0])]]
    commands += [["worker", "--dispatcher", to, "--port", str(p), "--address", f"127.0.0.1:{p}"] for p in ports[1:]]
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number, command in enumerate(commands):
                with Path(folder, f"{number}.log").open("w", encoding="utf-8") as log:
                    argv = [sys.executable, "-m", "pipegen", "service", *command]
                    started.append(subprocess.Popen(argv, stdout=log, stderr=log, text=True))
            for number, process in enumerate(started):
                _wait(process, Path(folder, f"{number}.log"))
            yield f"grpc://{to}", [process.pid for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[str], log: Path) -> None:
    end = time.monotonic() + _READY_S
    while "ready: " not in log.read_text(encoding="utf-8"):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"a server does not start: {log.read_text(encoding='utf-8')}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def take(pipe: Pipeline, batches: Iterator[Any], steps: int, of: list[int]) -> Turn:
    """Takes a turn; what was made ahead of it, here and by workers, is taken before the clock starts."""
    rested()
    for _ in range(WARM_UP):
        next(batches)
    fed = pipe.fed()
    begun = time.process_time(), processor_time(of), time.perf_counter()
    images = sum(int(next(batches)[0].shape[0]) for _ in range(steps))
    ended = time.process_time(), processor_time(of), time.perf_counter()
    there, sent = pipe.fed().there - fed.there, pipe.fed().bytes - fed.bytes
    return Turn(images, ended[2] - begun[2], ended[0] - begun[0], ended[1] - begun[1], sent / there * steps / images if there else 0.0)


def measure(folder: Path, workers: int, repeats: int, steps: int, size: int) -> dict[str, list[Turn]]:
    """Takes turns of the pipeline alone and with workers.

    Raises:
        RuntimeError: If workers made less than nearly all batches.
    """
    import pipegen

    recipe: list[Any] = [{"resize": {"size": size}}, *GEOMETRIC[1:]]
    turns: dict[str, list[Turn]] = {}
    with servers(workers) as (address, processes):
        service = {"service": {"address": address, "patience": "60s", "window": 2}}
        own = pipegen.build(spec(folder, recipe), runtime={"cache": "none"})
        served = pipegen.build(spec(folder, recipe), runtime={"cache": "none", **service})
        named = {"in the training process": own, f"by {workers} worker{'s' * (workers > 1)}": served}
        endless = {name: itertools.chain.from_iterable(itertools.repeat(pipe.train)) for name, pipe in named.items()}
        for _ in range(repeats):
            for name, batches in endless.items():
                turns.setdefault(name, []).append(take(named[name], batches, steps, processes))
        fed = served.fed()
        if fed.there < 0.9 * (fed.there + fed.here):
            raise RuntimeError(
                f"workers made {fed.there} batches, and {fed.here} were made here: the turns do not measure what they should"
            )
    return turns


def main(argv: list[str] | None = None) -> int:
    """Measures and prints the table. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="photographs, one sub-folder of JPEGs per class (`python -m benchmarks.make_photos`)")
    parser.add_argument("--workers", type=int, default=1, help="workers on this machine (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=30, help="batches of a turn (default: %(default)s)")
    parser.add_argument("--size", type=int, default=224, help="side of the images, in pixels (default: %(default)s)")
    args = parser.parse_args(argv)
    Console().print(table(measure(args.folder, args.workers, args.repeats, args.steps, args.size)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
