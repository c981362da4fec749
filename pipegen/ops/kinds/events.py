"""Events: what happens in a sound, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.timeline import EventFormat, EventRules
from pipegen.ops.fields.columns import Column, Place, Ragged, most_items
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import read_ragged
from pipegen.ops.kinds.audio import SoundSamples
from pipegen.ops.kinds.base import FeatureKind, Timeline
from pipegen.ops.lowering.pictures import spanned
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Items


class EventTimeline(Timeline):
    """Events go where their samples go, and are cut to the sound. An event without a duration stays as long as it is inside."""

    lies_on = SoundSamples
    formats = get_args(EventFormat)

    def joins(self, x: FeatureType) -> bool:
        return True

    def prepared_type(self, x: FeatureType) -> FeatureType | None:
        rules: EventRules = x.details  # type: ignore[assignment]
        return None if rules.format is None else x.with_(details=replace(rules, format=None, empty="allow"))  # both have been applied

    def prepare(self, items: tf.Tensor, offset: float, length: tf.Tensor, details: Any) -> Items:
        start, end = _ends(items, details.format)
        return _kept(start - offset, end - offset, length, details)

    def earlier(self, items: Any, seconds: Any, x: FeatureType) -> Any:
        by_end = x.details.format != "start_duration"  # type: ignore[attr-defined]
        return (items.astype(np.float64) - np.stack([seconds, seconds * by_end], -1)).astype(items.dtype)

    def ends(self, items: Any, x: FeatureType) -> Any:
        start, second = np.asarray(items, np.float64).reshape(-1, 2).T
        return start + second if x.details.format == "start_duration" else second  # type: ignore[attr-defined]

    def move(self, items: tf.Tensor, factor: tf.Tensor, start: tf.Tensor, length: tf.Tensor, details: Any) -> Items:
        begin, end = ((time - start[:, None]) / factor[:, None] for time in _ends(items, None))
        return _kept(begin, end, length, details)

    def to_format(self, items: tf.Tensor, form: str, size: tuple[int, int] | None) -> tf.Tensor:
        start, end = _ends(items, None)
        return tf.cast(tf.stack([start, end - start if form == "start_duration" else end], -1), tf.float32)

    def limit(self, x: FeatureType) -> int | None:
        return x.details.most if isinstance(x.details, EventRules) else None

    def weight(self, items: tf.Tensor) -> tf.Tensor:
        return items[..., 1] - items[..., 0]

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        return spanned(image, np.asarray(value, np.float64), names)

    def described(self, items: Any, x: FeatureType) -> Any:
        return [[round(float(time), 6) for time in event] for event in items]


class Events(FeatureKind):
    """What happens in a sound and when, any number of events in each: start and end in seconds from the first frame of the sound."""

    name = "events"
    plural = "events"
    arguments = ("of", "keys", "columns", "format", "hop_ms", "max", "min_duration", "min_visibility", "empty")
    storage = "ragged"
    geometry = EventTimeline()
    numbers = 2

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (events_type(feature.of or "audio", feature.event_rules()),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        rules = feature.event_rules()
        items = self._checked(read_ragged(name, given, (self.numbers,), place), rules, name, place)
        return Column(items, events_type(feature.of or "audio", rules, most=most_items(items)))

    def item_shape(self, feature: Any, numbers: int, items: int | None) -> tuple[int, ...]:
        if feature.hop_ms is not None:
            return ()
        if numbers % self.numbers:
            raise ValueError(f"it has {count(numbers, 'number')}, which is no multiple of {self.numbers}")
        return (self.numbers,)

    def _checked(self, items: Ragged, rules: EventRules, name: str, place: Place) -> Ragged:
        """Checks events, and returns them as float32; `PG253` if they are none, `PG254` if there are none but must be some."""
        values = np.asarray(items.values, np.float32).reshape(-1, self.numbers)

        def at(wrong: Any) -> str:
            item = int(np.argmax(wrong))
            row, number = items.place(item)
            return f"{place(row)}: event {number} is [{', '.join(f'{v:g}' for v in values[item])}]"

        wrong = ~np.isfinite(values).all(1)
        if wrong.any():
            raise OpError("PG253", f"{at(wrong)}, not two finite numbers", help="leave such events out")
        wrong = values[:, 0] < 0
        if wrong.any():
            message = f"{at(wrong)}, which starts before the sound; so {'does' if wrong.sum() == 1 else 'do'} {int(wrong.sum())}"
            raise OpError("PG253", f"{message} of {len(values):,} events", help="times are seconds from the start of the file, 0 or more")
        by_end = rules.format != "start_duration"
        wrong = values[:, 1] < values[:, 0] if by_end else values[:, 1] < 0
        if wrong.any():
            message = f"{at(wrong)}, which {'ends before it starts' if by_end else 'lasts less than 0 seconds'}; so"
            message = f"{message} {'does' if wrong.sum() == 1 else 'do'} {int(wrong.sum())} of {len(values):,} events"
            help_ = write("format: start_duration", "arguments", "if these are a start and a duration, write {}")
            raise OpError("PG253", message, field="format", help=help_ if by_end else "correct such events, or leave them out")
        if rules.empty == "refuse" and not np.all(items.lengths):
            bare = np.flatnonzero(np.asarray(items.lengths) == 0)
            message = f"{place(int(bare[0]))} has no events, like {len(bare) - 1} others, but `empty: refuse` requires one in each sound"
            raise OpError("PG254", message, field="empty", help=write("empty: allow", "arguments", "leave such sounds out, or write {}"))
        return Ragged(values, np.asarray(items.lengths, np.int64))

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        rules: EventRules = x.details  # type: ignore[assignment]
        kept = {"min_duration": rules.min_duration, "min_visibility": rules.min_visibility}
        return {name: value for name, value in ({"max": rules.most} | kept).items() if value}


def events_type(of: str, rules: EventRules, *, most: int = 0) -> FeatureType:
    """Returns the type of events in the sound `of`; `most` is the most that a record has, 0 if unknown."""
    return FeatureType("events", "float32", (None, 2), of=of, most=most, details=rules)


def events_of_frames(frames: Ragged, hop: float) -> tuple[Ragged, Any]:
    """Finds the events of sounds with a label for each frame: neighbouring frames with the same label, other than 0 and an empty text.

    Args:
        frames: The labels `(frames,)`, or 0 and 1 for each class `(frames, classes)`, of each record.
        hop: Seconds from one frame to the next.

    Returns:
        The start and end of each event in seconds, float64 `(events, 2)`, in the order of starts and then of classes; and its label or,
        with several classes, the index of its class.
    """
    values = np.asarray(frames.values)
    values = values if values.ndim > 1 else values[:, None]
    record_ends = np.cumsum(frames.lengths)
    firsts = record_ends - frames.lengths
    there = values != ("" if values.dtype.kind == "U" else 0)
    goes_on = there[1:] & (values[1:] == values[:-1])
    goes_on[firsts[(firsts > 0) & (firsts < len(values))] - 1] = False
    begins, ends = there.copy(), there.copy()
    begins[1:] &= ~goes_on
    ends[:-1] &= ~goes_on
    classes, first = np.nonzero(begins.T)  # class by class, so that both have one order
    last = np.nonzero(ends.T)[1]
    order = np.lexsort((classes, first))
    classes, first, last = classes[order], first[order], last[order]
    record = np.searchsorted(record_ends, first, side="right")
    times = (np.stack([first, last + 1], -1) - firsts[record, None]) * float(hop)
    return Ragged(times, np.bincount(record, minlength=len(firsts))), classes if frames.values.ndim > 1 else values[first, 0]


def _ends(items: tf.Tensor, form: str | None) -> tuple[tf.Tensor, tf.Tensor]:
    """Start and end of events of a format, float64 `(n, most)`."""
    start, end = tf.unstack(tf.cast(items, tf.float64), axis=-1)
    return start, start + end if form == "start_duration" else end


def _kept(start: tf.Tensor, end: tf.Tensor, length: tf.Tensor, rules: EventRules) -> Items:
    """Cuts events to a sound that lasts so many seconds, float64 `(n,)`; returns float32 and a mask of those to keep."""
    length = tf.broadcast_to(length, tf.shape(start)[:1])[:, None]
    first, last = tf.maximum(start, 0.0), tf.minimum(end, length)
    kept = tf.where(start < end, first < last, (start >= 0.0) & (start < length))
    if rules.min_duration:
        kept &= last - first >= rules.min_duration
    if rules.min_visibility:
        kept &= last - first >= rules.min_visibility * (end - start)
    return tf.cast(tf.stack([first, last], -1), tf.float32), kept
