"""A pipeline goes on without the records that `splits.exclude` names: same cache, same examples, and a state of before is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


@pytest.mark.nightly
def test_the_cache_and_every_other_example_stay(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for i in range(10):
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(tmp_path / "data" / name / f"{i}.png")

    def build(**splits: Any) -> pipegen.Pipeline:
        return pipegen.build({
            "pipegen": 1,
            "source": {"image_folder": {"path": str(tmp_path / "data")}},
            "splits": {"parts": {"train": 0.6, "validation": 0.4}, **splits},
            "transforms": [{"resize": {"size": 4}}, "random_flip"],
            "batch": {"size": 2},
            "runtime": {"cache": {"disk": str(tmp_path / "cache")}, "jit": "never"},
        })  # fmt: skip

    def by_file(pipe: pipegen.Pipeline, split: str) -> dict[str, Any]:
        images = np.concatenate([np.asarray(x) for x, _ in pipe.dataset(split)])
        return dict(zip(pipe.files(split), images, strict=False))

    before = build()
    seen = by_file(before, "validation")
    list(before.dataset("train"))
    out = [before.files("train")[0], before.files("validation")[1]]
    (tmp_path / "copies.txt").write_text("\n".join(f.rpartition("data/")[2] for f in out))
    after = build(exclude=str(tmp_path / "copies.txt"))
    assert set(before.files("train")) - set(after.files("train")) == {out[0]}
    left = by_file(after, "validation")
    assert set(left) == set(seen) - {out[1]}
    assert all(np.array_equal(left[file], seen[file]) for file in left)
    caches = [p for p in (tmp_path / "cache").iterdir() if p.is_dir() and p.name not in ("splits", "columns", "looks")]
    assert len(caches) == 1
    with pytest.raises(StateError):
        after.restore(before.state())
