"""The page about training in stages: its script runs on small sizes, twice, and says what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.tf, pytest.mark.nightly]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "stages.md"
SMALL = {"size: 128": "size: 16", "default: 224": "default: 24", "batch: 128": "batch: 16", "batch: 48": "batch: 8"}


def blocks() -> Iterator[str]:
    for _, text in re.findall(r"^```(yaml|python)[^\n]*\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        yield text


def test_the_script_goes_through_both_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipes import write_photos

    import keras

    spec, script = blocks()
    for large, small in SMALL.items():
        assert large in spec
        spec = spec.replace(large, small)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flowers.pipegen.yaml").write_text(spec, encoding="utf-8")
    write_photos(tmp_path / "flowers", per_class=10)
    seen: list[tuple[int, tuple[int | None, ...]]] = []
    fit = keras.Model.fit

    def noted(self: Any, x: Any, **options: Any) -> Any:
        done = fit(self, x, **{**options, "verbose": 0})
        seen.extend((epoch, tuple(x.element_spec[0].shape)) for epoch in done.epoch)
        return done

    monkeypatch.setattr(keras.Model, "fit", noted)
    names: dict[str, Any] = {}
    exec(compile(script, str(PAGE), "exec"), names)
    assert seen == [(epoch, (16, 16, 16, 3) if epoch < 5 else (8, 24, 24, 3)) for epoch in range(15)]
    assert not (tmp_path / "ckpt").exists()
    pipe = names["pipe"]
    assert pipe.validation.element_spec[0].shape[1:] == (24, 24, 3)
    assert [stage.finished for stage in pipe.stages] == [True, True]
