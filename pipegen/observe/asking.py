"""Runs TensorFlow, and other code that may crash or hang, in separate processes with a time limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_PATIENCE = 180.0
"""The time limit in seconds; importing TensorFlow from slow storage takes a minute."""
_HOME = str(Path(__file__).resolve().parents[2])


def ask(environment: Mapping[str, str], *, patience: float = _PATIENCE) -> dict[str, Any]:
    """Runs `asked.py` and collects its answers; after a failure, `failed` is the reason and `doing` the task."""
    code, out, err = run_python(["-m", "pipegen.observe.asked"], environment, patience)
    answers: dict[str, Any] = {}
    for answer in answers_of(out):
        answers |= answer
    if code != 0:
        answers["failed"] = reason(code, err, patience)
    return answers


def answers_of(out: str) -> Iterator[dict[str, Any]]:
    """Yields the lines of JSON in the output of a process."""
    for line in out.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:  # printed by a library
            continue
        if isinstance(answer, dict):
            yield answer


def run_python(arguments: list[str], environment: Mapping[str, str], patience: float) -> tuple[int | None, str, str]:
    """Runs this Python; returns its exit code (`None` after a timeout) and its output on both streams."""
    path = os.pathsep.join([_HOME, *filter(None, [environment.get("PYTHONPATH")])])
    try:
        done = subprocess.run(  # noqa: S603 - this Python, and pipegen's own code
            [sys.executable, *arguments],
            env={**environment, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace"), (late.stderr or b"").decode(errors="replace")
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def reason(code: int | None, err: str, patience: float) -> str:
    """Describes why a process failed: the signal that ended it, or the last line of its errors."""
    if code is None:
        return f"not done after {patience:.0f} s"
    if code < 0:
        return f"it crashes with {signal.Signals(-code).name}"
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit code {code}"
