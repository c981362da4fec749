"""Lengths of examples, known before any is read: from headers, which are read once, or from a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.data.collect import collect
from pipegen.data.lengths import lengths_of
from pipegen.errors import SpecError
from pipegen.ops.families.decoder import NumbersDecoder
from pipegen.spec.lengths import longest_that_fits, room
from pipegen.spec.load import load

DECODER = NumbersDecoder(format="npy", shape=(None, 2))


def spec(folder: Path, batch: Any, *, features: Any = {}, **own: Any) -> Any:  # noqa: B006
    sound = {"kind": "array", "column": "file", "format": "npy", "shape": [None, 2]}
    source = {"csv": {"path": str(folder / "t.csv"), "features": {"sound": sound, **features}}}
    loaded = load({"pipegen": 1, "source": source, "batch": {"size": 1, **batch}, "output": {"x": "sound", "y": None}, **own}, env={})
    assert loaded.spec is not None, [d.message for d in loaded.diagnostics.items]
    return loaded.spec


def write(folder: Path, lengths: list[int], told: list[Any] | None = None) -> None:
    for i, length in enumerate(lengths):
        np.save(folder / f"{i}.npy", np.zeros((length, 2), np.float32))
    lines = [f"{i}.npy,{n}" for i, n in enumerate(told or lengths)]
    (folder / "t.csv").write_text("\n".join(["file,frames", *lines]))


def test_lengths_are_read_from_headers_alone_and_only_where_they_are_needed(tmp_path: Path) -> None:
    write(tmp_path, [3, 0, 5])
    for i in range(3):  # no values follow the header
        path = tmp_path / f"{i}.npy"
        path.write_bytes(path.read_bytes()[:128])
    found = collect(spec(tmp_path, {"pad": {}}))
    assert found.manifest is not None
    assert found.manifest.lengths["sound"].tolist() == [3, 0, 5]
    assert found.manifest.listing.type is not None
    assert found.manifest.listing.type["sound"].longest == 5
    assert "PG481" in {d.code for d in found.diagnostics}
    for batch in ({"pad": {"to": 5}}, {"pad": {"to": 5, "longer": "cut"}}):
        other = collect(spec(tmp_path, batch)).manifest
        assert other is not None
        assert not other.lengths


def test_a_damaged_header_has_no_length_and_is_reported_when_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, [3, 4])
    (tmp_path / "0.npy").write_bytes(b"\x93NUMPY no array")
    found = collect(spec(tmp_path, {"pad": {}}))
    assert found.manifest is not None
    assert found.manifest.lengths["sound"].tolist() == [-1, 4]
    assert lengths_of(DECODER, [str(tmp_path / f"{i}.npy") for i in range(2)]).tolist() == [-1, 4]
    with pytest.raises(SpecError, match="does not tell its length"):
        lengths_of(NumbersDecoder(format="flo", shape=(None, None, 2)), [str(tmp_path / "1.npy")])


@pytest.mark.parametrize("wrong", [-1, 2.5, "nan"])
def test_a_column_of_lengths_holds_whole_numbers(tmp_path: Path, wrong: Any) -> None:
    write(tmp_path, [3, 4], [3, wrong])
    frames = {"frames": {"kind": "tensor", "column": "frames"}}
    found = collect(spec(tmp_path, {"pad": {"measured": {"column": "frames"}}}, features=frames))
    assert found.manifest is None
    assert {d.code for d in found.diagnostics} <= {"PG265", "PG423"}


def test_examples_that_are_left_out_are_counted(tmp_path: Path) -> None:
    write(tmp_path, [3, 9, 4, 8, 2])
    found = collect(spec(tmp_path, {"pad": {"to": 4, "longer": "drop"}}))
    assert found.manifest is not None
    assert found.manifest.members["train" if "train" in found.manifest.members else "predict"].tolist() == [0, 2, 4]
    assert (found.manifest.too_long, found.manifest.unused) == (2, 0)
    (told,) = (d for d in found.diagnostics if d.code == "PG482")
    assert "2 examples of 5" in told.message
    assert "'1.npy' with 9" in told.message


@given(st.lists(st.integers(0, 60), min_size=1, max_size=20, unique=True), st.integers(1, 60))
def test_what_fits_is_found_by_bisection(lengths: list[int], most: int) -> None:
    made = spec(Path("nowhere"), {"pad": {"to": most}})
    x = made.source.infer()["sound"]
    rising = sorted(lengths)
    assert longest_that_fits(made, "predict", "sound", x, rising, most) == sum(length <= most for length in rising)
    padding = made.batch.pad.model_copy(update={"to": "longest"})
    record = made.source.infer().replace(sound=x.with_(longest=rising[-1]))
    assert room(made, record, "sound", padding) == max(1, rising[-1])
    assert room(made, made.source.infer(), "sound", padding) is None
