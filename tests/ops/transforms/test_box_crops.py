"""Crops that boxes decide: their windows against NumPy, and images, masks and boxes that go through a pipeline together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import checked

from pipegen.ops.transforms.box_crops import TRIES, RandomBoxCrop, RandomBoxSafeCrop, RandomIouCrop

Array = np.ndarray[Any, Any]
HEIGHT, WIDTH, BOXES, COUNT = 40, 60, 3, 24


def overlap(box: Array, window: tuple[int, int, int, int]) -> float:
    top, left, rows, columns = window
    width = min(box[2], left + columns) - max(box[0], left)
    height = min(box[3], top + rows) - max(box[1], top)
    shared = max(width, 0) * max(height, 0)
    return float(shared / ((box[2] - box[0]) * (box[3] - box[1]) + rows * columns - shared))


@pytest.mark.tf
def test_a_graph_of_known_shapes_chooses_as_without_one() -> None:
    """Grappler takes a slice of a stack that makes a new axis for what was stacked, without the axis."""
    import tensorflow as tf

    step, rng = RandomIouCrop(), np.random.default_rng(0)
    u, corner = rng.random((COUNT, step.num_draws())), rng.uniform(0, 30, (COUNT, BOXES, 2))
    boxes, sides = np.concatenate([corner, corner + rng.uniform(3, 9, corner.shape)], -1), (HEIGHT, WIDTH)
    given = tf.constant(u), tf.constant(boxes), tf.ones((COUNT, BOXES), tf.bool)

    def run(*given: Any) -> Any:
        return step.choose(*given, *map(tf.constant, sides))

    plain, graph = run(*given), tf.function(run, autograph=False)(*given)
    for a, b in zip(plain, graph, strict=True):
        np.testing.assert_array_equal(a, b)


def ssd(u: Array, boxes: Array, height: int, width: int, step: RandomIouCrop) -> tuple[tuple[int, int, int, int], list[bool]]:
    """torchvision's `RandomIoUCrop`, fed with our numbers, up to its first choice of an overlap."""
    least = step.overlaps[int(u[1] * len(step.overlaps))]
    whole = (0, 0, height, width), [True] * len(boxes)
    if u[0] >= step.probability or least >= 1:
        return whole
    low, high = step.scale
    for down, across, y, x in u[2:].reshape(-1, 4):
        rows, columns = int(height * (low + (high - low) * down)), int(width * (low + (high - low) * across))
        if rows == 0 or not step.aspect_ratio[0] <= columns / rows <= step.aspect_ratio[1]:
            continue
        top, left = int(y * (height - rows + 1)), int(x * (width - columns + 1))
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2
        inside = (centres > [left, top]).all(1) & (centres < [left + columns, top + rows]).all(1)
        window = top, left, rows, columns
        if inside.any() and max(overlap(box, window) for box in boxes[inside]) >= least:
            return window, inside.tolist()
    return whole


@pytest.mark.nightly
@pytest.mark.tf
def test_the_window_is_the_first_that_overlaps_enough() -> None:
    import tensorflow as tf

    rng = np.random.default_rng(1)
    step = RandomIouCrop(probability=0.9)
    moved = 0
    for _ in range(40):
        corners = np.sort(rng.uniform(0, 1, (BOXES, 2, 2)), 1) * [WIDTH, HEIGHT]
        boxes, there = corners.reshape(-1, 4), rng.random(BOXES) < 0.7
        u = rng.random(step.num_draws())
        expected, stays = ssd(u, boxes[there], HEIGHT, WIDTH, step)
        given = tf.constant(u)[None], tf.constant(boxes)[None], tf.constant(there)[None]
        window, kept = step.choose(*given, tf.constant(HEIGHT), tf.constant(WIDTH))
        assert tuple(window.numpy()[0]) == expected
        assert kept.numpy()[0][there].tolist() == stays
        moved += expected[2:] != (HEIGHT, WIDTH)
    assert moved > 12
    assert step.num_draws() == 2 + 4 * TRIES


