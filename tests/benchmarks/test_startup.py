"""The benchmark of start-up: who runs when, in which environment, and what becomes of the turns."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import startup
from benchmarks.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.recipes import Recipe

GEOMETRIC = RECIPES["geometric"]


class Fake:
    """Processes that take as long as they are told; the first of each takes far longer."""

    def __init__(self, seconds: dict[str, list[float]]) -> None:
        self.left = {name: iter([99.0, *times]) for name, times in seconds.items()}
        self.seen: list[tuple[str, str | None]] = []

    def __call__(self, system: str, recipe: Recipe, folder: Path, environment: Mapping[str, str]) -> startup.Turn:
        cache = environment.get("TF_XLA_FLAGS")
        self.seen.append((system, cache))
        name = system if cache is None else startup.WARM
        return startup.Turn(next(self.left[name]), wall=1.0)


def test_turns_are_interleaved_and_the_first_is_not_counted() -> None:
    fake = Fake({"pipegen": [3, 9, 4], startup.AFTER: [6, 6, 6], "Keras": [2, 2, 8]})
    (row,) = startup.measure([GEOMETRIC], Path(), 3, warm=False, run=fake)
    assert [system for system, _ in fake.seen] == ["Keras", startup.AFTER, "pipegen", "pipegen", startup.AFTER, "Keras"] * 2
    assert (row.cpu("pipegen"), row.cpu("Keras"), row.ratio(), row.ratio(startup.AFTER)) == (4, 2, 2, 3)
    assert row.wall("Keras") == 1


def test_only_the_warm_turn_has_a_compilation_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_XLA_FLAGS", "--of_the_user")
    fake = Fake({"pipegen": [3], startup.AFTER: [3], "Keras": [2], startup.WARM: [1]})
    (row,) = startup.measure([GEOMETRIC], Path(), 1, warm=True, run=fake)
    assert [cache is not None for system, cache in fake.seen if system == "Keras"] == [False, False]
    assert {cache for _, cache in fake.seen if cache} == {cache for _, cache in fake.seen if cache and "persistent_cache" in cache}
    assert row.cpu(startup.WARM) == 1


def test_the_table_says_the_ratio_and_the_exit_code_whether_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert startup.main([str(tmp_path)]) == 2
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.jpg").touch()
    ours = {"pipegen": [startup.Turn(6, 1)], startup.AFTER: [startup.Turn(7, 1)]}
    rows = [startup.Row(GEOMETRIC, {**ours, "Keras": [startup.Turn(theirs, 1)]}) for theirs in (6.4, 6.3)]
    for row, code in zip(rows, (0, 1), strict=True):
        monkeypatch.setattr(startup, "measure", lambda *_, row=row, **__: [row])
        assert startup.main([str(tmp_path), "--recipes", "geometric"]) == code
    printed = capsys.readouterr().out
    assert "0.94" in printed
    assert "1.09" in printed, "with Keras imported first"


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.parametrize("system", ["pipegen", startup.AFTER, "Keras"])
def test_a_process_hands_over_the_recipe_s_batch(system: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    for i in range(64):
        (tmp_path / f"class_{i % 2}").mkdir(exist_ok=True)
        Image.frombytes("RGB", (24, 20), rng.randbytes(24 * 20 * 3)).save(tmp_path / f"class_{i % 2}" / f"{i}.jpg")
    turn = startup.take(system, GEOMETRIC, tmp_path, startup.environments("")[system])
    assert turn.cpu > 0 < turn.wall
    with pytest.raises(RuntimeError, match="no batch"):
        startup.take(system, GEOMETRIC, tmp_path / "none", startup.environments("")[system])
