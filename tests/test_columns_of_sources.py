"""Records that are no rows of a table have columns, too: what is known of each, and a joined table, chooses and splits them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from record_files import write_tfrecord

import pipegen
from benchmarks import written_sources
from benchmarks.written_sources import SOURCES, output_of
from pipegen import load
from pipegen.ops.registry import sources
from pipegen.ops.sources.tables.selecting import SelectingSource
from pipegen.phases.compilation import collect_data
from pipegen.spec.spec_hash import spec_hash

OPS = {form: {"files": "image_folder", "archive": "image_folder"}.get(name := form.partition(",")[0], name) for form in SOURCES}
FORMS = [form for form, op in OPS.items() if issubclass(sources()[op], SelectingSource)]
COUNT, TEAMS = 12, ("ant", "bee", "cow")
PLAIN: dict[str, Any] = {"jit": "never", "cache": "none"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Writes a form once; returns its source."""
    found: dict[str, dict[str, Any]] = {}

    def source(form: str) -> dict[str, Any]:
        if form not in found:
            folder = tmp_path_factory.mktemp("form") / "data"
            folder.mkdir()
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(written_sources, "SIDE", 8)
                patched.setattr(written_sources, "CLASSES", 3)
                SOURCES[form].write(folder, [(png(i), 3 * i // COUNT) for i in range(COUNT)])
                found[form] = SOURCES[form].spec(folder)
        return found[form]

    return source


def png(number: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), 20 * number, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def spec_of(source: dict[str, Any], **sections: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"pipegen": 1, "source": source, "batch": {"size": 2, "remainder": "keep"}, **sections}
    if next(iter(source)) != "prepared":
        given = {"transforms": ["decode", {"resize": {"size": 8}}], **given}
    if next(iter(source)) == "arrays":
        given["transforms"] = given["transforms"][1:]
    return {"output": output_of(source), **given}


def listed(source: dict[str, Any], **sections: Any) -> Any:
    """The manifest of a source."""
    return collect_data(load(spec_of(source, **sections), runtime=PLAIN))


def held(manifest: Any) -> dict[str, int]:
    """The id of each record by its key."""
    return {key: i for split in manifest.splits for key, i in zip(manifest.keys(split), manifest.ids(split).tolist(), strict=True)}


def with_(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    ((op, own),) = source.items()
    return {op: {**own, **more}}


def write_table(path: Path, keys: list[str], of: str = "file") -> dict[str, Any]:
    with open(path / "about.csv", "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([of, "team", "kg"])
        writer.writerows([key, TEAMS[i % 3], 1 + i / 4] for i, key in reversed(list(enumerate(keys))))
    return {"table": {"csv": {"path": str(path / "about.csv")}}, "on": {"path": of}}


@pytest.mark.parametrize("form", FORMS)
def test_a_predicate_keeps_the_records_that_it_selects_with_their_ids(written: Any, form: str) -> None:
    source = written(form)
    whole = listed(source)
    listing = whole.listing
    known = load(spec_of(source)).model.source.column_names()
    for name in ("path", "label") if form == "files" else ("path",) if known is None else known:
        cells = listing.cells(name, "where")
        if len(set(cells)) < 2:
            continue  # such as the height of images of one size
        wanted = sorted(set(cells))[: len(set(cells)) // 2]
        kept = listed(with_(source, where=f"{name} in {wanted!r}"))
        due = {key for key, cell in zip(listing.keys, cells, strict=True) if cell in wanted}
        assert set(held(kept)) == due
        assert 0 < len(due) < COUNT
        assert held(kept).items() <= held(whole).items()
        none = f"{name} == 'of none'"
        with pytest.raises(pipegen.SpecError, match="matches `where`"):
            listed(with_(source, where=none))


@pytest.mark.parametrize("form", [form for form in FORMS if form != "arrays"])
def test_a_joined_table_chooses_splits_and_is_tested(written: Any, form: str, tmp_path: Path) -> None:
    source = written(form)
    whole = listed(source)
    keys = [*whole.listing.keys]
    join = write_table(tmp_path, keys)
    teams = {key: TEAMS[i % 3] for i, key in enumerate(keys)}
    if form.startswith("prepared"):
        kept = listed(with_(source, join=join, where="team == 'bee' and kg > 1.5"))
        assert set(held(kept)) == {key for i, key in enumerate(keys) if teams[key] == "bee" and 1 + i / 4 > 1.5}
        return
    parts = {"train": {"team": ["ant", "bee"]}, "validation": {"team": ["cow"]}}
    tests = [
        {"disjoint": {"key": "team"}},
        {"accepted": {"key": "team", "values": list(TEAMS)}},
        {"range": {"column": "kg", "within": [1, 4]}},
    ]
    both = listed(with_(source, join=join), splits={"parts": parts}, tests=tests)
    assert {split: {teams[key] for key in both.keys(split)} for split in both.splits} == {"train": {"ant", "bee"}, "validation": {"cow"}}
    assert held(both) == held(whole)
    dropped = {"splits": {"parts": {"train": {"team": ["ant"]}, "validation": {"team": ["cow"]}}}}
    assert len(held(listed(with_(source, join=join, where="team != 'bee'"), **dropped))) == COUNT - COUNT // 3
    grouped = listed(with_(source, join=join), splits={"parts": {"train": 0.7, "validation": 0.3}, "group": "team"})
    assert not {teams[key] for key in grouped.keys("train")} & {teams[key] for key in grouped.keys("validation")}
    sampled = listed(with_(source, join=join), sampling={"subset": {"where": "kg <= 2"}})
    assert set(sampled.keys("train")) == {key for i, key in enumerate(keys) if 1 + i / 4 <= 2}


@pytest.mark.parametrize("form", [form for form in FORMS if form != "arrays" and not form.startswith("prepared")])
def test_a_record_without_a_row_is_an_error_or_left_out(written: Any, form: str, tmp_path: Path) -> None:
    source = written(form)
    keys = [*listed(source).listing.keys]
    join = write_table(tmp_path, keys[1:])
    with pytest.raises(pipegen.SpecError, match="has the key") as caught:
        listed(with_(source, join=join))
    assert keys[0] in str(caught.value)
    assert "missing: drop" in str(caught.value)
    assert set(held(listed(with_(source, join={**join, "missing": "drop"})))) == set(keys[1:])


def test_classes_of_a_folder_are_those_that_are_left_as_in_a_table(written: Any, tmp_path: Path) -> None:
    source = {"image_folder": {"path": str(tmp_path / "photos")}}
    rows = ["file,breed"]
    for i in range(COUNT):
        file = tmp_path / "photos" / ["cat", "dog", "owl"][i % 3] / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(i))
        rows.append(f"{file.relative_to(tmp_path / 'photos')},{file.parent.name}")
    (tmp_path / "photos.csv").write_text("\n".join([rows[0], *sorted(rows[1:], reverse=True)]))
    features = {
        "image": {"kind": "image", "column": "file", "root": str(tmp_path / "photos")},
        "label": {"kind": "label", "column": "breed"},
    }
    table = {"csv": {"path": str(tmp_path / "photos.csv"), "features": features, "where": "breed != 'cat'"}}
    folder, rows_of = listed(with_(source, where="label != 'cat'")), listed(table)
    assert folder.class_names == rows_of.class_names == ("dog", "owl")
    labels = [{k: int(m.labels("train")[i]) for i, k in enumerate(m.keys("train"))} for m in (folder, rows_of)]
    assert labels[0] == labels[1]
    kept = listed(with_(source, where="label != 'cat'", classes=["owl", "cat", "dog"]))
    assert kept.class_names == ("owl", "cat", "dog")


def test_split_folders_are_chosen_from_by_their_paths(tmp_path: Path) -> None:
    for split, n in (("train", 6), ("val", 4)):
        for i in range(n):
            file = tmp_path / "photos" / split / "ab"[i % 2] / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(i))
    splits = {"method": "folder", "parts": {"train": "train", "validation": "val"}}
    source = {"image_folder": {"path": str(tmp_path / "photos"), "where": "path != 'train/a/2.png' and path != 'val/b/1.png'"}}
    found = listed(source, splits=splits)
    assert {split: len(found.keys(split)) for split in found.splits} == {"train": 5, "validation": 3}
    with pytest.raises(pipegen.SpecError, match="none of the 4 records of `image_folder` matches `where`"):
        listed(with_(source, where="path in ['train/a/2.png', 'train/b/1.png']"), splits=splits)
    with pytest.raises(pipegen.SpecError, match="have no column 'pth'") as caught:
        listed(with_(source, where="pth == 'a'", join=write_table(tmp_path, ["train/a/0.png"])), splits=splits)
    assert [d.labels[0].path for d in caught.value.diagnostics] == ["source.image_folder.where"]


def test_coco_has_the_numbers_and_texts_of_its_images(written: Any, tmp_path: Path) -> None:
    ((op, own),) = written("coco").items()
    content = json.loads(Path(own["annotations"]).read_text())
    for i, image in enumerate(sorted(content["images"], key=lambda image: image["file_name"])):
        image |= {"weather": ["rain", "sun"][i % 2], "width": 8, "height": 8} | ({"exposure": i / 10} if i else {})
    (tmp_path / "more.json").write_text(json.dumps(content))
    source = {op: {**own, "annotations": str(tmp_path / "more.json")}}
    assert len(held(listed(with_(source, where="weather == 'sun' and exposure < 0.5 and width == 8")))) == 2
    ids = [str(image["id"]) for image in content["images"]]
    join = {**write_table(tmp_path, ids, "number"), "on": {"image_id": "number"}}
    assert len(held(listed(with_(source, join=join, where="team == 'bee'")))) == COUNT // 3
    with pytest.raises(pipegen.SpecError, match="did you mean 'weather'"):
        listed(with_(source, where="wether == 'sun'"))


def test_images_are_chosen_before_those_without_boxes_are_refused(written: Any, tmp_path: Path) -> None:
    ((op, own),) = written("coco").items()
    content = json.loads(Path(own["annotations"]).read_text())
    bare = min(content["images"], key=lambda image: image["file_name"])
    content["annotations"] = [one for one in content["annotations"] if one["image_id"] != bare["id"]]
    (tmp_path / "bare.json").write_text(json.dumps(content))
    source = {op: {**own, "annotations": str(tmp_path / "bare.json"), "empty": "refuse"}}
    with pytest.raises(pipegen.SpecError, match=f"{bare['file_name']} has no box, like 1 of {COUNT} images"):
        listed(source)
    where = f"image_id != {bare['id']}"
    assert len(held(listed(with_(source, where=where)))) == COUNT - 1
    assert len(held(listed(with_(source, where=where, empty="drop")))) == COUNT - 1
    assert len(held(listed(with_(source, empty="drop")))) == COUNT - 1


def test_numbers_of_arrays_choose_rows(tmp_path: Path) -> None:
    ages = np.arange(COUNT, dtype=np.float32) * 5
    np.savez(tmp_path / "a.npz", image=np.zeros((COUNT, 8, 8, 3), np.uint8), label=np.arange(COUNT) % 3, age=ages)
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}, "age": {"kind": "tensor"}}
    source = {"arrays": {"path": str(tmp_path / "a.npz"), "features": features, "where": "age >= 20 and label != 1"}}
    found = listed(source)
    assert [int(key) for key in found.keys("train")] == [i for i in range(COUNT) if ages[i] >= 20 and i % 3 != 1]
    table = "age,town\n" + "".join(f"{age:g},{TEAMS[i % 3]}\n" for i, age in enumerate(ages.tolist()))
    (tmp_path / "towns.csv").write_text(table)
    join = {"table": {"csv": {"path": str(tmp_path / "towns.csv")}}, "on": "age"}
    assert [int(key) for key in listed(with_(source, where="town == 'cow'", join=join)).keys("train")] == [2, 5, 8, 11]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"splits": {"parts": {"train": 0.5, "validation": 0.5}, "group": "patient"}}, "`image_folder` has no column 'patient'"),
        ({"splits": {"parts": {"train": {"pth": ["a"]}, "validation": {"pth": ["b"]}}}}, "did you mean 'path'"),
        ({"sampling": {"subset": {"where": "age > 3"}}}, "the source `image_folder` has no column 'age'"),
        ({"tests": [{"unique": {"key": "patient"}}]}, "`image_folder` has no column `patient`"),
        ({"tests": [{"mean": {"column": "age", "within": [0, 1]}}]}, "`image_folder` has no column `age`"),
    ],
)
def test_a_column_that_there_is_not_is_found_without_data(sections: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(pipegen.SpecError) as caught:
        load(spec_of({"image_folder": {"path": str(tmp_path)}}, **sections))
    assert message in str(caught.value)
    assert "join: {table" in str(caught.value)


@pytest.mark.parametrize("op", ["image_folder", "tfrecord"])
def test_a_joined_table_at_an_address_is_read_whole(op: str, tmp_path: Path) -> None:
    """The records beside it are fetched in blocks as they are read."""
    import fsspec

    store = fsspec.filesystem("memory")
    for i in range(COUNT):
        store.pipe(f"/joined/photos/{'ab'[i % 2]}/{i:02}.png", png(i))
    write_tfrecord(tmp_path / "a.tfrecord", [{"image": png(i), "label": i % 2, "n": i} for i in range(COUNT)])
    store.pipe("/joined/a.tfrecord", (tmp_path / "a.tfrecord").read_bytes())
    table = "n,file,kg\n" + "".join(f"{i},{'ab'[i % 2]}/{i:02}.png,{i}\n" for i in range(COUNT))
    store.pipe("/joined/about.csv", table.encode())
    given: dict[str, Any] = {"join": {"table": {"csv": {"path": "memory://joined/about.csv"}}, "on": {"path": "file"}}, "where": "kg > 3"}
    source: dict[str, Any] = {op: {"path": "memory://joined/photos", **given}}
    if op == "tfrecord":
        features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}
        source = {op: {"path": "memory://joined/a.tfrecord", "features": features, **given, "join": {**given["join"], "on": "n"}}}
    for fetch in ("auto", "blocks"):
        spec = spec_of(source, runtime={"remote_cache": {"fetch": fetch, "path": str(tmp_path / "cache")}})
        assert collect_data(load(spec)).num_examples("train") == COUNT - 4


