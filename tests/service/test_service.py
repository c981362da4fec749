"""Batches that workers of the tf.data service make are those of a single process, bit for bit."""

from __future__ import annotations

import signal
from pipes import COLOUR, FLIPPED, RESIZE, batches, close, epoch_of, pipeline, same, stream
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest
from fleet import Fleet, free_port

from pipegen.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.timeout(180)]

TINTED = [*FLIPPED, {"random_contrast": {"factor": 0.3}}]
COMBINED = [*COLOUR, {"mixup": {"alpha": 0.4}}]


@pytest.mark.by_day(1)
def test_epochs_made_by_a_worker_are_those_of_one_process(photos: Path, fleet: Fleet) -> None:
    here, there = (pipeline(photos, runtime, transforms=TINTED) for runtime in ({}, fleet.runtime()))
    for _ in range(2):
        same(stream(there.train), stream(here.train))
    assert there.state() == here.state()
    assert there.fed().there >= 6, there.fed()
    there.seek(1, 2)
    same(stream(there.train), epoch_of(here, 1, 2))
    same(stream(there.validation), stream(here.validation))


LARGER, TURN = {"resize": {"size": 40}}, {"random_rotation": {"degrees": 25}}
CUTS: dict[str, tuple[list[Any], int, int]] = {
    "before the floats": ([LARGER, TURN, {"random_contrast": {"factor": 0.3}}, {"normalize": {"preset": "torch"}}], 40, 1),
    "behind what runs example by example": ([{"resize": {"size": 96}}, "rand_augment", {"normalize": {"preset": "torch"}}], 96, 1),
    "before all kernels": ([LARGER, {"random_brightness": {"factor": 0.3}}], 40, 1),
    "finished": ([LARGER, {"rescale": {"to": [0, 1]}}, {"random_rotation": {"degrees": 25, "interpolation": "bicubic"}}], 40, 4),
}
"""Recipes whose batches are sent at different places, the side of their images in pixels, and the bytes of a value there."""


@pytest.mark.by_day(1)
@pytest.mark.parametrize("jit", ["never", "always"])
@pytest.mark.parametrize("cut", list(CUTS))
def test_wherever_a_batch_is_sent_it_is_that_of_one_process(cut: str, jit: str, photos: Path, fleet: Fleet) -> None:
    steps, side, bytes_each = CUTS[cut]
    here, there = (pipeline(photos, {"jit": jit, **runtime}, transforms=steps) for runtime in ({}, fleet.runtime()))
    size = side * side * 3 * bytes_each + 8
    assert f"send     image, label from a worker to the trainer: {size:,} bytes an example" in there.explain()
    same(stream(there.train), stream(here.train))
    received = there.fed().bytes / max(1, there.fed().there) / 8
    assert size < received < size + 100, there.fed()  # with the numbers of the index
    resumed = pipeline(photos, {"jit": jit, **fleet.runtime()}, transforms=steps)
    iterator = iter(there.train)
    first = [next(iterator) for _ in range(2)]
    resumed.restore(there.state())
    close(stream([*first, *resumed.train]), epoch_of(here, 1))
    assert resumed.fed().there, resumed.fed()


@pytest.mark.nightly
def test_a_derived_dataset_has_its_own_memory(photos: Path, fleet: Fleet) -> None:
    here, there = (pipeline(photos, runtime, transforms=TINTED) for runtime in ({}, fleet.runtime()))
    same(stream(there.train.map(lambda x, y: (x * 2, y))), stream(here.train.map(lambda x, y: (x * 2, y))))
    assert there.fed().there, there.fed()


@pytest.mark.nightly
def test_examples_that_are_combined_and_shared_among_hosts_are_the_same(photos: Path, fleet: Fleet) -> None:
    spec = {"transforms": COMBINED, "output": {"encode": {"label": "one_hot"}}, "batch": {"size": 12}}
    share = {"shard": {"index": 1, "count": 3}}
    here, there = (pipeline(photos, share | runtime, **spec) for runtime in ({}, fleet.runtime()))
    same(stream(there.train), stream(here.train))
    assert there.fed().there, there.fed()


