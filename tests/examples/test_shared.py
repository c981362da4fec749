"""The example of shared specs: a package of bases, installed by pip, and the two projects that it serves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pipegen
from pipegen.api.lock import check_specs, lock_specs
from pipegen.cli.commands import app
from pipegen.diagnostics.diagnostic import Severity

ROOT = Path(__file__).resolve().parents[2]
SPECS = ["subjects/subjects.pipegen.yaml", "textures/textures.pipegen.yaml"]
PACKAGED = "pkg:team_specs/photos.pipegen.yaml"
pytestmark = [
    pytest.mark.skipif(find_spec("pip") is None or find_spec("setuptools") is None, reason="pip and setuptools install the package"),
    pytest.mark.timeout(240),
]


def install(package: Path, *where: str, python: str = sys.executable) -> None:
    """Installs the package of the example, without network."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile", "--upgrade"]
    ran = subprocess.run([python, "-m", "pip", "install", *options, *where, str(package)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example beside the photographs, as working directory: installing leaves files beside the package."""
    shutil.copytree(ROOT / "examples" / "shared", tmp_path / "examples" / "shared")
    (tmp_path / "examples" / "quickstart").mkdir()
    (tmp_path / "examples" / "quickstart" / "photos").symlink_to(ROOT / "examples" / "quickstart" / "photos")
    monkeypatch.chdir(tmp_path / "examples" / "shared")
    return tmp_path / "examples" / "shared"


@pytest.mark.nightly
def test_two_projects_share_an_installed_package(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(shared / "team-specs", "--target", str(tmp_path / "site"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    invalidate_caches()
    subjects, textures = map(pipegen.load, SPECS)
    for spec in (subjects, textures):
        assert not [d for d in spec.warnings if d.severity is not Severity.INFO]
        assert spec.where(("seed",)) == f"{PACKAGED}:15:1"
    assert [step.op for step in subjects.model.transforms] == [step.op for step in textures.model.transforms]
    assert textures.model.transforms[0].size == 32  # type: ignore[attr-defined]
    assert textures.model.runtime.threads == 2
    page = (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8")
    shown = CliRunner().invoke(app, ["lock", "subjects", "textures"])
    assert f"$ pipegen lock subjects textures\n{shown.stdout}" in page, "the page shows what is printed"
    (done,) = lock_specs(SPECS)
    assert {file: entry.packages for file, entry in done.entries.items()} == {file: {"team-specs": "1.4.0"} for file in SPECS}
    assert [entry.data.examples for entry in done.entries.values() if entry.data] == [
        {"train": 320, "validation": 80},
        {"train": 120, "validation": 30},
    ]
    assert check_specs(SPECS).fine == SPECS
    # The package's next version: smaller turns in the base, which both projects see.
    (base,) = (tmp_path / "site").glob("team_specs/photos.pipegen.yaml")
    base.write_text(base.read_text().replace("degrees: 15", "degrees: 10"))
    (about,) = (tmp_path / "site").glob("team_specs-*.dist-info")
    about.rename(about.with_name("team_specs-2.0.0.dist-info"))
    metadata = about.with_name("team_specs-2.0.0.dist-info") / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.4.0", "Version: 2.0.0"))
    invalidate_caches()
    found = check_specs(SPECS).findings
    assert {d.message for d in found} == {"since the lock, transforms[2].random_rotation.degrees: 15.0 → 10.0"}
    assert [str(d.in_project) for d in found] == ["subjects/subjects.pipegen.yaml:2:10", "textures/textures.pipegen.yaml:2:11"]
    printed = CliRunner().invoke(app, ["lock", "--check"])
    assert printed.exit_code == 1
    assert f"$ pipegen lock --check\n{printed.stdout.partition(chr(10) * 2)[0]}\n```" in page
    assert all("the package team-specs went from 1.4.0 to 2.0.0" in d.help for d in found)


@pytest.mark.nightly
@pytest.mark.tf
def test_the_example_in_a_fresh_environment(shared: Path, tmp_path: Path) -> None:
    """An environment of its own sees pipegen and what it needs by their paths, and the package by an installation."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True, capture_output=True, timeout=120)
    python = str(tmp_path / "env" / "bin" / "python")
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (site / "pipegen.pth").write_text(f"{ROOT}\n{sysconfig.get_paths()['purelib']}\n")
    env = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, "TF_CPP_MIN_LOG_LEVEL": "3"}

    def run(*words: str, code: int = 0) -> str:
        ran = subprocess.run([python, *words], env=env, capture_output=True, text=True, check=False, timeout=180)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout

    missing = run("-m", "pipegen", "validate", *SPECS, code=1)
    assert missing.count("PG113") > 1
    assert "the package `team_specs` is not installed" in missing
    install(shared / "team-specs", python=python)
    assert run("-m", "pipegen", "validate", "--strict", "subjects", "textures").count(": fine") == 2
    assert "team-specs 1.4.0" in run("-m", "pipegen", "lock", "subjects", "textures")
    assert run("-m", "pipegen", "lock", "--check", "--strict").count("as locked") == 2
    shapes = f"import pipegen; print([pipegen.build(s, locked=True).peek('train', 2)[0].shape for s in {SPECS}])"
    assert run("-c", shapes).strip() == "[(2, 64, 64, 3), (2, 32, 32, 3)]"
