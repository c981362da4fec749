"""Damaged and hostile `.npy` and `.npz` files: a finding each, never another error, and nothing large is unpacked."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipegen.data.collect import collect
from pipegen.errors import OpError
from pipegen.ops.sources.arrays import Arrays
from pipegen.ops.sources.listing.base import Listing
from pipegen.spec.load import load

IMAGES = np.arange(6 * 4 * 5 * 3, dtype=np.uint8).reshape(6, 4, 5, 3)
LABELS: np.ndarray[Any, Any] = np.arange(6) % 3
FEATURES: dict[str, Any] = {
    "image": {"kind": "image"},
    "label": {"kind": "label"},
    "t": {"kind": "tensor"},
    "m": {"kind": "mask", "of": "image"},
}
GIVEN: dict[str, Any] = {"image": IMAGES, "label": LABELS, "t": np.ones((6, 2)), "m": np.zeros((6, 4, 5), np.uint8)}


def npz(compressed: bool = True, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **{**GIVEN, **arrays})
    return stream.getvalue()


def npy(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), **options)
    return stream.getvalue()


def header(text: str, data: bytes = b"") -> bytes:
    """An array whose header is any text."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text.encode() + b"\n" + data


def listed(folder: Path, content: bytes, kind: str = "npz") -> Listing | OpError:
    """What a source says of a file: its listing, or the one error that a finding is made of."""
    file = folder / f"x.{kind}"
    file.write_bytes(content)
    if kind == "npz":
        source = Arrays.model_validate({"path": file.name, "features": FEATURES})
    else:
        source = Arrays.model_validate({"features": {"image": {"kind": "image", "path": file.name}}})
    try:
        source.unpacked(folder)
        return source.list(folder)
    except OpError as error:
        return error


def damages() -> st.SearchStrategy[Any]:
    """A function that cuts, changes, repeats or takes out bytes."""
    place = st.floats(0, 1)

    def mutate(edits: list[tuple[float, str, bytes]], content: bytes) -> bytes:
        for where, how, new in edits:
            at = int(where * len(content))
            rest = {"cut": b"", "set": content[at + len(new) :], "insert": content[at:], "delete": content[at + 7 :]}[how]
            content = content[:at] + (new if how in ("set", "insert") else b"") + rest
        return content

    edit = st.tuples(place, st.sampled_from(["cut", "set", "insert", "delete"]), st.binary(min_size=1, max_size=6))
    return st.lists(edit, min_size=1, max_size=4).map(lambda edits: lambda content: mutate(edits, content))


WHOLE = (npz(), npz(compressed=False), npz(image=IMAGES / 255, label=np.array(list("abcabc"))))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages(), whole=st.sampled_from(WHOLE))
def test_a_damaged_archive_is_read_or_refused(tmp_path: Path, damage: Any, whole: bytes) -> None:
    assert isinstance(listed(tmp_path, damage(whole)), (Listing, OpError))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages(), array=st.sampled_from([IMAGES, IMAGES / 255, np.asfortranarray(IMAGES), IMAGES.astype(">u2")]))
def test_a_damaged_array_is_read_or_refused(tmp_path: Path, damage: Any, array: Any) -> None:
    assert isinstance(listed(tmp_path, damage(npy(array)), "npy"), (Listing, OpError))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from("{}()[]'\",: 0123456789-L<>|OVfui_descrfortran_orderTrueshape\\\n"), max_size=60))
def test_any_header_is_read_or_refused(tmp_path: Path, text: str) -> None:
    assert isinstance(listed(tmp_path, header(text), "npy"), (Listing, OpError))