def test_names_of_columns_and_classes_are_no_paths(written: Any, tmp_path: Path) -> None:
    folder = {"path": "photos"}
    specs = [
        {"csv": {"path": "a.csv", "features": {"image": {"kind": "image"}, "label": {"kind": "label", "map": {"root": name}}}}}
        for name in ("tree", "bush")
    ]
    specs += [
        {"image_folder": {**folder, "join": {"table": {"csv": {"path": "b.csv"}}, "on": {"path": name}}}} for name in ("file", "name")
    ]
    loaded = [load(spec_of(source)).model for source in specs]
    assert [spec.source.features["label"].map for spec in loaded[:2]] == [{"root": "tree"}, {"root": "bush"}]
    assert [spec.source.join.on for spec in loaded[2:]] == [{"path": "file"}, {"path": "name"}]
    assert len({spec_hash(spec) for spec in loaded}) == len(loaded)


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("form", FORMS)
def test_chosen_records_give_the_pixels_that_they_give_among_all(written: Any, form: str) -> None:
    source = written(form)
    whole = pipegen.build(spec_of(source), runtime=PLAIN)
    name = "label" if form == "arrays" else "path"
    cells = listed(source).listing.cells(name, "")
    wanted = sorted(set(cells))[:1] if form == "arrays" else sorted(cells)[::2]
    some = pipegen.build(spec_of(with_(source, where=f"{name} in {wanted!r}")), runtime=PLAIN)
    found, due = (pixels(pipe) for pipe in (some, whole))
    assert 0 < len(found) < len(due) == COUNT
    assert all(image.tobytes() in {other.tobytes() for other in due} for image in found)


