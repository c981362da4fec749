"""`by_split`: splits from different places with the classes of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError
from record_files import png, write_tfrecord

import pipegen
from pipegen.errors import OpError
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.class_folders import ImageFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tree = Callable[..., Path]


def folders(**paths: str) -> BySplit:
    return BySplit(parts={split: ImageFolder(path=path) for split, path in paths.items()})


def test_records_carry_their_split_and_the_classes_of_train(tree: Tree) -> None:
    root = tree("a/cat/1.jpg", "a/dog/1.jpg", "b/dog/1.jpg")
    source = folders(validation="b", train="a")
    listing = source.list(root)
    assert source.split_names() == ("validation", "train")
    assert listing.class_names == ("cat", "dog")
    assert listing.keys == ("validation/dog/1.jpg", "train/cat/1.jpg", "train/dog/1.jpg")
    assert tuple(listing.labels) == (1, 0, 1)
    assert tuple(listing.parts) == ("validation", "train", "train")
    assert [listing.location.paths[i] for i in range(3)] == [str(root / p) for p in ("b/dog/1.jpg", "a/cat/1.jpg", "a/dog/1.jpg")]


def test_sounds_of_another_rate_are_refused_by_that_name() -> None:
    def parts(**given: int) -> dict[str, Any]:
        return {split: {"audio_folder": {"path": split, "rate": rate}} for split, rate in given.items()}

    BySplit.model_validate(parts(train=16000, validation=16000))
    with pytest.raises(ValidationError, match="`audio` of `validation` has another `rate` than in `train`"):
        BySplit.model_validate(parts(train=16000, validation=8000))


def test_only_folders_of_classes_are_stored_class_by_class() -> None:
    records = {"tfrecord": {"path": "a", "features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}}}
    assert not BySplit.from_yaml({"train": records, "validation": records}).by_class()
    assert folders(train="a", validation="b").by_class()
    assert BySplit.from_yaml(
        {"train": {"image_folder": {"path": "a"}}, "predict": {"image_folder": {"path": "b", "labels": "none"}}}
    ).by_class()


def test_a_class_that_train_has_not_is_an_error_that_names_class_split_and_folder(tree: Tree) -> None:
    root = tree("a/cat/1.jpg", "b/cow/1.jpg", "b/cat/1.jpg")
    (note,) = folders(train="a", test="b").list(root).notes
    assert (note.code, note.severity, note.field) == ("PG408", "error", "test")
    assert note.message == f"`test` has the class 'cow', in {str(root / 'b/cow')!r}, which `train` lacks"


def test_every_place_that_is_missing_is_reported_and_names_its_argument(tree: Tree) -> None:
    root = tree("a/cat/1.jpg")
    found = folders(train="a", validation="b", test="c").list(root).notes
    assert [(note.code, note.field) for note in found] == [("PG401", "validation.image_folder.path"), ("PG401", "test.image_folder.path")]
    with pytest.raises(OpError) as caught:
        folders(train="b", test="c").list(root)
    assert (caught.value.code, caught.value.field) == ("PG401", "train.image_folder.path")


def test_without_train_no_class_is_compared_with_what_was_not_listed(tree: Tree) -> None:
    root = tree("b/cat/1.jpg", "c/cow/1.jpg")
    found = folders(train="a", validation="b", test="c").list(root).notes
    assert [note.code for note in found] == ["PG401"]


def test_the_shape_of_a_spec_goes_in_and_comes_out() -> None:
    plain = {"train": {"image_folder": {"path": "a", "labels": "none"}}, "predict": {"image_folder": {"path": "b", "labels": "none"}}}
    source = BySplit.from_yaml(plain)
    assert source.parts["predict"] == ImageFolder(path="b", labels="none")
    assert not source.has_labels()
    assert list(source.infer()) == ["image"]
    dumped = source.model_dump()
    assert dumped["train"]["image_folder"]["path"] == "a"
    assert BySplit.model_validate(dumped) == source


def test_a_split_may_be_called_parts() -> None:
    source = BySplit.from_yaml({"parts": {"image_folder": {"path": "a"}}})
    assert source.split_names() == ("parts",)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "`by_split` is empty"),
        ({"train": {"image_folder": {"path": "a"}}, "test": {"image_folder": {"path": "b", "labels": "none"}}}, "`test` has none"),
        ({"train": {"by_split": {"train": {"image_folder": {"path": "a"}}}}}, "is a `by_split`, which has splits of its own"),
        ({"train": {"folder": {"path": "a"}}}, "unknown source `folder`"),
        ({"train": "image_folder"}, r"train.path\n +Field required"),
        ({"parts": ["image_folder"]}, "unknown source `\\['image_folder']`"),
        ({"a b": {"image_folder": {"path": "a"}}}, "String should match"),
    ],
)
def test_what_is_no_map_of_plain_sources(value: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        BySplit.model_validate(value)


def _two_labels(root: Path, *kinds: str) -> Any:
    """A training and a validation split of records with boxes and two labels; the second has these classes in validation."""

    def records(split: str, classes: Any) -> Any:
        rows = [{"image": png(i, 0, 0), "label": i % 2, "kind": f"k{i % 2}".encode(), "boxes": [0.0, 0.0, 1.0, 0.5]} for i in range(4)]
        path = write_tfrecord(root / f"{split}.tfrecord", rows)
        keyed = {name: {"kind": name if name in ("image", "boxes") else "label", "key": name} for name in rows[0]}
        keyed["label"] |= {"classes": 2}
        keyed["kind"] |= {"classes": [*classes]}
        keyed["boxes"] |= {"format": "rel_xyxy"}
        return {"tfrecord": {"path": str(path), "features": keyed}}

    return {"by_split": {"train": records("train", ("k0", "k1")), "validation": records("validation", kinds)}}


@pytest.mark.nightly
@pytest.mark.tf
def test_a_second_label_is_read_with_boxes(tmp_path: Path) -> None:
    output = {"x": "image", "y": {"kind": "kind", "boxes": "boxes"}}
    steps = [{"resize": {"size": 4}}]
    pipe = pipegen.build(
        {"pipegen": 1, "source": _two_labels(tmp_path, "k0", "k1"), "transforms": steps, "output": output, "batch": {"size": 4}}
    )
    ((_, y),) = pipe["validation"]
    np.testing.assert_array_equal(y["kind"], [0, 1, 0, 1])


def test_a_second_label_with_classes_in_another_order_is_an_error(tmp_path: Path) -> None:
    source = BySplit.from_yaml(_two_labels(tmp_path, "k1", "k0")["by_split"])
    found = [(note.code, note.field, note.message) for note in source.list(tmp_path).notes if note.severity == "error"]
    assert found == [("PG408", "validation", "`validation` and `train` have different classes of `kind`, or in another order")]
