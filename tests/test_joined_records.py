"""A table that is joined to records of every source: its columns are features, and choose records, as when it is joined to a table."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from pipes import batches
from typing import Any

import numpy as np
import pytest
import record_files as files
from test_columns_of_records import COUNT, WHOLE, WRITERS, Record, chosen, collected, records, spec_of, write_parquet

import pipegen
from pipegen.errors import SpecError
from pipegen.spec.load import load

BREEDS = ("owl", "cat", "dog")
FEATURES: dict[str, Any] = {
    "label": {"kind": "label", "column": "breed"},
    "weight": {"kind": "tensor", "column": "kg"},
    "both": {"kind": "tensor", "columns": ["kg", "cm"]},
    "tags": {"kind": "label", "column": "tags", "separator": " "},
    "boxes": {"kind": "boxes", "column": "boxes", "format": "xywh"},
    "names": {"kind": "label", "with": "boxes", "column": "names"},
}
"""Features in the joined table."""


def row(i: int) -> Record:
    boxes = [[k, 1, 2 + i % 3, 3] for k in range(i % 4)]
    names = [BREEDS[(i + k) % 3] for k in range(i % 4)]
    tags = "" if i == 5 else " ".join(sorted({"abc"[i % 3], "abc"[i % 2]}))
    about = {"team": f"t{i % 4}", "boxes": json.dumps(boxes), "names": json.dumps(names)}
    return {"n": i, "breed": BREEDS[i % 3], "kg": 1 + i / 4, "cm": 10 * i, "tags": tags, **about}


def write_table(path: Path, rows: list[Record]) -> dict[str, Any]:
    with open(path / "about.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return {"table": {"csv": {"path": str(path / "about.csv")}}, "on": {"number": "n"}}


def joined(op: str, path: Path, join: dict[str, Any], **own: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records of a source with a joined table, and a table of the same records with the same table."""
    held = records(gaps=op not in WHOLE)
    source, table = WRITERS[op](path, held), write_parquet(path, held)
    features = {"image": source["features"]["image"], **FEATURES}
    given = {**table, "features": {"image": table["features"]["image"], **FEATURES}}
    return {op: {**source, "features": features, "join": join, **own}}, {"parquet": {**given, "join": join, **own}}


USES: dict[str, dict[str, Any]] = {
    "where": {"source.where": "kg < 3.5 and team != 't1' and patient != 7"},
    "group": {"splits": {"parts": {"train": 0.6, "validation": 0.4}, "method": "hash", "group": "team", "seed": 3}},
    "strata": {"splits": {"parts": {"train": 0.6, "validation": 0.4}, "method": "random", "stratify": "label", "group": "patient"}},
    "values": {"splits": {"parts": {"train": {"team": ["t0", "t1"]}, "validation": {"team": ["t2"]}}}},
    "sampling": {"sampling": {"subset": {"where": "cm > 30 and number != 9"}}},
    "drop": {"rows": 9},
    "ignore": {"ignore": True, "splits": {"parts": {"train": 0.6, "validation": 0.4}, "method": "hash", "group": "team", "seed": 3}},
}


@pytest.mark.by_day(15)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("op", WRITERS)
def test_records_are_chosen_as_in_a_table(op: str, use: str, tmp_path: Path) -> None:
    said = dict(USES[use])
    rows, where = said.pop("rows", COUNT), said.pop("source.where", None)
    join = write_table(tmp_path, [row(i) for i in reversed(range(rows))])
    own = {**({"where": where} if where else {}), "join": {**join, "missing": "drop" if rows < COUNT else "error"}}
    pair = [spec_of(source, **said) for source in joined(op, tmp_path, **own)]
    if said.pop("ignore", False):
        for spec in pair:
            del spec["ignore"]
            (source,) = spec["source"].values()
            label = {**FEATURES["label"], "map": {"owl": "bird"}, "ignore": ["cat"]}
            source["features"] = {**source["features"], "label": label, "tags": {**FEATURES["tags"], "ignore": ["c"]}}
    found, due = (collected(spec).manifest for spec in pair)
    assert found is not None
    assert due is not None
    assert chosen(pair[0]) == chosen(pair[1])
    assert found.class_names == due.class_names == (("bird", "dog") if use == "ignore" else tuple(sorted(BREEDS)))
    for split in found.splits:
        assert found.labels(split).tolist() == due.labels(split).tolist()
    assert sum(map(len, chosen(pair[0]).values())) == (rows if use == "drop" else sum(map(len, chosen(pair[1]).values())))


