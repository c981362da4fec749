"""`pipegen diff`: formats and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import Cli

SPEC = """\
pipegen: 1
source: {image_folder: {path: photos}}
splits: {parts: {train: 0.8, validation: 0.2}}
transforms: [{resize: {size: 24}}, random_flip]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, new in (("a", "24"), ("b", "32"), ("wrong", "big")):
        Path(f"{name}.yaml").write_text(SPEC.replace("24", new))
    Path("moved.yaml").write_text(SPEC.replace("photos", "others") + "name: c\n")
    Path("fast.yaml").write_text(SPEC + "name: c\nruntime: {threads: 2}\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("a.yaml", "b.yaml"), 1),
        (("a.yaml", "a.yaml"), 0),
        (("a.yaml", "fast.yaml"), 0),
        (("a.yaml", "moved.yaml"), 0),
        (("a.yaml", "moved.yaml", "--strict"), 1),
        (("a.yaml", "b.yaml", "--set", "transforms.resize.size=48"), 0),
        (("a.yaml", "wrong.yaml"), 2),
        (("a.yaml", "none.yaml"), 2),
        (("a.yaml", "HEAD:a.yaml"), 2),
        (("a.yaml", "none.lock"), 2),
        (("a.yaml",), 2),
        (("-", "-"), 2),
    ],
)
def test_exit_codes(cli: Cli, arguments: tuple[str, ...], code: int) -> None:
    assert cli("diff", *arguments).exit_code == code


def test_formats(cli: Cli) -> None:
    text = cli("diff", "a.yaml", "b.yaml").stdout
    assert "other numbers\n  transforms[0].resize.size: 24 → 32  (b.yaml:4:30)\n" in text
    document = json.loads(cli("diff", "a.yaml", "b.yaml", "--format", "json").stdout)
    assert (document["version"], document["same_numbers"], document["draws"]["kept"]) == (1, False, ["random_flip"])
    assert document["summary"] == {"numbers": 1, "perhaps": 0, "speed": 0, "nothing": 0}
    assert document["changes"][0]["span"]["line"] == 4
    assert cli("diff", "a.yaml", "b.yaml", "--format", "github").stdout.startswith("::warning file=b.yaml,line=4,")


def test_standard_input(cli: Cli) -> None:
    result = cli("diff", "a.yaml", "-", stdin=SPEC.replace("24", "32"))
    assert result.exit_code == 1
    assert result.stdout.startswith("a.yaml → <stdin>: The model sees other numbers.")


def test_a_wrong_spec_is_told_with_its_findings(cli: Cli) -> None:
    result = cli("diff", "a.yaml", "wrong.yaml")
    assert "wrong.yaml:4:30" in result.stderr
    assert result.stdout == ""
