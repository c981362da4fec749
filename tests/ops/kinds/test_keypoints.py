"""Keypoints: each lies where its image shows what it was put on, whatever has moved, mirrored or combined the image."""

from __future__ import annotations

import json
from pathlib import Path
from pipes import at
from typing import Any

import numpy as np
import pytest

from pipegen.errors import SpecError

SIZE = (40, 40)
COUNT = 24
NAMES = ["left_eye", "nose", "right_eye", "mouth"]
PAIRS = [["left_eye", "right_eye"]]
SWAPS = [2, 1, 0, 3]
FILL = {"fill": {"constant": 0}}
MOVES: list[Any] = [
    {"random_flip": {"axis": "both", **FILL}},
    {"random_rotation": {"degrees": 30, **FILL}},
    {"random_perspective": {"x": 0.1, "y": 0.1, "probability": 0.5, **FILL}},
    {"random_d4": FILL},
    {"random_crop": {"size": [32, 32]}},
    {"resize": {"size": [48, 50]}},
]


def scenes() -> Any:
    """Images whose pixel (x, y) is the colour (x, y, number of the record + 1)."""
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    return np.stack([np.stack([x, y, np.full_like(x, i + 1)], -1) for i in range(COUNT)]).astype(np.float32)


def poses(shape: tuple[int, ...], seed: int = 3) -> Any:
    """Points on the scenes, at whole numbers, some of them hidden or absent."""
    draw = np.random.default_rng(seed)
    places = draw.integers(0, 40, (*shape, 2)).astype(np.float32)
    seen = draw.choice([0, 1, 2, 2, 2], (*shape, 1)).astype(np.float32)
    return np.concatenate([places, seen], -1)


def boxes_around(points: Any) -> Any:
    return np.concatenate([points[..., :2].min(-2), points[..., :2].max(-2) + 1], -1).astype(np.float32)


def given(*, boxed: bool = False) -> dict[str, Any]:
    if not boxed:
        return {"image": scenes(), "pose": poses((COUNT, len(NAMES)))}
    sets = [poses((i % 4, len(NAMES)), seed=i) for i in range(COUNT)]
    boxes = [boxes_around(s) if len(s) else np.zeros((0, 4), np.float32) for s in sets]
    ids = [np.arange(len(s), dtype=np.int64) for s in sets]
    return {"image": scenes(), "pose": sets, "boxes": boxes, "id": ids}


def spec(steps: list[Any], *, boxed: bool = False, **pose: Any) -> dict[str, Any]:
    features: dict[str, Any] = {
        "image": {"kind": "image", "range": [0, 255]},
        "pose": {"kind": "keypoints", "names": NAMES, "mirror_pairs": PAIRS, **pose},
    }
    y: Any = "pose"
    if boxed:
        features["pose"]["with"] = "boxes"
        features |= {"boxes": {"kind": "boxes"}, "id": {"kind": "label", "classes": 4, "with": "boxes"}}
        y = {name: name for name in ("pose", "boxes", "id", "boxes_valid")}
    return {
        "pipegen": 1, "source": {"arrays": {"features": features}}, "splits": {"parts": {"train": COUNT - 8, "validation": 8}},
        "shuffle": "none", "transforms": steps, "batch": {"size": 8, "remainder": "keep"}, "output": {"x": "image", "y": y},
    }  # fmt: skip


def build(steps: list[Any], jit: str = "never", *, boxed: bool = False, **pose: Any) -> Any:
    import pipegen

    return pipegen.build(spec(steps, boxed=boxed, **pose), data=given(boxed=boxed), runtime={"jit": jit, "cache": "none"})


def stream(pipe: Any, split: str = "train", epochs: int = 2) -> list[tuple[int, Any, Any]]:
    """Every example of some epochs: its record, image and what else there is."""
    keys = list(map(int, pipe._engine.manifest.keys(split)))
    found = []
    for epoch in range(epochs):
        got = list((at(pipe, epoch) if split == "train" else pipe[split]).as_numpy_iterator())
        images = np.concatenate([x for x, _ in got])
        if isinstance(got[0][1], dict):
            rest: Any = {name: np.concatenate([y[name] for _, y in got]) for name in got[0][1]}
            rest = [{name: v[i] for name, v in rest.items()} for i in range(len(images))]
        else:
            rest = np.concatenate([y for _, y in got])
        found += list(zip(keys, images, rest, strict=True))
    return found


def shown(image: Any, at: Any) -> Any:
    """The colour that an image shows at a point, between four pixels; NaN beside what is left of the scene."""
    x, y = (float(v) for v in at)
    left, top = min(max(int(x), 0), image.shape[1] - 2), min(max(int(y), 0), image.shape[0] - 2)
    part = image[top : top + 2, left : left + 2].astype(np.float64)
    if np.ptp(part[..., 2]) > 1e-3 or part[0, 0, 2] < 0.5:
        return np.full(3, np.nan)
    across, down = x - left, y - top
    rows = part[0] * (1 - down) + part[1] * down
    return rows[0] * (1 - across) + rows[1] * across


