"""Watches a run: a command from start to end, without disturbing it, or this process itself."""

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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from pipegen.frozen import dataclass
from pipegen.observe.run_record import Record, Row, Summary, live_line, wait_rows
from pipegen.observe.sampler import Sampler
from pipegen.waiting import VARIABLE, Wait

_FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # signals that Python ignores; a child would inherit that
_BY_KERNEL = 0x80  # `si_code` of a signal from the kernel, such as after Ctrl-C to all processes in the terminal's foreground

_LOOK = 0.5  # seconds between two checks of the child, if no signal reports its end


class NotStarted(Exception):
    """A command cannot be run; `code` is a shell's exit code for it: 127 if the command is not found, else 126."""

    def __init__(self, message: str, code: int, *help_: str) -> None:
        super().__init__(message)
        self.code = code
        self.help = help_


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command: its exit code, or 128 plus the number of the signal that ended it; the signal's name, or `None`; and the
    processor seconds of the command and of all descendants that it waited for."""

    code: int
    signal: str | None
    cpu_s: float


class Child:
    """A command that was started, with work to do while waiting for its end.

    The signals that are forwarded are blocked until `released`, and waited for instead: so none interrupts anything, and the sender of each
    is known. Ignored signals stay ignored, as under `nohup`.

    Raises:
        NotStarted: If it cannot be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, the kernel would drop the exit code
        self._awaited = {signal.SIGCHLD, *(s for s in _FORWARDED if signal.getsignal(s) is not signal.SIG_IGN)}
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._awaited)
        try:
            self.pid = os.posix_spawnp(command[0], list(command), environment, setsigmask=self._mask, setsigdef=_OF_PYTHON)
        except BaseException as error:
            self.released()
            if isinstance(error, OSError):
                raise _not_started(command[0], error) from None
            if isinstance(error, ValueError):  # an empty name, or a zero character in an argument
                raise NotStarted(f"command {command[0]!r} not found", 127, *_hint(command[0])) from None
            raise

    def wait(self, work: Callable[[], float], pause: float) -> Ended:
        """Waits for the end; meanwhile calls `work` after each pause, which returns the seconds of the next pause."""
        due = time.monotonic() + pause
        while True:
            # SIGCHLD may go to a thread that does not block it, so the child is checked now and then in any case.
            info = signal.sigtimedwait(self._awaited, max(0.0, min(_LOOK, due - time.monotonic())))
            if info is not None and info.si_signo != signal.SIGCHLD:
                # A signal from the kernel to the terminal's foreground has reached the child as well, unless it has left the group.
                with suppress(ProcessLookupError, PermissionError):
                    if info.si_code != _BY_KERNEL or os.getpgid(self.pid) != os.getpgrp():
                        os.kill(self.pid, info.si_signo)
            ended = self._reaped()
            if ended is not None:
                return ended
            if time.monotonic() >= due:
                due = time.monotonic() + work()

    def released(self) -> None:
        """Unblocks the signals."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _reaped(self) -> Ended | None:
        """Collects ended children, and returns the command's end. The first process of a container also gets orphans of others."""
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
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _not_started(program: str, error: OSError) -> NotStarted:
    found = shutil.which(program)
    if isinstance(error, FileNotFoundError) and found is None:
        from pipegen.terminal import one_line

        return NotStarted(f"command `{one_line(program)}` not found", 127, *_hint(program))
    if isinstance(error, FileNotFoundError):
        return NotStarted(f"{found} cannot be run: the interpreter in its first line does not exist", 126)
    reason = (error.strerror or str(error)).lower()
    return NotStarted(f"cannot run {program}: {reason}", 126, *_hint(program))


def _hint(program: str) -> list[str]:
    if program.endswith(".py"):
        return [f"run a script by Python: pipegen monitor -- python {program}"]
    return [f"write the command after `--`, such as `pipegen monitor -- python train.py`; is {program!r} installed here?"]


_ROOM = 1 << 20