def pixels(pipe: Any) -> list[Any]:
    return [image for batch in pipe.train for image in _image(batch)]


def _image(batch: Any) -> Any:
    import tensorflow as tf

    first = tf.nest.flatten(batch[:1])[0]
    return first.numpy()


JOINED = {"team": {"kind": "label"}, "kg": {"kind": "tensor"}}
"""Features in columns of a joined table."""


def with_joined(source: dict[str, Any], features: dict[str, Any]) -> dict[str, Any]:
    ((_, own),) = source.items()
    return with_(source, features={**own.get("features", {}), **features})


def values_of(manifest: Any) -> dict[str, dict[str, Any]]:
    """The team and the weight of each record, by its key."""
    found: dict[str, dict[str, Any]] = {}
    listing = manifest.listing
    for i, key in enumerate(listing.keys):
        team = listing.classes["team"][int(listing.columns["team"][i])]
        found[key] = {"team": team, "kg": float(listing.columns["kg"][i])}
    return found


@pytest.mark.parametrize("form", [form for form in FORMS if form != "arrays" and not form.startswith("prepared")])
def test_columns_of_a_joined_table_are_features(written: Any, form: str, tmp_path: Path) -> None:
    source = written(form)
    whole = listed(source)
    keys = [*whole.listing.keys]
    due = {key: {"team": TEAMS[i % 3], "kg": 1 + i / 4} for i, key in enumerate(keys)}
    given = with_joined(with_(source, join=write_table(tmp_path, keys)), JOINED)
    found = listed(given)
    assert values_of(found) == due
    assert held(found) == held(whole)
    assert (found.type["team"].classes, found.type["kg"].dtype) == (3, "float32")
    some = listed(with_(given, where="team != 'bee' and kg < 3"))
    assert values_of(some) == {key: value for key, value in due.items() if value["team"] != "bee" and value["kg"] < 3}
    assert held(some).items() <= held(whole).items()
    chosen = {**JOINED, "team": {"kind": "label", "map": {"ant": "insect", "bee": "insect"}, "ignore": ["cow"]}}
    insects = listed(with_joined(given, chosen))
    assert values_of(insects) == {key: {**value, "team": "insect"} for key, value in due.items() if value["team"] != "cow"}
    with pytest.raises(pipegen.SpecError, match="needs a `join`"):
        load({"pipegen": 1, "source": with_joined(source, JOINED)})
    with pytest.raises(pipegen.SpecError, match="no column 'kgs'"):
        listed(with_joined(given, {"kg": {"kind": "tensor", "column": "kgs"}}))
    taken = with_joined(given, {"image": {"kind": "label", "column": "team"}})
    with pytest.raises(pipegen.SpecError, match="image` is already a feature"):
        load({"pipegen": 1, "source": taken})


