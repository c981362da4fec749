"""Compares memory, by the machine and by control groups, with what a spec is expected to hold."""

from __future__ import annotations

from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line
from pipegen.spec.units import format_bytes

_SMALL = 2 * 2**30
"""TensorFlow alone takes a fourth of that."""


def check(examination: Examination) -> Iterator[Line]:
    """Names what there is, what is left, and what of that a pipeline takes for caches and buffers."""
    machine = examination.machine
    total, free = machine.memory("MemTotal"), machine.memory("MemAvailable")
    limit, left = machine.cgroup.memory_limit, machine.cgroup.memory_left
    if total is None or free is None:
        yield Line("memory", "unknown: /proc/meminfo does not say", "note")
        return
    available = free if left is None else min(free, left)
    fact = f"{format_bytes(total)}, {format_bytes(free)} available"
    if limit is not None and limit < total:
        fact += f"; control groups grant {format_bytes(limit)}, of which {format_bytes(min(left or 0, limit))} are left"
    figures = {"total": total, "available": free, "limit": limit, "left": left}
    needed = None if examination.needs is None else examination.needs.memory(examination.cores)
    if needed is not None:
        fact, figures = f"{fact}; the spec is expected to hold {format_bytes(needed)}", {**figures, "needed": needed}
    if needed is not None and needed > available:
        yield Line("memory", fact, "error", "`runtime: {cache: {disk: FOLDER}}`, a smaller batch, or a smaller picture", figures)
    elif available < _SMALL:
        remedy = "ask for more memory: TensorFlow itself takes half a gigabyte, and a batch of pictures may take as much"
        yield Line("memory", fact, "warning", remedy, figures)
    else:
        yield Line("memory", fact, figures=figures)
