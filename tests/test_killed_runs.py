"""A run of `fit` in processes that are killed (`kill -9`), each of which goes on where the weights of the last one are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import copies
import pytest

if TYPE_CHECKING:
    from subprocess import CompletedProcess

pytestmark = [pytest.mark.tf, pytest.mark.timeout(600)]

TESTS = Path(__file__).parent
HOW = ("batch", "torn", "saved", "validation")
ONE_AFTER_ANOTHER = [
    # save_freq, where it dies, at which; and the batches that are done with the weights that it leaves
    ("4", "saved", 1, 4),  # a save on an epoch's last batch, before our callback hears of it
    ("3", "torn", 2, 10),  # the weights of batch 10, and the epoch of batch 7
    ("1", "batch", 2, 12),  # at the end of an epoch, each batch saved
    ("2", "validation", 4, 16),  # at the end of an epoch, in its validation
    ("epoch", "state", 12, 20),  # at the end of an epoch, our state half written
    ("1", "batch", 3, 23),  # one before the end
]


def started(folder: Path, *runs: str) -> list[CompletedProcess[str]]:
    """Runs the parts of a run, each in a process of its own."""
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    program = "import sys, killed_run; killed_run.main(*sys.argv[1:])"
    return [copies.run(program, str(folder), *run.split(":"), env=os.environ | {"PYTHONPATH": path}) for run in runs]


def processes(folder: Path, *runs: str) -> tuple[list[int], str]:
    """Returns how the process of each part of a run ended, and what the last one printed."""
    done = started(folder, *runs)
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


WITHIN = {
    "weights": (1, 2, 3, 8, 9, 16),
    "copies": (1, 2, 3, 4, 5, 6),
    "epoch": (1, 2, 3, 4),
    "state": (1, 2, 3, 4, 5, 6, 8),
}
"""Moments within a write that a process dies at; the first one is before it, and the last one behind it."""


def cuts() -> list[Any]:
    """Cuts of each kind of write, at each of its moments, at the first save and at later ones; by day two of them."""
    found = []
    for how, moments in WITHIN.items():
        saves = (2, 4) if how == "copies" else (1, 2, 4)  # a first save has nothing to copy
        for save, moment in ((save, moment) for save in saves for moment in moments):
            at = f"{save}.{moment}" if how != "state" else str(8 * (save - 1) + moment)
            day = how in ("weights", "state") and (save, moment) == (2, moments[len(moments) // 2])
            found.append(pytest.param(how, at, marks=() if day else pytest.mark.nightly))
    return found


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("how", "at"), cuts())
def test_a_kill_within_a_write(tmp_path: Path, how: str, at: str) -> None:
    """With `double_checkpoint`, the resumed run is the one that was not stopped, to the bit."""
    ends, said = processes(tmp_path / "ck", f"2:{how}:{at}:double", "3:never:0:double")
    assert ends == [-signal.SIGKILL, 0]
    remembers, iterations, _ = said.split()
    assert f"{remembers} {iterations}" == expected()
    assert not (tmp_path / "ck").exists()


@pytest.mark.parametrize(("how", "at"), cuts())
@pytest.mark.nightly
def test_a_kill_within_a_write_after_a_resume(tmp_path: Path, how: str, at: str) -> None:
    ends, said = processes(tmp_path / "ck", "3:batch:5:double", f"1:{how}:{at}:double", f"1:{how}:{at}:double", "epoch:never:0:double")
    assert ends == [-signal.SIGKILL] * 3 + [0]
    remembers, iterations, _ = said.split()
    assert f"{remembers} {iterations}" == expected()


@pytest.mark.nightly
def test_a_kill_within_the_write_of_the_only_weights(tmp_path: Path) -> None:
    """What cannot be gone on with says where it lies and what to do, and that works."""
    folder = tmp_path / "ck"
    ends = [one.returncode for one in started(folder, "2:weights:2.9")]
    again = started(folder, "2:never:0")[0]
    assert ends == [-signal.SIGKILL]
    assert again.returncode == 1
    said = " ".join(again.stderr.split("StateError:")[1].split())
    assert f"the weights in '{folder}' cannot be read: latest.weights.h5 is incomplete" in said
    names = ("latest.weights.h5*", "training_metadata.json*", "pipegen.state.json")
    assert f"no older ones exist. To begin a new run, remove {names[0]} and {names[1]} and {names[2]} from the folder" in said
    for name in names:
        for file in folder.glob(name):
            file.unlink()
    remembers, iterations, here = started(folder, "2:never:0")[0].stdout.split()
    assert f"{remembers} {iterations}" == expected()
    assert int(here) == 24


@pytest.mark.nightly
@pytest.mark.parametrize("kills", [3, 6])
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


@pytest.mark.nightly
def test_two_runs_share_a_folder(tmp_path: Path) -> None:
    """As launchers start them, one for each device, of which none has the weights in that folder."""
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    program = "import sys, killed_run; killed_run.shared(*sys.argv[1:])"
    command = [sys.executable, "-c", program, str(tmp_path / "ck")]
    options: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}, "text": True}
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) for _ in range(2)]
    for run in runs:
        said, wrong = run.communicate(timeout=300)
        assert run.returncode == 0, wrong[-4000:]
        assert said.split() == expected().split()
    assert os.listdir(tmp_path / "ck") == ["pipegen.state.json"]
