"""What a lock holds of a spec, and what is said when that moves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

import pipegen
from pipegen import locking
from pipegen.api.lock import LockCheck, check_specs, lock_specs
from pipegen.cli.commands import app
from pipegen.errors import SpecError
from pipegen.locking import distribution_of, function_source
from pipegen.phases.compilation import load
from pipegen.spec.shared_bases import PackageFile

SPEC = """\
pipegen: 1
source: {image_folder: {path: photos/}}
splits: {parts: {train: 0.75, validation: 0.25}}
transforms:
  - resize: {size: 16}
  - random_flip
batch: {size: 4}
"""
BASE = SPEC.replace("pipegen: 1\n", "pipegen: 1\nparams: {data: {type: path}}\n").replace("photos/", "$data")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with sixteen photographs, a spec of them, and an empty folder of packages beside it."""
    for name in ("project", "site"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("rose", "tulip"):
        Path("photos", name).mkdir(parents=True)
        for i in range(8):
            Image.new("RGB", (20, 16), (30 * i, 80, 200)).save(f"photos/{name}/{i}.png")
    Path("mine.pipegen.yaml").write_text(SPEC)
    return tmp_path / "project"


def moved(**kwargs: Any) -> list[tuple[str, str]]:
    """The codes and messages of a comparison."""
    return [(d.code, d.message) for d in check_specs(["mine.pipegen.yaml"], **kwargs).findings]


def install(project: Path, files: dict[str, str], version: str = "1.4.0", name: str = "team-specs") -> None:
    """Puts a package where an installer would, with its metadata."""
    site = project.parent / "site"
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    for old in site.glob("*.dist-info"):
        shutil.rmtree(old)
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))
    invalidate_caches()


def test_a_lock_is_stable_and_nothing_has_moved(project: Path) -> None:
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert (done.written, done.lock) == (True, project / "pipegen.lock")
    text = done.lock.read_text()
    held = yaml.safe_load(text)["specs"]["mine.pipegen.yaml"]
    assert held["hash"] == load("mine.pipegen.yaml").hash
    assert held["data"]["examples"] == {"train": 12, "validation": 4}
    assert set(held["versions"]) == {"pipegen", "tensorflow"}
    assert not lock_specs(["mine.pipegen.yaml"])[0].written
    assert done.lock.read_text() == text
    shutil.move(project, project.with_name("elsewhere"))
    assert moved() == []


def test_a_change_of_meaning_is_said_in_words_at_its_place(project: Path) -> None:
    lock_specs(["mine.pipegen.yaml"])
    Path("mine.pipegen.yaml").write_text(SPEC.replace("size: 4", "size: 8").replace("random_flip", "random_flip: {axis: both}"))
    found = check_specs(["mine.pipegen.yaml"]).findings
    assert [(d.code, d.message, str(d.span)) for d in found] == [
        ("PG531", "since the lock, batch.size: 4 → 8", "mine.pipegen.yaml:7:15"),
        ("PG531", "since the lock, transforms[1].random_flip.axis: horizontal → both", "mine.pipegen.yaml:6:25"),
    ]
    assert found[0].help[1] == "the text of mine.pipegen.yaml differs"


