"""A run of `fit` that is broken off at any point, and resumed, is trained on the batches of the run that was not, in their order."""

from __future__ import annotations

import itertools
import shutil
from pipes import numbered
from typing import TYPE_CHECKING, Any

import pytest
from resuming import Crash, CrashAt, CrashingBackup, digest_of, memory

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


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Keras says that a pass of 4 batches does not fill executions of 3, and that weights of a model without layers are few."""
    with pytest.warns() if False else _nothing():
        yield


class _nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def fit(pipe: Any, model: Any, kind: str, *callbacks: Any, **own: Any) -> Any:
    data = pipe.train if kind == "finite" else pipe.train.repeat()
    return model.fit(data, **{"epochs": EPOCHS, "verbose": 0, "callbacks": list(callbacks), **KINDS[kind], **own})


def resumed(pipe: Any, folder: Path, kind: str, save_freq: Any, execution: int = 1) -> Any:
    """Returns the model of a new process that goes on to the end."""
    pipe._seek(7, 1)
    model = memory(execution)
    fit(pipe, model, kind, CrashingBackup(folder, save_freq), pipe.callback(folder))
    return model


@pytest.fixture(scope="module")
def whole(pipe: Any) -> Any:
    """What a model remembers of the run that nothing broke off, by kind and steps per execution."""
    found = {}
    for kind, execution in itertools.product(KINDS, (1, 2, 3)):
        model = memory(execution)
        fit(pipe, model, kind, pipe.callback())
        found[kind, execution] = model
    return found


def test_the_run_that_nothing_broke_off(pipe: Any, whole: Any) -> None:
    """It is the stream of the pipeline, so what the others are compared with is right."""
    rows = [tuple(int(row) for row in y.numpy()) for epoch in range(5) for _, y in pipe.dataset("train", epoch=epoch)]
    assert len(set(rows)) > 4
    assert whole["finite", 1].trained == rows[:12]
    assert whole["3 of 4", 1].trained == rows[:9]
    assert whole["6 of 4", 1].trained == rows[:18]
    for model in whole.values():
        assert model.remembers == digest_of(model.trained)
        assert int(model.optimizer.iterations) == len(model.trained)


def check_every_crash(pipe: Any, whole: Any, folder: Path, kind: str, save_freq: Any, execution: int) -> None:
    """Breaks runs off after every batch of two epochs, and at every save before and behind the write of the epoch."""
    expected = whole[kind, execution]
    batches = 2 * KINDS[kind].get("steps_per_epoch", 4)
    cases = [("batch", at) for at in range(execution, batches + 1, execution)]
    cases += [(how, save) for how in ("torn", "saved") for save in range(1, 4)]
    for how, at in cases:
        where = f"{kind}, save_freq={save_freq}, {execution} steps per execution, crash at {how} {at}"
        shutil.rmtree(folder, ignore_errors=True)
        pipe._seek(0, 0)
        backup = CrashingBackup(folder, save_freq, at if how != "batch" else 0, torn=how == "torn")
        crash = [CrashAt(at)] if how == "batch" else []
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("save_freq", SAVES)
def test_every_crash(pipe: Any, whole: Any, tmp_path: Path, kind: str, save_freq: Any) -> None:
    check_every_crash(pipe, whole, tmp_path / "ck", kind, save_freq, 1)


@pytest.mark.filterwarnings("ignore:.*ran out of data")
@pytest.mark.parametrize("execution", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("save_freq", SAVES)
def test_every_crash_with_several_steps_per_execution(
    pipe: Any, whole: Any, tmp_path: Path, kind: str, save_freq: Any, execution: int
) -> None:
    check_every_crash(pipe, whole, tmp_path / "ck", kind, save_freq, execution)
