"""`state` and `restore`: JSON that says where a run stands, and refuses, in words, what it does not fit."""

from __future__ import annotations

import json
import shutil
from pipes import GEOMETRY, epoch_of, pipeline, same, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


def advance(pipe: Any, steps: int) -> dict[str, Any]:
    """Hand over some batches, then give the state as it would come back from a file."""
    it = iter(pipe.train)
    for _ in range(steps):
        next(it)
    return json.loads(json.dumps(pipe.state()))


def standing(pipe: Any, step: int) -> dict[str, Any]:
    """The state that `advance` gives, without handing anything over."""
    pipe.seek(0, step)
    return json.loads(json.dumps(pipe.state()))


@pytest.fixture
def pipe(photo_folder: Path) -> Any:
    made = shared(photo_folder)
    made.seek(0, 0)
    return made


@pytest.mark.smoke
def test_a_state_is_restored_in_another_process_s_pipeline(pipe: Any, photo_folder: Path) -> None:
    list(pipe.train)
    saved = advance(pipe, 3)
    assert (saved["epoch"], saved["step"], saved["examples"]) == (1, 3, 24)
    other = pipeline(photo_folder)
    other.restore(saved)
    assert other.state() == pipe.state() == saved
    same(stream(other.train), epoch_of(pipe, 1, 3))
    same(stream(other.train), epoch_of(pipe, 2))


def test_seek_lets_the_next_epoch_begin_anywhere(pipe: Any) -> None:
    pipe.seek(2, 3)
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (2, 3)
    same(stream(pipe.train), stream(pipe.dataset("train", epoch=2, step=3)))
    pipe.seek(5)
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (5, 0)
    pipe.seek(5, pipe.steps("train"))
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (6, 0), "behind the last step the next epoch begins"


@pytest.mark.parametrize(("epoch", "step"), [(-1, 0), (0, -1), (0, 5)])
def test_seek_takes_the_places_that_dataset_takes(pipe: Any, epoch: int, step: int) -> None:
    said = f"epoch {epoch}, step {step} is not in split 'train', whose epochs have 4 steps"
    pipe.seek(1, 2)
    with pytest.raises(ValueError, match=said):
        pipe.seek(epoch, step)
    with pytest.raises(ValueError, match=said):
        pipe.dataset("train", epoch=epoch, step=step)
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (1, 2), "nothing was moved"


def test_without_a_training_split_there_is_nowhere_to_seek(photo_folder: Path) -> None:
    with pytest.raises(KeyError, match="there is no split 'train'"):
        shared(photo_folder, splits={"parts": {"validation": 0.5, "test": 0.5}}).seek(0)


def test_a_state_is_small(pipe: Any) -> None:
    assert len(json.dumps(pipe.state())) < 4096


def test_a_state_after_the_last_batch_is_the_next_epoch(pipe: Any) -> None:
    saved = advance(pipe, 4)
    assert (saved["epoch"], saved["step"]) == (1, 0)


def test_restore_goes_back_as_well(pipe: Any) -> None:
    saved = advance(pipe, 1)
    first = stream(pipe.train)
    list(pipe.train)
    pipe.restore(saved)
    same(stream(pipe.train), [part[8:] for part in first])


def test_runtime_names_and_paths_do_not_matter(pipe: Any, photo_folder: Path, tmp_path: Path) -> None:
    saved = advance(pipe, 2)
    assert saved == standing(pipe, 2)
    moved = shutil.copytree(photo_folder, tmp_path / "moved")
    other = pipeline(moved, {"threads": 1, "cache": "memory", "prefetch": "none"}, name="renamed", description="other words")
    other.restore(saved)
    same(stream(other.train), epoch_of(pipe, 0, 2))


@pytest.mark.parametrize(("own", "words"), [
    ({"seed": 5}, "seed: 0 → 5"),
    ({"transforms": [*GEOMETRY, "grayscale"]}, "transforms[4].grayscale: it is new"),
    ({"transforms": [*GEOMETRY[:2], {"random_rotation": {"degrees": 10}}, GEOMETRY[3]]}, "transforms[2].random_rotation.degrees: 25"),
    ({"shuffle": "none"}, "shuffle: global → none"),
    ({"splits": {"parts": {"train": 0.5, "validation": 0.5}}}, "splits.parts.train: 0.75 → 0.5"),
    ({"batch": {"size": 4, "remainder": "keep"}}, "batch.size: 8 → 4"),
], ids=["seed", "step", "argument", "shuffle", "splits", "remainder"])  # fmt: skip
def test_a_mismatch_says_in_words_what_differs(pipe: Any, photo_folder: Path, own: dict[str, Any], words: str) -> None:
    saved = standing(pipe, 1)
    other = pipeline(photo_folder, **own)
    with pytest.raises(StateError) as caught:
        other.restore(saved)
    assert words in str(caught.value)
    assert (other.state()["epoch"], other.state()["step"]) == (0, 0), "a refused state moves nothing"


