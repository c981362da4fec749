"""Runs a command as if nobody watched: its streams and its terminal are its own, it gets the signals, and its exit code is handed on."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

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
