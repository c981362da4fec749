"""`by_split` of data in any two forms: each split gives what it gives beside one of its own form."""

from __future__ import annotations

import io
import itertools
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image
from record_files import write_tfrecord

import pipegen
from benchmarks import written_sources
from benchmarks.written_sources import SOURCES
from pipegen.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    Folder = Callable[[str, str], Path]

pytestmark = pytest.mark.tf

SIDE, CLASSES = 24, 3
COUNTS = {"train": 10, "validation": 7}
OTHERS = {"coco", "voc", "yolo", "labelme", "arrays", "tfds", "huggingface", "sql", "prepared, raw", "prepared, jpeg"}
"""Forms of boxes or of decoded images, with splits or classes of their own, or with a file beside the spec."""
FORMS = [form for form, of in SOURCES.items() if form not in OTHERS and find_spec(of.library or "sys")]
CLASS_NAMES = [f"class_{i:03}" for i in range(CLASSES)]  # those of the folders
STEPS: list[Any] = [{"random_rotation": {"degrees": 30}}, {"random_brightness": {"delta": 0.2}}, {"resize": {"size": 12}}]
PLAIN: dict[str, Any] = {"jit": "never", "cache": "none"}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Writes the photographs of a split in a form, once."""
    folders: dict[tuple[str, str], Path] = {}

    def written(form: str, split: str) -> Path:
        if (form, split) not in folders:
            folder = folders[form, split] = tmp_path_factory.mktemp("form") / split
            folder.mkdir()
            count = COUNTS[split]
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(written_sources, "SIDE", SIDE)
                patched.setattr(written_sources, "CLASSES", CLASSES)
                SOURCES[form].write(folder, [(photo(split, i), CLASSES * i // count) for i in range(count)])
        return folders[form, split]

    return written


def photo(split: str, number: int) -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng([len(split), number]).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def source_of(folder_of: Folder, **forms: str) -> dict[str, Any]:
    """Splits in these forms, with the names of classes that folders have."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(written_sources, "CLASSES", CLASSES)
        sources = {split: SOURCES[form].spec(folder_of(form, split)) for split, form in forms.items()}
    for source in sources.values():
        for arguments in source.values():
            if "label" in arguments.get("features", {}):
                given = {**arguments["features"]["label"], "map": {str(i): name for i, name in enumerate(CLASS_NAMES)}}
                arguments["features"]["label"] = {key: value for key, value in given.items() if key != "classes"}
    return {"by_split": sources}


def built(source: dict[str, Any], **sections: Any) -> Any:
    return pipegen.build({"pipegen": 1, "source": source, "transforms": STEPS, "batch": {"size": 4}, "runtime": PLAIN, **sections})


def batches(pipe: Any, split: str, epoch: int | None = None) -> list[Any]:
    return parts_of(pipe[split] if epoch is None else pipe.dataset(split, epoch=epoch))


def parts_of(stream: Any) -> list[Any]:
    import tensorflow as tf

    return [[part.numpy() for part in tf.nest.flatten(batch)] for batch in stream]


def alike(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.by_day(3)
@pytest.mark.parametrize(("train", "validation"), [*itertools.permutations(FORMS, 2)])
def test_a_split_is_what_it_is_beside_one_of_its_own_form(train: str, validation: str, folder_of: Folder) -> None:
    pipe = built(source_of(folder_of, train=train, validation=validation))
    for split, form in (("train", train), ("validation", validation)):
        plain = built(source_of(folder_of, train=form, validation=form))
        np.testing.assert_array_equal(pipe._manifest.ids(split), plain._manifest.ids(split))
        assert [*pipe.files(split)] == [*plain.files(split)]
        np.testing.assert_array_equal(pipe.labels(split), plain.labels(split))
        alike(batches(pipe, split), batches(plain, split))


ORDERS = [("tfrecord", "files"), ("files", "mds"), ("webdataset", "csv"), ("jsonl", "tfrecord"), ("archive, zip", "lmdb")]


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["none", "memory", "disk"])
@pytest.mark.parametrize(("train", "validation"), ORDERS)
def test_epochs_resumed_and_shared(train: str, validation: str, cache: str, folder_of: Folder, tmp_path: Path) -> None:
    sections = {"sampling": {"balance": "label"}, "views": 2, "batch": {"size": 4, "remainder": "keep"}}
    kept = {"disk": str(tmp_path / "cache")} if cache == "disk" else cache
    pipe = built(source_of(folder_of, train=train, validation=validation), runtime={"jit": "never", "cache": kept}, **sections)
    plain = built(source_of(folder_of, train=train, validation=train), **sections)
    whole = [batches(plain, "train", epoch) for epoch in (0, 1)]
    for epoch in (0, 1):
        alike(batches(pipe, "train", epoch), whole[epoch])
    pipe.seek(1, 1)
    alike(batches(pipe, "train"), whole[1][1:])
    for number in range(2):
        share = parts_of(pipe.dataset("train", epoch=1, shard=(number, 2)))
        assert len(share) == len(whole[1])
        for own, all_ in zip(share[:-1], whole[1], strict=False):
            alike([own], [[part[2 * number : 2 * number + 2] for part in all_]])


