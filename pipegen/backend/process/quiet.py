"""Import of TensorFlow without its log lines.

On import TensorFlow logs the instructions it was built for and missing drivers, some of it before it reads `TF_CPP_MIN_LOG_LEVEL`. So
standard error is captured and filtered.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pipegen.lazy import uncollected

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_ERRORS_ONLY = "2"
_ASKS_FOR_LINES = ("0", "1")  # levels at which a user asks for TensorFlow's log lines. TensorFlow alone is not silent at higher ones.

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
    """Imports TensorFlow once, without its log lines, unless `TF_CPP_MIN_LOG_LEVEL` asks for them.

    The garbage collector is paused: it would scan permanent objects, a quarter of the time. TensorFlow reads the variable once, on
    import. If the user has not set it, TensorFlow logs only errors, and the variable is removed afterwards.
    """
    if "tensorflow" in sys.modules:
        return
    asks, is_set = _user_asks_for_lines(), _LEVEL in os.environ
    os.environ.setdefault(_LEVEL, _ERRORS_ONLY)
    try:
        with uncollected(), quietly():
            tensorflow = importlib.import_module("tensorflow")
            if not asks:
                tensorflow.config.list_physical_devices()  # looks for drivers, and logs missing ones
    finally:
        if not is_set:
            os.environ.pop(_LEVEL, None)


def quietly() -> AbstractContextManager[None]:
    """Suppresses TensorFlow's log lines, unless `TF_CPP_MIN_LOG_LEVEL` asks for them."""
    return nullcontext() if _user_asks_for_lines() else without_noise()


@contextmanager
def without_noise(noise: re.Pattern[bytes] = _NOISE) -> Iterator[None]:
    """Captures standard error, also of C++ code, and then passes on all lines but noise, by default TensorFlow's log lines."""
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
                if not noise.fullmatch(line.rstrip(b"\r\n")):
                    os.write(2, line)


def _user_asks_for_lines() -> bool:
    return os.environ.get(_LEVEL) in _ASKS_FOR_LINES


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()
