"""The commands that tell something: `show`, `explain`, `help`, `ops`, `rule`, `schema` and `version`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from cli_helpers import GOOD, Cli

import pipegen
from pipegen.cli.reference.section_pages import PAGES, keys_named, source_text
from pipegen.diagnostics.catalog import CODES
from pipegen.migrate.findings import RULES
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.registry import sources, transforms

FULL = """\
pipegen: 1
params:
  data: {type: path, default: photos, env: SHOW_PHOTOS}
  size: {type: int, default: 224, min: 32}
source: {image_folder: {path: $data, classes: [cat, dog, 'yes', a b]}}
splits: {parts: {train: 0.8, validation: 0.2}, stratify: label}
transforms:
  - decode: {exif: ignore}
  - resize: {size: $size}
  - random_rotation: {degrees: [-5, 20], fill: {constant: 7}, when: [train, validation]}  # pipegen: ignore[PG507]
  - random_zoom: {factor: 0.2, fill: {constant: 7}}
  - center_crop: {size: [16, 24]}
  - normalize: {mean: [1, 2, 3], std: [4, 5, 6]}
epoch: {steps: 12}
batch: {size: 8, remainder: {validation: pad}}
shuffle: {window: 1GiB}
output: {x: {input: image}, encode: {label: one_hot}}
errors: {decode: {skip: {max_fraction: 0.1}}}
runtime: {cache: none, threads: 2, ram_budget: 1GiB, shard: {index: 0, count: 2}, prefetch: {device: auto}}
"""
"""A spec that says something in every section."""


UNLABELLED = """\
pipegen: 1
source: {image_folder: {path: $$odd, labels: none}}
transforms: [{resize: {shorter_side: 40}}, {random_crop: {size: 32}}]
"""

BY_SPLIT = """\
pipegen: 1
source: {by_split: {train: {image_folder: {path: a}}, test: {image_folder: {path: b}}}}
transforms: [{resize: {size: 8}}, random_flip]
"""


def origins(text: str) -> dict[str, str]:
    """Comments by key; keys that occur once."""
    return {line.split(":")[0].strip(" #-"): line.rpartition("  # ")[2].strip() for line in text.splitlines() if "  # " in line}


def test_show_says_where_values_come_from(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "full.pipegen.yaml").write_text(FULL)
    monkeypatch.setenv("SHOW_PHOTOS", "elsewhere")
    text = cli("show", "full.pipegen.yaml", "--set", "size=96").stdout
    found = origins(text)
    assert found["path"] == "$SHOW_PHOTOS"
    assert f"path: {tmp_path}/elsewhere " in text
    assert "size: 96 " in text
    assert "# --set size=96\n" in text
    assert found["stratify"] == "full.pipegen.yaml:6:58"
    assert found["labels"] == "default"
    assert found["factor"] == "full.pipegen.yaml:11:27"
    assert text.startswith("# spec_hash: ")
    columns = [line.rindex("  # ") for line in text.splitlines() if line.endswith(" # default")]
    assert len(columns) > 10
    assert len(set(columns)) == 1, "comments are aligned"


@pytest.mark.parametrize("spec", [GOOD, FULL, UNLABELLED], ids=["good", "full", "unlabelled"])
def test_what_show_prints_is_the_same_spec(cli: Cli, tmp_path: Path, spec: str) -> None:
    (tmp_path / "spec.pipegen.yaml").write_text(spec)
    first = cli("show", "spec.pipegen.yaml")
    assert first.exit_code == 0, first.stderr
    (tmp_path / "shown.pipegen.yaml").write_text(first.stdout)
    second = cli("show", "shown.pipegen.yaml")
    assert second.exit_code == 0, second.stderr
    assert second.stdout.splitlines()[0] == first.stdout.splitlines()[0], "the hash"
    a, b = (pipegen.load(tmp_path / f"{name}.pipegen.yaml").model for name in ("spec", "shown"))
    assert a.model_copy(update={"params": {}, "name": None}) == b.model_copy(update={"params": {}, "name": None})


def test_show_by_split_and_defaults_in_words(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.pipegen.yaml").write_text(BY_SPLIT)
    text = cli("show", "s.pipegen.yaml").stdout
    assert f"path: {tmp_path}/b" in text
    assert "# remainder: drop for train, keep elsewhere" in text
    assert "# when: train" in text
    assert "# epoch: one pass over the data" in text


def test_show_as_json(cli: Cli, good: Path) -> None:
    document = json.loads(cli("show", "good.pipegen.yaml", "--format", "json").stdout)
    assert document["spec_hash"] == pipegen.load(good).hash
    assert document["spec"]["transforms"][0]["resize"]["size"] == 16
    assert document["origins"]["transforms[0].resize.size"] == "good.pipegen.yaml:5:20"
    assert document["origins"]["seed"] == "default"


def test_explain_is_short_unless_asked(cli: Cli, good: Path) -> None:
    result = cli("explain", "good.pipegen.yaml")
    assert result.exit_code == 0
    assert "float32[16×16×3] in [0, 255]" in result.stdout
    titles = [line for line in result.stdout.splitlines() if line.startswith("split ")]
    assert titles == ["split train"], "one split"
    assert "because" not in result.stdout, "no passes"
    cost = result.stdout.partition("expected cost of the 5 most expensive stages")[2].partition("in all")[0].splitlines()[1:-1]
    shares = [float(line.split()[0].replace(",", "")) for line in cost]
    assert len(shares) == 5
    assert shares == sorted(shares, reverse=True)
    assert result.stdout.endswith("also: split validation (--split NAME), what each pass did (--passes), everything (--all)\n")
    assert len(result.stdout.splitlines()) <= 40


def test_explain_shows_more_when_asked(cli: Cli, good: Path) -> None:
    passes = cli("explain", "good.pipegen.yaml", "--passes").stdout
    assert "because" in passes
    assert "\nsplit validation\n" not in passes
    everything = cli("explain", "good.pipegen.yaml", "--all").stdout
    assert "\nsplit validation\n" in everything
    assert "because" in everything
    assert "expected cost, in µs" in everything, "of every stage"
    assert "also:" not in everything
    one = cli("explain", "good.pipegen.yaml", "--split", "validation", "--before").stdout
    assert one.startswith("split validation\n")
    assert "as written" in one
    wrong = cli("explain", "good.pipegen.yaml", "--split", "valid")
    assert wrong.exit_code == 2
    assert "did you mean `validation`?" in wrong.stderr


def test_explain_as_json_and_from_standard_input(cli: Cli) -> None:
    document = json.loads(cli("explain", "-", "--format", "json", "--split", "train", stdin=GOOD).stdout)
    assert list(document["splits"]) == ["train"]


def test_explain_as_json_says_which_numbers_each_step_draws(cli: Cli) -> None:
    spec = GOOD.replace("random_flip", "random_rotation: {degrees: 9}\n  - random_contrast: {factor: 0.2}")
    found = cli("explain", "-", "--format", "json", "--split", "train", stdin=spec).stdout
    ranges = {tuple(map(int, pair)) for pair in re.findall(r'"draws": \[\s*(\d+),\s*(-?\d+)\s*\]', found)}
    assert sorted(ranges - {(0, 0)}) == [(0, 1), (1, 2)]


def test_ops_lists_every_op_on_a_line(cli: Cli) -> None:
    lines = cli("ops").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [*sources(), *transforms()]
    assert max(map(len, lines)) <= 110


@pytest.mark.by_day(55)
@pytest.mark.parametrize("name", [*sources(), *transforms()])
def test_each_op_has_a_page_with_every_argument(cli: Cli, name: str) -> None:
    cls = {**sources(), **transforms()}[name]
    result = cli("ops", name)
    assert result.exit_code == 0
    for argument in cls.model_fields if not hasattr(cls, "from_yaml") else ():
        assert f"\n  {argument}: " in result.stdout
        assert "something else" not in result.stdout
    for example in getattr(cls, "examples", ()):
        assert f"  - {example.yaml}\n" in result.stdout


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("random_rotaton", "did you mean `random_rotation`?"),
        ("imagefolder", "write `source: {image_folder: {path: photos/}}`"),
        ("horizontal_flip", "write `random_flip`"),
        ("multi_crop", "write `views: {global: {count: 2, transforms: "),
    ],
)
def test_a_mistyped_op_or_a_word_from_elsewhere(cli: Cli, typo: str, meant: str) -> None:
    result = cli("ops", typo)
    assert result.exit_code == 2
    assert meant in result.stderr


def test_rule_lists_every_code(cli: Cli) -> None:
    assert [line.split()[0] for line in cli("rule").stdout.splitlines()] == [*CODES, *RULES]


@pytest.mark.by_day(90)
@pytest.mark.parametrize("code", [*CODES, *RULES])
def test_each_page_reads_as_text(cli: Cli, code: str) -> None:
    text = cli("rule", code).stdout
    assert text.startswith(f"{code} {(CODES.get(code) or RULES[code]).name}\n")
    for left_over in ("```", "\n#", "\n\n\n"):
        assert left_over not in text
    for title in ("What it finds", "Why", "Bad", "Good") if code in CODES else ("What it finds", "Why", "Before", "After"):
        assert f"\n{title}\n" in text


def test_a_code_by_its_name_or_in_small_letters(cli: Cli) -> None:
    page = cli("rule", "PG214").stdout
    assert cli("rule", "pg214").stdout == page
    assert cli("rule", "standardised-values").stdout == page
    assert "pipegen: 1" in page


def test_a_mistyped_code(cli: Cli) -> None:
    result = cli("rule", "standardized-values")
    assert result.exit_code == 2
    assert "did you mean standardised-values?" in result.stderr
    assert cli("rule", "quux").exit_code == 2
    assert cli("rule", "augmented-validation").stdout == cli("rule", "pg640").stdout


def test_schema_is_printed_written_and_checked(cli: Cli, tmp_path: Path) -> None:
    printed = json.loads(cli("schema").stdout)
    assert printed["title"] == "pipegen spec"
    assert cli("schema", "--check").exit_code == 1, "there is none yet"
    assert cli("schema", "--write").exit_code == 0
    assert json.loads((tmp_path / "schemas" / "pipegen.schema.json").read_text()) == printed
    assert cli("schema", "--check").exit_code == 0
    assert not (tmp_path / "README.md").exists()
    assert not (tmp_path / "docs").exists(), "a folder of specs gets no documentation"


def test_help_lists_every_section(cli: Cli) -> None:
    said = cli("help").stdout
    for section, subject in PAGES.items():
        assert re.search(rf"^  {section} +{re.escape(subject)}$", said, re.MULTILINE)


@pytest.mark.parametrize("section", PAGES)
def test_help_prints_a_section_with_its_keys_and_an_example(cli: Cli, section: str) -> None:
    result = cli("help", section)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{section}\n─")
    assert "\n    pipegen: 1\n" in result.stdout
    for marker in re.findall(r"<!-- keys: (.+) -->", source_text(section)):
        for key in keys_named(marker):
            assert f" {key.path}: {key.accepts}; {key.default} " in " ".join(result.stdout.split())
    for left_over in ("```", "<!--", "\n#", "](", "\n\n\n"):
        assert left_over not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 130


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("batch.remainder", "remainder: `drop`, `keep`, `pad`"),
        ("remainder", "remainder: `drop`, `keep`, `pad`"),
        ("runtime.cache.disk", "cache.disk: text"),
        ("max_fraction", "decode.skip.max_fraction: a number from 0 to 1"),
        ("random_rotation", "random_rotation  (step, geometric, random)"),
        ("image_folder", "image_folder  (source)"),
        ("validate", "Usage: pipegen validate"),
        ("PG503", "PG503 tiny-angle"),
        ("tiny-angle", "PG503 tiny-angle"),
    ],
)
def test_help_takes_keys_steps_commands_and_codes(cli: Cli, topic: str, said: str) -> None:
    assert said in cli("help", topic).stdout


def test_help_on_a_word_with_two_meanings_gives_both(cli: Cli) -> None:
    said = cli("help", "cache").stdout
    assert "List, delete and verify caches on disk" in said
    assert "cache: `auto`, `memory`, `none`" in said
    assert "`pipegen help runtime`" in said


def test_help_and_ops_point_to_each_other(cli: Cli) -> None:
    typo = cli("help", "spilts")
    assert typo.exit_code == 2
    assert "did you mean `splits`?" in typo.stderr
    section = cli("ops", "splits")
    assert section.exit_code == 2
    assert "`pipegen help splits`" in section.stderr


def test_schema_to_another_file_leaves_the_readme_alone(cli: Cli, tmp_path: Path) -> None:
    assert cli("schema", "--write", "own.json").exit_code == 0
    assert (tmp_path / "own.json").exists()
    assert not (tmp_path / "schemas").exists()
    assert cli("schema", "own.json").exit_code == 2
    assert cli("schema", "--write", "--check").exit_code == 2


def test_version_names_what_a_report_needs(cli: Cli) -> None:
    lines = dict(line.split(maxsplit=1) for line in cli("version").stdout.splitlines())
    assert lines["pipegen"] == pipegen.__version__
    assert lines["Python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert {"TensorFlow", "Keras", "platform"} <= set(lines)


def test_every_step_has_a_picture() -> None:
    """What the op reference shows; `python -m docs.make_pictures STEP` draws one."""
    pictures = Path(__file__).parents[2] / "docs" / "pictures"
    drawn = {name for name, step in transforms().items() if not issubclass(step, CustomTransform)}
    assert {p.stem for p in pictures.glob("*.jpg")} == drawn, "what a function of the user's does, nobody knows"
