"""`pipegen init`: what it makes of folders of many shapes."""

from __future__ import annotations

import csv
import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import Cli, write_images

import pipegen
from pipegen.phases.compilation import collect_data, inspect


def live_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def written(cli: Cli, folder: Path | str, *args: str) -> tuple[str, Any]:
    """Run `init`; the text of the spec, and the spec, which has no findings and fits its data."""
    result = cli("init", str(folder), *args)
    assert result.exit_code == 0, result.output
    name = result.stdout.split(":")[0].removeprefix("wrote ")
    text = Path(name).read_text(encoding="utf-8")
    assert not inspect(name).diagnostics.items
    assert len(live_lines(text)) <= 13
    assert text.startswith("# yaml-language-server: $schema=pipegen.schema.json\n")
    assert f"pipegen preview {name}" in result.stdout
    assert f"pipegen validate {name} --data" in result.stdout
    spec = pipegen.load(name)
    return text, (spec, collect_data(spec))


def test_class_folders(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "flowers" / "rose", 50, size=(300, 260))
    write_images(tmp_path / "flowers" / "tulip", 40, size=(240, 230), kind="png")
    text, (spec, manifest) = written(cli, "flowers")
    assert (tmp_path / "flowers.pipegen.yaml").exists()
    assert "# Classes: rose 50, tulip 40" in text
    assert "JPEG, PNG; 240 to 300 pixels wide, 230 to 260 high" in text
    assert "resize: {size: 224}" in text
    assert "path: flowers/}" in text
    assert spec.model.splits.stratify == "label"
    assert manifest.num_examples("train") == 72
    assert spec.model.batch.size == 32


def test_train_and_validation_folders(cli: Cli, tmp_path: Path) -> None:
    for split, count in (("Train", 12), ("val", 6), ("test", 6)):
        for name in ("cat", "dog"):
            write_images(tmp_path / "pets" / split / name, count)
    text, (spec, manifest) = written(cli, "pets")
    assert spec.model.splits.method == "folder"
    assert dict(spec.model.splits.parts) == {"train": "Train", "validation": "val", "test": "test"}
    assert [manifest.num_examples(s) for s in ("train", "validation", "test")] == [24, 12, 12]
    assert "# Splits: train 24, validation 12, test 12" in text


def test_an_unlabelled_test_folder_is_for_prediction(cli: Cli, tmp_path: Path) -> None:
    for split in ("train", "validation"):
        for name in ("cat", "dog"):
            write_images(tmp_path / "pets" / split / name, 8)
    write_images(tmp_path / "pets" / "test", 5)
    text, (spec, manifest) = written(cli, "pets")
    assert list(spec.model.splits.parts) == ["train", "validation"]
    assert "test/ has no class folders" in text
    assert manifest.class_names == ("cat", "dog")


