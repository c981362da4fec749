"""A run of `fit` that is broken off at any point, and resumed, is trained on the batches of the run that was not, in their order."""

from __future__ import annotations

import itertools
import shutil
from contextlib import suppress
from pipes import numbered
from typing import TYPE_CHECKING, Any

import pytest
from resuming import Crash, backup_in, crash_at, digest_of, memory, with_small_graph

from pipegen.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

EPOCHS = 3
KINDS: dict[str, dict[str, Any]] = {"finite": {}, "3 of 4": {"steps_per_epoch": 3}, "6 of 4": {"steps_per_epoch": 6}}
"""What is handed to `fit`: `pipe.train`, or `pipe.train.repeat()` with epochs that are not the pipeline's."""
SAVES = [1, 3, 4, "epoch"]


@pytest.fixture(scope="module")
def pipe() -> Any:
    """4 batches an epoch."""
    return numbered(8, 4)


def fit(pipe: Any, model: Any, kind: str, *callbacks: Any, **own: Any) -> Any:
    data = pipe.train if kind == "finite" else pipe.train.repeat()
    return model.fit(data, **{"epochs": EPOCHS, "verbose": 0, "callbacks": list(callbacks), **KINDS[kind], **own})


def resumed(pipe: Any, folder: Path, kind: str, save_freq: Any, execution: int = 1) -> Any:
    """Returns the model of a new process that goes on to the end."""
    pipe.seek(7, 1)
    model = memory(execution)
    fit(pipe, model, kind, backup_in(folder, save_freq), pipe.callback(folder))
    return model


@pytest.fixture(scope="module")
def small() -> Any:
    """The same with batches that are numbers: 0, 1, 2, …"""
    return with_small_graph(numbered(8, 4))


@pytest.fixture(scope="module")
def whole(pipe: Any) -> Any:
    """The model of the run that nothing broke off."""
    pipe.seek(0, 0)
    model = memory()
    fit(pipe, model, "finite", pipe.callback())
    rows = [tuple(int(row) for row in y.numpy()) for epoch in range(EPOCHS) for _, y in pipe.dataset("train", epoch=epoch)]
    assert model.trained == rows
    assert len(set(rows)) > 4, "or one epoch could not be told from another"
    return model


@pytest.mark.parametrize(("kind", "execution", "batches"), [("finite", 1, 12), ("3 of 4", 1, 9), ("6 of 4", 2, 18), ("3 of 4", 2, 12)])
def test_the_run_that_nothing_broke_off(small: Any, kind: str, execution: int, batches: int) -> None:
    model = memory(execution)
    fit(small, model, kind, small.callback())
    assert model.trained == [(number,) for number in range(batches)], "where executions do not divide an epoch, Keras makes it longer"
    assert model.remembers == digest_of(model.trained)


def check_every_crash(pipe: Any, folder: Path, kind: str, save_freq: Any, execution: int, every: int = 1) -> None:
    """Breaks runs off after every batch of two epochs, and at every save: in the write of the weights, before that of the epoch, behind.

    Or at one in so many of those places.
    """
    expected = memory(execution)
    fit(pipe, expected, kind, pipe.callback())
    batches = 2 * KINDS[kind].get("steps_per_epoch", 4)
    cases = [("batch", at) for at in range(execution, batches + 1, execution)]
    cases += [(how, save) for how in ("torn", "saved", "cut") for save in range(1, 4)]
    for how, at in cases[::every]:
        where = f"{kind}, save_freq={save_freq}, {execution} steps per execution, crash at {how} {at}"
        shutil.rmtree(folder, ignore_errors=True)
        pipe.seek(0, 0)
        backup = backup_in(folder, save_freq, at if how != "batch" else 0, torn=how == "torn", cut=how == "cut")
        crash = [crash_at(at)] if how == "batch" else []
        model = memory(execution)
        try:
            fit(pipe, model, kind, backup, pipe.callback(folder), *crash)
        except Crash:
            assert len(model.trained) < len(expected.trained) or how != "batch", where
        else:
            continue  # fewer saves than that
        again = resumed(pipe, folder, kind, save_freq, execution)
        assert (again.remembers, int(again.optimizer.iterations)) == (expected.remembers, len(expected.trained)), where
        assert not folder.exists(), "the end removes what was saved"


