"""`splits.exclude` leaves records out and moves no other, however they were assigned; `errors.exclude` comes before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from record_files import png, write_tfrecord

from pipegen.data.collect import collect
from pipegen.phases.compilation import load
from pipegen.spec.spec_hash import spec_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.data.manifest import Manifest

PARTS = {"train": 0.7, "validation": 0.3}
RESIZE = [{"resize": {"size": 8}}]
METHODS: dict[str, dict[str, Any]] = {
    "random": {"parts": PARTS},
    "stratified": {"parts": PARTS, "stratify": "label"},
    "grouped": {"parts": PARTS, "group": {"path": r"(\d)\.jpg"}},
    "folds": {"folds": {"count": 3, "fold": 1}, "parts": {"test": 0.2}},
    "keras": {"parts": PARTS, "method": "keras"},
    "keras_utility": {"parts": PARTS, "method": "keras_utility", "seed": 7},
    "hash": {"parts": PARTS, "method": "hash"},
}


def made(spec: Any) -> Manifest:
    collected = collect(spec)
    assert collected.manifest is not None, [d.message for d in collected.diagnostics]
    assert not [d for d in collected.diagnostics if d.code == "PG411"]
    return collected.manifest


@pytest.mark.parametrize("method", METHODS)
def test_no_other_record_moves(method: str, files: Callable[..., Path], make_spec: Callable[..., Any], tmp_path: Path) -> None:
    root = files("cat/*37", "dog/*23")
    section, batch = METHODS[method], {"size": 1}
    before = made(make_spec(root, splits=section, batch=batch))
    out = [*before.keys("train")[::5], before.keys("validation")[0]]
    (tmp_path / "copies.txt").write_text("# copies\n" + "\n".join(out))
    spec = make_spec(root, splits={**section, "exclude": str(tmp_path / "copies.txt")}, batch=batch)
    after = made(spec)
    for split in before.splits:
        assert list(after.keys(split)) == [key for key in before.keys(split) if key not in out]
    assert sorted(after.left_out) == sorted(out)
    assert after.fingerprint == before.fingerprint, "so that caches go on"
    assert after.split_fingerprint != before.split_fingerprint, "and states of a run do not"
    assert spec_hash(spec) == spec_hash(make_spec(root, splits=section, batch=batch))


def test_excluding_before_moves_others(files: Callable[..., Path], make_spec: Callable[..., Any], tmp_path: Path) -> None:
    root = files("cat/*40")
    before = made(make_spec(root, splits={"parts": PARTS}, batch={"size": 1}))
    out = list(before.keys("train")[:5])
    (tmp_path / "bad.txt").write_text("\n".join(out))
    after = made(make_spec(root, splits={"parts": PARTS}, errors={"exclude": str(tmp_path / "bad.txt")}, batch={"size": 1}))
    assert set(after.keys("train")) != set(before.keys("train")) - set(out)


def test_one_file_may_serve_both(files: Callable[..., Path], make_spec: Callable[..., Any], tmp_path: Path) -> None:
    root = files("cat/*40")
    (tmp_path / "bad.txt").write_text("cat/7.jpg\n")
    (tmp_path / "copies.txt").write_text("cat/7.jpg\ncat/8.jpg\n")
    splits = {"parts": PARTS, "exclude": str(tmp_path / "copies.txt")}
    manifest = made(make_spec(root, splits=splits, errors={"exclude": str(tmp_path / "bad.txt")}, batch={"size": 1}))
    assert (manifest.excluded, manifest.left_out) == (("cat/7.jpg",), ("cat/8.jpg",))


def test_a_list_that_is_missing_or_names_no_record_is_found(
    files: Callable[..., Path], make_spec: Callable[..., Any], tmp_path: Path
) -> None:
    root = files("cat/*40")
    spec = make_spec(root, splits={"parts": PARTS, "exclude": str(tmp_path / "copies.txt")})
    (finding,) = [d for d in collect(spec).diagnostics if d.code == "PG413"]
    assert (finding.labels[0].path, "pipegen report" in finding.help[0]) == ("splits.exclude", True)
    (tmp_path / "copies.txt").write_text(f"{root}/cat/7.jpg\n")
    (finding,) = [d for d in collect(spec).diagnostics if d.code == "PG413"]
    assert "is 'cat/7.jpg' meant?" in finding.help[0]


@pytest.mark.parametrize("section", [{}, {"method": "random", "stratify": "label"}], ids=["by hash", "ranked"])
def test_records_that_lie_many_in_a_file(section: dict[str, Any], tmp_path: Path) -> None:
    for shard in range(2):
        write_tfrecord(tmp_path / f"{shard}.tfrecord", [{"image": png(shard, row, 0), "label": row % 2} for row in range(20)])
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}
    source = {"tfrecord": {"path": str(tmp_path / "*.tfrecord"), "features": features}}
    plain = {"pipegen": 1, "source": source, "splits": {"parts": PARTS, **section}, "transforms": RESIZE, "batch": {"size": 1}}

    def made_of(spec: dict[str, Any]) -> Manifest:
        return made(load(spec).model)

    before = made_of(plain)
    out = [*list(before.keys("train"))[::5], before.keys("validation")[0]]
    (tmp_path / "copies.txt").write_text("\n".join(out))
    after = made_of(plain | {"splits": plain["splits"] | {"exclude": str(tmp_path / "copies.txt")}})
    for split in before.splits:
        kept = [i for i, key in enumerate(before.keys(split)) if key not in out]
        assert list(after.keys(split)) == [before.keys(split)[i] for i in kept]
        assert after.ids(split).tolist() == before.ids(split)[kept].tolist()
    assert sorted(after.left_out) == sorted(out)
    assert after.fingerprint == before.fingerprint
    assert after.split_fingerprint != before.split_fingerprint

    # Beside a mix, names begin with the part: one list is for all of them.
    parts = {"a": {"weight": 1, "source": source, "splits": plain["splits"]}, "b": {"weight": 1, "source": source}}
    mix = {"pipegen": 1, "source": {"mix": {"epoch": 8, "parts": parts}}, "transforms": RESIZE, "batch": {"size": 1}}
    whole = made_of(mix)
    gone = [*list(whole.keys("train"))[::7], "b/1.tfrecord#7"]
    (tmp_path / "copies.txt").write_text("\n".join(gone))
    mixed = made_of(mix | {"splits": {"exclude": str(tmp_path / "copies.txt")}})
    assert sorted(mixed.left_out) == sorted({*gone})
    assert {key.partition("/")[0] for key in gone} == {"a", "b"}
    for split in whole.splits:
        assert list(mixed.keys(split)) == [key for key in whole.keys(split) if key not in gone]
    (tmp_path / "copies.txt").write_text("a/1.tfrecord#20\nb/1.tfrecord\n")
    every = collect(load(mix | {"splits": {"exclude": str(tmp_path / "copies.txt")}}).model).diagnostics
    (finding,) = [d for d in every if d.code != "PG627"]  # of parts by hash
    assert (finding.code, finding.labels[0].path) == ("PG413", "splits.exclude")
    assert "2 entries of" in finding.message
    assert "such as 'a/0.tfrecord#0'" in finding.help[0]