def test_other_data_is_refused(pipe: Any, photo_folder: Path, tmp_path: Path) -> None:
    saved = standing(pipe, 1)
    folder = shutil.copytree(photo_folder, tmp_path / "photos")
    shutil.copy(folder / "rose" / "00.jpg", folder / "rose" / "new.jpg")
    with pytest.raises(StateError, match="files or rows were added, removed, renamed or changed"):
        pipeline(folder).restore(saved)


@pytest.mark.parametrize("state", [{}, {"epoch": 1, "step": 2}, {"pipegen_state": 99}, {"pipegen_state": 1, "epoch": 1}])
def test_what_is_no_state_is_refused(pipe: Any, state: dict[str, Any]) -> None:
    with pytest.raises(StateError):
        pipe.restore(state)


def test_a_state_with_another_hash_alone_is_refused_in_words(pipe: Any) -> None:
    with pytest.raises(StateError, match="only its hash differs"):
        pipe.restore({**pipe.state(), "spec_hash": "0" * 64})


@pytest.mark.parametrize("saved", [{}, {"batch": {"size": 8}}, {"unheard": 1}, []])
def test_a_state_of_a_spec_in_another_form_is_refused(pipe: Any, saved: Any) -> None:
    with pytest.raises(StateError):
        pipe.restore({**pipe.state(), "spec_hash": "0" * 64, "spec": saved})


@pytest.mark.parametrize("own", [{"step": -3}, {"step": "x"}, {"epoch": 1.5}, {"step": 99}])
def test_positions_that_are_none_are_refused(pipe: Any, own: dict[str, Any]) -> None:
    with pytest.raises(StateError):
        pipe.restore({**pipe.state(), **own})


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_damaged_state_file_is_named(pipe: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "pipegen.state.json").write_text(text)
    with pytest.raises(StateError, match=r"pipegen\.state\.json.*remove it to start again"):
        pipe.callback(tmp_path).on_train_begin()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("size", [4, 16])
def test_another_batch_size_goes_on_at_the_same_example(pipe: Any, photo_folder: Path, size: int) -> None:
    saved = standing(pipe, 2)
    other = pipeline(photo_folder, batch={"size": size})
    other.restore(saved)
    assert other.state()["examples"] == 16
    same(stream(other.train), epoch_of(pipe, 0, 2))


@pytest.mark.nightly
def test_another_batch_size_with_epochs_of_steps(photo_folder: Path) -> None:
    own: dict[str, Any] = {"epoch": {"steps": 3}, "splits": {"parts": {"train": 29, "validation": 5}}}
    one, other = pipeline(photo_folder, **own), pipeline(photo_folder, **own, batch={"size": 4})
    list(one.train)
    saved = advance(one, 1)
    other.restore(saved)
    assert (other.state()["epoch"], other.state()["step"]) == (1, 1), "the epoch keeps its number, and has two steps left"
    rest = [np.concatenate(parts) for parts in zip(stream(other.train), stream(other.train), strict=True)]
    assert len(rest[0]) == 2 * 4 + 3 * 4
    same([part[:16] for part in rest], epoch_of(one, 1, 1))


def test_a_restored_callback_less_loop_equals_an_uninterrupted_one(photo_folder: Path) -> None:
    """A loop that dies after any batch and goes on from its last state sees the stream of one that never died."""
    made = shared(photo_folder)
    whole = [np.concatenate(parts) for parts in zip(*(epoch_of(made, e) for e in range(2)), strict=True)]
    rng = np.random.default_rng(0)
    made.seek(0, 0)
    saved, served = made.state(), []
    while sum(len(b[1]) for b in served) < 64:
        made.seek(0, 0)
        made.restore(json.loads(json.dumps(saved)))
        it = iter(made.train)
        for _ in range(int(rng.integers(1, 4))):
            try:
                served.append(next(it))
            except StopIteration:
                break
            saved = made.state()
    same([part[:64] for part in stream(served)], whole)
