"""Files by pattern, and how those of one record are found by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pipegen.errors import OpError
from pipegen.ops.sources.files import Files

if TYPE_CHECKING:
    from pathlib import Path

PAIR: dict[str, Any] = {"image": {"kind": "image", "path": "photos"}, "mask": {"kind": "mask", "path": "masks"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("photos/b.jpg", "photos/a.jpg", "photos/deep/a.jpg", "masks/a.png", "masks/b.png", "masks/deep/a.png"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"\xff\xd8\xff" + name.encode())
    return tmp_path


def source(features: dict[str, Any] | None = None, **arguments: Any) -> Files:
    return Files(features=features or PAIR, **arguments)


def test_files_without_labels(folder: Path) -> None:
    listing = source({"image": {"kind": "image", "path": "photos/**/a.*"}}).list(folder)
    assert (listing.keys, listing.labels, listing.class_names) == (("a.jpg", "deep/a.jpg"), None, ())
    assert listing.location.paths[1] == f"{folder}/photos/deep/a.jpg"
    assert not source().has_labels()


def test_the_files_of_a_record_share_what_they_are_called(folder: Path) -> None:
    listing = source().list(folder)
    assert listing.keys == ("a.jpg", "b.jpg", "deep/a.jpg")
    masks = listing.beside["mask"]
    assert masks.keys == ("a.png", "b.png", "deep/a.png")
    assert masks.paths[2] == f"{folder}/masks/deep/a.png"
    assert listing.sizes[0] == len("photos/a.jpg") + len("masks/a.png") + 6, "both files count"
    assert masks.take([2, 0]).keys == ("deep/a.png", "a.png")


def test_a_record_is_known_by_its_image_whatever_the_order_of_features(folder: Path) -> None:
    turned = source({"mask": PAIR["mask"], "image": PAIR["image"]})
    assert turned.list(folder).keys == ("a.jpg", "b.jpg", "deep/a.jpg")
    assert [(name, t.kind, t.of) for name, t in turned.infer().items()] == [("mask", "mask", "image"), ("image", "image", None)]


def test_a_key_is_what_a_group_finds(tmp_path: Path) -> None:
    for name in ("x/7_photo.jpg", "x/7_mask.png", "x/12_photo.jpg", "x/12_mask.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\xff\xd8\xff")
    features = {"image": {"kind": "image", "path": "x/*_photo.jpg"}, "mask": {"kind": "mask", "path": "x/*_mask.png"}}
    listing = source(features, key=r"(\d+)_").list(tmp_path)
    assert listing.keys == ("12_photo.jpg", "7_photo.jpg")
    assert listing.beside["mask"].keys == ("12_mask.png", "7_mask.png")


def test_what_has_no_partner_is_for_the_spec_to_decide_on(folder: Path) -> None:
    (folder / "masks" / "b.png").unlink()
    (folder / "masks" / "c.png").write_bytes(b"\xff\xd8\xff")
    listing = source().list(folder)
    assert listing.keys == ("a.jpg", "deep/a.jpg")
    told = [(missing.code, list(missing.keys), missing.example(0)) for missing in listing.missing]
    assert told == [
        ("PG424", ["b.jpg"], "'b.jpg' of `image` has no partner in `mask`"),
        ("PG424", ["../masks/c.png"], "'c.png' of `mask` has no partner in `image`"),
    ]


@pytest.mark.parametrize(
    ("features", "key", "code", "field", "says"),
    [
        ({"image": {"kind": "image", "path": "nowhere"}}, "stem", "PG401", "features.image.path", "does not exist"),
        ({"image": {"kind": "image", "path": "photos/*.gif"}}, "stem", "PG402", "features.image.path", "*.gif"),
        (PAIR, r"(\d+)", "PG424", "key", "`key` does not match 'a.jpg'"),
        (PAIR, "(a|b)", "PG424", "features.image.path", "'a.jpg' and 'deep/a.jpg' of `image` have the same key 'a'"),
        (PAIR, r"(.*)", "PG424", "key", "no file of `image` has a partner in `mask`"),
        (PAIR | {"mask": {"kind": "mask", "path": "masks/deep"}, "image": {"kind": "image", "path": "photos/b.*"}}, "stem", "PG424",
         "features.mask.path", "such as 'b' and 'a'"),
    ],
)  # fmt: skip
def test_what_cannot_be_found_or_paired(folder: Path, features: dict[str, Any], key: str, code: str, field: str, says: str) -> None:
    with pytest.raises(OpError) as caught:
        source(features, key=key).list(folder)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert says in f"{caught.value.message} | {caught.value.help}"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"key": "(a)(b)"}, "needs exactly one group"),
        ({"key": "("}, "must be `stem` or a regular expression"),
        ({"features": {"mask": PAIR["mask"], "a": PAIR["image"], "b": PAIR["image"]}}, "`mask` needs `of`"),
        ({"features": {"image": {"kind": "label", "path": "x"}}}, "kind"),
    ],
)
def test_what_the_spec_may_not_say(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Files(**{"features": PAIR, **arguments})


@pytest.mark.parametrize(
    ("values", "ignore", "classes", "expected"),
    [
        ({0: 2, 8: 0, 9: 1}, 2, None, 3),  # the largest class is also what a fill uncovers
        ({0: 2, 8: 0, 9: 1}, 0, None, 3),
        ({0: 0, 255: 1}, 1, None, 2),
        ({0: 0, 1: 1, 255: 255}, 255, 2, 2),  # `classes` says that it is none
        ({0: 0, 1: 1}, 255, None, 2),
    ],
)
def test_an_index_that_values_give_is_a_class_whatever_is_ignored(
    values: dict[int, int], ignore: int, classes: int | None, expected: int
) -> None:
    mask = {"kind": "mask", "path": "masks", "values": values, "ignore": ignore} | ({} if classes is None else {"classes": classes})
    assert source(PAIR | {"mask": mask}).infer()["mask"].classes == expected
