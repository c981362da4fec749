"""Events whose times do not fit their sound, by the headers of files or the shape of arrays."""

from __future__ import annotations

import math

import numpy as np

from pipegen.data.lengths import length_in
from pipegen.data.manifest import Manifest
from pipegen.data.rounding import spread
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.ops.families.decoder import SoundDecoder
from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.audio import sound_of
from pipegen.ops.kinds.base import Timeline, having, timeline_of
from pipegen.ops.sources.features.items import hop_of
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

_SLACK = 0.05  # seconds that an event may last longer than its sound: annotations are rounded
_EARLY, _MANY = 0.75, 16  # the part of their sounds that so many events of frames may be in


def late_events(spec: PipelineSpec, manifest: Manifest, locate: Locate, sample: int | None) -> list[Diagnostic]:
    """Finds events that end after their sound, and labels of frames of which none is for the end of a sound, in `sample` records of each
    split (`None` for all). Sounds whose length only their records tell are not checked."""
    listing = manifest.listing
    found: list[Diagnostic] = []
    type_ = listing.type or spec.source.infer()
    numbers = [manifest.numbers(split)[[*spread(manifest.num_examples(split), sample)]] for split in manifest.splits]
    records = np.unique(np.concatenate([np.zeros(0, np.int64), *numbers]))
    for name in having(type_, Timeline):
        x, sound, column = type_[name], type_[name].of or "", listing.columns.get(name)
        seconds = _seconds(spec, manifest, sound, records) if sound in type_ and isinstance(column, Ragged) else None
        if seconds is None or column is None:
            continue
        own = column[records]
        ends = timeline_of(x.kind).ends(own.values, x) - _offset(spec, sound)
        hop, path = (
            hop_of(name, getattr(spec.source, "features", {name: None})),
            ("source", spec.source.op, *spec.source.described().get(name, ())),
        )
        lasting, slack = np.repeat(seconds, own.lengths), max(_SLACK, hop or 0)  # the last frame may be cut by the end
        reached = (ends / lasting)[np.isfinite(lasting)]
        if hop is not None and len(reached) >= _MANY and reached.max() < _EARLY:
            message = f"all {len(reached):,} events of `{name}` end in the first {math.ceil(100 * reached.max())} % of their sounds"
            help_ = "if the labels are for the whole of each sound, `hop_ms` is too small"
            found.append(make("PG484", message, locate(path, key=True), help=help_))
        late = np.flatnonzero(ends > lasting + slack)
        if len(late):
            row, item = own.place(int(late[0]))
            which = f"event {item} of {manifest.every_key[int(records[row])]!r} ends at {ends[late[0]]:.6g} s, and its sound at"
            message = f"{which} {seconds[row]:.6g} s; so {'does' if len(late) == 1 else 'do'} {len(late):,} of {len(ends):,} events"
            help_ = "times are seconds, not frames or milliseconds; what lies behind the end is cut off"
            found.append(make("PG483", message, locate(path, key=True), help=help_))
    return found


def _offset(spec: PipelineSpec, sound: str) -> float:
    decoder = spec.source.decoders().get(sound)
    return decoder.offset if isinstance(decoder, SoundDecoder) else 0.0


def _seconds(spec: PipelineSpec, manifest: Manifest, sound: str, records: Ints) -> Floats | None:
    """The length of the sound of each record in seconds, infinite where it is unknown; `None` if it is for all."""
    listing = manifest.listing
    x = (listing.type or spec.source.infer())[sound]
    if not x.encoded:
        return np.full(len(records), x.shape[0] / sound_of(x).rate) if x.shape[0] is not None else None
    decoder, feature = spec.source.decoders().get(sound), getattr(spec.source, "features", {}).get(sound)
    if not listing.in_files or not isinstance(decoder, SoundDecoder) or getattr(feature, "cut_by", None) is not None:
        return None
    files, rest = listing.location_of(sound).paths, decoder.model_copy(update={"duration": None})  # what it leaves out is no mistake
    lengths = [length_in(rest, files[int(record)]) for record in records.tolist()]
    return np.array([np.inf if length is None else length / sound_of(x).rate for length in lengths])
