"""Every kind keeps the contract of `FeatureKind`, and ragged columns are columns."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from pipegen.ops.fields.columns import Ragged, joined
from pipegen.ops.kinds import base
from pipegen.ops.kinds.base import (
    Geometry,
    Indices,
    Levels,
    Meaning,
    Overlay,
    PixelValues,
    Values,
    held_in_memory,
    kind_named,
    kinds,
    names_of,
)
from pipegen.types import ElementType, FeatureType

KNOWN = {"array", "boxes", "image", "item_label", "item_tensor", "keypoints", "label", "mask", "tensor", "valid", "weight"}
PACKAGE = Path(__file__).parents[3] / "pipegen"


def test_a_file_is_a_kind_and_a_kind_is_a_file() -> None:
    assert {kind.name for kind in kinds()} >= KNOWN
    for kind in kinds():
        assert kind_named(kind.name) is kind
        assert kind.has(Levels) + kind.has(Indices) + (kind.name == "dense") == (kind.pixels is not None)
        assert kind.has(Geometry) <= kind.ragged
        assert kind.has(Geometry) + kind.has(PixelValues) <= 1


def test_sources_name_the_kinds_that_they_can_give() -> None:
    assert get_args(names_of(lambda kind: kind.storage == "encoded")) == ("image", "dense", "mask", "audio", "array")
    assert get_args(names_of(held_in_memory)) == (
        "image",
        "dense",
        "mask",
        "audio",
        "series",
        "boxes",
        "events",
        "keypoints",
        "label",
        "tensor",
        "weight",
    )
    others = ("boxes", "events", "keypoints", "label", "tensor", "weight")
    assert get_args(names_of()) == ("image", "dense", "mask", "audio", "series", "array", *others)


def test_nothing_asks_for_a_kind_by_its_name() -> None:
    """Outside `ops/kinds`, no comparison names a kind beside something's `kind`."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[:2] == ("ops", "kinds") or path.relative_to(PACKAGE).parts[0] == "migrate":
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if ".kind" in text else ():
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "kind":
                words = {w.value for w in ast.walk(node) if isinstance(w, ast.Constant)}
                found += [f"{path}:{node.lineno}"] if words & (KNOWN | {"encoded"}) else []
    assert not found


def test_sources_name_parts_of_kinds_and_look_no_kind_up() -> None:
    """But for the model of features, stored and mixed types, and annotations, whose features are fixed: see the contract."""
    may = {"features", "annotations", "parts", "listing", "prepared.py", "mix.py", "by_split.py", "selecting.py"}
    parts = {"having"} | {name for name, v in vars(base).items() if isinstance(v, type) and issubclass(v, (Values, Overlay, Meaning))}
    found = set()
    for path in (PACKAGE / "ops" / "sources").rglob("*.py"):
        own = path.relative_to(PACKAGE / "ops" / "sources").parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if not may & {*own} else ():
            if isinstance(node, ast.ImportFrom) and node.module == "pipegen.ops.kinds.base":
                found |= {f"{path.name}: {alias.name}" for alias in node.names if alias.name not in parts}
    assert not found


@pytest.mark.parametrize("records", [[], [2], [3, 0, 2], np.array([True, False, True, True])], ids=str)
def test_a_ragged_column_is_indexed_by_records(records: list[int]) -> None:
    rows = [np.arange(n, dtype=np.float32)[:, None] + 10 * n for n in (2, 0, 3, 1)]
    column = Ragged(np.concatenate(rows), np.array([2, 0, 3, 1]))
    expected = [row for row, chosen in zip(rows, records, strict=True) if chosen] if len(records) == 4 else [rows[i] for i in records]
    found = column[np.asarray(records, bool if len(records) == 4 else np.int64)]
    assert found.lengths.tolist() == [len(row) for row in expected]
    np.testing.assert_array_equal(found.values, np.concatenate([np.zeros((0, 1), np.float32), *expected]))
    whole = joined([column, found])
    assert len(whole) == 4 + len(found)
    assert whole.tobytes() != column.tobytes() or not len(found)


def test_a_ragged_feature_is_padded_with_what_says_which_items_are_there() -> None:
    points = FeatureType("points", "float32", (None, 2), of="image", most=7)
    padded = ElementType((("points", points),)).padded()
    assert padded["points"].shape == (7, 2)
    assert padded["points"].is_static
    assert (padded["points_valid"].dtype, padded["points_valid"].shape, padded["points_valid"].of) == ("bool", (7,), "points")
    assert padded.padded() == padded
    unknown = ElementType((("points", points.with_(most=0)),)).padded()
    assert unknown["points_valid"].shape == (None,)
    assert unknown["points"].is_static
