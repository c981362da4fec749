"""The twelve tasks that the language must say well (`tests/tasks`), and what comes of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from collections.abc import Mapping

TASKS = Path(__file__).parent / "tasks"
SPECS = sorted(TASKS.glob("*.pipegen.yaml"))


def test_all_twelve_are_here() -> None:
    assert {int(path.name[:2]) for path in SPECS} == set(range(1, 13))


@pytest.mark.parametrize("path", [p for p in SPECS if p.name != "12-base.pipegen.yaml"], ids=lambda p: p.name[:-13])
def test_what_runs_now_has_no_finding(path: Path) -> None:
    found = inspect(path)
    assert [(d.code, d.message) for d in found.diagnostics] == []
    assert set(found.plans) == set(found.loaded.spec.split_names() if found.loaded.spec else ())


def test_a_base_alone_lacks_the_value_that_its_projects_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TASK_DATA", raising=False)
    (finding,) = inspect(TASKS / "12-base.pipegen.yaml").diagnostics
    assert (finding.code, finding.message) == ("PG108", "the param `data` has no value")
    monkeypatch.setenv("TASK_DATA", "anywhere")
    assert len(inspect(TASKS / "12-base.pipegen.yaml").diagnostics) == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The specs beside small photographs: `photos` and `held-out` with classes, `field` with a year and classes below it."""
    from pipes import write_photos

    root = tmp_path_factory.mktemp("tasks")
    for path in SPECS:
        shutil.copy(path, root)
    write_photos(root / "photos", ("daisy", "rose"), 10)
    write_photos(root / "held-out", ("daisy", "rose"), 7)
    write_photos(root / "real", ("daisy", "rose"), 25)
    write_photos(root / "made", ("daisy", "rose"), 5)
    write_photos(root / "field" / "2024", ("daisy", "rose"), 3)
    return root


def build(place: Path, name: str, params: Mapping[str, Any] | None = None) -> Any:
    import pipegen

    return pipegen.build(place / f"{name}.pipegen.yaml", params=params, runtime={"jit": "never"})


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.smoke
def test_transfer_learning(place: Path) -> None:
    pipe = build(place, "01-transfer-learning")
    x, y = pipe.peek("train", 4)
    assert (x.shape, y.shape) == ((4, 24, 24, 3), (4, 2))
    assert x.min() < -20  # what ResNet50 was trained on: mean-free, blue first
    assert (pipe.num_examples("train"), pipe.num_examples("validation")) == (17, 4)
    assert len(pipe.train) == 2
    assert sum(len(batch[0]) for batch in pipe.validation) == 4


@pytest.mark.tf
def test_three_places(place: Path) -> None:
    pipe = build(place, "08-three-places")
    assert {split: pipe.num_examples(split) for split in ("train", "validation", "test")} == {"train": 21, "validation": 15, "test": 7}
    assert pipe.class_names == ("daisy", "rose")
    images, labels = next(iter(pipe["test"]))
    assert images.shape == (7, 24, 24, 3)
    assert 0 <= float(images.numpy().min()) <= float(images.numpy().max()) <= 1
    assert labels.numpy().tolist() == [0, 0, 0, 1, 1, 1, 1]


