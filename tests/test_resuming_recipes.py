"""The recipes of `docs/resuming.md` run as they are written, and go on where a stop has cut a file in two."""

from __future__ import annotations

import re
from pathlib import Path
from pipes import numbered
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tf

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "resuming.md").read_text()
PAGES = {str(file.relative_to(ROOT)): file.read_text() for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}


def recipe(title: str) -> str:
    found = re.search(rf"^```python title=\"{re.escape(title)}\"\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", [name for name, text in PAGES.items() if "BackupAndRestore(" in text])
def test_every_recipe_keeps_the_weights_before(name: str) -> None:
    calls = [call for call in re.findall(r"BackupAndRestore\(([^)]*)\)", PAGES[name]) if call]
    assert calls
    assert all("double_checkpoint=True" in call for call in calls)


class Stop(Exception):
    """What ends a run in its middle."""


def stopping_at(batches: int) -> Any:
    import keras

    class Stopping(keras.callbacks.Callback):
        left = batches

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.left -= 1
            if not self.left:
                raise Stop

    return Stopping()


def make_model() -> Any:
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((2, 2, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize("cut", [2, pytest.param(0, marks=pytest.mark.nightly), pytest.param(-1, marks=pytest.mark.nightly)])
def test_files_of_their_own_for_each_save(cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import keras

    monkeypatch.chdir(tmp_path)
    pipe = numbered(8, 4)
    whole = make_model()
    whole.fit(pipe.train, epochs=6, verbose=0, callbacks=[pipe.callback()])
    code = recipe("newest.py").replace("save_freq=500", "save_freq=3").replace("epochs=10", "epochs=6, verbose=0")
    names = {"pipe": pipe, "keras": keras, "make_model": make_model}
    pipe.seek(0)
    with pytest.raises(Stop):
        exec(code.replace("[keep,", "[keep, stop,"), {**names, "stop": stopping_at(17)})
    saved = sorted(Path("ckpt").glob("*.keras"))
    assert len(saved) == 5
    content = saved[-1].read_bytes()
    saved[-1].write_bytes(content[: len(content) // cut] if cut > 0 else content[:cut])
    pipe.seek(0)
    after: dict[str, Any] = dict(names)
    exec(code, after)
    assert int(after["model"].optimizer.iterations) == int(whole.optimizer.iterations) == 24
    for one, other in zip(after["model"].get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_loop_that_saves_weights_and_position_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop before the rename leaves the file as it was; what is left beside it does no harm."""
    import os

    monkeypatch.chdir(tmp_path)
    (tmp_path / "ckpt").mkdir()
    pipe, replace, left = numbered(8, 4), os.replace, [3]
    code = recipe("loop.py")

    def run() -> list[Any]:
        seen: list[Any] = []
        loop = {
            "pipe": pipe,
            "weights": lambda: {"seen": np.array([np.asarray(y) for y in seen])},
            "set_weights": lambda found: seen.extend(found["seen"]),
            "train_step": lambda x, y: seen.append(np.asarray(y)),
        }
        exec(code, loop)
        return [rows.tolist() for rows in seen]

    def stopped(source: Any, target: Any) -> None:
        left[0] -= 1
        if not left[0]:
            raise Stop
        replace(source, target)

    expected = run()
    assert len(expected) == 40
    (tmp_path / "ckpt" / "last.npz").unlink()
    pipe.seek(0)
    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(Stop):
        run()
    pipe.seek(7)
    (tmp_path / "ckpt" / "last.npz.part").write_bytes(b"half")
    assert run() == expected
