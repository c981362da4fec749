"""Programs in processes of their own that begin with TensorFlow imported: to import it takes longer than most of them.

They are copies of one process for each thread of this one. What TensorFlow and Keras settle when they are imported is settled there: a
program that asks for another backend of Keras, or for what a first import says, is started anew.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from threading import get_ident
from typing import Any

MODULE = "import runpy; runpy.run_module('pipegen', run_name='__main__', alter_sys=True)"
"""The program that `python -m pipegen` is."""


class Copy:
    """A program that runs; one at a time."""

    def __init__(self, program: str, *argv: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._files = {name: Path(self._folder.name, name) for name in ("stdout", "stderr")}
        for file in self._files.values():
            file.touch()
        asked: dict[str, Any] = {name: str(file) for name, file in self._files.items()}
        asked |= {"program": program, "argv": argv, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
        self._server = _server(get_ident())
        self._server.sendall((json.dumps(asked) + "\n").encode())
        self.returncode: int | None = None
        self.pid = self._answer(200)

    def _answer(self, seconds: float) -> int:
        """The next number that the server tells."""
        told = b""
        while not told.endswith(b"\n"):
            if not select.select([self._server], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired("a copy", seconds)
            byte = self._server.recv(1)
            assert byte, "the process that is copied has ended"
            told += byte
        return int(told)

    def poll(self) -> int | None:
        """How it ended, as far as it did."""
        if self.returncode is None and select.select([self._server], [], [], 0)[0]:
            self.returncode = self._answer(1)
        return self.returncode

    def wait(self, seconds: float) -> int:
        """How it ended, once it has; it is killed where that takes too long."""
        if self.returncode is None:
            try:
                self.returncode = self._answer(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return self.returncode

    def kill(self) -> None:
        """Ends it, where it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(60)

    def written(self, name: str) -> str:
        """What it wrote so far to `stdout` or `stderr`."""
        return self._files[name].read_text()


def run(
    program: str, *argv: str, cwd: Path | None = None, env: dict[str, str] | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, as `subprocess.run` does with `python -c`."""
    copy = Copy(program, *argv, cwd=cwd, env=env)
    ended = copy.wait(timeout)
    return subprocess.CompletedProcess([*argv], ended, copy.written("stdout"), copy.written("stderr"))


@cache
def _server(thread: int) -> socket.socket:
    """The process that is copied for a thread, begun at first need; it ends with this one."""
    ours, theirs = socket.socketpair()
    script = Path(__file__).with_name("copied_process.py")
    process = subprocess.Popen(
        [sys.executable, "-I", str(script), str(theirs.fileno())],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"},
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
    theirs.close()

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours
