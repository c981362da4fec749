"""A kind that the package does not know: ragged items on an image, which follow it through every stage."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from open_scenes import FILL, MOST, STEPS, spec, stream

from pipegen.errors import PartError, SpecError
from pipegen.ops.families.augmentation import GEOMETRY
from pipegen.types import ElementType

pytestmark = pytest.mark.usefixtures("open_set")


def shown(image: Any, at: Any) -> Any:
    """The place on the scene that an image shows at a point, which lies within it; NaN beside the scene's edge."""
    height, width = image.shape[:2]
    x, y = (float(v) for v in at)
    left, top = min(max(int(x), 0), width - 2), min(max(int(y), 0), height - 2)
    part = image[top : top + 2, left : left + 2].astype(np.float64)
    if part[..., 2].min() < 254.5:
        return np.full(2, np.nan)
    across, down = x - left, y - top
    rows = part[0] * (1 - down) + part[1] * down
    rows = part[:, 0] * (1 - across) + part[:, 1] * across
    return (rows[0] * (1 - down) + rows[1] * down)[:2]


def check_places(pipe: Any, given: tuple[Any, Any, Any], tolerance: float) -> int:
    """Each item lies where its image shows the point that it was, in their order; of others the image shows nothing. How many lie
    where the image has a colour."""
    seen = 0
    for key, image, points, there in zip(pipe._engine.manifest.keys("train"), *given, strict=True):
        own = points_of(int(key.split(".")[0]))
        assert list(there) == sorted(there, reverse=True)
        assert not points[~there].any()
        places = [shown(image, point) for point in points[there]]
        found = [int(np.abs(own - place).max(-1).argmin()) for place in places if not np.isnan(place).any()]
        assert found == sorted(set(found))
        for place in places:
            if not np.isnan(place).any():
                assert np.abs(own - place).max(-1).min() < tolerance
                seen += 1
        if there.sum() == len(found):
            clear = image[image[..., 2] >= 254.5][:, :2]
            for lost in set(range(len(own))) - set(found):
                assert np.abs(clear - own[lost]).max(-1).min() > 0.3
    return seen


def points_of(record: int) -> Any:
    from pipegen.ops.sources.scenes import points_of as of

    return of(record)


@pytest.fixture(scope="module")
def plain(open_set: None) -> Any:
    import pipegen

    return pipegen.build(spec(STEPS), runtime={"jit": "never", "cache": "none"})


@pytest.mark.tf
def test_points_go_where_their_image_goes(plain: Any) -> None:
    given = stream(plain)
    assert given[1].shape == (10, MOST, 2)
    assert given[2].shape == (10, MOST)
    assert check_places(plain, given, 0.2) >= 8
    again = stream(plain, epoch=1)
    assert not np.array_equal(given[1], again[1])


@pytest.mark.tf
def test_what_leaves_the_image_is_dropped(plain: Any) -> None:
    """The middle of the scene is cut out, and NumPy says which points lie there."""
    import pipegen

    pipe = pipegen.build(spec([{"center_crop": {"size": [20, 20]}}]), runtime={"jit": "never"})
    _, points, there = stream(pipe, "validation")
    keys = [int(key) for key in pipe._engine.manifest.keys("validation")]
    for key, own, valid in zip(keys, points, there, strict=True):
        moved = points_of(key) - np.array([18, 10], np.float32)
        inside = ((moved >= -0.5) & (moved < 19.5)).all(-1)
        np.testing.assert_allclose(own[valid], moved[inside], atol=1 / 256)


