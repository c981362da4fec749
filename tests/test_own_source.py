"""A new source is a file of its own with its reader: here one that is defined in this test, which reads packed files by Python."""

from __future__ import annotations

import io
import json
from pathlib import Path
from pipes import at
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.errors import DataError, SpecError
from pipegen.ops.registry import sources
from pipegen.ops.sources.listing.base import Listing, Location, Shards, Source
from pipegen.ops.sources.listing.paths import find_root
from pipegen.ops.sources.listing.reader import Reader
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pipegen.ops.sources.listing.reader import Hold, Read

pytestmark = pytest.mark.tf

SIZE = 256
"""Bytes of a record: its class, then a picture, then zeros."""


class Packs(Source):
    """Files of records of one size."""

    op: ClassVar[str] = "packs"

    path: str
    classes: int = 4

    def infer(self) -> ElementType:
        label = FeatureType("label", "int64", (), classes=self.classes)
        return ElementType((("image", FeatureType("image", "string", ())), ("label", label)))

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        root = find_root(str(base), self.path)
        files = sorted(Path(root).glob("*.pack"))
        sizes = np.array([file.stat().st_size for file in files])
        shards = Shards(sizes // SIZE, np.arange(len(files)), ("",) * len(files))  # type: ignore[arg-type]
        names = tuple(f"class {i}" for i in range(self.classes))
        location = Location.below(root, [file.name for file in files], sizes)
        return Listing.labelled(root, location, None, names, shards=shards, readers={"": Packed(files)})


class Packed(Reader):
    """Reads them where they lie."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        import tensorflow as tf

        kind, take = (tf.int64, self.label) if feature == "label" else (tf.string, self.picture)

        def read(file: Any, row: Any) -> Any:
            return tf.ensure_shape(tf.numpy_function(take, [file, row], kind), file.shape)

        return read

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "records of packed files"

    def column(self, name: str, files: Any) -> Any:
        return (
            None
            if name != "label"
            else np.concatenate([np.frombuffer(self.files[i].read_bytes(), np.uint8)[::SIZE] for i in files]).astype(np.int32)
        )

    def record(self, file: Any, row: Any) -> bytes:
        with self.files[int(file)].open("rb") as stream:
            stream.seek(SIZE * int(row))
            return stream.read(SIZE)

    def label(self, file: Any, row: Any) -> Any:
        """One, or those of a whole batch."""
        return np.array([self.record(*place)[0] for place in np.stack([file, row], -1).reshape(-1, 2)], np.int64).reshape(np.shape(file))

    def picture(self, file: Any, row: Any) -> Any:
        return self.record(file, row)[1:]


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    """The one registration."""
    known: Any = sources()
    known[Packs.op] = Packs
    yield
    del known[Packs.op]


def packed(folder: Path, *counts: int, damaged: tuple[int, int] | None = None) -> str:
    """Writes a file of so many records for each count; a record's picture has one colour: its file, its row and its class."""
    folder.mkdir()
    for file, count in enumerate(counts):
        records = []
        for row in range(count):
            stream = io.BytesIO()
            Image.new("RGB", (2, 2), (file, row, (file + row) % 4)).save(stream, "PNG")
            picture = b"junk" if (file, row) == damaged else stream.getvalue()
            records.append((bytes([(file + row) % 4]) + picture).ljust(SIZE, b"\0"))
        (folder / f"{file}.pack").write_bytes(b"".join(records))
    return str(folder)


def build(source: dict[str, Any], **own: Any) -> pipegen.Pipeline:
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 2}}], "output": {"dtype": "uint8"}}
    return pipegen.build(spec | {"batch": {"size": 3, "remainder": "keep"}} | own, allow_write=["/"])


def seen(batches: Any) -> list[tuple[int, ...]]:
    """The file, the row and the class of each example."""
    found = []
    for x, y in batches:
        for (file, row, label), listed in zip(x.numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True):
            assert label == listed
            found.append((file, row, label))
    return found


@pytest.mark.nightly
def test_it_is_read_resumed_and_split(tmp_path: Path) -> None:
    parts = {"parts": {"train": 0.7, "validation": 0.3}, "stratify": "label"}
    pipe = build({"packs": {"path": packed(tmp_path / "a", 9, 5, 8)}}, splits=parts)
    whole, others = seen(at(pipe)), seen(pipe["validation"])
    assert sorted(whole + others) == [(f, r, (f + r) % 4) for f, n in enumerate((9, 5, 8)) for r in range(n)]
    assert seen(at(pipe, step=2)) == whole[6:]
    assert {label for *_, label in others} == {0, 1, 2, 3}
    text = pipe.explain(physical=True)
    assert "records of packed files" in text
    assert "portable" not in text


@pytest.mark.nightly
def test_each_split_has_its_own(tmp_path: Path) -> None:
    a, b = packed(tmp_path / "a", 4, 3), packed(tmp_path / "b", 2, 0, 5)
    source = {"by_split": {"train": {"packs": {"path": a}}, "validation": {"packs": {"path": b}}}}
    pipe = build(source)
    assert sorted(seen(at(pipe))) == [(f, r, (f + r) % 4) for f, n in enumerate((4, 3)) for r in range(n)]
    assert sorted(seen(pipe["validation"])) == [(f, r, (f + r) % 4) for f, n in enumerate((2, 0, 5)) for r in range(n)]
    assert pipe.files("validation")[6] == f"{b}/2.pack#4"
    assert pipe.labels("validation").tolist() == [0, 1, 2, 3, 0, 1, 2]  # type: ignore[union-attr]
    with pytest.raises(SpecError, match="`validation` and `train` have different classes"):
        build({"by_split": {"train": {"packs": {"path": a}}, "validation": {"packs": {"path": b, "classes": 5}}}})


@pytest.mark.nightly
def test_a_damaged_record_is_named_or_skipped(tmp_path: Path) -> None:
    folder = packed(tmp_path / "a", 5, 6, damaged=(1, 2))
    with pytest.raises(DataError, match=r"cannot decode \S+/1\.pack#2 \("):
        seen(build({"packs": {"path": folder}}).dataset("train"))
    report = tmp_path / "damaged.jsonl"
    pipe = build({"packs": {"path": folder}}, errors={"decode": {"skip": {"max_fraction": 0.2, "report": str(report)}}})
    found = seen(at(pipe))
    assert (len(found), len(set(found))) == (11, 10), "another one took its place"
    assert json.loads(report.read_text().splitlines()[1]) == {"file": f"{folder}/1.pack#2", "record": 7}
    gone = build({"packs": {"path": folder}}, shuffle="none")
    Path(folder, "0.pack").unlink()
    with pytest.raises(DataError, match=r"cannot read \S+/0\.pack#\d: "):
        seen(at(gone))
