"""`pipegen`, the program. It imports Typer after it has installed its Ctrl-C handler, so that an early Ctrl-C prints one line."""

from __future__ import annotations

import codecs
import gc
import io
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from pipegen.cli import failures

_PATIENCE = 3.0  # seconds that a command has to end by itself after Ctrl-C
_PLAIN = {
    "×": "x", "·": "*", "−": "-", "≤": "<=", "≥": ">=", "√": "sqrt", "µ": "u", "°": " degrees", "→": "->", "…": "...",
    "–": "-", "“": '"', "”": '"', "’": "'", "─": "-", "├": "+", "└": "+", "▶": ">", "⏎": "\\n", "⌊": "[", "⌋": "]", "⌈": "[", "⌉": "]",
}  # fmt: skip
"""Replacements for characters that the terminal's encoding lacks."""


def main() -> None:
    """Run the command line and exit with its code."""
    # Plugins of pydantic belong to other programs; searching for them costs more than validating a spec.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Imports make many objects and little garbage; collecting it would take a tenth of the time of `validate`.
    gc.set_threshold(100_000)
    _mend_streams()
    try:
        # An ignored SIGINT, as in the background of a shell script, stays ignored.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        from pipegen.cli.commands import app

        try:
            app(prog_name="pipegen")
        finally:
            gc.freeze()  # else the interpreter collects garbage once more at exit
    except KeyboardInterrupt:
        _leave()
    except SystemExit as end:
        if end.code == failures.INTERRUPTED:
            _leave()
        raise


def _mend_streams() -> None:
    """Makes streams that accept any text; replaces those that the shell has closed."""
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
    """Handles Ctrl-C. Callbacks from C++ may swallow the exception, so a timer ends the process."""
    import threading

    signal.signal(signal.SIGINT, lambda *_: _leave())
    deadline = threading.Timer(_PATIENCE, _leave)
    deadline.daemon = True
    deadline.start()
    raise KeyboardInterrupt


def _leave() -> None:
    """Exits at once: a clean shutdown would wait seconds for TensorFlow's threads."""
    with suppress(Exception):
        if not failures.interrupt_reported:
            failures.interrupted()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    os._exit(failures.INTERRUPTED)