@pytest.mark.nightly
@pytest.mark.tf
def test_a_window_lies_around_one_of_the_boxes() -> None:
    import tensorflow as tf

    rng = np.random.default_rng(2)
    step = RandomBoxCrop(shift=(-0.4, 0.5), probability=0.8)
    chosen = set()
    for _ in range(60):
        corners = np.sort(rng.uniform(0, 1, (BOXES, 2, 2)), 1) * [WIDTH, HEIGHT]
        boxes, there, u = corners.reshape(-1, 4), rng.random(BOXES) < 0.7, rng.random(step.num_draws())
        given = tf.constant(u)[None], tf.constant(boxes)[None], tf.constant(there)[None]
        window, kept = step.choose(*given, tf.constant(HEIGHT), tf.constant(WIDTH))
        assert kept.numpy().all()
        top, left, rows, columns = window.numpy()[0]
        if u[0] >= 0.8 or not there.any():
            assert (top, left, rows, columns) == (0, 0, HEIGHT, WIDTH)
            continue
        number = int(u[1] * there.sum())
        chosen.add(number)
        box, shift = boxes[there][number], -0.4 + 0.9 * u[2:]
        sides = np.array([box[2] - box[0], box[3] - box[1]])
        first = np.clip(np.floor(box[:2] - shift[:2] * sides), 0, [WIDTH - 1, HEIGHT - 1])
        last = np.clip(np.ceil(box[2:] + shift[2:] * sides), 0, [WIDTH, HEIGHT])
        assert (left, top) == tuple(first)
        assert (columns, rows) == tuple(np.maximum(last - first, 1))
    assert chosen == {0, 1, 2}


@pytest.mark.nightly
@pytest.mark.tf
def test_a_safe_window_holds_every_box() -> None:
    """Albumentations' `BBoxSafeRandomCrop`, with edges on whole pixels."""
    import tensorflow as tf

    rng = np.random.default_rng(2)
    step = RandomBoxSafeCrop()
    for _ in range(60):
        corners = np.sort(rng.uniform(0, 1, (BOXES, 2, 2)), 1) * [WIDTH, HEIGHT]
        boxes, there = corners.reshape(-1, 4), rng.random(BOXES) < 0.7
        u = rng.random(5)
        given = tf.constant(u)[None], tf.constant(boxes)[None], tf.constant(there)[None]
        window, _ = step.choose(*given, tf.constant(HEIGHT), tf.constant(WIDTH))
        top, left, rows, columns = window.numpy()[0]
        if not there.any():
            assert (top, left, rows, columns) == (0, 0, HEIGHT, WIDTH)
            continue
        low, high = boxes[there, :2].min(0), boxes[there, 2:].max(0)
        assert (left, top) == (int(low[0] * u[1]), int(low[1] * u[2]))
        assert left + columns == int(np.ceil(WIDTH - (WIDTH - high[0]) * u[3]))
        assert top + rows == int(np.ceil(HEIGHT - (HEIGHT - high[1]) * u[4]))


def painted() -> dict[str, Any]:
    """Images with up to three rectangles of a colour each, side by side, on black; their boxes, and the same as masks."""
    rng = np.random.default_rng(3)
    images, boxes = np.zeros((COUNT, HEIGHT, WIDTH, 1), np.uint8), []
    for image in images:
        own = []
        for number in range(int(rng.integers(0, BOXES + 1))):
            left, top = int(rng.integers(20 * number, 20 * number + 8)), int(rng.integers(0, 25))
            right, bottom = left + int(rng.integers(6, 12)), top + int(rng.integers(6, 15))
            image[top:bottom, left:right] = number + 1
            own.append([left, top, right, bottom])
        boxes.append(np.array(own, np.float32).reshape(-1, 4))
    return {"image": images, "mask": images.copy(), "boxes": boxes}


def spec(steps: list[Any], *, size: int = 8, take: str = "boxes") -> dict[str, Any]:
    features = {"image": {"kind": "image"}, "mask": {"kind": "mask"}, "boxes": {"kind": "boxes", "max": BOXES}}
    return {
        "pipegen": 1,
        "source": {"arrays": {"features": features}},
        "splits": {"parts": {"train": COUNT}},
        "shuffle": "none",
        "transforms": steps,
        "batch": {"size": size},
        "output": {"x": ["image", "mask"], "y": {"boxes": "boxes", "there": "boxes_valid"} if take == "boxes" else None, "dtype": "uint8"},
    }


