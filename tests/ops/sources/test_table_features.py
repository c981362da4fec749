"""What the columns of a table say beside the files: numbers, weights, one label or several, and which split a row is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError

from pipegen.data.collect import collect
from pipegen.errors import OpError
from pipegen.ops.sources.arrays import Arrays
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.table_sources import Csv
from pipegen.spec.models import PipelineSpec

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Listing

TABLE = """age,height,tags,breed,side,w,part,owner
1,1.5,sun; sea,cat,l,1,tr,ann
2,-0.25,,dog,r,0,tr,bob
3,1e3,sky,cat,l,2.5,va,ann
4,0,sea;sky,dog,l,1,te,cid
"""


def listing(folder: Path, text: str = TABLE, **features: dict[str, Any]) -> Listing:
    (folder / "t.csv").write_text(text)
    return Csv(path="t.csv", features=features).list(folder)


def test_numbers_are_stacked_in_the_order_of_the_columns(tmp_path: Path) -> None:
    found = listing(tmp_path, body={"kind": "tensor", "columns": ["height", "age"]}, age={"kind": "tensor"}, w={"kind": "weight"})
    assert found.keys == ("0", "1", "2", "3")
    assert found.location.paths[2] == f"{tmp_path}/t.csv:4"
    np.testing.assert_array_equal(found.columns["body"], np.array([[1.5, 1], [-0.25, 2], [1000, 3], [0, 4]], np.float32))
    np.testing.assert_array_equal(found.columns["age"], np.array([1, 2, 3, 4], np.float32))
    np.testing.assert_array_equal(found.columns["w"], np.array([1, 0, 2.5, 1], np.float32))
    assert found.labels is None
    assert found.type is not None
    assert [str(t) for _, t in found.type.items()] == ["float32[2]", "float32", "float32"]


def test_several_labels_are_a_row_of_ones_and_zeros(tmp_path: Path) -> None:
    found = listing(tmp_path, tags={"kind": "label", "separator": ";"})
    assert found.class_names == ("sea", "sky", "sun")
    np.testing.assert_array_equal(found.columns["tags"], [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0]])
    given = listing(tmp_path, tags={"kind": "label", "separator": ";", "classes": ["sun", "sky", "sea", "fog"]})
    np.testing.assert_array_equal(given.columns["tags"], [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0]])
    numbers = listing(tmp_path, "n\n1;3\n2\n", n={"kind": "label", "separator": ";", "offset": 1})
    np.testing.assert_array_equal(numbers.columns["n"], [[1, 0, 1], [0, 1, 0]])


def test_of_several_features_of_one_class_the_one_called_label_gives_the_classes(tmp_path: Path) -> None:
    both = {"side": {"kind": "label"}, "label": {"kind": "label", "column": "breed"}, "tags": {"kind": "label", "separator": ";"}}
    found = listing(tmp_path, **both)
    assert (found.class_names, tuple(found.labels)) == (("cat", "dog"), (0, 1, 0, 1))
    assert found.classes == {"side": ("l", "r"), "label": ("cat", "dog"), "tags": ("sea", "sky", "sun")}
    np.testing.assert_array_equal(found.columns["side"], [0, 1, 0, 0])
    assert found.type is not None
    assert {name: t.classes for name, t in found.type.items()} == {"side": 2, "label": 2, "tags": 3}


@pytest.mark.parametrize(
    ("text", "feature", "code", "says"),
    [
        ("n\n1\n\n2\nx\n", {"kind": "tensor"}, "PG423", "t.csv:5 has 'x', which is not a number"),
        ("n,m\n1,1\n,2\n", {"kind": "tensor"}, "PG423", "t.csv:3 has an empty cell; it needs a number"),
        ("n\nnan\n", {"kind": "tensor"}, "PG423", "'nan', which is not a number"),
        ("n\n1e300\n", {"kind": "tensor"}, "PG423", "'1e300', which is not a number"),
        ("n\n1_000\n", {"kind": "tensor"}, "PG423", "'1_000', which is not a number"),
        ("n\n-1\n", {"kind": "weight"}, "PG423", "has the weight -1"),
        ("n\n1\n", {"kind": "tensor", "columns": ["n", "o"]}, "PG421", "no column 'o'"),
        ("n,m\n,1\n,2\n", {"kind": "label", "separator": ";"}, "PG420", "no row has a label"),
        ("n\na;b\n", {"kind": "label", "separator": ";", "classes": ["a"]}, "PG420", "is 'b', which `classes` does not list"),
        ("n\n", {"kind": "tensor"}, "PG402", "has no rows"),
    ],
)
def test_what_is_wrong_with_a_cell_names_its_line(tmp_path: Path, text: str, feature: dict[str, Any], code: str, says: str) -> None:
    with pytest.raises(OpError) as caught:
        listing(tmp_path, text, n=feature)
    assert caught.value.code == code
    assert says in caught.value.message
    assert (caught.value.field or "").startswith(("features.n", "path"))


@pytest.mark.parametrize(
    ("feature", "says"),
    [
        ({"kind": "tensor", "separator": ";"}, "`separator` belongs to labels"),
        ({"kind": "label", "columns": ["a", "b"]}, "`columns` belongs to images, series, boxes, events, keypoints and tensors"),
        ({"kind": "weight", "classes": 2}, "`classes` belongs to masks and labels"),
        ({"kind": "tensor", "column": "a", "columns": ["b"]}, "leave one of them out"),
        ({"kind": "tensor", "columns": []}, "at least 1 item"),
    ],
)
def test_what_a_feature_may_not_say(feature: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Csv(path="t.csv", features={"n": feature})


def test_without_a_header_columns_are_numbers() -> None:
    with pytest.raises(ValidationError, match=r"give `features.n` a `columns` with numbers from 0"):
        Csv(path="t.csv", header=False, features={"n": {"kind": "tensor", "columns": ["a"]}})
    Csv(path="t.csv", header=False, features={"n": {"kind": "tensor", "columns": [1, 0]}})


def test_splits_from_two_tables_count_their_labels_alike(tmp_path: Path) -> None:
    features = {"tags": {"kind": "label", "separator": ";"}, "age": {"kind": "tensor"}, "label": {"kind": "label", "column": "breed"}}
    (tmp_path / "train.csv").write_text(TABLE)
    (tmp_path / "test.csv").write_text("age,tags,breed\n7,sun,dog\n8,sky,dog\n")
    tables = {split: {"csv": {"path": f"{split}.csv", "features": features}} for split in ("train", "test")}
    found = BySplit.from_yaml(tables).list(tmp_path)
    assert tuple(found.labels) == (0, 1, 0, 1, 1, 1)
    np.testing.assert_array_equal(found.columns["tags"][4:], [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(found.columns["age"], np.array([1, 2, 3, 4, 7, 8], np.float32))
    (tmp_path / "test.csv").write_text("age,tags,breed\n7,fog,dog\n")
    (note,) = [n for n in BySplit.from_yaml(tables).list(tmp_path).notes if n.code == "PG408"]
    assert "the class 'fog' in `tags`" in note.message


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ({"kind": "weight", "column": "age"}, {"kind": "label", "column": "age"}),
        ({"kind": "tensor", "columns": ["age", "height"]}, {"kind": "tensor", "column": "age"}),
        ({"kind": "label", "column": "tags", "separator": ";"}, {"kind": "label", "column": "tags"}),
    ],
)
def test_a_feature_is_of_one_kind_in_every_split(train: dict[str, Any], test: dict[str, Any]) -> None:
    label = {"kind": "label", "column": "breed"}
    tables = {"train": {"v": train, "label": label}, "test": {"v": test, "label": label}}
    with pytest.raises(ValidationError, match=r"`v` of `test` has another .* than in `train`"):
        BySplit.from_yaml({split: {"csv": {"path": "t.csv", "features": features}} for split, features in tables.items()})


def test_vectors_of_two_lengths_and_classes_that_training_lacks_are_notes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "v.csv").write_text(TABLE.replace("dog", "bird"))
    vectors = {"train": ["age", "height"], "test": ["age"]}
    tables = {s: {"csv": {"path": "t.csv", "features": {"v": {"kind": "tensor", "columns": c}}}} for s, c in vectors.items()}
    assert [n.code for n in BySplit.from_yaml(tables).list(tmp_path).notes] == ["PG210"]
    features = {"label": {"kind": "label", "column": "breed"}}
    tables = {s: {"csv": {"path": f, "features": features}} for s, f in {"train": "t.csv", "test": "v.csv"}.items()}
    (note,) = BySplit.from_yaml(tables).list(tmp_path).notes
    assert (note.code, "the class 'bird', such as" in note.message) == ("PG408", True)


def test_numbers_are_class_indices_also_where_the_classes_have_names(tmp_path: Path) -> None:
    found = listing(tmp_path, "n\n2\n1\n", n={"kind": "label", "offset": 1, "classes": ["one", "two"]})
    assert (tuple(found.labels), found.class_names) == ((1, 0), ("one", "two"))
    named = listing(tmp_path, "n\n2\n1\n", n={"kind": "label", "classes": ["1", "2"]})
    assert (tuple(named.labels), named.class_names) == ((1, 0), ("1", "2"))
    with pytest.raises(OpError, match=r"the label at .*t.csv:3 is 'zz'"):
        listing(tmp_path, "n\na;b;a;b\nzz\n", n={"kind": "label", "separator": ";", "classes": ["a", "b"]})
    quoted = listing(tmp_path, 'm, n\n1, "a"\n2, "b,c"\n', n={"kind": "label"})
    assert quoted.class_names == ("a", "b,c")


def spec(**sections: Any) -> PipelineSpec:
    features = {"age": {"kind": "tensor"}, "label": {"kind": "label", "column": "breed"}}
    source = Csv(path="t.csv", features=features)
    return PipelineSpec(**{"pipegen": 1, "source": source, "output": {"x": "age"}, "batch": {"size": 1}, **sections})


def members(folder: Path, **sections: Any) -> dict[str, tuple[str, ...]]:
    (folder / "t.csv").write_text(TABLE)
    found = collect(spec(**sections), base=folder)
    assert found.manifest is not None, [d.message for d in found.diagnostics]
    return {split: found.manifest.keys(split) for split in found.manifest.splits}


def test_a_column_says_which_split_a_row_is_in(tmp_path: Path) -> None:
    splits = {"method": {"column": "part"}, "parts": {"train": "tr", "validation": "va"}}
    assert members(tmp_path, splits=splits) == {"train": ("0", "1"), "validation": ("2",)}


def test_rows_of_one_group_stay_together_also_when_some_are_left_out(tmp_path: Path) -> None:
    splits = {"parts": {"train": 0.5, "validation": 0.5}, "group": "owner"}
    dealt = members(tmp_path, splits=splits)
    assert any({"0", "2"} <= set(keys) for keys in dealt.values())
    assert sorted(key for keys in dealt.values() for key in keys) == ["0", "1", "2", "3"]
    (tmp_path / "out.txt").write_text("1\n")
    dealt = members(tmp_path, splits=splits, errors={"exclude": "out.txt"})
    assert any(set(keys) == {"0", "2"} for keys in dealt.values())


@pytest.mark.parametrize(
    ("splits", "code", "says"),
    [
        ({"parts": {"train": 0.5, "validation": 0.5}, "group": "ownr"}, "PG421", "no column 'ownr'"),
        ({"parts": {"train": "tr", "test": "x"}, "method": {"column": "part"}}, "PG404", "no record has 'x'"),
        ({"parts": {"train": "tr", "test": "va"}, "method": {"column": "part"}, "group": "owner"}, "PG302", "the group 'ann' is in"),
    ],
)
def test_what_a_column_cannot_say(tmp_path: Path, splits: dict[str, Any], code: str, says: str) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    found = collect(spec(splits=splits), base=tmp_path)
    assert found.manifest is None
    assert [d.code for d in found.diagnostics] == [code]
    assert says in next(iter(found.diagnostics)).message


def test_what_is_said_of_a_split_by_column_speaks_of_its_values(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    found = collect(spec(splits={"method": {"column": "part"}, "parts": {"train": "tr", "validation": "va"}}), base=tmp_path)
    told = {d.code: f"{d.message} | {' '.join(d.help)}" for d in found.diagnostics}
    assert set(told) == {"PG405", "PG411"}
    assert "stratify" not in told["PG405"]
    assert "in the column 'part' name no part" in told["PG411"]
    twice = collect(spec(splits={"method": {"column": "part"}, "parts": {"train": "tr", "validation": "tr"}}), base=tmp_path)
    assert [(d.code, d.message) for d in twice.diagnostics] == [("PG301", "`train` and `validation` are both the rows with 'tr'")]


def test_groups_of_tables_for_each_split_are_checked_for_leaks(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "v.csv").write_text("breed,owner,age\ncat,dan,1\ndog,bob,2\n")
    features = {"age": {"kind": "tensor"}, "label": {"kind": "label", "column": "breed"}}
    source = BySplit.from_yaml(
        {s: {"csv": {"path": f, "features": features}} for s, f in {"train": "t.csv", "validation": "v.csv"}.items()}
    )
    found = collect(spec(source=source, splits={"group": "owner"}), base=tmp_path)
    assert [d.code for d in found.diagnostics] == ["PG302"]
    assert "the group 'bob' is in `train` and in `validation`" in next(iter(found.diagnostics)).message
    (tmp_path / "v.csv").write_text("breed,owner,age\ncat,dan,1\ndog,eve,2\n")
    assert collect(spec(source=source, splits={"group": "owner"}), base=tmp_path).manifest is not None


def test_the_fingerprint_covers_what_the_columns_hold(tmp_path: Path) -> None:
    prints = set()
    for text in (TABLE, TABLE.replace("1.5", "1.6"), TABLE.replace("4,0,sea", "5,0,sea"), TABLE.replace("cat,l", "dog,l")):
        (tmp_path / "t.csv").write_text(text)
        found = collect(spec(), base=tmp_path)
        assert found.manifest is not None
        prints.add(found.manifest.fingerprint)
    assert len(prints) == 3, "the height is not read"


def test_a_state_knows_which_rows_are_trained_on(tmp_path: Path) -> None:
    splits = {"method": {"column": "part"}, "parts": {"train": "tr", "validation": "va"}}
    dealt = []
    for text in (TABLE, TABLE.replace(",tr,", ",?,").replace(",va,", ",tr,").replace(",?,", ",va,")):
        (tmp_path / "t.csv").write_text(text)
        manifest = collect(spec(splits=splits), base=tmp_path).manifest
        assert manifest is not None
        dealt.append((manifest.fingerprint, manifest.split_fingerprint))
    assert dealt[0][0] == dealt[1][0], "what is read of each row is the same"
    assert dealt[0][1] != dealt[1][1]


def test_a_weight_needs_a_target_and_idle_images_a_size() -> None:
    from pipegen.phases.compilation import inspect

    source = "{csv: {path: t.csv, features: {image: {kind: image}, label: {kind: label}, w: {kind: weight}}}}"
    head = f"pipegen: 1\nsource: {source}\nsplits: {{parts: {{train: 0.5, validation: 0.5}}}}\n"
    weighed = inspect("t.yaml", text=head + "transforms: [{resize: {size: 8}}]\noutput: {x: image, y: null, sample_weight: w}\n")
    assert [(d.code, "has no `y`" in d.message) for d in weighed.diagnostics] == [("PG203", True)]
    idle = inspect("t.yaml", text=head + "output: {x: w, y: label}\n")
    assert {d.code for d in idle.diagnostics} == {"PG201", "PG514"}


def test_arrays_hold_tensors_weights_and_several_labels() -> None:
    features = {
        "image": {"kind": "image"},
        "box": {"kind": "tensor"},
        "w": {"kind": "weight"},
        "label": {"kind": "label"},
        "b": {"kind": "label"},
    }
    data: dict[str, Any] = {"image": np.zeros((3, 4, 4, 3), np.uint8), "box": np.arange(12).reshape(3, 2, 2), "w": [[1], [2], [0.5]]}
    found = Arrays(features=features).list(None, data=data | {"label": [0, 1, 1], "b": ["x", "y", "x"]})  # type: ignore[arg-type]
    assert not found.notes
    assert tuple(found.labels) == (0, 1, 1)
    assert found.columns["box"].dtype == np.float32
    np.testing.assert_array_equal(found.columns["w"], np.array([1, 2, 0.5], np.float32))
    np.testing.assert_array_equal(found.columns["b"], [0, 1, 0])
    assert found.type is not None
    assert found.type["box"].shape == (2, 2)
    wrong = Arrays(features=features).list(None, data=data | {"w": [1, -1, 2], "label": [0, 1, 1], "b": [0, 0, 0]})  # type: ignore[arg-type]
    assert [(n.code, n.field) for n in wrong.notes] == [("PG419", "features.w")]


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("cache", ["disk", pytest.param("memory", marks=pytest.mark.nightly)])
def test_batches_hold_what_the_table_says_with_and_without_a_cache(cache: str, tmp_path: Path) -> None:
    from pipes import same, stream

    from PIL import Image

    import pipegen

    rows = ["file,age,height,tags,breed,side,w"]
    for i in range(8):
        Image.fromarray(np.full((20, 20, 3), 9 * i, np.uint8)).save(tmp_path / f"{i}.png")
        rows.append(f"{i}.png,{i},{i / 10},{['sun;sea', '', 'sky', 'sea;sky'][i % 4]},{['cat', 'dog'][i % 2]},{'lrl'[i % 3]},{1 + i % 2}")
    (tmp_path / "t.csv").write_text("\n".join(rows))
    features = {
        "image": {"kind": "image", "column": "file"},
        "body": {"kind": "tensor", "columns": ["age", "height"]},
        "tags": {"kind": "label", "separator": ";"},
        "breed": {"kind": "label"},
        "side": {"kind": "label"},
        "w": {"kind": "weight"},
    }
    spec = {
        "pipegen": 1,
        "source": {"csv": {"path": str(tmp_path / "t.csv"), "features": features}},
        "transforms": [{"resize": {"size": 8}}],
        "splits": {"parts": {"train": 4, "validation": 4}},
        "batch": {"size": 2},
        "output": {
            "x": {"photo": "image", "body": "body"},
            "y": {"tags": "tags", "breed": "breed", "side": "side"},
            "sample_weight": "w",
            "encode": {"side": "one_hot"},
        },
    }
    pipe = pipegen.build(spec, runtime={"jit": "never"})
    assert "loss: {tags: binary_crossentropy, breed: sparse_categorical_crossentropy, side: categorical_crossentropy}" in repr(pipe)
    for split in ("train", "validation"):
        for x, y, w in pipe.dataset(split, epoch=0):
            i = np.round(x["photo"].numpy()[:, 0, 0, 0] / 9).astype(int)
            np.testing.assert_array_equal(x["body"], np.stack([i, i / 10], -1).astype(np.float32))
            np.testing.assert_array_equal(y["tags"], np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0]], np.float32)[i % 4])
            np.testing.assert_array_equal(y["breed"], i % 2)
            np.testing.assert_array_equal(y["side"], np.eye(2, dtype=np.float32)[(i % 3) % 2])
            np.testing.assert_array_equal(w, 1 + i % 2)
    held = pipegen.build(spec, runtime={"jit": "never", "cache": {"disk": str(tmp_path / "cache")} if cache == "disk" else cache})
    expected = flat(pipe, stream)
    for _ in range(2):
        same(flat(held, stream), expected)


def flat(pipe: Any, stream: Any) -> Any:
    """The validation split with its features side by side."""
    return stream(pipe.validation.map(lambda x, y, w: (x["photo"], x["body"], y["tags"], y["side"], w)))