def test_a_label_of_a_joined_table_gives_a_folder_its_classes(written: Any, tmp_path: Path) -> None:
    ((op, own),) = written("files").items()
    source = {op: {**own, "labels": "none"}}
    keys = [*listed(source).listing.keys]
    given = with_(source, join=write_table(tmp_path, keys), features={"label": {"kind": "label", "column": "team"}})
    found = listed(given, splits={"parts": {"train": 0.5, "validation": 0.5}, "stratify": "label"})
    assert found.class_names == TEAMS
    assert [found.class_names[i] for i in found.listing.labels] == [TEAMS[i % 3] for i in range(COUNT)]
    assert {int((found.labels(split) == i).sum()) for split in found.splits for i in range(3)} == {2}
    other = write_table(tmp_path, [keys[1], keys[0], *keys[2:]])
    assert listed(with_(given, join=other)).fingerprint != found.fingerprint
    with pytest.raises(pipegen.SpecError, match="label` is already a feature of `image_folder`"):
        load({"pipegen": 1, "source": with_(given, labels="folder")})


def test_paired_files_have_columns_of_a_joined_table(tmp_path: Path) -> None:
    for i in range(COUNT):
        for folder in ("photos", "masks"):
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(np.full((8, 8), i % 2, np.uint8)).save(tmp_path / folder / f"{i:02}.png")
    files: dict[str, Any] = {
        "image": {"kind": "image", "path": str(tmp_path / "photos")},
        "mask": {"kind": "mask", "path": str(tmp_path / "masks"), "classes": 2},
    }
    keys = [f"{i:02}.png" for i in range(COUNT)]
    given = {"files": {"features": {**files, **JOINED}, "join": write_table(tmp_path, keys), "where": "team != 'bee'"}}
    sections: dict[str, Any] = {"output": {"x": ["image", "kg"], "y": ["mask", "team"]}}
    due = {key: {"team": TEAMS[i % 3], "kg": 1 + i / 4} for i, key in enumerate(keys) if i % 3 != 1}
    assert values_of(listed(given, **sections)) == due
    written_out = load(spec_of({"files": {"features": files}})).model.source.features["image"].model_dump()
    assert not {"column", "columns", "map", "separator", "max"} & {*written_out}, "the hash of a spec of files has no columns"
    for wrong, says in (
        ({**files, "team": {"kind": "label", "path": "x"}}, "not in files"),
        ({**files, "image": {**files["image"], "column": "file"}}, "leave one of them out"),
        ({**files, "image": {"kind": "image", "column": "file"}}, "needs `path`"),
        (JOINED, "none in files"),
    ):
        with pytest.raises(pipegen.SpecError, match=says):
            load({"pipegen": 1, "source": with_(given, features=wrong)})


