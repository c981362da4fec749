"""Specs laid over base specs, with places that point into the right file."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_helpers import codes, fixed, only

from pipegen.spec.compose import MAX_BYTES
from pipegen.spec.load import Loaded, load

BASE = """\
pipegen: 1
params:
  size: {type: int, default: 224}
source: {image_folder: {path: data}}
transforms:
  - resize: {size: $size}
  - random_flip
batch: {size: 64, remainder: drop}
shuffle: {window: 1GiB}
runtime: {cache: auto}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "base.pipegen.yaml").write_text(BASE)
    return tmp_path


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


def over(files: Path, text: str, **kwargs: object) -> Loaded:
    write(files, "mine.pipegen.yaml", f"extends: shared/base.pipegen.yaml\n{text}")
    return load("mine.pipegen.yaml", env={}, **kwargs)  # type: ignore[arg-type]


def test_maps_merge_and_the_rest_replaces(files: Path) -> None:
    loaded = over(files, "batch: {size: 8}\ntransforms: [{resize: {size: 32}}]\nparams: {size: {default: 100}}\n")
    assert codes(loaded) == ["PG107"]  # the only use of `$size` is replaced
    assert loaded.spec is not None
    assert loaded.spec.batch.size == 8
    assert loaded.spec.batch.remainder == "drop"
    assert len(loaded.spec.transforms) == 1
    assert loaded.spec.name == "mine"
    assert loaded.spec.params["size"].default == 100


def test_paths_are_relative_to_the_file_that_they_stand_in(files: Path) -> None:
    loaded = over(files, "errors: {exclude: bad.txt}\nruntime: {cache: {disk: cache}}\n")
    assert loaded.raw["source"]["image_folder"]["path"] == str(files / "shared" / "data")
    assert loaded.raw["errors"]["exclude"] == str(files / "bad.txt")
    assert loaded.raw["runtime"]["cache"]["disk"] == str(files / "cache")


def test_findings_point_into_the_file_that_the_value_came_from(files: Path) -> None:
    (files / "shared" / "base.pipegen.yaml").write_text(BASE.replace("batch: {size: 64,", "batch: {size: 0,"))
    loaded = over(files, "seed: -1\n")
    assert {str(d.span) for d in loaded.diagnostics} == {"mine.pipegen.yaml:2:7", "shared/base.pipegen.yaml:8:15"}


def test_origins(files: Path) -> None:
    loaded = over(files, "batch: {size: 8}\n", overrides={"size": "99"}, overrides_from="--set")
    origin = loaded.locate.origin
    assert origin(("batch", "size")) == "mine.pipegen.yaml:2:15"
    assert origin(("batch", "remainder")) == "shared/base.pipegen.yaml:8:30"
    assert origin(("transforms", 0, "resize", "size")) == "--set size=99"
    assert origin(("transforms", 0, "resize", "mode")) == "default"
    assert origin(("seed",)) == "default"


def test_another_word_of_a_choice_replaces_it(files: Path) -> None:
    loaded = over(files, "source: {by_split: {train: {image_folder: {path: a}}}}\nshuffle: none\n")
    assert codes(loaded) == []
    assert loaded.spec is not None
    assert loaded.spec.source.op == "by_split"
    assert loaded.spec.shuffle == "none"


def test_the_same_word_of_a_choice_merges(files: Path) -> None:
    loaded = over(files, "source: {image_folder: {labels: none}}\n")
    assert loaded.spec is not None
    assert loaded.spec.source.path == str(files / "shared" / "data")  # type: ignore[attr-defined]
    assert not loaded.spec.source.has_labels()


def test_a_chain(files: Path) -> None:
    write(files, "middle.pipegen.yaml", "extends: shared/base.pipegen.yaml\nseed: 1\nbatch: {size: 2}\n")
    write(files, "top.pipegen.yaml", "extends: middle.pipegen.yaml\nseed: 2\n")
    loaded = load("top.pipegen.yaml", env={})
    assert loaded.spec is not None
    assert (loaded.spec.seed, loaded.spec.batch.size) == (2, 2)
    assert set(loaded.texts) == {"top.pipegen.yaml", "middle.pipegen.yaml", "shared/base.pipegen.yaml"}


def test_a_circle_shows_the_chain(files: Path) -> None:
    write(files, "a.yaml", "extends: b.yaml\n")
    write(files, "b.yaml", "extends: ./a.yaml\n")
    finding = only(load("a.yaml", env={}))
    assert finding.code == "PG109"
    assert "a.yaml -> b.yaml -> a.yaml" in finding.message
    assert str(finding.span) == "b.yaml:1:10"


def test_a_spec_that_extends_itself(files: Path) -> None:
    write(files, "a.yaml", "extends: a.yaml\n")
    assert codes(load("a.yaml", env={})) == ["PG109"]


def test_a_missing_base_is_the_only_finding_and_offers_a_near_name(files: Path) -> None:
    write(files, "mine.yaml", "extends: shared/bse.pipegen.yaml\nbatch: {size: $size}\n")
    loaded = load("mine.yaml", env={})
    finding = only(loaded)
    assert finding.code == "PG110"
    assert finding.help == ("did you mean `base.pipegen.yaml`?",)
    assert fixed(finding, loaded).splitlines()[0] == "extends: shared/base.pipegen.yaml"


def test_a_damaged_base(files: Path) -> None:
    (files / "shared" / "base.pipegen.yaml").write_text("a: [\n")
    finding = only(over(files, "seed: 1\n"))
    assert finding.code == "PG002"
    assert finding.span is not None
    assert finding.span.file == "shared/base.pipegen.yaml"


@pytest.mark.parametrize("large", ["mine.pipegen.yaml", "shared/base.pipegen.yaml"])
def test_a_spec_that_is_too_large_is_told_also_where_its_beginning_is_one(files: Path, large: str) -> None:
    write(files, "mine.pipegen.yaml", "extends: shared/base.pipegen.yaml\n")
    with (files / large).open("a") as stream:
        stream.write("#" * MAX_BYTES)
    found = only(load("mine.pipegen.yaml", env={}))
    assert found.span is not None
    assert (found.code, found.span.file) == ("PG003", large)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("pkg:vision/base.yaml", "PG113"),
        ("[a.yaml]", "PG110"),
        ("[]", "PG104"),
        ("[[a.yaml]]", "PG104"),
        ("shared", "PG110"),
        ("''", "PG104"),
    ],
)
def test_what_extends_cannot_be(files: Path, value: str, code: str) -> None:
    write(files, "mine.yaml", f"extends: {value}\n")
    assert codes(load("mine.yaml", env={})) == [code]


def test_a_spec_in_another_folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(files, "mine.yaml", "extends: shared/base.pipegen.yaml\nseed: x\n")
    (files / "elsewhere").mkdir()
    monkeypatch.chdir(files / "elsewhere")
    loaded = load("../mine.yaml", env={})
    assert loaded.raw["source"]["image_folder"]["path"] == str(files / "shared" / "data")
    assert str(only(loaded).span) == "../mine.yaml:2:7"


def test_a_mapping_may_extend_a_file(files: Path) -> None:
    loaded = load({"extends": "shared/base.pipegen.yaml", "batch": {"size": 0}}, env={})
    finding = only(loaded)
    assert finding.primary is not None
    assert finding.primary.path == "batch.size"


def test_a_null_replaces_too(files: Path) -> None:
    loaded = over(files, "output: {y: ~}\nbatch: {remainder: ~}\n")
    assert loaded.spec is not None
    assert loaded.spec.output.y is None
    assert loaded.spec.batch.remainder is None
