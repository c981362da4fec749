"""The outlines of COCO's annotations: what is packed of them, and the pixels that they come to."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_annotations import SIDES, a, coco, codes, error_of, listed

from pipegen.ops.lowering import array_formats as drawing
from pipegen.ops.sources.annotations.outlines import NO_OUTLINE, Outlines

WIDTH, HEIGHT = SIDES
numbers = st.floats(-12, 60, width=32) | st.integers(-3, 45).map(float)
polygons = st.lists(st.tuples(numbers, numbers), min_size=3, max_size=8).map(lambda points: [float(x) for point in points for x in point])


def walked(polygon: list[float], height: int, width: int) -> Any:
    """A polygon filled by walking its edges in fifths of a pixel, a step after the other: an oracle beside pycocotools itself, on which
    the reader's arithmetic does not lean."""
    points = [(int(5 * x + 0.5), int(5 * y + 0.5)) for x, y in zip(polygon[::2], polygon[1::2], strict=True)]
    path = []
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
        long = max(abs(x1 - x0), abs(y1 - y0))
        flat = abs(x1 - x0) >= abs(y1 - y0)
        back = x0 > x1 if flat else y0 > y1
        (xs, ys), (xe, ye) = ((x1, y1), (x0, y0)) if back else ((x0, y0), (x1, y1))
        for step in range(long + 1) if long else ():
            t = long - step if back else step
            slope = (ye - ys) / long if flat else (xe - xs) / long
            path.append((xs + t, int(ys + slope * t + 0.5)) if flat else (int(xs + slope * t + 0.5), ys + t))
    plane = np.zeros((height, width), bool)
    for (u0, v0), (u1, v1) in pairwise(path):
        column, rest = divmod(min(u0, u1) - 2, 5)
        if u0 != u1 and rest == 0 and 0 <= column < width:
            row = -(-(min(v0, v1) - 2) // 5)
            plane[min(max(row, 0), height) :, column] ^= True
    return plane


def text_of(counts: list[int]) -> str:
    """COCO's own text of runs, written as its format is described: groups of five bits, and differences from the fourth run on."""
    found = ""
    for i, run in enumerate(counts):
        value, more = run - counts[i - 2] if i > 2 else run, True
        while more:
            five, value = value & 31, value >> 5
            more = value != (-1 if five & 16 else 0)
            found += chr(48 + five + 32 * more)
    return found


def runs_of(plane: Any) -> list[int]:
    """The lengths of runs of a plane, column by column, of which the first is outside."""
    flat = plane.T.ravel()
    ends = np.flatnonzero(np.diff(flat, prepend=False, append=not flat[-1]))
    return [int(n) for n in np.diff(ends, prepend=0)]


def planes(*segmentations: Any, below: tuple[int, ...] = ()) -> Any:
    """What the packed outlines of an image come to, of which each has its place as the value."""
    outlines = Outlines()
    found = [outlines.take(json.loads(json.dumps(one))) for one in segmentations]
    found = [outlines.take_runs(one, HEIGHT, WIDTH) if isinstance(one, dict) else one for one in found]
    assert not len(outlines.finish())
    return drawing.read_coco(outlines.packed(HEIGHT, WIDTH, [(one, i, i in below) for i, one in enumerate(found, 1)]))


def expected(shown: list[Any], below: tuple[int, ...] = ()) -> Any:
    """The larger below the smaller, and crowds below all."""
    plane = np.zeros((HEIGHT, WIDTH), np.uint8)
    for i in sorted(range(len(shown)), key=lambda i: (i + 1 not in below, -int(shown[i].sum()))):
        plane[shown[i]] = i + 1
    return plane


@pytest.mark.nightly
@settings(max_examples=150, deadline=None)
@given(objects=st.lists(st.lists(polygons, min_size=1, max_size=3), min_size=1, max_size=4), crowd=st.integers(0, 4))
def test_polygons_are_filled_as_a_walk_along_their_edges_says(objects: list[list[list[float]]], crowd: int) -> None:
    shown = [np.logical_or.reduce([walked(polygon, HEIGHT, WIDTH) for polygon in own]) for own in objects]
    np.testing.assert_array_equal(planes(*objects, below=(crowd,)), expected(shown, (crowd,)))


@pytest.mark.nightly  # by day a walk along the edges says the same
@settings(max_examples=150, deadline=None)
@given(objects=st.lists(st.lists(polygons, min_size=1, max_size=3), min_size=1, max_size=4))
def test_polygons_are_those_of_pycocotools(objects: list[list[list[float]]]) -> None:
    masks = pytest.importorskip("pycocotools.mask")
    shown = [masks.decode(masks.merge(masks.frPyObjects(own, HEIGHT, WIDTH))).astype(bool) for own in objects]
    np.testing.assert_array_equal(planes(*objects), expected(shown))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**16), density=st.floats(0, 1), first=st.booleans())