@pytest.mark.nightly
@pytest.mark.parametrize("index", [0, 1, 2])
def test_groups_that_hosts_share_are_combined_by_the_trainer(index: int, photos: Path, fleet: Fleet) -> None:
    """A worker sends whole groups, of which the trainer keeps the host's own rows; also in an epoch begun with another batch size."""
    spec = {"transforms": [{"resize": {"size": 64}}, TURN, {"mixup": {"alpha": 0.4}}], "output": {"encode": {"label": "one_hot"}}}
    share = {"shard": {"index": index, "count": 3}}
    here, there = (pipeline(photos, share | runtime, batch={"size": 12}, **spec) for runtime in ({}, fleet.runtime()))
    assert "12,296 bytes an example" in there.explain()
    same(stream(there.train), stream(here.train))
    first = pipeline(photos, share, batch={"size": 6}, **spec)
    next(iter(first.train))
    for pipe in (here, there):
        pipe.restore(first.state())
    before = there.fed().there
    same(stream(there.train), stream(here.train))
    assert there.fed().there > before > 0, there.fed()


@pytest.mark.nightly  # by day a loop takes them, and counts
def test_fit_takes_the_same_batches_and_counts_the_same_epochs(photos: Path, fleet: Fleet) -> None:
    import keras

    weights = []
    for runtime in ({}, fleet.runtime()):
        pipe = pipeline(photos, runtime, transforms=[RESIZE, "random_flip", {"rescale": {"to": [0, 1]}}])
        keras.utils.set_random_seed(1)
        kl = keras.layers
        model = keras.Sequential([keras.Input((24, 24, 3)), kl.AveragePooling2D(4), kl.Flatten(), kl.Dense(3, "softmax")])
        model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", jit_compile=False)
        model.fit(pipe.train, epochs=3, verbose=0, validation_data=pipe.validation)
        assert (pipe.state()["epoch"], pipe.state()["step"]) == (3, 0)
        weights.append(model.get_weights())
    assert pipe.fed().there, pipe.fed()
    same(*weights)


@pytest.mark.nightly  # by day batches of whole files come from a worker
def test_a_damaged_file_is_replaced_and_named_by_the_trainer(photos: Path, fleet: Fleet, tmp_path: Path) -> None:
    own = copytree(photos, tmp_path / "photos")
    (own / "rose" / "03.jpg").write_bytes(b"\xff\xd8\xff\xe0 this is no picture")
    errors = {"decode": {"skip": {"max_fraction": 0.5, "report": str(tmp_path / "damaged.jsonl")}}}
    skipping = {name: pipeline(own, runtime, errors=errors, splits={}) for name, runtime in (("here", {}), ("there", fleet.runtime()))}
    same(stream(skipping["there"].train), stream(skipping["here"].train))
    assert skipping["there"].fed().damaged == 1
    assert skipping["there"].fed().there >= 4
    assert "03.jpg" in (tmp_path / "damaged.jsonl").read_text()
    stopping = pipeline(own, fleet.runtime(), splits={})
    with pytest.raises(DataError, match=r"cannot decode .*rose/03\.jpg.*errors: \{decode: \{skip"):
        batches(stopping.train)


@pytest.mark.nightly
def test_nobody_at_the_address_costs_a_warning_and_no_batch(photos: Path, caplog: pytest.LogCaptureFixture) -> None:
    here = pipeline(photos)
    there = pipeline(photos, {"service": {"address": f"grpc://127.0.0.1:{free_port()}", "patience": "2s"}})
    same(stream(there.train), stream(here.train))
    assert (there.fed().there, there.fed().here) == (0, 4)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "so this process makes batches" in caplog.text


def test_servers_say_that_they_are_ready_and_stop_when_told(fleet: Fleet) -> None:
    assert "ready: dispatcher on port" in fleet.dispatcher.text
    assert "processor" in fleet.dispatcher.text
    fleet.dispatcher.wait_for(", 1 worker\n")
    other = fleet.begin_worker()
    other.wait_for("ready: ")
    fleet.dispatcher.wait_for(", 2 workers\n")
    told = other.end(signal.SIGTERM)
    assert "stopping: " in told
    assert told.rstrip().splitlines()[-1].startswith("stopped: worker 127.0.0.1:")


@pytest.mark.nightly
def test_bench_tells_what_workers_made(photos: Path, fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pipegen.cli.bench import measure

    pipe = pipeline(photos, fleet.runtime())
    figures = measure(pipe, "train", 16, lambda _: None)
    assert figures.service is not None
    assert figures.service["there"] >= 8
    assert figures.as_json(50)["service"] == figures.service
    lines = dict(line.split(None, 2)[1:] for line in figures.as_text(50).splitlines() if line.startswith("made "))
    assert lines["by"].startswith("workers")
    assert lines["here"].endswith("batches")