def check(image: Any, points: Any, was: Any, tolerance: float) -> int:
    """Each keypoint lies on what it was put on; or, all of them, on what their mirror images were. How many lie on the scene."""
    errors = {False: [], True: []}  # type: ignore[var-annotated]
    for place, point in enumerate(points):
        colour = shown(image, point[:2]) if point[2] else np.full(3, np.nan)
        for mirrored, found in errors.items():
            origin = was[SWAPS[place] if mirrored else place]
            if point[2]:
                found.append(0.0 if np.isnan(colour).any() else np.abs(colour[:2] - origin[:2]).max())
                found.append(10.0 * (point[2] != origin[2]))
            else:
                assert not point.any()
    assert min(max(found, default=0.0) for found in errors.values()) < tolerance
    return int((points[:, 2] > 0).sum())


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("jit", ["never", pytest.param("always", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("steps", [
    MOVES, [{"one_of": {"steps": [{"random_rotation": {"degrees": 30, **FILL}}, {"flip": {}}, {"transpose": {}}]}}],
    *(pytest.param(steps, marks=pytest.mark.nightly) for steps in (
        [{"random_grid_distortion": FILL}, {"random_piecewise_affine": {"x": 0.05, "y": 0.05, **FILL}}, {"random_flip": FILL}],
        [{"random_thin_plate_spline": {"x": 0.06, "y": 0.06, "probability": 0.7, **FILL}}],
        [{"random_resized_crop": {"size": 36}}, {"random_flip": FILL}],
        [{"random_affine": {"degrees": 90, "x": 0.2, "factor": [0.7, 2], **FILL}}],
        [{"some_of": {"count": 2, "steps": [{"random_shear": {"degrees": 20, **FILL}}, {"random_flip": {"axis": "vertical", **FILL}}]}}],
    )),
], ids=["moves", "one_of", "grid", "spline", "resized_crop", "affine", "some_of"])  # fmt: skip
def test_a_pose_follows_its_image(steps: list[Any], jit: str) -> None:
    pipe, was = build(steps, jit), given()["pose"]
    got = stream(pipe)
    assert got[0][2].shape == (len(NAMES), 3)
    assert sum(check(image, points, was[key], 0.6) for key, image, points in got) > 40


@pytest.mark.tf
def test_a_pose_follows_distortions() -> None:
    lens = {"random_optical_distortion": {"coefficient": [-0.2, 0.4], **FILL}}
    pipe, was = build([{"random_elastic": {"alpha": [20, 40], "sigma": 6, **FILL}}, lens]), given()["pose"]
    assert sum(check(image, points, was[key], 0.6) for key, image, points in stream(pipe)) > 40


@pytest.mark.tf
def test_a_mirror_swaps_pairs_and_half_a_turn_does_not() -> None:
    """With whole numbers NumPy says each bit; what leaves the image is absent, or kept beyond it."""
    was, crop = given()["pose"], {"center_crop": {"size": 20}}
    for steps, matrix, swaps, outside in (
        (["flip"], [[-1, 0, 39], [0, 1, 0]], SWAPS, "remove"),
        ([{"flip": {"axis": "both"}}, "rotate_90", crop], [[0, -1, 29], [1, 0, -10]], range(4), "remove"),
        (["transpose", crop], [[0, 1, -10], [1, 0, -10]], SWAPS, "keep"),
    ):  # fmt: skip
        for key, image, points in stream(build(steps, outside=outside), "validation", 1):
            places = (np.concatenate([was[key][:, :2], np.ones((4, 1))], -1) @ np.array(matrix).T)[list(swaps)]
            seen = was[key][list(swaps), 2:]
            inside = ((places >= -0.5) & (places < len(image) - 0.5)).all(-1, keepdims=True) | (outside == "keep")
            np.testing.assert_array_equal(points, np.where((seen > 0) & inside, np.concatenate([places, seen], -1), 0))


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize(
    "steps",
    [
        MOVES,
        [{"random_elastic": {"alpha": [20, 40], "sigma": 6, **FILL}}],
        ["mosaic", {"random_flip": FILL}],
        [{"cutmix": {}}],
        [{"mixup": {}}],
    ],
    ids=["moves", "elastic", "mosaic", "cutmix", "mixup"],
)
def test_the_keypoints_of_boxes_stay_with_them(steps: list[Any]) -> None:
    """Boxes that are lost or sorted take theirs along, and in combined images the colour says whose they are."""
    data, combined = given(boxed=True), not isinstance(steps[0], dict) or steps[0].keys() & {"cutmix", "mixup"}
    seen = 0
    for key, image, y in stream(build(steps, boxed=True)):
        assert not y["pose"][~y["boxes_valid"]].any()
        for points, which in zip(y["pose"][y["boxes_valid"]], y["id"][y["boxes_valid"]], strict=True):
            if not combined:
                seen += check(image, points, data["pose"][key][which], 0.6)
                continue
            if next(iter(steps)) != "mosaic":  # `mixup` blends what would say whose they are
                seen += int((points[:, 2] > 0).sum())
                continue
            colours = [shown(image, p[:2]) for p in points if p[2]]
            owners = {round(float(c[2])) - 1 for c in colours if not np.isnan(c).any()}
            assert len(owners) <= 1
            for owner in owners:
                seen += check(image, points, data["pose"][owner][which], 0.6)
    assert seen > 40


@pytest.mark.tf
def test_points_without_names_are_any_number_and_are_dropped() -> None:
    import pipegen

    data = given() | {"pose": [poses((i % 5,), seed=i)[:, :2] for i in range(COUNT)]}
    made = spec([{"center_crop": {"size": 20}}])
    made["source"]["arrays"]["features"]["pose"] = {"kind": "keypoints"}
    made["output"]["y"] = {"pose": "pose", "there": "pose_valid"}
    for key, _, y in stream(pipegen.build(made, data=data), "validation", 1):
        want = data["pose"][key] - 10
        want = want[((want >= -0.5) & (want < 19.5)).all(-1)]
        np.testing.assert_array_equal(y["pose"][y["there"]], np.concatenate([want, np.full((len(want), 1), 2)], -1))


@pytest.mark.tf
@pytest.mark.nightly  # by day what is pasted is looked up in NumPy
@pytest.mark.parametrize("named", [True, False])
def test_points_lie_on_what_they_were_put_on_where_objects_are_pasted(*, named: bool) -> None:
    """The colour says whose a pixel is: named ones are of the image's own, others of whoever is seen there."""
    import pipegen

    data = given() | {"mask": (np.random.default_rng(1).integers(0, 4, (COUNT, 5, 5)) // 3).repeat(8, 1).repeat(8, 2).astype(np.uint8)}
    data |= {} if named else {"pose": [poses((i % 5,), seed=i) for i in range(COUNT)]}
    made = spec([{"random_flip": FILL}, "copy_paste", {"random_rotation": {"degrees": 20, **FILL}}])
    features = made["source"]["arrays"]["features"]
    features["mask"] = {"kind": "mask", "classes": 2}
    if not named:
        features["pose"] = {"kind": "keypoints"}
    made["output"]["y"] = {"pose": "pose", "mask": "mask"} | ({} if named else {"there": "pose_valid"})
    own = pasted = 0
    for key, image, y in stream(pipegen.build(made, data=data, runtime={"jit": "never", "cache": "none"})):
        for place, point in enumerate(y["pose"]):
            colour = shown(image, point[:2])
            if not point[2] or np.isnan(colour).any():
                continue
            owner = round(float(colour[2])) - 1
            own, pasted = own + (owner == key), pasted + (owner != key)
            assert not named or owner == key
            was = data["pose"][owner]
            was = was[[place, SWAPS[place]]] if named else was
            x = np.stack([was[:, 0], 39 - was[:, 0]])[..., None] - colour[0]
            near = (np.abs(x[..., 0]) < 0.6) & (np.abs(was[:, 1] - colour[1]) < 0.6) & (was[:, 2] == point[2])
            assert near.any()
    assert own > 20
    assert named or pasted > 5


@pytest.mark.tf
def test_an_export_names_them_and_a_preview_draws_them(tmp_path: Path) -> None:
    pipe = build([{"random_flip": {}}])
    done = pipe.export(tmp_path / "out", split="validation", examples=None)
    lines = [json.loads(line) for line in done.table.read_text(encoding="utf-8").splitlines()]
    got = [points for _, _, points in stream(pipe, "validation", 1)]
    assert [line["pose"] for line in lines] == [
        {name: [float(x), float(y), int(v)] for name, (x, y, v) in zip(NAMES, points, strict=True)} for points in got
    ]
    sheet = np.array(pipe.preview(rows=4, draws=1, cell=200)).astype(int)
    assert ((sheet[..., 2] > 200) & (sheet[..., 0] < 60)).any(), "the nose is blue, as nothing on the scenes is"


@pytest.mark.parametrize(("pose", "says"), [
    ({"names": ["a", "a"]}, "duplicate keypoint name `a`"),
    ({"mirror_pairs": [["nose", "tail"]]}, "has `tail`, which is not in `names`"),
    ({"mirror_pairs": [["nose", "nose"]]}, "`nose` twice"),
    ({"classes": 3}, "belongs to masks and labels"),
    ({"names": NAMES[:3]}, "has 4 keypoints, but `names` has 3"),
])  # fmt: skip
def test_what_contradicts_itself_is_a_finding(pose: dict[str, Any], says: str) -> None:
    if pose.get("names"):
        pose = {"mirror_pairs": [], **pose}
    with pytest.raises(SpecError, match=says):
        build([], **pose)


@pytest.mark.parametrize(("step", "says"), [
    ("random_grid_shuffle", "`random_grid_shuffle` has no rule for a feature of kind `keypoints`"),
    ({"cutmix": {}}, "`cutmix` has no rule to combine `pose`, a feature of kind `keypoints`"),
])  # fmt: skip
def test_a_step_that_has_no_rule_for_a_pose_is_an_error(step: Any, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        build([step])
