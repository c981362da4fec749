"""`pipegen test`, and the tests that `validate --data` runs: exit codes, formats, selection. None of these needs TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_helpers import GOOD, ROOT, Cli

TESTS = (
    GOOD
    + """\
tests:
  - examples: {min: 16}
  - balance: 2
  - unique: {path: '([^/]+)$', severity: warning}
"""
)


@pytest.fixture
def tested(tmp_path: Path, photos: Path) -> Path:
    """`tested.pipegen.yaml` in the working directory, with two tests that pass and one that warns."""
    path = tmp_path / "tested.pipegen.yaml"
    path.write_text(TESTS, encoding="utf-8")
    return path


def test_exit_codes(cli: Cli, tested: Path) -> None:
    result = cli("test", "tested.pipegen.yaml")
    assert result.exit_code == 0, result.output
    assert "passed  examples  16 examples in `train` and `validation`" in result.stdout
    assert "tested.pipegen.yaml:11:" in result.stdout
    assert "3 tests: 2 passed, 1 warned (" in result.stdout
    assert cli("test", "tested.pipegen.yaml", "--strict").exit_code == 1
    failing = cli("test", "tested.pipegen.yaml", "--set", "tests.examples.min=17")
    assert failing.exit_code == 1
    assert "error[PG710]" in failing.stdout
    assert cli("test", "nowhere.pipegen.yaml").exit_code == 2


def test_a_spec_without_tests_says_what_a_test_is(cli: Cli, good: Path) -> None:
    result = cli("test", "good.pipegen.yaml")
    assert result.exit_code == 2
    assert "the spec has no `tests`" in result.stderr
    assert "examples: {split: train, min: 1000}" in result.stderr


def test_missing_data_is_an_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lost.pipegen.yaml").write_text(TESTS, encoding="utf-8")
    result = cli("test", "lost.pipegen.yaml")
    assert result.exit_code == 1
    assert "PG401" in result.stderr


def test_what_keeps_tests_from_running_is_in_the_report(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lost.pipegen.yaml").write_text(TESTS, encoding="utf-8")
    result = cli("test", "lost.pipegen.yaml", "--format", "junit")
    assert result.exit_code == 1
    suite = ElementTree.fromstring(result.stdout)[0]
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    assert suite[0].find("error").get("type") == "PG401"
    (tmp_path / "lost.pipegen.yaml").write_text(TESTS.replace("balance", "balanec"), encoding="utf-8")
    result = cli("test", "lost.pipegen.yaml", "--format", "json")
    assert result.exit_code == 1
    assert [d["code"] for d in json.loads(result.stdout)["diagnostics"]] == ["PG103"]


def test_selection(cli: Cli, tested: Path) -> None:
    result = cli("test", "tested.pipegen.yaml", "--select", "bal*", "--select", "examples")
    assert "2 tests: 2 passed (" in result.stdout
    wrong = cli("test", "tested.pipegen.yaml", "--select", "balence")
    assert wrong.exit_code == 2
    assert "did you mean 'balance'?" in " ".join(wrong.stderr.split())
    assert cli("test", "tested.pipegen.yaml", "--sample", "0").exit_code == 2


def test_formats(cli: Cli, tested: Path, tmp_path: Path) -> None:
    document = json.loads(cli("test", "tested.pipegen.yaml", "--format", "json").stdout)
    assert [test["status"] for test in document["tests"]] == ["passed", "passed", "warned"]
    assert document["tests"][2]["place"] == "tested.pipegen.yaml:11:5"
    suite = ElementTree.fromstring(cli("test", "tested.pipegen.yaml", "--format", "junit").stdout)[0]
    assert [(case.get("name"), case.get("line")) for case in suite] == [("examples", "9"), ("balance", "10"), ("unique", "11")]
    github = cli("test", "tested.pipegen.yaml", "--format", "github").stdout
    assert github.startswith("::warning file=tested.pipegen.yaml,line=11")
    sarif = json.loads(cli("test", "tested.pipegen.yaml", "--format", "sarif").stdout)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "PG714"
    both = cli("test", "tested.pipegen.yaml", "--format", "junit", "--output", "tests.xml")
    assert "3 tests:" in both.stdout
    assert ElementTree.parse(tmp_path / "tests.xml").getroot().get("tests") == "3"
    assert cli("test", "tested.pipegen.yaml", "--output", "no/such/folder/x").exit_code == 2


def test_arrays_are_tested_in_python(cli: Cli, tmp_path: Path) -> None:
    text = "pipegen: 1\nsource: {arrays: {features: {image: {kind: image}}}}\ntests: [{examples: {min: 1}}]\n"
    (tmp_path / "arrays.pipegen.yaml").write_text(text, encoding="utf-8")
    result = cli("test", "arrays.pipegen.yaml")
    assert result.exit_code == 2
    assert "pipegen.test(SPEC, data=…)" in result.stderr


def test_listed_tests_start_no_tensorflow(tested: Path) -> None:
    code = "import sys, pipegen; pipegen.test(sys.argv[1]); print(sorted({'tensorflow', 'keras'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tested)], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.tf
def test_validate_with_data_runs_the_cheap_ones(cli: Cli, tested: Path) -> None:
    tested.write_text(TESTS.replace("min: 16", "min: 17") + "  - range: {feature: image, within: [7, 7]}\n", encoding="utf-8")
    assert cli("validate", "tested.pipegen.yaml").exit_code == 0, "without data nothing is tested"
    result = cli("validate", "tested.pipegen.yaml", "--data")
    assert result.exit_code == 1
    assert "error[PG710]" in result.stdout
    assert "warning[PG714]" in result.stdout
    assert "PG713" not in result.stdout, "values are for `pipegen test`"
