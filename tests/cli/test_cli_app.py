"""The frame around the commands: help, exit codes, and what becomes of errors, Ctrl-C and closed pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import copies
import pytest
from cli_helpers import GOOD, ROOT, Cli, Program, program_tree

COMMANDS = ("init", "validate", "show", "explain", "preview", "export", "bench", "migrate", "ops", "help", "rule", "schema", "version")


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",)])
def test_alone_it_prints_help(cli: Cli, args: tuple[str, ...]) -> None:
    result = cli(*args)
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_an_example(cli: Cli, command: str) -> None:
    result = cli(command, "--help")
    assert result.exit_code == 0
    assert f"    pipegen {command}" in result.stdout, "an example stands on a line of its own"


def test_summaries_in_the_list_of_commands_are_whole_sentences(cli: Cli) -> None:
    _, _, commands = cli("--help").stdout.partition("Commands:")
    assert len(commands.splitlines()) > len(COMMANDS)
    assert "..." not in commands


def test_version_option(cli: Cli) -> None:
    import pipegen

    assert cli("--version").stdout == f"pipegen {pipegen.__version__}\n"


@pytest.mark.parametrize("args", [("validat",), ("validate", "--formt", "json"), ("explain",), ("validate", "--format", "xml")])
def test_bad_usage_is_2_and_no_traceback(cli: Cli, args: tuple[str, ...]) -> None:
    result = cli(*args)
    assert result.exit_code == 2
    assert "Usage: pipegen" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_mistyped_command_is_named(cli: Cli) -> None:
    assert "validate" in cli("validat").stderr


@pytest.mark.parametrize("command", ["show", "explain"])
def test_a_missing_spec_is_2(cli: Cli, command: str) -> None:
    result = cli(command, "nowhere.yaml")
    assert result.exit_code == 2
    assert "the spec nowhere.yaml does not exist" in result.stderr
    assert result.stdout == ""


def test_a_wrong_spec_is_1_with_its_findings_on_stderr(cli: Cli, good: Path) -> None:
    good.write_text(good.read_text().replace("random_flip", "random_flop"))
    result = cli("explain", "good.pipegen.yaml")
    assert result.exit_code == 1
    assert "error[PG103]" in result.stderr
    assert result.stdout == ""


def test_an_internal_error_says_whose_fault_it_is(cli: Cli, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("the flux is not compensated")

    monkeypatch.setattr("pipegen.phases.compilation.inspect", broken)
    result = cli("validate", "good.pipegen.yaml")
    assert result.exit_code == 2
    assert "internal error: RuntimeError: the flux is not compensated" in result.stderr
    assert "bug in pipegen, not an error in your spec" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("PIPEGEN_TRACEBACK", "1")
    assert "Traceback" in cli("validate", "good.pipegen.yaml").stderr


def test_without_tensorflow_a_command_says_what_to_install(cli: Cli, good: Path, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.startswith(("tensorflow", "pipegen.backend"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setattr("pipegen.lazy.tf._module", None)
    result = cli("validate", "--data", "good.pipegen.yaml")
    assert result.exit_code == 2
    assert "needs TensorFlow" in result.stderr
    assert "pip install tensorflow" in result.stderr


def test_an_interrupt_is_130_and_one_line(cli: Cli, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipegen.phases.compilation.inspect", interrupt)
    result = cli("validate", "good.pipegen.yaml")
    assert result.exit_code == 130
    assert result.stderr.split() == ["interrupted"]


@pytest.mark.tf
@pytest.mark.slow
def test_ctrl_c_ends_a_running_bench(tmp_path: Path, good: Path, photos: Path) -> None:
    """It runs when it has met a damaged file and reported it."""
    report = tmp_path / "damaged.jsonl"
    (photos / "rose" / "03.jpg").write_bytes(b"no image, but long enough to be looked at")
    everything = GOOD.replace("{train: 0.5, validation: 0.5}, stratify: label", "{}")
    good.write_text(everything + f"errors: {{decode: {{skip: {{max_fraction: 0.5, report: {report}}}}}}}\nruntime: {{jit: never}}\n")
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"} | {"PYTHONPATH": str(ROOT)}
    process = copies.Copy(copies.MODULE, "bench", "good.pipegen.yaml", "--steps", "100000000", cwd=tmp_path, env=environment)
    try:
        deadline = time.monotonic() + 120
        while not report.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert report.exists(), "no batch was made"
        assert process.poll() is None, process.written("stderr")
        os.kill(process.pid, signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert process.written("stdout") == ""
    assert process.written("stderr").split() == ["interrupted"]


def test_a_closed_pipe_is_silent(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "pipegen", "rule"],
        stdout=write,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    os.close(write)
    assert process.stderr == b""
    assert process.returncode == 141


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_only_on_a_terminal_that_wants_it(
    cli: Cli, tmp_path: Path, good: Path, env: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own writes them; within this one nothing is different but who asks."""
    good.write_text(good.read_text().replace("random_flip", "random_flop"))
    here, there = os.openpty()
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in ({"TERM": "xterm"} | env).items():
        monkeypatch.setenv(name, value)
    if coloured:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-m", "pipegen", "validate"], cwd=tmp_path, env=environment, stdout=there, check=False)
        os.close(there)
    else:
        with open(there, "w", encoding="utf-8") as terminal, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", terminal)
            with pytest.raises(SystemExit):
                program_tree()(["validate"], prog_name="pipegen")
    written = b""
    while True:
        try:
            part = os.read(here, 65536)
        except OSError:  # the other end is closed: all is read
            break
        if not part:
            break
        written += part
    os.close(here)
    assert b"PG103" in written
    assert (b"\x1b[" in written) is coloured


