"""Every kind of feature from every source that `features` describe, by every cache: the values are those of the same data as arrays."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from pipes import batches
from typing import Any, get_args

import numpy as np
import pytest
from field_writers import COUNT, FULL, KINDS, WRITERS, Features, as_arrays, records

import pipegen
from pipegen.errors import DataError
from pipegen.ops.kinds.base import kind_named, named_kinds
from pipegen.ops.registry import sources
from pipegen.ops.sources.tables.selecting import JoiningSource

pytestmark = pytest.mark.tf

WINDOWS = {"series"}
"""Sources of windows of rows; `tests/test_series.py` reads them in every form."""
STORED_BY_PREPARE = {"prepared"}
"""Sources of finished types: they are written by `pipegen prepare` alone."""
HELD_IN_FILES = {"array"}
"""Kinds that only files hold; `tests/ops/sources/test_file_formats.py` reads them from each."""
STEPS: list[Any] = [{"resize": {"size": [24, 24]}}, "flip", {"crop": {"size": [20, 20]}}]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a database answered is kept in the working directory."""
    monkeypatch.chdir(tmp_path)


def described() -> list[str]:
    """The sources that `features` describe, from the registry; those of others are in a joined table."""
    described = (op for op, source in sources().items() if "features" in source.model_fields and not issubclass(source, JoiningSource))
    return sorted(op for op in described if op not in STORED_BY_PREPARE | WINDOWS)


def held_by(op: str) -> list[str]:
    """The features of `KINDS` whose fields fit a source."""
    model = get_args(sources()[op].model_fields["features"].annotation)[1]
    named = get_args(model.model_fields["kind"].annotation)
    return [name for name, feature in KINDS.items() if feature["kind"] in named and ("with" not in feature or "with" in model.model_fields)]


PAIRS = [(op, name) for op in described() for name in held_by(op) if name != "image"]


def test_all_kinds_and_all_sources_are_tried() -> None:
    assert set(described()) == set(WRITERS)
    tried = {(kind_named(feature["kind"]).each if "with" in feature else "") or feature["kind"] for feature in KINDS.values()}
    own = {name for kind in named_kinds() for name in (kind.name, kind.each) if name}
    assert own - HELD_IN_FILES == tried
    for op in described():
        model = get_args(sources()[op].model_fields["features"].annotation)[1]
        assert set(get_args(model.model_fields["kind"].annotation)) <= {kind.name for kind in named_kinds()}


def chosen(name: str) -> Features:
    """A feature with what it needs: the image, what it is `with`, and what it is aligned with."""
    home = KINDS[name].get("with")
    return {one: KINDS[one] for one in ("image", home, KINDS[home or name].get("of"), name) if one is not None}


def spec_of(op: str, source: Any, name: str, **own: Any) -> dict[str, Any]:
    home = KINDS[name].get("with")
    valid = [f"{one}_valid" for one in ("boxes", "spots", "events", "frames") if one == (home or name)]
    output: dict[str, Any] = {"x": "image", "y": [*([home] if home else []), name, *valid]}
    if name == "weight":
        output = {"x": "image", "y": "image", "sample_weight": name}
    of_sound = [{"crop_or_pad": {"seconds": 0.01}}] if name in ("sound", "events", "frames", "call") else []
    steps = {"transforms": [*STEPS, *of_sound], "shuffle": "none", "batch": {"size": 4, "remainder": "keep"}, "output": output}
    return {"pipegen": 1, "source": {op: source}, **steps, **own}


@cache
def as_given(name: str, least: int) -> dict[bytes, tuple[Any, ...]]:
    """What arrays give of a feature, by the pixels of the image."""
    source, data = WRITERS["arrays"](Path(), records(least), chosen(name))
    pipe = pipegen.build(spec_of("arrays", source, name), data=data, runtime={"jit": "never"})
    return {row[0].tobytes(): row[1:] for batch in batches(pipe.train) for row in zip(*flat(batch), strict=True)}


def flat(batch: Any) -> list[Any]:
    import tensorflow as tf

    return [np.asarray(part) for part in tf.nest.flatten(batch)]


