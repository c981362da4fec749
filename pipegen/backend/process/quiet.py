"""Keeps TensorFlow's own log lines off standard error while pipegen imports it.

TensorFlow says on import which instructions it was built for and which drivers it has not found. Some of that it writes before it has
read `TF_CPP_MIN_LOG_LEVEL`, so what arrives on standard error is held back and sorted.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipegen.garbage import uncollected

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_ERRORS_ONLY = "2"
_ASKS_FOR_LINES = ("0", "1")
"""Levels with which a user asks for TensorFlow's log lines. A higher one asks for silence, which TensorFlow does not keep by itself."""

_NOISE = re.compile(
    rb"""
    [IW]\d{4}\ [\d:.]+ .*                                       # a log line of absl, below an error
    | \d{4}-\d\d-\d\d\ [\d:.]+:\ [IW]\ .*                       # one of older releases
    | .*(?:failed\ call\ to\ cuInit|Unable\ to\ register\ cu\w+\ factory).*   # errors on every machine without a GPU
    | WARNING:\ All\ log\ messages\ before\ absl.*
    | To\ enable\ the\ following\ instructions:.*
    """,
    re.VERBOSE,
)


def import_tensorflow() -> None:
    """Imports TensorFlow, unless that has been done, and without its log lines, unless `TF_CPP_MIN_LOG_LEVEL` asks for them.

    Python's garbage collector is off meanwhile: it would search what stays for good, a quarter of the time. TensorFlow reads the
    variable once, on import: where the user has not set it, it is gone again afterwards, and TensorFlow logs errors alone.
    """
    if "tensorflow" in sys.modules:
        return
    if _user_asks_for_lines():
        with uncollected():
            importlib.import_module("tensorflow")
        return
    is_set = _LEVEL in os.environ
    os.environ.setdefault(_LEVEL, _ERRORS_ONLY)
    try:
        with uncollected(), without_noise():
            tensorflow = importlib.import_module("tensorflow")
            tensorflow.config.list_physical_devices()  # looks for drivers, and says which it has not found
    finally:
        if not is_set:
            os.environ.pop(_LEVEL, None)


@contextmanager
def quietly() -> Iterator[None]:
    """Holds TensorFlow's chatter back, unless `TF_CPP_MIN_LOG_LEVEL` asks for it."""
    if _user_asks_for_lines():
        yield
        return
    with without_noise():
        yield


@contextmanager
def without_noise() -> Iterator[None]:
    """Holds back what arrives on standard error, of this process and its C++ code, and then passes on all but TensorFlow's chatter."""
    try:
        own = os.dup(2)
    except OSError:  # a process without standard error
        yield
        return
    with tempfile.TemporaryFile() as held:
        _flush()
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            _flush()
            os.dup2(own, 2)
            os.close(own)
            held.seek(0)
            for line in held:
                if not _NOISE.fullmatch(line.rstrip(b"\r\n")):
                    os.write(2, line)


def _user_asks_for_lines() -> bool:
    return os.environ.get(_LEVEL) in _ASKS_FOR_LINES


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()
