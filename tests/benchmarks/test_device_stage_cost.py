"""The benchmark of the device stage measures both sides of a recipe, and says what crosses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import device_stage as benchmark

pytestmark = pytest.mark.tf


@pytest.mark.nightly  # it is built as the other benchmarks are
def test_both_sides_are_measured_in_turn(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "BATCH", 8)
    monkeypatch.setattr(benchmark, "WARM_UP", 1)
    sides = benchmark.measured(photo_folder, "imagenet", cached=False, count=2, repeats=2)
    image, label = 224 * 224 * 3, 8
    assert sides["host"].bytes == 8 * (4 * image + label)
    assert 8 * (image + label) < sides["device"].bytes < 8 * (image + label + 256)
    for side in sides.values():
        assert len(side.host_us) == len(side.rates) == 2
        assert min(*side.host_us, *side.rates) > 0


def test_a_turn_takes_its_batches_behind_the_warm_up() -> None:
    taken: list[int] = []

    def batches() -> object:
        for number in range(100):
            taken.append(number)
            yield number

    us, rate = benchmark.turn(batches(), 5)
    assert len(taken) == benchmark.WARM_UP + 5
    assert us >= 0
    assert rate > 0