@pytest.mark.nightly
@pytest.mark.tf
def test_patients_are_never_split(place: Path) -> None:
    import numpy as np
    from PIL import Image

    (place / "scans").mkdir()
    rows = [f"{i:02d}.png,{i // 3},{'ill' if i % 4 else 'well'}" for i in range(60)]
    (place / "scans.csv").write_text("\n".join(["file,patient,finding", *rows]))
    for i in range(60):
        Image.fromarray(np.full((20, 30), 1000 * i, np.uint16)).save(place / "scans" / f"{i:02d}.png")
    seen: set[int] = set()
    for fold in range(5):
        pipe = build(place, "03-patients-and-folds", {"fold": fold})
        patients = {split: {int(Path(file).stem) // 3 for file in pipe.files(split)} for split in pipe}
        assert not (patients["train"] & patients["validation"])
        assert not (patients["train"] & patients["test"])
        seen |= patients["validation"]
    assert len(seen | patients["test"]) == 20
    images = np.concatenate([x.numpy() for x, _ in pipe.validation])
    assert images.shape[1:] == (64, 64, 1)
    np.testing.assert_array_equal(np.unique(images), [1000.0 * int(Path(file).stem) for file in pipe.files("validation")])


@pytest.mark.nightly
@pytest.mark.tf
def test_an_image_and_its_mask(place: Path) -> None:
    import numpy as np
    from PIL import Image

    for folder in ("images", "masks"):
        (place / folder).mkdir()
    for i in range(8):
        mask = np.zeros((40, 50), np.uint8)
        mask[:, : 5 * i + 5] = 255
        Image.fromarray(mask).save(place / "masks" / f"{i}.png")
        Image.fromarray(np.repeat(mask[..., None], 3, -1)).save(place / "images" / f"{i}.bmp")
    pipe = build(place, "04-image-and-mask")
    images, masks = next(iter(pipe.train))
    assert (images.shape, masks.shape, masks.dtype.name) == ((4, 128, 128, 3), (4, 128, 128, 1), "uint8")
    np.testing.assert_array_equal(images.numpy()[..., 0] > 127, masks.numpy()[..., 0] == 1)
    assert "loss: sparse_categorical_crossentropy" in repr(pipe)


@pytest.mark.nightly
@pytest.mark.tf
def test_arrays_in_memory_with_mixup(place: Path) -> None:
    import numpy as np

    import pipegen

    x = np.random.default_rng(5).integers(0, 256, (100, 8, 8, 3), np.uint8)
    y: np.ndarray[Any, Any] = np.arange(100)[:, None] % 10
    pipe = pipegen.build(place / "05-arrays-with-mixup.pipegen.yaml", data={"image": x, "label": y}, runtime={"jit": "never"})
    images, labels = next(iter(pipe.train))
    assert (images.shape, labels.shape) == ((32, 8, 8, 3), (32, 10))
    np.testing.assert_allclose(labels.numpy().sum(1), 1, atol=1e-6)
    assert 0 < labels.numpy().max(1).min() < 1, "labels are combined"
    held = np.concatenate([batch[0].numpy() for batch in pipe.validation])
    np.testing.assert_array_equal(held, x[np.array(pipe.files("validation"), int)].astype("float32"))


@pytest.mark.tf
def test_a_table_with_three_targets_and_weights(place: Path) -> None:
    import numpy as np

    rows = [f"{i % 7},{20 + i},{i},{i},{i + 1},{i + 2},{1 + i % 3}" for i in range(60)]
    (place / "houses.csv").write_text("\n".join(["rooms,area,age,low,mid,high,weight", *rows]))
    pipe = build(place, "02-table-with-weights")
    rooms, prices, weights = next(iter(pipe.train))
    assert (rooms.shape, prices.shape, weights.shape) == ((32, 3), (32, 3), (32,))
    i = rooms.numpy()[:, 2].astype(int)
    np.testing.assert_array_equal(rooms, np.stack([i % 7, 20 + i, i], 1))
    np.testing.assert_array_equal(prices, np.stack([i, i + 1, i + 2], 1))
    np.testing.assert_array_equal(weights, 1 + i % 3)
    assert pipe.files("validation")[0].startswith(f"{place}/houses.csv:"), "a row without a file is called by where it stands"
    import keras

    import pipegen

    def model(units: int, loss: str) -> keras.Model:
        made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(units)])
        made.compile("sgd", loss)
        return made

    pipe.check(model(3, "mean_absolute_error"))
    with pytest.raises(pipegen.ModelMismatchError, match="ends in 2 units, and `price` holds 3 for each example"):
        pipe.check(model(2, "mean_squared_error"))
    with pytest.raises(pipegen.ModelMismatchError, match="is for classes, but `price` has numbers"):
        pipe.check(model(3, "categorical_crossentropy"))