def values(spec: dict[str, Any]) -> dict[bytes, list[Any]]:
    """What each image has with it, in all splits."""
    import tensorflow as tf

    pipe = pipegen.build(spec)
    flat = [[np.asarray(part) for part in tf.nest.flatten(batch)] for split in pipe.splits for batch in batches(pipe.dataset(split))]
    return {parts[0][i].tobytes(): [part[i].tolist() for part in parts[1:]] for parts in flat for i in range(len(parts[0]))}


OUTPUT = {"x": "image", "y": ["label", "weight", "both", "tags", "boxes", "names", "boxes_valid"]}


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("cache", ["none", "memory", "disk"])
@pytest.mark.parametrize("op", [op for op in WRITERS if op != "zarr"])
def test_batches_are_those_of_a_table(op: str, cache: str, tmp_path: Path) -> None:
    join = {**write_table(tmp_path, [row(i) for i in reversed(range(COUNT - 2))]), "missing": "drop"}
    own = {
        "runtime": {"jit": "never", "cache": {"disk": str(tmp_path / "kept")} if cache == "disk" else cache},
        "shuffle": "none",
        "splits": {"parts": {"train": 0.6, "validation": 0.4}, "stratify": "label"},
        "batch": {"size": 3, "remainder": "keep"},
        "output": OUTPUT,
    }
    of_records, of_table = (values(spec_of(source, **own)) for source in joined(op, tmp_path, join, where="team != 't3'"))
    assert of_records == of_table
    assert len(of_records) == len([i for i in range(COUNT - 2) if i % 4 != 3])


@pytest.mark.tf
@pytest.mark.parametrize("op", ["webdataset", "zip"])
def test_records_of_archives_have_names(op: str, tmp_path: Path) -> None:
    """Labels by the name of a file, as in most competitions."""
    path = tmp_path / ("a.tar" if op == "webdataset" else "a.zip")
    held = [{"x.jpg": files.png(i, 7 * i, 90)} for i in range(COUNT)]
    (files.write_tar if op == "webdataset" else files.write_zip)(path, held, folder="deep.er/")
    rows = ["id,breed", *(f"deep.er/{i:04},{BREEDS[i % 3]}" for i in range(COUNT - 1, -1, -1))]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    features = {"image": {"kind": "image", "key": "x.jpg"}, "label": {"kind": "label", "column": "breed"}}
    join = {"table": {"csv": {"path": str(tmp_path / "labels.csv")}}, "on": {"__key__": "id"}}
    source = {op: {"path": str(path), "features": features, "join": join, "where": "__key__ != 'deep.er/0004'"}}
    found = values(spec_of(source, shuffle="none", output={"x": "image", "y": "label"}, runtime={"jit": "never"}))
    colours = {tuple(np.frombuffer(image, np.float32)[:3].round().astype(int).tolist()): label for image, (label,) in found.items()}
    assert colours == {(i, 7 * i, 90): sorted(BREEDS).index(BREEDS[i % 3]) for i in range(COUNT) if i != 4}


@pytest.mark.nightly
@pytest.mark.tf
def test_parts_with_other_classes(tmp_path: Path) -> None:
    """A mix unites the classes of joined labels; `by_split` wants the same."""
    parts: dict[str, Any] = {}
    for name, breeds in (("one", ("cat", "owl")), ("two", ("dog", "owl"))):
        (tmp_path / name).mkdir()
        files.write_tfrecord(tmp_path / name / "a.tfrecord", [{"image": files.png(i, i, 9), "id": i} for i in range(4)])
        (tmp_path / name / "t.csv").write_text("\n".join(["id,breed", *(f"{i},{breeds[i % 2]}" for i in range(4))]))
        join = {"table": {"csv": {"path": str(tmp_path / name / "t.csv")}}, "on": "id"}
        features = {"image": {"kind": "image"}, "label": {"kind": "label", "column": "breed"}}
        parts[name] = {"tfrecord": {"path": str(tmp_path / name / "a.tfrecord"), "features": features, "join": join}}
    mix = {"mix": {"epoch": 8, "parts": {name: {"source": source} for name, source in parts.items()}}}
    pipe = pipegen.build(spec_of(mix), runtime={"jit": "never"})
    assert pipe.class_names == ("cat", "owl", "dog")
    labels = [int(label) for batch in batches(pipe.train) for label in batch[1]]
    assert sorted(labels) == [0, 0, 1, 1, 1, 1, 2, 2]
    found = collected(spec_of({"by_split": {"train": parts["one"], "validation": parts["two"]}}))
    assert [d.code for d in found.diagnostics.items if d.severity == "error"] == ["PG408"]