def _excluded(folder: Path, pipe: Any, *places: tuple[str, int]) -> tuple[str, list[str]]:
    names = [[*pipe._manifest.keys(split)][place] for split, place in places]
    (folder / "list.txt").write_text("\n".join(names))
    return str(folder / "list.txt"), names


@pytest.mark.parametrize("section", ["errors", "splits"])
@pytest.mark.parametrize(("train", "validation"), ORDERS[:2])
def test_records_of_either_form_are_left_out(train: str, validation: str, section: str, folder_of: Folder, tmp_path: Path) -> None:
    source = source_of(folder_of, train=train, validation=validation)
    whole = built(source)
    listed, names = _excluded(tmp_path, whole, ("train", 2), ("validation", 1))
    assert sum("#" in name for name in names) == 1
    pipe = built(source, batch={"size": 2}, **{section: {"exclude": listed}})
    for split, gone in (("train", 2), ("validation", 1)):
        ids = whole._manifest.ids(split)
        np.testing.assert_array_equal(pipe._manifest.ids(split), np.delete(ids, gone))
        assert len(pipe.files(split)) == COUNTS[split] - 1
    assert pipe._manifest.fingerprint == whole._manifest.fingerprint or section == "errors"
    assert pipe._manifest.split_fingerprint != whole._manifest.split_fingerprint
    plain, wrong = next(name for name in names if "#" not in name), next(name for name in names if "#" in name)
    for entry, meant in ((f"{plain}#0", plain), (wrong.rpartition("#")[0].upper() + "#3", wrong.rpartition("#")[0] + "#3")):
        (tmp_path / "list.txt").write_text(entry)
        with pytest.raises(SpecError, match="PG413") as caught:
            built(source, **{section: {"exclude": listed}})
        assert meant in str(caught.value)


def test_a_subset_of_training_goes_by_its_own_columns(folder_of: Folder) -> None:
    """The labels of the records are numbers, and a validation split before them shifts nothing."""
    subset = {"sampling": {"subset": {"where": "label == 1"}}}
    source = source_of(folder_of, validation="files", train="tfrecord")
    pipe = built(source, batch={"size": 2}, **subset)
    assert set(pipe.labels("train").tolist()) == {1}
    assert len(pipe.files("validation")) == COUNTS["validation"]


def test_what_changes_in_either_form_changes_the_data(folder_of: Folder, tmp_path: Path) -> None:
    """The fingerprint, the digest of the contents, and what a cache on disk is named by."""
    from pipegen.data.content import content_digest

    source = source_of(folder_of, train="tfrecord", validation="files")
    own = tmp_path / "pictures"
    shutil.copytree(source["by_split"]["validation"]["image_folder"]["path"], own)
    source["by_split"]["validation"]["image_folder"]["path"] = str(own)

    def seen() -> tuple[str, str]:
        manifest = built(source)._manifest
        return manifest.fingerprint, content_digest(manifest.listing)

    before = seen()
    assert seen() == before
    picture = next(own.rglob("*.jpg"))
    picture.write_bytes(photo("other", 5))  # of the same size, perhaps
    changed = seen()
    assert changed[1] != before[1]
    picture.rename(picture.with_name("z.jpg"))
    assert seen()[0] != changed[0]


def test_equal_pictures_of_both_forms_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    pictures = {i: photo("copy", i) for i in range(8)}
    write_tfrecord(tmp_path / "t.tfrecord", [{"image": pictures[i]} for i in range(4)])
    for i in (3, 7):
        (tmp_path / "a" / f"{i}.png").write_bytes(pictures[i])
    parts = {
        "train": {"tfrecord": {"path": str(tmp_path / "t.tfrecord"), "features": {"image": {"kind": "image"}}}},
        "validation": {"files": {"features": {"image": {"kind": "image", "path": str(tmp_path / "a")}}}},
    }
    spec = {"pipegen": 1, "source": {"by_split": parts}, "transforms": [{"resize": {"size": 8}}], "output": {"x": "image"}}
    (result,) = pipegen.test({**spec, "batch": {"size": 2}, "tests": [{"no_leak": "exact"}]}).results
    assert result.status == "failed"
    (finding,) = result.findings
    assert "'train/t.tfrecord#3' is the same as 'validation/3.png'" in finding.message


def corners(boxes: list[list[float]]) -> list[float]:
    return [number for x, y, width, height in boxes for number in (x, y, x + width, y + height)]


