"""`pipegen serve-export`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli_helpers import Cli


@pytest.mark.nightly
@pytest.mark.tf
def test_a_model_is_written_with_its_steps(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    import keras
    import tensorflow as tf

    layers = keras.layers
    model = keras.Sequential([keras.Input((16, 16, 3)), layers.GlobalAveragePooling2D(), layers.Dense(2, "softmax")])
    model.save(tmp_path / "flowers.keras")
    result = cli("serve-export", "good.pipegen.yaml", "flowers.keras", "models/1", "--top-k", "1", "--takes", "images")
    assert result.exit_code == 0, result.output
    classes = json.loads((tmp_path / "models" / "1" / "assets.extra" / "pipegen.json").read_text())["class_names"]
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "wrote models/1",
        "takes image uint8 (n, ?, ?, 3)",
        "gives scores float32 (n, 2)",
        "gives top_scores float32 (n, 1)",
        "gives top_classes string (n, 1)",
        f"classes: {', '.join(classes)}",
    ]
    served = tf.saved_model.load(tmp_path / "models" / "1").signatures["serving_default"]
    assert served(image=tf.zeros([3, 20, 18, 3], tf.uint8))["top_classes"].shape == (3, 1)
    again = cli("serve-export", "good.pipegen.yaml", "flowers.keras", "models/1")
    assert again.exit_code == 2
    assert "models/1 exists already" in again.stderr
    draws = cli("serve-export", "good.pipegen.yaml", "flowers.keras", "models/2", "--set", "transforms.random_flip.when=all")
    assert draws.exit_code == 1
    assert "error[PG540]: `random_flip` is random on split `validation`" in draws.stderr
    assert "--> good.pipegen.yaml:6:5" in draws.stderr
    small = cli("serve-export", "good.pipegen.yaml", "flowers.keras", "models/2", "--set", "transforms.resize.size=8")
    assert small.exit_code == 1
    assert "takes 16×16×3, and the pipeline gives 8×8×3" in small.stderr
    (tmp_path / "broken.keras").write_text("no model")
    broken = cli("serve-export", "good.pipegen.yaml", "broken.keras", "models/2")
    assert broken.exit_code == 2
    assert "cannot read the model broken.keras: " in broken.stderr
    assert sorted(p.name for p in (tmp_path / "models").iterdir()) == ["1"]


def test_a_missing_model_is_said_before_tensorflow_starts(cli: Cli, good: Path) -> None:
    result = cli("serve-export", "good.pipegen.yaml", "flowers.keras", "models/1")
    assert result.exit_code == 2
    assert "there is no model flowers.keras" in result.stderr
