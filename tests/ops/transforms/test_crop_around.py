"""Windows around what masks, boxes and keypoints show: against NumPy and Albumentations, and through pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import checked

from pipegen.ops.transforms.box_crops import RandomCropAround

Array = np.ndarray[Any, Any]
HEIGHT, WIDTH, COUNT = 40, 60, 16
STEP = RandomCropAround(size=(12, 20), background=(0, 3))


def expected(places: Array, u: Array, size: tuple[int, int]) -> tuple[int, int]:
    """Top and left edge of the window of `CropNonEmptyMaskIfExists` in an image, by our numbers; `places`: rows and columns."""
    room = HEIGHT - size[0], WIDTH - size[1]
    if not len(places):
        return int(u[0] * (room[0] + 1)), int(u[1] * (room[1] + 1))
    place = places[int(u[2] * len(places))]
    top, left = (int(np.clip(place[i] - int(u[i] * size[i]), 0, room[i])) for i in (0, 1))
    return top, left


def masks(rng: np.random.Generator) -> Array:
    """Few pixels of the classes 0 to 3, some of no class (255), and now and then none of any."""
    classes = rng.choice([0, 0, 0, 0, 1, 2, 3, 255], (HEIGHT, WIDTH)) * (rng.random((HEIGHT, WIDTH)) < 0.02)
    return np.asarray(classes if rng.random() < 0.8 else np.zeros_like(classes), np.int32)


@pytest.mark.nightly
@pytest.mark.tf
def test_a_window_holds_a_pixel_of_a_mask() -> None:
    import tensorflow as tf

    rng = np.random.default_rng(0)
    none = 0
    for _ in range(60):
        mask, u = masks(rng), rng.random((1, STEP.num_draws()))
        window = STEP.choose_by_pixels(tf.constant(u), tf.constant(mask[None]), tf.constant(mask[None] != 255)).numpy()[0]
        places = np.argwhere(~np.isin(mask, [0, 3, 255]))
        assert tuple(window) == (*expected(places, u[0], (12, 20)), 12, 20)
        top, left = window[:2]
        none += not len(places)
        assert not len(places) or ((places >= [top, left]) & (places < [top + 12, left + 20])).all(1).any()
    assert 3 < none < 40


@pytest.mark.tf
def test_the_first_and_the_last_pixel_can_be_the_place() -> None:
    import tensorflow as tf

    mask = np.zeros((2, HEIGHT, WIDTH), np.int32)
    mask[:, 0, 0] = mask[:, -1, -1] = 1
    u = np.array([[0.5, 0.5, 0, 0, 0], [0.5, 0.5, 1 - 2**-53, 0, 0]])
    window = STEP.choose_by_pixels(tf.constant(u), tf.constant(mask), tf.constant(mask != 255)).numpy()
    assert window.tolist() == [[0, 0, 12, 20], [HEIGHT - 12, WIDTH - 20, 12, 20]]


@pytest.mark.peers
@pytest.mark.tf
def test_windows_are_those_of_albumentations() -> None:
    """The very same, by its own code, with our numbers in the place of its own."""
    albumentations = pytest.importorskip("albumentations")
    import tensorflow as tf

    class Numbers:
        def __init__(self, u: Array) -> None:
            self.offsets, self.which = [u[1], u[0]], u[2]  # it asks for columns first

        def choice(self, several: Array) -> Any:
            return several[int(self.which * len(several))]

        def randint(self, low: int, high: int) -> int:
            return low + int(self.offsets.pop(0) * (high - low + 1))

    theirs, rng = albumentations.CropNonEmptyMaskIfExists(12, 20, ignore_values=[3, 255]), np.random.default_rng(1)
    for _ in range(40):
        mask, u = masks(rng), rng.random((1, STEP.num_draws()))
        theirs.py_random = Numbers(u[0])
        left, top, right, bottom = theirs.get_params_dependent_on_data({}, {"mask": mask})["crop_coords"]
        window = STEP.choose_by_pixels(tf.constant(u), tf.constant(mask[None]), tf.constant(mask[None] != 255)).numpy()[0]
        assert window.tolist() == [top, left, bottom - top, right - left]


@pytest.mark.tf
def test_a_window_holds_a_pixel_of_one_of_the_boxes() -> None:
    import tensorflow as tf

    rng = np.random.default_rng(2)
    for _ in range(40):
        corners = np.sort(rng.uniform(0, 1, (3, 2, 2)), 1) * [WIDTH, HEIGHT]
        boxes, there, u = corners.reshape(3, 4), rng.random(3) < 0.6, rng.random(STEP.num_draws())
        given = tf.constant(u)[None], tf.constant(boxes)[None], tf.constant(there)[None]
        window, kept = STEP.choose(*given, tf.constant(HEIGHT), tf.constant(WIDTH))
        assert kept.numpy().all()
        places = []
        for left, top, right, bottom in boxes[there]:
            places.append([int(top + u[4] * (bottom - top)), int(left + u[3] * (right - left))])
        assert tuple(window.numpy()[0]) == (*expected(np.array(places).reshape(-1, 2), u, (12, 20)), 12, 20)


def spec(features: dict[str, Any], steps: list[Any], output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, **features}}},
        "splits": {"parts": {"train": COUNT}},
        "shuffle": "none",
        "transforms": steps,
        "batch": {"size": 8},
        "output": {"dtype": "uint8", **output},
        **more,
    }


def delivered(given: dict[str, Any], data: dict[str, Any], **runtime: str) -> dict[str, Array]:
    """What an epoch holds, by name."""
    import pipegen

    known = given["source"]["arrays"]["features"]
    pipe = pipegen.build(given, data={name: data[name] for name in known}, runtime={"jit": "never", **runtime})
    found: dict[str, list[Any]] = {}
    for batch in pipe.dataset("train", epoch=0):
        xs, ys = (*batch, {})[:2]
        for name, value in ({f"x{i}": x for i, x in enumerate(xs if isinstance(xs, tuple) else (xs,))} | ys).items():
            found.setdefault(name, []).append(np.asarray(value))
    return {name: np.concatenate(values) for name, values in found.items()}


def scenes() -> dict[str, Any]:
    """One small object an image: on the image, as a mask, as a box and as a keypoint in its middle."""
    rng = np.random.default_rng(3)
    images, boxes, points = np.zeros((COUNT, HEIGHT, WIDTH, 1), np.uint8), [], []
    for image in images:
        top, left = int(rng.integers(0, HEIGHT - 5)), int(rng.integers(0, WIDTH - 5))
        image[top : top + 5, left : left + 5] = 1
        boxes.append(np.array([[left, top, left + 5, top + 5]], np.float32))
        points.append(np.array([[left + 2, top + 2, 2]], np.float32))
    return {"image": images, "mask": images.copy(), "boxes": boxes, "points": points}


MASK, BOXES, POINTS = {"mask": {"kind": "mask"}}, {"boxes": {"kind": "boxes", "max": 1}}, {"points": {"kind": "keypoints"}}


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("around", ["mask", "boxes", "points"])
@pytest.mark.parametrize("resized", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_image_mask_boxes_and_keypoints_are_cut_to_the_same_window(around: str, resized: bool) -> None:
    """Whichever of them chooses it, on images of one known size and of sizes that a step draws."""
    steps: list[Any] = [{"random_zoom_out": {"canvas": [1, 1.5], "probability": 1}}] if resized else []
    steps += [{"random_crop_around": {"size": [10, 14], "around": around}}]
    output = {"x": ["image", "mask"], "y": {name: name for name in ("boxes", "boxes_valid", "points", "points_valid")}}
    got = delivered(spec(MASK | BOXES | POINTS, steps, output), scenes())
    assert got["x0"].shape == (COUNT, 10, 14, 1)
    for image, mask, box, boxed, point, pointed in zip(*(got[name] for name in ("x0", "x1", *output["y"])), strict=True):
        seen = image[..., 0] == 1
        np.testing.assert_array_equal(seen, mask[..., 0] == 1)
        assert seen.any()
        rows, columns = np.nonzero(seen)
        assert boxed.all()
        assert box[0].tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        assert pointed.all() if around == "points" else True
        assert not pointed.any() or seen[int(point[0, 1]), int(point[0, 0])]


@pytest.mark.nightly
@pytest.mark.tf
def test_by_default_a_mask_comes_before_boxes_and_these_before_keypoints() -> None:
    data = scenes()
    data["mask"] = np.zeros_like(data["mask"])
    data["mask"][:, 0, 0] = 1
    corner = data["image"][:, :10, :14]
    steps = [{"random_crop_around": {"size": [10, 14]}}]
    got = delivered(spec(BOXES | MASK | POINTS, steps, {"x": ["image", "mask"]}), data)
    np.testing.assert_array_equal(got["x0"], corner)
    by_boxes = delivered(spec(POINTS | BOXES, steps, {"x": ["image"]}), data)
    named = [{"random_crop_around": {"size": [10, 14], "around": "boxes"}}]
    again = delivered(spec(POINTS | BOXES | MASK, named, {"x": ["image"]}), data)
    np.testing.assert_array_equal(by_boxes["x0"], again["x0"])
    assert (by_boxes["x0"] == 1).any((1, 2)).all()


@pytest.mark.nightly
@pytest.mark.tf
def test_crops_by_boxes_and_by_a_mask_follow_one_another() -> None:
    """The mask is cut to the first window, and then chooses the second one; and the other way round."""
    for steps in (
        [{"random_box_crop": {"shift": [0.5, 2]}}, {"pad": {"at_least": [10, 14]}}, {"random_crop_around": {"size": [10, 14]}}],
        [{"random_crop_around": {"size": [20, 24], "around": "mask"}}, "random_box_safe_crop", {"pad": {"size": [20, 24]}}],
    ):
        got = delivered(spec(MASK | BOXES, steps, {"x": ["image", "mask"], "y": {"boxes": "boxes", "there": "boxes_valid"}}), scenes())
        for image, mask, box, there in zip(*(got[name] for name in ("x0", "x1", "boxes", "there")), strict=True):
            rows, columns = np.nonzero(image[..., 0] == 1)
            np.testing.assert_array_equal(image[..., 0] == 1, mask[..., 0] == 1)
            assert there.all()
            assert box[0].tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


@pytest.fixture(scope="module")
def around_masks() -> dict[str, Array]:
    return delivered(spec(MASK, [{"random_crop_around": {"size": 9}}], {"x": ["image", "mask"]}), scenes())


@pytest.mark.nightly
@pytest.mark.tf
def test_an_instance_mask_leads_as_any_mask_and_the_model_need_not_get_it(around_masks: dict[str, Array]) -> None:
    """Its plane has the number of an object at each pixel, of which each is as likely as it has pixels."""
    data = scenes()
    alone = delivered(spec(MASK, [{"random_crop_around": {"size": 9}}], {"x": ["image"]}), data)
    np.testing.assert_array_equal(around_masks["x0"], alone["x0"])
    data["mask"] = data["mask"] * np.uint8(7)
    plane = delivered(spec(MASK, [{"random_crop_around": {"size": 9}}], {"x": ["image"]}), data)
    np.testing.assert_array_equal(plane["x0"], alone["x0"])


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("jit", ["never", pytest.param("always", marks=pytest.mark.nightly)])
def test_views_choose_their_own_windows_and_batches_of_any_size_have_the_same(around_masks: dict[str, Array], jit: str) -> None:
    given = spec(MASK, [{"random_crop_around": {"size": 9}}], {"x": ["image", "mask"]})
    one = around_masks
    other = delivered({**given, "batch": {"size": 5, "remainder": "keep"}}, scenes(), jit=jit)
    np.testing.assert_array_equal(one["x0"], other["x0"])
    views = spec(MASK, [{"random_crop_around": {"size": 9}}], {"x": ["image_1", "image_2", "mask_2"]}, views=2)
    got = delivered(views, scenes())
    np.testing.assert_array_equal(got["x0"], one["x0"])
    assert not np.array_equal(got["x1"], got["x0"])
    np.testing.assert_array_equal(got["x1"], got["x2"])


def findings(step: str, features: str = "") -> list[tuple[str, str]]:
    source = f"source: {{arrays: {{features: {{image: {{kind: image, size: [64, 64]}}{features}}}}}}}"
    found = checked(f"transforms: [{step}]\n{source}")
    return [(d.code, d.severity.value) for d in found.diagnostics.items]


def test_what_it_has_no_window_around_is_a_finding() -> None:
    assert ("PG590", "warning") in findings("random_crop_around: {size: 32}")
    assert ("PG217", "error") in findings("random_crop_around: {size: 32, around: mask}")
    assert ("PG203", "error") in findings("random_crop_around: {size: 32, around: label}", ", label: {kind: label, classes: 3}")
    assert ("PG206", "error") in findings("random_crop_around: {size: 65}", ", mask: {kind: mask}")
