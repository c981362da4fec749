"""Which rows of a table are records: `where`, `join`, and the classes that a label renames or leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipegen.data.collect import collect
from pipegen.data.fingerprint import example_ids, fingerprint
from pipegen.errors import OpError
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.table_sources import Csv, DataFrame
from pipegen.spec.models import PipelineSpec
from pipegen.spec.spec_hash import spec_hash

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Listing

ROWS = """file,breed,age,patient
a.jpg,pug,3,p1
b.jpg,chow,,p2
a.jpg,tabby,7,p1
gone.jpg,unknown,9,p3
a.jpg,pug,12,p4
"""
PATIENTS = "id,sex,weight,age\np1,f,60,1\np2,m,80,2\np3,f,70,3\np3,m,71,4\np5,f,x,5\n"
IMAGE = {"kind": "image", "column": "file"}
LABEL = {"kind": "label", "column": "breed"}
JOIN = {"table": {"csv": {"path": "patients.csv"}}, "on": {"patient": "id"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "patients.csv").write_text(PATIENTS)
    return tmp_path


def listed(folder: Path, features: dict[str, Any] | None = None, **arguments: Any) -> Listing:
    return Csv(path="t.csv", features=features or {"image": IMAGE, "label": LABEL}, **arguments).list(folder)


def refusals(folder: Path, features: dict[str, Any] | None = None, **arguments: Any) -> list[tuple[str, str | None, str]]:
    with pytest.raises(OpError) as caught:
        listed(folder, features, **arguments)
    return [(e.code, e.field, " | ".join((e.message, *e.lines))) for e in caught.value.every]


def test_rows_keep_their_keys_and_files_of_others_need_not_be_there(folder: Path) -> None:
    listing = listed(folder, where="age != '' and age > 3 and breed != 'unknown'")
    assert listing.keys == ("a.jpg#2", "a.jpg#3")
    assert listing.class_names == ("pug", "tabby")
    assert [note.code for note in listing.notes] == ["PG422"]
    assert listing.cells is not None
    assert listing.cells("age", "group") == ("7", "12")


def test_rows_without_files_keep_their_numbers_and_places(folder: Path) -> None:
    listing = listed(folder, {"age": {"kind": "tensor"}}, where="age != ''")
    assert listing.keys == ("0", "2", "3", "4")
    assert listing.location.paths[1] == f"{folder}/t.csv:4"
    assert refusals(folder, {"breed": {"kind": "tensor"}}, where="age == '7'")[0][2].startswith(f"{folder}/t.csv:4 has 'tabby'")


@settings(max_examples=30)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), st.lists(st.booleans(), min_size=9, max_size=9))
def test_ids_are_those_of_the_whole_table(names: list[str], wanted: list[bool]) -> None:
    data = {"file": names, "n": [str(int(w)) for w in wanted[: len(names)]]}
    features = {"file": {"kind": "label"}, "image": {"kind": "tensor", "column": "n"}}
    whole = DataFrame(features=features).list(__import__("pathlib").Path("/"), data=data)
    kept = [i for i, n in enumerate(data["n"]) if n == "1"]
    if kept:
        some = DataFrame(features=features, where="n == 1").list(__import__("pathlib").Path("/"), data=data)
        np.testing.assert_array_equal(example_ids("dataframe", some.keys), example_ids("dataframe", whole.keys)[kept])
        np.testing.assert_array_equal(some.columns["image"], whole.columns["image"][kept])


def test_what_is_wrong_with_a_predicate(folder: Path) -> None:
    assert refusals(folder, where="agee > 3 or bred == 'pug'") == [
        ("PG421", "where", f"'{folder}/t.csv' has no column 'agee' | is 'age' meant?"),
        ("PG421", "where", f"'{folder}/t.csv' has no column 'bred' | is 'breed' meant?"),
    ]
    ((code, field, says),) = refusals(folder, where="breed == 'pugg'")
    assert (code, field) == ("PG402", "where")
    assert "the column `breed` holds 'chow', 'pug', 'tabby', 'unknown'" in says
    with pytest.raises(ValidationError, match="needs `==`"):
        Csv(path="t.csv", features={"image": IMAGE}, where="age = 3")


def test_a_table_without_a_header_numbers_its_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,x\n2,y\n3,x\n")
    source = Csv(path="t.csv", header=False, features={"n": {"kind": "tensor", "column": 0}}, where="`1` == 'x'")
    assert source.list(tmp_path).keys == ("0", "2")


def test_several_names_become_one_class_and_others_are_left_out(folder: Path) -> None:
    names = {"pug": "dog", "chow": "dog", "tabby": "cat"}
    listing = listed(folder, {"image": IMAGE, "label": LABEL | {"map": names, "ignore": ["unknown"]}})
    assert (listing.keys, listing.class_names) == (("a.jpg", "b.jpg", "a.jpg#2", "a.jpg#3"), ("cat", "dog"))
    assert tuple(listing.labels) == (1, 1, 0, 1)
    assert listing.notes[0].code == "PG422"
    merged = listed(folder, {"age": LABEL | {"map": {**names, "unknown": "none"}, "ignore": ["none"]}})
    assert merged.class_names == ("cat", "dog")
    classes = LABEL | {"map": names, "ignore": ["unknown"], "classes": ["dog", "cat", "bird"]}
    assert tuple(listed(folder, {"label": classes}).labels) == (0, 0, 1, 0)


def test_numbers_are_mapped_before_the_offset(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n\n1\n2\n3\n255\n")
    listing = listed(tmp_path, {"n": {"kind": "label", "map": {3: 2}, "ignore": [255], "offset": 1}})
    assert (tuple(listing.labels), listing.class_names) == ((0, 1, 1), ("1", "2"))


def test_of_several_labels_one_that_is_ignored_is_enough(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('tags\nsea;sky\nsea;bad\n""\nocean\n')
    listing = listed(tmp_path, {"tags": {"kind": "label", "separator": ";", "map": {"ocean": "sea"}, "ignore": ["bad"]}})
    assert (listing.keys, listing.class_names) == (("0", "2", "3"), ("sea", "sky"))
    np.testing.assert_array_equal(listing.columns["tags"], [[1, 1], [0, 0], [1, 0]])


def test_names_that_no_row_has_are_told(folder: Path) -> None:
    label = LABEL | {"map": {"pugg": "dog"}, "ignore": ["unknwn", "tabby"]}
    notes = [(n.code, n.field, n.message, n.help) for n in listed(folder, {"label": label}).notes]
    assert notes == [
        ("PG451", "features.label.map", "`map` names 'pugg', which no row has", "is 'pug' meant?"),
        ("PG451", "features.label.ignore", "`ignore` names 'unknwn', which no row has", "is 'unknown' meant?"),
    ]


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ({"map": {"pug": "dgo"}, "classes": ["dog", "cat"]}, "`map` renames 'pug' to 'dgo', which `classes` does not list"),
        ({"map": {"pug": "dog"}, "ignore": ["pug"]}, "`ignore` leaves out 'pug', which `map` renames to 'dog'"),
        ({"ignore": ["pug"], "classes": ["pug", "chow"]}, "`ignore` leaves out 'pug', which `classes` lists"),
        ({"ignore": 3}, "a list of classes"),
        ({"map": {}}, "at least 1"),
        ({"kind": "tensor", "map": {1: 2}}, "`map` belongs to labels"),
        ({"kind": "mask", "ignore": ["pug"]}, "`ignore` of `kind: mask` must be one class index"),
    ],
)
def test_what_the_spec_may_not_say_of_classes(label: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Csv(path="t.csv", features={"image": IMAGE, "label": LABEL | label})


def test_a_joined_table_adds_its_columns(folder: Path) -> None:
    features = {"label": LABEL, "weight": {"kind": "tensor"}, "sex": {"kind": "label"}}
    listing = listed(folder, features, join=JOIN, where="patient in ['p1', 'p2'] and sex == 'f'")
    assert listing.keys == ("0", "2")
    np.testing.assert_array_equal(listing.columns["weight"], [60, 60])
    assert listing.classes["sex"] == ("f",)
    assert listing.cells is not None
    assert listing.cells("sex", "group") == ("f", "f")


def test_a_row_needs_one_partner(folder: Path) -> None:
    features = {"label": LABEL, "weight": {"kind": "tensor"}}
    lacking, several = refusals(folder, features, join=JOIN)
    assert lacking[:2] == several[:2] == ("PG450", "join.on")
    assert f"no row of '{folder}/patients.csv' has the key 'p4' of {folder}/t.csv:6" in lacking[2]
    assert "`missing: drop`" in lacking[2]
    assert f"the key 'p3' of {folder}/t.csv:5 is in several rows" in several[2]
    assert f"{folder}/patients.csv:4 and {folder}/patients.csv:5 | keep one row of each key there | or, if each row" in several[2]
    dropped = listed(folder, features, join=JOIN | {"missing": "drop"}, where="patient != 'p3'")
    assert dropped.keys == ("0", "1", "2")
    assert [n.message for n in dropped.notes] == [f"1 row of 5 left out: '{folder}/patients.csv' lacks the key"]
    assert refusals(folder, features, join=JOIN, where="sex == 'f'")[0][0] == "PG450", "it looks at a cell that is not there"


def test_errors_of_joined_cells_name_the_second_table(folder: Path) -> None:
    (folder / "t.csv").write_text("n,patient\n1,p1\n2,p5\n")
    ((code, _, says),) = refusals(folder, {"weight": {"kind": "tensor"}}, join=JOIN)
    assert code == "PG423"
    assert says.startswith(f"{folder}/patients.csv:6 has 'x'")
    ((code, _, says),) = refusals(folder, {"n": {"kind": "tensor"}}, join=JOIN, where="weight > 3")
    assert says.startswith(f"{folder}/patients.csv:6 has 'x' in the column `weight`")


def test_what_is_wrong_with_a_join(folder: Path) -> None:
    features = {"age": {"kind": "tensor"}}
    assert "use the number of one: 2, 6" in refusals(folder, features, join=JOIN, where="patient == 'p1'")[0][2]
    assert refusals(folder, features, join=JOIN | {"on": "patient"})[0][1:] == (
        "join.on",
        f"'{folder}/patients.csv' has no column 'patient' | its columns are 'id', 'sex', 'weight', 'age'",
    )
    nowhere = {"table": {"csv": {"path": "nowhere.csv"}}, "on": "patient"}
    assert refusals(folder, features, join=nowhere)[0][:2] == ("PG401", "join.table.csv.path")
    for wrong in ({"table": {}, "on": "x"}, JOIN | {"on": {}}, JOIN | {"on": {"a": "b", "c": "d"}}):
        with pytest.raises(ValidationError, match=r"a joined table needs exactly one of|`on` must be one column"):
            Csv(path="t.csv", features=features, join=wrong)


def test_images_of_a_joined_table_lie_beside_it(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "c.jpg").write_bytes(b"x")
    (folder / "other" / "files.csv").write_text("patient,photo\np1,c.jpg\n")
    (folder / "t.csv").write_text("patient\np1\n")
    listing = listed(
        folder, {"image": {"kind": "image", "column": "photo"}}, join={"table": {"csv": {"path": "other/files.csv"}}, "on": "patient"}
    )
    assert listing.location.paths[0] == f"{folder}/other/c.jpg"


def spec(**source: Any) -> PipelineSpec:
    splits = {"parts": {"train": 0.5, "validation": 0.5}}
    features = {"n": {"kind": "tensor"}, "label": {"kind": "label", "map": {"c": "a"}, "ignore": ["x"]}}
    whole = {"pipegen": 1, "source": Csv(path="t.csv", features=features, **source), "splits": splits, "batch": {"size": 2}}
    return PipelineSpec.model_validate(whole | {"output": {"x": "n"}})


def test_splits_strata_groups_and_folds_see_the_rows_that_are_left(tmp_path: Path) -> None:
    rows = [f"{i},{'abcx'[i % 4]},g{i // 2},{i % 5}" for i in range(80)]
    (tmp_path / "t.csv").write_text("n,label,owner,site\n" + "\n".join(rows))
    for splits in ({"stratify": "label"}, {"group": "owner"}, {"folds": {"count": 3, "fold": 1}}):
        made = spec(where="site != 3")
        given = made.splits.model_dump() | splits
        if "folds" in splits:
            given["parts"] = {}
        found = collect(made.model_copy(update={"splits": type(made.splits)(**given)}), base=tmp_path)
        assert found.manifest is not None, found.diagnostics.items
        listing, members = found.manifest.listing, found.manifest.members
        kept = [i for i in range(80) if i % 4 != 3 and i % 5 != 3]
        assert listing.keys == tuple(map(str, kept))
        assert sorted(np.concatenate(list(members.values())).tolist()) == list(range(len(kept)))
        if "stratify" in splits:
            share = [np.mean(np.asarray(listing.labels)[own] == 0) for own in members.values()]
            assert abs(share[0] - share[1]) < 0.05
        if "group" in splits:
            owners = [{int(listing.keys[i]) // 2 for i in own} for own in members.values()]
            assert not owners[0] & owners[1]


def test_what_they_say_is_part_of_the_meaning(folder: Path) -> None:
    one, other = spec(), spec(where="n > 3")
    assert spec_hash(one) != spec_hash(other)
    moved = {"table": {"csv": {"path": "elsewhere/patients.csv"}}, "on": {"patient": "id"}}
    assert spec_hash(spec(join=JOIN)) == spec_hash(spec(join=moved)), "a path is not part of it"
    assert fingerprint(listed(folder, where="breed == 'pug'")) != fingerprint(listed(folder, where="breed != 'unknown'"))


def test_they_stand_below_by_split_too(folder: Path) -> None:
    source = {"csv": {"path": "t.csv", "features": {"label": LABEL}}}
    parts = {
        name: {"csv": source["csv"] | {"where": where}} for name, where in (("train", "age != '' and age < 9"), ("test", "age == '12'"))
    }
    both = BySplit.model_validate(parts)
    listing = both.list(folder)
    assert listing.keys == ("train/0", "train/2", "test/4")
    assert BySplit.model_validate(both.model_dump(mode="json")) == both
