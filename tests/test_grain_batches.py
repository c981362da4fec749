"""`pipe.grain` gives Grain what `pipe.train` gives TensorFlow, and its iterators go on where they were saved."""

from __future__ import annotations

import json
from pathlib import Path
from pipes import RESIZE, pipeline
from typing import Any

import numpy as np
import pytest

from pipegen.errors import StateError

grain = pytest.importorskip("grain")

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return pipeline(photo_folder, transforms=[RESIZE, "random_flip"])


def arrays(batches: Any) -> list[Any]:
    return [tuple(np.array(part) for part in batch) for batch in batches]


def check_same(given: list[Any], expected: list[Any]) -> None:
    assert len(given) == len(expected)
    for own, other in zip(given, expected, strict=True):
        for part, due in zip(own, other, strict=True):
            np.testing.assert_array_equal(part, due)


def test_an_iteration_is_an_epoch(pipe: Any) -> None:
    pipe.seek(0)
    data = pipe.grain("train")
    for epoch in range(2):
        assert pipe.state()["epoch"] == epoch
        check_same(arrays(data), arrays(pipe.dataset("train", epoch=epoch)))
    assert len(data) == pipe.steps("train")
    for _ in range(2):
        check_same(arrays(pipe.grain("validation")), arrays(pipe.dataset("validation")))


@pytest.mark.parametrize("split", ["train", "validation"])
def test_an_iterator_goes_on_from_each_state(pipe: Any, split: str) -> None:
    """Also from the state before the first batch, and behind the last."""
    pipe.seek(1)
    data = pipe.grain(split)
    iterator = iter(data)
    states, given = [iterator.get_state()], []
    for batch in iterator:
        given += arrays([batch])
        states.append(iterator.get_state())
    assert len(given) == len(data) > 1
    assert {(*state,) for state in states} == {("epoch", "step", "origin", "shift", "hash")}
    for step, state in enumerate(states):
        pipe.seek(4)
        other = iter(pipe.grain(split))
        other.set_state(json.loads(json.dumps(state)))
        assert other.get_state() == state
        check_same(arrays(other), given[step:])
        assert split != "train" or pipe.state()["epoch"] == 2


@pytest.mark.nightly
def test_transformations_of_grain_follow(pipe: Any) -> None:
    pipe.seek(0)
    expected = arrays(pipe.dataset("train", epoch=0))
    halved = pipe.grain("train").map(lambda batch: (batch[0] / 2, batch[1]))
    check_same(arrays(halved), [(x / 2, y) for x, y in expected])
    threads = grain.experimental.ThreadPrefetchIterDataset(pipe.grain("validation"), prefetch_buffer_size=2)
    check_same(arrays(threads), arrays(pipe.dataset("validation")))
    pipe.seek(0)
    twice = grain.experimental.RepeatIterDataset(pipe.grain("train"), num_epochs=2)
    check_same(arrays(twice), expected * 2)  # as it says: each epoch is the same


def test_shapes_are_known(pipe: Any) -> None:
    image, label = grain.experimental.get_element_spec(pipe.grain("validation"))
    x, y = next(iter(pipe.grain("validation")))
    assert (image.shape, image.dtype) == (x.shape, x.dtype)
    assert (label.shape, label.dtype) == (y.shape, y.dtype)


def test_worker_processes_are_refused(pipe: Any) -> None:
    flags = pytest.importorskip("absl.flags").FLAGS
    flags.mark_as_parsed()
    options = grain.multiprocessing.MultiprocessingOptions(num_workers=1)
    with pytest.raises(ValueError, match="leave `mp_prefetch` out"):
        pipe.grain("train").mp_prefetch(options)
    with pytest.raises((TypeError, ValueError), match="leave `mp_prefetch` out"):
        next(iter(pipe.grain("train").map(len).mp_prefetch(options)))


def test_a_state_of_something_else_is_refused(pipe: Any, photo_folder: Path) -> None:
    iterator = iter(pipe.grain("train"))
    with pytest.raises(StateError, match="not a state of a Grain iterator"):
        iterator.set_state({"step": 1})
    state = iterator.get_state()
    for wrong in ({"step": -1}, {"step": 100}, {"step": "x"}, {"epoch": -1}, {"epoch": None}):
        with pytest.raises(StateError, match="of no place in split `train`"):
            iterator.set_state({**state, **wrong})
    other = iter(pipeline(photo_folder, transforms=[RESIZE]).grain("train"))
    with pytest.raises(StateError, match="of another spec, or of other data"):
        iterator.set_state(other.get_state())
    with pytest.raises(StateError, match="of another spec, or of other data"):
        iterator.set_state(iter(pipe.grain("validation")).get_state())
    iterator.close()
    with pytest.raises(ValueError, match="closed"):
        next(iterator)


def test_grain_s_own_check_of_checkpoints(pipe: Any) -> None:
    grain.experimental.assert_equal_output_after_checkpoint(pipe.grain("validation"))


@pytest.mark.nightly
def test_orbax_saves_and_restores_it(pipe: Any, tmp_path: Path) -> None:
    ocp = pytest.importorskip("orbax.checkpoint")
    pipe.seek(2)
    iterator = iter(pipe.grain("train"))
    next(iterator)
    with ocp.CheckpointManager(tmp_path) as manager:
        manager.save(1, args=ocp.args.Composite(data=grain.checkpoint.CheckpointSave(iterator)))
        manager.wait_until_finished()
        rest = arrays(iterator)
        pipe.seek(0)
        other = iter(pipe.grain("train"))
        manager.restore(1, args=ocp.args.Composite(data=grain.checkpoint.CheckpointRestore(other)))
    check_same(arrays(other), rest)


@pytest.mark.nightly
def test_keras_fits_on_it(pipe: Any) -> None:
    import keras

    pipe.seek(0)
    model = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(3)])
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(pipe.grain("train"), validation_data=pipe.grain("validation"), epochs=2, verbose=0).history
    assert len(history["loss"]) == len(history["val_loss"]) == 2
    assert pipe.state()["epoch"] == 2


@pytest.mark.by_day(1)
@pytest.mark.parametrize("mode", ["int", "binary", None])
def test_keras_utility_in_the_format_of_grain(mode: Any, photo_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pipegen.compat import image_dataset_from_directory

    classes = sorted(path.name for path in photo_folder.iterdir() if path.is_dir())[:2]
    asked: dict[str, Any] = {
        "label_mode": mode,
        "class_names": classes,
        "seed": 3,
        "image_size": (20, 24),
        "validation_split": 0.5,
        "batch_size": 4,
    }
    plain = image_dataset_from_directory(str(photo_folder), subset="both", **asked)
    made = image_dataset_from_directory(str(photo_folder), subset="both", format="grain", **asked)
    for data, own in zip(plain, made, strict=True):
        assert isinstance(own, grain.IterDataset)
        assert (own.class_names, own.file_paths) == (data.class_names, data.file_paths)
        wrapped = [(batch,) if mode is None else batch for batch in own]
        due = [(batch,) if mode is None else batch for batch in data]
        check_same(arrays(wrapped), arrays(due))
        spec = grain.experimental.get_element_spec(own)
        assert (spec if mode is None else spec[0]).shape == (4, 20, 24, 3)
        assert mode is None or spec[1].dtype == wrapped[0][1].dtype
