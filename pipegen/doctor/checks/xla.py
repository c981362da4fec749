"""Sees whether XLA compiles, and what it compiles is right."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line


def check(examination: Examination) -> Iterator[Line]:
    """Reports a small program that was compiled and run on the processor."""
    answers = examination.answers
    if "gpus" not in answers:
        return
    if answers.get("xla"):
        seconds = answers["xla_seconds"]
        yield Line("XLA", f"compiles and runs, in {seconds:.2f} s", figures={"works": True, "seconds": seconds})
        return
    why = answers.get("why") or answers.get("failed", "it says nothing")
    remedy = "`runtime: {jit: never}` does without, and is slower; pip install --force-reinstall tensorflow"
    yield Line("XLA", f"does not work: {why}", "error" if "failed" in answers else "warning", remedy, {"works": False, "why": why})
