"""Features of the calendar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipegen.lazy import np

_NS = 10**9
_PERIODS = {"minute": 60, "hour": 24, "weekday": 7, "day": 31, "day_of_year": 366, "month": 12}


def calendar_of(moments: Any, names: Sequence[str], *, cyclic: bool) -> Any:
    """Computes features of the calendar, float32 `(n, names)`: the minute of the hour and the hour of the day with their fractions; the
    weekday from 0, Monday; the day of the month, that of the year and the month from 1. As `cyclic`, the sine and the cosine of each
    `(n, 2 * names)`: the angle is 0 at the first value of a period, and values after its last one begin again."""
    days = np.floor_divide(moments, 86400 * _NS)
    dates = days.astype("datetime64[D]")
    months, years = dates.astype("datetime64[M]"), dates.astype("datetime64[Y]")
    of_day = (moments - days * (86400 * _NS)) / (3600.0 * _NS)
    found = {
        "minute": of_day * 60 % 60,
        "hour": of_day,
        "weekday": (days + 3) % 7,
        "day": (dates - months).astype(np.int64) + 1,
        "day_of_year": (dates - years).astype(np.int64) + 1,
        "month": months.astype(np.int64) % 12 + 1,
    }
    if not cyclic:
        return np.stack([found[name] for name in names], -1).astype(np.float32)
    firsts = {"day": 1, "day_of_year": 1, "month": 1}
    angles = [2 * np.pi * (found[name] - firsts.get(name, 0)) / _PERIODS[name] for name in names]
    return np.stack([wave(angle) for angle in angles for wave in (np.sin, np.cos)], -1).astype(np.float32)