@pytest.mark.filterwarnings("ignore:.*ran out of data")  # where executions do not divide a pass that is resumed
@pytest.mark.parametrize(
    ("kind", "save_freq", "execution", "every"),
    [
        ("6 of 4", 3, 2, 4),
        *(
            pytest.param(kind, save_freq, execution, 1, marks=pytest.mark.nightly)
            for kind, save_freq, execution in itertools.product(KINDS, SAVES, (1, 2, 3))
        ),
    ],
)
def test_every_crash(small: Any, tmp_path: Path, kind: str, save_freq: Any, execution: int, every: int) -> None:
    """By day one in four of a kind, as `test_keras.py` does epochs of 3 of 4; the others are tried nightly."""
    check_every_crash(small, tmp_path / "ck", kind, save_freq, execution, every)


def crashed(pipe: Any, folder: Path, at: int, *, save_freq: Any = 3, kind: str = "finite", model: Any = None, **own: Any) -> Any:
    """Returns the model of a run that was broken off after so many batches."""
    pipe.seek(0, 0)
    model = memory() if model is None else model
    with pytest.raises(Crash):
        fit(pipe, model, kind, backup_in(folder, save_freq), pipe.callback(folder), crash_at(at), **own)
    return model


@pytest.mark.nightly
def test_a_run_that_is_broken_off_again_and_again(pipe: Any, whole: Any, tmp_path: Path) -> None:
    """Keras' callback forgets the epoch that it was resumed in, and tells the next process epoch 0."""
    crashed(pipe, tmp_path / "ck", 6)
    for at in (2, 1, 3):
        model = memory()
        pipe.seek(0, 3)
        with pytest.raises(Crash):
            fit(pipe, model, "finite", backup_in(tmp_path / "ck", 1), pipe.callback(tmp_path / "ck"), crash_at(at))
    again = resumed(pipe, tmp_path / "ck", "finite", 1)
    assert again.remembers == whole.remembers
    assert len(again.trained) == 12 - 6 - 2 - 1 - 3


def test_the_callback_in_front_of_the_one_that_restores(pipe: Any, whole: Any, tmp_path: Path) -> None:
    """It finds the position where Keras tells the right epoch, and says where to put it otherwise."""
    crashed(pipe, tmp_path / "ck", 7)
    model = memory()
    fit(pipe, model, "finite", pipe.callback(tmp_path / "ck"), backup_in(tmp_path / "ck", 3))
    assert model.remembers == whole.remembers
    crashed(pipe, tmp_path / "ck", 4, save_freq=4)
    with pytest.raises(
        StateError, match=r"step 0 of epoch 1 with 4 steps an epoch, but `fit` begins with epoch 0: put `pipe.callback` after"
    ):
        fit(pipe, memory(), "finite", pipe.callback(tmp_path / "ck"), backup_in(tmp_path / "ck", 4))
    assert resumed(pipe, tmp_path / "ck", "finite", 4).remembers == whole.remembers, "the advice works"


@pytest.mark.parametrize("lost", ["record", pytest.param("folder of its own", marks=pytest.mark.nightly), "no folder"])
def test_weights_without_a_record(pipe: Any, whole: Any, tmp_path: Path, lost: str) -> None:
    """The optimizer has trained nothing else, so its count is the position."""
    crashed(pipe, tmp_path / "ck", 7)
    (tmp_path / "ck" / "pipegen.state.json").unlink()
    ours = {"record": tmp_path / "ck", "folder of its own": tmp_path / "other", "no folder": None}[lost]
    model = memory()
    fit(pipe, model, "finite", backup_in(tmp_path / "ck", 3), pipe.callback(ours))
    assert model.remembers == whole.remembers
    again = memory()
    fit(pipe, again, "finite", pipe.callback(), epochs=1)
    assert len(again.trained) == 4, "a fit afterwards begins where it is told"


@pytest.mark.nightly
def test_weights_of_an_optimizer_with_a_past_need_the_record(pipe: Any, tmp_path: Path) -> None:
    """The optimizer has run for an earlier `fit`: then only the record knows where this one began."""

    def warmed_up() -> Any:
        pipe.seek(0, 0)
        model = memory()
        fit(pipe, model, "finite", pipe.callback(), epochs=1)
        return model

    expected = warmed_up()
    fit(pipe, expected, "finite", pipe.callback())
    crashed(pipe, tmp_path / "ck", 4 + 6, model=warmed_up())
    shutil.copytree(tmp_path / "ck", tmp_path / "bare")
    (tmp_path / "bare" / "pipegen.state.json").unlink()
    assert resumed(pipe, tmp_path / "ck", "finite", 3).remembers == expected.remembers
    with pytest.raises(
        StateError,
        match=r"the optimizer has run 10 times, which is step 2 of epoch 2 .* begins with epoch 1.* keeps a record",
    ):
        resumed(pipe, tmp_path / "bare", "finite", 3)


