"""The measurement of kernels on images of 8 pixels: it proves that the script works, and measures nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import kernels

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", list(kernels.CHAINS))
def test_every_chain_compiles_to_the_same_stages_in_each_arrangement(name: str) -> None:
    _, done = kernels.compile_chain(kernels.CHAINS[name], 8, 2)
    found = kernels.arrangements(done)
    stages = {kind: [stage for k in chosen for stage in k.stages] for kind, (chosen, _) in found.items()}
    assert stages["chain"] == stages["parts"] == stages["whole"]
    assert len(found["whole"][0]) == 1
    assert len(found["parts"][0]) == len(stages["parts"]) > 1
    assert 1 <= len(found["chain"][0]) <= len(stages["parts"])


@pytest.mark.nightly  # no spec runs through the other arrangements; by day the command runs them
def test_arrangements_agree_on_every_pixel() -> None:
    plan, done = kernels.compile_chain(kernels.CHAINS["erasing, warp"], 8, 2)
    features = kernels.example_batch(plan, 8, 2)
    images = [kernels.lower(chosen, entry, 2)(features)["image"] for chosen, entry in kernels.arrangements(done).values()]
    assert images[0].shape == (2, 8, 8, 3)
    for image in images[1:]:
        np.testing.assert_array_equal(image, images[0])


@pytest.mark.nightly
def test_the_command_prints_a_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    monkeypatch.setattr(tf.config, "set_visible_devices", lambda *_: None)  # the process's own, which tests share
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", lambda _: None)
    code = kernels.main(["--chains", "mirror, arithmetic", "--size", "8", "--batch", "2", "--repeats", "2"])
    text = capsys.readouterr().out
    assert "mirror, arithmetic" in text
    assert "chain / parts" in text
    assert code == (1 if "above the limit" in text else 0)


def test_ratios_are_taken_within_a_turn() -> None:
    row = kernels.Row("x", 1, 2, {"chain": [1.0, 20.0, 3.0], "parts": [2.0, 40.0, 2.0], "whole": [2.0, 40.0, 2.0]})
    assert row.median("chain") == 3.0
    assert row.ratio("chain") == 0.5
    assert row.ratio("whole") == 1.0


@pytest.mark.parametrize("name", ["gamma", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("JPEG", "sepia", "D4", "elastic"))])
def test_steps_are_measured_beside_opencv(name: str) -> None:
    pytest.importorskip("cv2")
    from benchmarks.steps_beside_opencv import PAIRS, measured

    ours, theirs = measured(name, batch=2, repeats=2)
    assert ours > 0
    assert theirs > 0
    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
    assert all(np.asarray(function(image)).shape == image.shape for _, _, function in PAIRS.values())