@pytest.mark.tf
@pytest.mark.parametrize(
    "runtime",
    [
        {"jit": "always"},
        {"cache": "memory"},
        {"cache": {"disk": "kept"}},
    ],
    ids=str,
)
@pytest.mark.nightly  # by day boxes go through a cache: they are of any number, too
def test_every_plan_gives_the_same_points(plain: Any, runtime: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipegen

    monkeypatch.chdir(tmp_path)
    steps = [{"resize": {"size": [40, 56]}}, *STEPS] if "cache" in runtime else STEPS
    pipe = pipegen.build(spec(steps), runtime={"jit": "never", **runtime})
    expected = stream(plain)
    for _ in range(2):
        image, points, there = stream(pipe)
        np.testing.assert_array_equal(there, expected[2])
        np.testing.assert_allclose(points, expected[1], atol=1 / 128)
        np.testing.assert_allclose(image, expected[0], atol=1e-3)


@pytest.fixture(scope="module")
def folder(open_set: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenes of several sizes, each large enough for its points."""
    from PIL import Image
    from pipegen.ops.sources.scenes import scene

    root = tmp_path_factory.mktemp("scenes")
    for i in range(12):
        Image.fromarray(scene(40 + 3 * i, 90 - 2 * i)).save(root / f"{i:02d}.png")
    return root


@pytest.fixture(scope="module")
def files(folder: Path) -> Any:
    import pipegen

    steps = [
        {"random_flip": FILL},
        {"random_resized_crop": {"size": [36, 44], "area": [0.5, 1]}},
        {"random_rotation": {"degrees": 20, **FILL}},
    ]
    return pipegen.build(spec(steps, folder=str(folder)), runtime={"jit": "never"})


@pytest.mark.tf
def test_points_follow_images_of_any_size(files: Any) -> None:
    assert check_places(files, stream(files), 1.5) >= 8


@pytest.mark.tf
@pytest.mark.parametrize("policy", [
    {"one_of": {"steps": [{"random_rotation": {"degrees": 30, **FILL}}, {"random_flip": FILL}, "random_invert"], "weights": [2, 2, 0]}},
    *(pytest.param(policy, marks=pytest.mark.nightly) for policy in (
        {"some_of": {"count": 2, "steps": [{"random_shear": {"degrees": 20, **FILL}}, {"random_flip": {"axis": "vertical", **FILL}}]}},
        {"rand_augment": {"magnitude": 20, **FILL}},
    )),
], ids=lambda policy: next(iter(policy)))  # fmt: skip
def test_points_follow_what_a_policy_chooses(policy: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipegen

    monkeypatch.setattr("pipegen.ops.transforms.rand_augment.USED", ("identity", *GEOMETRY))  # others change the colours that tell places
    steps = [{"center_crop": {"size": [40, 60]}}, policy]
    pipe = pipegen.build(spec(steps, folder=str(folder)), runtime={"jit": "never"})
    assert check_places(pipe, stream(pipe), 1.5) >= 8


@pytest.mark.tf
def test_the_record_that_stands_in_for_a_damaged_one_brings_its_points(folder: Path, tmp_path: Path) -> None:
    import shutil

    import pipegen

    root = shutil.copytree(folder, tmp_path / "scenes")
    sections = spec([{"center_crop": {"size": [36, 44]}}], folder=str(root)) | {"errors": {"decode": {"skip": {"max_fraction": 0.5}}}}
    damaged = pipegen.build(sections)._engine.manifest.keys("train")[3]
    (root / damaged).write_bytes((root / damaged).read_bytes()[:60])
    pipe = pipegen.build(sections, runtime={"jit": "never"})
    keys = pipe._engine.manifest.keys("train")
    corners = {(44 - 2 * i + 2) // 2 * 1000 + (4 + 3 * i) // 2: i for i in range(12)}
    shown_ = []
    for image, points, there in zip(*stream(pipe), strict=True):
        left, top = image[0, 0, :2]
        shown_.append(corners[round(float(left)) * 1000 + round(float(top))])
        moved = points_of(shown_[-1]) - np.array([left, top], np.float32)
        inside = ((moved >= -0.5) & (moved < (43.5, 35.5))).all(-1)
        np.testing.assert_allclose(points[there], moved[inside], atol=1 / 256)
    assert [i != int(key[:2]) for i, key in zip(shown_, keys, strict=True)] == [key == damaged for key in keys]


@pytest.mark.tf
@pytest.mark.parametrize("how", [
    {"shorter_side": 30}, {"size": [30, 70]}, {"size": [30, 40], "mode": "pad"}, {"size": [30, 40], "mode": "crop"},
    {"size": [30, 40], "mode": "crop", "method": {"pillow": "bilinear"}},
], ids=str)  # fmt: skip
def test_a_resize_says_which_part_it_shows(how: dict[str, Any]) -> None:
    """So that a point of the output comes from where the image there says, up to the rounding of its colours."""
    import tensorflow as tf
    from pipegen.ops.sources.scenes import scene

    from pipegen.ops.lowering.windows import onto
    from pipegen.ops.transforms.resize import Resize

    step, draws = Resize.model_validate(how), tf.zeros([1, 0], tf.float64)
    image = step.apply(tf.constant(scene(66, 101)), draws[0]).numpy()
    box, size = step.shown(draws, tf.constant(66), tf.constant(101))
    assert tuple(int(side) for side in size) == image.shape[:2]
    matrix = onto(box, size, tf.zeros([1], tf.float64)).numpy()[0]
    y, x = np.mgrid[3 : image.shape[0] - 3, 3 : image.shape[1] - 3].reshape(2, -1)
    clear = image[y, x, 2] == 255
    places = (matrix @ np.stack([x, y, np.ones_like(x)]))[:2, clear]
    assert clear.mean() > 0.5
    np.testing.assert_allclose(places.T, image[y, x, :2][clear], atol=1.2)


@pytest.mark.tf
def test_several_records_are_read_as_each_is(files: Any) -> None:
    import tensorflow as tf

    executor = files._engine.executor("train")
    keys = files._engine.manifest.keys("train")
    records = tf.constant([3, 0, 5], tf.int64)
    several = executor.tensors.read_each(records, executor.plan.read, 3)
    assert several.keys() == {"image", "points", "points_valid"}
    together = executor.tensors.read(records, ElementType((("points", executor.plan.read["points"]),)))["points_valid"]
    for i, record in enumerate(records):
        one = executor.tensors.read(record, executor.plan.read)
        np.testing.assert_array_equal(several["points"][i], one["points"])
        np.testing.assert_array_equal(together[i], one["points_valid"])
        key = keys[int(record)]
        np.testing.assert_array_equal(one["points"][one["points_valid"]], points_of(int(key.split(".")[0])))


@pytest.mark.nightly
@pytest.mark.tf
def test_an_export_writes_the_items_that_are_there(files: Any, tmp_path: Path) -> None:
    done = files.export(tmp_path / "out", split="train", examples=4)
    lines = [json.loads(line) for line in done.table.read_text(encoding="utf-8").splitlines()]
    _, points, there = (part[:4] for part in stream(files))
    assert len(lines) == 4
    assert [line["points"] for line in lines] == [
        [{"x": round(float(x), 2), "y": round(float(y), 2)} for x, y in own[valid]] for own, valid in zip(points, there, strict=True)
    ]
    assert len(list((tmp_path / "out").glob("*.png"))) == len(lines)


@pytest.mark.tf
def test_a_preview_draws_them(files: Any) -> None:
    sheet = np.array(files.preview(rows=3, draws=1, cell=200))
    pink = (sheet[..., 0] > 180) & (sheet[..., 1] < 120) & (sheet[..., 2] > 180)
    assert pink.any()


@pytest.mark.parametrize(("step", "says"), [
    ({"random_elastic": {"alpha": 20, "sigma": 4}}, "`random_elastic` has no rule for a feature of kind `points`"),
    ({"one_of": {"steps": [{"random_elastic": {"alpha": 20, "sigma": 4}}, "random_flip"]}}, "no rule for a feature of kind `points`"),
    ({"python": {"function": "my_pkg.weather:rain"}}, "may move the pixels of `image`, but not those of `points`"),
    ({"cutmix": {}}, "`cutmix` has no rule to combine `points`, a feature of kind `points`"),
    ({"mixup": {}}, "`mixup` has no rule to combine `points`, a feature of kind `points`"),
])  # fmt: skip
def test_a_step_that_has_no_rule_for_them_is_an_error(step: dict[str, Any], says: str) -> None:
    from pipegen.api.building import build

    with pytest.raises(SpecError, match=says):
        build(spec([step]))


def test_they_are_aligned_with_the_only_image() -> None:
    from pipegen.ops.sources.features.feature import aligned_images

    image, points = (SimpleNamespace(kind=kind, of=None, ignore=0) for kind in ("image", "points"))
    assert aligned_images({"image": image, "points": points}) == {"image": None, "points": "image"}
    with pytest.raises(PartError, match="`points` needs `of`"):
        aligned_images({"image": image, "other": image, "points": points})


def test_a_step_cannot_move_the_image_alone() -> None:
    from pipegen.api.building import build

    with pytest.raises(SpecError, match="moves `image` alone, but not `points`"):
        build(spec([{"random_flip": {"feature": "image"}}]))


@pytest.mark.nightly
@pytest.mark.tf
def test_tests_of_data_look_at_the_items_that_are_there() -> None:
    import pipegen

    given = spec(STEPS) | {"runtime": {"jit": "never"}}
    points, there = (
        np.concatenate([y[name] for _, y in pipegen.build(given).dataset("train", epoch=0).as_numpy_iterator()])
        for name in ("points", "there")
    )
    items = points[there].astype(np.float64)
    tests = [{kind: {"feature": "points", "within": [-99, 99], "split": "train"}} for kind in ("range", "mean")]
    spread, mean = pipegen.test({**given, "tests": tests}).results
    assert spread.seen.startswith(f"train: {items.min():.4g} to {items.max():.4g} in {int(there.any(1).sum())} examples")
    assert mean.seen.startswith(f"train: {items.mean():.4g} over")
