"""`collect`: from a spec and files to a manifest, or to findings that say what is wrong with the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipegen.data.collect import collect
from pipegen.diagnostics.diagnostic import Severity
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.class_folders import ImageFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.data.collect import Collected
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.models import PipelineSpec

    Files = Callable[..., Path]
    MakeSpec = Callable[..., PipelineSpec]

TWO = {"train": 0.8, "validation": 0.2}


def one(collected: Collected, code: str) -> Diagnostic:
    (found,) = [d for d in collected.diagnostics if d.code == code]
    return found


def codes(collected: Collected) -> list[str]:
    return sorted(d.code for d in collected.diagnostics)


def test_a_folder_becomes_a_manifest(files: Files, make_spec: MakeSpec) -> None:
    collected = collect(make_spec(files("cat/*50", "dog/*30"), splits={"parts": TWO, "stratify": "label"}))
    manifest = collected.manifest
    assert manifest is not None
    assert codes(collected) == []
    assert {s: manifest.num_examples(s) for s in manifest.splits} == {"train": 64, "validation": 16}
    assert manifest.class_names == ("cat", "dog")
    assert manifest.source_name == "image_folder"


def test_the_top_level_seed_moves_nothing(files: Files, make_spec: MakeSpec) -> None:
    root = files("cat/*50", "dog/*30")
    members = {str(collect(make_spec(root, seed=seed, splits={"parts": TWO})).manifest.members) for seed in range(3)}  # type: ignore[union-attr]
    assert len(members) == 1


def test_the_fingerprints_of_a_mix_follow_the_data_of_its_parts(files: Files) -> None:
    from pipegen.phases.compilation import collect_data
    from pipegen.phases.compilation import load as load_spec

    root = files("a/cat/*20", "b/cat/*20")
    parts = {name: {"weight": 1, "source": {"image_folder": {"path": str(root / name)}}} for name in "ab"}
    spec = {"pipegen": 1, "source": {"mix": {"epoch": "a", "parts": parts}}, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 4}}

    def found() -> list[str]:
        manifest = collect_data(load_spec(spec))
        return [manifest.fingerprint, manifest.split_fingerprint]

    before = found()
    assert [len(one) for one in before] == [64, 64]
    assert found() == before
    (root / "b" / "cat" / "more.jpg").write_bytes(next((root / "b" / "cat").iterdir()).read_bytes())
    assert not set(found()) & set(before)


def test_membership_is_the_same_wherever_the_data_is_mounted(files: Files, make_spec: MakeSpec, tmp_path: Path) -> None:
    root = files("cat/*50", "dog/*30")
    first = collect(make_spec(root, splits={"parts": TWO})).manifest
    root.rename(tmp_path / "moved")
    second = collect(make_spec(tmp_path / "moved", splits={"parts": TWO})).manifest
    assert first is not None
    assert second is not None
    assert first.fingerprint == second.fingerprint
    for a, b in ((first.all_ids, second.all_ids), *((first.members[split], second.members[split]) for split in first.splits)):
        assert a.tolist() == b.tolist()


def test_unlabelled_data_is_all_predict(files: Files, make_spec: MakeSpec) -> None:
    manifest = collect(make_spec(files("*3"), {"labels": "none"})).manifest
    assert manifest is not None
    assert (manifest.splits, manifest.labels("predict"), manifest.num_examples("predict")) == (("predict",), None, 3)


def test_a_missing_path_points_at_the_argument(make_spec: MakeSpec, tmp_path: Path) -> None:
    collected = collect(make_spec(tmp_path / "nowhere"))
    assert collected.manifest is None
    assert one(collected, "PG401").labels[0].path == "source.image_folder.path"


def test_relative_paths_start_at_the_base(files: Files, make_spec: MakeSpec) -> None:
    root = files("cat/*50")
    assert collect(make_spec("data"), base=root.parent).manifest is not None


def test_notes_have_their_severity(files: Files, make_spec: MakeSpec) -> None:
    root = files("cat/*40", "cat/.hidden", "cat/notes.txt", "dog/notes.txt")
    collected = collect(make_spec(root))
    assert [(d.code, d.severity) for d in collected.diagnostics] == [("PG403", Severity.WARNING), ("PG411", Severity.INFO)]
    listed = collect(make_spec(root, {"classes": ["cat", "dog"]}))
    assert one(listed, "PG403").severity is Severity.ERROR
    assert listed.manifest is None


def test_a_part_that_would_be_empty(files: Files, make_spec: MakeSpec) -> None:
    spec = make_spec(files("cat/*4"), splits={"parts": {"train": 0.9, "validation": 0.1}}, batch={"size": 2})
    collected = collect(spec)
    assert collected.manifest is None
    finding = one(collected, "PG404")
    assert finding.message == "`validation` would be empty: 0.1 of 4 examples is less than one"
    assert finding.labels[0].path == "splits.parts.validation"


@pytest.mark.parametrize(
    "splits",
    [
        {"parts": {"a": 0.2, "b": 0.2, "c": 0.2, "d": 0.2, "e": 0.2}},
        {"parts": TWO},
        {"parts": TWO, "stratify": "label"},
        {"parts": TWO, "method": "hash"},
        {"parts": TWO, "method": "keras"},
        {"parts": TWO, "group": {"path": "cat"}},
        {"parts": TWO, "group": {"path": "cat"}, "stratify": "label"},
        {"folds": {"count": 5, "fold": 0}},
        {"folds": {"count": 5, "fold": 4}, "stratify": "label", "group": {"path": "cat"}},
        {"parts": {"test": 0.5}, "folds": {"count": 2, "fold": 1}},
    ],
)
def test_one_image_ends_in_findings_whatever_the_method(files: Files, make_spec: MakeSpec, splits: dict[str, Any]) -> None:
    collected = collect(make_spec(files("cat/*1"), splits=splits, batch={"size": 1}))
    assert collected.manifest is None
    assert set(codes(collected)) == {"PG404"}


def test_unsound_splits_are_refused_before_any_file_is_listed(make_spec: MakeSpec) -> None:
    collected = collect(make_spec("nowhere", splits={"parts": {"train": 0.9, "validation": 0.2}}))
    assert (collected.manifest, codes(collected)) == (None, ["PG301"])


def test_counts_beyond_the_data(files: Files, make_spec: MakeSpec) -> None:
    collected = collect(make_spec(files("cat/*4"), splits={"parts": {"train": 4, "validation": 1}}))
    assert one(collected, "PG409").message == "the parts ask for 5 examples and there are 4"


def test_a_class_missing_from_a_part_is_a_warning(files: Files, make_spec: MakeSpec) -> None:
    collected = collect(make_spec(files("cat/*60", "dog/*1"), splits={"parts": TWO}))
    finding = one(collected, "PG405")
    assert finding.severity is Severity.WARNING
    assert "has no example of 1 class: 'dog'" in finding.message
    assert "stratify" in finding.help[0]
    assert collected.manifest is not None


def test_data_in_no_part_is_said(files: Files, make_spec: MakeSpec) -> None:
    collected = collect(make_spec(files("cat/*100"), splits={"parts": {"train": 0.5, "validation": 0.2}}))
    assert one(collected, "PG411").message == "the parts leave 30 of 100 examples unused"


def test_fewer_examples_than_a_batch_gives_no_step(files: Files, make_spec: MakeSpec) -> None:
    root = files("cat/*10")
    finding = one(collect(make_spec(root)), "PG407")
    assert finding.message.startswith("`train` has 10 examples, fewer than one batch of 32")
    assert len(finding.help) == 3
    assert codes(collect(make_spec(root, batch={"size": 10}))) == []
    assert codes(collect(make_spec(root, batch={"remainder": {"train": "keep"}}))) == []
    assert codes(collect(make_spec(root, epoch={"steps": 5}))) == []


def test_empty_files_are_found_before_training(files: Files, make_spec: MakeSpec) -> None:
    root = files("cat/*40")
    (root / "cat/7.jpg").write_bytes(b"")
    finding = one(collect(make_spec(root)), "PG406")
    assert "1 file of 0 bytes cannot be decoded: 'cat/7.jpg'" in finding.message
    assert codes(collect(make_spec(root, errors={"decode": {"skip": {}}}))) == []


def test_excluded_records_are_in_no_split(files: Files, make_spec: MakeSpec, tmp_path: Path) -> None:
    root = files("cat/*40", "dog/*40")
    exclude = tmp_path / "bad.txt"
    exclude.write_text("# damaged\ncat/7.jpg\n\n  dog/0.jpg\r\ncat/7.jpg\n", encoding="utf-8")
    manifest = collect(make_spec(root, splits={"parts": TWO}, errors={"exclude": str(exclude)})).manifest
    assert manifest is not None
    assert manifest.excluded == ("cat/7.jpg", "dog/0.jpg")
    left = {key for split in manifest.splits for key in manifest.keys(split)}
    assert len(left) == 78
    assert not left & set(manifest.excluded)
    assert len(manifest.labels("train")) == manifest.num_examples("train")


def test_an_exclude_file_that_is_missing_or_names_no_record(files: Files, make_spec: MakeSpec, tmp_path: Path) -> None:
    root = files("cat/*40")
    exclude = tmp_path / "bad.txt"
    spec = make_spec(root, errors={"exclude": str(exclude)})
    assert "cannot be read" in one(collect(spec), "PG413").message
    exclude.write_text(f"{root}/cat/7.jpg\n", encoding="utf-8")
    finding = one(collect(spec), "PG413")
    assert finding.labels[0].path == "errors.exclude"
    assert "is 'cat/7.jpg' meant?" in finding.help[0]


def test_folders_name_the_splits(files: Files, make_spec: MakeSpec) -> None:
    root = files("train/cat/*40", "train/dog/*40", "val/dog/*10")
    splits = {"method": "folder", "parts": {"train": "train", "validation": "val/"}}
    collected = collect(make_spec(root, splits=splits))
    manifest = collected.manifest
    assert manifest is not None
    assert (manifest.class_names, manifest.labels("validation").tolist()) == (("cat", "dog"), [1] * 10)
    assert manifest.keys("validation")[0] == "val/dog/0.jpg"
    assert one(collected, "PG405").labels[0].path == "splits.parts.validation"


def test_folders_that_are_missing_or_share_a_group(files: Files, make_spec: MakeSpec) -> None:
    root = files("train/cat/p1_a.jpg", "val/cat/p1_b.jpg")
    splits: dict[str, Any] = {"method": "folder", "parts": {"train": "train", "validation": "val", "test": "tset"}}
    finding = one(collect(make_spec(root, splits=splits)), "PG401")
    assert finding.labels[0].path == "splits.parts.test"
    del splits["parts"]["test"]
    finding = one(collect(make_spec(root, splits={**splits, "group": {"path": r"p\d"}}, batch={"size": 1})), "PG302")
    assert finding.labels[0].path == "splits.group"


def test_unlabelled_folders_name_the_splits_too(files: Files, make_spec: MakeSpec) -> None:
    splits = {"method": "folder", "parts": {"train": "train", "validation": "val"}}
    manifest = collect(make_spec(files("train/*40", "val/deep/*3"), {"labels": "none"}, splits=splits)).manifest
    assert manifest is not None
    assert manifest.keys("validation") == ("val/deep/0.jpg", "val/deep/1.jpg", "val/deep/2.jpg")


def test_splits_from_different_places(files: Files, make_spec: MakeSpec) -> None:
    root = files("a/cat/*40", "a/dog/*40", "b/cat/*5")
    source = BySplit(parts={"train": ImageFolder(path=str(root / "a")), "test": ImageFolder(path=str(root / "b"))})
    collected = collect(make_spec(source=source))
    manifest = collected.manifest
    assert manifest is not None
    assert manifest.files("test")[0] == str(root / "b/cat/0.jpg")
    assert manifest.keys("test")[0] == "test/cat/0.jpg"
    assert one(collected, "PG405").labels[0].path == "source.by_split.test"


def test_a_class_unknown_to_training(files: Files, make_spec: MakeSpec) -> None:
    root = files("a/cat/*40", "b/cow/*5", "b/cat/*5")
    source = BySplit(parts={"train": ImageFolder(path=str(root / "a")), "test": ImageFolder(path=str(root / "b"))})
    collected = collect(make_spec(source=source))
    assert collected.manifest is None
    finding = one(collected, "PG408")
    assert finding.severity is Severity.ERROR
    assert finding.labels[0].path == "source.by_split.test"
    assert all(word in finding.message for word in ("'cow'", "`test`", str(root / "b/cow")))
