"""Short forms of sources: the common part of `by_split`, and class names in a file; and params that are lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_helpers import codes, marked, only, read

from pipegen.spec.load import Loaded, load
from pipegen.spec.spec_hash import spec_hash

FEATURES = "features: {image: {kind: image, column: file}, label: {kind: label, column: breed, classes: [pug, chow]}}"
WHOLE = f"source: {{by_split: {{train: {{csv: {{path: a.csv, {FEATURES}}}}}, test: {{csv: {{path: b.csv, {FEATURES}}}}}}}}}\n"
SHARED = f"source: {{by_split: {{common: {{csv: {{{FEATURES}}}}}, train: {{csv: {{path: a.csv}}}}, test: {{csv: {{path: b.csv}}}}}}}}\n"
HEAD = "pipegen: 1\n"


def of(text: str, **kwargs: object) -> Loaded:
    return read(text, head=HEAD, **kwargs)


def hash_of(loaded: Loaded) -> str:
    assert codes(loaded) == []
    assert loaded.spec is not None
    return spec_hash(loaded.spec)


def test_common_arguments_are_those_of_each_split() -> None:
    assert hash_of(of(SHARED)) == hash_of(of(WHOLE))
    own = SHARED.replace("{path: b.csv}", "{path: b.csv, features: {label: {offset: 1}}}")
    assert hash_of(of(own)) != hash_of(of(WHOLE))
    source = of(own).raw["source"]["by_split"]
    assert source["test"]["csv"]["features"]["label"] == {"kind": "label", "column": "breed", "classes": ["pug", "chow"], "offset": 1}
    assert "offset" not in source["train"]["csv"]["features"]["label"]


def test_a_list_of_a_split_replaces_the_common_one() -> None:
    own = of(SHARED.replace("{path: b.csv}", "{path: b.csv, features: {label: {classes: [chow, pug]}}}"))
    assert codes(own) == []
    assert own.raw["source"]["by_split"]["test"]["csv"]["features"]["label"]["classes"] == ["chow", "pug"]
    assert str(own.locate.spans.values[("source", "by_split", "test", "csv", "features", "label", "classes", 1)]).startswith("spec.yaml:2:")
    assert ("source", "by_split", "train", "csv", "features", "label", "classes", 1) in own.locate.spans.values


def test_other_sources_take_their_own_common_arguments() -> None:
    text = (
        "source: {by_split: {common: {csv: {header: false}, image_folder: {classes: [a, b]}}, "
        "train: {csv: {path: a.csv, features: {image: {kind: image, column: 0}, label: {kind: label, column: 1}}}}, "
        "test: {image_folder: {path: test}}}}\n"
    )
    raw = of(text).raw["source"]["by_split"]
    assert raw["train"]["csv"]["header"] is False
    assert raw["test"] == {"image_folder": {"path": str(Path("test").absolute()), "classes": ["a", "b"]}}


def test_a_finding_is_where_the_value_is_written() -> None:
    loaded = of(SHARED.replace("[pug, chow]", "none"))
    assert set(codes(loaded)) == {"PG104"}
    assert marked(loaded.diagnostics.items[0], loaded) == "none"
    misspelt = of(SHARED.replace("column: breed", "colum: breed"))
    assert "PG102" in codes(misspelt)
    assert marked(misspelt.diagnostics.items[0], misspelt) == "colum"


@pytest.mark.parametrize(
    ("common", "code", "words"),
    [
        ("csv", "PG104", "a map of sources to their arguments, got `csv`"),
        ("{csv: a.csv}", "PG104", "a map of arguments, got `a.csv`"),
        ("{csw: {header: false}}", "PG102", "`common` has arguments of `csw`, but no split has this source"),
    ],
)
def test_a_wrong_common_part(common: str, code: str, words: str) -> None:
    finding = only(of(f"source: {{by_split: {{common: {common}, train: {{image_folder: {{path: a}}}}}}}}\n"))
    assert finding.code == code
    assert words in finding.message


def test_common_parts_in_a_mix_from_outside_and_from_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(HEAD + SHARED)
    extended = load("mine.yaml", text="extends: base.yaml\nsource: {by_split: {common: {csv: {delimiter: ';'}}}}\n", env={})
    assert extended.raw["source"]["by_split"]["test"]["csv"]["delimiter"] == ";"
    given = load("base.yaml", overrides={"source.by_split.common.csv.delimiter": 7}, env={})
    assert {finding.labels[0].text for finding in given.diagnostics} == {"overrides={'source.by_split.common.csv.delimiter': 7}"}
    mixed = of("source: {mix: {parts: {one: {" + SHARED.strip() + "}, two: {source: {image_folder: {path: c}}}}}}\n")
    assert "common" not in mixed.raw["source"]["mix"]["parts"]["one"]["source"]["by_split"]


def test_classes_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/wnids.txt").write_bytes("\ufeff# the order of the paper\r\nn02\r\n\r\n n01 \r\n".encode())
    (tmp_path / "base.yaml").write_text(HEAD + "source: {image_folder: {path: photos, classes: {file: lists/wnids.txt}}}\n")
    monkeypatch.chdir("/")
    loaded = load(tmp_path / "base.yaml", env={})
    assert loaded.raw["source"]["image_folder"]["classes"] == ["n02", "n01"]
    listed = of("source: {image_folder: {path: " + str(tmp_path / "photos") + ", classes: [n02, n01]}}\n")
    assert hash_of(loaded) == hash_of(listed)
    features = f"{{image: {{kind: image, column: 0}}, label: {{kind: label, column: 1, classes: {{file: {tmp_path}/lists/wnids.txt}}}}}}"
    table = f"source: {{csv: {{path: a.csv, features: {features}}}}}\n"
    assert of(table).spec is not None
    assert of(table).raw["source"]["csv"]["features"]["label"]["classes"] == ["n02", "n01"]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("gone.txt", None, "it does not exist"),
        ("empty.txt", b"# nothing\n\n", "it lists no class"),
        ("pixels.txt", b"\xff\xd8\xff\xe0", "it is not UTF-8 text"),
        ("secret.env", b"TOKEN=1\n", "its name does not end in"),
        ("folder.txt", "folder", "is a directory"),
        ("twice.txt", b"a\nb\na\n", "the class 'a' is listed twice"),
    ],
)
def test_a_file_of_classes_that_cannot_be_read(tmp_path: Path, file: str, content: bytes | str | None, words: str) -> None:
    if isinstance(content, bytes):
        (tmp_path / file).write_bytes(content)
    elif content:
        (tmp_path / file).mkdir()
    finding = only(of(f"source: {{image_folder: {{path: a, classes: {{file: {tmp_path / file}}}}}}}\n"))
    assert words.lower() in finding.message.lower()
    assert finding.code == ("PG105" if "twice" in words else "PG123")
    assert "TOKEN" not in str(finding)


@pytest.mark.parametrize("given", ["{fil: a.txt}", "{file: a.txt, more: 1}", "{file: [a.txt]}", "{file: 3}"])
def test_a_map_that_is_no_file_of_classes(given: str) -> None:
    finding = only(of(f"source: {{image_folder: {{path: a, classes: {given}}}}}\n"))
    assert finding.code == "PG104"
    assert "such as `classes: {file: classes.txt}`" in finding.help


def test_a_link_to_another_file_lists_no_classes(tmp_path: Path) -> None:
    (tmp_path / "secret.env").write_text("TOKEN=1\n")
    (tmp_path / "classes.txt").symlink_to(tmp_path / "secret.env")
    assert only(of(f"source: {{image_folder: {{path: a, classes: {{file: {tmp_path}/classes.txt}}}}}}\n")).code == "PG123"


NAMES = "params: {names: {type: list, default: [a, b]}}\nsource: {image_folder: {path: x, classes: $names}}\n"


@pytest.mark.parametrize(
    ("kwargs", "names"),
    [
        ({}, ["a", "b"]),
        ({"overrides": {"names": "[c, 'd, e']"}, "overrides_from": "--set"}, ["c", "d, e"]),
        ({"params": {"names": ("c", "d")}}, ["c", "d"]),
    ],
)
def test_a_param_may_be_a_list(kwargs: dict[str, object], names: list[str]) -> None:
    loaded = of(NAMES, **kwargs)
    assert codes(loaded) == []
    assert loaded.raw["source"]["image_folder"]["classes"] == names


@pytest.mark.parametrize("given", ["a", "{a: 1}", "[[a]]", "3", "[a", ""])
def test_what_is_no_list_of_values(given: str) -> None:
    finding = only(of(NAMES, overrides={"names": given}, overrides_from="--set"))
    assert finding.code == "PG108"
    assert "a list of texts, numbers" in finding.message


def test_a_list_stands_alone() -> None:
    finding = only(of(NAMES.replace("path: x", "path: $names/x")))
    assert finding.code == "PG106"
    assert "a list, which cannot be a part of a text" in finding.message
    assert of(NAMES.replace("[a, b]", "[a, $b]")).diagnostics.items[0].code == "PG108"
    assert of(NAMES.replace("[a, b]", "[a, $$b]")).raw["source"]["image_folder"]["classes"] == ["a", "$b"]
