"""The pictures of a mix are looked at in every part, whatever each is stored as, and under the names that the mix has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

import pipegen
from pipegen.phases.compilation import collect_data
from pipegen.quality.looks import Pictures

if TYPE_CHECKING:
    from pathlib import Path


def test_arrays_of_all_parts_are_looked_at(tmp_path: Path) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (12, 20, 16, 3), np.uint8)
    np.savez(tmp_path / "a.npz", image=pixels[:4], label=np.arange(4) % 2)
    np.savez(tmp_path / "b.npz", scan=pixels[4:8], kind=np.arange(4) % 2)
    for i, image in enumerate(pixels[8:]):
        (tmp_path / "c" / str(i % 2)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "c" / str(i % 2) / f"{i}.png")

    def arrays(file: str, image: str, label: str) -> dict[str, Any]:
        features = {image: {"kind": "image"}, label: {"kind": "label", "classes": ["0", "1"]}}
        return {
            "source": {"arrays": {"path": str(tmp_path / file), "features": features}},
            "splits": {"parts": {"train": 0.5, "validation": 0.5}},
        }

    parts = {
        "a": arrays("a.npz", "image", "label"),
        "b": arrays("b.npz", "scan", "kind") | {"features": {"image": "scan", "label": "kind"}},
        "c": {"source": {"image_folder": {"path": str(tmp_path / "c")}}},
    }
    spec = {"pipegen": 1, "source": {"mix": {"epoch": 8, "parts": parts}}, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 2}}
    pictures = Pictures(collect_data(pipegen.load(spec)))
    order = [*range(8), 8, 10, 9, 11]
    for record, number in enumerate(order):
        small = Image.fromarray(pixels[number]).resize((128, 128), Image.Resampling.BOX)
        np.testing.assert_array_equal(pictures.read(record).small, np.asarray(small, np.float32), err_msg=pictures.keys[record])
