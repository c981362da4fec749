"""`csv`: which rows are records, what they are called, and what is said about tables that cannot be read."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pipegen.data.fingerprint import fingerprint
from pipegen.data.splits import assign
from pipegen.errors import OpError
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.table_sources import Csv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Listing

    Tree = Callable[..., Path]

FEATURES = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label", "column": "breed"}}
ROWS = "file,breed\na.jpg,pug\nsub/b.png,chow\nc.jpg,pug\n"


@pytest.fixture
def folder(tree: Tree) -> Path:
    return tree("a.jpg", "sub/b.png", "c.jpg")


def listed(folder: Path, text: str | bytes = ROWS, name: str = "table.csv", **arguments: Any) -> Listing:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Csv(**{"path": name, "features": FEATURES, **arguments}).list(folder)


def refusal(folder: Path, text: str | bytes = ROWS, name: str = "table.csv", **arguments: Any) -> OpError:
    with pytest.raises(OpError) as caught:
        listed(folder, text, name, **arguments)
    return caught.value


def test_rows_are_records_in_their_order(folder: Path) -> None:
    listing = listed(folder)
    assert listing.keys == ("a.jpg", "sub/b.png", "c.jpg")
    assert (tuple(listing.labels), listing.class_names) == ((1, 0, 1), ("chow", "pug"))
    assert [os.path.getsize(listing.location.paths[i]) for i in range(3)] == list(listing.sizes)
    assert listing.notes == ()


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("file\tbreed\na.jpg\tpug\nsub/b.png\tchow\nc.jpg\tpug\n", "t.tsv", {}),
        ("file;breed\na.jpg;pug\nsub/b.png;chow\nc.jpg;pug", "t.csv", {"separator": ";"}),
        ("sep=;\r\nfile;breed\r\na.jpg;pug\r\nsub/b.png;chow\r\nc.jpg;pug", "t.csv", {}),
        ('"sep=|"\nfile;breed\na.jpg;pug\nsub/b.png;chow\nc.jpg;pug', "t.csv", {"separator": ";"}),
        ("file breed\n a.jpg   pug\nsub/b.png\tchow\n\nc.jpg pug\n", "t.txt", {"separator": "whitespace"}),
        ('\ufefffile,breed\r\n"a.jpg",pug\r\nsub/b.png,chow\r\n\r\n./c.jpg, pug \r\n', "t.csv", {}),
        ('id,file,breed,note\n7,a.jpg,pug,"two\nlines, and a comma"\n8,sub/b.png,chow,\n9,c.jpg,pug,x\n', "t.csv", {}),
    ],
)
def test_separators_quotes_and_blank_lines(folder: Path, text: str, name: str, arguments: dict[str, Any]) -> None:
    plain = listed(folder)
    again = listed(folder, text, name, **arguments)
    assert (again.keys, tuple(again.labels), again.class_names, tuple(again.sizes)) == (
        plain.keys,
        tuple(plain.labels),
        plain.class_names,
        tuple(plain.sizes),
    )


def test_a_table_without_a_header_has_numbers(folder: Path) -> None:
    features = {"image": {"kind": "image", "column": 1}, "label": {"kind": "label", "column": 0}}
    listing = listed(folder, "2,a.jpg\n0,sub/b.png\n1,c.jpg\n", header=False, features=features)
    assert (tuple(listing.labels), listing.class_names) == ((2, 0, 1), ("0", "1", "2"))
    with pytest.raises(ValidationError, match=r"give `features\.image` a `column` with numbers from 0"):
        Csv(path="x", header=False, features={"image": {"kind": "image"}})


def test_the_name_of_the_feature_is_the_column_unless_told(folder: Path) -> None:
    listing = listed(folder, "image,label\na.jpg,x\n", features={"image": {"kind": "image"}, "label": {"kind": "label"}})
    assert listing.keys == ("a.jpg",)
    alone = listed(folder, "image\na.jpg\n", features={"image": {"kind": "image"}})
    assert (alone.labels, alone.class_names) == (None, ())


def test_paths_are_relative_to_the_table_or_to_root_or_absolute(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    listing = listed(folder, f"file,breed\nb.png,x\n{folder}/a.jpg,y\n", features=FEATURES | {"image": FEATURES["image"] | {"root": "sub"}})
    assert [listing.location.paths[i] for i in range(2)] == [str(folder / "sub/b.png"), str(folder / "a.jpg")]
    assert listing.keys[0] == "b.png"
    text = "file,breed\n../data/a.jpg,x\n"
    (tmp_path / "lists" / "t.csv").write_text(text)
    assert os.path.samefile(Csv(path="lists/t.csv", features=FEATURES).list(tmp_path).location.paths[0], folder / "a.jpg")


def test_numbers_are_class_indices_and_names_where_names_are_listed(folder: Path) -> None:
    numbers = "file,breed\na.jpg,1\nsub/b.png,2\nc.jpg,1\n"
    label = FEATURES["label"]
    assert tuple(listed(folder, numbers, features=FEATURES | {"label": label | {"classes": 2, "offset": 1}}).labels) == (0, 1, 0)
    named = listed(folder, numbers, features=FEATURES | {"label": label | {"classes": ["2", "1"]}})
    assert (tuple(named.labels), named.class_names) == ((1, 0, 1), ("2", "1"))


def test_a_file_in_several_rows_is_several_examples(folder: Path) -> None:
    listing = listed(folder, ROWS + "a.jpg,chow\na.jpg,pug\n")
    assert listing.keys == ("a.jpg", "sub/b.png", "c.jpg", "a.jpg#2", "a.jpg#3")
    assert tuple(listing.labels) == (1, 0, 1, 0, 1)
    (note,) = listing.notes
    assert note.code == "PG422"
    assert "1 file in several rows, such as 'a.jpg'" in note.message
    splits = Splits(parts={"train": 0.5, "validation": 0.5}, group={"path": "([^#]*)"})
    members = assign(splits, listing, ("train", "validation"))
    assert any({0, 3, 4} <= set(records) for records in members.values()), "the advice keeps them together"


def test_a_file_may_be_called_like_the_second_row_of_another(folder: Path) -> None:
    (folder / "a.jpg#2").write_bytes(b"x")
    for text in ("file\na.jpg\na.jpg#2\na.jpg\n", "file\na.jpg\na.jpg\na.jpg#2\n"):
        listing = listed(folder, text, features={"image": FEATURES["image"]})
        assert len(set(listing.keys)) == 3
        assert "such as 'a.jpg'" in listing.notes[0].message


def test_labels_are_part_of_what_identifies_the_data(folder: Path) -> None:
    """Other than in a folder, where a path has its class, they can change while every path stays."""
    one, other = listed(folder), listed(folder, ROWS.replace("c.jpg,pug", "c.jpg,chow"))
    assert one.keys == other.keys
    assert fingerprint(one) != fingerprint(other)
    turned = listed(folder, "file,breed\nc.jpg,pug\nsub/b.png,chow\na.jpg,pug\n")
    assert fingerprint(one) != fingerprint(turned), "caches count rows, and a resumed run goes on in their order"


def test_the_method_keras_takes_the_first_rows(folder: Path) -> None:
    splits = Splits(method="keras", parts={"train": 0.6, "validation": 0.4})
    members = assign(splits, listed(folder), ("train", "validation"))
    assert {name: records.tolist() for name, records in members.items()} == {"train": [1, 2], "validation": [0]}


@pytest.mark.parametrize(
    ("text", "arguments", "code", "field", "says"),
    [
        (ROWS.replace("breed", "bred"), {}, "PG421", "features.label.column", "has no column 'breed' | is 'bred' meant?"),
        (ROWS, {"features": {"image": {"kind": "image", "column": 5}}}, "PG421", "features.image.column", "has 2 columns, numbered from 0"),
        ("file,breed,breed\na.jpg,x,y\n", {}, "PG421", "features.label.column", "use the number of one: 1, 2"),
        ("file,breed\na.jpg\n", {}, "PG421", "path", "table.csv:2 has 1 column"),
        ("file;breed\na.jpg;x\n", {}, "PG421", "features.image.column", "has no column 'file'"),
        ("file,breed\na.jpg,\n", {}, "PG420", "features.label.column", "table.csv:2 is empty"),
        ("file,breed\n", {}, "PG402", "path", "has no rows"),
        ("", {}, "PG402", "path", "has no rows"),
        ("file,breed\ncaf\xe9.jpg,x\n".encode("latin-1"), {}, "PG421", "path", "is not UTF-8: byte 14 is 0xe9"),
        (gzip.compress(ROWS.encode(), mtime=0), {}, "PG421", "path", "is compressed by gzip; tables must be text | unpack it: `gunzip"),
        ('file,breed\n"a.jpg,x\n', {}, "PG421", "path", "cannot be read as a table"),
        (ROWS, {"path": "nowhere.csv"}, "PG401", "path", "does not exist"),
        (ROWS, {"path": "sub"}, "PG401", "path", "is a folder, not a table"),
        (ROWS, {"features": {"image": {"kind": "image", "column": 0, "root": "x"}}}, "PG401", "features.image.root", "does not exist"),
        (ROWS, {"features": FEATURES | {"label": FEATURES["label"] | {"classes": ["pug"]}}}, "PG420", "features.label.classes", "'chow'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(folder: Path, text: str | bytes, arguments: dict[str, Any], code: str, field: str, says: str) -> None:
    error = refusal(folder, text, **arguments)
    assert (error.code, error.field) == (code, field)
    assert says in f"{error.message} | {error.help}"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("file,breed\na.jpg,x\n,y\n", "PG421", "table.csv:3 names no image"),
        ("file,breed\na.jpg,x\nnone.jpg,y\n", "PG401", "none.jpg', which does not exist | add the file"),
        ("file,breed\nx.jpg,x\ny.jpg,y\n", "PG401", "x.jpg', which does not exist | the paths must be relative to `root`"),
    ],
)
def test_rows_without_a_file_are_for_the_spec_to_decide_on(folder: Path, text: str, code: str, says: str) -> None:
    (missing,) = listed(folder, text).missing
    assert (missing.code, missing.field, says in " | ".join((missing.example(0), *missing.help))) == (code, "features.image.column", True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"features": {"a": {"kind": "image"}, "b": {"kind": "image"}, "m": {"kind": "mask"}}}, "`m` needs `of`"),
        ({"features": {"a": {"kind": "image"}, "m": {"kind": "mask", "of": "b"}}}, "is not an image of `features`"),
        ({"features": {"a": {"kind": "image", "of": "a"}}}, "which is itself"),
        (
            {"features": {"a": {"kind": "image"}, "b": {"kind": "image", "of": "a"}, "c": {"kind": "image", "of": "b"}}},
            "is aligned with another image",
        ),
        ({"features": {"a": {"kind": "image", "values": {0: 1}}}}, "`values` belongs to dense maps and masks"),
        ({"features": {"a": {"kind": "label", "ignore": 1}}}, "`ignore` of `kind: label` must be a list of classes"),
        ({"features": {"a": {"kind": "mask", "values": {0: 256}}}}, "less than or equal to 255"),
        ({"features": {"image": {"kind": "image", "classes": 3}}}, "belongs to masks and labels"),
        ({"features": FEATURES | {"label": {"kind": "label", "root": "x"}}}, "belongs to images, dense maps, masks, sounds and arrays"),
        ({"features": FEATURES | {"label": {"kind": "label", "classes": ["a", "a"]}}}, "is listed twice"),
        ({"separator": "ab"}, "invalid separator 'ab'; use one character"),
    ],
)
def test_what_the_spec_may_not_say(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Csv(**{"path": "x", "features": FEATURES, **arguments})


def test_splits_from_two_tables_share_their_classes(folder: Path) -> None:
    (folder / "train.csv").write_text(ROWS)
    (folder / "val.csv").write_text("file,breed\nc.jpg,chow\n")
    tables = {split: {"csv": {"path": f"{split}.csv", "features": FEATURES}} for split in ("train", "val")}
    listing = BySplit.from_yaml(tables).list(folder)
    assert listing.keys == ("train/a.jpg", "train/sub/b.png", "train/c.jpg", "val/c.jpg")
    assert tuple(listing.labels) == (1, 0, 1, 0)
    assert listing.in_table


def test_splits_must_have_features_of_the_same_names() -> None:
    table = {"path": "t.csv", "features": {"photo": {"kind": "image"}}}
    parts = {"train": {"csv": table}, "test": {"image_folder": {"path": "x", "labels": "none"}}}
    with pytest.raises(ValidationError, match=r"has a feature `(image|photo)` and"):
        BySplit.from_yaml(parts)


@pytest.mark.tf
def test_batches_have_the_images_and_labels_of_the_rows(folder: Path) -> None:
    import numpy as np
    from PIL import Image

    import pipegen

    for i, name in enumerate(("a.png", "b.png", "c.png")):
        Image.new("RGB", (8, 6), (10 * i, 0, 0)).save(folder / name)
    (folder / "t.csv").write_text("file,breed\nc.png,pug\na.png,chow\nb.png,pug\n")
    spec = {
        "pipegen": 1,
        "source": {"csv": {"path": str(folder / "t.csv"), "features": {"photo": FEATURES["image"], "breed": {"kind": "label"}}}},
        "shuffle": "none",
        "transforms": [{"resize": {"size": 4}}],
        "output": {"x": "photo", "y": "breed"},
        "batch": {"size": 3},
    }
    pipe = pipegen.build(spec, runtime={"jit": "never"})
    ((x, y),) = list(pipe.train)
    np.testing.assert_array_equal(x.numpy()[:, 0, 0, 0], [20, 0, 10])
    np.testing.assert_array_equal(y.numpy(), [1, 0, 1])
    assert pipe.class_names == ("chow", "pug")
    assert [os.path.basename(f) for f in pipe.files("train")] == ["c.png", "a.png", "b.png"]


# Paths as tables have them


ENDING = {"image": {**FEATURES["image"], "ending": ".jpg"}, "label": FEATURES["label"]}


def test_an_ending_is_added_where_paths_lack_it(tree: Tree) -> None:
    folder = tree("a.jpg", "sub/b.jpg", "17.jpg")
    listing = listed(folder, "file,breed\na,pug\nsub/b.jpg,chow\n17,pug\n", features=ENDING)
    assert listing.keys == ("a.jpg", "sub/b.jpg", "17.jpg"), "records are known as in a table of whole names"
    assert all(os.path.isfile(listing.location.paths[i]) for i in range(3))
    assert fingerprint(listing) == fingerprint(listed(folder, "file,breed\na.jpg,pug\nsub/b.jpg,chow\n17.jpg,pug\n"))


def test_an_ending_begins_with_a_dot_and_belongs_to_files(folder: Path) -> None:
    for features in ({"image": {**FEATURES["image"], "ending": "jpg"}}, {**FEATURES, "label": {"kind": "label", "ending": ".jpg"}}):
        with pytest.raises(ValidationError, match="ending"):
            listed(folder, features=features)


def test_backslashes_of_windows_are_slashes_where_the_files_are(folder: Path) -> None:
    listing = listed(folder, "file,breed\na.jpg,pug\nsub\\b.png,chow\nc.jpg,pug\n")
    assert listing.keys == ("a.jpg", "sub/b.png", "c.jpg")
    assert fingerprint(listing) == fingerprint(listed(folder))


def test_a_backslash_in_a_name_stays(tree: Tree) -> None:
    folder = tree("a.jpg", "sub\\b.png")
    assert listed(folder, "file,breed\na.jpg,pug\nsub\\b.png,chow\n").keys == ("a.jpg", "sub\\b.png")


@pytest.mark.parametrize(("cell", "helps"), [
    ("a", "'a.jpg' exists; use `ending: .jpg`"),
    ("A.JPG", "holds 'a.jpg', which differs in upper and lower case"),
    ("http://example.com/a.jpg", "put the address into `root`"),
    ("a.png", "holds 'a.jpg'; correct the ending in the column"),
    ("nowhere/x.jpg", "the paths must be relative to `root`"),
    ("other/sub/b.png", "'sub/b.png' is in 'FOLDER'; use `root: FOLDER`, without 'other/' in the cells"),
    ("/moved/sub/b.png", "'sub/b.png' is in 'FOLDER'; use `root: FOLDER`, without '/moved/' in the cells"),
    ("b.png", "'b.png' is in 'FOLDER/sub'; use `root: FOLDER/sub`"),
    ("other\\b.png", "'b.png' is in 'FOLDER/sub'; use `root: FOLDER/sub`, without 'other/' in the cells"),
])  # fmt: skip
def test_the_cause_of_a_missing_file_is_named(folder: Path, cell: str, helps: str) -> None:
    (missing,) = listed(folder, f"file,breed\n{cell},pug\n").missing
    assert helps.replace("FOLDER", str(folder)) in " ".join(missing.help)
