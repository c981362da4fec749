"""A run of `fit` in processes that are killed (`kill -9`), each of which goes on where the weights of the last one are."""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path

import copies
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.timeout(600)]

TESTS = Path(__file__).parent
HOW = ("batch", "torn", "saved", "state", "validation")
ONE_AFTER_ANOTHER = [
    # save_freq, where it dies, at which; and the batches that are done with the weights that it leaves
    ("4", "saved", 1, 4),  # a save on an epoch's last batch, before our callback hears of it
    ("3", "torn", 2, 10),  # the weights of batch 10, and the epoch of batch 7
    ("1", "batch", 2, 12),  # at the end of an epoch, each batch saved
    ("2", "validation", 4, 16),  # at the end of an epoch, in its validation
    ("epoch", "state", 2, 20),  # at the end of an epoch, our state half written
    ("1", "batch", 3, 23),  # one before the end
]


def processes(folder: Path, *runs: str) -> tuple[list[int], str]:
    """Returns how the process of each part of a run ended, and what the last one printed."""
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    program = "import sys, killed_run; killed_run.main(*sys.argv[1:])"
    done = [copies.run(program, str(folder), *run.split(":"), env=os.environ | {"PYTHONPATH": path}) for run in runs]
    assert done[-1].returncode == 0, done[-1].stderr[-4000:]
    return [one.returncode for one in done], done[-1].stdout


@cache
def expected() -> str:
    """Returns what a run of one process prints: it is done here, where everything is imported."""
    from pipes import numbered

    import killed_run
    from resuming import memory

    pipe, model = numbered(8, 4), memory()
    model.fit(pipe.train, epochs=killed_run.EPOCHS, verbose=0, callbacks=[pipe.callback()])
    return f"{model.remembers} {len(model.trained)}"


@pytest.mark.parametrize("kills", [3, pytest.param(6, marks=pytest.mark.nightly)])
def test_one_kill_after_another(kills: int, tmp_path: Path) -> None:
    folder, died = tmp_path / "ck", ONE_AFTER_ANOTHER[:kills]
    ends, said = processes(folder, *(f"{save_freq}:{how}:{at}" for save_freq, how, at, _ in died), "epoch:never:0")
    assert ends == [-signal.SIGKILL] * kills + [0]
    remembers, iterations, here = said.split()
    assert f"{remembers} {iterations}" == expected()
    assert int(here) == 24 - died[-1][3], "the last process did no more than was left"
    assert not folder.exists()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("save_freq", ["1", "3", "4", "epoch"])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_one_kill(tmp_path: Path, save_freq: str, at: int) -> None:
    for how in HOW:
        ends, said = processes(tmp_path / how, f"{save_freq}:{how}:{at}", "3:never:0")
        assert ends == [-signal.SIGKILL, 0], how
        remembers, iterations, _ = said.split()
        assert f"{remembers} {iterations}" == expected(), how
