"""The boxes that `max` cuts are counted from the listing, in every source of boxes, without a look at an image."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_boxed_sources import COUNT, boxes_on, write

import pipegen

pytestmark = pytest.mark.tf


def lines(source: dict[str, Any], *steps: Any, split: str = "train", data: Any = None, **own: Any) -> list[str]:
    sections = {
        "pipegen": 1,
        "source": source,
        "transforms": [{"resize": {"size": [64, 88]}}, *steps],
        "output": {"y": "boxes"},
    }
    pipe = pipegen.build({**sections, "batch": {"size": 2}, **own}, data=data, runtime={"jit": "never"})
    found = [line.strip() for line in str(pipe.explain(split)).splitlines() if "max: " in line]
    assert str(pipe.explain_html(split)).count("stored: ") == sum("stored: " in line for line in found)
    return found


def asked(source: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    ((op, own),) = source.items()
    return {op: {**own, **arguments}}


@pytest.mark.nightly
@pytest.mark.parametrize("op", ["coco", *(pytest.param(op, marks=pytest.mark.nightly) for op in ("voc", "yolo", "labelme"))])
def test_each_source_counts_the_boxes_beyond_the_most(op: str, tmp_path: Path) -> None:
    source = write(tmp_path, op)
    own = [len(boxes_on(i)) for i in range(COUNT)]
    many, cut = sum(n > 1 for n in own), sum(max(0, n - 1) for n in own)
    due = f"`max: 1` of `boxes`: {many} of {COUNT} images have more, as stored: {cut} of all {sum(own)} are cut"
    found = lines(asked(source, max=1))
    assert found == [due]
    assert re.fullmatch(r"`max: 1` of `boxes`: 4 of 10 images have more, as stored: 6 of all 13 are cut", found[0])
    if op == "coco":
        assert lines(asked(source, max=1), {"random_crop": {"size": 48}}) == [f"{due}; fewer where steps lose some before"]
        assert lines(asked(source, max=2), "mosaic", split="train")[0].endswith("; combined images have those of several")
        assert lines(asked(source, max=3)) == ["`max: 3` of `boxes`: no image has more, 3 at most"]
        assert lines(source) == []
        assert lines(asked(source, max=1), output={"x": "image", "y": "image"}) == []


@pytest.mark.nightly
def test_splits_and_parts_of_a_mix_are_counted_apart(tmp_path: Path) -> None:
    boxes = [np.array([[0, 0, 4 + k, 5] for k in range(n)], np.float32).reshape(-1, 4) for n in (0, 1, 5, 2, 4, 9)]
    source = {"arrays": {"features": {"image": {"kind": "image"}, "boxes": {"kind": "boxes", "max": 3}}}}
    data = {"image": np.zeros((6, 40, 40, 3), np.uint8), "boxes": boxes}
    given = {"data": data, "splits": {"parts": {"train": 4, "validation": 2}}}
    by_split = {split: lines(source, split=split, **given) for split in ("train", "validation")}
    said = [re.findall(r"[\d]+", line) for (line,) in by_split.values()]
    assert [int(numbers[2]) for numbers in said] == [4, 2]
    assert sum(int(numbers[1]) for numbers in said) == 3
    assert sum(int(numbers[3]) for numbers in said) == 9
    parts = {}
    for name, first in (("a", 0), ("b", 5)):
        own = asked(write(tmp_path / name, "coco", range(first, first + 5)), max=1)
        parts[name] = {"weight": 1, "splits": {"parts": {"train": 5}}, "source": own}
    found = lines({"mix": {"epoch": 8, "parts": parts}})
    assert [line.split(":")[0] for line in found] == ["a", "b"]
    assert "a: `max: 1` of `boxes`: 2 of 5 images have more, as stored: 3 of all 6 are cut" in found
