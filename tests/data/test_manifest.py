"""The manifest and the hashes that identify data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipegen.data import manifest as module
from pipegen.data.fingerprint import example_ids, fingerprint
from pipegen.data.manifest import Manifest
from pipegen.errors import InternalError
from pipegen.ops.fields.strings import encode
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.ops.sources.listing.reader import Reader

LOCATION = Location.below("/data", ("a/1.jpg", "a/2.jpg", "b/1.jpg"), (10, 20, 60))
LISTING = Listing.labelled("/data", LOCATION, (0, 0, 1), ("a", "b"))
MANIFEST = Manifest(LISTING, {"train": (0, 2), "validation": (1,)}, "image_folder")


def test_what_a_split_holds() -> None:
    assert MANIFEST.splits == ("train", "validation")
    assert MANIFEST.keys("train") == ("a/1.jpg", "b/1.jpg")
    assert MANIFEST.files("train") == ("/data/a/1.jpg", "/data/b/1.jpg")
    assert MANIFEST.labels("train").tolist() == [0, 1]
    assert MANIFEST.num_examples("validation") == 1
    assert (MANIFEST.mean_bytes(), MANIFEST.mean_bytes("train")) == (30.0, 35.0)
    assert MANIFEST.class_names == ("a", "b")


def test_example_ids_depend_on_source_and_key_alone() -> None:
    ids = MANIFEST.ids("train").tolist()
    assert ids == example_ids("image_folder", ["a/1.jpg", "b/1.jpg"]).tolist()
    assert ids == Manifest(replace(LISTING, root="/elsewhere"), MANIFEST.members, "image_folder").ids("train").tolist()
    assert example_ids("by_split", ["a/1.jpg"])[0] != ids[0]
    assert ids[0] == 5610056537229920753  # frozen: another value would change every augmentation


def test_two_records_with_one_id_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "example_ids", lambda _, keys: np.array([len(key) for key in keys], np.uint64))
    with pytest.raises(InternalError, match=r"'a/1.jpg' and 'a/2.jpg'"):
        Manifest(LISTING, MANIFEST.members, "image_folder").all_ids  # noqa: B018


def test_the_fingerprint_follows_names_and_sizes_and_not_the_place() -> None:
    print_ = MANIFEST.fingerprint
    assert print_ == fingerprint(replace(LISTING, root="/elsewhere"))
    reordered = Listing.labelled("/data", LISTING.location.take(np.array([2, 1, 0])), LISTING.labels, ("b", "a"))
    assert print_ == fingerprint(reordered)
    assert print_ != fingerprint(replace(LISTING, location=replace(LOCATION, sizes=(10, 20, 61))))
    assert print_ != fingerprint(replace(LISTING, location=Location.below("/data", ("a/1.jpg", "a/2.jpg", "b/3.jpg"), (10, 20, 60))))


def test_names_that_are_no_utf8_have_bytes_of_their_own() -> None:
    assert encode("caf\u00e9.jpg") == "caf\u00e9.jpg".encode()
    assert encode("\udcff.jpg") != encode("\udcfe.jpg")


class Blocks(Reader):
    """Rows in two blocks, of which the first has the rows up to 20."""

    starts = np.array([0, 20, 100])


def test_the_blocks_of_a_split_begin_where_its_rows_reach_them() -> None:
    rows = replace(LISTING, readers={"": Blocks()}, location=replace(LOCATION, rows=np.array([7, 19, 20]), kind="row"))
    manifest = Manifest(rows, {"train": (0, 1, 2), "validation": (1,), "test": (2,)}, "rows")
    found = {split: manifest.blocks(split) for split in manifest.splits}
    assert {split: None if starts is None else starts.tolist() for split, starts in found.items()} == {
        "train": [0, 2, 3],
        "validation": [0, 1, 1],
        "test": [0, 0, 1],
    }
    assert MANIFEST.blocks("train") is None
