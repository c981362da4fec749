"""Where records are: columns that are cut and joined, whatever stores the records."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipegen
from pipegen.data.content import content_digest
from pipegen.data.fingerprint import fingerprint
from pipegen.ops.fields.strings import Strings
from pipegen.ops.sources.listing.base import Location
from pipegen.phases.compilation import collect_data

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Listing

FILES = Location.below("/data", ["a.png", "b.png"], [7, 8])
MEMBERS = Location(Strings.hold(["c"]), Strings.hold(["/d.zip/c"]), [2**33], np.array([5]), "member")
FEATURES = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label", "column": "label"}}


def test_files_and_members_are_joined_and_cut() -> None:
    joined = Location.join([FILES, MEMBERS])
    assert (joined.keys, joined.paths) == (["a.png", "b.png", "c"], ["/data/a.png", "/data/b.png", "/d.zip/c"])
    assert (joined.rows.tolist(), joined.sizes.tolist(), joined.kind) == ([-1, -1, 5], [7, 8, 2**33], "several")  # type: ignore[union-attr]
    assert [joined.kind_of([i]) for i in range(3)] == ["file", "file", "member"]
    assert Location.join([joined, FILES]).take(np.array([2, 0])).kind_of([0]) == "member"
    taken = joined.take(np.array([2, 0]))
    assert (taken.keys, taken.paths) == (["c", "a.png"], ["/d.zip/c", "/data/a.png"])
    assert (taken.rows.tolist(), taken.sizes.tolist()) == ([5, -1], [2**33, 7])  # type: ignore[union-attr]


def test_paths_below_a_folder_take_no_memory() -> None:
    other = Location.below("/else", ["c.png"], [9])
    for location in (FILES, FILES.take(np.array([1])), Location.join([FILES, other]), Location.join([FILES, other]).take(np.array([2, 0]))):
        assert location.paths.blob is location.keys.blob
        assert location.rows is None
    assert Location.join([FILES, other]).take(np.array([2, 0])).paths == ["/else/c.png", "/data/a.png"]


def listed(folder: Path, source: dict[str, Any]) -> Listing:
    """The listing of a source in a spec of the folder."""
    steps = [] if "csv" in source else ["decode", {"resize": {"size": [8, 8]}}]
    output = {"x": "image" if steps else "v"}
    spec = {"pipegen": 1, "source": source, "transforms": steps, "batch": {"size": 1}, "output": output}
    (folder / "s.yaml").write_text(json.dumps(spec))
    return collect_data(pipegen.load(folder / "s.yaml")).listing


@pytest.mark.parametrize("names", [("folder", "archive"), ("archive", "folder")])
@pytest.mark.parametrize("form", ["by_split", "mix"])
def test_the_content_of_files_beside_members_is_that_of_files(tmp_path: Path, names: tuple[str, str], form: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for i in range(4):
            for place in (f"f/{i}.png", f"a/{i + 4}.png"):
                (tmp_path / place).parent.mkdir(exist_ok=True)
                (tmp_path / place).write_bytes(b"%d" % i)
            archive.write(tmp_path / f"a/{i + 4}.png", f"{i + 4}.png")

    def content(archive: str) -> str:
        sources = {name: {"image_folder": {"path": "f" if name == "folder" else archive, "labels": "none"}} for name in names}
        if form == "mix":
            parts = {name: {"source": own, "splits": {"parts": {"train": 4}}} for name, own in sources.items()}
            return content_digest(listed(tmp_path, {"mix": {"epoch": "longest", "parts": parts}}))
        return content_digest(listed(tmp_path, {"by_split": dict(zip(("train", "test"), sources.values(), strict=True))}))

    assert content("a.zip") == content("a")


@pytest.mark.parametrize("forms", [("csv", "parquet"), ("parquet", "csv")])
def test_the_content_of_rows_beside_files_is_that_of_both(tmp_path: Path, forms: tuple[str, str]) -> None:
    (tmp_path / "t.csv").write_text("file,label\nx.png,a\n")

    def seen(held: bytes, beside: bytes) -> tuple[str, str]:
        (tmp_path / "x.png").write_bytes(beside)
        pq.write_table(pa.table({"file": [held], "label": ["a"]}), tmp_path / "t.parquet")
        train, test = ({form: {"path": f"t.{form}", "features": FEATURES}} for form in forms)
        listing = listed(tmp_path, {"by_split": {"train": train, "test": test}})
        return content_digest(listing), fingerprint(listing)

    assert seen(b"one", b"a") == seen(b"one", b"a")
    assert len({seen(b"one", b"a")[0], seen(b"two", b"a")[0], seen(b"one", b"b")[0]}) == 3
    assert seen(b"one", b"a")[1] != seen(b"two", b"a")[1]


def test_the_content_of_numbers_alone_can_be_locked(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("v\n1\n2\n")
    numbers = listed(tmp_path, {"csv": {"path": "n.csv", "features": {"v": {"kind": "tensor", "column": "v"}}}})
    assert numbers.location.kind == "memory"
    assert content_digest(numbers)
