"""Declared params: which value counts, what it may be, and where it goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_helpers import codes, fixed, marked, only, read

from pipegen.spec.load import load

SIZE = "params: {size: {type: int, default: 224, min: 32, max: 512, env: SIZE}}\ntransforms: [{resize: {size: $size}}]\n"


def size(**kwargs: object) -> object:
    loaded = read(SIZE, **kwargs)
    assert codes(loaded) == []
    assert loaded.spec is not None
    return loaded.spec.transforms[0].size  # type: ignore[attr-defined]


def test_given_over_env_over_default() -> None:
    assert size() == 224
    assert size(env={"SIZE": "100"}) == 100
    assert size(env={"SIZE": "100"}, params={"size": "64"}) == 64
    assert size(env={"SIZE": "wrong"}, params={"size": 64}) == 64


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"overrides": {"size": "big"}, "overrides_from": "--set"}, "--set size=big"),
        ({"params": {"size": "big"}}, "params={'size': 'big'}"),
        ({"params": {"size": 1024}}, "from 32 to 512"),
        ({"params": {"size": 1.5}}, "a whole number"),
        ({"params": {"size": True}}, "a whole number"),
        ({"params": {"size": None}}, "gives nothing"),
        ({"env": {"SIZE": ""}}, "$SIZE"),
        ({"env": {"SIZE": "9"}}, "$SIZE"),
    ],
)
def test_a_wrong_value_says_where_it_came_from(kwargs: dict[str, object], words: str) -> None:
    loaded = read(SIZE, **kwargs)
    finding = only(loaded)
    assert finding.code == "PG108"
    assert words in finding.message
    assert marked(finding, loaded) == "size"


def test_an_unknown_name() -> None:
    finding = only(read(SIZE, overrides={"siz": "3"}, overrides_from="--set"))
    assert finding.code == "PG108"
    assert "did you mean `size`?" in finding.help


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "012", 12),
        ("float", "1", 1.0),
        ("float", "1e-3", 0.001),
        ("bool", "true", True),
        ("bool", "0", False),
        ("str", "12", "12"),
        ("str", "", ""),
    ],
)
def test_texts_are_converted_to_the_declared_type(kind: str, text: str, value: object) -> None:
    loaded = read(f"params: {{p: {{type: {kind}}}}}\nname: $p\n", params={"p": text})
    assert loaded.raw["name"] == value
    assert type(loaded.raw["name"]) is type(value)


def test_choices() -> None:
    body = "params: {mode: {type: choice, choices: [random, hash]}}\nsplits: {method: $mode, parts: {train: 0.5}}\n"
    loaded = read(body, params={"mode": "hash"})
    assert loaded.spec is not None
    assert loaded.spec.splits.method == "hash"
    finding = only(read(body, params={"mode": "hsh"}))
    assert "`random` or `hash`" in finding.message
    assert "did you mean `hash`" in finding.message


@pytest.mark.parametrize(
    "declaration",
    [
        "{type: int, default: word}",
        "{type: int, default: 1.5}",
        "{type: int, default: 1, min: 2}",
        "{type: float, default: .nan}",
        "{type: str, min: 1}",
        "{type: choice}",
        "{type: int, choices: [a]}",
        "{type: int, min: 3, max: 2}",
        "{type: choice, choices: [a, b], default: c}",
        "{type: str, default: $other}",
        "224",
    ],
)
def test_unsound_declarations(declaration: str) -> None:
    loaded = read(f"params: {{p: {declaration}}}\nname: $p\n")
    assert codes(loaded) == ["PG108"]


@pytest.mark.parametrize(
    ("declaration", "code"),
    [("{default: 3}", "PG101"), ("{type: itn}", "PG105"), ("{type: int, deflaut: 3}", "PG102"), ("{type: int, env: a-b}", "PG105")],
)
def test_malformed_declarations(declaration: str, code: str) -> None:
    assert codes(read(f"params: {{p: {declaration}}}\nname: $p\n")) == [code]


def test_a_param_without_a_value() -> None:
    loaded = read("params: {p: {type: int}}\nbatch: {size: $p}\n")
    finding = only(loaded)
    assert finding.code == "PG108"
    assert marked(finding, loaded) == "$p"
    assert codes(read("params: {p: {type: int}}\nbatch: {size: $p}\n", params={"p": 3})) == []


def test_unused() -> None:
    loaded = read("params: {p: {type: int, default: 1}}\n")
    finding = only(loaded)
    assert (finding.code, finding.severity.value) == ("PG107", "warning")
    assert loaded.spec is not None


def test_undeclared_with_a_fix() -> None:
    loaded = read("params: {folder: {type: str, default: x}}\nsplits: {group: {path: '${foldr}/(.*)'}}\nname: $folder\n")
    finding = only(loaded)
    assert finding.code == "PG106"
    assert "did you mean `$folder`?" in finding.help
    assert "'${folder}/(.*)'" in fixed(finding, loaded)


@pytest.mark.parametrize("text", ["${", "${}", "${a b}", "${size:-3}"])
def test_what_is_no_reference(text: str) -> None:
    assert codes(read(f"name: 'x {text}'\n")) == ["PG106"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$n", 5),
        ("${n}", 5),
        ("a$n", "a5"),
        ("${n}px", "5px"),
        ("$n$n", "55"),
        ("$$n", "$n"),
        ("$$$n", "$5"),
        ("costs 5$", "costs 5$"),
        ("^a$", "^a$"),
        ("$t", True),
        ("is $t", "is true"),
        ("$f", 0.5),
        ("is $f", "is 0.5"),
        ("$5", "$5"),
    ],
)
def test_alone_it_keeps_its_type_and_in_text_it_is_text(text: str, value: object) -> None:
    head = "params: {n: {type: int, default: 5}, t: {type: bool, default: true}, f: {type: float, default: 0.5}}\n"
    loaded = read(f"{head}description: '{text}'\n")
    assert loaded.raw["description"] == value
    assert type(loaded.raw["description"]) is type(value)


def test_keys_are_not_templated() -> None:
    assert codes(read("params: {n: {type: str, default: batch}}\nname: $n\n$n: {size: 3}\n")) == ["PG102"]


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "here").mkdir()
    spec = tmp_path / "specs" / "a.yaml"
    spec.write_text("pipegen: 1\nparams: {data: {type: path, default: photos, env: DATA}}\nsource: {image_folder: {path: $data/train}}\n")
    monkeypatch.chdir(tmp_path / "here")

    def path(**kwargs: object) -> str:
        loaded = load(spec, **{"env": {}, **kwargs})  # type: ignore[arg-type]
        assert loaded.spec is not None
        return str(loaded.spec.source.path)  # type: ignore[attr-defined]

    assert path() == str(tmp_path / "specs" / "photos" / "train")
    assert path(params={"data": "mine"}) == str(tmp_path / "here" / "mine" / "train")
    assert path(params={"data": Path("mine")}) == str(tmp_path / "here" / "mine" / "train")
    assert path(env={"DATA": "/data"}) == "/data/train"


def test_a_text_from_outside_that_is_a_path_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text("pipegen: 1\nparams: {data: {type: str, default: photos}}\nsource: {image_folder: {path: $data}}\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert load(spec, env={}).raw["source"]["image_folder"]["path"] == str(tmp_path / "photos")
    assert load(spec, env={}, params={"data": "x"}).raw["source"]["image_folder"]["path"] == str(tmp_path / "here" / "x")


def test_a_wrong_value_points_at_its_use_and_at_its_declaration() -> None:
    loaded = read("params: {p: {type: float, default: 2.0}}\ntransforms: [{random_flip: {probability: $p}}]\n")
    finding = only(loaded)
    assert marked(finding, loaded) == "$p"
    assert finding.fix is None
    assert finding.labels[1].text == "`p` is declared here"
    assert any("$p" in line for line in finding.help)


def test_origins() -> None:
    loaded = read(SIZE, env={"SIZE": "64"})
    assert loaded.locate.origin(("transforms", 0, "resize", "size")) == "$SIZE"
    assert read(SIZE).locate.origin(("transforms", 0, "resize", "size")) == "spec.yaml:3:37"


def test_the_process_environment_counts_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIZE", "48")
    assert size(env=None) == 48


@pytest.mark.parametrize("section", ["[]", "3", ""])
def test_a_section_that_is_no_map(section: str) -> None:
    assert codes(read(f"params: {section}\n")) == ["PG104"]


def test_a_bad_name() -> None:
    assert codes(read("params: {a-b: {type: int, default: 1}}\n")) == ["PG107", "PG108"]


@pytest.mark.parametrize(
    ("value", "declaration"),
    [
        ("40", "{type: int, default: 40}"),
        ("1.5", "{type: float, default: 1.5}"),
        ("photos/", "{type: str, default: photos/}"),
        ("[1]", "{type: int, default: 224}"),
    ],
)
def test_a_value_in_place_of_a_declaration_is_kept_in_the_advice(value: str, declaration: str) -> None:
    (found,) = [d for d in read(f"params: {{x: {value}}}\nname: $x\n").diagnostics if d.code == "PG108"]
    assert found.help == (f"write `{declaration}`",)
