"""Looks at the room in `/dev/shm`, which loaders with worker processes pass batches through."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pipegen.doctor.examination import Examination
from pipegen.doctor.line import Line
from pipegen.spec.units import format_bytes

_ENOUGH = 2**30
"""Docker gives 64 MiB, which is where the complaints come from."""


def check(examination: Examination) -> Iterator[Line]:
    """Names the room. pipegen itself works in one process, so that little of it stops nothing."""
    try:
        found = os.statvfs(examination.machine.root / "dev/shm")
    except OSError:
        yield Line(
            "shared memory", "there is no /dev/shm", "note", "docker run --shm-size=2g, if another loader works in several processes"
        )
        return
    size, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    fact, figures = f"{format_bytes(size)}, {format_bytes(free)} free", {"size": size, "free": free}
    if free >= _ENOUGH:
        yield Line("shared memory", fact, figures=figures)
    else:
        remedy = "docker run --shm-size=2g, if another loader works in several processes; pipegen does not"
        yield Line("shared memory", fact, "note", remedy, figures)
