"""`pipegen validate` without data: which specs, which format, which exit code, and `--fix`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import GOOD, Cli

BAD = GOOD.replace("- random_flip", "- random_flip: {probabilty: 0.5}")
UNWISE = GOOD.replace("random_flip", "random_rotation: {degrees: 0.3}")


def test_a_fine_spec_is_described(cli: Cli, good: Path) -> None:
    result = cli("validate", "good.pipegen.yaml")
    assert result.exit_code == 0
    assert result.stdout == "good.pipegen.yaml: fine (2 splits, 2 steps, images 16×16×3 float32)\n"


def test_every_spec_below_the_working_directory_by_default(cli: Cli, tmp_path: Path) -> None:
    for name in ("a.pipegen.yaml", "inner/b.pipegen.yaml", ".hidden/c.pipegen.yaml", "env/d.pipegen.yaml", "inner/other.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    lines = cli("validate").stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["a.pipegen.yaml", "inner/b.pipegen.yaml"]
    assert cli("validate", "inner").stdout.startswith("inner/b.pipegen.yaml: fine")


def test_a_file_is_taken_whatever_its_name_and_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(GOOD)
    result = cli("validate", "spec.yaml", "spec.yaml")
    assert result.stdout.count("fine") == 1


def test_nothing_to_validate_is_2_with_a_way_out(cli: Cli) -> None:
    result = cli("validate")
    assert result.exit_code == 2
    assert "there is no *.pipegen.yaml in or below the working directory" in result.stderr
    assert "pipegen init" in result.stderr


def test_a_missing_file_is_2_and_the_others_are_still_checked(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.pipegen.yaml").write_text(BAD)
    result = cli("validate", "bad.pipegen.yaml", "bda.pipegen.yaml")
    assert result.exit_code == 2
    assert "error[PG102]" in result.stdout
    assert "error[PG005]" in result.stdout
    assert "did you mean `bad.pipegen.yaml`?" in result.stdout


def test_a_missing_file_like_no_other_is_named_by_its_full_path(cli: Cli, tmp_path: Path) -> None:
    result = cli("validate", "specs/qqqq.yaml")
    assert result.exit_code == 2
    assert f"itsfullpathis{tmp_path}/specs/qqqq.yaml" in "".join((result.stdout + result.stderr).split())


def test_findings_are_shown_in_place_and_counted(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.pipegen.yaml").write_text(BAD)
    result = cli("validate", "bad.pipegen.yaml")
    assert result.exit_code == 1
    assert "--> bad.pipegen.yaml:6:19" in result.stdout
    assert result.stdout.endswith("\n1 error; 1 fixable with `pipegen validate --fix`\n")
    assert result.stderr == ""


def test_warnings_count_only_when_strict(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "unwise.pipegen.yaml").write_text(UNWISE)
    result = cli("validate")
    assert "warning[PG503]" in result.stdout
    assert result.exit_code == 0
    assert cli("validate", "--strict").exit_code == 1


def test_standard_input(cli: Cli) -> None:
    result = cli("validate", "-", stdin=GOOD)
    assert result.exit_code == 0
    assert result.stdout.startswith("<stdin>: fine")
    result = cli("validate", "-", stdin=BAD)
    assert result.exit_code == 1
    assert "--> <stdin>:6:19" in result.stdout
    assert "probabilty" in result.stdout
    assert "PG001" in cli("validate", "-", stdin=b"\xff\xfe\x00binary").stdout
    assert "PG003" in cli("validate", "-", stdin="a: " + "x" * 2**21).stdout


def test_json_is_one_document_for_all_specs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.pipegen.yaml").write_text(BAD)
    (tmp_path / "b.pipegen.yaml").write_text(UNWISE)
    result = cli("validate", "--format", "json")
    document = json.loads(result.stdout)
    assert [(d["code"], d["labels"][0]["span"]["file"]) for d in document["diagnostics"]] == [
        ("PG102", "a.pipegen.yaml"),
        ("PG503", "b.pipegen.yaml"),
    ]
    assert document["summary"] == {"errors": 1, "warnings": 1, "infos": 0, "safe_fixes": 1, "suggestions": 0}
    assert result.exit_code == 1


def test_a_finding_in_a_shared_base_counts_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(UNWISE)
    for name in ("a", "b"):
        (tmp_path / f"{name}.pipegen.yaml").write_text("extends: base.yaml\n")
    assert len(json.loads(cli("validate", "--format", "json").stdout)["diagnostics"]) == 1


def test_github_and_sarif(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.pipegen.yaml").write_text(BAD)
    assert cli("validate", "--format", "github").stdout.startswith("::error file=bad.pipegen.yaml,line=6,")
    log = json.loads(cli("validate", "--format", "sarif").stdout)
    assert log["version"] == "2.1.0"
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == ["PG102"]


def test_set_gives_params_their_values(cli: Cli, tmp_path: Path) -> None:
    text = GOOD.replace("size: 16", "size: $size").replace("source", "params: {size: {type: int, default: 16, max: 64}}\nsource")
    (tmp_path / "knobs.pipegen.yaml").write_text(text)
    assert "32×32×3" in cli("validate", "--set", "size=32").stdout
    result = cli("validate", "--set", "size=128")
    assert result.exit_code == 1
    assert "--set size=128" in result.stdout
    assert cli("validate", "--set", "size").exit_code == 2


def test_fix_mends_the_file_and_says_what(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.pipegen.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + BAD.replace("pipegen: 1\n", "").replace("\n", "\r\n").encode())
    result = cli("validate", "--fix")
    assert result.exit_code == 0, result.output
    assert "fixed bad.pipegen.yaml:" in result.stderr
    assert "rename `probabilty` to `probability`" in result.stderr
    assert "bad.pipegen.yaml: fine" in result.stdout
    text = path.read_bytes()
    assert b"random_flip: {probability: 0.5}" in text
    assert text.startswith(b"\xef\xbb\xbfpipegen: 1")
    assert text.count(b"\r\n") >= BAD.count("\n") - 1, "line ends stay"


@pytest.mark.parametrize(
    ("steps", "mended"),
    [
        ("  resize: {size: 8}\n  random_flip: {axis: vertical}\n", "  - resize: {size: 8}\n  - random_flip: {axis: vertical}\n"),
        ("    resize: {size: 8}  # small\n", "    - resize: {size: 8}  # small\n"),
        ("  resize:\n    size: 8\n", None),
        ("  {resize: {size: 8}, random_flip: {axis: vertical}}\n", None),
    ],
)
def test_fix_puts_dashes_before_steps_in_lines_of_their_own(cli: Cli, tmp_path: Path, steps: str, mended: str | None) -> None:
    head = "pipegen: 1\nsource: {image_folder: {path: x/}}\nsplits: {parts: {train: 0.8, validation: 0.2}}\ntransforms:\n"
    file = tmp_path / "a.pipegen.yaml"
    file.write_text(head + steps)
    result = cli("validate", "a.pipegen.yaml", "--fix")
    assert file.read_text() == head + (mended or steps)
    assert result.exit_code == (1 if mended is None else 0), result.output


def test_fix_leaves_what_has_no_certain_fix(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.pipegen.yaml"
    path.write_text(BAD.replace("size: 16", "size: huge"))
    result = cli("validate", "--fix")
    assert result.exit_code == 1
    assert "size: huge" in path.read_text()
    assert "probability" in path.read_text()
    assert "PG102" not in result.stdout


def test_a_suggestion_waits_for_its_own_option(cli: Cli, tmp_path: Path) -> None:
    """`cut_out` became `random_erasing` with arguments of its own, and `rotate` a turn of every image of every split."""
    path = tmp_path / "bad.pipegen.yaml"
    for wrong in ("cut_out", "rotate: {degrees: 20}", "random_flap"):
        text = GOOD.replace("random_flip", wrong)
        path.write_text(text)
        result = cli("validate", "--fix")
        assert result.exit_code == 1
        assert path.read_text() == text
    assert "suggestion: write `random_flip` (`pipegen validate --unsafe-fixes` applies it)" in result.stdout
    assert result.stdout.endswith("1 error; 1 fixable with `pipegen validate --unsafe-fixes`\n")
    assert cli("validate", "--unsafe-fixes").exit_code == 0
    assert path.read_text() == GOOD


def test_fix_reaches_a_base(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BAD)
    (tmp_path / "a.pipegen.yaml").write_text("extends: base.yaml\n")
    assert cli("validate", "--fix").exit_code == 0
    assert "probability" in (tmp_path / "base.yaml").read_text()


@pytest.mark.parametrize("broken", ["random_flip: {probability: 0.5", "{random_flip: [", "a: b: c", "'"])
def test_fixes_that_leave_no_yaml_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str) -> None:
    """Whichever fix is wrong, alone or beside the others: what is written can be read."""
    from types import SimpleNamespace
    from typing import Any

    from pipegen.cli import validate
    from pipegen.diagnostics.catalog import make
    from pipegen.diagnostics.diagnostic import Applicability, Diagnostics, Edit, Fix, Label, Span

    path = tmp_path / "bad.pipegen.yaml"
    path.write_text(BAD)
    first, later = Diagnostics(), Diagnostics()
    for line, start, end, text in ((6, 5, 35, broken), (7, 15, 16, "3"), (4, 12, 12, " {")):
        span = Span(str(path), line, start, line, end)
        finding = make("PG105", "wrong", Label(span), fix=Fix(f"write {text}", (Edit(span, text),), Applicability.SAFE))
        for found in (first, later) if text != "3" else (first,):
            found.add(finding)
    rounds = iter([SimpleNamespace(diagnostics=first)])
    given: Any = SimpleNamespace(examine=lambda _: next(rounds, SimpleNamespace(diagnostics=later)))
    validate.fix_spec(str(path), given)
    assert path.read_text() == BAD.replace("{size: 2}", "{size: 3}")
    assert "- random_flip: {probabilty: 0.5}" in path.read_text()
    said = capsys.readouterr().err
    assert said.count("fixed ") == 1
    assert f"{path}:7:15: write 3" in said
    assert f"left out {path}:6:5: write {broken}: the file would be invalid YAML" in said
    assert f"left out {path}:4:12" in said


def test_fixes_of_a_spec_that_cannot_be_read_go_one_by_one(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.pipegen.yaml"
    path.write_text(GOOD.replace("source: {", "name:flowers\nsource: {").replace("batch: {", "seed:1\nbatch: {"))
    assert cli("validate", "--fix").exit_code == 0
    assert path.read_text() == GOOD.replace("source: {", "name: flowers\nsource: {").replace("batch: {", "seed: 1\nbatch: {")


def test_standard_input_cannot_be_fixed(cli: Cli) -> None:
    result = cli("validate", "--fix", "-", stdin=BAD)
    assert result.exit_code == 2
    assert "standard input" in result.stderr


@pytest.mark.parametrize("args", [("--write-exclude", "x.txt"), ("--data=some",), ("--data=0",)])
def test_data_options_that_make_no_sense(cli: Cli, good: Path, args: tuple[str, ...]) -> None:
    assert cli("validate", *args).exit_code == 2


def test_data_that_is_not_there_is_a_note(cli: Cli, tmp_path: Path, good: Path) -> None:
    (tmp_path / "photo").mkdir()
    result = cli("validate", "good.pipegen.yaml", "--strict")
    assert result.exit_code == 0
    assert "fine" in result.stdout
    assert "note: good.pipegen.yaml:2:31: there is no folder" in result.stderr
    assert "holds 'photo'" in result.stderr
    assert json.loads(cli("validate", "good.pipegen.yaml", "--format", "json").stdout)["diagnostics"] == []
    (tmp_path / "photo").rename(tmp_path / "photos")
    assert not cli("validate", "good.pipegen.yaml").stderr


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("{csv: {path: t.csv, features: {image: {kind: image, column: a, root: pictures}}}}", ["t.csv", "pictures"]),
        (
            "{files: {features: {image: {kind: image, path: a/b*/**/*.jpg}, mask: {kind: mask, path: masks, values: {0: 0}}}}}",
            ["/a'", "masks"],
        ),
        ("{by_split: {train: {image_folder: {path: a}}, test: {image_folder: {path: '.'}}}}", ["/a'"]),
        ("{arrays: {path: x.npz, features: {image: {kind: image, size: 8, channels: 3}}}}", ["x.npz"]),
    ],
)
def test_every_path_of_a_source_is_looked_for(cli: Cli, tmp_path: Path, source: str, missing: list[str]) -> None:
    y = "null" if "kind: mask" not in source else "mask"
    text = f"pipegen: 1\nsource: {source}\ntransforms: [{{resize: {{size: 8}}}}]\noutput: {{x: image, y: {y}}}\n"
    if "by_split" in source:
        text = text.replace("output: {x: image, y: null}\n", "")
    (tmp_path / "s.pipegen.yaml").write_text(text)
    result = cli("validate", "s.pipegen.yaml")
    assert result.exit_code == 0, result.stdout
    said = result.stderr.splitlines()
    assert len(said) == len(missing)
    assert all(name in line for name, line in zip(missing, said, strict=True))


def test_lock_finds_the_specs_of_a_folder_without_a_lock(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    """As `validate` does; `--check` has nothing to compare."""
    refused = cli("lock", "--check")
    assert refused.exit_code == 2
    assert "`pipegen lock` writes one" in refused.stderr
    result = cli("lock")
    assert result.exit_code == 0, result.output
    assert "good.pipegen.yaml" in (tmp_path / "pipegen.lock").read_text()
    assert cli("lock", "--check").exit_code == 0
