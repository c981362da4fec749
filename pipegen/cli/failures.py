"""Turns an exception into a message that says whose fault it is, and an exit code. Frames only when asked for."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from pipegen.terminal import is_terminal, note, say, wants_colour

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from pipegen.diagnostics.diagnostic import Diagnostic

OK, FOUND, FAILED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
"""Exit codes: no errors; errors in the spec or the data; could not run; Ctrl-C; whoever read the output has left."""

FindingsFormat = Literal["text", "json", "github", "sarif"]
"""The forms that findings are printed in."""

TRACEBACK = "PIPEGEN_TRACEBACK"

_told: list[int] = []


class CannotRun(Exception):
    """Something outside the spec stands in the way, such as a missing file.

    Attributes:
        message: What it is.
        help: What to do about it, a line each.
    """

    def __init__(self, message: str, *help_: str) -> None:
        super().__init__(message)
        self.message = message
        self.help = help_


@contextmanager
def refused(doing: str, name: object) -> Iterator[None]:
    """Puts what the operating system refuses into a line, such as `cannot write sheet.png: permission denied`.

    Raises:
        CannotRun: In place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise CannotRun(f"cannot {doing} {name}: {(error.strerror or str(error)).lower()}") from error


def code_of(findings: Sequence[Diagnostic], *, strict: bool = False) -> int:
    """The exit code that findings lead to; a spec that is not there could not be looked at."""
    from pipegen.diagnostics.diagnostic import Severity

    if any(d.code == "PG005" for d in findings):
        return FAILED
    bad = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return FOUND if any(d.severity in bad for d in findings) else OK


def print_findings(findings: Iterable[Diagnostic], texts: Mapping[str, str] | None = None, *, to: TextIO | None = None) -> None:
    """Findings for people, with a line that counts them."""
    from pipegen.diagnostics.text import render_text

    stream = to if to is not None else sys.stdout
    width = shutil.get_terminal_size().columns if is_terminal(stream) else None
    stream.write(render_text(findings, sources=texts, color=wants_colour(stream), width=width))


def print_report(findings: Sequence[Diagnostic], texts: Mapping[str, str], fine: Sequence[str], output_format: FindingsFormat) -> None:
    """Prints what was found in the form that was asked for; as text, with a line for each thing that is fine before."""
    if output_format == "text":
        for line in fine:
            say(line)
        if findings and fine:
            say()
        print_findings(findings, texts)
    elif output_format == "json":
        from pipegen.diagnostics.machine import render_json

        say(render_json(findings))
    elif output_format == "github":
        from pipegen.diagnostics.machine import render_github

        for line in render_github(findings).splitlines():
            say(line)
    else:
        from pipegen.diagnostics.machine import render_sarif
        from pipegen.release import __version__

        say(render_sarif(findings, version=__version__))


def tell(error: BaseException) -> int:
    """Say on standard error what went wrong; the result is the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return interrupted()
    if isinstance(error, BrokenPipeError):
        return pipe_closed()
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    from pipegen.errors import InternalError, PipegenError, SpecError

    if isinstance(error, SpecError):
        print_findings(error.diagnostics, to=sys.stderr)
        return code_of(error.diagnostics)
    if isinstance(error, CannotRun):
        return _say(error.message, error.help, FAILED)
    if isinstance(error, PipegenError) and not isinstance(error, InternalError):
        return _say(str(error), (), FOUND)
    if isinstance(error, OSError):
        return _say(_about_system(error), (), FAILED)
    missing = _missing_library(error)
    if missing is not None:
        return _say(f"this command needs {missing}, which is not installed here", (f"pip install {missing.lower()}",), FAILED)
    return _internal(error)


def interrupted() -> int:
    """Ctrl-C, in one line."""
    _told.append(INTERRUPTED)
    # A progress bar hides the cursor, and may not get to show it again.
    sys.stderr.write("\x1b[?25h\ninterrupted\n" if sys.stderr.isatty() else "\ninterrupted\n")
    return INTERRUPTED


def was_told() -> bool:
    """Returns whether this process has said that it was interrupted."""
    return bool(_told)


def keep_silent() -> None:
    """Takes an interruption for told: the program that was run has said what there is to say."""
    _told.append(INTERRUPTED)


def pipe_closed() -> int:
    """Silence: nobody reads any more, and Python must not find that out once again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError, AttributeError):
            continue
    return PIPE_CLOSED


def _say(message: str, help_: Sequence[str], code: int) -> int:
    note(f"pipegen: {message}")
    for line in help_:
        note(f"  {line}")
    return code


def _about_system(error: OSError) -> str:
    """Says what the operating system refused, such as room on a disk."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _missing_library(error: BaseException) -> str | None:
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return {"tensorflow": "TensorFlow", "keras": "Keras", "numpy": "NumPy", "PIL": "Pillow"}.get((name or "").partition(".")[0])


def _internal(error: BaseException) -> int:
    what = str(error).strip() or "no message"
    help_ = (
        "This is a mistake in pipegen, not in your spec. Please report it where pipegen comes from, with the spec,",
        f"the output of `pipegen version`, and that of this command once more with {TRACEBACK}=1 set.",
    )
    return _say(f"internal error: {type(error).__name__}: {what}", help_, FAILED)
