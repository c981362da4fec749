"""Files of two splits that hold the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipegen.data import content as module
from pipegen.data.content import same_files
from pipegen.data.manifest import Manifest
from pipegen.ops.sources.listing.base import Listing, Location

CONTENTS = {"a": b"one", "b": b"two", "c": b"one", "d": b"three", "e": b"two", "f": b"one"}
SPLITS = {"train": (0, 1, 3), "validation": (2, 4, 5)}


@pytest.mark.parametrize("chunk", [2, 100])
def test_pairs_of_two_splits_are_found_and_progress_is_told_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    sizes = tuple(map(len, CONTENTS.values()))
    listing = Listing.labelled(str(tmp_path), Location.below(str(tmp_path), CONTENTS, sizes), (0,) * 6, ("x",))
    manifest = Manifest(listing, SPLITS, "image_folder")
    told: list[int] = []
    found, compared = same_files(manifest, ["train", "validation"], 1, told.append)
    assert [(same.key, same.other_key) for same in found] == [("a", "c"), ("b", "e"), ("a", "f")]
    assert {(same.split, same.other_split) for same in found} == {("train", "validation")}
    assert compared == 6
    assert told == ([3, 5, 6] if chunk == 2 else [6])  # the one of five bytes is compared with none
    assert same_files(manifest, ["train", "validation"], 1) == (found, compared)