def test_train_with_classes_and_nothing_to_validate_on(cli: Cli, tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        write_images(tmp_path / "pets" / "train" / name, 8)
    write_images(tmp_path / "pets" / "test", 5)
    text, (_, manifest) = written(cli, "pets")
    assert "path: pets/train/" in text
    assert "validation is split off the training images" in text
    assert manifest.num_examples("validation") > 0


def test_a_flat_folder_is_for_prediction(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "inbox", 9)
    text, (_, manifest) = written(cli, "inbox")
    assert "labels: none" in text
    assert "random_" not in text
    assert manifest.num_examples("predict") == 9


def test_one_folder_inside_is_entered(cli: Cli, tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        write_images(tmp_path / "download" / "pets-v2" / name, 8)
    text, (_, manifest) = written(cli, "download")
    assert "path: download/pets-v2/" in text
    assert manifest.class_names == ("cat", "dog")


def test_small_images_keep_their_size_and_gray_is_noted(cli: Cli, tmp_path: Path) -> None:
    for name in ("0", "1"):
        write_images(tmp_path / "digits" / name, 40, size=(28, 28), kind="png", mode="L")
    text, (spec, _) = written(cli, "digits")
    assert "resize: {size: 28}" in text
    assert "decode: {channels: 1}" in text
    assert spec.model.transforms[0].op == "resize"


def test_small_data_gets_small_batches(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_images(tmp_path / "few" / name, 5)
    _, (spec, manifest) = written(cli, "few")
    assert spec.model.batch.size * 2 <= manifest.num_examples("train")


def test_names_that_yaml_would_misread(cli: Cli, tmp_path: Path) -> None:
    for name in ("yes", "a: b", "012"):
        write_images(tmp_path / "odd $name, [really]" / name, 6)
    _, (spec, manifest) = written(cli, "odd $name, [really]")
    assert (tmp_path / "odd-name-really.pipegen.yaml").exists()
    assert manifest.class_names == ("012", "a: b", "yes")
    assert spec.model.source.path == str(tmp_path / "odd $name, [really]")


def test_the_path_is_relative_to_the_spec(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_images(tmp_path / "data" / "few" / name, 5)
    (tmp_path / "specs").mkdir()
    text, _ = written(cli, "data/few", "-o", "specs/first.pipegen.yaml")
    assert "path: ../data/few/" in text


def test_what_is_odd_is_noted(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_images(tmp_path / "few" / name, 5)
    (tmp_path / "few" / "a" / "broken.jpg").write_bytes(b"\xff\xd8\xff no more")
    write_images(tmp_path / "few", 3)
    text, _ = written(cli, "few")
    assert "3 images lie beside the class folders" in text
    assert "1 cannot be read, such as a/broken.jpg" in text


def test_what_to_run_next_can_be_pasted(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "my pets", 3)
    result = cli("init", "my pets", "-o", "my pets.pipegen.yaml")
    assert "  pipegen preview 'my pets.pipegen.yaml' " in result.stdout
    assert len({line.index("  # ") for line in result.stdout.splitlines() if "  # " in line}) == 1, "comments are aligned"
    assert "`pipegen init 'my pets' -o OTHER.pipegen.yaml`" in cli("init", "my pets", "-o", "my pets.pipegen.yaml").stderr


def test_a_folder_where_a_spec_is_due(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "pets", 3)
    result = cli("show", "pets")
    assert result.exit_code == 2
    assert "it is a folder" in result.stderr
    assert "run `pipegen init pets`" in result.stderr


def test_it_never_writes_over_a_file(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "few", 5)
    (tmp_path / "few.pipegen.yaml").write_text("mine")
    result = cli("init", "few")
    assert result.exit_code == 2
    assert "few.pipegen.yaml exists already" in result.stderr
    assert (tmp_path / "few.pipegen.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("x.npz", "is not a `.npz` file"),
        ("x.npy", "cannot be read: "),
        ("x.parquet", "cannot be read as Parquet"),
        ("x.csv", "x.csv has no column of paths of images or sounds"),
        ("x.txt", "is not a folder"),
        ("nowhere", "there is no folder nowhere"),
    ],
)
def test_what_it_cannot_look_at(cli: Cli, tmp_path: Path, name: str, says: str) -> None:
    if "." in name:
        (tmp_path / name).touch()
    result = cli("init", name)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not list(tmp_path.glob("*.pipegen.yaml"))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pets.csv", "file,breed,weight\n{}", ["column: file, root: images}", "column: breed}", "stratify: label"]),
        ("pets.tsv", "{}", ["header: false", "column: 0, root: images}", "column: 1}"]),
        ("pets.csv", "file;breed;weight\n{}", ["separator: ;", "column: file, root: images}"]),
    ],
)
def test_a_table(cli: Cli, tmp_path: Path, name: str, text: str, expected: list[str]) -> None:
    write_images(tmp_path / "images", 8)
    files = sorted(p.relative_to(tmp_path / "images").as_posix() for p in (tmp_path / "images").rglob("*.*"))
    separator = ";" if ";" in text else "\t" if name.endswith(".tsv") else ","
    rows = "".join(separator.join((file, "dog" if i % 2 else "cat", f"{i}.5")) + "\n" for i, file in enumerate(files))
    (tmp_path / name).write_text(text.format(rows))
    result = cli("init", name)
    assert result.exit_code == 0, result.stderr
    written = (tmp_path / "pets.pipegen.yaml").read_text()
    for part in expected:
        assert part in written
    assert live(written) <= 13
    assert f"{len(files)} rows, in 2 classes" in result.stdout
    assert cli("validate", "pets.pipegen.yaml").exit_code == 0


def test_a_file_of_arrays(cli: Cli, tmp_path: Path) -> None:

    x: np.ndarray[Any, Any] = np.arange(120 * 6 * 5, dtype=np.uint32).reshape(120, 6, 5).astype(np.uint8)
    y: np.ndarray[Any, Any] = np.arange(120)[:, None] % 3
    np.savez(tmp_path / "digits.npz", x_test=x[90:], x_train=x[:90], y_train=y[:90], y_test=y[90:], names=np.array(["a", "b"]))
    text, (spec, manifest) = written(cli, "digits.npz")
    assert (tmp_path / "digits.pipegen.yaml").exists()
    assert "found 120 images of 6×5×1, uint8, in 3 classes." in text
    assert [manifest.num_examples(split) for split in spec.model.split_names()] == [90, 30]
    assert spec.model.split_names() == ("train", "test")
    assert "rescale: {to: [0, 1]}" in text
    np.savez(tmp_path / "floats.npz", images=x / 255)
    text, (spec, manifest) = written(cli, "floats.npz", "-o", "other.pipegen.yaml")
    assert not spec.model.source.has_labels()
    assert "transforms" not in text
    assert manifest.num_examples("predict") == 120
    np.savez(tmp_path / "one.npz", images=x, labels_training=y)
    _, (spec, _) = written(cli, "one.npz", "-o", "one.pipegen.yaml")
    assert spec.model.source.has_labels(), "a word for a split beside none is no other split"
    np.savez(tmp_path / "labels.npz", y=y)
    result = cli("init", "labels.npz")
    assert result.exit_code == 2
    assert "labels.npz has no images: y int64[120, 1]" in result.stderr


