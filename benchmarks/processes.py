"""What a process and those that it started take: processor time and memory, read from `/proc`, which Linux has."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def processor_s(root: int) -> float | None:
    """Sums the processor time of a process and of all below it, in seconds; what has ended counts once it was waited for.

    Returns:
        `None` where there is no `/proc`.
    """
    stats = _family(root)
    if not stats:
        return None
    ticks = sum(int(each) for stat in stats.values() for each in stat[11:15])  # of its own and of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(root: int) -> int:
    """Sums the memory of a process and of all below it, in bytes; a page that several of them share counts once.

    Pages of files do not count: the system can take them back, and other programs on the machine map the same libraries.
    """
    return sum(_proportional(pid) for pid in _family(root))


def _family(root: int) -> dict[int, list[str]]:
    """The process and all below it, each with its line of state."""
    stats = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            stats[int(folder.name)] = _stat(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    found = [root] if root in stats else []
    for pid in found:  # which grows
        found += [child for child, stat in stats.items() if int(stat[1]) == pid]
    return {pid: stats[pid] for pid in found}


def _stat(pid: int) -> list[str]:
    """The fields of a process's state from the third on, since its name may hold blanks."""
    return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _proportional(pid: int) -> int:
    """A process's own pages, and of those that it shares with others its share, in bytes; 0 once it has ended."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
