"""Messages and exit codes of commands that fail, and the output of findings."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TextIO

from pipegen.terminal import is_terminal, note, say, wants_colour

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic

OK, FOUND, FAILED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
"""Exit codes: no errors; errors in the spec or the data; could not run; Ctrl-C; the reader of the output is gone."""

FindingsFormat = Literal["text", "json", "github", "sarif"]  # output formats of findings

TRACEBACK = "PIPEGEN_TRACEBACK"
_LIBRARIES = {"tensorflow": "TensorFlow", "keras": "Keras", "numpy": "NumPy", "PIL": "Pillow"}
_REPORT = (
    "This is a bug in pipegen, not an error in your spec. Please report it with the spec,",
    f"the output of `pipegen version`, and the output of this command with {TRACEBACK}=1 set.",
)

interrupt_reported = False  # true once this process, or a program that it ran, has reported the interruption


class CannotRun(Exception):
    """An obstacle outside the spec, such as a missing file; `help` says what to do about it, a line each."""

    def __init__(self, message: str, *help_: str) -> None:
        super().__init__(message)
        self.message = message
        self.help = help_


@contextmanager
def refused(doing: str, name: object) -> Iterator[None]:
    """Turns an `OSError` into a `CannotRun`, such as `cannot write sheet.png: permission denied`."""
    try:
        yield
    except OSError as error:
        raise CannotRun(f"cannot {doing} {name}: {(error.strerror or str(error)).lower()}") from error


def check_parent(target: str | os.PathLike[str]) -> None:
    """Raises `CannotRun` if the folder of a file to write is missing, before the work begins."""
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise CannotRun(f"cannot write {target}: there is no folder {folder}")


def code_of(findings: Sequence[Diagnostic], *, strict: bool = False) -> int:
    """Exit code for findings; a missing spec means that the command could not run."""
    from pipegen.diagnostics.diagnostic import Severity

    if any(d.code == "PG005" for d in findings):
        return FAILED
    bad = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return FOUND if any(d.severity in bad for d in findings) else OK


def print_findings(findings: Iterable[Diagnostic], texts: Mapping[str, str] | None = None, *, to: TextIO | None = None) -> None:
    """Prints findings as text, with their number."""
    from pipegen.diagnostics.text import render_text

    stream = to if to is not None else sys.stdout
    width = shutil.get_terminal_size().columns if is_terminal(stream) else None
    stream.write(render_text(findings, sources=texts, color=wants_colour(stream), width=width))


def print_report(
    findings: Sequence[Diagnostic], texts: Mapping[str, str], fine: Sequence[str], output_format: FindingsFormat, **more: Any
) -> None:
    """Prints findings in the given format; as text, after a line for each item in `fine`; as JSON, with `more`."""
    if output_format == "text":
        for line in fine:
            say(line)
        if findings and fine:
            say()
        print_findings(findings, texts)
    elif text := render_findings(findings, output_format, **more):
        say(text)


def render_findings(findings: Sequence[Diagnostic], output_format: str, **more: Any) -> str:
    """Renders findings for other programs: `json`, to which `more` is added, `github` or `sarif`."""
    from pipegen.diagnostics.machine_readable import render_github, render_json, render_sarif
    from pipegen.release import __version__

    if output_format == "json":
        return render_json(findings, **more)
    return render_github(findings).rstrip("\n") if output_format == "github" else render_sarif(findings, version=__version__)


def tell(error: BaseException) -> int:
    """Reports an error on standard error; returns the exit code."""
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
        return report(error.message, error.help, FAILED)
    if isinstance(error, PipegenError) and not isinstance(error, InternalError):
        return report(str(error), (), FOUND)
    if isinstance(error, OSError):
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        return report(f"{error.filename}: {reason}" if error.filename is not None else reason, (), FAILED)
    module = error.name if isinstance(error, ModuleNotFoundError) else None
    missing = _LIBRARIES.get((module or "").partition(".")[0])
    if missing is not None:
        return report(f"this command needs {missing}, which is not installed", (f"pip install {missing.lower()}",), FAILED)
    return report(f"internal error: {type(error).__name__}: {str(error).strip() or 'no message'}", _REPORT, FAILED)


def interrupted() -> int:
    """Reports Ctrl-C in one line."""
    keep_silent()
    # A progress bar hides the cursor, and is interrupted before it can show it again.
    sys.stderr.write("\x1b[?25h\ninterrupted\n" if sys.stderr.isatty() else "\ninterrupted\n")
    return INTERRUPTED


def keep_silent() -> None:
    """Suppresses the report of an interruption: the program that was run has reported it."""
    global interrupt_reported  # noqa: PLW0603 - a signal ends the process, of which there is one
    interrupt_reported = True


def pipe_closed() -> int:
    """After EPIPE: points the streams to /dev/null, so that the flush at exit cannot fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError, AttributeError):
            continue
    return PIPE_CLOSED


def report(message: str, help_: Sequence[str], code: int) -> int:
    """Prints a message and help on standard error; returns the exit code."""
    note(f"pipegen: {message}")
    for line in help_:
        note(f"  {line}")
    return code
