"""`pipegen profile` and `pipegen tune` as commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pipes import write_photos
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli_helpers import Cli, Program

SPEC = """\
pipegen: 1
source: {image_folder: {path: photos/}}
transforms:
  - resize: {size: 16}
  - python: {function: my_pkg.slow:short}
batch: {size: 4}
runtime: {jit: never, threads: 2, cache: none, prefetch: 1}  # as we run it
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_photos(tmp_path / "photos")
    (tmp_path / "a.pipegen.yaml").write_text(SPEC, encoding="utf-8")
    return tmp_path


@pytest.mark.tf
@pytest.mark.timeout(120)
def test_profile_prints_writes_and_saves(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEGEN_MACHINE", str(folder / "machine.json"))
    seen = cli("profile", "a.pipegen.yaml", "--allow-code", "my_pkg", "--steps", "4", "--save")
    assert seen.exit_code == 0, seen.output
    first = seen.stdout.splitlines()[0]
    assert first.startswith("python my_pkg.slow:short takes ")
    assert "; `" in first
    assert "fitted to this machine" in seen.stderr
    assert json.loads((folder / "machine.json").read_text())["version"] == 1
    page = cli(
        "profile", "a.pipegen.yaml", "--allow-code", "my_pkg", "--steps", "4", "--model-ms", "5", "--format", "html", "--out", "p.html"
    )
    assert page.exit_code == 0, page.output
    assert page.stdout.startswith("the model waits ")
    assert "<h1>Profile</h1>" in (folder / "p.html").read_text()


def test_options_that_do_not_go_together_are_refused(cli: Cli, folder: Path) -> None:
    for args in (["--train", "t.py", "--model-ms", "5"], ["--train", "t.py", "--save"], ["--", "5"]):
        seen = cli("profile", "a.pipegen.yaml", *args)
        assert seen.exit_code == 2, seen.output
    assert cli("profile", "nothing.pipegen.yaml").exit_code == 2
    assert cli("profile", "a.pipegen.yaml", "--split", "tarin").exit_code == 2
    assert cli("tune", "a.pipegen.yaml", "--turns", "4").exit_code == 2


def script(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return "train.py"


@pytest.mark.nightly
@pytest.mark.timeout(60)
def test_the_exit_code_is_the_scripts(program: Program, cli: Cli, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """First of a process of its own, then without one, which is quicker: the script has one either way."""
    name = script(folder, "import sys; print(sys.argv[1:], __name__); sys.exit(3)")
    seen = program("profile", "a.pipegen.yaml", "--train", name, "--", "--epochs", "2")
    assert (seen.returncode, seen.stdout) == (3, "['--epochs', '2'] __main__\n"), seen.stderr
    name = script(folder, "print('done')")
    seen = cli("profile", "a.pipegen.yaml", "--train", name)
    assert (seen.exit_code, capfd.readouterr().out) == (2, "done\n")
    assert "train.py has taken too few batches" in seen.stderr
    name = script(folder, "raise ValueError('no')")
    assert cli("profile", "a.pipegen.yaml", "--train", name).exit_code == 1
    assert "ValueError: no" in capfd.readouterr().err
    name = script(folder, "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert cli("profile", "a.pipegen.yaml", "--train", name).exit_code == 143
    seen = cli("profile", "a.pipegen.yaml", "--train", "missing.py")
    assert (seen.exit_code, seen.stderr) == (2, "pipegen: there is no script missing.py\n")


TRAINS = """\
    import sys, time
    import pipegen

    pipe = pipegen.build("a.pipegen.yaml", allow_code=["my_pkg"])
    done = 0
    while done < 400:
        for x, y in pipe.train:
            time.sleep(0.002)
            done += 1
    print("trained", len(sys.argv))
    sys.exit(7)
"""


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.timeout(200)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_script_is_profiled_while_it_trains(program: Program, folder: Path, form: str) -> None:
    path = os.pathsep.join([os.getcwd(), os.path.join(os.getcwd(), "tests")])
    seen = subprocess.run(
        [sys.executable, "-m", "pipegen", "profile", "a.pipegen.yaml", "--format", form, "--train", script(folder, TRAINS)],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert seen.returncode == 7, seen.stderr
    assert seen.stdout.startswith("trained 1\n")
    said = seen.stdout.removeprefix("trained 1\n")
    sentence: Any = json.loads(said)["sentence"] if form == "json" else said.splitlines()[0]
    assert sentence.startswith("the model waits ")
    assert ": python my_pkg.slow:short takes " in sentence


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.timeout(280)
def test_tune_finds_what_helps_keeps_it_and_writes_it(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipegen

    monkeypatch.setenv("PIPEGEN_MACHINE", str(folder / "machine.json"))
    text = SPEC.replace("threads: 2, cache: none, prefetch: 1", "cache: none, prefetch: 1")
    (folder / "a.pipegen.yaml").write_text(text, encoding="utf-8")
    seen = cli("tune", "a.pipegen.yaml", "--allow-code", "my_pkg", "--turns", "5", "--seconds", "0.2")
    assert seen.exit_code == 0, seen.output
    assert seen.stdout.startswith("threads: "), "steps that sleep are made faster by threads"
    assert "stored for this machine" in seen.stderr
    pipe = pipegen.build("a.pipegen.yaml", allow_code=["my_pkg"])
    assert pipe.spec.tuned is not None
    assert pipe._engine.executor("train").setting.threads == pipe.spec.tuned.threads
    assert "`pipegen tune` found on this machine" in cli("explain", "a.pipegen.yaml").stdout
    seen = cli("tune", "a.pipegen.yaml", "--allow-code", "my_pkg", "--turns", "5", "--seconds", "0.2", "--write")
    assert seen.exit_code == 0, seen.output
    after = (folder / "a.pipegen.yaml").read_text()
    assert "runtime: {threads: " in after
    assert after.endswith("cache: none, prefetch: 1}  # as we run it\n")
