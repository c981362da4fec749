"""A command that is watched runs as it would alone: streams, terminal, signals and exit code are its own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pipegen.observe.watch import Child, NotStarted

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
MONITOR = [sys.executable, "-m", "pipegen", "monitor"]

pytestmark = pytest.mark.usefixtures("signals_as_usual")


def run(*command: str, pause: float = 5.0, work: object = None) -> tuple[int, str | None]:
    """Runs a command as a child of this process."""
    child = Child(command, os.environ)
    try:
        ended = child.wait(work or (lambda: 5.0), pause)  # type: ignore[arg-type]
    finally:
        child.released()
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, os.WNOHANG)  # no zombie
    return ended.code, ended.signal


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_the_exit_code_is_the_child_s(script: str, code: int) -> None:
    found, by = run("sh", "-c", script)
    assert found == code
    assert by == {137: "SIGKILL", 143: "SIGTERM"}.get(code)


def test_signals_are_blocked_for_nobody_afterwards_and_never_for_the_child() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    read, write = os.pipe()
    run("sh", "-c", f"grep -E '^Sig(Blk|Ign)' /proc/self/status > /proc/{os.getpid()}/fd/{write}")
    masks = [int(line.split()[1], 16) & 0x7FFFFFFF for line in os.read(read, 1000).splitlines()]  # glibc keeps 32 and 33 for itself
    assert masks == [0, 0], "not even those that Python ignores"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    os.close(read)
    os.close(write)


def test_a_signal_from_elsewhere_is_handed_on_once() -> None:
    main = threading.main_thread().ident
    assert main is not None
    sent = []

    def send() -> float:
        if not sent:
            signal.pthread_kill(main, signal.SIGUSR1)
            sent.append(True)
        return 5.0

    script = "import signal, sys; print(signal.sigwait({signal.SIGUSR1})); sys.exit(9)"
    blocked = f"import signal; signal.pthread_sigmask(0, {{signal.SIGUSR1}}); {script}"
    assert run(sys.executable, "-S", "-c", blocked, pause=0.5, work=send) == (9, None)


def test_what_others_leave_behind_is_reaped_too() -> None:
    """As the first process of a container is handed what loses its parent."""
    orphan = subprocess.Popen(["true"])
    time.sleep(0.1)
    run("sh", "-c", "sleep 0.1")
    assert not Path(f"/proc/{orphan.pid}").exists()
    orphan.wait(5)


@pytest.mark.parametrize(("command", "code", "says"), [
    ("no-such-command-at-all", 127, "command `no-such-command-at-all` not found"),
    ("", 127, "command '' not found"),
    ("{here}/train.py", 126, "permission denied"),
    ("{here}", 126, "permission denied"),
    ("{here}/lost", 126, "interpreter"),
])  # fmt: skip
def test_what_cannot_be_run_is_said_as_shells_count_it(tmp_path: Path, command: str, code: int, says: str) -> None:
    (tmp_path / "train.py").write_text("print()")
    (tmp_path / "lost").write_text("#!/no/such/python\n")
    (tmp_path / "lost").chmod(0o755)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with pytest.raises(NotStarted, match=says) as raised:
        Child([command.replace("{here}", str(tmp_path))], os.environ)
    assert raised.value.code == code
    assert "train.py" not in command or "python" in raised.value.help[0]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask


TRAPS = """\
import os, signal, sys, time
got, end = [], time.monotonic() + 100
def heard(number, _):
    global end
    got.append(number)
    if sys.argv[1:] == ["once"]:  # what is heard twice is heard soon after
        end = min(end, time.monotonic() + 0.7)
    os.write(1, b"got %d\\n" % number)
for name in ("SIGINT", "SIGHUP", "SIGUSR2"):
    signal.signal(getattr(signal, name), heard)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("tty", [os.isatty(i) for i in range(3)], os.getpgrp() == os.getpgid(os.getppid()), flush=True)
while time.monotonic() < end:
    time.sleep(0.05)
print("counts", {n: got.count(n) for n in set(got)}, flush=True)
"""


def test_the_program_hands_signals_on_and_ends_like_its_child(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    watched = subprocess.Popen(
        [*MONITOR, "--out", str(out), "--", sys.executable, "-S", "-c", TRAPS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert watched.stdout is not None
    assert watched.stdout.readline() == b"tty [False, False, False] True\n"
    for name in (signal.SIGHUP, signal.SIGUSR2, signal.SIGINT):
        watched.send_signal(name)
        assert watched.stdout.readline() == b"got %d\n" % name
    watched.terminate()
    rest, said = watched.communicate(timeout=120)
    assert (watched.returncode, rest) == (7, b""), said
    assert b"exit code 7" in said
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert (rows[0]["event"], rows[-1]["event"], rows[-1]["code"]) == ("start", "end", 7)


def test_ctrl_c_reaches_the_child_once_and_its_terminal_is_its_own(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(sys.executable, [*MONITOR, "--live", "0", "--", sys.executable, "-S", "-c", TRAPS, "once"], ENVIRONMENT)
    said = from_terminal(terminal, b"True\r\n")
    os.write(terminal, b"\x03")
    said += from_terminal(terminal, None)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert b"tty [True, True, True] True" in said
    assert b"counts {2: 1}" in said
    assert code == 0, said


def from_terminal(terminal: int, mark: bytes | None) -> bytes:
    """What is written to a terminal up to a mark; without one, until the last program has closed it."""
    said, end, closed = b"", time.monotonic() + 90, False
    while mark is None or mark not in said:
        assert select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0], said
        try:
            said += os.read(terminal, 1000)
        except OSError:  # closed, and what was written last may still be on its way
            if closed:
                break
            closed = True
            time.sleep(0.5)
    return said