def test_the_table_is_part_of_the_data(tmp_path: Path) -> None:
    found = []
    for cm in (10, 11):
        join = write_table(tmp_path, [{**row(i), "cm": cm * i} for i in range(COUNT)])
        manifest = collected(spec_of(joined("tfrecord", tmp_path, join)[0])).manifest
        assert manifest is not None
        found.append(manifest.fingerprint)
    assert found[0] != found[1]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no table": ({"join": None}, "label` has a `column`, which needs a joined table"),
    "no such column": ({"label": {"kind": "label", "column": "bread"}}, "about.csv' has no column 'bread'"),
    "a key beside a column": ({"label": {"kind": "label", "column": "breed", "key": "x"}}, "key` is in the records, and `column` in"),
    "an image": ({"other": {"kind": "image", "column": "breed"}}, "images cannot be in the joined table"),
    "items in two places": ({"score": {"kind": "tensor", "with": "boxes"}}, "score` is `with: boxes`, but `score` in the records and"),
    "nothing in the records": ({"image": {"kind": "label", "column": "breed"}}, "all features are in columns"),
    "a key that no record has": ({"on": {"nummer": "n"}}, "no record of .* has the key 'nummer'"),
    "a key without a row": ({"rows": [row(i) for i in range(1, COUNT)]}, r"no row of .* has the key '0' of .*a-0.tfrecord#0"),
    "a key with two rows": ({"rows": [row(i) for i in (*range(COUNT), 0)]}, r"the key '0' of .*a-0.tfrecord#0 is in several rows"),
    "a name in both": ({"rows": [{**row(i), "age": i} for i in range(COUNT)], "where": "age > 3"}, "both the records and .* have 'age'"),
    "not a number": ({"rows": [{**row(i), "kg": "x" * (i == 9)} for i in range(COUNT)]}, r"about.csv:2 has an empty cell"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case: str, tmp_path: Path) -> None:
    said, message = dict(WRONG[case][0]), WRONG[case][1]
    join = {**write_table(tmp_path, said.pop("rows", [row(i) for i in range(COUNT)])), **({"on": said.pop("on")} if "on" in said else {})}
    (source, _) = joined("tfrecord", tmp_path, join, **({"where": said.pop("where")} if "where" in said else {}))
    own = source["tfrecord"]
    if "join" in said:
        del said["join"], own["join"]
    if case == "nothing in the records":
        own["features"] = {name: feature for name, feature in own["features"].items() if name != "image"}
    else:
        own["features"] |= said
    loaded = load(spec_of(source))
    items = loaded.diagnostics.items if loaded.spec is None else collected(spec_of(source)).diagnostics.items
    errors = [d.message for d in items if d.severity == "error"]
    assert errors
    assert re.search(message, errors[0]), errors


SIZES = {"sizes": [[16, 16], [16, 24]]}


@pytest.mark.tf
def test_buckets_of_records_go_by_columns_of_the_joined_table(tmp_path: Path) -> None:
    """Without them the sizes are known only after a record is read, which is a finding."""
    sides = [(16, 16) if i % 2 else (16, 24) for i in range(8)]
    images = [files.png(10 * i, 0, 0, size=side[::-1]) for i, side in enumerate(sides)]
    files.write_tfrecord(tmp_path / "a.tfrecord", [{"image": image, "id": i} for i, image in enumerate(images)])
    (tmp_path / "t.csv").write_text("\n".join(["id,high,wide", *(f"{i},{h},{w}" for i, (h, w) in enumerate(sides))]))
    features = {name: {"kind": "tensor", "column": name} for name in ("high", "wide")}
    features |= {"image": {"kind": "image"}, "id": {"kind": "tensor", "dtype": "int64"}}
    join = {"table": {"csv": {"path": str(tmp_path / "t.csv")}}, "on": "id"}
    source = {"tfrecord": {"path": str(tmp_path / "a.tfrecord"), "features": features, "join": join}}
    rest = {"splits": {"parts": {"train": 4, "validation": 4}, "method": "random"}, "transforms": [{"resize": {"size": "bucket"}}]}
    spec = {"pipegen": 1, "source": source, **rest, "output": {"x": "image", "y": "id"}}
    batch = {"size": 2, "remainder": "keep", "buckets": {**SIZES, "measured": {"columns": ["high", "wide"]}}}
    pipe = pipegen.build({**spec, "batch": batch})
    seen = []
    for split in ("train", "validation"):
        for x, y in pipe[split]:
            for image, number in zip(x.numpy(), y.numpy().tolist(), strict=True):
                assert image.shape[:2] == sides[number]
                assert image[0, 0, 0] == 10 * number
                seen.append(number)
    assert sorted(seen) == [*range(8)]
    with pytest.raises(SpecError, match=r"PG262.*buckets need the sizes of images"):
        pipegen.build({**spec, "batch": {**batch, "buckets": SIZES}})