def compared(dataset: Any, due: dict[bytes, tuple[Any, ...]]) -> list[bytes]:
    """Compares each row with that of arrays; returns the rows in order."""
    seen = []
    for batch in batches(dataset):
        for image, *parts in zip(*flat(batch), strict=True):
            for part, other in zip(parts, due[image.tobytes()], strict=True):
                np.testing.assert_array_equal(part, other)
            seen.append(image.tobytes())
    return seen


@pytest.mark.nightly
@pytest.mark.parametrize("cache_", ["none", "memory", "disk"])
@pytest.mark.parametrize(("op", "name"), PAIRS)
def test_a_kind_from_a_source_is_that_of_arrays(op: str, name: str, cache_: str, tmp_path: Path) -> None:
    """Over two epochs of two splits, of which the second epoch is from the cache; the rest of an epoch, and two shares of it."""
    least = 2 if op in FULL else 0
    source, data = WRITERS[op](tmp_path, records(least), chosen(name))
    runtime = {"jit": "never", "cache": {"disk": str(tmp_path / "cache")} if cache_ == "disk" else cache_}
    parts = {"splits": {"parts": {"train": 8, "validation": 4}, "method": "random"}}
    pipe = pipegen.build(spec_of(op, source, name, **parts), data=data, runtime=runtime, allow_write=[str(tmp_path)])
    due = as_given(name, least)
    both = [[compared(pipe[split], due) for _ in range(2)] for split in ("train", "validation")]
    assert [*map(len, both[0]), *map(len, both[1])] == [8, 8, 4, 4]
    assert len({*both[0][0], *both[1][0]}) == COUNT
    pipe.seek(1, 1)
    assert compared(pipe.train, due) == both[0][1][4:]
    shares = [compared(pipe.dataset("train", epoch=1, shard=(number, 2)), due) for number in range(2)]
    assert sorted(shares[0] + shares[1]) == sorted(both[0][1])


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", ["mask", "numbers"])
@pytest.mark.parametrize("op", sorted(FULL))
def test_an_image_that_is_an_array_beside_a_mask_of_bytes(op: str, name: str, tmp_path: Path) -> None:
    """Only the mask is decoded."""
    source, _ = WRITERS[op](tmp_path, records(2), chosen(name))
    pixels = as_arrays(records(2), ["image"])["image"]
    if op == "hdf5":
        with pytest.importorskip("h5py").File(source["path"], "r+") as file:
            del file["image"]
            file["image"] = pixels
    else:
        pytest.importorskip("zarr").open_group(source["path"], mode="r+").create_array("image", data=pixels, overwrite=True)
    pipe = pipegen.build(spec_of(op, source, name), runtime={"jit": "never"})
    assert len(compared(pipe.dataset("train"), as_given(name, 2))) == COUNT


@pytest.mark.by_day(6)
@pytest.mark.parametrize("name", ["label", "vector", "boxes", "mask"])
@pytest.mark.parametrize("op", [op for op in described() if op not in ("arrays", "files")])
def test_a_field_that_is_not_there_is_named_beside_those_that_are(op: str, name: str, tmp_path: Path) -> None:
    if name == "mask" and op in ("csv", "excel", "sql", "dataframe", "jsonl"):
        pytest.skip("a column of paths")
    source, data = WRITERS[op](tmp_path, records(2), {"image": KINDS["image"]})
    address = "key" if "key" in get_args(sources()[op].model_fields["features"].annotation)[1].model_fields else "column"
    features = {**source["features"], "other": {**KINDS[name], address: "absent-*" if op == "lmdb" else "absent"}}
    output = {"x": "image", "y": "other"}
    with pytest.raises((pipegen.SpecError, DataError)) as caught:
        pipegen.build(spec_of(op, {**source, "features": features}, "label", output=output), data=data)
    said = str(caught.value)
    assert "absent" in said
    assert any(f"'{known}" in said or f"`{known}" in said for known in ("image", "label", "objects", "json", "about", "boxes"))
