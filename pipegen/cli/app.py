"""`pipegen`, the program. Typer is imported when it starts, so that even an early Ctrl-C ends in one line."""

from __future__ import annotations

import codecs
import gc
import io
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from pipegen.cli import failures

if TYPE_CHECKING:
    from types import FrameType

_PATIENCE = 3.0
"""Seconds after Ctrl-C in which a command may end by itself."""
_PLAIN = {
    "×": "x", "·": "*", "−": "-", "≤": "<=", "≥": ">=", "√": "sqrt", "µ": "u", "°": " degrees", "→": "->", "…": "...",
    "–": "-", "“": '"', "”": '"', "’": "'", "─": "-", "├": "+", "└": "+", "▶": ">", "⏎": "\\n", "⌊": "[", "⌋": "]", "⌈": "[", "⌉": "]",
}  # fmt: skip
"""What stands for a sign that the terminal's encoding does not know."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Plugins of pydantic serve other programs; looking for them costs more than validating a spec.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Importing makes many objects and little garbage; looking for it now and then is a tenth of the time of `validate`.
    gc.set_threshold(100_000)
    _mend_streams()
    try:
        # Where it is ignored, as in the background of a shell script, it stays so.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        from pipegen.cli.commands import app

        try:
            app(prog_name="pipegen")
        finally:
            gc.freeze()  # else the interpreter searches all objects for garbage before it ends
    except KeyboardInterrupt:
        _leave()
    except SystemExit as end:
        if end.code == failures.INTERRUPTED:
            _leave()
        raise


def _mend_streams() -> None:
    """Streams that take every text, and that are there even where the shell has closed them."""
    codecs.register_error("pipegen", _spell_out)
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="pipegen")


def _spell_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Ctrl-C. Callbacks from C++ may swallow the exception, so there is a time by which the process ends all the same."""
    import threading

    signal.signal(signal.SIGINT, lambda *_: _leave())
    deadline = threading.Timer(_PATIENCE, _leave)
    deadline.daemon = True
    deadline.start()
    raise KeyboardInterrupt


def _leave() -> None:
    """End at once: threads of TensorFlow that are at work would hold up an orderly end for seconds."""
    with suppress(Exception):
        if not failures.was_told():
            failures.interrupted()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    os._exit(failures.INTERRUPTED)
