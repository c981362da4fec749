"""Parts of a mix whose images have items: however these are stored, and whatever only the data of a part will say."""

from __future__ import annotations

from typing import Any

import pytest

from pipegen.phases.compilation import inspect

RESIZE = {"resize": {"size": 32}}
COCO = {"coco": {"images": "x", "annotations": "x.json"}}
FILE = {"image": {"kind": "image", "size": [40, 48], "channels": 3}}


def stored(places: int = 3, **boxes: Any) -> dict[str, Any]:
    features = {
        "image": {"kind": "image", "dtype": "uint8", "shape": [40, 48, 3], "canvas": [40, 48]},
        "boxes": {"kind": "boxes", "dtype": "float32", "shape": [None, 4], "of": "image", "places": places, **boxes},
        "labels": {"kind": "label", "dtype": "int64", "with": "boxes", "shape": [None], "classes": 3},
    }
    return {"prepared": {"path": "x", "of": "0" * 64, "splits": ["train"], "features": features}}


def arrays(form: str, **boxes: Any) -> dict[str, Any]:
    labels = {"kind": "label", "classes": 3, "with": "boxes"}
    return {"arrays": {"path": "x.npz", "features": {**FILE, "boxes": {"kind": "boxes", "format": form, **boxes}, "labels": labels}}}


def found(*sources: dict[str, Any]) -> list[Any]:
    parts = {
        name: {"weight": 1, "source": source, "transforms": [RESIZE]}
        | ({} if "prepared" in source else {"splits": {"parts": {"train": 0.8, "validation": 0.2}}})
        for name, source in zip("ab", sources, strict=False)
    }
    output = {"x": "image", "y": ["boxes", "boxes_valid", "labels"]}
    given = {"pipegen": 1, "source": {"mix": {"epoch": 8, "parts": parts}}, "transforms": ["random_flip"], "output": output}
    return [d for d in inspect(given).diagnostics.items if d.severity.value == "error"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (stored(), COCO),
        (stored(3), stored(5)),
        (stored(), arrays("rel_center_xywh")),
        (arrays("xywh"), arrays("yxyx")),
        (arrays("xyxy", empty="refuse"), COCO),
        ({"labelme": {"path": "x"}}, {"yolo": {"path": "x"}}),
    ],
)
def test_they_come_to_one_type(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert found(one, other) == found(other, one) == []


def test_rules_that_differ_are_named_by_what_users_write() -> None:
    (error,) = found(stored(min_area=20), arrays("xywh"))
    assert error.code == "PG462"
    said = "`boxes` has `min_area: 20.0` in the part `a` and no `min_area` in `b`; a batch takes one of them"
    assert error.message.startswith(said)
    assert "make both equal" in str(error.help)
