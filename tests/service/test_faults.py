"""Whatever happens to the servers, the stream is that of a single process, bit for bit."""

from __future__ import annotations

import os
import time
from pipes import COLOUR, pipeline, same
from typing import TYPE_CHECKING

import numpy as np
import pytest
from fleet import LIMIT_S, Fleet, Process

from pipegen.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from pipes import Array

    from pipegen.api.pipeline import Pipeline

pytestmark = [pytest.mark.tf, pytest.mark.timeout(LIMIT_S)]

STEPS = 40
SPEC = {"transforms": [{"resize": {"size": 64}}, *COLOUR[1:]], "epoch": {"steps": STEPS}, "batch": {"size": 4}}
"""Large enough that workers send bytes, and the trainer makes the floats."""
PACE_S = 0.05
"""A training step, so that what happens to the servers happens in the middle."""


@pytest.fixture
def own_fleet(tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Makes fleets of the test's own."""
    made: list[Fleet] = []

    def make(workers: int = 2, *, keeps: bool = False) -> Fleet:
        made.append(Fleet(tmp_path / f"fleet{len(made)}", workers, keeps=keeps))
        return made[-1]

    yield make
    for fleet in made:
        fleet.end()


def epoch(pipe: Pipeline, events: dict[int, Callable[[], object]] | None = None) -> list[tuple[Array, ...]]:
    """The batches of an epoch, at the pace of a training; behind some of them something happens."""
    import tensorflow as tf

    found = []
    for number, batch in enumerate(pipe.train):
        found.append(tuple(np.asarray(t) for t in tf.nest.flatten(batch)))
        time.sleep(PACE_S)
        if events and number in events:
            events[number]()
    return found


def lose_patience(pipe: Pipeline) -> None:
    """Lets it wait for a second at most from now on: servers may take longer to begin than a test should wait."""
    for feed in pipe._engine._feeds.values():
        feed._service = feed._service.model_copy(update={"patience": 1.0})
        for job in feed._jobs:
            job.arrivals._patience = 1.0


def equal(there: list[tuple[Array, ...]], here: list[tuple[Array, ...]]) -> None:
    assert len(there) == len(here) == STEPS
    for one, other in zip(there, here, strict=True):
        same(one, other)


@pytest.mark.nightly
def test_a_worker_is_killed_and_another_added(photos: Path, own_fleet: Callable[..., Fleet]) -> None:
    fleet, here = own_fleet(2), pipeline(photos, **SPEC)
    there = pipeline(photos, fleet.runtime(patience="60s", window=8), **SPEC)

    def add() -> None:
        fleet.workers.append(fleet.begin_worker())

    equal(epoch(there, {6: lambda: (fleet.workers[0].end(), lose_patience(there)), 15: add}), epoch(here))
    equal(epoch(there), epoch(here))
    assert there.fed().there > STEPS, there.fed()


@pytest.mark.nightly
def test_the_dispatcher_is_killed_and_started_again(photos: Path, own_fleet: Callable[..., Fleet]) -> None:
    fleet, here = own_fleet(1, keeps=True), pipeline(photos, **SPEC)
    there = pipeline(photos, fleet.runtime(patience="60s"), **SPEC)
    equal(epoch(there, {6: lambda: (fleet.restart_dispatcher(), lose_patience(there))}), epoch(here))
    fleet.dispatcher.wait_for(", 1 worker\n")
    before = there.fed().there
    equal(epoch(there), epoch(here))
    assert there.fed().there > before, there.fed()


@pytest.mark.nightly  # by day nobody is at the address
def test_every_server_is_killed(photos: Path, own_fleet: Callable[..., Fleet]) -> None:
    fleet, here = own_fleet(1), pipeline(photos, **SPEC)
    there = pipeline(photos, fleet.runtime(patience="60s", window=2), **SPEC)
    equal(epoch(there, {6: lambda: (fleet.end(), lose_patience(there))}), epoch(here))
    assert there.fed().there >= 6, there.fed()
    assert there.fed().here >= 8, there.fed()


@pytest.mark.nightly
def test_a_fleet_that_comes_back_is_used_again(photos: Path, own_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.backend.service.feed._AGAIN_S", 1.0)
    fleet, here = own_fleet(1), pipeline(photos, **SPEC)
    there = pipeline(photos, fleet.runtime(patience="60s"), **SPEC)
    equal(epoch(there, {8: lambda: (fleet.end(), lose_patience(there))}), epoch(here))
    before = there.fed().there
    fleet.restart_dispatcher()
    fleet.workers = [fleet.begin_worker()]
    fleet.dispatcher.wait_for(", 1 worker\n")
    for _ in range(4):
        equal(epoch(there), epoch(here))
    assert there.fed().there > before, there.fed()


@pytest.mark.nightly
def test_a_run_that_was_stopped_in_the_middle_goes_on_in_another_process(photos: Path, own_fleet: Callable[..., Fleet]) -> None:
    fleet, here = own_fleet(1), pipeline(photos, **SPEC)
    first = pipeline(photos, fleet.runtime(), **SPEC)
    taken = []
    for number, batch in enumerate(first.train):
        taken.append(np.asarray(batch[0]))
        if number == 12:
            break
    second = pipeline(photos, fleet.runtime(), **SPEC)
    second.restore(first.state())
    rest = [np.asarray(batch[0]) for batch in second.train]
    assert (len(taken), len(rest)) == (13, STEPS - 13)
    same([*taken, *rest], [images for images, _ in epoch(here)])
    assert second.fed().there, second.fed()


@pytest.mark.nightly
def test_kernels_that_xla_compiles_give_the_same_bits(photos: Path, own_fleet: Callable[..., Fleet]) -> None:
    fleet, here = own_fleet(1), pipeline(photos, {"jit": "always"}, **SPEC)
    there = pipeline(photos, {"jit": "always", **fleet.runtime(patience="60s")}, **SPEC)
    equal(epoch(there), epoch(here))
    assert there.fed().there == STEPS, there.fed()
    assert "send     image, label from a worker to the trainer: 12,296 bytes an example" in there.explain()


TRAINER = """
import sys, zlib
sys.path.insert(0, {tests!r})
import numpy as np
from pathlib import Path
from pipes import COLOUR, pipeline
pipe = pipeline(Path({photos!r}), {runtime!r}, transforms=COLOUR, epoch={{"steps": {steps}}}, batch={{"size": 4}})
for _ in range(2):
    for images, labels in pipe.train:
        print("batch", zlib.crc32(np.asarray(images).tobytes()), np.asarray(labels).tolist(), flush=True)
print("there", pipe.fed().there, flush=True)
"""


@pytest.mark.nightly
def test_two_trainings_share_a_fleet(photos: Path, own_fleet: Callable[..., Fleet], tmp_path: Path) -> None:
    from pathlib import Path as At

    fleet = own_fleet(1)
    runtimes = [{}, fleet.runtime(), fleet.runtime()]
    said = {"tests": str(At(__file__).parents[1]), "photos": str(photos), "steps": STEPS}
    trainers = [Process(tmp_path / f"{i}.log", "-c", TRAINER.format(runtime=runtime, **said)) for i, runtime in enumerate(runtimes)]
    told = [trainer.wait().splitlines() for trainer in trainers]
    streams = [[line for line in lines if line.startswith("batch")] for lines in told]
    assert len(streams[0]) == 2 * STEPS
    assert streams[0] == streams[1] == streams[2]
    counts = [int(lines[-1].split()[1]) for lines in told]
    assert counts[0] == 0
    assert min(counts[1:]) > STEPS, counts


@pytest.mark.nightly
def test_workers_of_another_version_are_an_error_at_the_start(
    photos: Path, own_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorflow.version.VERSION", "2.99.0")
    there = pipeline(photos, own_fleet(1).runtime(patience="60s"), **SPEC)
    with pytest.raises(StateError, match=r"would differ .* TensorFlow 2\.\d+\.\d+ in place of 2\.99\.0.*Run workers of the same version"):
        iter(there.train)


@pytest.mark.nightly
def test_batches_of_a_worker_that_rounds_otherwise_are_not_taken(
    photos: Path, own_fleet: Callable[..., Fleet], caplog: pytest.LogCaptureFixture
) -> None:
    fleet, here = own_fleet(1), pipeline(photos, **SPEC)
    there = pipeline(photos, fleet.runtime(patience="60s"), **SPEC)
    other = {"0": "1", "1": "0"}[os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1")]
    equal(epoch(there, {5: lambda: fleet.workers.append(fleet.begin_worker(TF_ENABLE_ONEDNN_OPTS=other))}), epoch(here))
    fleet.dispatcher.wait_for(", 2 workers\n")
    for _ in range(3):
        equal(epoch(there), epoch(here))
    assert there.fed().refused, there.fed()
    assert there.fed().there > there.fed().refused, there.fed()
    assert "whose last bits may differ: TF_ENABLE_ONEDNN_OPTS" in caplog.text