def test_nothing_found(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    (tmp_path / "empty" / "notes.txt").touch()
    result = cli("init", "empty")
    assert result.exit_code == 2
    assert "empty" in result.stderr
    assert "Traceback" not in result.stderr


def write_masks(
    folder: Path, values: tuple[int, ...], count: int, size: tuple[int, int] = (20, 18), palette: bool = False, **how: Any
) -> None:
    """Masks in stripes, one for each image of `write_images`; each lacks one value, so that it takes several to see all."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        picture = Image.new("P" if palette else "L", size)
        if palette:
            picture.putpalette(bytes(range(256)) * 3)
        held = [v for k, v in enumerate(values) if len(values) < 3 or k != i % len(values)]
        picture.putdata([held[x % len(held)] for _ in range(size[1]) for x in range(size[0])])
        picture.save(folder / f"{i:02d}.png", **how)


def test_masks_of_colours(cli: Cli, tmp_path: Path) -> None:
    from PIL import Image

    write_photos(tmp_path / "scenes" / "images", 20)
    colours = {"sky": (70, 130, 180), "road": (128, 64, 128), "void": (0, 0, 0)}
    (tmp_path / "scenes" / "masks").mkdir()
    for i in range(20):
        picture = Image.new("RGB", (20, 18), colours["void"])
        picture.paste(colours["sky" if i % 2 else "road"], (2, 2, 9, 9))
        picture.save(tmp_path / "scenes" / "masks" / f"{i:02d}.png")
    text, (spec, _) = written(cli, "scenes")
    assert "palette: {'#000000': 0, '#4682b4': 1, '#804080': 2}}" in text
    assert "have the colours #000000, #4682b4, #804080; any other value will be an error" in text
    assert spec.model.source.infer()["mask"].classes == 3
    assert cli("validate", "scenes.pipegen.yaml", "--strict").exit_code == 0


def test_colours_in_one_split_and_numbers_in_another(cli: Cli, tmp_path: Path) -> None:
    from PIL import Image

    for split in ("train", "validation"):
        write_photos(tmp_path / "scenes" / split / "images", 4)
        write_masks(tmp_path / "scenes" / split / "masks", (0, 255), 4)
    for path in sorted((tmp_path / "scenes/train/masks").iterdir()):
        Image.open(path).convert("RGB").save(path)
    text, _ = written(cli, "scenes")
    assert "palette: {'#000000': 0, '#ffffff': 1}" in text
    assert "# validation/ has no pairs of images and masks, and is ignored" in text


@pytest.mark.parametrize(
    ("folders", "values", "how", "says"),
    [
        (("images", "masks"), (0, 255), {}, "values: {0: 0, 255: 1}}"),
        (("Image", "label"), (0, 1, 2, 255), {"palette": True}, "classes: 3, ignore: 255}"),
        (("x", "y"), (0, 1), {"bits": 1, "palette": True}, "classes: 2}"),
        (("photographs", "outlines"), (1, 2, 3), {}, "values: {1: 0, 2: 1, 3: 2}}"),
        (("a", "b"), (0, 85, 170, 255), {}, "values: {0: 0, 85: 1, 170: 2, 255: 3}}"),
    ],
)
def test_images_and_masks(cli: Cli, tmp_path: Path, folders: tuple[str, str], values: tuple[int, ...], how: Any, says: str) -> None:
    write_photos(tmp_path / "scenes" / folders[0], 20)
    write_masks(tmp_path / "scenes" / folders[1], values, 20, **how)
    text, (spec, manifest) = written(cli, "scenes")
    assert says in text
    assert f"image: {{kind: image, path: scenes/{folders[0]}/}}" in text
    assert f"path: scenes/{folders[1]}/" in text
    assert "found 20 images, each with a mask of the same name." in text
    assert f"have the {'palette indices' if 'palette' in how else 'values'} {', '.join(map(str, values))}" in text
    assert (spec.model.output.x, spec.model.output.y) == ("image", "mask")
    assert manifest.num_examples("train") == 16
    assert cli("validate", "scenes.pipegen.yaml", "--strict").exit_code == 0


def write_maps(folder: Path, form: str, count: int, size: tuple[int, int] = (20, 18)) -> None:
    """Dense maps, one for each image of `write_photos`."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        values = np.linspace(i, 900 + i, size[0] * size[1]).reshape(size[1], size[0])
        if form == "flo":
            pair = np.stack([values, -values], -1).astype("<f4")
            (folder / f"{i:02d}.flo").write_bytes(b"PIEH" + np.array(size, "<i4").tobytes() + pair.tobytes())
        elif form.startswith("npy"):
            np.save(folder / f"{i:02d}.npy", np.stack([values, values], -1) if form == "npy 2" else values)
        else:
            Image.fromarray(values.astype(np.uint16 if form == "16 bits" else np.uint8)).save(folder / f"{i:02d}.png")


@pytest.mark.parametrize(
    ("folders", "form", "says", "output"),
    [
        (("images", "flow"), "flo", "flow: {kind: dense, path: scenes/flow/, values: vectors}", "flow"),
        (("frames", "motion"), "npy 2", "flow: {kind: dense, path: scenes/motion/, format: npy, values: vectors}", "flow"),
        (("rgb", "depth"), "16 bits", "depth: {kind: dense, path: scenes/depth/, bits: 16}", "depth"),
        (("images", "depth_maps"), "8 bits", "depth: {kind: dense, path: scenes/depth_maps/}", "depth"),
        (("a", "b"), "npy", "map: {kind: dense, path: scenes/b/, format: npy}", "map"),
        (("a", "b"), "npy 2", "map: {kind: dense, path: scenes/b/, format: {npy: {channels: 2}}}", "map"),
    ],
)
def test_images_and_dense_maps(cli: Cli, tmp_path: Path, folders: tuple[str, str], form: str, says: str, output: str) -> None:
    write_photos(tmp_path / "scenes" / folders[0], 20)
    write_maps(tmp_path / "scenes" / folders[1], form, 20)
    text, (spec, manifest) = written(cli, "scenes")
    assert says in text
    assert "found 20 images, each with a dense map of the same name." in text
    assert (spec.model.output.x, spec.model.output.y) == ("image", output)
    assert ("add `values: vectors`" in text) is (form == "npy 2" and output == "map")
    assert manifest.num_examples("train") == 16
    assert cli("validate", "scenes.pipegen.yaml", "--strict", "--data").exit_code == 0


@pytest.mark.parametrize("further", ["labels", "y", "inputs"])
def test_a_third_folder_of_a_common_name_hides_no_masks(cli: Cli, tmp_path: Path, further: str) -> None:
    write_photos(tmp_path / "scenes" / "images", 20)
    write_masks(tmp_path / "scenes" / "masks", (0, 1), 20)
    write_photos(tmp_path / "scenes" / further, 20)
    text, _ = written(cli, "scenes")
    assert "mask: {kind: mask, path: scenes/masks/" in text
    assert f"# {further}/ is ignored" in text


def test_dense_maps_of_splits(cli: Cli, tmp_path: Path) -> None:
    for split, count in (("train", 12), ("val", 4), ("test", 4)):
        write_photos(tmp_path / "scenes" / split / "images", count)
        write_maps(tmp_path / "scenes" / split / "depth", "npy" if split != "test" else "16 bits", count)
    text, (_, manifest) = written(cli, "scenes")
    assert (manifest.num_examples("train"), manifest.num_examples("validation")) == (12, 4)
    assert "# test/ has no pairs of images and dense maps, and is ignored" in text


@pytest.mark.parametrize("what", ["vectors of another size", "a damaged file", "an empty file", "a short .flo", "an archive", "embeddings"])
def test_other_arrays_beside_images_are_no_maps(cli: Cli, tmp_path: Path, what: str) -> None:
    write_photos(tmp_path / "scenes" / "images", 20)
    write_maps(tmp_path / "scenes" / "depth", "npy", 20, (20, 18) if what != "vectors of another size" else (9, 9))
    if what == "a damaged file":
        (tmp_path / "scenes" / "depth" / "00.npy").write_bytes(b"\x93NUMPY")
    if what == "an empty file":
        (tmp_path / "scenes" / "depth" / "00.npy").write_bytes(b"")
    if what == "a short .flo":
        (tmp_path / "scenes" / "depth" / "00.npy").rename(tmp_path / "scenes" / "depth" / "00.flo").write_bytes(b"PIEH\x01")
    if what == "an archive":
        with (tmp_path / "scenes" / "depth" / "00.npy").open("wb") as file:
            np.savez(file, np.zeros((18, 20)))
    if what == "embeddings":
        for path in (tmp_path / "scenes" / "depth").iterdir():
            np.save(path, np.zeros(64))
    text = written(cli, "scenes")[0]
    assert "kind: dense" not in text
    assert "# depth/ has arrays that do not fit the images as dense maps, and is not used" in text


@pytest.mark.parametrize("names", ["ABXYZ", "xyz"])
def test_classes_called_x_and_y_are_no_pairs(cli: Cli, tmp_path: Path, names: str) -> None:
    """Classes whose files are numbered alike, such as letters."""
    for name in names:
        write_masks(tmp_path / "letters" / name, (0, 1), 20, bits=1)
    text, _ = written(cli, "letters")
    assert f"in {len(names)} classes" in text
    assert "mask" not in text


def test_two_folders_whose_names_say_nothing_may_be_classes(cli: Cli, tmp_path: Path) -> None:
    write_photos(tmp_path / "two" / "photo", 20)
    write_masks(tmp_path / "two" / "drawing", (0, 1), 20)
    text, _ = written(cli, "two")
    assert "# If photo/ and drawing/ are two classes" in text.replace("# if", "# If")


def write_photos(folder: Path, count: int, size: tuple[int, int] = (20, 18)) -> None:
    """Pictures of many values."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        Image.linear_gradient("L").resize(size).rotate(7 * i).convert("RGB").save(folder / f"{i:02d}.png")


@pytest.mark.parametrize("inside", [True, False])
def test_images_and_masks_of_splits(cli: Cli, tmp_path: Path, inside: bool) -> None:
    for split, count in (("train", 12), ("val", 4), ("test", 4)):
        for kind, write in (("images", write_photos), ("masks", lambda f, n: write_masks(f, (0, 1), n))):
            write(tmp_path / "scenes" / (f"{split}/{kind}" if inside else f"{kind}/{split}"), count)
    text, (spec, manifest) = written(cli, "scenes")
    assert "by_split:" in text
    assert "# Splits: train 12, validation 4, test 4" in text
    assert [manifest.num_examples(split) for split in spec.model.split_names()] == [12, 4, 4]
    shutil.rmtree(tmp_path / "scenes" / "test" / "masks", ignore_errors=True)
    if inside:
        text, _ = written(cli, "scenes", "-o", "two.pipegen.yaml")
        assert "# test/ has no pairs of images and masks, and is ignored" in text


def test_pairs_that_lack_a_partner_and_further_folders(cli: Cli, tmp_path: Path) -> None:
    write_photos(tmp_path / "scenes" / "images", 31)
    write_masks(tmp_path / "scenes" / "masks", (0, 1), 30)
    write_images(tmp_path / "scenes" / "thumbnails", 31)
    text, (_, manifest) = written(cli, "scenes")
    assert "# 1 file has no partner of the same name" in text
    assert "# thumbnails/ is ignored" in text
    assert sum(map(manifest.num_examples, manifest.splits)) == 30


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("cat", "dog"), {"photos": True}),  # classes number their files alike
        (("0", "1"), {"few": True}),  # drawings of two classes
        (("images", "masks"), {"larger": True}),  # a mask has to be as large as its image
        (("images", "masks"), {"fewer": True}),
    ],
)
def test_folders_of_classes_are_no_pairs(cli: Cli, tmp_path: Path, first: tuple[str, str], second: dict[str, bool]) -> None:
    a, b = (tmp_path / "things" / name for name in first)
    if "few" in second:
        write_masks(a, (0, 9), 12)
    else:
        write_photos(a, 12)
    if "photos" in second:
        write_photos(b, 12)
    else:
        write_masks(b, (0, 9), 8 if "fewer" in second else 12, (24, 20) if "larger" in second else (20, 18))
    text, (_, manifest) = written(cli, "things")
    assert manifest.class_names == first
    assert "mask:" not in text


@pytest.mark.nightly
@pytest.mark.tf
def test_the_written_spec_runs(cli: Cli, tmp_path: Path) -> None:
    for name in ("rose", "tulip"):
        write_images(tmp_path / "flowers" / name, 8)
    write_images(tmp_path / "inbox", 3)
    write_photos(tmp_path / "scenes" / "images", 8)
    write_masks(tmp_path / "scenes" / "masks", (0, 1, 2, 3), 8, palette=True, bits=2)
    for folder, split in (("flowers", "train"), ("inbox", "predict"), ("scenes", "train")):
        cli("init", folder)
        pipe = pipegen.build(f"{folder}.pipegen.yaml", runtime={"jit": "never"})
        batch = next(iter(pipe[split]))
        image = batch[0] if isinstance(batch, tuple) else batch
        assert image.shape[1:] == (18, 20, 3)
        assert float(image.numpy().max()) <= 1


def live(text: str) -> int:
    return len([line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")])


def test_the_other_columns_of_a_table_are_comments_that_can_be_used(cli: Cli, tmp_path: Path) -> None:
    write_images(tmp_path / "images", 90)
    rows = [f"images/{i:02d}.jpg,{'dog' if i % 2 else 'cat'},{i % 7}.5,{i},{'' if i == 3 else 'x'},note {i},{1 + i % 2}" for i in range(90)]
    (tmp_path / "pets.csv").write_text("file,breed,age of pet,number,gaps,notes,weight\n" + "\n".join(rows) + "\n")
    text, (spec, _) = written(cli, "pets.csv")
    assert spec.model.batch.size == 16
    assert "  - rescale: {to: [0, 1]}" in text
    assert "# age_of_pet: {kind: tensor, column: age of pet}  # from 0.5 to 6.5" in text
    assert "# weight: {kind: weight, column: weight}" in text
    assert "# gaps: not read, as 1 cell is empty" in text
    assert "# notes: not read, as it is text of 90 different values" in text
    assert live(text) <= 12
    used = re.sub("# (- random_flip|age_of_pet|number|weight)", r"\1", text)
    used = used + "output: {x: {image: image, age: age_of_pet, number: number}, y: label, sample_weight: weight}\n"
    (tmp_path / "used.pipegen.yaml").write_text(used)
    assert cli("validate", "used.pipegen.yaml").exit_code == 0, cli("validate", "used.pipegen.yaml").stdout


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet", "t.csv"])
def test_columns_of_lists_are_no_labels_of_one_class(cli: Cli, tmp_path: Path, name: str) -> None:
    """They are several classes or numbers; lists written as text are not read."""
    write_images(tmp_path / "images", 40)
    tags = [[], ["a"], ["a", "b"], ["c"]]
    lists = [{"tags": tags[i % 4], "points": [0.5, i % 2], "odd": [0.5] * (i % 3), "scores": [i % 2, 0.5]} for i in range(40)]
    held = [{"file": f"images/{i:02d}.jpg", **own} for i, own in enumerate(lists)]
    if name == "t.jsonl":
        (tmp_path / name).write_text("\n".join(map(json.dumps, held)))
    elif name == "t.csv":
        cells = [{key: json.dumps(value) if key != "file" else value for key, value in row.items()} for row in held]
        with open(tmp_path / name, "w", newline="") as out:
            writer = csv.DictWriter(out, list(held[0]))
            writer.writeheader()
            writer.writerows(cells)
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(held), tmp_path / name)
    text, _ = written(cli, name)
    assert cli("validate", "--data", "t.pipegen.yaml").exit_code == 0
    if name == "t.csv":
        assert "# tags: not read, as its cells are lists written as text" in text
        return
    assert "# odd: not read, as its cells are lists of several lengths, in a table of paths" in text
    used = re.sub("# (scores|points|tags): {", r"\1: {", text).replace("output: {x: image, y: null}  # there are no labels\n", "")
    classes = "label" if name == "t.jsonl" else "tags"
    assert f"{classes}: {{kind: label, column: tags, separator: ','}}" in used
    used += f"output: {{x: image, y: [{classes}, scores, points]}}\n"
    (tmp_path / "used.pipegen.yaml").write_text(used)
    pipe = pipegen.build("used.pipegen.yaml")
    _, (several, scores, _) = pipe.peek("train")
    assert several.shape[1:] == (3,)
    assert scores.shape[1:] == (2,)


def test_lists_of_several_lengths_beside_images_are_arrays(cli: Cli, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    write_images(tmp_path / "images", 20)
    images = [file.read_bytes() for file in sorted((tmp_path / "images").iterdir())]
    held = [{"image": content, "steps": [0.5] * (1 + i % 3)} for i, content in enumerate(images)]
    pq.write_table(pa.Table.from_pylist(held), tmp_path / "t.parquet")
    text, _ = written(cli, "t.parquet")
    used = text.replace("# steps: {", "steps: {").replace("y: null", "y: steps").replace("batch: {", "batch: {pad: {}, ")
    assert "steps: {kind: array, column: steps, format: list, shape: [null]}" in used
    (tmp_path / "used.pipegen.yaml").write_text(used)
    assert pipegen.build("used.pipegen.yaml").peek("train")[1].shape[1:] == (3,)


@pytest.mark.parametrize(
    ("text", "inputs", "y", "more"),
    [
        ("a,b,species\n" + "1,2.5,x\n2,3,y\n" * 20, ["a", "b"], "kind: label, column: species", "in 2 classes"),
        ("a,b,target\n" + "1,2.5,0\n2,3,1\n" * 20, ["a", "b"], "kind: label, column: target", "stratify"),
        ("id,a,price\n" + "".join(f"{i},2.5,{i}.5\n" for i in range(70)), ["a"], "kind: tensor, column: price", "# id:"),
        ("".join(f"{i};2.5;{i}.5\n" for i in range(300)), ["0", "1"], "kind: tensor, column: 2", "header: false"),
        ("a\tb\tc\n" + "".join(f"{i}\t2.5\t\n" for i in range(5)), ["a"], "kind: tensor, column: b", "empty"),
    ],
)
def test_a_table_of_numbers_alone(cli: Cli, tmp_path: Path, text: str, inputs: list[str], y: str, more: str) -> None:
    (tmp_path / "n.csv").write_text(text)
    written_text, (spec, manifest) = written(cli, "n.csv")
    assert f"inputs: {{kind: tensor, columns: [{', '.join(inputs)}]}}" in written_text
    assert y in written_text
    assert more in written_text
    assert live(written_text) <= 12
    assert spec.model.batch.size in (1, 8, 16, 64)
    assert manifest.num_examples("train") > manifest.num_examples("validation") > 0


@pytest.mark.parametrize("name", ["pets.jsonl", "pets.xlsx"])
def test_tables_that_are_no_text(cli: Cli, tmp_path: Path, name: str) -> None:
    pd = pytest.importorskip("pandas")
    write_images(tmp_path / "images", 8)
    files = sorted(p.relative_to(tmp_path / "images").as_posix() for p in (tmp_path / "images").rglob("*.*"))
    rows = [{"file": file, "breed": "dog" if i % 2 else "cat", "facts": {"age": i}} for i, file in enumerate(files)]
    if name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
        pd.json_normalize(rows).to_excel(tmp_path / name, index=False)
    else:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    text, (_, manifest) = written(cli, name)
    assert f"  {'excel' if name.endswith('.xlsx') else 'jsonl'}:\n" in text
    assert "label: {kind: label, column: breed}" in text
    assert "# facts_age: {kind: tensor, column: facts.age}" in text
    assert manifest.listing.class_names == ("cat", "dog")
    (tmp_path / "odd.jsonl").write_text("{}\n")
    assert "odd.jsonl has no column of paths of images or sounds" in cli("init", "odd.jsonl").stderr
    (tmp_path / "odd.jsonl").write_text("{\n")
    assert "is not JSON" in cli("init", "odd.jsonl").stderr


def test_a_table_of_neither_images_nor_numbers(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("a,b\nx,y\nz,w\n")
    result = cli("init", "n.csv")
    assert result.exit_code == 2
    assert "no two columns of numbers" in result.stderr


@pytest.mark.parametrize(
    ("header", "order", "says"),
    [
        (True, ("photo", "outline", "kind"), "mask: {kind: mask, column: outline, root: data/masks, values: {0: 0, 255: 1}}"),
        pytest.param(
            *(True, ("mask", "kind", "file"), "mask: {kind: mask, column: mask, root: data/masks, values: {0: 0, 255: 1}}"),
            marks=pytest.mark.nightly,
        ),
        (False, ("photo", "outline", "kind"), "mask: {kind: mask, column: 1, root: data/masks, values: {0: 0, 255: 1}}"),
    ],
)
def test_a_table_of_images_and_masks(cli: Cli, tmp_path: Path, header: bool, order: tuple[str, ...], says: str) -> None:
    write_photos(tmp_path / "data" / "images", 20)
    (tmp_path / "data" / "masks").mkdir()
    write_masks(tmp_path / "masks", (0, 255), 20)
    for i, path in enumerate(sorted((tmp_path / "masks").iterdir())):
        path.rename(tmp_path / "data" / "masks" / f"m{i:02d}.png")
    cells = {"photo": "{:02d}.png", "file": "{:02d}.png", "outline": "m{:02d}.png", "mask": "m{:02d}.png", "kind": "a"}
    rows = [",".join(cells[name].format(i) if name != "kind" else "ab"[i % 2] for name in order) for i in range(20)]
    (tmp_path / "scenes.csv").write_text("\n".join([*([",".join(order)] if header else []), *rows]) + "\n")
    result = cli("init", "scenes.csv")
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "scenes.pipegen.yaml").read_text()
    assert says in text
    assert "root: data/images}" in text
    assert "# kind: {kind: label" in text or not header
    assert "20 rows, each with a mask" in result.stdout
    checked = cli("validate", "scenes.pipegen.yaml", *(["--data=all"] if header else []), "--strict")
    assert checked.exit_code == 0, checked.output
    shutil.rmtree(tmp_path / "data" / "masks")
    assert cli("init", "scenes.csv", "-o", "alone.pipegen.yaml").exit_code == 0
    assert "kind: mask" not in (tmp_path / "alone.pipegen.yaml").read_text()


def test_without_anything_to_look_at(cli: Cli) -> None:
    result = cli("init")
    assert result.exit_code == 2
    assert "name a folder of images or sounds, a `.csv` or a `.npz` file: `pipegen init flowers/`" in result.stderr


@pytest.mark.parametrize("splits", [False, True])
def test_linked_folders_are_entered_and_the_spec_says_so(cli: Cli, photos: Path, tmp_path: Path, splits: bool) -> None:
    for split in ("train", "val") if splits else ("",):
        (tmp_path / "linked" / split).mkdir(parents=True, exist_ok=True)
        for folder in photos.iterdir():
            (tmp_path / "linked" / split / folder.name).symlink_to(folder)
    result = cli("init", "linked/")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "linked.pipegen.yaml").read_text()
    assert "follow_links: true" in text
    assert "in 2 classes" in text
    assert cli("validate", "linked.pipegen.yaml").exit_code == 0


def test_a_folder_that_is_a_link_beside_others_is_entered(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (photos / "tulip").rename(tmp_path / "more" / "tulip")
    (photos / "tulip").symlink_to(tmp_path / "more" / "tulip")
    assert cli("init", "photos/").exit_code == 0
    text = (tmp_path / "photos.pipegen.yaml").read_text()
    assert "# 'tulip' is a link to a folder, which the spec enters" in text
    assert "rose 8, tulip 8" in text


@pytest.mark.parametrize(("named", "none"), [("breed", ""), ("label", "-1"), ("label", "")])
def test_rows_without_a_label_are_predict(cli: Cli, tmp_path: Path, named: str, none: str) -> None:
    write_photos(tmp_path / "data", 20)
    words = {"": ("cat", "dog"), "-1": ("0", "1")}[none]
    rows = [f"{i:02d}.png,{none if i % 5 == 0 else words[i % 2]}" for i in range(20)]
    (tmp_path / "data" / "t.csv").write_text("\n".join([f"file,{named}", *rows]))
    text, (spec, manifest) = written(cli, "data/t.csv", "-o", "t.pipegen.yaml")
    value = "-1" if none else "''"
    assert f"label: {{kind: label, column: {named}, unlabelled: [{value}]}}" in text
    assert "in 2 classes" in text
    assert spec.model.split_names() == ("train", "validation", "predict")
    assert [manifest.num_examples(split) for split in spec.model.split_names()] == [13, 3, 4]
    assert cli("validate", "t.pipegen.yaml", "--strict", "--data").exit_code == 0


def test_a_table_with_times_is_time_series(cli: Cli, tmp_path: Path) -> None:
    lines = ["time,meter,load,heat"]
    for hour in range(120):
        lines += [f"2024-01-{1 + hour // 24:02} {hour % 24:02}:00,{meter},{hour % 7}.5,{hour % 5}" for meter in "ab"]
    (tmp_path / "energy.csv").write_text("\n".join(lines))
    text, (spec, manifest) = written(cli, "energy.csv")
    assert "240 rows of 2 series with times and 2 numbers" in text
    source = spec.model.source
    assert (source.order, source.group, source.window.length, source.window.horizon) == ("time", "meter", 12, 3)
    assert source.features["x"].columns == ("load", "heat")
    assert manifest.num_examples("train") == 2 * (96 - 14)
    (tmp_path / "twice.csv").write_text("\n".join(["time,load,heat", *(f"2024-01-{1 + i // 4:02},{i}.5,{i}.25" for i in range(40))]))
    assert "series" not in written(cli, "twice.csv")[0]


def test_a_parquet_file_of_numbers_is_a_table_of_them(cli: Cli, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    hours = [datetime(2024, 1, 1) + timedelta(hours=hour) for hour in range(240)]
    rows = [{"ds": hour, "load": i % 7 + 0.5, "heat": float(i % 5)} for i, hour in enumerate(hours)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "energy.parquet")
    text, (spec, manifest) = written(cli, "energy.parquet")
    assert "240 rows with times and 2 numbers" in text
    assert (spec.model.source.order, spec.model.source.window.length) == ("ds", 24)
    assert manifest.num_examples("train") == 192 - 29
    pq.write_table(
        pa.Table.from_pylist([{"size": i * 0.5, "age": i % 9, "kind": "ab"[i % 2]} for i in range(40)]), tmp_path / "sizes.parquet"
    )
    assert "40 rows of 2 numbers, in 2 classes" in written(cli, "sizes.parquet")[0]
    assert cli("validate", "sizes.pipegen.yaml", "--data").exit_code == 0


@pytest.mark.parametrize(
    ("header", "last", "lengths", "said", "window"),
    [
        ("@classLabel true up down", ["up", "down"], [9], "20 series of 9 values", ""),
        ("@targetLabel true", ["0.5", "1.5"], [9], "20 series of 9 values", ""),
        ("@classLabel false", [], [12, 10], "20 series of 10 to 12 values", "window: {length: 2}"),
    ],
)
def test_series_of_a_ts_file(header: str, last: list[str], lengths: list[int], said: str, window: str, cli: Cli, tmp_path: Path) -> None:
    lines = [":".join([",".join(f"{i + k}.5" for k in range(lengths[i % len(lengths)])), *last[i % 2 : i % 2 + 1]]) for i in range(20)]
    (tmp_path / "a.ts").write_text("\n".join(["@problemName a", "@timeStamps false", "@univariate true", header, "@data", *lines]))
    text, (_, manifest) = written(cli, "a.ts")
    assert said in text
    assert window in text
    assert manifest.num_examples("train") >= 16
    assert cli("validate", "a.pipegen.yaml", "--data=all").exit_code == 0


def test_numbers_that_float32_rounds_are_named_in_the_spec(cli: Cli, tmp_path: Path) -> None:
    rows = [f"2024-01-{1 + hour // 24:02} {hour % 24:02}:00,{16777217 + 2 * hour},{hour}.5" for hour in range(120)]
    (tmp_path / "energy.csv").write_text("\n".join(["time,load,heat", *rows]))
    assert "x: {kind: series, columns: [load, heat], dtype: float32}" in written(cli, "energy.csv")[0]
    assert cli("validate", "energy.pipegen.yaml", "--data").exit_code == 0
    (tmp_path / "sizes.csv").write_text("\n".join(["size,age,price", *(f"{16777217 + 2 * i},{i},{i}.5" for i in range(40))]))
    text = written(cli, "sizes.csv")[0]
    assert "columns: [size, age], dtype: float32}" in text
    assert "column: price}" in text
    assert cli("validate", "sizes.pipegen.yaml", "--data").exit_code == 0
    (tmp_path / "ids.csv").write_text("\n".join(["id,price", *(f"{i},{i}.5" for i in range(40))]))
    result = cli("init", "ids.csv")
    assert result.exit_code != 0
    assert "has no numbers but ids and `price`, which would be predicted" in result.output
