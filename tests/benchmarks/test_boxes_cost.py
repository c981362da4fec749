"""The cost of boxes and keypoints on few images: it proves that the script works, and measures nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import boxes

pytestmark = pytest.mark.tf


@pytest.mark.nightly  # it is built as the other benchmarks are
def test_all_see_the_same_images_and_each_has_a_time(capsys: Any) -> None:
    data = boxes.made(4)
    with_boxes, without = (next(iter(boxes.built(name, data, 2).dataset("train", epoch=0).take(1))) for name in ("boxes", "nothing"))
    np.testing.assert_array_equal(with_boxes[0], without)
    boxes.main(["--images", "4", "--batch", "2", "--turns", "1"])
    said = capsys.readouterr().out
    assert all(name in said for name in boxes.FEATURES)
