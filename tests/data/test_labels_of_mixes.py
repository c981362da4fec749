"""The labels that a mix has for its examples are those of one label, whichever part has it, names it otherwise or fills it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipegen.data.collect import collect
from pipegen.phases.compilation import load

if TYPE_CHECKING:
    from pathlib import Path

X: dict[str, Any] = {"kind": "tensor"}
BREED, SIDE = ({"kind": "label", "column": name} for name in ("breed", "side"))
TWO: dict[str, Any] = {"x": X, "breed": BREED, "side": SIDE}
PARTS: dict[str, tuple[list[dict[str, Any]], list[str], list[int]]] = {
    "the same label second": (
        [{"features": TWO}, {"features": {"x": X, "side": SIDE, "breed": BREED}}],
        ["cat", "dog"],
        [0, 1, 0, 0, 1, 0],
    ),
    "filled first": (
        [{"features": {"x": X}, "fill": {"breed": "dog"}}, {"features": {"x": X, "breed": BREED}}],
        ["cat", "dog"],
        [1, 1, 1, 0, 1, 0],
    ),
    "filled last": (
        [{"features": {"x": X, "breed": BREED}}, {"features": {"x": X}, "fill": {"breed": "dog"}}],
        ["cat", "dog"],
        [0, 1, 0, 1, 1, 1],
    ),
    "another name": (
        [
            {"features": {"x": X, "label": BREED, "side": SIDE}},
            {"features": {"x": X, "kind": BREED, "side": SIDE}, "names": {"label": "kind"}},
        ],
        ["cat", "dog"],
        [0, 1, 0, 0, 1, 0],
    ),
}


@pytest.mark.parametrize("case", PARTS)
def test_they_are_those_of_one_label(case: str, tmp_path: Path) -> None:
    written, names, expected = PARTS[case]
    (tmp_path / "t.csv").write_text("x,breed,side\n1,cat,r\n2,dog,r\n3,cat,l\n")
    parts = {}
    for i, part in enumerate(written):
        source = {"csv": {"path": str(tmp_path / "t.csv"), "features": part["features"]}}
        own = {"source": source, "fill": part.get("fill", {}), "features": part.get("names", {})}
        parts[f"p{i}"] = {key: value for key, value in own.items() if value}
    label = next(name for name in ("label", "breed") if any(name in (*p["features"], *p.get("names", ())) for p in written))
    spec = {"pipegen": 1, "source": {"mix": {"epoch": 6, "parts": parts}}, "output": {"x": "x", "y": label}, "batch": {"size": 2}}
    manifest = collect(load(spec).model).manifest
    assert manifest is not None
    labels = manifest.labels("train")
    assert labels is not None
    assert ([*manifest.class_names], labels.tolist()) == (names, expected)
