"""Watches a run: a command from its start to its end, as if nobody watched, or the process that this runs in."""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipegen.observe.records import Record, Row, Steps, Summary, live_line
from pipegen.observe.sampler import Sampler
from pipegen.waiting import VARIABLE, Wait

_FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores, and its child would inherit that."""
_BY_KERNEL = 0x80
"""`si_code` of a signal that the kernel sent, such as for Ctrl-C to everyone who runs in the terminal's foreground."""

_LOOK = 0.5
"""Seconds after which a child is looked for that nobody has told the end of."""


class NotStarted(Exception):
    """Says why a command cannot be run.

    Attributes:
        code: The exit code that a shell has for it: 127 where there is no such command, else 126.
        help: What to do about it.
    """

    def __init__(self, message: str, code: int, *help_: str) -> None:
        super().__init__(message)
        self.code = code
        self.help = help_


@dataclass(frozen=True, slots=True)
class Ended:
    """Holds how a command ended.

    Attributes:
        code: Its exit code, or 128 and the number of the signal that ended it.
        signal: The name of that signal, or `None`.
        cpu_s: Processor seconds of it and of all descendants that it waited for.
    """

    code: int
    signal: str | None
    cpu_s: float


class Child:
    """Starts a command and waits for it, doing something else meanwhile.

    The signals that are handed on are blocked from here on until `released`, and waited for instead: none interrupts anything, and for each
    it is known who sent it. Those that are ignored stay so, as under `nohup`.

    Args:
        command: The program and its arguments.
        environment: Its environment.

    Raises:
        NotStarted: If it cannot be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, the kernel would drop the exit code
        self._awaited = {signal.SIGCHLD, *(s for s in _FORWARDED if signal.getsignal(s) is not signal.SIG_IGN)}
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._awaited)
        try:
            self.pid = os.posix_spawnp(command[0], list(command), environment, setsigmask=self._mask, setsigdef=_OF_PYTHON)
        except OSError as error:
            self.released()
            raise _not_started(command[0], error) from None
        except BaseException as error:
            self.released()
            if isinstance(error, ValueError):  # an empty name, or a zero character in an argument
                raise NotStarted(f"there is no command {command[0]!r}", 127, *_hint(command[0])) from None
            raise

    def wait(self, work: Callable[[], float], pause: float) -> Ended:
        """Waits for the end; meanwhile it calls a function after a pause, which returns the seconds of the next."""
        due = time.monotonic() + pause
        while True:
            # A thread that does not block SIGCHLD may be given it, so the child is asked for now and then in any case.
            info = signal.sigtimedwait(self._awaited, max(0.0, min(_LOOK, due - time.monotonic())))
            if info is not None and info.si_signo != signal.SIGCHLD:
                self._forward(info)
            ended = self._reaped()
            if ended is not None:
                return ended
            if time.monotonic() >= due:
                due = time.monotonic() + work()

    def released(self) -> None:
        """Lets signals through to this process again."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _forward(self, info: signal.struct_siginfo) -> None:
        # What the kernel sends to a terminal's foreground has reached the child as well, unless it has left the group.
        with suppress(ProcessLookupError, PermissionError):
            if info.si_code != _BY_KERNEL or os.getpgid(self.pid) != os.getpgrp():
                os.kill(self.pid, info.si_signo)

    def _reaped(self) -> Ended | None:
        """Returns the child's end, if it has come. As the first process of a container it is also handed what others leave behind."""
        found = None
        with suppress(ChildProcessError):
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self.pid:
                    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
                    code = 128 + by if by else os.WEXITSTATUS(status)
                    found = Ended(code, _name(by) if by else None, used.ru_utime + used.ru_stime)
        return found


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # of real time
        return f"signal {number}"


def _not_started(program: str, error: OSError) -> NotStarted:
    found = shutil.which(program)
    if isinstance(error, FileNotFoundError) and found is None:
        from pipegen.terminal import one_line

        return NotStarted(f"there is no command `{one_line(program)}`", 127, *_hint(program))
    if isinstance(error, FileNotFoundError):
        return NotStarted(f"{found} cannot be run: the interpreter that its first line names is not there", 126)
    reason = (error.strerror or str(error)).lower()
    return NotStarted(f"cannot run {program}: {reason}", 126, *_hint(program))


