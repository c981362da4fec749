"""Writes bytes, rates and times as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Returns bytes in the largest binary unit that leaves a number above one."""
    unit = 0
    while abs(count) >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


def rate(per_second: float | None) -> str:
    """Returns bytes per second as MB/s."""
    return "?" if per_second is None else f"{per_second / 1e6:.1f} MB/s"


def duration(seconds: float) -> str:
    """Returns a time as `12.3 s`, or as hours, minutes and seconds."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