def test_runs_are_read_in_both_of_their_forms(seed: int, density: float, first: bool) -> None:
    plane = np.repeat(np.random.default_rng(seed).random((HEIGHT, WIDTH // 4)) < density, 4, 1)
    plane[0, 0] = first
    counts = runs_of(plane)
    assert sum(counts) == HEIGHT * WIDTH
    for form in (counts, text_of(counts)):
        np.testing.assert_array_equal(planes({"counts": form, "size": [HEIGHT, WIDTH]}), plane)


def test_runs_are_those_of_pycocotools() -> None:
    masks = pytest.importorskip("pycocotools.mask")
    for seed in range(20):
        plane = np.random.default_rng(seed).random((HEIGHT, WIDTH)) < seed / 20
        theirs = masks.encode(np.asfortranarray(plane.astype(np.uint8)))["counts"].decode()
        assert theirs == text_of(runs_of(plane))
        np.testing.assert_array_equal(planes({"counts": theirs, "size": [HEIGHT, WIDTH]}), plane)


def test_a_polygon_that_reaches_far_beyond_the_image_is_filled_within_it() -> None:
    far = [-900.0, -50.0, 20.0, 15.0, 9000.0, 9999.0, -900.0, 9999.0]
    np.testing.assert_array_equal(planes([far]), walked(far, HEIGHT, WIDTH))


def test_what_is_packed_is_as_small_as_the_coordinates_allow() -> None:
    """Two bytes for each of them, where the file has some five characters."""
    outlines = Outlines()
    polygon = [float(x) for x in range(100)]
    taken = [outlines.take([polygon]) for _ in range(50)]
    outlines.finish()
    packed = outlines.packed(480, 640, [(one, 1, False) for one in taken])
    assert len(packed) <= 50 * (2 * 100 + 20) + 12


def square(x: float, y: float, side: float) -> list[list[float]]:
    return [[x, y, x + side, y, x + side, y + side, x, y + side]]


def mask_of(folder: Path, key: str, **arguments: Any) -> Any:
    found = listed("coco", folder, **arguments)
    return drawing.read_coco(found.columns["mask"].record(list(found.keys).index(key)))


def test_masks_show_the_boxes_that_are_left(tmp_path: Path) -> None:
    whole = {"counts": [0, WIDTH * HEIGHT], "size": [HEIGHT, WIDTH]}
    given = [
        a(0, 7, 2, 2, 4, 4, segmentation=square(2, 2, 4)),
        a(0, 3, 0, 0, 20, 20, segmentation=square(0, 0, 20)),
        a(0, 90, 0, 0, WIDTH, HEIGHT, segmentation=whole, iscrowd=1),
        a(1, 90, 5, 5, 0, 3, segmentation=square(5, 5, 3)),
        a(1, 90, 9, 9, 5, 5, segmentation=[]),
    ]
    source = coco(tmp_path, given)
    found = listed("coco", tmp_path, **source, masks="instances")
    assert codes(found) == ["PG477", "PG477"]  # no area, no outline
    assert "the annotation 4 of" in found.notes[1].message
    assert "has no outline, so its mask does not show it; 1 of 4 boxes lack an outline" in found.notes[1].message
    assert found.columns["boxes_number"].values.tolist() == [1, 2, 3, 1]
    mask = mask_of(tmp_path, "0.png", **source, masks="instances")
    assert mask.shape == (HEIGHT, WIDTH)
    assert (mask[2:6, 2:6] == 1).all(), "the smaller lies upon the larger, whichever comes first"
    assert (mask == 2).sum() == 400 - 16
    assert (mask[20:, 20:] == 3).all()
    assert not mask_of(tmp_path, "1.png", **source, masks="instances").any()
    classes = mask_of(tmp_path, "0.png", **source, masks="classes")
    np.testing.assert_array_equal(classes, np.array([0, 2, 1, 255])[mask])
    few = mask_of(tmp_path, "0.png", **source, masks="classes", classes=["dog"])
    np.testing.assert_array_equal(few, np.array([0, 1, 0, 0])[mask])
    one = mask_of(tmp_path, "0.png", **source, masks="instances", ignore=["person"])
    np.testing.assert_array_equal(one, np.where(mask == 1, 1, 2))
    assert "mask" not in listed("coco", tmp_path, **source).columns


@pytest.mark.parametrize(("segmentation", "said"), [
    ([[1, 2, 3, 4]], "`segmentation[0]` has 4 numbers; use polygons"),
    ([[1, 2, 3, 4, 5, 6, 7]], "`segmentation[0]` has 7 numbers"),
    ([[1, 2, 3, 4, 5, 6], [1, "2", 3, 4, 5, 6]], "`segmentation[1]` holds values that are not numbers"),
    ([1, 2, 3, 4, 5, 6], "has an invalid `segmentation`: use polygons, lists [x, y, x, y, …]"),
    ("polygon", "has an invalid `segmentation`"),
    ([[1, 2, 3, 4, 1e300, 6]], "has an outline more than 100,000 pixels"),
    ({"counts": [5, 5], "size": [HEIGHT, WIDTH]}, f"has runs of 10 pixels, but its image has {HEIGHT}×{WIDTH} = 1,200"),
    ({"counts": [0, WIDTH * HEIGHT], "size": [WIDTH, HEIGHT]}, f"whose `size` is [{WIDTH}, {HEIGHT}], but its image has"),
    ({"counts": [1300, -100], "size": [HEIGHT, WIDTH]}, "has invalid `counts`: use runs: `counts`, a list of integers"),
    ({"counts": [1.5, 3], "size": [HEIGHT, WIDTH]}, "has invalid `counts`"),
    ({"counts": "é", "size": [HEIGHT, WIDTH]}, "has invalid `counts`"),
    ({"counts": "o", "size": [HEIGHT, WIDTH]}, "has invalid `counts`"),
    ({"counts": "oooooooooooo0", "size": [HEIGHT, WIDTH]}, "has invalid `counts`"),
    ({"counts": "", "size": [HEIGHT, WIDTH]}, "has invalid `counts`"),
    ({"counts": {}, "size": [HEIGHT, WIDTH]}, "has invalid `counts`"),
    ({}, "whose `size` is None"),
])  # fmt: skip
def test_a_malformed_outline_is_an_error_with_its_annotation(segmentation: Any, said: str, tmp_path: Path) -> None:
    source = coco(tmp_path, [a(0, 3, 0, 0, 5, 5, segmentation=square(0, 0, 5)), a(0, 3, 0, 0, 5, 5, segmentation=segmentation)])
    wrong = error_of("coco", tmp_path, **source, masks="instances")
    assert wrong.code == "PG475"
    assert said in wrong.message
    assert f"{tmp_path}/instances.json: " in wrong.message
    assert "(`id` 1)" in wrong.message or "annotation 1 " in wrong.message
    assert len(listed("coco", tmp_path, **source).keys) == 3, "who asks for no masks does not read them"


def test_masks_want_outlines_and_sizes(tmp_path: Path) -> None:
    source = coco(tmp_path, [a(0, 3, 0, 0, 5, 5), a(0, 3, 0, 0, 5, 5, segmentation=[])])
    assert "none of 2 boxes has an outline" in error_of("coco", tmp_path, **source, masks="classes").message
    known = [{"id": 10, "file_name": "0.png"}]
    source = coco(tmp_path, [a(0, 3, 0, 0, 5, 5, segmentation=square(0, 0, 5))], images=known)
    assert "`images[0]` needs a `width` and a `height` from 1 to 32,767" in error_of("coco", tmp_path, **source, masks="classes").message


def test_of_more_boxes_than_a_mask_tells_apart_the_largest_stay(tmp_path: Path) -> None:
    given = [a(i % 2, 3, 0, 0, 1 + i % 5, 3, segmentation=square(0, 0, 3)) for i in range(520)]
    source = coco(tmp_path, given)
    found = listed("coco", tmp_path, **source, masks="instances")
    (note,) = found.notes
    assert note.message.endswith("0.png has 260 boxes; a mask can hold 254; the smallest are left out, 12 boxes of 2 images")
    assert found.columns["boxes"].lengths.tolist() == [254, 254, 0]
    assert len(listed("coco", tmp_path, **source, masks="classes").columns["labels"].values) == 520
    categories = [{"id": i, "name": f"c{i}"} for i in range(255)]
    source = coco(tmp_path, given, categories=categories)
    wrong = error_of("coco", tmp_path, **source, masks="classes")
    assert (wrong.code, wrong.message) == ("PG478", "a mask can hold 254 classes, but there are 255")


def test_nothing_is_kept_for_each_annotation_but_bytes() -> None:
    outlines = Outlines()
    assert outlines.take(None) == NO_OUTLINE
    outlines.take(square(0, 0, 5))
    outlines.finish()
    held = [value for value in vars(outlines).values() if isinstance(value, (list, dict))]
    assert not any(held)