def test_output_that_the_terminal_cannot_show_is_no_error(program: Program, good: Path) -> None:
    good.rename(good.with_name("日本 spéc.pipegen.yaml"))
    result = program("validate", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})
    assert result.returncode == 0
    assert "images 16x16x3 float32" in result.stdout


@pytest.mark.by_day(2)  # where it reads from, and where it writes to
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_streams_are_no_error(tmp_path: Path, good: Path, closed: int) -> None:
    code = f"import os, sys; os.close({closed}); os.execv(sys.executable, [sys.executable, '-m', 'pipegen', 'validate', '-'])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    text = good.read_bytes()
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, input=text, capture_output=True, check=False)
    assert b"Traceback" not in result.stderr
    assert b"internal error" not in result.stderr
    assert result.returncode == (1 if closed == 0 else 0), "without its input the spec is empty"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_not_our_mistake(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "pipegen", "rule"]
        result = subprocess.run(command, cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "pipegen: no space left on device\n"


SWALLOWED = """\
import os, signal, time
import pipegen.cli.app as program

def stubborn(**_):
    for _ in range(600):
        try:
            os.kill(os.getpid(), signal.SIGINT) if _ == 0 else time.sleep(0.1)
        except KeyboardInterrupt:
            pass  # as callbacks from C++ do

import pipegen.cli.commands
pipegen.cli.commands.app = stubborn
program._PATIENCE = 0.2
program.main()
"""


@pytest.mark.usefixtures("signals_as_usual")
def test_an_interrupt_that_a_library_swallows_ends_the_program_all_the_same(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SWALLOWED]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 130
    assert result.stderr.split() == ["interrupted"]


def test_shell_completion_offers_ops_and_codes(program: Program, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"_PIPEGEN_COMPLETE": "complete_bash", "COMP_WORDS": "pipegen ops random_r", "COMP_CWORD": "2"}
    assert "random_rotation" in program(env=asked).stdout
    for name, value in (asked | {"COMP_WORDS": "pipegen rule PG21"}).items():
        monkeypatch.setenv(name, value)
    assert "PG214" in cli().stdout


@pytest.mark.parametrize("total", [None, 3])
def test_progress_is_for_terminals_only(total: int | None) -> None:
    code = f"""\
from pipegen.cli.common import progress
with progress("decoding", {total}) as tick:
    for done in (1, 2, 3):
        tick(done)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    quiet = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert quiet.stderr == b""
    here, there = os.openpty()
    subprocess.run([sys.executable, "-c", code], env=environment, stderr=there, check=True)
    shown = os.read(here, 65536)
    os.close(there)
    os.close(here)
    assert b"decoding" in shown
