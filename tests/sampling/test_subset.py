"""Subsets of the training split: which examples they have, of files and of records in shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.made_up import registered
from pipegen.data.collect import collect
from pipegen.phases.compilation import load

SPEC: dict[str, Any] = {"pipegen": 1, "splits": {"parts": {"train": 0.8, "validation": 0.2}}, "transforms": [{"resize": {"size": 8}}]}
SPEC["batch"] = {"size": 4, "remainder": "keep"}


def manifest(source: dict[str, Any], subset: dict[str, Any] | None, **own: Any) -> Any:
    sampling = {} if subset is None else {"sampling": {"subset": subset}}
    found = collect(load(SPEC | {"source": source} | sampling | own).model)
    assert found.manifest is not None, [str(d) for d in found.diagnostics]
    return found.manifest, [d.code for d in found.diagnostics]


@pytest.fixture(params=["files", "shards"])
def source(request: pytest.FixtureRequest, photo_folder: Any) -> Any:
    with registered():
        yield {"image_folder": {"path": str(photo_folder)}} if request.param == "files" else {"made_up": {"files": 5, "each": 9}}


def own(source: dict[str, Any]) -> dict[str, Any]:
    return {} if "image_folder" in source else {"splits": SPEC["splits"] | {"method": "hash"}, "transforms": []}


def test_smaller_subsets_are_in_larger_ones_and_other_splits_stay(source: dict[str, Any]) -> None:
    whole, _ = manifest(source, None, **own(source))
    n = whole.num_examples("train")
    known = set(range(0))
    for wanted in (1, 7, n // 2, n):
        some, same = manifest(source, {"count": wanted}, **own(source))
        assert "PG411" not in same, "what the subset leaves out is not called unused"
        numbers = set(some.numbers("train").tolist())
        assert some.num_examples("train") == len(numbers) == wanted
        assert known <= numbers <= set(whole.numbers("train").tolist())
        assert some.numbers("validation").tolist() == whole.numbers("validation").tolist()
        assert some.spared == n - wanted
        assert sorted(some.ids("train").tolist()) == sorted(
            i for i, number in zip(whole.ids("train").tolist(), whole.numbers("train").tolist(), strict=True) if number in numbers
        )
        known = numbers
    other, _ = manifest(source, {"count": n // 2, "seed": 1}, **own(source))
    assert set(other.numbers("train").tolist()) != set(manifest(source, {"count": n // 2}, **own(source))[0].numbers("train").tolist())


def test_a_stratified_subset_keeps_the_shares_of_classes(photo_folder: Any) -> None:
    source = {"image_folder": {"path": str(photo_folder)}}
    whole, _ = manifest(source, None)
    some, _ = manifest(source, {"fraction": 0.5, "stratify": "label"})
    counts = np.bincount(whole.labels("train"))
    assert np.abs(np.bincount(some.labels("train")) - counts / 2).max() < 1


@pytest.mark.parametrize(("subset", "code"), [({"count": 1000}, "PG409"), ({"fraction": 0.001}, "PG404")])
def test_a_subset_that_there_is_not(subset: dict[str, Any], code: str, photo_folder: Any) -> None:
    spec = load(SPEC | {"source": {"image_folder": {"path": str(photo_folder)}}, "sampling": {"subset": subset}})
    found = collect(spec.model, locate=spec.loaded.locate.label)
    assert found.manifest is None
    assert [(d.code, d.labels[0].path) for d in found.diagnostics] == [(code, f"sampling.subset.{next(iter(subset))}")]


def test_a_subset_by_columns_leaves_other_splits_alone(tmp_path: Any, photo_folder: Any) -> None:
    files = sorted(photo_folder.rglob("*.jpg"))
    lines = [f"{file},{file.parent.name},{2000 + i % 20}" for i, file in enumerate(files)]
    (tmp_path / "photos.csv").write_text("\n".join(["file,label,year", *lines]) + "\n")
    features = {"image": {"kind": "image", "column": "file", "root": "/"}, "label": {"kind": "label"}}
    source = {"csv": {"path": str(tmp_path / "photos.csv"), "features": features}}
    whole, _ = manifest(source, None)
    some, codes = manifest(source, {"where": "year >= 2010 and label != 'rose'"})
    rose = some.class_names.index("rose")
    assert "PG411" not in codes
    assert [n for n in whole.numbers("train") if n % 20 >= 10 and whole.listing.labels[n] != rose] == some.numbers("train").tolist()
    assert some.numbers("validation").tolist() == whole.numbers("validation").tolist()
    fewer, _ = manifest(source, {"where": "year >= 2010 and label != 'rose'", "count": 4})
    assert set(fewer.numbers("train").tolist()) < set(some.numbers("train").tolist())
    for where, code in (("year > 3000", "PG404"), ("yaer > 2000", "PG421"), ("label > 3", "PG452")):
        spec = load(SPEC | {"source": source, "sampling": {"subset": {"where": where}}})
        found = [d for d in collect(spec.model, locate=spec.loaded.locate.label).diagnostics if d.code == code]
        assert found[0].labels[0].path == "sampling.subset.where"