def test_what_means_the_same_is_a_warning(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock_specs(["mine.pipegen.yaml"])
    Path("mine.pipegen.yaml").write_text(f"# a remark\n{SPEC}runtime: {{threads: 1}}\n")
    assert moved() == [("PG534", "the text of mine.pipegen.yaml differs, and the spec means the same")]
    Path("mine.pipegen.yaml").write_bytes(SPEC.replace("\n", "\r\n").encode())
    assert moved() == [], "line ends are the checkout's"
    monkeypatch.setattr(locking, "tensorflow_version", lambda: "2.99.0")
    ((code, message),) = moved()
    assert code == "PG534"
    assert message.endswith("→ 2.99.0")


def test_data_that_has_moved(project: Path) -> None:
    lock_specs(["mine.pipegen.yaml"], content=True)
    picture = Path("photos/rose/3.png").read_bytes()
    Path("photos/rose/3.png").write_bytes(picture[:-1] + bytes([picture[-1] ^ 1]))
    assert moved() == [], "names and sizes are the same"
    assert moved(content=True) == [("PG531", "since the lock, data: files of the same names and sizes have other contents")]
    lock_specs(["mine.pipegen.yaml"])
    assert len(moved(content=True)) == 1, "contents are hashed anew when they are asked for"
    Path("photos/rose/3.png").write_bytes(picture + b"0")
    assert moved() == [("PG531", "since the lock, data: files or rows were added, removed, renamed or changed")]
    lock_specs(["mine.pipegen.yaml"])
    assert moved(content=True) == [], "other data is hashed as the data before was"
    assert yaml.safe_load(Path("pipegen.lock").read_text())["specs"]["mine.pipegen.yaml"]["data"]["content"]
    Path("photos/daisy").mkdir()
    Path("photos/rose/3.png").rename("photos/daisy/3.png")
    for i in range(4):
        Path(f"photos/tulip/{i}.png").unlink()
    splits = "train: 12 → 9 examples; validation: 4 → 3 examples"
    assert moved() == [
        ("PG531", f"since the lock, data: files or rows were added, removed, renamed or changed; {splits}"),
        ("PG531", "since the lock, data.classes: 2 → 3"),
    ]


def test_data_that_is_elsewhere_is_passed_over_and_stays_locked(project: Path) -> None:
    lock_specs(["mine.pipegen.yaml"])
    text = Path("pipegen.lock").read_text()
    Path("photos").rename("away")
    compared = check_specs(["mine.pipegen.yaml"])
    assert (compared.findings, compared.fine) == ([], ["mine.pipegen.yaml"])
    assert "the data was not checked: there is no folder" in compared.notes[0]
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert "its entry in the lock stays" in done.notes[0]
    assert Path("pipegen.lock").read_text() == text


def test_rows_and_tables_have_contents(project: Path) -> None:
    import numpy as np

    images = np.zeros((12, 16, 16, 3), np.uint8)
    np.savez("rows.npz", image=images, label=np.arange(12) % 2)
    features = "{image: {kind: image}, label: {kind: label}}"
    Path("mine.pipegen.yaml").write_text(SPEC.replace("image_folder: {path: photos/}", f"arrays: {{path: rows.npz, features: {features}}}"))
    lock_specs(["mine.pipegen.yaml"], content=True)
    assert moved(content=True) == []
    images[3] = 1
    np.savez("rows.npz", image=images, label=np.arange(12) % 2)
    assert [code for code, _ in moved()] == ["PG531"]


def test_packages_have_versions_and_a_base_that_moves_is_named(project: Path) -> None:
    install(project, {"team_specs/base.pipegen.yaml": BASE})
    Path("mine.pipegen.yaml").write_text("extends: pkg:team_specs/base.pipegen.yaml\nparams: {data: {default: photos/}}\n")
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert done.entries["mine.pipegen.yaml"].packages == {"team-specs": "1.4.0"}
    install(project, {"team_specs/base.pipegen.yaml": BASE}, "1.4.1")
    assert moved() == [("PG534", "the package team-specs went from 1.4.0 to 1.4.1, and the spec means the same")]
    install(project, {"team_specs/base.pipegen.yaml": BASE.replace("16", "24")}, "1.5.0")
    (finding,) = check_specs(["mine.pipegen.yaml"]).findings
    assert finding.message == "since the lock, transforms[0].resize.size: 16 → 24"
    assert finding.help[1:3] == (
        "the text of pkg:team_specs/base.pipegen.yaml differs",
        "the package team-specs went from 1.4.0 to 1.5.0",
    )
    places = [str(label.span) for label in finding.labels]
    assert places == ["pkg:team_specs/base.pipegen.yaml:6:20", "mine.pipegen.yaml:1:10"]


def test_a_package_that_is_edited_in_place_and_one_without_metadata(project: Path) -> None:
    install(project, {}, "2.0")
    source = project.parent / "source"
    (source / "team_specs").mkdir(parents=True)
    (source / "team_specs" / "a.yaml").write_text(BASE)
    sys.path.insert(0, str(source))
    try:
        address = PackageFile("team_specs", "a.yaml")
        assert distribution_of(address) == ("team_specs", None)
        about = next((project.parent / "site").glob("*.dist-info"))
        (about / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": True}}))
        assert distribution_of(address) == ("team-specs", "2.0")
    finally:
        sys.path.remove(str(source))


CODE = """\
import missing_library

@missing_library.traced
def blur(image):
    return helper(image)

def helper(image):
    return image
"""


def test_the_source_of_functions_is_read_and_not_run(project: Path) -> None:
    package = project / "own_filters"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('a line of the package ran')\n")
    (package / "soft.py").write_text(CODE)
    (package / "door.py").write_text("from .soft import blur as softened\n")
    Path("mine.pipegen.yaml").write_text(SPEC.replace("  - random_flip\n", "  - python: {function: 'own_filters.door:softened'}\n"))
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert not done.notes
    name = "own_filters.door:softened"
    assert done.entries["mine.pipegen.yaml"].functions[name] == function_source("own_filters.soft:blur")
    (package / "soft.py").write_text(CODE + "\n# a remark\n")
    assert moved() == [("PG531", f"since the lock, functions.{name}: its module differs")]
    (package / "soft.py").write_text(CODE.replace("@missing_library.traced\n", ""))
    assert moved() == [("PG531", f"since the lock, functions.{name}: its source differs")]
    (package / "soft.py").unlink()
    assert moved() == [("PG531", f"the source of the function `{name}` is not found here")]
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert done.notes == [f"mine.pipegen.yaml: the source of `{name}` is not found here, so it is not locked"]


def test_what_is_in_no_lock(project: Path) -> None:
    assert moved() == [("PG530", "mine.pipegen.yaml is not locked: no pipegen.lock in its folder or above")]
    Path("other.pipegen.yaml").write_text(SPEC)
    lock_specs(["other.pipegen.yaml"])
    assert moved() == [("PG530", "mine.pipegen.yaml is not locked: it is not in pipegen.lock")]
    Path("other.pipegen.yaml").unlink()
    assert [d.code for d in check_specs(["other.pipegen.yaml"]).findings] == ["PG531"]
    assert [d.code for d in check_specs(["none.pipegen.yaml"]).findings] == ["PG005"]
    with pytest.raises(SpecError, match="a spec without a file cannot be locked"):
        LockCheck.of(load(yaml.safe_load(SPEC)))
    Path("mine.pipegen.yaml").write_text(SPEC.replace("size: 4", "size: 0"))
    with pytest.raises(SpecError, match="PG105"):
        lock_specs(["mine.pipegen.yaml"])


def test_the_nearest_lock_upward_is_the_spec_s(project: Path) -> None:
    Path("models/a").mkdir(parents=True)
    Path("models/a/a.pipegen.yaml").write_text(SPEC.replace("photos/", "../../photos/"))
    (done,) = lock_specs(["models/a/a.pipegen.yaml"])
    assert done.lock == project / "pipegen.lock", "of a spec below the working directory, the lock is there"
    assert set(yaml.safe_load(done.lock.read_text())["specs"]) == {"models/a/a.pipegen.yaml"}
    Path("models/pipegen.lock").write_text("pipegen_lock: 1\n")
    nearer, other = lock_specs(["models/a/a.pipegen.yaml", "mine.pipegen.yaml"])
    assert (nearer.lock, other.lock) == (project / "models" / "pipegen.lock", project / "pipegen.lock")
    assert set(yaml.safe_load(nearer.lock.read_text())["specs"]) == {"a/a.pipegen.yaml"}


def run(*args: str) -> tuple[int, str, str]:
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, ["lock", *args])
    return done.exit_code, done.stdout, done.stderr


def test_the_command(project: Path) -> None:
    code, out, _ = run("mine.pipegen.yaml")
    assert code == 0
    assert out.startswith("pipegen.lock: written\n  mine.pipegen.yaml: ")
    assert "1 text, 16 examples" in out
    assert run("--check")[:2] == (0, out.partition("\n  ")[2].replace(": ", ": as locked (").strip() + ")\n")
    Path("mine.pipegen.yaml").write_text(f"# a remark\n{SPEC}")
    assert run("--check")[0] == 0
    assert run("--check", "--strict")[0] == 1
    Path("mine.pipegen.yaml").write_text(SPEC.replace("size: 4", "size: 8"))
    code, out, _ = run("--check", "--format", "github")
    assert code == 1
    assert out.startswith("::error file=mine.pipegen.yaml,line=7,col=15")
    assert json.loads(run("--check", "--format", "json")[1])["diagnostics"][0]["code"] == "PG531"
    assert json.loads(run("--check", "--format", "sarif")[1])["version"] == "2.1.0"
    assert json.loads(run("--format", "json")[1])["locks"][0]["written"] is True
    assert run("--check", "--update")[0] == 2
    assert run("--format", "github")[0] == 2
    assert run("-")[0] == 2
    for words in (["--update=specs"], ["--update", "specs"], ["--update", "specs", "mine.pipegen.yaml"]):
        code, _, said = run(*words)
        assert code == 1, words
        assert "no base comes from a repository called `specs`" in said
    Path("pipegen.lock").unlink()
    code, _, said = run("--check")
    assert code == 2
    assert "there is no pipegen.lock with specs" in said


@pytest.mark.nightly
def test_checking_imports_no_tensorflow(project: Path) -> None:
    lock_specs(["mine.pipegen.yaml"])
    code = (
        "import sys; sys.modules['tensorflow'] = sys.modules['keras'] = None\n"
        "sys.argv = ['pipegen', 'lock', '--check']\nfrom pipegen.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, env=paths())
    assert done.returncode == 0, done.stderr


def paths() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.tf
def test_a_locked_build_refuses_what_the_lock_does_not_know(project: Path) -> None:
    featurewise = SPEC.replace("  - random_flip\n", "  - standardize: {statistics: featurewise}\n")
    Path("mine.pipegen.yaml").write_text(f"{featurewise}runtime: {{jit: never, cache: none}}\n")
    with pytest.raises(SpecError, match="PG530"):
        pipegen.build("mine.pipegen.yaml", locked=True)
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert "`pipegen fit` measures it" in done.notes[0]
    pipe = pipegen.build("mine.pipegen.yaml", locked=True)
    assert pipe.num_examples("train") == 12
    (done,) = lock_specs(["mine.pipegen.yaml"])
    assert set(done.entries["mine.pipegen.yaml"].fitted) == {"standardize.image"}
    with pytest.raises(SpecError, match=r"since the lock, batch\.size: 4 → 8"):
        pipegen.build("mine.pipegen.yaml", locked=True, overrides={"batch.size": 8})
    lock = Path("pipegen.lock").read_text()
    held = yaml.safe_load(lock)["specs"]["mine.pipegen.yaml"]["fitted"]["standardize.image"]
    Path("pipegen.lock").write_text(lock.replace(held, "a" * 64))
    with pytest.raises(SpecError, match=r"since the lock, fitted\.standardize\.image: other numbers were learned"):
        pipegen.build("mine.pipegen.yaml", locked=True)
    Path("pipegen.lock").write_text(lock)
    Path("photos/rose/0.png").unlink()
    with pytest.raises(SpecError, match="since the lock, data: files or rows were"):
        pipegen.build("mine.pipegen.yaml", locked=True)


def test_contents_that_were_not_locked_cannot_be_compared(project: Path) -> None:
    lock_specs(["mine.pipegen.yaml"])
    assert moved() == []
    ((code, message),) = moved(content=True)
    assert (code, "locked without the contents of its files" in message) == ("PG530", True)
    lock_specs(["mine.pipegen.yaml"], content=True)
    assert moved(content=True) == []


def test_functions_of_a_stage_are_locked_too(project: Path) -> None:
    text = SPEC.replace("pipegen: 1", "pipegen: 1\nparams: {fn: {type: str, default: 'fns:late'}}").replace(
        "- random_flip", "- python: {function: $fn}"
    )
    Path("mine.pipegen.yaml").write_text(f"{text}stages: [{{epochs: 1, params: {{fn: 'fns:early'}}}}, {{epochs: 2}}]\n")
    Path("fns.py").write_text("def early(image):\n    return image\n\n\ndef late(image):\n    return image\n")
    lock_specs(["mine.pipegen.yaml"])
    Path("fns.py").write_text(Path("fns.py").read_text().replace("return image\n\n\n", "return image // 2\n\n\n"))
    assert ("PG531", "since the lock, functions.fns:early: its source differs") in moved()