@pytest.mark.tf
def test_several_labels_and_two_inputs_from_one_table(place: Path) -> None:
    import numpy as np

    import pipegen

    files = sorted(str(file.relative_to(place / "photos")) for file in (place / "photos").rglob("*.jpg"))
    rows = [f"{file},{['sun|sea', '', 'sea'][i % 3]}" for i, file in enumerate(files)]
    (place / "photos.csv").write_text("\n".join(["file,tags", *rows]))
    pipe = build(place, "06-several-labels")
    assert pipe.class_names == ("sea", "sun")
    images, labels = pipe.peek("train", 16)
    assert (images.shape, labels.dtype) == ((16, 224, 224, 3), np.float32)
    assert {tuple(row) for row in labels.tolist()} == {(1.0, 1.0), (0.0, 0.0), (1.0, 0.0)}
    rows = [f"photos/{file},{i},{2 * i},{file.split('/')[0]}" for i, file in enumerate(files)]
    (place / "photos.csv").write_text("\n".join(["file,age,weight,class", *rows]))
    pipe = build(place, "07-two-inputs")
    x, y = pipe.peek("train", 16)
    assert sorted(x) == ["facts", "picture"]
    with pytest.raises(pipegen.SpecError, match="takes images or sounds alone, but the model also needs `facts`"):
        pipe.predict_on(place / "field")
    np.testing.assert_array_equal(x["facts"][:, 1], 2 * x["facts"][:, 0])
    np.testing.assert_array_equal(y, x["facts"][:, 0] >= 10)


@pytest.mark.nightly
@pytest.mark.tf
def test_prediction_with_file_names(place: Path) -> None:
    pipe = build(place, "09-prediction")
    files = [Path(file) for file in pipe.files("predict")]
    assert files == sorted((place / "field").rglob("*.*"))
    rows = [image for batch in pipe["predict"] for image in (batch[0] if isinstance(batch, tuple) else batch)]
    assert len(rows) == len(files) == 7
    trained = build(place, "01-transfer-learning")
    found = trained.predict_on(place / "field")
    assert [Path(file) for file in found.files] == files
    assert sum(len(batch[0] if isinstance(batch, tuple) else batch) for batch in found.dataset) == 7


@pytest.mark.tf
@pytest.mark.nightly
def test_small_images_first_from_records(place: Path) -> None:
    from record_files import write_tfrecord

    photos = sorted((place / "photos").rglob("*.jpg"))
    (place / "records").mkdir()
    write_tfrecord(place / "records" / "0.tfrecord", [{"image": photo.read_bytes(), "label": i % 3} for i, photo in enumerate(photos * 3)])
    pipe = build(place, "10-tfrecords-progressive")
    assert [next(iter(stage.train))[0].shape[1:] for stage in pipe.stages] == [(128, 128, 3), (224, 224, 3)]


@pytest.mark.nightly
@pytest.mark.tf
def test_one_base_and_three_projects(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    daisies, field, box = (build(place, f"12-{name}") for name in ("daisies", "field", "gpu-box"))
    assert daisies.peek("train", 1)[0].shape == (1, 24, 24, 3)
    assert field.peek("train", 1)[0].shape == (1, 32, 32, 3)
    assert daisies.spec_hash == box.spec_hash != field.spec_hash, "runtime is no part of the meaning"
    assert daisies.files("validation") == box.files("validation")
    # What CI does: other data through the environment, and a smaller image by hand.
    monkeypatch.setenv("TASK_DATA", str(place / "held-out"))
    there = build(place, "12-base", {"size": 16})
    assert there.num_examples("train") + there.num_examples("validation") == 15
    assert there.peek("train", 1)[0].shape == (1, 16, 16, 3)


@pytest.mark.nightly
@pytest.mark.tf
def test_a_mix(place: Path) -> None:
    pipe = build(place, "11-a-mix")
    files = [Path(file).parts for file in pipe.files("train")]
    assert pipe.steps("train") == 1
    assert {part for file in files for part in file} >= {"real", "made"}
    x, y = next(iter(pipe.train))
    assert (x.shape, y.shape) == ((32, 224, 224, 3), (32,))