def _hint(program: str) -> list[str]:
    if program.endswith(".py"):
        return [f"a script is run by Python: pipegen monitor -- python {program}"]
    return [f"the command to watch stands behind `--`, such as `pipegen monitor -- python train.py`; is {program!r} installed here?"]


_ROOM = 1 << 20
_SET_ROOM = getattr(fcntl, "F_SETPIPE_SZ", 1031)


class WaitPipe:
    """Makes the pipe, and reads it without waiting."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="pipegen-monitor-")
        self._path = os.path.join(self._folder, "waits")
        os.mkfifo(self._path, 0o600)
        # Open for both, so that it does not come to its end between two processes that write.
        self._file = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.fcntl(self._file, _SET_ROOM, _ROOM)
        self._rest = b""

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Returns the environment of a process that is to write into the pipe."""
        return {**given, VARIABLE: self._path}

    def read(self) -> list[Wait]:
        """Returns what was told since the last time."""
        chunks = [self._rest]
        with suppress(BlockingIOError):
            while chunk := os.read(self._file, _ROOM):
                chunks.append(chunk)
        *lines, self._rest = b"".join(chunks).split(b"\n")
        return [told for line in lines if (told := _parsed(line)) is not None]

    def close(self) -> None:
        """Removes the pipe; who still writes is told that nobody reads."""
        os.close(self._file)
        shutil.rmtree(self._folder, ignore_errors=True)


def _parsed(line: bytes) -> Wait | None:
    parts = line.decode(errors="replace").split(" ", 4)
    try:
        pid, *times, split = parts
        ended, seconds, step_seconds = map(float, times)
        return Wait(int(pid), ended, seconds, step_seconds, split)
    except ValueError:  # of another version of pipegen
        return None


_HOUR = 3600.0


class MissingLibrary(ImportError):
    """Says which library a command needs, and how it is installed."""


def require(*libraries: str) -> None:
    """Makes sure that libraries are there, before anything runs that they are needed for.

    Raises:
        MissingLibrary: If one is not.
    """
    for name in libraries:
        if importlib.util.find_spec(name) is None:
            raise MissingLibrary(f"monitoring needs {name}, which is not installed here: pip install 'pipegen[monitor]'")
    if "psutil" in libraries:  # now, and not while the run is measured
        importlib.import_module("psutil")


class Watch:
    """Watches a command: samples go into a record, lines to whoever wants them, and the summary grows.

    Args:
        command: The program and its arguments.
        out: The file of the record, or `None`.
        every: Seconds between samples.
        live: Seconds between lines; 0 for none.
        tell: Called with each line.

    Attributes:
        summary: What the run has come to so far.
    """

    def __init__(
        self, command: Sequence[str], out: Path | None, *, every: float = 1.0, live: float = 0.0, tell: Callable[[str], None] | None = None
    ) -> None:
        require("psutil")
        self._command, self._out, self._every, self._live = list(command), out, every, live
        self._tell = tell or (lambda _line: None)
        self._steps, self.summary = Steps(), Summary()
        self._told_at = 0.0
        self._lately: list[Row] = []
        """Waits since the latest line."""

    def run(self) -> Ended:
        """Runs the command to its end.

        Raises:
            NotStarted: If it cannot be run. `OSError` if the record cannot be written.
        """
        with ExitStack() as stack:
            self._record = stack.enter_context(Record(self._out))
            self._pipe = WaitPipe()
            stack.callback(self._pipe.close)
            self._sampler: Sampler | None = Sampler(self._every)
            began, spent = time.monotonic(), time.process_time()
            child = Child(self._command, self._pipe.environment(os.environ))
            stack.callback(child.released)
            self._sampler.start(child.pid)
            self._write([{**self._sampler.about(), "command": self._command, "pid": child.pid}])
            ended = child.wait(self._work, self._every)
            seconds, spent = time.monotonic() - began, time.process_time() - spent
            self._end(ended, seconds, spent)
        return ended

    @property
    def whole(self) -> bool:
        """Returns whether all of the record could be written."""
        return self._record.failed is None

    def _work(self) -> float:
        """Takes a sample, and returns when to take the next."""
        if self._sampler is None:
            return _HOUR
        try:
            row = self._sampler.sample()
            steps = self._steps.rows(self._pipe.read(), row["t"])
            self._write([row, *steps])
            self._lately += steps
            if self._live and row["t"] - self._told_at >= self._live - 0.5 * self._every:
                self._say(live_line(row, merged(self._lately), self.summary.start))
                self._told_at, self._lately = row["t"], []
            return self._sampler.pause()
        except Exception as error:  # whatever it is, it is no reason to end somebody's training
            self._sampler = None
            self._say(f"pipegen monitor: no longer watching, and the run goes on: {type(error).__name__}: {error}")
            return _HOUR

    def _end(self, ended: Ended, seconds: float, spent: float) -> None:
        with suppress(Exception):
            self._write(self._steps.rows(self._pipe.read(), seconds))
        how = {"code": ended.code, "signal": ended.signal, "cpu_s": round(ended.cpu_s, 3)}
        own = {"monitor_cpu_s": round(time.process_time(), 3), "monitor_share": round(spent / max(seconds, 1e-9), 5)}
        self._write([{"event": "end", "t": round(seconds, 3), **how, **own}])
        self._record.close()
        if self._record.failed is not None:
            reason = self._record.failed.strerror or self._record.failed
            self._say(f"pipegen monitor: {self._out} is not whole: {str(reason).lower()}")

    def _write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.summary.add(row)
        self._record.write(rows)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # the terminal may be gone
            self._tell(line)


