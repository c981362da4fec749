"""Lengths of examples along the first axis of a feature, known before any is read: from the headers of files or from a column."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from pipegen.data.fingerprint import fingerprint
from pipegen.data.headers import Array, kept_or_read
from pipegen.data.manifest import Manifest
from pipegen.data.mixed_manifest import SplitManifests
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Label, Severity
from pipegen.errors import InternalError, SpecError
from pipegen.mounts import Opened
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sampling_sections import LengthColumn, Padding
from pipegen.ops.sources.listing.base import Listing
from pipegen.spec import lengths
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec

_FORMAT = 1
_UNKNOWN, _UNTOLD, _FIRST = 0, 1, 2  # what is kept of a file: its header is damaged, or does not tell; from 2 on, a length
_COLUMN = "or give it in a column: `measured: {column: NAME}`"


def with_lengths(
    spec: PipelineSpec, manifest: Manifest, locate: Locate, progress: Callable[[int], None] | None = None
) -> tuple[Manifest, list[Diagnostic]]:
    """Adds the length of each record for the features whose padding or buckets need it; returns findings, too.

    A record whose header is damaged has an unknown length: it is an error, or replaced, when it is decoded."""
    known: dict[str, Ints] = {}
    found: list[Diagnostic] = []
    wanted = {name: own for own in reversed(_every(spec)) for name in lengths.listed(own)}
    for name, own in wanted.items():
        read, said = _lengths(own, name, manifest, locate, progress)
        found += said
        if read is not None:
            known[name] = read
    return (replace(manifest, lengths=known) if known else manifest), found


def _every(spec: PipelineSpec) -> tuple[PipelineSpec, ...]:
    return (spec, *(stage.resolved for stage in spec.stages))


def _padding(spec: PipelineSpec, name: str) -> Padding:
    found = lengths.padding_of(spec, name)
    if found is None:
        raise InternalError(f"`{name}` is not padded")
    return found


def _lengths(
    spec: PipelineSpec, name: str, manifest: Manifest, locate: Locate, progress: Callable[[int], None] | None
) -> tuple[Ints | None, list[Diagnostic]]:
    """Finds the stored length of each record, int64 `(n,)`, -1 if it is unknown; `None` after an error."""
    measured, path = _padding(spec, name).measured, lengths.pad_path(spec, name)
    listing = manifest.listing
    if isinstance(measured, LengthColumn):
        return _by_column(name, measured.column, manifest, locate((*path, "measured")))
    recorded = _recorded(name, listing)
    if recorded is not None:
        return recorded, []
    at = locate(path, key=True)
    help_ = ("write the length of the padding, such as `to: 16000`, with `longer: cut` or `error`", _COLUMN)
    decoder = spec.source.decoders().get(name)
    if not listing.in_files or decoder is None:
        message = f"the lengths of `{name}` are needed before any is read, and `{manifest.source_name}` tells them only with a record"
        return None, [make("PG265", message, at, help=help_)]
    files = listing.location_of(name).paths
    none: Array = np.zeros(0, np.int64)
    wanted = np.unique(np.concatenate([none, *(manifest.numbers(split) for split in manifest.splits)]))
    began = time.perf_counter()
    key = hashlib.sha256(f"{fingerprint(listing)}\n{name}\n{decoder!r}\n{_FORMAT}".encode()).hexdigest()[:32]
    read = partial(_length_in, cast(DecodeTransform, decoder))
    nothing: Array = np.zeros((manifest.total, 1), np.int64)
    kept = kept_or_read(spec.runtime, f"{key}.lengths", files, wanted, nothing, read, "the lengths of examples", progress)
    values = kept[0][:, 0]
    untold = wanted[values[wanted] == _UNTOLD]
    if len(untold):
        few = f"{count(len(untold), 'file')} of `{name}`, such as {files[int(untold[0])]},"
        message = f"{few} {'does' if len(untold) == 1 else 'do'} not tell the length in a header, and it is needed before any is read"
        return None, [make("PG265", message, at, help=help_)]
    took = "kept from an earlier run" if kept[1] else f"in {time.perf_counter() - began:.1f} s"
    message = f"lengths of `{name}` were read from the headers of {count(len(wanted), 'file')}, {took}"
    return np.where(values < _FIRST, -1, values - _FIRST), [make("PG481", message, at)]


def _recorded(name: str, listing: Listing) -> Ints | None:
    """Takes the lengths that the readers of the rows of every split know; `None` if one does not."""
    rows = listing.location.rows
    if rows is None or listing.shards is not None:
        return None
    found: Ints = np.full(len(rows), -1, np.int64)
    for split, reader in listing.readers.items():
        known = reader.lengths(name)
        if known is None:
            return None
        records = listing.parts.records(split) if split and listing.parts is not None else np.arange(len(rows))
        found[records] = known[rows[records]]
    return found


def _length_in(decoder: DecodeTransform, path: str) -> tuple[int] | None:
    """Reads the length in the header of a file, as it is kept."""
    with suppress(Exception), Opened(path) as file:  # damage, which is reported when the file is decoded
        length = decoder.stored_length(file)
        return (_UNTOLD if length is None else length + _FIRST,)
    return None


def length_in(decoder: DecodeTransform, path: str) -> int | None:
    """Reads the length in the header of a file; `None` for a damaged one, and one that does not tell."""
    kept = (_length_in(decoder, path) or (_UNKNOWN,))[0]
    return kept - _FIRST if kept >= _FIRST else None


def lengths_of(decoder: DecodeTransform, files: Sequence[str]) -> Ints:
    """Reads the lengths in the headers of files, int64 `(n,)`, -1 if one is damaged; raises `SpecError`, `PG265`, if one does not tell."""
    found = np.array([(_length_in(decoder, file) or (_UNKNOWN,))[0] for file in files], np.int64)
    if (found == _UNTOLD).any():
        message = f"the header of {files[int(np.argmax(found == _UNTOLD))]} does not tell its length, which chooses its bucket"
        raise SpecError([make("PG265", message, help="convert such files, such as to WAV")])
    return np.where(found < _FIRST, -1, found - _FIRST)


def _by_column(name: str, column: str, manifest: Manifest, at: Label) -> tuple[Ints | None, list[Diagnostic]]:
    given = manifest.listing.columns.get(column)
    if given is None:
        message = f"`{column}` is known only after a record is read, so it cannot tell the length of its `{name}` before"
        help_ = "put it into a column of a table, and read that with `csv` or `parquet`, or with `join`"
        return None, [make("PG265", message, at, help=help_)]
    values = np.asarray(given, np.float64).reshape(manifest.total)
    valid = np.isfinite(values) & (values >= 0) & (values == np.floor(values))
    for split in manifest.splits:
        records = manifest.numbers(split)
        wrong = records[~valid[records]]
        if len(wrong):
            record = int(wrong[0])
            which = f"{len(wrong)} of {count(len(records), 'example')} of `{split}` have no valid length"
            message = f"{which}: `{column}` of {manifest.every_key[record]!r} is {values[record]:g}"
            help_ = "a length is a whole number of elements along the first axis"
            return None, [make("PG265", message, at, help=help_)]
    return np.where(valid, values, -1).astype(np.int64), []


def without_too_long(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> tuple[Manifest, list[Diagnostic]]:
    """Leaves examples that are too long for `longer: drop` out of their splits; returns findings, also about those that are errors."""
    if not manifest.lengths:
        return manifest, []
    found: list[Diagnostic] = []
    for split in manifest.splits:
        gone: Array = np.zeros(manifest.num_examples(split), bool)
        for name in manifest.lengths:
            over, said = _too_long(spec, name, manifest, split, locate)
            found += said
            gone |= over
        for number, stage in enumerate(spec.stages):
            each = [_too_long(stage.resolved, name, manifest, split, locate)[0] for name in manifest.lengths]
            if not np.array_equal(np.logical_or.reduce(each), gone):
                message = (
                    f"stage {number + 1} leaves out other examples of `{split}` than the spec, and all stages share one set of records"
                )
                help_ = "use `longer: cut`, or the same length in all stages"
                found.append(make("PG560", message, locate(("stages", number)), help=help_))
        if gone.all() and len(gone):
            at = locate(("batch", "pad"), key=True)
            found.append(make("PG404", f"every example of split `{split}` is longer than its padding allows", at, help="raise `to`"))
        elif gone.any():
            manifest = manifest.narrowed(split, np.flatnonzero(~gone), too_long=True)
    return manifest, found


def _too_long(spec: PipelineSpec, name: str, manifest: Manifest, split: str, locate: Locate) -> tuple[Array, list[Diagnostic]]:
    """Finds the examples of a split that `longer: drop` leaves out, bool `(examples,)`, and those that are an error."""
    records = manifest.numbers(split)
    none: Array = np.zeros(len(records), bool)
    padding = lengths.padding_of(spec, name)
    if padding is None or not isinstance(padding.to, int) or not lengths.varies_on(spec, split, name):
        return none, []
    if padding.longer == "cut" and name != lengths.bucketed_feature(spec):
        return none, []
    stored, path = manifest.lengths[name][records], lengths.pad_path(spec, name)
    x, rising = (manifest.listing.type or spec.source.infer())[name], np.unique(stored[stored >= 0])
    fit = lengths.longest_that_fits(spec, split, name, x, rising.tolist(), padding.to)
    if fit is None:
        return none, [_untold(name, locate(path, key=True))]
    if padding.longer == "cut":
        return none, []
    over = stored > (rising[fit - 1] if fit else -1) if fit < len(rising) else none
    if not over.any():
        return none, []
    first = int(np.flatnonzero(over)[0])
    length = lengths.length_after(spec, split, name, x, int(stored[first]))
    which = f"{count(int(over.sum()), 'example')} of {len(records):,} of `{split}`"
    be = "is" if over.sum() == 1 else "are"
    message = f"{which} {be} longer than {padding.to}, such as {manifest.every_key[int(records[first])]!r} with {length}"
    if padding.longer == "drop":
        return over, [make("PG482", f"{message}; {'it is' if be == 'is' else 'they are'} left out", locate((*path, "longer")))]
    longest = max(lengths.length_after(spec, split, name, x, int(rising[-1])) or 0, 1)
    help_ = (f"make room for {longest:,}", "or say what happens to longer ones: `pad: {longer: cut}` or `pad: {longer: drop}`")
    return none, [make("PG482", message, locate(path, key=True), help=help_, severity=Severity.ERROR)]


def _untold(name: str, at: Label) -> Diagnostic:
    message = f"the length of `{name}` before the steps does not tell that after them, which is needed before any is read"
    help_ = (
        "write the length of the padding, such as `to: 16000`, with `longer: cut` or `error`",
        "or end with a step that fixes the length",
    )
    return make("PG265", message, at, help=help_)


def with_longest(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> tuple[Manifest, list[Diagnostic]]:
    """Notes the largest length of any split in the type of a record, for `to: longest`; returns findings, too."""
    parts = [*manifest.parts.values()] if isinstance(manifest, SplitManifests) else [manifest]
    largest: dict[str, int] = {}
    for part in parts:
        for name, own in part.lengths.items():
            each = [int(own[part.numbers(split)].max(initial=0)) for split in part.splits]
            largest[name] = max(largest.get(name, 0), *each)
    if not largest:
        return manifest, []
    record = manifest.listing.type or spec.source.infer()
    record = record.replace(**{name: record[name].with_(longest=most) for name, most in largest.items()})
    padded = ((own, name, lengths.padding_of(own, name)) for own in _every(spec) for name in largest)
    untold = ((own, name) for own, name, padding in padded if padding is not None and lengths.room(own, record, name, padding) is None)
    found = dict.fromkeys(_untold(name, locate(lengths.pad_path(own, name), key=True)) for own, name in untold)
    return replace(manifest, listing=replace(manifest.listing, type=record)), list(found)