def delivered(given: dict[str, Any], **runtime: str) -> list[tuple[Any, Any, Any, Any]]:
    import pipegen

    pipe = pipegen.build(given, data=painted(), runtime=runtime)
    got = [(*x, y["boxes"], y["there"]) for x, y in pipe.dataset("train", epoch=0)]
    return list(zip(*(np.concatenate([np.asarray(batch[i]) for batch in got]) for i in range(4)), strict=True))


STEPS: list[Any] = [
    {"random_box_safe_crop": {"probability": 0.7}},
    {"random_zoom_out": {"canvas": [1, 1.4], "probability": 0.5}},
    {"random_iou_crop": {"overlaps": [0, 0.1, 0.3], "scale": [0.5, 1]}},
    {"pad": {"size": [64, 96]}},
]


@pytest.fixture(scope="module")
def examples() -> list[tuple[Any, Any, Any, Any]]:
    return delivered(spec(STEPS), jit="never")


@pytest.mark.nightly
@pytest.mark.tf
def test_boxes_lie_where_their_pixels_went(examples: list[tuple[Any, Any, Any, Any]]) -> None:
    """Each box that is left is just around what is left of its colour; of a colour without one, the middle is cut off."""
    cut = whole = 0
    for (image, mask, boxes, there), given in zip(examples, painted()["boxes"], strict=True):
        np.testing.assert_array_equal(image[..., 0], mask[..., 0])
        assert not boxes[~there].any()
        around = {}
        for colour in range(1, len(given) + 1):
            rows, columns = np.nonzero(image[..., 0] == colour)
            if len(rows):
                around[colour] = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        left = [colour for colour, edges in around.items() if any(np.array_equal(box, edges) for box in boxes[there])]
        assert len(left) == there.sum()
        for colour, edges in around.items():
            sides, full = np.subtract(edges[2:], edges[:2]), given[colour - 1][2:] - given[colour - 1][:2]
            if colour not in left:
                assert (sides <= (full + 1) // 2).any()
                cut += 1
            whole += colour in left
    assert whole > 15
    assert cut >= 1


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("jit", ["never", "always"])
def test_it_is_the_same_for_other_batches_and_for_images_alone(examples: list[tuple[Any, Any, Any, Any]], jit: str) -> None:
    again = delivered(spec(STEPS, size=3), jit=jit)
    for one, other in zip(examples, again, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    import pipegen

    alone = pipegen.build(spec(STEPS, take="nothing"), data=painted(), runtime={"jit": "never"})
    images = np.concatenate([np.asarray(x[0][0]) for x in alone.dataset("train", epoch=0)])
    np.testing.assert_array_equal(images, np.stack([one[0] for one in examples]))


@pytest.mark.tf
@pytest.mark.nightly  # by day those of crops around something do
def test_views_choose_their_own_windows(examples: list[tuple[Any, Any, Any, Any]]) -> None:
    """The first is the image that there is without views."""
    import pipegen

    targets = {"boxes": "boxes_1", "other": "boxes_2"}
    given = spec(STEPS) | {"views": 2, "output": {"x": ["image_1", "image_2"], "y": targets, "dtype": "uint8"}}
    pipe = pipegen.build(given, data=painted(), runtime={"jit": "never"})
    got = [(*x, y["boxes"], y["other"]) for x, y in pipe.dataset("train", epoch=0)]
    first, second, boxes, others = (np.concatenate([np.asarray(batch[i]) for batch in got]) for i in range(4))
    np.testing.assert_array_equal(first, np.stack([one[0] for one in examples]))
    np.testing.assert_array_equal(boxes, np.stack([one[2] for one in examples]))
    assert not np.array_equal(second, first)
    assert not np.array_equal(others, boxes)


def test_without_boxes_it_says_so() -> None:
    found = checked("transforms: [random_iou_crop, {resize: {size: 32}}]")
    assert [(d.code, d.severity.value) for d in found.diagnostics.items] == [("PG590", "warning")]
    assert "train" in found.plans
