"""Asks TensorFlow, and whatever else may crash or hang, in other processes with a time limit."""

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
"""Seconds: importing TensorFlow from slow storage takes a minute."""
_HOME = str(Path(__file__).resolve().parents[2])


def ask(environment: Mapping[str, str], *, patience: float = _PATIENCE) -> dict[str, Any]:
    """Returns what `asked.py` answers.

    Where it does not come to its end, `failed` says why, and `doing` in what.
    """
    code, out, err = run_python(["-m", "pipegen.observe.asked"], environment, patience)
    answers: dict[str, Any] = {}
    for answer in answers_of(out):
        answers |= answer
    if code != 0:
        answers["failed"] = reason(code, err, patience)
    return answers


def answers_of(out: str) -> Iterator[dict[str, Any]]:
    """Returns the lines of JSON that a process has written."""
    for line in out.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:  # some library has printed something
            continue
        if isinstance(answer, dict):
            yield answer


def run_python(arguments: list[str], environment: Mapping[str, str], patience: float) -> tuple[int | None, str, str]:
    """Runs this Python; the result is its exit code, `None` if it took too long, and what it wrote."""
    path = os.pathsep.join([_HOME, *filter(None, [environment.get("PYTHONPATH")])])
    try:
        done = subprocess.run(  # noqa: S603 - it is this Python, and a program of ours
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
    """Says why a process did not come to its end: the signal that ended it, or the last line that it wrote."""
    if code is None:
        return f"not done after {patience:.0f} s"
    if code < 0:
        return f"it crashes with {signal.Signals(-code).name}"
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit code {code}"
