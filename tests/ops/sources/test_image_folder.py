"""`image_folder`: what counts as an image and a class, in which order, and what is said about the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pipegen.errors import OpError
from pipegen.ops.sources.class_folders import ImageFolder
from pipegen.ops.sources.folders.scan import JUNK, Scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Listing

    Tree = Callable[..., Path]


def listed(root: Path, **arguments: Any) -> Listing:
    return ImageFolder(path=str(root), **arguments).list(root.parent)


def refusal(root: Path, **arguments: Any) -> OpError:
    with pytest.raises(OpError) as caught:
        listed(root, **arguments)
    return caught.value


def notes(listing: Listing, code: str) -> str:
    return "\n".join(f"{note.message} | {note.help}" for note in listing.notes if note.code == code)


def test_classes_are_the_sub_folders_sorted_and_records_stand_by_class_and_path(tree: Tree) -> None:
    listing = listed(tree("dog/b.jpg", "dog/a.png", "Cat/z.gif", "cat/x.bmp", "cat/deep/er/y.webp", "cat/deep.jpg"))
    assert listing.class_names == ("Cat", "cat", "dog")
    assert listing.keys == ("Cat/z.gif", "cat/deep.jpg", "cat/deep/er/y.webp", "cat/x.bmp", "dog/a.png", "dog/b.jpg")
    assert tuple(listing.labels) == (0, 1, 1, 1, 2, 2)
    assert [(note.code, note.message.split(" differ")[0]) for note in listing.notes] == [("PG665", "the classes 'Cat' and 'cat'")]
    assert [os.path.getsize(listing.location.paths[i]) for i in range(6)] == list(listing.sizes)


def test_class_folders_that_are_splits_are_probably_one_level_too_high(tree: Tree) -> None:
    root = tree("Train/cat/a.jpg", "val/cat/b.jpg", "testing/cat/c.jpg", "raw/")
    said = notes(listed(root), "PG415")
    assert "'Train', 'testing', 'val'" in said
    assert "splits: {method: folder, parts: {train: Train, test: testing, validation: val}}" in said
    assert notes(listed(root, classes=["Train", "val"]), "PG415") == ""
    assert notes(listed(root, labels="none"), "PG415") == ""


def test_one_class_that_is_named_like_a_split_is_none(tree: Tree) -> None:
    assert notes(listed(tree("train/a.jpg", "bus/b.jpg")), "PG415") == ""
    assert notes(listed(tree("test/a.jpg")), "PG415") == ""


def test_an_explicit_list_of_classes_gives_the_label_order_and_may_be_nested(tree: Tree) -> None:
    root = tree("pets/cat/a.jpg", "pets/dog/b.jpg", "wild/fox/c.jpg", "other/d.jpg")
    listing = listed(root, classes=["wild/fox", "pets/cat"])
    assert (listing.class_names, listing.keys, tuple(listing.labels)) == (
        ("wild/fox", "pets/cat"),
        ("wild/fox/c.jpg", "pets/cat/a.jpg"),
        (0, 1),
    )
    assert notes(listing, "PG411").startswith("1 folder not in `classes` and ignored: 'other'")
    assert ImageFolder(path="x", classes=["b", "a"]).infer()["label"].classes == 2


def test_hidden_entries_are_no_classes_and_no_images(tree: Tree) -> None:
    hidden = (".ipynb_checkpoints/a.jpg", "__MACOSX/cat/._a.jpg", "cat/.DS_Store", "cat/Thumbs.db", "cat/.hidden.jpg", "desktop.ini")
    listing = listed(tree("cat/a.jpg", *hidden))
    assert listing.keys == ("cat/a.jpg",)
    assert "6 hidden entries" in notes(listing, "PG411")


def test_a_hidden_folder_counts_when_it_is_listed(tree: Tree) -> None:
    assert listed(tree(".secret/a.jpg", "cat/b.jpg"), classes=[".secret", "cat"]).keys == (".secret/a.jpg", "cat/b.jpg")


def test_content_decides_where_the_extension_does_not(tree: Tree, image_bytes: dict[str, bytes]) -> None:
    root = tree("cat/a.jpg", "cat/notes.txt", "cat/labels.json", "cat/README")
    (root / "cat/no_extension").write_bytes(image_bytes[".png"])
    (root / "cat/web.image").write_bytes(image_bytes[".webp"])
    (root / "cat/really_a_jpeg.heic").write_bytes(image_bytes[".jpg"])
    (root / "cat/A.JPEG").write_bytes(image_bytes[".jpg"])
    listing = listed(root)
    assert listing.keys == ("cat/A.JPEG", "cat/a.jpg", "cat/no_extension", "cat/really_a_jpeg.heic", "cat/web.image")
    assert "3 files that are not an image (1 .json, 1 .txt, 1 no extension)" in notes(listing, "PG411")


def test_known_but_unsupported_formats_are_reported(tree: Tree) -> None:
    listing = listed(tree("cat/a.jpg", "cat/b.tif", "cat/c.ppm", "cat/d.heic", "cat/e.avif", "cat/f.jp2"))
    assert listing.keys == ("cat/a.jpg", "cat/b.tif", "cat/c.ppm")
    assert [note.message.split(" cannot")[0] for note in listing.notes if note.code == "PG414"] == ["AVIF", "HEIC", "JPEG 2000"]
    assert notes(listed(tree("cat/a.jpg"), pattern="*.jpg"), "PG414") == ""


def test_empty_folders_are_no_classes_and_are_reported(tree: Tree) -> None:
    listing = listed(tree("cat/a.jpg", "empty/", "texts/readme.txt"))
    assert listing.class_names == ("cat",)
    (note,) = [note for note in listing.notes if note.code == "PG403"]
    assert (note.severity, note.message) == (None, "2 folders without images are ignored as classes: 'empty', 'texts'")


def test_a_listed_class_without_images_or_without_a_folder_is_an_error(tree: Tree) -> None:
    listing = listed(tree("cat/a.jpg", "dog/", "horse/b.jpg"), classes=["cat", "dog", "hrose"])
    assert listing.class_names == ("cat", "dog", "hrose")
    found = [note for note in listing.notes if note.code == "PG403"]
    assert [note.severity for note in found] == ["error", "error"]
    assert "'dog'" in found[0].message
    assert (found[1].field, found[1].help) == ("classes", "is 'horse' meant?")


def test_images_beside_the_class_folders_are_reported(tree: Tree) -> None:
    listing = listed(tree("cat/a.jpg", "b.jpg", "c.jpg"))
    assert listing.keys == ("cat/a.jpg",)
    assert "2 images directly in" in notes(listing, "PG411")


def test_without_labels_every_image_is_one_flat_sorted_list(tree: Tree) -> None:
    listing = listed(tree("b.jpg", "a/z.jpg", "a.jpg", "c/d/e.png"), labels="none")
    assert (listing.keys, listing.labels, listing.class_names) == (("a.jpg", "a/z.jpg", "b.jpg", "c/d/e.png"), None, ())
    type_ = ImageFolder(path="x", labels="none").infer()
    assert list(type_) == ["image"]


def test_the_type_of_a_record(tree: Tree) -> None:
    type_ = ImageFolder(path="x").infer()
    assert [(name, t.kind, t.dtype, t.shape, t.classes) for name, t in type_.items()] == [
        ("image", "image", "string", (), None),
        ("label", "label", "int64", (), None),
    ]


def test_a_pattern_narrows_what_counts(tree: Tree) -> None:
    root = tree("cat/a.jpg", "cat/a.png", "cat/deep/b.jpg", "dog/c.png")
    listing = listed(root, pattern="**/*.jpg")
    assert (listing.keys, listing.class_names) == (("cat/a.jpg", "cat/deep/b.jpg"), ("cat",))
    error = refusal(root, pattern="**/*.jpeg")
    assert (error.code, error.field) == ("PG402", "pattern")
    assert "none of the 4 files" in error.message


def test_a_missing_path_shows_the_nearest_folder_and_close_names(tree: Tree) -> None:
    root = tree("cat/a.jpg")
    error = refusal(root.parent / "dta")
    assert (error.code, error.field) == ("PG401", "path")
    assert error.help == f"{str(root.parent)!r} holds 'data'; is it meant?"
    error = refusal(root / "no" / "such" / "place")
    assert error.help is not None
    assert f"{str(root)!r} exists and holds the folders 'cat', but not 'no'" in error.help


def test_a_file_or_an_address_in_place_of_a_folder(tree: Tree) -> None:
    root = tree("cat/a.jpg")
    assert "is a file, not a folder" in refusal(root / "cat/a.jpg").message
    error = ImageFolder(path="gs://bucket/photos")
    with pytest.raises(OpError, match="is an address"):
        error.list(root)


@pytest.mark.parametrize(
    ("paths", "arguments", "words"),
    [
        (("a.txt", "b.txt", "c/d.csv"), {}, "3 files, none of them an image (2 .txt, 1 .csv)"),
        (("a.jpg", "b.jpg"), {}, "2 images directly in"),
        (("a.jpg", "empty/"), {}, "but none in its 1 sub-folder"),
        (("cat/a.heic",), {}, "1 image of unsupported formats (HEIC)"),
        (("cat/", "dog/"), {}, "2 folders without files"),
        (("cat/.a.jpg",), {}, "1 hidden entry"),
        ((), {}, "it is empty"),
        (("cat/a.jpg",), {"classes": ["dog"]}, "no class in `classes` has an image"),
        (("a.txt",), {"labels": "none"}, "1 file, none of them an image"),
    ],
)
def test_finding_nothing_says_what_was_seen(tree: Tree, paths: tuple[str, ...], arguments: dict[str, Any], words: str) -> None:
    error = refusal(tree("./", *paths), **arguments)
    assert error.code == "PG402"
    assert words in error.message


def test_images_without_classes_suggest_labels_none(tree: Tree) -> None:
    assert refusal(tree("a.jpg")).help == "for images without classes, write `labels: none`"


def test_links_to_folders_are_entered_when_asked_and_loops_end(tree: Tree) -> None:
    root = tree("cat/a.jpg", "dog/b.jpg")
    (root / "cat/again").symlink_to(root / "cat")
    (root / "cat/up").symlink_to(root)
    (root / "cat/more").symlink_to(root / "dog")
    (root / "fox").symlink_to(root / "dog")
    plain = listed(root)
    assert plain.keys == ("cat/a.jpg", "dog/b.jpg")
    assert "4 linked folders" in notes(plain, "PG411")
    followed = listed(root, follow_links=True)
    assert followed.keys == ("cat/a.jpg", "cat/more/b.jpg", "dog/b.jpg", "fox/b.jpg")
    assert "2 links back" in notes(followed, "PG411")


def test_folders_linked_in_every_direction_are_listed_once(tree: Tree) -> None:
    names = [f"d{i}" for i in range(12)]
    root = tree(*(f"all/{name}/x.jpg" for name in names))
    for name in names:
        for other in names:
            (root / "all" / name / f"to_{other}").symlink_to(root / "all" / other)
    assert len(listed(root, follow_links=True).keys) == 12


def test_linked_files_always_count_and_dead_links_are_reported(tree: Tree) -> None:
    root = tree("cat/a.jpg")
    (root / "cat/b.jpg").symlink_to(root / "cat/a.jpg")
    (root / "cat/dead.jpg").symlink_to(root / "gone.jpg")
    (root / "cat/self.jpg").symlink_to(root / "cat/self.jpg")
    listing = listed(root)
    assert listing.keys == ("cat/a.jpg", "cat/b.jpg")
    assert "2 files could not be opened" in notes(listing, "PG411")


def test_a_pipe_does_not_block_the_listing(tree: Tree) -> None:
    root = tree("cat/a.jpg")
    os.mkfifo(root / "cat/pipe")
    assert listed(root).keys == ("cat/a.jpg",)


def test_names_that_are_no_utf8_are_listed(tree: Tree) -> None:
    root = tree("cat/a.jpg")
    with open(os.fsencode(root) + b"/cat/\xff.jpg", "wb") as file:
        file.write(b"x")
    listing = listed(root)
    assert os.path.exists(listing.location.paths[1])


def test_a_folder_that_cannot_be_read_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree("cat/a.jpg")
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("cat"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    error = refusal(root)
    assert error.code == "PG406"
    assert "cat' cannot be read: Permission denied" in error.message


def test_known_extensions_are_not_opened(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree("cat/a.jpg", "cat/b.txt", "cat/c.PNG")

    def forbidden(*_: object) -> bool:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(Scan, "_is_wanted", forbidden)
    assert len(listed(root).keys) == 2


def test_progress_counts_files(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.ops.sources.folders.scan._PROGRESS_EVERY", 2)
    seen: list[int] = []
    root = tree(*(f"cat/{i}.jpg" for i in range(5)))
    ImageFolder(path="data").list(root.parent, seen.append)
    assert seen == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"classes": ["a", "a"]}, "listed twice"),
        ({"classes": ["a", "a/b"]}, "lies inside the class 'a'"),
        ({"classes": ["../a"]}, "a folder below `path`"),
        ({"classes": ["/a"]}, "a folder below `path`"),
        ({"classes": []}, "at least 1"),
        ({"classes": ["a"], "labels": "none"}, "leave one of them out"),
        ({"pattern": "[a"}, "not closed"),
        ({"path": ""}, "at least 1"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words.replace("[", r"\[")):
        ImageFolder.model_validate({"path": "x", **arguments})


def test_splits_in_folders_are_listed_with_the_classes_one_level_down(tree: Tree) -> None:
    root = tree("train/cat/a.jpg", "train/dog/b.jpg", "val/dog/c.jpg", "rest/cat/d.jpg", "e.jpg")
    listing = ImageFolder(path="data").list_parts(root.parent, {"train": "train", "validation": "val"})
    assert listing.keys == ("train/cat/a.jpg", "train/dog/b.jpg", "val/dog/c.jpg")
    assert (tuple(listing.labels), listing.class_names) == ((0, 1, 1), ("cat", "dog"))
    assert tuple(listing.parts) == ("train", "train", "validation")
    assert "`parts` does not name 'rest'" in notes(listing, "PG411")
    assert "1 image directly in" in notes(listing, "PG411")


def test_the_folder_of_a_split_that_is_missing_or_has_an_unknown_class(tree: Tree) -> None:
    root = tree("train/cat/a.jpg", "val/cow/b.jpg")
    listing = ImageFolder(path="data").list_parts(root.parent, {"train": "train", "validation": "val", "test": "tset"})
    found = {note.code: note for note in listing.notes if note.severity == "error"}
    assert found["PG401"].field == "parts.test"
    assert found["PG408"].field == "parts.validation"
    assert f"'cow', in {str(root / 'val/cow')!r}" in found["PG408"].message


@pytest.mark.parametrize("junk", sorted(JUNK | {"@eaDir", "$RECYCLE.BIN", "System Volume Information", ".Trash-1000", ".Spotlight-V100"}))
def test_what_systems_and_storage_devices_leave_behind_is_not_a_class(tmp_path: Path, junk: str) -> None:
    for name in ("cat/0.jpg", "dog/0.jpg", f"{junk}/0.jpg/SYNOFILE_THUMB_M.jpg", f"cat/{junk}/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    listing = ImageFolder(path=".").list(tmp_path)
    assert (listing.class_names, list(listing.keys)) == (("cat", "dog"), ["cat/0.jpg", "dog/0.jpg"])
    (note,) = listing.notes
    assert (note.code, "2 hidden entries" in note.message) == ("PG411", True)
