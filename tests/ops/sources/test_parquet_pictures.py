"""Parquet files with the bytes of images in a column: read by row groups, in an order of two levels, resumed and shared exactly."""

from __future__ import annotations

import io
import json
from itertools import islice
from pipes import at
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.data.fingerprint import fingerprint
from pipegen.errors import DataError, OpError, SpecError
from pipegen.ops.sources.table_sources import Csv, Parquet

# As in `test_columnar.py`.
pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Listing

pytestmark = pytest.mark.tf

ROWS, GROUP = 120, 7
CLASSES = ("cat", "dog", "owl")


def picture(row: int) -> bytes:
    """A PNG of one colour, which says the row."""
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), (row % 256, row // 256, 7)).save(stream, "PNG")
    return stream.getvalue()


def written(folder: Path, rows: int = ROWS, damaged: tuple[int, ...] = (), **own: Any) -> Path:
    """A file of pictures, by themselves and as data sets of the Hugging Face Hub have them, with their classes and numbers."""
    pictures = [b"junk" if row in damaged else picture(row) for row in range(rows)]
    table = {
        "image": [{"bytes": content, "path": None} for content in pictures],
        "plain": pictures,
        "breed": [CLASSES[row % 3] for row in range(rows)],
        "number": list(range(rows)),
    }
    pq.write_table(pa.table(table), folder / "a.parquet", row_group_size=GROUP, **own)
    return folder / "a.parquet"


def source(file: Path, column: str = "image") -> dict[str, Any]:
    features = {"image": {"kind": "image", "column": column}, "label": {"kind": "label", "column": "breed"}, "number": {"kind": "tensor"}}
    return {"parquet": {"path": str(file), "features": features}}


def build(file: Path, column: str = "image", **own: Any) -> pipegen.Pipeline:
    spec: dict[str, Any] = {"pipegen": 1, "source": source(file, column), "transforms": [{"resize": {"size": 4}}]}
    spec |= {"shuffle": {"window": 1500}, "runtime": {"jit": "never", "cache": "none"}}
    spec |= {"splits": {"parts": {"train": 0.8, "validation": 0.2}, "stratify": "label"}, "batch": {"size": 8, "remainder": "keep"}}
    return pipegen.build(
        spec | {"output": {"x": {"image": "image", "number": "number"}, "y": "label", "dtype": "uint8"}} | own, allow_write=["/"]
    )


def seen(batches: Any) -> list[int]:
    """The row of each example, which its picture, its number and its class agree on."""
    found: list[int] = []
    for x, y in batches:
        rows = x["image"].numpy()[:, 0, 0, 0]
        assert rows.tolist() == x["number"].numpy().tolist()
        assert (rows % 3).tolist() == y.numpy().tolist()
        found += rows.tolist()
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("parquet"))


