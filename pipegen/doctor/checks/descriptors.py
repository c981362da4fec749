"""Looks at how many files this process may have open."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line

_ENOUGH = 4096
"""Shards that are mapped, caches, threads that read, and the sockets of services stay far below."""


def check(examination: Examination) -> Iterator[Line]:
    """Names the limit, and how it is raised."""
    limits = examination.machine.open_files
    if limits is None:
        yield Line("open files", "unknown: /proc/self/limits does not say", "note")
        return
    soft, hard = limits
    fact = f"{_count(soft)} at a time, and up to {_count(hard)} if asked for"
    figures = {"soft": None if soft == float("inf") else int(soft), "hard": None if hard == float("inf") else int(hard)}
    if soft >= _ENOUGH:
        yield Line("open files", fact, figures=figures)
    elif hard >= _ENOUGH:
        yield Line("open files", fact, "warning", f"ulimit -n {_ENOUGH}: data in many shards needs a descriptor for each", figures)
    else:
        remedy = "ask the administrator for more: LimitNOFILE= in systemd, --ulimit nofile=65536 in docker"
        yield Line("open files", fact, "warning", remedy, figures)


def _count(limit: float) -> str:
    return "any number" if limit == float("inf") else f"{limit:,.0f}"