def test_joined_features_of_split_folders_are_of_their_images(tmp_path: Path) -> None:
    keys = []
    for split, n in (("train", 6), ("val", 4)):
        for i in range(n):
            file = tmp_path / "photos" / split / "ab"[i % 2] / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(i))
            keys.append(f"{split}/{'ab'[i % 2]}/{i}.png")
    splits = {"method": "folder", "parts": {"train": "train", "validation": "val"}}
    source = {"image_folder": {"path": str(tmp_path / "photos"), "join": write_table(tmp_path, keys), "features": JOINED}}
    found = listed(source, splits=splits)
    assert values_of(found) == {key: {"team": TEAMS[i % 3], "kg": 1 + i / 4} for i, key in enumerate(keys)}


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("form", ["files", "coco"])
def test_joined_features_reach_the_batch_beside_their_image(written: Any, form: str, tmp_path: Path) -> None:
    source = written(form)
    keys = [*listed(source).listing.keys]
    plain = pipegen.build(spec_of(source, shuffle="none"), runtime=PLAIN)
    given = with_joined(with_(source, join=write_table(tmp_path, keys)), JOINED)
    pipe = pipegen.build(spec_of(given, shuffle="none", output={"x": ["image", "kg"], "y": "team"}), runtime=PLAIN)
    weights = [float(kg) for (_, kgs), _ in pipe.train.take(pipe.steps("train")) for kg in kgs]
    teams = [TEAMS[int(team)] for _, some in pipe.train.take(pipe.steps("train")) for team in some]
    assert weights == [1 + i / 4 for i in range(COUNT)]
    assert teams == [TEAMS[i % 3] for i in range(COUNT)]
    assert [image.tobytes() for image in pixels(pipe)] == [image.tobytes() for image in pixels(plain)]


def test_fields_of_json_in_a_joined_table_are_columns(written: Any, tmp_path: Path) -> None:
    source = written("files")
    keys = [*listed(source).listing.keys]
    lines = [json.dumps({"file": key, "about": json.dumps({"team": TEAMS[i % 3], "kg": i})}) for i, key in enumerate(keys)]
    (tmp_path / "about.jsonl").write_text("\n".join(lines))
    join = {"table": {"jsonl": {"path": str(tmp_path / "about.jsonl")}}, "on": {"path": "file"}}
    features = {"kg": {"kind": "tensor", "column": "about.kg"}, "team": {"kind": "label", "column": "about.team"}}
    splits = {"parts": {"train": {"about.team": ["ant"]}, "validation": {"about.team": ["cow"]}}}
    found = listed(with_(source, join=join, features=features, where="about.kg >= 3 and about.team != 'bee'"), splits=splits)
    due = {key: {"team": TEAMS[i % 3], "kg": float(i)} for i, key in enumerate(keys) if i >= 3 and i % 3 != 1}
    assert values_of(found) == due
    assert {due[key]["team"] for key in found.keys("train")} == {"ant"}
