"""Training in stages: each is the spec with its own values, at the epochs that it has; it goes on anywhere, also between two stages."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from pipes import batches, numbered, same, stream
from typing import TYPE_CHECKING, Any

import copies
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from resuming import Crash, backup_in, crash_at, memory, with_small_graph

import pipegen
from pipegen.errors import SpecError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf

TESTS = Path(__file__).parent
STAGES = [{"epochs": 2, "batch": 2}, {"epochs": 1, "batch": 4}, {"epochs": 2, "batch": 8}]
ENDS = [2, 3, 5]
RESIZED: dict[str, Any] = {
    "params": {"size": {"type": "int", "default": 6}},
    "transforms": [{"resize": {"size": "$size"}}, "random_flip", {"random_brightness": {"factor": {"step": {0: 0.1, 2: 0.4}}}}],
    "stages": [{"epochs": 2, "params": {"size": 4}, "batch": 4}, {"epochs": 2}],
}


def resized(**own: Any) -> Any:
    """A pipeline over 12 little images of all values, whose labels are their numbers."""
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3)).astype(np.uint8)
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, "row": {"kind": "tensor"}}}},
        "splits": {"parts": {"train": 8, "validation": 4}},
        "batch": {"size": 2},
        "output": {"x": "image", "y": "row", "dtype": "uint8"},
        **own,
    }
    runtime = {"jit": "never", "cache": "none"} | spec.pop("runtime", {})
    return pipegen.build(spec, runtime=runtime, data={"image": images, "row": np.arange(12, dtype=np.float32)})


@pytest.mark.nightly
def test_each_stage_is_the_spec_with_its_values_at_its_epochs() -> None:
    pipe = resized(**RESIZED)
    assert [(stage.initial_epoch, stage.epochs, stage.steps("train")) for stage in pipe.stages] == [(0, 2, 2), (2, 4, 4)]
    for stage, values in zip(pipe.stages, ({"size": 4}, {"size": 6}), strict=True):
        alone = {key: value for key, value in RESIZED.items() if key != "stages"} | {"batch": {"size": 4 if values["size"] == 4 else 2}}
        alone["params"] = {"size": {"type": "int", "default": values["size"]}}
        other = resized(**alone)
        assert stage.spec_hash == other.spec_hash
        for epoch in range(stage.initial_epoch, stage.epochs):
            assert pipe.state()["epoch"] == epoch
            same(stream(stage.train), stream(other.dataset("train", epoch=epoch)))
        same(stream(stage.validation), stream(other.validation))
    assert [stage.finished for stage in pipe.stages] == [True, True]
    assert pipe.train.element_spec[0].shape == (2, 6, 6, 3), "the last stage's, once all are over"


def test_the_pipeline_is_in_the_first_unfinished_stage_and_else_as_it_is_written() -> None:
    pipe = resized(**RESIZED)
    assert (pipe.train.element_spec[0].shape, pipe.steps("train")) == ((4, 4, 4, 3), 2)
    assert pipe.validation.element_spec[0].shape[1:] == (6, 6, 3)
    assert pipe.dataset("train", epoch=3).element_spec[0].shape == (2, 6, 6, 3)
    assert "stage 1, epochs 2 to 3, as written" in repr(pipe)
    assert "resize(size: 4)" in pipe.explain()
    pipe.seek(2)
    assert (pipe.train.element_spec[0].shape, pipe.steps("train"), pipe.stages[0].initial_epoch) == ((2, 6, 6, 3), 4, 2)
    again = pickle.loads(pickle.dumps(pipe.stages[1].spec))
    assert again.hash == pipe.stages[1].spec_hash
    assert resized(**{key: value for key, value in RESIZED.items() if key != "stages"}).stages == ()


def test_a_stage_that_is_over_says_so_and_one_to_come_begins_at_its_epoch() -> None:
    pipe = numbered(8, 4, stages=STAGES)
    first, second, _ = pipe.stages
    pipe.seek(2)
    with pytest.raises(StateError, match=r"ends before epoch 2, but the training is at epoch 2: continue with the next stage"):
        next(iter(first.train))
    assert list(first.train.map(lambda x, y: y).take(0)) == []
    pipe.seek(0)
    assert len(list(second.train)) == 2, "which is to skip the first one"
    assert pipe.state()["epoch"] == 3
    with pytest.raises(ValueError, match="5 epochs"):
        pipe.seek(5, 1)


@pytest.mark.nightly
def test_a_state_goes_on_within_any_stage() -> None:
    pipe = numbered(8, 4, stages=STAGES)
    whole: list[tuple[dict[str, Any], Any]] = []
    for stage in pipe.stages:
        for _ in range(stage.initial_epoch, stage.epochs):
            for _, row in stage.train:
                whole.append((pipe.state(), row.numpy().tolist()))
    assert [len(row) for _, row in whole] == [2] * 8 + [4] * 2 + [8] * 2
    assert [state["examples"] for state, _ in whole[8:10]] == [4, 0]
    plain = numbered(8, 4)._engine
    for epoch, taken in enumerate((whole[:4], whole[4:8], whole[8:10], whole[10:11], whole[11:])):
        assert [row for _, rows in taken for row in rows] == plain.order_of("train", epoch).tolist(), "one order for all"
    for number in (2, 7, 9):
        pipe.restore(whole[number][0])
        rest = []
        for stage in pipe.stages:
            for _ in range(stage.initial_epoch, stage.epochs):
                rest += [row.numpy().tolist() for _, row in stage.train]
        assert rest == [row for _, row in whole[number + 1 :]], number
    other = numbered(8, 4, stages=[STAGES[0], {"epochs": 2, "batch": 4}, STAGES[2]])
    with pytest.raises(StateError, match=r"stages\[1\]\.epochs: 1 → 2"):
        other.restore(whole[0][0])
    with pytest.raises(StateError, match="is at step 9 of an epoch that has 2"):
        pipe.restore({**whole[8][0], "step": 9})


def test_each_stage_needs_a_batch() -> None:
    assert numbered(8, 4, batch={"size": 64}, stages=[{"epochs": 1, "batch": 8}]).steps("train") == 1, (
        "that of the spec is not trained with"
    )
    with pytest.raises(SpecError) as told:
        numbered(8, 4, stages=[{"epochs": 1}, {"epochs": 1, "batch": 9}])
    (finding,) = told.value.diagnostics
    assert (finding.code, finding.labels[0].path) == ("PG407", "stages[1].batch")


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=4))
def test_the_batches_of_all_stages_are_counted_on(stages: list[tuple[int, int]]) -> None:
    from pipegen.phases.state import Timeline

    timeline = Timeline([epochs for epochs, _ in stages], [steps for _, steps in stages])
    places = [(epoch, step) for epoch in range(timeline.end) for step in range(timeline.steps[timeline.stage(epoch)])]
    assert [timeline.batches(*place) for place in places] == list(range(len(places)))
    assert [timeline.at(number) for number in range(len(places))] == places


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 7)), min_size=1, max_size=3), st.integers(1, 4), st.integers(1, 30))
def test_epochs_of_so_many_steps_go_through_one_permutation_after_another(stages: list[tuple[int, int]], steps: int, examples: int) -> None:
    import tensorflow as tf

    from pipegen.backend.index.order import Order

    seen: list[int] = []
    begin = 0, 0
    for epochs, batch in stages:
        order = Order(examples, batch, "drop", (0, 1), steps, begin=begin, kind="global", window=0, seed=3)
        for epoch in range(begin[0], begin[0] + epochs):
            for step in range(steps):
                cycle, position, _ = order.at(tf.constant(epoch, tf.int64), order.slots_of(tf.constant(step, tf.int64)))
                seen += (cycle * examples + position).numpy().tolist()
        begin = begin[0] + epochs, begin[1] + epochs * steps * batch
    assert seen == list(range(len(seen)))


@pytest.mark.nightly
def test_stages_that_cache_the_same_share_it_and_the_others_make_room() -> None:
    own = RESIZED | {"transforms": [{"resize": {"size": 5}}, {"random_crop": {"size": "$size"}}], "runtime": {"cache": "memory"}}
    own |= {"params": {"size": {"type": "int", "default": 5}}}
    pipe = resized(**own)
    caches = []
    for stage in pipe.stages:
        list(stage.train)
        caches.append(stage._engine.executor("train").cache)
        pipe.seek(stage.epochs)
    assert caches[0] is caches[1]
    own = RESIZED | {"runtime": {"cache": "memory"}}
    pipe = resized(**own)
    first, second = pipe.stages
    list(first.train)
    assert len(pipe._shared._caches) == 1
    pipe.seek(2)
    list(second.train)
    assert first._engine.executors() == (), "what it held is gone"


COMPILED = """
import json, os, sys
from test_training_stages import RESIZED, resized
pipe = resized(**RESIZED, runtime={"jit": "always", "cache": "none"})
seen = lambda: len({name.split(".")[0] for name in os.listdir(sys.argv[1]) if name.endswith("before_optimizations.txt")})
counts = []
for stage in pipe.stages:
    for begin in [*((epoch, 0) for epoch in range(stage.initial_epoch, stage.epochs)), (stage.epochs - 1, 1)]:
        pipe.seek(*begin)
        list(stage.train)
        counts.append([stage.index, seen()])
    pipe.seek(stage.epochs)