class WaitPipe:
    """The FIFO into which watched processes write their waits; reading it does not block."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="pipegen-monitor-")
        self.path = os.path.join(self._folder, "waits")  # what `VARIABLE` names to the watched processes
        os.mkfifo(self.path, 0o600)
        # Open for writing, too, so that the end of one writer is not the end of the file.
        self._file = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.fcntl(self._file, fcntl.F_SETPIPE_SZ, _ROOM)
        self._rest = b""

    def read(self) -> list[Wait]:
        """Reads the waits since the last call."""
        chunks = [self._rest]
        with suppress(BlockingIOError):
            while chunk := os.read(self._file, _ROOM):
                chunks.append(chunk)
        *lines, self._rest = b"".join(chunks).split(b"\n")
        return [told for line in lines if (told := _parsed(line)) is not None]

    def close(self) -> None:
        """Removes the FIFO; later writers get EPIPE."""
        os.close(self._file)
        shutil.rmtree(self._folder, ignore_errors=True)


def _parsed(line: bytes) -> Wait | None:
    parts = line.decode(errors="replace").split(" ", 4)
    try:
        pid, *times, split = parts
        ended, seconds, step_seconds = map(float, times)
        return Wait(int(pid), ended, seconds, step_seconds, split)
    except ValueError:  # from another version of pipegen
        return None


HOUR = 3600.0


def require(*libraries: str) -> None:
    """Raises `ImportError` if one of several libraries is not installed, with the command that installs it."""
    for name in libraries:
        if importlib.util.find_spec(name) is None:
            raise ImportError(f"monitoring needs {name}, which is not installed here: pip install 'pipegen[monitor]'")
    if "psutil" in libraries:  # imported now, not while the run is measured
        importlib.import_module("psutil")


class _Watcher:
    """The sums of a run, its record, and a line that is told each `live` seconds (0 for none)."""

    def __init__(self, out: Path | None, live: float, tell: Callable[[str], None], early: float = 0.0) -> None:
        require("psutil")
        self.record = Record(out)
        self._live, self._tell, self._early = live, tell, early
        self._done, self.summary = Counter[tuple[int, str]](), Summary()
        self._lock = threading.Lock()
        self._told_at = 0.0
        self._lately: list[Row] = []  # waits since the latest line

    def _sample(self, sampler: Sampler, waits: Callable[[], Iterable[Wait]]) -> float:
        """Takes a sample, and returns the seconds until the next."""
        row = sampler.sample()
        steps = wait_rows(waits(), row["t"], self._done)
        self._write([row, *steps])
        self._lately += steps if self._live else []
        if self._live and row["t"] - self._told_at >= self._live - self._early:
            self._say(live_line(row, self._lately, self.summary.start))
            self._told_at, self._lately = row["t"], []
        return sampler.pause()

    def _write(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                self.summary.add(row)
            self.record.write(rows)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # the terminal may be closed
            self._tell(line)


class Watch(_Watcher):
    """A watcher of a command that writes a record `out`, tells a line each `live` seconds (0 for none), and sums up the run.

    It takes a sample `every` so many seconds.
    """

    def __init__(self, command: Sequence[str], out: Path | None, *, every: float, live: float, tell: Callable[[str], None]) -> None:
        super().__init__(out, live, tell, early=0.5 * every)
        self._command, self._out, self._every = list(command), out, every

    def run(self) -> Ended:
        """Runs the command to its end; raises `NotStarted` if that is impossible."""
        with ExitStack() as stack:
            stack.enter_context(closing(self.record))
            self._pipe = WaitPipe()
            stack.callback(self._pipe.close)
            self._sampler: Sampler | None = Sampler(self._every)
            began, spent = time.monotonic(), time.process_time()
            child = Child(self._command, {**os.environ, VARIABLE: self._pipe.path})
            stack.callback(child.released)
            self._sampler.start(child.pid)
            self._write([{**self._sampler.about(), "command": self._command, "pid": child.pid}])
            ended = child.wait(self._work, self._every)
            seconds, spent = time.monotonic() - began, time.process_time() - spent
            with suppress(Exception):
                self._write(wait_rows(self._pipe.read(), seconds, self._done))
            how = {"code": ended.code, "signal": ended.signal, "cpu_s": round(ended.cpu_s, 3)}
            own = {"monitor_cpu_s": round(time.process_time(), 3), "monitor_share": round(spent / max(seconds, 1e-9), 5)}
            self._write([{"event": "end", "t": round(seconds, 3), **how, **own}])
            self.record.close()
            if self.record.failed is not None:
                reason = self.record.failed.strerror or self.record.failed
                self._say(f"pipegen monitor: {self._out} is incomplete: {str(reason).lower()}")
        return ended

    def _work(self) -> float:
        if self._sampler is None:
            return HOUR
        try:
            return self._sample(self._sampler, self._pipe.read)
        except Exception as error:  # no error of the monitor may end the user's training
            self._sampler = None
            self._say(f"pipegen monitor: stopped watching; the run continues: {type(error).__name__}: {error}")
            return HOUR


class Inside(_Watcher):
    """A watcher of this process and its descendants, until it is stopped; for the arguments see `Watch`."""

    def __init__(self, out: Path | None, every: float, live: float, tell: Callable[[str], None]) -> None:
        super().__init__(out, live, tell)
        self._waits: list[Wait] = []
        self._over = threading.Event()
        self._sampler = Sampler(every, clock=time.thread_time)
        self._sampler.start(os.getpid())
        self._cpu_s = 0.0
        self._write([{**self._sampler.about(), "command": sys.argv, "pid": os.getpid()}])
        self._thread = threading.Thread(target=self._run, name="pipegen monitor", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # a run that ends with an exception has a record, too

    def waited(self, wait: Wait) -> None:
        """Records a wait; called on the thread that waited."""
        self._waits.append(wait)

    def mark(self, event: str, **what: int) -> None:
        """Writes an event, such as the beginning of an epoch."""
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
        self._write([*wait_rows(self._latest_waits(), seconds, self._done), end])
        self.record.close()
        atexit.unregister(self.stop)

    def _run(self) -> None:
        begin, pause = time.thread_time(), self._sampler.pause()
        while not self._over.wait(pause):
            pause = self._sample(self._sampler, self._latest_waits)
            self._cpu_s = time.thread_time() - begin

    def _latest_waits(self) -> list[Wait]:
        waits, self._waits = self._waits, []
        return waits