_PLAIN = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }"
STRANGE: dict[str, bytes] = {
    "empty": b"",
    "magic alone": b"\x93NUMPY",
    "unknown version": b"\x93NUMPY\x09\x00" + npy(IMAGES)[8:],
    "negative side": header(_PLAIN % "(-1, 4, 5, 3)", bytes(60)),
    "huge": header(_PLAIN % "(9999999999, 9999999999, 9999999999, 3)"),
    "more than there is": header(_PLAIN % "(99, 4, 5, 3)", bytes(60)),
    "no array": header(_PLAIN % "()", b"\0"),
    "no rows": header(_PLAIN % "(0, 4, 5, 3)"),
    "no tuple": header(_PLAIN % "7", bytes(60)),
    "deep header": header("(" * 5000),
    "open bracket": header("{'descr': '|u1', 'fortran_order': False, 'shape': (4, "),
    "strange dtype": header("{'descr': 'zz', 'fortran_order': False, 'shape': (6, 4, 5, 3), }"),
    "objects": npy(np.array([{}, 1], object), allow_pickle=True),
    "structured": npy(np.zeros((6, 4, 5, 3), [("a", "u1"), ("b", "f4")])),
    "dates": npy(np.zeros((6, 4, 5, 3), "M8[s]")),
    "void": npy(np.zeros((6, 4, 5, 3), "V3")),
    "text": npy(np.full((6, 4, 5, 3), "a")),
    "bytes": npy(np.full((6, 4, 5, 3), b"a")),
    "complex": npy(IMAGES.astype(complex)),
    "long doubles": npy(IMAGES.astype(np.longdouble)),
    "int64": npy(IMAGES.astype(int)),
    "no numbers": npy(np.full(IMAGES.shape, np.nan)),
    "infinite": npy(np.full(IMAGES.shape, np.inf)),
    "an archive": npz(),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_arrays_are_findings(tmp_path: Path, name: str) -> None:
    alone = listed(tmp_path, STRANGE[name], "npy")
    errors = [alone] if isinstance(alone, OpError) else [note for note in alone.notes if note.severity == "error"]
    assert errors
    assert all(error.code in ("PG402", "PG406", "PG204", "PG418", "PG419") for error in errors)
    for feature in FEATURES:
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w", method) as archive:
                for other, array in GIVEN.items():
                    archive.writestr(f"{other}.npy", STRANGE[name] if other == feature else npy(array))
            assert isinstance(listed(tmp_path, stream.getvalue()), (Listing, OpError))


@pytest.mark.parametrize("array", [IMAGES, np.asfortranarray(IMAGES), IMAGES.astype(">u2"), IMAGES.astype("<f8") / 255])
@pytest.mark.parametrize("how", ["npy", "packed", "plain"])
def test_good_files_of_any_layout_are_read(tmp_path: Path, array: Any, how: str) -> None:
    found = listed(tmp_path, npy(array), "npy") if how == "npy" else listed(tmp_path, npz(how == "packed", image=array))
    assert isinstance(found, Listing)
    np.testing.assert_allclose(vars(found.reader())["arrays"]["image"], array, rtol=1e-6)


@cache
def bomb(claimed: int | None = None) -> bytes:
    """64 MiB of zeros in 64 KiB; with `claimed`, its table of contents says another size."""
    if claimed is None:
        return npz(image=np.zeros((2**20, 4, 4, 4), np.uint8), label=np.zeros(2**20, np.int8))
    content = bomb()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = archive.getinfo("image.npy").file_size
    assert content.count(struct.pack("<I", size)) >= 1
    return content.replace(struct.pack("<I", size), struct.pack("<I", claimed))


def test_what_unpacks_to_more_than_the_budget_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.npz").write_bytes(bomb())
    arrays = {"path": str(tmp_path / "x.npz"), "features": {name: FEATURES[name] for name in ("image", "label")}}
    for source, field in (({"arrays": arrays}, "path"), ({"by_split": {"train": {"arrays": arrays}}}, "")):
        spec = load({"pipegen": 1, "source": source, "runtime": {"ram_budget": "32MiB"}}, env={}).spec
        assert spec is not None
        with monkeypatch.context() as patch:
            patch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
            (finding,) = collect(spec, base=tmp_path).diagnostics.items
        assert finding.code == "PG410"
        assert "65.0 MiB" in finding.message
        assert field in finding.labels[0].path
    fits = load({"pipegen": 1, "source": {"arrays": arrays}, "runtime": {"ram_budget": "1GiB"}}, env={}).spec
    assert fits is not None
    assert collect(fits, base=tmp_path).manifest is not None


def test_an_archive_that_lies_about_sizes_is_not_unpacked_further(tmp_path: Path) -> None:
    content = bomb(claimed=2000)
    tracemalloc.start()
    found = listed(tmp_path, content)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(found, OpError)
    assert found.code == "PG406"
    assert most < 4 << 20