print(json.dumps(counts))
"""


@pytest.mark.nightly
def test_each_stage_compiles_its_kernels_once(tmp_path: Path) -> None:
    """XLA writes down every program that it compiles: later epochs of a stage, and one that is gone on with, add none."""
    (tmp_path / "xla").mkdir()
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "XLA_FLAGS": f"--xla_dump_to={tmp_path}/xla --xla_dump_hlo_as_text"}
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent), str(TESTS), environment.get("PYTHONPATH", "")])
    done = copies.run(COMPILED, str(tmp_path / "xla"), env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    counts = json.loads(done.stdout)
    assert [index for index, _ in counts] == [0, 0, 0, 1, 1, 1]
    (first,), (both,) = ({programs for index, programs in counts if index == stage} for stage in (0, 1))
    assert 0 < first < both, "each has kernels of its own"


# Keras


@pytest.fixture(scope="module")
def small() -> Any:
    """A pipeline whose batches are numbers, made by next to nothing."""
    pipe = numbered(8, 4, stages=STAGES)
    for stage in pipe.stages:
        with_small_graph(stage)
    pipe.release = lambda _before: None  # which would undo that
    return pipe


def train(pipe: Any, folder: Path | None, *more: Any, save_freq: Any = "epoch", model: Any = None, **options: Any) -> Any:
    """The loop of the documentation."""
    model = memory() if model is None else model
    for stage in pipe.stages:
        backup = [backup_in(folder, save_freq, **options)] if folder is not None else []
        callbacks = [*backup, stage.callback(folder), *more]
        model.fit(stage.train, initial_epoch=stage.initial_epoch, epochs=stage.epochs, callbacks=callbacks, verbose=0)
    return model


@pytest.fixture(scope="module")
def expected(small: Any) -> Any:
    """The model of a training that nothing broke off."""
    small.seek(0)
    model = train(small, None)
    assert [row[0] for row in model.trained] == [*range(8), 4, 5, 3, 4]
    return model


def test_fit_goes_through_the_stages_and_leaves_nothing_behind(small: Any, expected: Any, tmp_path: Path) -> None:
    small.seek(0)
    model = train(small, tmp_path / "ck")
    assert model.remembers == expected.remembers
    assert list(tmp_path.iterdir()) == []


class Removing:
    """Breaks off where Keras' callback has removed its folder for the n-th time, or where ours is about to put it back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, *, partly: bool = False) -> None:
        self.left, self.rmtree, self.partly = at, shutil.rmtree, partly
        import keras

        monkeypatch.setattr(keras.src.callbacks.backup_and_restore.file_utils, "rmtree", self)

    def __call__(self, path: Any) -> None:
        self.left -= 1
        if self.left or not self.partly:
            self.rmtree(path)
        else:
            next(Path(path).glob("*.weights.h5")).unlink()
        if not self.left:
            raise Crash


