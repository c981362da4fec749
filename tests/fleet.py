"""Servers of the tf.data service, and programs beside them, as processes that each have a time limit.

They are copies of a process that has imported TensorFlow, any number at a time: see `copies.py`, which has one. Run as a program, this file
is that process.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 240
"""Seconds after which a process ends, whatever happens to the test."""
SERVES_S = 1200
"""The same of a server, which a whole file of tests may share: where others use the processors, too, that takes minutes."""


class Process:
    """One `pipegen` command, or a program, in the background.

    Args:
        log: The file that it writes to.
        argv: What stands behind `pipegen`; or `-c` and a program.
        environment: Variables that it has beside ours; with any, it is no copy, since the system tells what a process began with.
    """

    def __init__(self, log: Path, *argv: str, **environment: str) -> None:
        self.log, limit = log, SERVES_S if argv[0] == "service" else LIMIT_S
        log.touch()
        if environment:
            command, env = [sys.executable, "-m", "pipegen", *argv], {**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment}
            with log.open("a") as out:
                self._anew = subprocess.Popen(command, env=env, stdout=out, stderr=out, preexec_fn=lambda: signal.alarm(limit))
            self.pid = self._anew.pid
            return
        origin = _origin()
        assert origin.stdin is not None
        assert origin.stdout is not None
        origin.stdin.write(json.dumps({"argv": argv, "log": str(log), "limit": limit}) + "\n")
        origin.stdin.flush()
        self.pid = int(origin.stdout.readline())

    @property
    def text(self) -> str:
        """What it wrote so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        try:
            return "\nState:\tZ" not in Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return False

    def wait_for(self, word: str, seconds: float = 60) -> str:
        """Waits until it has written a word, and gives all that it wrote."""
        end = time.monotonic() + seconds
        while word not in self.text:
            assert self.runs, f"it ended: {self.text}"
            assert time.monotonic() < end, f"it has not said {word!r}: {self.text}"
            time.sleep(0.05)
        return self.text

    def end(self, number: int = signal.SIGKILL, seconds: float = 60) -> str:
        """Sends it a signal, waits until it has ended, and gives what it wrote."""
        if self.runs:
            os.kill(self.pid, number)
        self.wait(seconds)
        return self.text

    def wait(self, seconds: float = LIMIT_S) -> str:
        """Waits until it has ended, and gives what it wrote."""
        end = time.monotonic() + seconds
        while self.runs:
            assert time.monotonic() < end, f"it has not ended: {self.text}"
            time.sleep(0.05)
        return self.text


class Fleet:
    """A dispatcher and workers on the loopback address, each on a port of its own.

    Args:
        folder: Where they write.
        workers: How many there are at first.
        keeps: Whether the dispatcher keeps a journal, and goes on where it was when it is started again.
    """

    def __init__(self, folder: Path, workers: int = 1, *, keeps: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self._journal = ("--work-dir", str(folder / "journal")) if keeps else ()
        self._started = 0
        self.dispatcher = self._start("dispatcher", "--port", str(self.port), *self._journal)
        self.workers = [self.begin_worker() for _ in range(workers)]
        for process in (self.dispatcher, *self.workers):
            process.wait_for("ready: ")

    @property
    def address(self) -> str:
        """The dispatcher's."""
        return f"grpc://127.0.0.1:{self.port}"

    def begin_worker(self, **environment: str) -> Process:
        """Starts one more worker, and does not wait for it."""
        port = free_port()
        to = ("--dispatcher", f"127.0.0.1:{self.port}", "--port", str(port), "--address", f"127.0.0.1:{port}")
        return self._start("worker", *to, **environment)

    def restart_dispatcher(self) -> None:
        """Kills the dispatcher and starts it again."""
        self.dispatcher.end()
        self.dispatcher = self._start("dispatcher", "--port", str(self.port), *self._journal)

    def _start(self, what: str, *argv: str, **environment: str) -> Process:
        self._started += 1
        return Process(self.folder / f"{self._started}-{what}.log", "service", what, *argv, **environment)

    def end(self) -> None:
        """Kills whoever runs."""
        for process in (*self.workers, self.dispatcher):
            process.end()

    def runtime(self, **more: Any) -> dict[str, Any]:
        """The section of a spec whose batches these make."""
        return {"service": {"address": self.address, "patience": "20s", **more}}


def free_port() -> int:
    """A port of the loopback address that is not in use. It is below those that the system gives to connections, which might take it
    before the test does.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


@cache
def _origin() -> subprocess.Popen[str]:
    """The process that is copied, begun at first need; it ends with this one."""
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"}
    process = subprocess.Popen([sys.executable, __file__], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @atexit.register
    def end() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)

    return process


def _copies(requests: Iterator[str], answers: IO[str]) -> dict[str, Any] | None:
    """Answers requests until there are no more; in a copy, returns the request that it is made for."""
    for line in requests:
        while True:  # those that have ended meanwhile
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    break
            except ChildProcessError:
                break
        process = os.fork()
        if not process:
            return dict(json.loads(line))
        answers.write(f"{process}\n")
        answers.flush()
    return None


def _become(asked: dict[str, Any]) -> None:
    """Takes the place of a process that is started anew, and ends after the limit."""
    signal.alarm(asked["limit"])
    log = os.open(asked["log"], os.O_WRONLY | os.O_APPEND)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for number, given in enumerate((nowhere, log, log)):
        os.dup2(given, number)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    argv = asked["argv"]
    if argv[0] == "-c":
        sys.argv = ["-c"]
        exec(compile(argv[1], "<program>", "exec"), {"__name__": "__main__"})
        return
    sys.argv = ["pipegen", *argv]
    runpy.run_module("pipegen", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    import tensorflow as tf  # noqa: F401 - this is what takes long

    asked_for = _copies(iter(sys.stdin.readline, ""), sys.stdout)
    if asked_for is not None:
        code = 1
        with suppress(SystemExit):
            try:
                _become(asked_for)
                code = 0
            except SystemExit as ended:
                code = int(ended.code or 0)
        sys.stdout.flush()
        os._exit(code)
