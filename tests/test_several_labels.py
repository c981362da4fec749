"""Labels with any number of classes: the same from every source, as lists and as text, with classes renamed and ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import record_files as files

from pipegen.errors import OpError
from pipegen.ops.registry import sources

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.base import Listing

TAGS = ["a b", "c", "", "b;c", "d a", "c", "x", "b b"]
FEATURE: dict[str, Any] = {"kind": "label", "separator": " "}
CHOSEN: dict[str, dict[str, Any]] = {
    "as stored": {},
    "renamed": {"map": {"b": "bee", "d": "a"}},
    "ignored": {"ignore": ["x", "c"]},
    "both, listed": {"map": {"d": "c", "b;c": "a"}, "ignore": ["x"], "classes": ["c", "b", "a"]},
}


def rows(form: str) -> list[dict[str, Any]]:
    """Texts, or lists of texts."""
    return [{"image": files.png(i, 7 * i, 90), "tags": tags if form == "text" else tags.split()} for i, tags in enumerate(TAGS)]


def written(form: str, path: Path, feature: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The same records in files of records."""
    features, held = {"image": {"kind": "image"}, "tags": feature}, rows(form)
    files.write_tfrecord(path / "a.tfrecord", held)
    files.write_sqlite(path / "a.sqlite", [{**r, "tags": r["tags"] if form == "text" else json.dumps(r["tags"])} for r in held])
    found = {op: {"path": str(path / f"a.{op}"), "features": features} for op in ("tfrecord", "sqlite")}
    found["sqlite"]["table"] = "examples"
    if form == "text":
        files.write_tar(path / "a.tar", held)
        found["webdataset"] = {"path": str(path / "a.tar"), "features": features}
    return found


def labels(listing: Listing) -> tuple[tuple[str, ...], list[list[int]]]:
    """The classes, and which of them each record has."""
    values = np.asarray(listing.columns["tags"])
    kept = slice(None) if listing.shards is None or listing.shards.kept is None else listing.shards.kept
    return listing.class_names or listing.classes["tags"], values[kept].tolist()


def listed(op: str, path: Path, arguments: dict[str, Any], data: Any = None) -> Listing:
    return sources()[op].model_validate(arguments).list(path, data=data)


@pytest.mark.parametrize("form", ["text", "list"])
@pytest.mark.parametrize("chosen", CHOSEN)
def test_all_sources_give_the_classes_of_a_table(chosen: str, form: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    feature = {**FEATURE, **CHOSEN[chosen]}
    features = {"image": {"kind": "image"}, "tags": feature}
    for i, row in enumerate(rows("text")):
        (tmp_path / f"{i}.png").write_bytes(row["image"])
    pandas.DataFrame({"image": [f"{i}.png" for i in range(len(TAGS))], "tags": TAGS}).to_csv(tmp_path / "a.csv", index=False)
    due = labels(listed("csv", tmp_path, {"path": "a.csv", "features": features}))
    assert len(due[1]) == {"ignored": 5, "both, listed": 7}.get(chosen, len(TAGS))
    for op, source in written(form, tmp_path, feature).items():
        assert labels(listed(op, tmp_path, source)) == due, op
    given = {"image": np.zeros((len(TAGS), 4, 4, 3), np.uint8), "tags": [row["tags"] for row in rows(form)]}
    assert labels(listed("arrays", tmp_path, {"features": features}, given)) == due


def test_a_class_that_is_not_listed_is_named(tmp_path: Path) -> None:
    for op, source in written("list", tmp_path, {**FEATURE, "classes": ["a", "b", "c", "d"]}).items():
        with pytest.raises(OpError, match=r"a\.\w+#3.* is 'b;c', which `classes` does not list") as caught:
            listed(op, tmp_path, source)
        assert caught.value.field == "features.tags.classes"


@pytest.mark.nightly
@pytest.mark.tf
def test_parts_of_a_mix_with_other_classes_get_those_of_both(tmp_path: Path) -> None:
    import pipegen

    parts = {"one": ["cat;dog", "dog", "cat"], "two": ["bird;dog", "bird", "dog"]}
    for name, tags in parts.items():
        (tmp_path / name).mkdir()
        for i in range(len(tags)):
            (tmp_path / name / f"{i}.png").write_bytes(files.png(i, 7 * i, 90))
        rows_of = "\n".join(f"{i}.png,{text}" for i, text in enumerate(tags))
        (tmp_path / f"{name}/t.csv").write_text(f"image,label\n{rows_of}\n")
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "separator": ";"}}
    made = {name: {"source": {"csv": {"path": f"{name}/t.csv", "features": features}}, "splits": {"parts": {"train": 3}}} for name in parts}
    spec = {"pipegen": 1, "source": {"mix": {"epoch": 6, "parts": made}}, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 6}}
    (tmp_path / "mix.pipegen.yaml").write_text(json.dumps(spec | {"output": {"x": "image", "y": "label"}}))
    pipe = pipegen.build(str(tmp_path / "mix.pipegen.yaml"))
    assert pipe.class_names == ("cat", "dog", "bird")
    ((_, found),) = pipe.dataset("train", epoch=0)
    assert sorted(found.numpy().tolist()) == [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0]]
