"""Exported examples: the pixels that training sees, and the numbers that made them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from pipes import RESIZE, SIZE, epoch_of, pipeline, shared
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import png, write_tfrecord

import pipegen

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]

STEPS: list[Any] = [
    RESIZE,
    {"random_rotation": {"degrees": 25}},
    "random_flip",
    {"random_posterization": {"bits": [2, 7], "probability": 0.5}},
    {"normalize": {"preset": "tf"}},
]


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Pipeline:
    return pipeline(photo_folder, transforms=STEPS)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]


def pixels(folder: Path, line: dict[str, Any], feature: str = "") -> Array:
    from PIL import Image

    with Image.open(folder / line[f"{feature}_file_name" if feature else "file_name"]) as image:
        return np.asarray(image)


def seen(pipe: Pipeline, epoch: int) -> tuple[Array, Array]:
    """An epoch as training sees it, back from -1..1 to bytes, and its labels."""
    x, y = epoch_of(pipe, epoch)
    return np.rint((x + 1) * 127.5).astype(np.uint8), y


@pytest.mark.nightly
@pytest.mark.smoke
def test_a_whole_epoch_is_what_training_sees(pipe: Pipeline, tmp_path: Path) -> None:
    counted: list[int] = []
    done = pipe.export(tmp_path / "out", examples=None, epoch=2, progress=counted.append)
    images, labels = seen(pipe, 2)
    table = lines(tmp_path / "out")
    assert [line["position"] for line in table] == list(range(len(images)))
    assert counted[-1] == len(images)
    assert done.files == tuple(line["file_name"] for line in table)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted([*done.files, "metadata.jsonl"])
    for line, image, label in zip(table, images, labels, strict=True):
        np.testing.assert_array_equal(pixels(tmp_path / "out", line), image)
        assert line["label"] == pipe.class_names[label] == line["source"].split("/")[0]
        assert (line["split"], line["epoch"]) == ("train", 2)
    assert done.scaled == {}
    assert done.missing == 0
    assert done.left_out == pipe.num_examples("train") - len(images)
    assert done.why == ("batch.remainder" if done.left_out else "")


@pytest.mark.nightly
def test_what_no_epoch_has_is_counted_or_written(photo_folder: Path, tmp_path: Path) -> None:
    cut = pipeline(photo_folder, transforms=STEPS[:1], batch={"size": 5})
    done = cut.export(tmp_path / "cut", examples=None, draws=2)
    examples = cut.num_examples("train")
    assert examples % 5, "a last batch is not full"
    assert done.left_out == examples % 5
    assert len(done.files) == done.epochs * (examples - done.left_out)
    assert cut.export(tmp_path / "all", examples=examples).left_out == done.left_out
    assert cut.export(tmp_path / "some", examples=3).left_out == 0
    whole = pipeline(photo_folder, transforms=STEPS[:1], batch={"size": 5, "remainder": "keep"}).export(tmp_path / "whole", examples=None)
    assert (len(whole.files), whole.left_out, whole.why) == (examples, 0, "")


@pytest.mark.nightly
def test_draws_are_versions_of_the_same_examples(pipe: Pipeline, tmp_path: Path) -> None:
    done = pipe.export(tmp_path, examples=5, draws=3, prefix="a_")
    table = lines(tmp_path)
    versions: dict[str, list[int]] = {}
    for line in table:
        assert line["file_name"].startswith("a_" + line["source"].split("/")[0])
        np.testing.assert_array_equal(pixels(tmp_path, line), seen(pipe, line["epoch"])[0][line["position"]])
        versions.setdefault(line["source"], []).append(line["epoch"])
    assert [line["position"] for line in table[:5]] == list(range(5)), "the first of the first epoch"
    assert len(versions) == 5
    assert sum(map(len, versions.values())) == 15 - done.missing
    assert all(epochs == sorted(set(epochs)) for epochs in versions.values())


@pytest.mark.nightly
@pytest.mark.parametrize(("transforms", "own", "examples", "draws"), [
    (["random_flip", {"mixup": {"alpha": 1}}], {"output": {"encode": {"label": "one_hot"}}}, 5, 3),
    (["random_flip"], {"errors": {"decode": {"skip": {"max_fraction": 0.2}}}}, None, 2),
])  # fmt: skip
def test_other_steps_after_one_that_is_not_full(
    photo_folder: Path, tmp_path: Path, transforms: list[Any], own: dict[str, Any], examples: int | None, draws: int
) -> None:
    """Epochs of 20 examples: in steps of 8, or where damaged ones are replaced, of 9 as in training."""
    sizes = {"splits": {"parts": {"train": 20, "validation": 23}}, "batch": {"size": 9, "remainder": "keep"}}
    pipe = pipeline(photo_folder, transforms=[RESIZE, *transforms], **sizes, **own)
    assert pipe.export(tmp_path, examples=examples, draws=draws).missing == 0
    table = lines(tmp_path)
    assert max(line["position"] // 8 for line in table if line["epoch"] < draws - 1) == 2, "the last step of an epoch before the last"
    sources = sorted({line["source"] for line in table})
    assert len(sources) == (examples or 20)
    assert sorted((line["source"], line["epoch"]) for line in table) == [(source, e) for source in sources for e in range(draws)]
    trained = [epoch_of(pipe, epoch)[0] for epoch in range(draws)]
    for line in table:
        np.testing.assert_allclose(pixels(tmp_path, line), trained[line["epoch"]][line["position"]], atol=0.51)


@pytest.mark.nightly
def test_the_parameters_make_the_pixels(pipe: Pipeline, photo_folder: Path, tmp_path: Path) -> None:
    """What the table says, written as steps that draw nothing, gives the same picture."""
    pipe.export(tmp_path, examples=9)
    table = lines(tmp_path)
    assert {line["parameters"]["random_posterization.applied"] for line in table} == {True, False}
    alone = [each for each in table if not each["parameters"]["random_posterization.applied"]]
    assert all("random_posterization.bits" not in each["parameters"] for each in alone)
    line = next(each for each in table if each["parameters"]["random_flip.horizontal"] and each not in alone)
    drawn = line["parameters"]
    assert set(drawn) == {"random_rotation.degrees", "random_flip.horizontal", "random_posterization.applied", "random_posterization.bits"}
    steps: list[Any] = [RESIZE, {"rotation": {"degrees": drawn["random_rotation.degrees"]}}, "flip"]
    steps.append({"posterization": {"bits": drawn["random_posterization.bits"]}})
    plain = pipeline(photo_folder, transforms=steps, shuffle="none")
    record = plain._manifest.keys("train").index(line["source"])
    np.testing.assert_array_equal(pixels(tmp_path, line), plain.peek("train", record + 1)[0][-1])


@pytest.mark.parametrize("name", ["random_crop", pytest.param("random_resized_crop", marks=pytest.mark.nightly)])
def test_a_crop_out_of_images_of_any_size(name: str, photo_folder: Path, tmp_path: Path) -> None:
    import tensorflow as tf

    from pipegen.views.preview import original

    pipe = pipeline(photo_folder, transforms=[{"decode": {"scaled": "never"}}, {name: {"size": 20}}])
    pipe.export(tmp_path, examples=3)
    executor = pipe._engine.executor("train")
    for line in lines(tmp_path):
        whole = original(executor, pipe._manifest.keys("train").index(line["source"]), "image")
        top, left, height, width = (line["parameters"][f"{name}.{side}"] for side in ("top", "left", "height", "width"))
        cut = executor.plan.index.draws[0].step.finish(tf.constant(whole[top : top + height, left : left + width]))  # type: ignore[attr-defined]
        np.testing.assert_array_equal(pixels(tmp_path, line), cut)


@pytest.mark.nightly
def test_combining_names_the_partner(photo_folder: Path, tmp_path: Path) -> None:
    """Batches that begin inside groups, in an epoch that goes on through the permutation: there the batch has to stay as it is."""
    own: dict[str, Any] = {"output": {"encode": {"label": "one_hot"}}, "batch": {"size": 12}, "epoch": {"steps": 4}}
    pipe = pipeline(photo_folder, transforms=[RESIZE, {"mixup": {"alpha": 1, "probability": 0.8}}], **own)
    assert pipe._engine.executor("train").wide == 16
    pipe.export(tmp_path, examples=17)
    plain = shared(photo_folder, transforms=[RESIZE], shuffle="none", batch={"size": 1})
    images = dict(zip(plain._manifest.keys("train"), epoch_of(plain, 0)[0], strict=True))
    combined = epoch_of(pipe, 0)[0]
    table = lines(tmp_path)
    for line in table:
        share, partner = line["parameters"]["mixup.own_share"], line["parameters"].get("mixup.partner")
        assert (partner is None) == (share == 1)
        other = 0 if partner is None else (1 - share) * images[partner].astype(np.float64)
        np.testing.assert_allclose(pixels(tmp_path, line), share * images[line["source"]] + other, atol=0.51)
        np.testing.assert_allclose(pixels(tmp_path, line), combined[line["position"]], atol=0.51)
    assert 0 < sum("mixup.partner" in line["parameters"] for line in table) < 17


def test_a_mosaic_names_its_partners(photo_folder: Path, tmp_path: Path) -> None:
    """The table alone is enough to put the pictures together again."""
    own: dict[str, Any] = {"output": {"encode": {"label": "one_hot"}}, "batch": {"size": 12}}
    pipe = pipeline(photo_folder, transforms=[RESIZE, {"mosaic": {"probability": 0.8}}], **own)
    pipe.export(tmp_path, examples=14)
    plain = shared(photo_folder, transforms=[RESIZE], shuffle="none", batch={"size": 1})
    images = dict(zip(plain._manifest.keys("train"), epoch_of(plain, 0)[0], strict=True))
    table = lines(tmp_path)
    for line in table:
        found = {name.partition(".")[2]: value for name, value in line["parameters"].items()}
        whole = images[line["source"]]
        others = [images[key] for key in found.get("partner", [line["source"]] * 3)]
        canvas = np.concatenate([np.concatenate([whole, others[0]], 1), np.concatenate(others[1:], 1)])
        top, left = whole.shape[0] - found["row"], whole.shape[1] - found["column"]
        np.testing.assert_allclose(pixels(tmp_path, line), canvas[top : top + whole.shape[0], left : left + whole.shape[1]], atol=0.51)
    assert 0 < sum("mosaic.partner" in line["parameters"] for line in table) < 14


def test_masks_numbers_and_values_that_are_no_levels(tmp_path: Path) -> None:
    import pipegen

    rng = np.random.default_rng(0)
    mask = rng.integers(0, 3, (6, 16, 16, 1)).astype(np.uint8)
    data = {"image": rng.random((6, 16, 16, 1)).astype(np.float32), "mask": mask, "age": np.array([1.5, 2, 3, 4, 5, 6], np.float32)}
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, "mask": {"kind": "mask", "classes": 3}, "age": {"kind": "tensor"}}}},
        "splits": {"parts": {"train": 5, "validation": 1}},
        "transforms": ["random_flip"],
        "batch": {"size": 5},
        "output": {"y": {"mask": "mask", "age": "age"}, "encode": {"mask": "one_hot"}},
    }
    pipe = pipegen.build(spec, data=data, runtime={"jit": "never"})
    done = pipe.export(tmp_path / "train")
    low, high = done.scaled["image"]
    assert low <= data["image"].min() < 0.1 < 0.9 < data["image"].max() <= high
    table = lines(tmp_path / "train")
    images, y = pipe.peek("train", 5)
    for line, image, encoded in zip(table, images, y["mask"], strict=True):
        assert line["image_scaled_from"] == [low, high]
        np.testing.assert_array_equal(pixels(tmp_path / "train", line), np.rint((image[..., 0].astype(float) - low) * (255 / (high - low))))
        np.testing.assert_array_equal(pixels(tmp_path / "train", line, "mask"), encoded.argmax(-1))
        assert line["age"] == data["age"][int(line["source"])]
        assert line["file_name"].startswith(f"row-{line['source']}-")
    assert len(table) == 5
    evaluated = pipe.export(tmp_path / "validation", "validation", draws=3, form="jpeg", quality=80)
    assert evaluated.epochs == len(evaluated.files) == 1, "nothing is drawn there"
    assert evaluated.files[0].endswith(".jpg")


@pytest.mark.nightly
def test_labels_that_are_read_with_their_record_are_named(tmp_path: Path) -> None:
    """Each by its own classes, also one that does not give the data its classes."""
    rows = [{"image": png(i, 0, 0), "label": i % 2, "kind": ("y", "x", "y")[i].encode()} for i in range(3)]
    (tmp_path / "data").mkdir()
    path = write_tfrecord(tmp_path / "data" / "a.tfrecord", rows)
    label: dict[str, Any] = {"kind": "label", "classes": ["even", "odd"]}
    features = {"image": {"kind": "image", "key": "image"}, "label": label, "kind": {"kind": "label", "classes": ["x", "y"]}}
    source = {"tfrecord": {"path": str(path), "features": features}}
    output = {"x": "image", "y": {"label": "label", "kind": "kind"}}
    made = pipegen.build({"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 4}}], "output": output, "batch": {"size": 3}})
    made.export(tmp_path / "out", examples=None)
    named = [(line["label"], line["kind"]) for line in lines(tmp_path / "out")]
    assert sorted(named) == [("even", "y"), ("even", "y"), ("odd", "x")]


def test_a_mask_keeps_its_ids() -> None:
    import io

    from PIL import Image

    from pipegen.ops.lowering.pictures import encode_image, encode_mask

    for most in (3, 255, 300):
        mask: Array = np.arange(12).reshape(3, 4, 1) * most // 11
        with Image.open(io.BytesIO(encode_mask(mask))) as image:
            np.testing.assert_array_equal(np.asarray(image), mask[..., 0])
    with pytest.raises(ValueError, match="a JPEG cannot have 4 channels"):
        encode_image(np.zeros((2, 2, 4), np.uint8), "jpeg", 90)


def test_what_is_refused(pipe: Pipeline, photo_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("kept")
    with pytest.raises(FileExistsError, match="not empty"):
        pipe.export(tmp_path / "full")
    assert pipe.export(tmp_path / "full", examples=1, overwrite=True).files
    assert (tmp_path / "full" / "mine.txt").read_text() == "kept"
    for own in ({"examples": 0}, {"draws": 0}, {"epoch": -1}, {"form": "gif"}, {"quality": 0}, {"prefix": "a/b"}):
        with pytest.raises(ValueError, match=r"at least|from 1 to 100|form|prefix"):
            pipe.export(tmp_path / "none", **own)
    with pytest.raises(ValueError, match="become part of the data"):
        pipe.export(photo_folder / "augmented")
    with pytest.raises(KeyError, match="there is no split"):
        pipe.export(tmp_path / "none", "test")
    assert not (tmp_path / "none").exists()


def test_damaged_files(photo_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(photo_folder, tmp_path / "photos")
    skips: dict[str, Any] = {"errors": {"decode": {"skip": {"max_fraction": 0.2}}}}
    pipe = pipeline(folder, transforms=[RESIZE, "random_flip"], shuffle="none", **skips)
    hurt = Path(pipe.files("train")[1])
    hurt.write_bytes(hurt.read_bytes()[:300])
    assert pipe.export(tmp_path / "few", examples=4).missing == 1
    assert [line["position"] for line in lines(tmp_path / "few")] == [0, 2, 3]
    assert pipe.export(tmp_path / "all", examples=None).missing == 0
    table = lines(tmp_path / "all")
    assert [line["position"] for line in table] == list(range(32))
    assert table[1]["source"] == table[2]["source"] != hurt.name, "another one stands in, as in training"
    assert all(pixels(tmp_path / "all", line).shape == (SIZE, SIZE, 3) for line in table)