@pytest.mark.nightly
def test_boxes_of_annotations_beside_boxes_of_records(tmp_path: Path) -> None:
    """Each split has the boxes, the classes and the room for boxes that it has alone."""
    (tmp_path / "images").mkdir()
    boxes = [[[2.0, 2, 6, 8], [10, 10, 4, 4]], [[0, 0, 20, 20]], [], [[4, 6, 8, 2]]]
    names = [["owl", "cat"], ["cat"], [], ["owl"]]
    images = [photo("boxes", i) for i in range(4)]
    annotations: dict[str, Any] = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "owl"}]}
    for i, content in enumerate(images):
        (tmp_path / "images" / f"{i}.png").write_bytes(content)
        annotations["images"].append({"id": i, "file_name": f"{i}.png", "width": SIDE, "height": SIDE})
        for box, name in zip(boxes[i], names[i], strict=True):
            one = {"id": len(annotations["annotations"]) + 1, "image_id": i, "bbox": box, "category_id": 1 + (name == "owl")}
            annotations["annotations"].append({**one, "area": box[2] * box[3], "iscrowd": 0})
    (tmp_path / "a.json").write_text(json.dumps(annotations))
    rows = [
        {
            "image": image,
            "boxes": [n for x, y, w, h in own for n in (x, y, x + w, y + h)],
            "labels": [n.encode() for n in some],
            "crowd": [0.0] * len(some),
        }
        for image, own, some in zip(images, boxes, names, strict=True)
    ]
    write_tfrecord(tmp_path / "t.tfrecord", rows)
    labels = {"kind": "label", "with": "boxes", "classes": ["cat", "owl"]}
    features: dict[str, Any] = {"image": {"kind": "image"}, "boxes": {"kind": "boxes", "format": "xyxy"}, "labels": labels}
    features["crowd"] = {"kind": "tensor", "with": "boxes", "dtype": "float32"}
    sources = {
        "annotations": {"coco": {"images": str(tmp_path / "images"), "annotations": str(tmp_path / "a.json")}},
        "records": {"tfrecord": {"path": str(tmp_path / "t.tfrecord"), "features": features}},
    }
    y = ["boxes", "labels", "crowd", "boxes_valid"]
    sections = {"output": {"x": "image", "y": y}, "batch": {"size": 2, "remainder": "keep"}, "shuffle": "none"}
    for train, validation in itertools.permutations(sources):
        pipe = built({"by_split": {"train": sources[train], "validation": sources[validation]}}, **sections)
        alone = built({"by_split": {"validation": sources[validation]}}, **sections)
        first = batches(pipe, "validation")
        alike(first, batches(alone, "validation"))
        assert (2, 2, 4) in [part.shape for part in first[0]]  # places for two boxes
        assert len(batches(pipe, "train")) == 2


def test_a_part_of_a_mix_has_one_form_and_the_advice_works(folder_of: Folder) -> None:
    source = source_of(folder_of, train="tfrecord", validation="files")
    parts = {"both": {"weight": 1, "source": source}}
    with pytest.raises(SpecError, match="a part of a mix cannot have") as caught:
        built({"mix": {"epoch": "both", "parts": parts}})
    assert "make a part of each split" in str(caught.value)
    alone = {
        f"{split}s": {"weight": int(split == "train"), "source": {"by_split": {split: own}}} for split, own in source["by_split"].items()
    }
    pipe = built({"mix": {"epoch": "trains", "parts": alone}})
    assert [len(pipe.files(split)) for split in ("train", "validation")] == [10, 7]


@pytest.mark.nightly
@pytest.mark.parametrize("first", ["records", "table"])
def test_missing_files_of_a_table_beside_records_are_left_out(first: str, folder_of: Folder, tmp_path: Path) -> None:
    """In either order of the splits: they are counted among the files of both."""
    (tmp_path / "0.png").write_bytes(photo("missing", 0))
    (tmp_path / "2.png").write_bytes(photo("missing", 2))
    (tmp_path / "t.csv").write_text("file,label\n0.png,class_000\n1.png,class_001\n2.png,class_002\n")
    features = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label"}}
    table = {"csv": {"path": str(tmp_path / "t.csv"), "features": features}}
    records = source_of(folder_of, train="tfrecord")["by_split"]["train"]
    parts = {"train": records, "validation": table} if first == "records" else {"train": table, "validation": records}
    sections = {"batch": {"size": 2}, "errors": {"missing": "drop"}}
    with pytest.raises(SpecError, match=r"1\.png.*does not exist"):
        built({"by_split": parts}, batch={"size": 2})
    pipe = built({"by_split": parts}, **sections)
    of_table = "validation" if first == "records" else "train"
    assert [Path(file).name for file in pipe.files(of_table)] == ["0.png", "2.png"]
    assert pipe.labels(of_table).tolist() == [0, 2]
    assert [len(pipe.files(split)) for split in ("train", "validation") if split != of_table] == [COUNTS["train"]]
