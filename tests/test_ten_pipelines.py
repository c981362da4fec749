"""Input code of ten public training scripts as specs: on data of the same layout they give what such code gives."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from PIL import Image

import pipegen

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.tf
RNG = np.random.default_rng(3)
RUN = {"runtime": {"jit": "never", "cache": "none"}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def photos(folder: str, names: Sequence[str], size: tuple[int, int] = (30, 40)) -> None:
    for name in names:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RNG.integers(0, 255, (*size, 3), np.uint8)).save(path)


def build(text: str, **own: Any) -> Any:
    return pipegen.build(yaml.safe_load(dedent(text)) | RUN | own)


def stored(path: str | Path) -> Any:
    return np.asarray(Image.open(path))


FOLDERS = """
    pipegen: 1
    source:
      by_split:
        train: {image_folder: {path: data/train}}
        validation: {image_folder: {path: data/val}}
        test: {image_folder: {path: data/test}}
    transforms:
      - decode: {jpeg: tensorflow, exif: ignore}
      - resize: {size: [24, 32]}
    batch: {size: 4, remainder: keep}
    output: {encode: {label: one_hot}}
"""


def test_1_three_folders() -> None:
    """`image_dataset_from_directory` of three folders, and layers."""
    import keras

    for split in ("train", "val", "test"):
        photos(f"data/{split}", [f"{name}/{i}.png" for name in ("glass", "metal", "paper") for i in range(3)])
    layers = [
        keras.layers.RandomFlip("horizontal"),
        keras.layers.RandomRotation(0.1),
        keras.layers.RandomZoom(0.1),
        keras.layers.RandomContrast(0.1),
    ]
    steps = pipegen.from_keras(layers)
    assert [next(iter(step)) for step in steps] == ["random_flip", "random_rotation", "random_zoom", "random_contrast"]
    pipe = build(FOLDERS, transforms=[*yaml.safe_load(dedent(FOLDERS))["transforms"], *steps])
    assert pipe.class_names == ("glass", "metal", "paper")
    for split, folder in (("validation", "val"), ("test", "test")):
        own = keras.utils.image_dataset_from_directory(
            f"data/{folder}", label_mode="categorical", image_size=(24, 32), batch_size=4, shuffle=False
        )
        for (x, y), (image, label) in zip(own, pipe[split], strict=True):
            np.testing.assert_allclose(image.numpy(), x.numpy(), atol=0.51)
            np.testing.assert_array_equal(label.numpy(), y.numpy())


@pytest.mark.nightly
def test_2_a_validation_split_by_seed() -> None:
    import keras

    photos("plants", [f"{name}/{i}.png" for name in ("fern", "moss") for i in range(11)])
    pipe = build("""
        pipegen: 1
        source: {image_folder: {path: plants}}
        splits: {parts: {train: 0.8, validation: 0.2}, method: keras_utility, seed: 123}
        transforms:
          - decode: {jpeg: tensorflow, exif: ignore}
          - resize: {size: 24}
          - random_flip: {axis: both}
          - rescale: {to: [0, 1]}
        batch: {size: 4, remainder: keep}
    """)
    own = {
        subset: keras.utils.image_dataset_from_directory(
            "plants", validation_split=0.2, subset=subset, seed=123, image_size=(24, 24), batch_size=4
        )
        for subset in ("training", "validation")
    }
    for split, subset in (("train", "training"), ("validation", "validation")):
        assert sorted(Path(p).as_posix() for p in own[subset].file_paths) == sorted(
            Path(p).relative_to(Path.cwd()).as_posix() for p in pipe.files(split)
        )


@pytest.mark.nightly
def test_3_labels_of_validation_in_a_file_and_classes_in_another() -> None:
    wnids = ["n03", "n01", "n02"]
    Path("wnids.txt").write_text("\n".join(wnids) + "\n")
    photos("train", [f"{name}/images/{name}_{i}.png" for name in wnids for i in range(2)], (16, 16))
    photos("val/images", [f"val_{i}.png" for i in range(6)], (16, 16))
    lines = [f"val_{i}.png\t{wnids[i * 2 % 3]}\t0\t0\t9\t9" for i in range(6)]
    Path("val/val_annotations.txt").write_text("\n".join(lines) + "\n")
    pipe = build("""
        pipegen: 1
        source:
          by_split:
            train: {image_folder: {path: train, classes: {file: wnids.txt}}}
            validation:
              csv:
                path: val/val_annotations.txt
                header: false
                separator: "\\t"
                features:
                  image: {kind: image, column: 0, root: val/images}
                  label: {kind: label, column: 1, classes: {file: wnids.txt}}
        transforms: [{resize: {size: 16}}]
        batch: {size: 6, remainder: keep}
    """)
    images, labels = next(iter(pipe.validation))
    assert labels.numpy().tolist() == [i * 2 % 3 for i in range(6)]
    np.testing.assert_array_equal(images.numpy(), [stored(f"val/images/val_{i}.png") for i in range(6)])
    assert [wnids[i] for i in pipe.labels("train")] == [Path(name).parts[-3] for name in pipe.files("train")]


@pytest.mark.nightly
def test_4_three_manifests_with_one_description() -> None:
    rows = {split: [f"{split}/{i}.png" for i in range(n)] for split, n in (("train", 6), ("validation", 4), ("test", 2))}
    for split, names in rows.items():
        photos(".", names, (16, 16))
        Path(f"{split}.csv").write_text("path,disease\n" + "".join(f"{name},{'rust' if i % 2 else 'ok'}\n" for i, name in enumerate(names)))
    pipe = build("""
        pipegen: 1
        source:
          by_split:
            common: {csv: {features: {image: {kind: image, column: path}, label: {kind: label, column: disease}}}}
            train: {csv: {path: train.csv}}
            validation: {csv: {path: validation.csv}}
            test: {csv: {path: test.csv}}
        transforms: [{resize: {size: 16}}, {rescale: {to: [0, 1]}}]
        batch: {size: 4, remainder: keep}
    """)
    for split, names in rows.items():
        given = [*pipe[split]]
        assert sum(len(y) for _, y in given) == len(names)
    images, labels = next(iter(pipe.test))
    np.testing.assert_allclose(images.numpy(), [stored(name) / np.float32(255) for name in rows["test"]], atol=1e-6)
    assert labels.numpy().tolist() == [0, 1]
    assert pipe.class_weights == {0: 1.0, 1: 1.0}


@pytest.mark.nightly
def test_5_rows_without_a_file_are_left_out() -> None:
    there = [i for i in range(24) if i % 5]
    photos("images", [f"{i}.png" for i in there], (16, 16))
    Path("outfits.csv").write_text("id,style\n" + "".join(f"{i},{'abc'[i % 3]}\n" for i in range(24)))
    pipe = build("""
        pipegen: 1
        source:
          csv:
            path: outfits.csv
            features: {image: {kind: image, column: id, root: images, ending: .png}, label: {kind: label, column: style}}
        splits: {parts: {train: 0.75, validation: 0.25}, stratify: label}
        errors: {missing: drop}
        transforms: [{resize: {size: 16}}]
        batch: {size: 4, remainder: keep}
    """)
    kept = {name: [int(Path(file).stem) for file in pipe.files(name)] for name in ("train", "validation")}
    assert sorted(kept["train"] + kept["validation"]) == there
    for name, share in (("train", 0.75), ("validation", 0.25)):
        for style in range(3):
            whole, own = (sum(1 for i in some if i % 3 == style) for some in (there, kept[name]))
            assert abs(own - share * whole) <= 1


@pytest.mark.nightly
def test_8_masks_one_hot_with_the_rest_as_background() -> None:
    photos("images", [f"{i}.png" for i in range(4)], (16, 16))
    Path("masks").mkdir()
    masks = [RNG.choice(np.array([0, 7, 8, 30], np.uint8), (16, 16)) for _ in range(4)]
    for i, mask in enumerate(masks):
        Image.fromarray(mask).save(f"masks/{i}.png")
    pipe = build("""
        pipegen: 1
        source:
          files:
            features:
              image: {kind: image, path: images}
              mask: {kind: mask, path: masks, values: {7: 0, 8: 1, else: 2}}
        splits: {parts: {validation: 4}}
        transforms: [{pad: {size: [20, 24], fill: {constant: 0}}}]
        output: {x: image, y: mask, encode: {mask: one_hot}}
        batch: {size: 4, remainder: keep}
    """)
    given = next(iter(pipe.validation))[1].numpy()
    assert given.shape == (4, 20, 24, 3)
    wanted = np.stack([np.stack([mask == 7, mask == 8], -1) for mask in masks]).astype(np.float32)
    wanted = np.concatenate([wanted, 1 - wanted.sum(-1, keepdims=True)], -1)
    top, left = (given.shape[1] - 16) // 2, (given.shape[2] - 16) // 2
    np.testing.assert_array_equal(given[:, top : top + 16, left : left + 16], wanted)


@pytest.mark.nightly
def test_9_rare_classes_are_seen_as_often_as_the_largest() -> None:
    labels = ["nevus"] * 9 + ["melanoma"] * 4 + ["keratosis"] * 2
    photos("images", [f"{i}.png" for i in range(15)], (16, 16))
    Path("skin.csv").write_text("image,dx\n" + "".join(f"images/{i}.png,{label}\n" for i, label in enumerate(labels)))
    pipe = build("""
        pipegen: 1
        source: {csv: {path: skin.csv, features: {image: {kind: image, column: image}, label: {kind: label, column: dx}}}}
        sampling: {balance: label, epoch: longest}
        transforms: [{resize: {size: 16}}, random_flip]
        output: {encode: {label: one_hot}}
        batch: {size: 9, remainder: keep}
    """)
    given = np.concatenate([y.numpy() for _, y in pipe.train])
    assert given.sum(0).tolist() == [9, 9, 9]
    seen = np.bincount(pipe._engine.order_of("train", 0), minlength=15)
    assert set(seen[:9].tolist()) == {1}
    assert seen[9:13].min() >= 2
    assert seen[13:].min() >= 4


@pytest.mark.nightly
def test_10_one_file_holds_the_input_and_the_target() -> None:
    Path("pairs").mkdir()
    for i in range(4):
        half = RNG.integers(0, 255, (32, 32, 3), np.uint8)
        Image.fromarray(np.concatenate([half, 255 - half], 1)).save(f"pairs/{i}.png")
    pipe = build("""
        pipegen: 1
        source:
          files:
            features:
              edges: {kind: image, path: pairs}
              picture: {kind: image, path: pairs, of: edges}
        splits: {parts: {train: 3, test: 1}}
        transforms:
          - crop: {size: 32, feature: edges}
          - crop: {left: 32, size: 32, feature: picture}
          - resize: {size: 36, method: nearest, when: train}
          - random_crop: {size: 32, when: train}
          - random_flip
          - rescale: {to: [-1, 1]}
          - rescale: {to: [-1, 1], feature: picture}
        output: {x: edges, y: picture}
        batch: {size: 1}
    """)
    for epoch in range(3):
        for edges, picture in pipe.dataset("train", epoch=epoch):
            np.testing.assert_allclose(edges.numpy(), -picture.numpy(), atol=1e-6)
    ((edges, picture),) = pipe.test
    whole = stored(pipe.files("test")[0]) / np.float32(127.5) - 1
    np.testing.assert_allclose(edges.numpy()[0], whole[:, :32], atol=1e-6)
    np.testing.assert_allclose(picture.numpy()[0], whole[:, 32:], atol=1e-6)


@pytest.mark.nightly
def test_6_patients_in_lists_and_a_crop_at_times() -> None:
    Path("tiles").mkdir()
    rows = [(f"tiles/{i}.png", i // 3, i % 2) for i in range(18)]
    for path, *_ in rows:
        Image.fromarray(RNG.integers(0, 255, (24, 24, 3), np.uint8)).save(path)
    Path("tiles.csv").write_text("path,patient,label\n" + "".join(f"{path},{patient},{label}\n" for path, patient, label in rows))
    Path("held_out.txt").write_text("# the patients of the paper\n4\n")
    pipe = build("""
        pipegen: 1
        source: {csv: {path: tiles.csv, features: {image: {kind: image, column: path}, label: {kind: label}}}}
        splits: {parts: {train: {patient: [0, 1, 2, 3]}, validation: {patient: [5]}, test: {patient: {file: held_out.txt}}}}
        transforms:
          - resize: {size: 24}
          - random_resized_crop: {size: 24, rows: [12, 20], aspect_ratio: [1, 1], probability: 0.4}
        batch: {size: 12}
    """)
    patients = {split: sorted({int(Path(file).stem) // 3 for file in pipe.files(split)}) for split in ("train", "validation", "test")}
    assert patients == {"train": [0, 1, 2, 3], "validation": [5], "test": [4]}
    whole = {stored(path).astype(np.float32).tobytes() for path, *_ in rows}
    kept = [x.tobytes() in whole for epoch in range(8) for images, _ in pipe.dataset("train", epoch=epoch) for x in images.numpy()]
    assert 0.45 < np.mean(kept) < 0.75, "six of ten are left as they are"


@pytest.mark.nightly
def test_7_soft_labels_with_weights_of_them_and_one_draw_for_a_few() -> None:
    rows = RNG.dirichlet([1, 1, 1], 16).round(3)
    photos("sky", [f"{i}.png" for i in range(16)], (12, 12))
    lines = [f"sky/{i}.png,{','.join(map(str, row))}" for i, row in enumerate(rows.tolist())]
    Path("sky.csv").write_text("path,clear,cloud,rain\n" + "\n".join(lines) + "\n")
    pipe = build("""
        pipegen: 1
        source:
          csv:
            path: sky.csv
            features:
              image: {kind: image, column: path}
              soft: {kind: tensor, columns: [clear, cloud, rain]}
              sure: {kind: weight, value: "clear ** 2 + cloud ** 2 + rain ** 2"}
        shuffle: none
        transforms:
          - resize: {size: 12}
          - random_flip: {draw: group}
        output: {x: image, y: soft, sample_weight: sure}
        batch: {size: 4}
    """)
    flipped = []
    for epoch in range(6):
        given = [*pipe.dataset("train", epoch=epoch)]
        np.testing.assert_allclose(np.concatenate([y.numpy() for _, y, _ in given]), rows, atol=1e-6)
        np.testing.assert_allclose(np.concatenate([w.numpy() for *_, w in given]), (rows**2).sum(1), atol=1e-6)
        images = np.concatenate([x.numpy() for x, *_ in given])
        flipped.append([not np.array_equal(image, stored(f"sky/{i}.png")) for i, image in enumerate(images)])
    for some in np.array(flipped).reshape(-1, 8):
        assert len(set(some.tolist())) == 1, "one draw for each eight in a row"
    assert 0 < np.mean(flipped) < 1
