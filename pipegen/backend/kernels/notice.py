"""Says once that kernels are being compiled, since the first batch waits for them."""

from __future__ import annotations

import logging
import sys
from functools import cache

from pipegen.log import log
from pipegen.terminal import is_terminal, note

_COMPILING = "compiling the pipeline; the first batch takes a few seconds"


@cache
def say_compiling() -> None:
    """Says so once a process: to whoever logs what pipegen informs of, and else to a person at a terminal."""
    if log.isEnabledFor(logging.INFO):
        log.info(_COMPILING)
    elif is_terminal(sys.stderr):
        note(f"pipegen: {_COMPILING}")