@pytest.mark.parametrize("at", [pytest.param(4, marks=pytest.mark.nightly), 6, 9])
def test_checkpoints_of_keras_alone(pipe: Any, whole: Any, tmp_path: Path, at: int) -> None:
    """`ModelCheckpoint` keeps the optimizer's count with the weights; the callback finds the epoch and tells `fit`."""
    import keras

    pipe.seek(0, 0)
    file = tmp_path / "last.weights.h5"
    keep = keras.callbacks.ModelCheckpoint(str(file), save_weights_only=True, save_freq=2)
    with pytest.raises(Crash):
        fit(pipe, memory(), "finite", keep, pipe.callback(tmp_path), crash_at(at))
    pipe.seek(5, 2)
    model = memory()
    model.optimizer.build(model.trainable_variables)
    model.load_weights(file)
    assert int(model.optimizer.iterations) == at // 2 * 2
    history = fit(pipe, model, "finite", keep, pipe.callback(tmp_path))
    assert model.remembers == whole.remembers
    assert history.epoch == list(range(at // 2 * 2 // 4, EPOCHS))


def test_best_weights_of_a_finished_run(pipe: Any, whole: Any, tmp_path: Path) -> None:
    """Older weights than the record: their own position counts."""
    import keras

    pipe.seek(0, 0)
    keep = keras.callbacks.ModelCheckpoint(str(tmp_path / "{epoch}.weights.h5"), save_weights_only=True)
    fit(pipe, memory(), "finite", keep, pipe.callback(tmp_path))
    model = memory()
    model.optimizer.build(model.trainable_variables)
    model.load_weights(tmp_path / "2.weights.h5")
    fit(pipe, model, "finite", pipe.callback(tmp_path))
    assert model.remembers == whole.remembers


def test_a_damaged_checkpoint_and_the_one_before(pipe: Any, whole: Any, tmp_path: Path) -> None:
    """With `double_checkpoint`, Keras goes back to older weights, and the position goes with them."""
    folder = tmp_path / "ck"
    pipe.seek(0, 0)
    with pytest.raises(Crash):
        fit(pipe, memory(), "finite", backup_in(folder, 3, cut=True), pipe.callback(folder), crash_at(10))
    (folder / "latest.weights.h5").write_bytes(b"cut short")
    model = memory()
    fit(pipe, model, "finite", backup_in(folder, 3, cut=True), pipe.callback(folder))
    assert model.remembers == whole.remembers
    assert len(model.trained) == 12 - 6


def structure_missing(content: bytes) -> bytes:
    """What a stop leaves in the middle of the last step of HDF5: the names at the front of the file lead nowhere."""
    half = len(content) // 2
    return content[:half] + bytes(len(content) - half)


def header_old(content: bytes) -> bytes:
    """The same before the very last write, that of the header, which says where the file ends."""
    return content[:40] + (2048).to_bytes(8, "little") + content[48:]


DAMAGES: dict[str, Any] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "one byte less": lambda content: content[:-1],
    "no HDF5": lambda content: b"cut short",
    "structure": structure_missing,
    "header": header_old,
}


def stopped(pipe: Any, folder: Path, damage: str, *names: str, save_freq: Any = 3, at: int = 10) -> None:
    """Leaves what a run has written that was stopped after so many batches, with damage in some of its files."""
    pipe.seek(0, 0)
    with pytest.raises(Crash):
        fit(pipe, memory(), "finite", backup_in(folder, save_freq, cut=True), pipe.callback(folder), crash_at(at))
    for name in names:
        file = folder / name
        file.write_bytes(DAMAGES[damage](file.read_bytes()))


@pytest.mark.by_day(2)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("double", [True, False])
def test_weights_that_are_not_whole(small: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str, double: bool) -> None:
    """Whatever Keras would say of them, and with whatever it is told now: the run goes on from the weights before, and says so."""
    folder = tmp_path / "ck"
    stopped(small, folder, damage, "latest.weights.h5")
    small.seek(7, 1)
    model = memory()
    with caplog.at_level("WARNING", logger="pipegen"):
        fit(small, model, "finite", backup_in(folder, 3, cut=double), small.callback(folder))
    assert model.trained == [(number,) for number in range(6, 12)]
    assert model.remembers == digest_of([(number,) for number in range(12)])
    assert f"{folder / 'latest.weights.h5'} cannot be read" in caplog.text


@pytest.mark.parametrize("damage", [pytest.param("empty", marks=pytest.mark.nightly), "half"])
def test_a_record_of_the_epoch_that_is_not_whole(small: Any, tmp_path: Path, damage: str) -> None:
    for number, older in enumerate((True, False)):
        folder = tmp_path / f"ck{number}"
        stopped(small, folder, damage, "training_metadata.json")
        if not older:
            (folder / "training_metadata.json.bkp").unlink()
        small.seek(7, 1)
        model = memory()
        fit(small, model, "finite", backup_in(folder, 3, cut=True), small.callback(folder))
        assert model.trained == [(number,) for number in range(9, 12)]
        assert model.remembers == digest_of([(number,) for number in range(12)])


def test_the_weights_before_alone(small: Any, tmp_path: Path) -> None:
    """Where someone has removed the file that cannot be read, the one before takes its place."""
    stopped(small, tmp_path / "ck", "half")
    (tmp_path / "ck" / "latest.weights.h5").unlink()
    small.seek(7, 1)
    model = memory()
    fit(small, model, "finite", backup_in(tmp_path / "ck", 3), small.callback(tmp_path / "ck"))
    assert model.trained == [(number,) for number in range(6, 12)]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("kept", ["none before", "neither"])
def test_no_weights_that_can_be_read(small: Any, tmp_path: Path, kept: str) -> None:
    """The error names the folder and two ways on, and each of them works."""
    both = ("latest.weights.h5", "latest.weights.h5.bkp")
    for way in ("anew", "other weights"):
        folder = tmp_path / way
        stopped(small, folder, "half", *(both if kept == "neither" else both[:1]))
        if kept == "none before":
            (folder / both[1]).unlink()
        small.seek(0, 0)
        words = "cannot be read either" if kept == "neither" else "no older ones exist"
        with pytest.raises(StateError, match=words) as told:
            fit(small, memory(), "finite", backup_in(folder, 3), small.callback(folder))
        assert f"the weights in {str(folder)!r} cannot be read: latest.weights.h5 is incomplete" in str(told.value)
        assert "double_checkpoint=True" in str(told.value)
        names = ["latest.weights.h5*", "training_metadata.json*", *(["pipegen.state.json"] if way == "anew" else [])]
        for file in [file for name in names for file in folder.glob(name)]:
            file.unlink()
        model = memory()
        if way == "other weights":
            before = memory()
            small.seek(0, 0)
            with pytest.raises(Crash):
                fit(small, before, "finite", crash_at(5))
            before.save_weights(tmp_path / "other.weights.h5")
            model.optimizer.build(model.trainable_variables)
            model.load_weights(tmp_path / "other.weights.h5")
        fit(small, model, "finite", backup_in(folder, 3), small.callback(folder))
        assert model.trained == [(number,) for number in range(0 if way == "anew" else 5, 12)]
        assert model.remembers == digest_of([(number,) for number in range(12)])


def test_weights_that_another_process_writes_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 locks a file that is written; and what this user may not read is not damaged."""
    import h5py

    from pipegen.phases.state import Checkpoints

    for name in ("latest.weights.h5", "latest.weights.h5.bkp"):
        (tmp_path / name).write_bytes(b"half")
    for error in (BlockingIOError(11, "unable to lock file"), PermissionError(13, "Permission denied")):

        def refused(*_args: Any, error: OSError = error, **_options: Any) -> None:
            raise error

        monkeypatch.setattr(h5py, "File", refused)
        if isinstance(error, PermissionError):
            with pytest.raises(StateError, match="Permission denied"):
                Checkpoints(tmp_path).mend(dated=True)
        else:
            Checkpoints(tmp_path).mend(dated=True)
        assert (tmp_path / "latest.weights.h5").read_bytes() == b"half"


def test_an_optimizer_that_does_not_count(small: Any, tmp_path: Path) -> None:
    """The ends of epochs are found again with the weights before, too; weights of the middle of an epoch are not taken for those."""
    expected = memory(ran=2)
    small.seek(0, 0)
    fit(small, expected, "finite", small.callback())
    for save_freq, save in (("epoch", 2), (1, 6)):
        folder = tmp_path / str(save_freq)
        small.seek(0, 0)
        with pytest.raises(Crash):
            fit(small, memory(ran=2), "finite", backup_in(folder, save_freq, save, cut=True), small.callback(folder))
    small.seek(7, 1)
    model = memory(ran=2)
    fit(small, model, "finite", backup_in(tmp_path / "epoch", "epoch"), small.callback(tmp_path / "epoch"))
    assert model.trained == [(number,) for number in range(4, 12)]
    assert model.remembers == expected.remembers
    with pytest.raises(StateError, match="only the ends of epochs can be found again"):
        fit(small, memory(ran=2), "finite", backup_in(tmp_path / "1", 1), small.callback(tmp_path / "1"))


@pytest.mark.parametrize("folder", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_fit_twice(pipe: Any, whole: Any, tmp_path: Path, folder: bool) -> None:
    """A finished run is not gone on with: the second one begins with the epoch that it is told."""
    pipe.seek(0, 0)
    model, ours = memory(), tmp_path if folder else None
    rows = whole.trained
    fit(pipe, model, "finite", pipe.callback(ours), epochs=1)
    fit(pipe, model, "finite", pipe.callback(ours), epochs=3, initial_epoch=1)
    assert model.trained == rows
    fit(pipe, model, "finite", pipe.callback(ours), epochs=2)
    assert model.trained == rows + rows[:8]
    fit(pipe, model, "finite", pipe.callback(ours), epochs=3, initial_epoch=2)
    assert model.trained == rows + rows[:8] + rows[8:]


def test_initial_epoch(pipe: Any, whole: Any, tmp_path: Path) -> None:
    """A run that began at epoch 1, of a new optimizer, is resumed within it; another run in its place begins where it is told."""
    rows = whole.trained
    model = crashed(pipe, tmp_path / "ck", 6, initial_epoch=1)
    assert model.trained == rows[4:10]
    again = memory()
    fit(pipe, again, "finite", backup_in(tmp_path / "ck", 3), pipe.callback(tmp_path / "ck"))
    assert again.trained == rows[10:]
    crashed(pipe, tmp_path / "ck", 2, initial_epoch=1)
    again = memory()
    fit(pipe, again, "finite", backup_in(tmp_path / "ck", 3), pipe.callback(tmp_path / "ck"))
    assert again.trained == rows, "nothing was saved of the broken run"


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.nightly), 4])
def test_another_batch_size(pipe: Any, tmp_path: Path, size: int) -> None:
    """The position is one of examples: the rest of the epoch is cut into batches of the new size."""
    crashed(pipe, tmp_path / "ck", 6, save_freq=6)
    other = numbered(8, 4, batch={"size": size})
    model = memory()
    fit(other, model, "finite", backup_in(tmp_path / "ck", 1), other.callback(tmp_path / "ck"))
    rows = [int(row) for epoch in (1, 2) for _, y in pipe.dataset("train", epoch=epoch) for row in y.numpy()]
    assert [row for batch in model.trained for row in batch] == rows[4:]
    crashed(pipe, tmp_path / "ck", 5, save_freq=5)
    due = rows[2:] if size == 1 else [*rows[2:6], *rows[8:]]  # two rows fill no batch of 4
    done = 9 if size == 1 else 2
    with pytest.raises(Crash):
        fit(other, memory(), "finite", backup_in(tmp_path / "ck", 1), other.callback(tmp_path / "ck"), crash_at(done))
    model = memory()
    fit(other, model, "finite", backup_in(tmp_path / "ck", 1), other.callback(tmp_path / "ck"))
    assert [row for batch in model.trained for row in batch] == due[done * size :], "and once more with that size"


@pytest.mark.nightly
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("saved", range(1, 8))
def test_a_run_that_changes_its_batches_is_broken_off_anywhere(tmp_path: Path, size: int, saved: int) -> None:
    """The epoch that was begun with others has a step less, or none less; and weights of any batch of it are found again."""
    pipe, other = numbered(17, 4), numbered(17, 4, batch={"size": size})
    stream = [[int(row) for _, y in pipe.dataset("train", epoch=epoch) for row in y.numpy()] for epoch in range(EPOCHS)]
    last = [sorted(set(range(17)) - set(rows)) for rows in stream]
    stream = [[*rows, *missing] for rows, missing in zip(stream, last, strict=True)]
    crashed(pipe, tmp_path / "ck", saved, save_freq=1)
    epoch, step = divmod(saved, 8)
    due = stream[epoch][2 * step :]
    due = due[: len(due) // size * size]
    for following in stream[epoch + 1 :]:
        due += following[: 17 // size * size]
    trained: list[int] = []
    for crash in (1, 2, 1, None):
        model = memory()
        more = [] if crash is None else [crash_at(crash)]
        with suppress(Crash):
            fit(other, model, "finite", backup_in(tmp_path / "ck", 1), other.callback(tmp_path / "ck"), *more)
        trained += [row for batch in model.trained for row in batch]
        other = numbered(17, 4, batch={"size": size})
    assert trained == due


def test_gradient_accumulation(pipe: Any, whole: Any, tmp_path: Path) -> None:
    import keras

    def accumulating() -> Any:
        return memory(optimizer=keras.optimizers.SGD(0.1, gradient_accumulation_steps=3))

    crashed(pipe, tmp_path / "ck", 7, save_freq=1, model=accumulating())
    model = accumulating()
    fit(pipe, model, "finite", backup_in(tmp_path / "ck", 1), pipe.callback(tmp_path / "ck"))
    assert model.remembers == whole.remembers


ENDS = {(3, 0), (4, 2), (9, 0)}
"""After which batch a run is broken off by day, and how many batches the optimizer had trained before."""


@pytest.mark.by_day(2)
@pytest.mark.parametrize("ran", [pytest.param(0, marks=pytest.mark.nightly), 2])
@pytest.mark.parametrize(
    ("crash", "save_freq"), [(("batch", 1), 1), (("batch", 6), 1), (("saved", 1), 1), (("torn", 2), "epoch"), (("batch", 7), 4)]
)
def test_an_optimizer_that_does_not_count_batches(pipe: Any, tmp_path: Path, ran: int, crash: tuple[str, int], save_freq: Any) -> None:
    """Then the middle of an epoch cannot be known, and is refused."""
    pipe.seek(0, 0)
    how, at = crash
    backup = backup_in(tmp_path, save_freq, at if how != "batch" else 0, torn=how == "torn")
    with pytest.raises(Crash):
        fit(pipe, memory(ran=ran), "finite", backup, pipe.callback(tmp_path), *([crash_at(at)] if how == "batch" else []))
    with pytest.raises(StateError, match=r'does not count the batches .* `save_freq="epoch"`'):
        fit(pipe, memory(ran=ran), "finite", backup_in(tmp_path, save_freq), pipe.callback(tmp_path))


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("at", "ran"),
    [pytest.param(at, ran, marks=() if (at, ran) in ENDS else pytest.mark.nightly) for at in (3, 4, 6, 8, 9) for ran in (0, 2)],
)
def test_such_an_optimizer_resumes_at_the_ends_of_epochs(pipe: Any, whole: Any, tmp_path: Path, ran: int, at: int) -> None:
    crashed(pipe, tmp_path / "ck", at, save_freq="epoch", model=memory(ran=ran))
    model = memory(ran=ran)
    fit(pipe, model, "finite", backup_in(tmp_path / "ck", "epoch"), pipe.callback(tmp_path / "ck"))
    assert model.remembers == whole.remembers


@pytest.mark.parametrize("save_freq", [3, 4])
def test_weights_of_such_an_optimizer_that_are_loaded_by_hand(pipe: Any, whole: Any, tmp_path: Path, save_freq: int) -> None:
    import keras

    pipe.seek(0, 0)
    file = tmp_path / "last.weights.h5"
    keep = keras.callbacks.ModelCheckpoint(str(file), save_weights_only=True, save_freq=save_freq)
    with pytest.raises(Crash):
        fit(pipe, memory(ran=2), "finite", keep, pipe.callback(tmp_path), crash_at(6))
    model = memory(ran=2)
    model.optimizer.build(model.trainable_variables)
    model.load_weights(file)
    if save_freq == 3:
        with pytest.raises(StateError, match="only the ends of epochs can be found again"):
            fit(pipe, model, "finite", pipe.callback(tmp_path))
        return
    fit(pipe, model, "finite", pipe.callback(tmp_path))
    assert model.remembers == whole.remembers


def test_a_part_of_the_pipeline_is_resumed_at_the_ends_of_epochs(pipe: Any, tmp_path: Path) -> None:
    """Each epoch of `fit` is the same two batches: a pass that is not taken to its end begins again."""
    part, rows = pipe.train.take(2), [tuple(int(r) for r in y.numpy()) for _, y in pipe.dataset("train")]

    def run(model: Any, save_freq: Any, *more: Any) -> Any:
        callbacks = [backup_in(tmp_path / "ck", save_freq), pipe.callback(tmp_path / "ck"), *more]
        model.fit(part, epochs=EPOCHS, verbose=0, callbacks=callbacks)
        return model

    pipe.seek(0, 0)
    with pytest.raises(Crash):
        run(memory(), "epoch", crash_at(3))
    pipe.seek(2, 0)
    assert run(memory(), "epoch").trained == rows[:2] * 2
    pipe.seek(0, 0)
    with pytest.raises(Crash):
        run(memory(), 3, crash_at(3))
    with pytest.raises(StateError, match="`fit` has other data"):
        run(memory(), 3)


def test_weights_of_another_run_are_refused(pipe: Any, tmp_path: Path) -> None:
    crashed(pipe, tmp_path / "ck", 3)
    stranger = memory()
    stranger.optimizer.build(stranger.trainable_variables)
    stranger.optimizer.iterations.assign(1000)
    stranger.save_weights(tmp_path / "ck" / "latest.weights.h5")
    with pytest.raises(StateError, match="they are from another run"):
        fit(pipe, memory(), "finite", backup_in(tmp_path / "ck", 3), pipe.callback(tmp_path / "ck"))


def test_a_state_that_others_have_put_there_must_fit_the_weights(pipe: Any, whole: Any, tmp_path: Path) -> None:
    import json

    pipe.seek(0, 3)
    (tmp_path / "pipegen.state.json").write_text(json.dumps(pipe.state()))
    model = memory()
    pipe.seek(0, 0)
    fit(pipe, model, "finite", pipe.callback(tmp_path))
    assert model.trained == whole.trained[3:]
    (tmp_path / "pipegen.state.json").write_text(json.dumps({**pipe.state(), "epoch": 0, "step": 2}))
    with pytest.raises(StateError, match="a state after 2 batches, but the model's optimizer has run 9 times"):
        fit(pipe, model, "finite", pipe.callback(tmp_path))


def test_steps_per_epoch_beside_a_dataset_that_ends(pipe: Any, whole: Any, tmp_path: Path) -> None:
    """Keras would go on with the iterator of the epoch that was resumed, which is at its end, and fail without a reason."""
    crashed(pipe, tmp_path / "ck", 6, steps_per_epoch=4)
    model = memory()
    with pytest.raises(StateError, match="leave out `steps_per_epoch`"):
        fit(pipe, model, "finite", backup_in(tmp_path / "ck", 3), pipe.callback(tmp_path / "ck"), steps_per_epoch=4)
    assert model.trained == whole.trained[6:8]
    assert resumed(pipe, tmp_path / "ck", "finite", 3).remembers == whole.remembers, "the advice works"


@pytest.fixture(scope="module")
def saved(pipe: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run that was broken off has left."""
    folder = tmp_path_factory.mktemp("saved")
    crashed(pipe, folder, 6)
    return folder


@pytest.mark.parametrize("damage", [{"epochs": []}, {"epochs": 3}, {"steps": 0}, {"iterations": "x"}, {"counts": None, "per_epoch": None}])
def test_a_damaged_record_is_refused(pipe: Any, saved: Path, tmp_path: Path, damage: dict[str, Any]) -> None:
    import json

    shutil.copytree(saved, tmp_path / "ck")
    file = tmp_path / "ck" / "pipegen.state.json"
    state = json.loads(file.read_text())
    file.write_text(json.dumps({**state, "fit": {**state["fit"], **damage}}))
    with pytest.raises(StateError, match="remove the file to start anew"):
        resumed(pipe, tmp_path / "ck", "finite", 3)
