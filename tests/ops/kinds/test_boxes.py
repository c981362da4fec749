"""Boxes: their formats, which are kept, what stands beside them, and that every plan gives the same ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from planning import built

from pipegen.errors import ModelMismatchError, OpError, SpecError
from pipegen.ops.arguments.geometry import BoxFormat, BoxRules
from pipegen.ops.families.item_stages import Move
from pipegen.ops.kinds.base import geometry_of, kind_named
from pipegen.ops.sources.features.feature import ArrayFeature
from pipegen.types import ElementType

SIZE = HEIGHT, WIDTH = 48, 64
BLACK = {"fill": {"constant": 0}}
STEPS: list[Any] = [{"random_flip": BLACK}, {"random_rotation": {"degrees": 20, **BLACK}}, {"random_zoom": {"factor": [0.8, 1.5], **BLACK}}]
COUNT = 16


def scenes(seed: int = 0) -> dict[str, Any]:
    """Images with up to four painted rectangles each, whose colour is their class."""
    rng, images, boxes, labels = np.random.default_rng(seed), np.zeros((COUNT, *SIZE, 3), np.uint8), [], []
    for i in range(COUNT):
        own = []
        for label in range(i % 4):
            x, y, (w, h) = rng.integers(0, WIDTH - 20), rng.integers(0, HEIGHT - 20), rng.integers(6, 20, 2)
            images[i, y : y + h, x : x + w, label] = 255
            own.append([x, y, x + w, y + h])
        boxes.append(np.array(own, np.float32).reshape(-1, 4))
        labels.append([("cat", "dog", "hen")[label] for label in range(i % 4)])
    return {"image": images, "boxes": boxes, "names": labels, "scores": [np.arange(len(own)) / 4 for own in boxes]}


def sections(steps: list[Any], *, size: int = 8, output: dict[str, Any] | None = None, **boxes: Any) -> dict[str, Any]:
    features = {
        "image": {"kind": "image"},
        "boxes": {"kind": "boxes", **boxes},
        "names": {"kind": "label", "with": "boxes", "classes": ["cat", "dog", "hen"]},
        "scores": {"kind": "tensor", "with": "boxes"},
    }
    return {
        "pipegen": 1,
        "source": {"arrays": {"features": features}},
        "splits": {"parts": {"train": 12, "validation": 4}, "method": "random"},
        "transforms": steps,
        "batch": {"size": size, "remainder": "keep"},
        "output": {"y": {name: name for name in ("boxes", "boxes_valid", "names", "scores")}, **(output or {})},
    }


def pipe(steps: list[Any], *, runtime: dict[str, Any] | None = None, **more: Any) -> Any:
    import pipegen

    return pipegen.build(sections(steps, **more), data=scenes(), runtime={"jit": "never", "cache": "none", **(runtime or {})})


def stream(made: Any, split: str = "train", epoch: int = 0) -> dict[str, Any]:
    parts = [{"image": x.numpy(), **{k: v.numpy() for k, v in y.items()}} for x, y in made.dataset(split, epoch=epoch)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.fixture(scope="module")
def plain() -> Any:
    return pipe(STEPS)


@pytest.mark.tf
@pytest.mark.parametrize("form", get_args(BoxFormat))
def test_a_format_is_read_and_written(form: str) -> None:
    import tensorflow as tf

    kind, boxes = geometry_of("boxes"), np.array([[[3, 4, 20, 30], [0, 0, 64, 48]]], np.float32)
    stored = kind.to_format(tf.constant(boxes), form, SIZE)
    entered, kept = kind.prepare(stored, (tf.constant(HEIGHT), tf.constant(WIDTH)), BoxRules(form))  # type: ignore[arg-type]
    np.testing.assert_allclose(entered.numpy(), boxes, atol=1e-5)
    assert kept.numpy().all()


@pytest.mark.tf
@pytest.mark.parametrize("form", get_args(BoxFormat))
def test_formats_mean_what_they_mean_in_keras(form: str) -> None:
    """Keras has no relative form of those with a width and a height."""
    import tensorflow as tf

    keras = pytest.importorskip("keras")
    convert = pytest.importorskip("keras.utils.bounding_boxes").convert_format
    if form in ("rel_xywh", "rel_center_xywh"):
        pytest.skip("Keras has no such format")
    boxes = np.array([[[3, 4, 20, 30], [10, 1, 40.5, 48]]], np.float32)
    given = {"boxes": keras.ops.convert_to_tensor(boxes), "labels": keras.ops.zeros((1, 2))}
    theirs = convert(given, source="xyxy", target=form, height=HEIGHT, width=WIDTH)["boxes"]
    ours = geometry_of("boxes").to_format(tf.constant(boxes), form, SIZE)
    np.testing.assert_allclose(ours, np.asarray(theirs), atol=1e-5)


@pytest.mark.peers
@pytest.mark.tf
@pytest.mark.parametrize(
    "rules", [{"min_area": 150}, {"min_visibility": 0.4}, {"min_size": 9}, {"min_area": 60, "min_visibility": 0.2}], ids=str
)
def test_boxes_are_kept_as_albumentations_keeps_them(rules: dict[str, Any]) -> None:
    import tensorflow as tf

    albumentations = pytest.importorskip("albumentations")
    size = {"min_width": rules["min_size"], "min_height": rules["min_size"]} if "min_size" in rules else {}
    own = {name: value for name, value in rules.items() if name != "min_size"} | size
    left, top, side = 20, 12, 24
    crop = albumentations.Crop(left, top, left + side, top + side)
    theirs = albumentations.Compose([crop], bbox_params=albumentations.BboxParams("pascal_voc", label_fields=["ids"], **own))
    rng = np.random.default_rng(3)
    low = rng.uniform(0, (WIDTH - 21, HEIGHT - 21), (60, 2))
    boxes = np.concatenate([low, low + rng.uniform(4, 20, (60, 2))], 1).astype(np.float32)
    found = theirs(image=np.zeros((*SIZE, 3), np.uint8), bboxes=boxes, ids=np.arange(60))
    shift = tf.constant([[[1.0, 0, -left], [0, 1, -top], [0, 0, 1]]], tf.float64)
    before, after = (tf.constant(HEIGHT), tf.constant(WIDTH)), (tf.constant(side), tf.constant(side))
    moved, kept = geometry_of("boxes").move(tf.constant(boxes[None]), shift, before, after, BoxRules(**rules))
    assert np.flatnonzero(kept.numpy()[0]).tolist() == np.asarray(found["ids"]).astype(int).tolist()
    np.testing.assert_allclose(moved.numpy()[0][kept.numpy()[0]], found["bboxes"], atol=1 / 256 + 1e-3)


@pytest.mark.tf
def test_what_is_affine_is_moved_as_what_may_be_projective() -> None:
    import tensorflow as tf

    rng = np.random.default_rng(5)
    matrix = np.eye(3)[None].repeat(50, 0)
    matrix[:, :2] += np.concatenate([rng.normal(0, 0.7, (50, 2, 2)), rng.normal(0, 20, (50, 2, 1))], 2)
    matrix *= rng.uniform(0.1, 9, (50, 1, 1))
    low = rng.uniform(0, 30, (50, 7, 2))
    boxes = np.concatenate([low, low + rng.uniform(0, 25, low.shape)], 2).astype(np.float32)
    size = tf.constant(HEIGHT), tf.constant(WIDTH)
    kind, rules = geometry_of("boxes"), BoxRules(min_visibility=0.3)
    given = tf.constant(boxes), tf.constant(matrix), size, size, rules
    (one, kept), (other, also) = kind.move(*given), kind.move_affinely(*given)
    np.testing.assert_array_equal(kept, also)
    np.testing.assert_allclose(one, other, rtol=0, atol=1 / 256)
    assert (one == other).numpy().mean() > 0.999, "but where the last bit decides to which part of a pixel an edge is rounded"


@pytest.mark.parametrize(
    ("steps", "runs"),
    [
        (["random_flip", {"random_rotation": {"degrees": 9, **BLACK}}, "random_flip"], 1),
        ([{"random_rotation": {"degrees": 9, **BLACK}}, "random_flip", {"random_rotation": {"degrees": 9, "fill": "nearest"}}], 2),
        ([{"random_perspective": {"x": 0.2, **BLACK}}], 1),
    ],
)
def test_a_mirror_shows_no_fill_and_so_divides_no_run(steps: list[Any], runs: int) -> None:
    """Boxes are clipped and chosen once a run; a mirror takes what is on the image to what is on the image."""
    features = {"image": {"kind": "image", "size": list(SIZE)}, "boxes": {"kind": "boxes", "max": 4}}
    plan = built(source={"arrays": {"features": features}}, transforms=steps, output={"y": "boxes"})
    found = [stage for stage in plan.stages() if isinstance(stage, Move)]
    assert len(found) == runs
    assert [stage.projective for stage in found] == ["random_perspective" in steps[0]] * runs


@pytest.mark.tf
def test_what_stands_beside_boxes_goes_with_them(plain: Any) -> None:
    """A box shows the colour of its class in its middle, and has the score that it came with."""
    for epoch in range(2):
        got = stream(plain, epoch=epoch)
        assert got["boxes"].shape == (12, 3, 4)
        assert got["names"].dtype == np.int64
        seen = 0
        for image, boxes, there, names, scores in zip(*(got[k] for k in ("image", "boxes", "boxes_valid", "names", "scores")), strict=True):
            assert list(there) == sorted(there, reverse=True)
            assert not boxes[~there].any()
            assert not names[~there].any()
            for box, name, score in zip(boxes[there], names[there], scores[there], strict=True):
                assert score == name / 4
                x, y = int(box[[0, 2]].mean()), int(box[[1, 3]].mean())
                inside = image[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2, name]
                seen += inside.max() > 128
        assert seen >= 0.9 * got["boxes_valid"].sum()


@pytest.mark.tf
@pytest.mark.parametrize("runtime", [
    {"cache": "memory"},
    pytest.param({"jit": "always"}, marks=pytest.mark.nightly),
    pytest.param({"cache": {"disk": "kept"}}, marks=pytest.mark.nightly),
], ids=str)  # fmt: skip
def test_every_plan_gives_the_same_boxes(plain: Any, runtime: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = stream(plain)
    for size in (3,) if "cache" in runtime else (8, 3):
        got = stream(pipe(STEPS, runtime=runtime, size=size))
        for name in ("boxes", "boxes_valid", "names", "scores"):
            np.testing.assert_array_equal(got[name], expected[name])


@pytest.mark.tf
@pytest.mark.parametrize(
    "step", [pytest.param("mixup", marks=pytest.mark.nightly), "cutmix", pytest.param("mosaic", marks=pytest.mark.nightly)]
)
def test_boxes_of_combined_images(step: str) -> None:
    """Each box shows its class, and what shows a class lies in a box of it."""
    got = stream(pipe([{step: {}}]))
    room = {"mixup": 6, "cutmix": 6, "mosaic": 12}[step]
    assert got["boxes"].shape == (12, room, 4)
    assert got["boxes_valid"].sum() > 12
    for image, boxes, there, names in zip(*(got[k] for k in ("image", "boxes", "boxes_valid", "names")), strict=True):
        covered = np.zeros(image.shape, bool)
        for (x0, y0, x1, y1), name in zip(boxes[there].astype(int), names[there], strict=True):
            covered[y0:y1, x0:x1, name] = True
            assert image[y0:y1, x0:x1, name].max() > 0
        assert not image[~covered].any()


@pytest.mark.tf
def test_the_largest_boxes_stay() -> None:
    whole, cut = stream(pipe([], size=4), "validation"), stream(pipe([], size=4, max=1), "validation")
    assert cut["boxes"].shape == (4, 1, 4)
    for boxes, there, own, own_there in zip(whole["boxes"], whole["boxes_valid"], cut["boxes"], cut["boxes_valid"], strict=True):
        assert own_there[0] == there.any()
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        np.testing.assert_array_equal(own[0], boxes[area.argmax()])
    padded = pipe([], size=4, max=9)
    assert stream(padded, "validation")["boxes"].shape == (4, 9, 4)
    assert "keep the 1 largest, up to 2 of 3 are cut" in str(pipe([], max=1).explain())


@pytest.mark.tf
def test_views_have_boxes_of_their_own() -> None:
    import pipegen

    targets = {name: name for name in ("boxes_1", "boxes_2", "names_1", "names_2")}
    given = sections(STEPS) | {"views": 2, "output": {"x": ["image_1", "image_2"], "y": targets}}
    made = pipegen.build(given, data=scenes(), runtime={"jit": "never", "cache": "none"})
    _, y = next(iter(made.dataset("train", epoch=0)))
    assert {k: tuple(v.shape) for k, v in y.items()} == {"boxes_1": (8, 3, 4), "names_1": (8, 3), "boxes_2": (8, 3, 4), "names_2": (8, 3)}
    assert not np.array_equal(y["boxes_1"], y["boxes_2"])


@pytest.mark.nightly
@pytest.mark.tf
def test_a_preview_draws_boxes_and_an_export_writes_them(plain: Any, tmp_path: Path) -> None:
    sheet = np.asarray(plain.preview(rows=4, draws=1, cell=160))
    assert (np.abs(sheet.astype(int) - (230, 57, 70)).max(-1) < 60).any()
    made = pipe(STEPS, output={"boxes": "rel_xywh"})
    done = made.export(tmp_path / "out", split="train", examples=5)
    lines = [json.loads(line) for line in done.table.read_text(encoding="utf-8").splitlines()]
    got = {name: values[:5] for name, values in stream(made).items()}
    for line, boxes, there, names in zip(lines, got["boxes"], got["boxes_valid"], got["names"], strict=True):
        np.testing.assert_allclose(np.array(line["boxes"]).reshape(-1, 4), boxes[there], atol=1e-6)
        assert line["names"] == [("cat", "dog", "hen")[name] for name in names[there]]


def test_boxes_without_data_have_a_type() -> None:
    boxes = kind_named("boxes").array_types(_feature())[0]
    padded = ElementType((("boxes", boxes),)).padded()
    assert padded["boxes"].shape == (None, 4)
    assert padded["boxes"].is_static


def _feature(**more: Any) -> Any:
    from pipegen.ops.sources.features.feature import ArrayFeature

    return ArrayFeature(kind="boxes", **more)


@pytest.mark.parametrize(("given", "more", "says"), [
    ([[[5, 5, 3, 9]]], {}, r"box 0 is \[5, 5, 3, 9\], which as `xyxy` has a width or a height below 0"),
    ([[[5, 5, -3, 9]]], {"format": "xywh"}, "a width or a height below 0"),
    ([[[0.1, 0.2, 0.5, 0.9]]], {}, "the boxes seem to be parts of the image"),
    ([[[10, 20, 50, 90]]], {"format": "rel_xyxy"}, "is in parts of the image, from 0 to 1"),
    ([[], [[1, 2, 3, 4]]], {"empty": "refuse"}, "row 0 of `boxes` has no boxes"),
    ([[[1, 2, 3]]], {}, "each item needs the shape"),
    ([[[1, 2, 3, float("nan")]]], {}, "holds values that are not finite numbers"),
    (3, {}, "must be a list of arrays, not"),
])  # fmt: skip
def test_boxes_that_are_none(given: Any, more: dict[str, Any], says: str) -> None:
    feature = _feature(**more)
    rows = given if isinstance(given, int) else [np.array(row, np.float32) for row in given]
    with pytest.raises(OpError, match=says):
        kind_named("boxes").read_array("boxes", feature, rows, "row {} of `boxes`".format)


@pytest.mark.parametrize(("change", "says"), [
    ({"names": {"kind": "label", "with": "box"}}, "is `boxes` meant"),
    ({"names": {"kind": "weight", "with": "boxes"}}, "is for labels, tensors, keypoints and masks of boxes, but `names` is `kind: weight`"),
    ({"names": {"kind": "label", "max": 3}}, "belongs to boxes"),
])  # fmt: skip
def test_what_cannot_stand_beside_boxes(change: dict[str, Any], says: str) -> None:
    from pipegen.api.building import build

    given = sections([])
    given["source"]["arrays"]["features"] |= change
    with pytest.raises(SpecError, match=says):
        build(given, data=scenes())


def test_a_feature_with_other_numbers_of_items_is_a_finding() -> None:
    from pipegen.api.building import build

    data = scenes()
    data["scores"] = [np.zeros(2) for _ in range(COUNT)]
    with pytest.raises(SpecError, match="row 0 has 2 items of `scores` and 0 of `boxes`"):
        build(sections([]), data=data)


@pytest.mark.nightly
@pytest.mark.tf
def test_a_model_is_compared_with_the_places_that_leave() -> None:
    keras = pytest.importorskip("keras")
    made = pipe([], max=5, output={"y": {"boxes": "boxes", "names": "names"}})
    flat = keras.layers.GlobalAveragePooling2D()(x := keras.Input((*SIZE, 3)))
    boxes = keras.layers.Reshape((5, 4), name="boxes")(keras.layers.Dense(20)(flat))
    wanted = ((3, "SparseCategoricalCrossentropy", "the model fits"), (3, "CategoricalCrossentropy", "one-hot"), (2, "", "padded"))
    for classes, loss, says in wanted:
        names = keras.layers.Reshape((5, classes), name="names")(keras.layers.Dense(5 * classes)(flat))
        model = keras.Model(x, {"boxes": boxes, "names": names})
        model.compile(loss={"boxes": "mse", "names": getattr(keras.losses, loss)(from_logits=True) if loss else "mse"})
        if loss.startswith("Sparse"):
            assert says in made.check(model)
            assert np.isfinite(model.fit(made.train, epochs=1, verbose=0).history["loss"][0])
            continue
        with pytest.raises(ModelMismatchError, match=says):
            made.check(model)


@pytest.mark.tf
@pytest.mark.nightly
def test_splits_and_parts_with_more_boxes_have_as_many_places(tmp_path: Path) -> None:
    import pipegen

    given, data = sections([]), scenes()
    features = given["source"]["arrays"]["features"]
    given["source"] = {"by_split": {"train": {"arrays": {"features": features}}, "validation": {"arrays": {"features": features}}}}
    del given["splits"]
    short = {name: values[:2] for name, values in data.items()}
    made = pipegen.build(given, data={"train": short, "validation": data}, runtime={"jit": "never"})
    assert stream(made, "validation")["boxes_valid"].sum() == sum(map(len, data["boxes"]))
    rows = {"a": 2, "b": 3}
    for name, count in rows.items():
        arrays = {"boxes": np.tile(np.array([2, 3, 20, 30], np.float32), (5, count, 1)), "names": np.full((5, count), count - 1)}
        np.savez(tmp_path / f"{name}.npz", image=data["image"][:5], scores=np.zeros((5, count)), **arrays)
    sources = {name: {"arrays": {"path": str(tmp_path / f"{name}.npz"), "features": features}} for name in rows}
    parts = {name: {"source": source, "weight": 1, "splits": {"parts": {"train": 4}}} for name, source in sources.items()}
    given["source"] = {"mix": {"parts": parts, "epoch": 8}}
    got = stream(pipegen.build(given, runtime={"jit": "never"}))
    assert got["boxes"].shape == (8, 3, 4)
    assert sorted(got["boxes_valid"].sum(1).tolist()) == [2] * 4 + [3] * 4
    assert (got["names"][got["boxes_valid"]] == np.repeat(got["boxes_valid"].sum(1) - 1, got["boxes_valid"].sum(1))).all()


@pytest.mark.tf
def test_labels_without_an_item_have_the_classes_of_others() -> None:
    feature = ArrayFeature.model_validate({"kind": "label", "with": "boxes", "classes": 3, "offset": 1})
    none, some = (
        kind_named("item_label").read_array("names", feature, given, "row {} of `names`".format) for given in ([[], []], [[1], [3, 2]])
    )
    assert none.classes == some.classes == ("1", "2", "3")


def test_no_loss_of_keras_is_proposed_for_what_is_padded() -> None:
    bare = str(pipe([], max=5, output={"y": {"boxes": "boxes", "names": "names"}}))
    assert "loss: {boxes: your own, names: your own}; `boxes` and `names` are padded where `boxes_valid` is false" in bare
    assert "which is not in `output`: add `boxes_valid` to `y`\n" in bare
    whole = str(pipe([], max=5, output={"y": {"boxes": "boxes", "names": "names", "there": "boxes_valid"}}))
    assert (
        "loss: {boxes: your own, names: your own, there: binary_crossentropy}; `boxes` and `names` are padded where `boxes_valid` is false"
        in whole
    )
    assert "add `boxes_valid`" not in whole
    assert "loss: binary_crossentropy\n" in str(pipe([], max=5, output={"y": "boxes_valid"}))