def breaks(monkeypatch: pytest.MonkeyPatch, small: Any, folder: Path, save_freq: Any) -> Iterator[tuple[str, Any]]:
    """Breaks a training off, each time elsewhere."""
    for at in (1, 4, 8, 9, 10, 11):
        yield f"behind batch {at}", lambda at=at: train(small, folder, crash_at(at), save_freq=save_freq)
    for at in (1, 2):
        for partly in (False, True):

            def removing(at: int = at, partly: bool = partly) -> None:
                with monkeypatch.context() as patched:
                    Removing(patched, at, partly=partly)
                    train(small, folder, save_freq=save_freq)

            yield f"while Keras removes its folder, partly: {partly}, for the {at}. time", removing
    for at, what in enumerate(("aside", "older", "aside again", "back"), 1):

        def renaming(at: int = at) -> None:
            left, replace = [at], os.replace

            def stopping(source: Any, target: Any, **at: Any) -> None:
                if "between-stages" in f"{source}{target}":
                    left[0] -= 1
                    if not left[0]:
                        raise Crash
                replace(source, target, **at)

            with monkeypatch.context() as patched:
                patched.setattr(os, "replace", stopping)
                train(small, folder, save_freq=save_freq)

        yield f"at a rename: {what}", renaming


@pytest.mark.parametrize(
    ("save_freq", "every"), [("epoch", 9), *(pytest.param(freq, 1, marks=pytest.mark.nightly) for freq in ("epoch", 1, 3))]
)
def test_a_training_that_is_broken_off_goes_on(
    small: Any, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_freq: Any, every: int
) -> None:
    cases = list(breaks(monkeypatch, small, tmp_path / f"{save_freq}", save_freq))
    for number, (where, breaking) in list(enumerate(cases))[every // 2 :: every]:
        shutil.rmtree(tmp_path / f"{save_freq}", ignore_errors=True)
        small.seek(0)
        with pytest.raises(Crash):
            breaking()
        small.seek(4 if number % 2 else 0)  # a new process knows nothing
        small.seek(0)
        model = train(small, tmp_path / f"{save_freq}", save_freq=save_freq)
        assert (model.remembers, int(model.optimizer.iterations)) == (expected.remembers, 12), where
        assert list(tmp_path.iterdir()) == [], where


def test_a_stage_that_is_stopped_early_is_over(small: Any, tmp_path: Path) -> None:
    import keras

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = epoch == 0

    for folder in (tmp_path / "ck", None):
        small.seek(0)
        model = train(small, folder, Stop())
        assert [row[0] for row in model.trained] == [*range(4), 4, 5, 3, 4]


def test_what_does_not_go_with_stages_is_refused(small: Any) -> None:
    small.seek(0)
    first, second, _ = small.stages
    with pytest.raises(StateError, match="epoch 0 is not in stage 1, which has epochs 2 to 2"):
        memory().fit(second.train, epochs=3, callbacks=[second.callback()], verbose=0)
    with pytest.raises(StateError, match="leave out `steps_per_epoch`"):
        memory().fit(first.train, epochs=2, steps_per_epoch=3, callbacks=[small.callback()], verbose=0)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_processes_that_are_killed_at_the_ends_of_stages(tmp_path: Path, expected: Any) -> None:
    """`kill -9` behind the last batch, while Keras removes its folder, behind that, at each rename, and between two calls of `fit`."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"}
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent), str(TESTS), environment.get("PYTHONPATH", "")])
    command = [sys.executable, str(TESTS / "killed_stages.py"), str(tmp_path / "ck")]
    for how in ("batch:8", "removed:1", "rename:1", "rename:2", "rename:3", "rename:4", "fit:1", "removed:2", "fit:2"):
        done = subprocess.run([*command, how], capture_output=True, text=True, timeout=120, check=False, env=environment)
        assert done.returncode == -signal.SIGKILL, (how, done.stderr[-2000:])
    done = subprocess.run([*command, "never:0"], capture_output=True, text=True, timeout=120, check=False, env=environment)
    remembers, iterations, here = done.stdout.split()
    pipe = numbered(8, 4, stages=STAGES)
    whole = train(pipe, None)
    assert (int(remembers), int(iterations)) == (whole.remembers, 12), done.stderr[-2000:]
    assert int(here) == 2, "the last process did no more than the last stage"
    assert not (tmp_path / "ck").exists()


@pytest.mark.nightly
def test_batches_of_a_stage_are_whole(small: Any) -> None:
    assert [len(batches(stage.dataset("train", epoch=end - 1))) for stage, end in zip(small.stages, ENDS, strict=True)] == [4, 2, 1]