def merged(rows: Iterable[Row]) -> list[Row]:
    """Returns rows of waits as one for each split."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        steps = row["steps"]
        into = found.setdefault(steps["split"], {"split": steps["split"], "wait_ms": [], "step_ms": []})
        into["wait_ms"] += steps["wait_ms"]
        into["step_ms"] += steps["step_ms"]
    return [{"steps": steps} for steps in found.values()]


def temporary_record() -> Path:
    """Makes a file for the record of a run of which only pictures are kept."""
    file, name = tempfile.mkstemp(prefix="pipegen-monitor-", suffix=".jsonl")
    os.close(file)
    return Path(name)


class Inside:
    """Watches this process and its descendants until it is stopped.

    Args:
        out: The file of the record, or `None`.
        every: Seconds between samples.
        live: Seconds between lines; 0 for none.
        tell: Called with each line.

    Attributes:
        summary: What the run has come to so far.

    Raises:
        MissingLibrary: Without psutil. `OSError` if the record cannot be made.
    """

    def __init__(self, out: Path | None, every: float, live: float = 0.0, tell: Callable[[str], None] | None = None) -> None:
        require("psutil")
        self.summary = Summary()
        self._record, self._steps = Record(out), Steps()
        self._live, self._tell = live, tell or (lambda _line: None)
        self._waits: list[Wait] = []
        self._lock, self._over = threading.Lock(), threading.Event()
        self._sampler = Sampler(every, clock=time.thread_time)
        self._sampler.start(os.getpid())
        self._cpu_s = 0.0
        self._write([{**self._sampler.about(), "command": sys.argv, "pid": os.getpid()}])
        self._thread = threading.Thread(target=self._run, name="pipegen monitor", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # what ends in an exception has a record, too

    def waited(self, wait: Wait) -> None:
        """Takes note of a wait; on the thread that waited."""
        self._waits.append(wait)

    def mark(self, event: str, **what: int) -> None:
        """Writes that something has begun, such as an epoch."""
        self._write([{"event": event, "t": round(self._sampler.seconds, 3), **what}])

    def stop(self) -> None:
        """Ends the record; a second time it does nothing."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join(10)
        seconds = self._sampler.seconds
        share = self._cpu_s / max(seconds, 1e-9)
        end = {"event": "end", "t": round(seconds, 3), "monitor_cpu_s": round(self._cpu_s, 3), "monitor_share": round(share, 5)}
        self._write([*self._rows_of_waits(seconds), end])
        self._record.close()
        atexit.unregister(self.stop)

    def _run(self) -> None:
        begin, told, pause, lately = time.thread_time(), 0.0, self._sampler.pause(), list[Row]()
        while not self._over.wait(pause):
            row = self._sampler.sample()
            steps = self._rows_of_waits(row["t"])
            self._write([row, *steps])
            lately += steps if self._live else []
            if self._live and row["t"] - told >= self._live:
                self._tell(live_line(row, merged(lately), self.summary.start))
                told, lately = row["t"], []
            self._cpu_s = time.thread_time() - begin
            pause = self._sampler.pause()

    def _rows_of_waits(self, at: float) -> list[Row]:
        waits, self._waits = self._waits, []
        return self._steps.rows(waits, at)

    def _write(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                self.summary.add(row)
            self._record.write(rows)
