"""`pipegen fit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_helpers import GOOD, Cli

LEARNS = GOOD.replace("  - random_flip\n", "  - random_flip\n  - standardize: {statistics: featurewise}\n")
WHITENS = GOOD.replace("  - random_flip\n", "  - resize: {size: 4}\n  - whiten: {epsilon: 0.1}\n")


@pytest.mark.tf
def test_fit_prints_what_it_found_and_keeps_it(cli: Cli, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "learns.pipegen.yaml").write_text(LEARNS)
    result = cli("fit", "learns.pipegen.yaml")
    assert result.exit_code == 0, result.output
    first, mean, std, written = result.stdout.splitlines()
    (file,) = (tmp_path / "cache" / "pipegen" / "statistics").iterdir()
    place = "learns.pipegen.yaml:7:5"
    assert first == f"`standardize` ({place}) of `image`: measured on 8 examples of split train, kept in {file}"
    kept: dict[str, Any] = json.loads(file.read_text())
    assert mean == f"  mean [{', '.join(f'{v:.6g}' for v in kept['mean'])}]"
    ((step, arguments),) = yaml.safe_load(written.partition("numbers: ")[2])[0].items()
    assert step == "normalize"
    assert arguments["mean"] == pytest.approx(kept["mean"], rel=1e-5)
    assert std == f"  std  [{', '.join(f'{v:.6g}' for v in arguments['std'])}]"

    again = cli("fit", "learns.pipegen.yaml")
    assert again.stdout.startswith(f"`standardize` ({place}) of `image`: read from {file}\n")
    (plain,) = json.loads(cli("fit", "learns.pipegen.yaml", "--format", "json").stdout)["steps"]
    assert (plain["measured"], plain["examples"], plain["mean"]) == (False, 8, kept["mean"])
    assert "measured on" in cli("fit", "learns.pipegen.yaml", "--again").stdout


def test_fit_of_a_spec_that_learns_nothing(cli: Cli, good: Path) -> None:
    result = cli("fit", "good.pipegen.yaml")
    assert result.exit_code == 0
    assert result.stdout == "nothing to fit: no step of this spec learns from the data\n", "and no data was looked for"


def test_what_is_not_known_yet_is_said(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "learns.pipegen.yaml").write_text(LEARNS)
    assert cli("validate", "learns.pipegen.yaml", "--strict").exit_code == 0, "without any data"
    said = cli("explain", "learns.pipegen.yaml", "--split", "train").stdout
    assert "with numbers of split train, which `pipegen fit` finds, as float32: standardize(statistics: featurewise)" in said
    assert "nan" not in cli("explain", "learns.pipegen.yaml", "--format", "json").stdout.lower()
    (tmp_path / "white.pipegen.yaml").write_text(WHITENS)
    said = cli("explain", "white.pipegen.yaml", "--split", "train").stdout
    assert "image: with numbers of split train, which `pipegen fit` finds: whiten(epsilon: 0.1)" in said


@pytest.mark.tf
def test_fit_of_a_matrix(cli: Cli, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "white.pipegen.yaml").write_text(GOOD.replace("  - random_flip\n", "  - resize: {size: 4}\n  - whiten: {epsilon: 0.1}\n"))
    result = cli("fit", "white.pipegen.yaml")
    assert result.exit_code == 0, result.output
    first, matrix, variances = result.stdout.splitlines()
    (file,) = (tmp_path / "cache" / "pipegen" / "statistics").glob("*.npz")
    assert first == f"`whiten` (white.pipegen.yaml:7:5) of `image`: measured on 8 examples of split train, kept in {file}"
    assert matrix == "  matrix    48×48"
    assert variances.endswith(" of 48 below epsilon 0.1")