@pytest.mark.nightly
def test_order_resume_shares_and_words(file: Path) -> None:
    pipe = build(file)
    whole, others = seen(at(pipe)), seen(pipe["validation"])
    assert sorted(whole + others) == list(range(ROWS))
    assert others == sorted(others), "evaluation is in stored order"
    assert sorted(whole) != whole
    assert len({row // GROUP for row in whole[:8]}) > 1, "a window has several row groups"
    assert len({row // GROUP for row in whole[:16]}) < 8, "but not all of them"
    assert seen(at(pipe, epoch=1)) != whole
    assert seen(at(pipe, step=5)) == whole[40:]
    second = seen(islice(pipe.dataset("train", step=5, shard=(1, 2)), 2))
    assert second == whole[44:48] + whole[52:56]
    assert "shuffle of whole row groups, then in windows of 1.5 KiB" in str(pipe.explain("train"))
    assert "Python: row groups" in str(pipe.explain("train", physical=True))
    assert pipe.files("train")[0] == f"{file}#0"


@pytest.mark.nightly
def test_pictures_in_a_table_are_predicted_on_as_files_are(file: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture(7))
    (batch,) = build(file, output={"dtype": "uint8"}).predict_on([tmp_path / "a.png"]).dataset
    assert batch.numpy()[0, 0, 0].tolist() == [7, 0, 7]


@pytest.mark.nightly
def test_bytes_by_themselves_are_the_same_pictures(file: Path) -> None:
    plain, struct = (seen(build(file, column, shuffle="none", splits={}).dataset("train")) for column in ("plain", "image"))
    assert plain == struct == list(range(ROWS))


@pytest.mark.nightly
def test_damaged_pictures_are_named_or_skipped(tmp_path: Path) -> None:
    file = written(tmp_path, damaged=(50,))
    with pytest.raises(DataError, match=rf"cannot decode {file}#50 \("):
        seen(build(file, splits={}).dataset("train"))
    report = tmp_path / "damaged.jsonl"
    pipe = build(file, splits={}, errors={"decode": {"skip": {"max_fraction": 0.01, "report": str(report)}}})
    found = seen(at(pipe))
    assert (len(found), len(set(found))) == (ROWS, ROWS - 1), "another one took its place"
    assert json.loads(report.read_text().splitlines()[1]) == {"file": f"{file}#50", "record": 50}


def test_a_damaged_row_group_and_a_changed_file_are_named(tmp_path: Path) -> None:
    file = written(tmp_path, compression="zstd", write_page_checksum=True, use_dictionary=False)
    damaged = pq.read_metadata(file).row_group(3).column(0)
    byte = damaged.data_page_offset + damaged.total_compressed_size - 9
    content = bytearray(file.read_bytes())
    content[byte] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(DataError, match=rf"cannot read {file}#\d+: row group 3 of {file} cannot be read: "):
        seen(build(file, splits={}).dataset("train"))
    pipe = build(written(tmp_path), splits={})
    written(tmp_path, ROWS + 1)
    with pytest.raises(DataError, match="was changed while it was in use"):
        seen(at(pipe))


def listing(file: Path, **more: Any) -> Listing:
    return Parquet(**(source(file)["parquet"] | more)).list(file.parent)


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    one = fingerprint(listing(written(tmp_path)))
    assert fingerprint(listing(written(tmp_path))) == one
    assert fingerprint(listing(written(tmp_path, damaged=(5,)))) != one
    held = listing(written(tmp_path)).reader()
    assert held.digest(whole=True) != held.digest()
    np.testing.assert_array_equal(held.starts, [*range(0, ROWS, GROUP), ROWS])


def test_some_rows_alone_keep_their_ids_and_pictures(file: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("number,weight\n" + "".join(f"{row},{row / 2}\n" for row in range(ROWS)))
    whole, some = listing(file), listing(file, where="number >= 30 and breed != 'owl'")
    assert some.keys == [str(row) for row in range(30, ROWS) if row % 3 != 2]
    assert some.location.paths[0] == f"{file}#30"
    assert some.reader().take("image", np.array([int(key) for key in some.keys[:2]])).tolist() == [picture(30), picture(31)]
    joined = listing(file, join={"table": {"csv": {"path": str(tmp_path / "more.csv")}}, "on": "number"})
    assert joined.keys == whole.keys
    features: dict[str, Any] = {"image": {"kind": "image"}, "weight": {"kind": "tensor"}}
    second: Any = {"table": {"parquet": {"path": str(file)}}, "on": "number"}
    turned = Csv(path=str(tmp_path / "more.csv"), features=features, join=second)
    with pytest.raises(OpError, match="are in the joined table") as error:
        turned.list(tmp_path)
    assert error.value.code == "PG446"


def test_what_is_wrong(tmp_path: Path) -> None:
    file = written(tmp_path)
    features: dict[str, Any] = {"image": {"kind": "image"}, "mask": {"kind": "mask", "column": "breed"}}
    with pytest.raises(OpError) as error:
        Parquet(path=str(file), features=features).list(tmp_path)
    assert error.value.code == "PG446"
    with pytest.raises(SpecError, match="no column 'plan'"):
        build(file, "plan")


@pytest.mark.nightly
def test_a_row_without_a_picture_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    cells = {"image": [picture(0), None], "breed": ["cat", "dog"], "number": [0, 1]}
    pq.write_table(pa.table(cells), file)
    with pytest.raises(DataError, match=rf"cannot read {file}#1: .*the cell is empty"):
        seen(build(file, splits={}).dataset("train"))
