"""The format of events in sound, and the rules for keeping them."""

from __future__ import annotations

from typing import Literal

from pipegen.frozen import dataclass

EventFormat = Literal["start_end", "start_duration"]
"""`start_end` is the start and the end of each event in seconds, `start_duration` its start and how long it lasts."""


@dataclass(frozen=True, slots=True)
class EventRules:
    """The stored format of events, and the rules for keeping them when their sound is cut, shifted or played at another speed."""

    format: EventFormat | None = "start_end"
    """The stored format; steps work on `start_end`. `None` for events that are `start_end` already and lie in their sound."""
    most: int | None = None  # the most events of one sound that leave the pipeline; the longest stay. `None` for all.
    min_duration: float = 0.0  # the least time of an event that remains in the sound, in seconds
    min_visibility: float = 0.0  # the least share of its time
    empty: Literal["allow", "refuse"] = "allow"  # whether a stored sound may have no event
