"""First specs of sounds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from statistics import median

from pipegen.cli.init.folder_survey import surveyed
from pipegen.cli.init.guessed_columns import USUAL_RATE
from pipegen.cli.init.spec import WITHOUT_LABELS, Written, spec_of
from pipegen.data.rounding import spread
from pipegen.frozen import dataclass
from pipegen.ops.lowering.library import UnreadableError
from pipegen.ops.lowering.sounds import stored_sound
from pipegen.ops.sources.class_folders import AudioFolder
from pipegen.ops.sources.folders.scan import IMAGES, Scan, sounds
from pipegen.ops.sources.listing.base import Listing

_FILES = 200  # number of sounds to examine
_LONGEST = 10.0  # seconds
_MEL = "# - mel_spectrogram: {bands: 64, window_ms: 25, hop_ms: 10}  # for a model of spectra; without it, it gets samples"


@dataclass
class SoundSample:
    """Headers of some sounds: rates in Hz, channels, lengths in seconds, and unreadable ones."""

    rates: Counter[int] = field(default_factory=Counter)
    channels: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def add(self, name: str, source: str | bytes) -> None:
        """Adds the header of a file, at a path or as bytes."""
        try:
            rate, channels, frames = stored_sound(source)
        except (OSError, RuntimeError, UnreadableError):  # soundfile's own error is a RuntimeError
            self.unreadable.append(name)
            return
        self.rates[rate] += 1
        self.channels[channels] += 1
        self.seconds.append(frames / rate)

    @property
    def rate(self) -> int:
        """The most frequent rate."""
        return self.rates.most_common(1)[0][0] if self.rates else USUAL_RATE

    def length(self) -> float:
        """Chooses the length of examples: that of all sounds, else a typical one, in seconds."""
        shortest, longest = (min(self.seconds), max(self.seconds)) if self.seconds else (1.0, 1.0)
        typical = longest if longest - shortest < 0.001 else median(self.seconds)
        return max(0.01, float(f"{min(typical, _LONGEST):.2g}"))

    def comments(self) -> list[str]:
        """Describes the headers, in lines for comments."""
        looked, lines = len(self.seconds) + len(self.unreadable), []
        if self.seconds:
            rates = ", ".join(f"{rate} Hz" for rate, _ in self.rates.most_common(4))
            rates += f" and {len(self.rates) - 4} more" if len(self.rates) > 4 else ""
            shortest, longest = (f"{extreme(self.seconds):.3g}" for extreme in (min, max))
            lasting = shortest if shortest == longest else f"{shortest} to {longest}"
            lines.append(f"{looked:,} sounds examined: {rates}; {lasting} seconds long")
            if min(self.channels) > 1:
                lines.append(f"All have several channels, of which the mean is read; `channels: {min(self.channels)}` keeps them")
        if self.unreadable:
            which = f"{len(self.unreadable):,} cannot be read, such as {self.unreadable[0]}"
            lines.append(f"{which}; `pipegen validate SPEC --data=all` lists all")
        return lines


def holds_sounds(folder: str) -> bool:
    """Checks that a folder has sounds, and no more images than these. Sounds of formats that are not read count where nothing else is."""
    scans = [Scan(os.path.abspath(folder), wanted=wanted) for wanted in (sounds(), IMAGES)]
    found = [len(scan.tree()) for scan in scans]
    return found[0] >= max(found[1], 1) or (found[1] == 0 and bool(scans[0].tally.unsupported))


def first_sounds(folder: str, spec_folder: str, progress: Callable[[int], None] | None = None) -> tuple[Written, bool]:
    """Writes the spec of a folder of sounds, and tells whether it has labels; for the arguments see `surveyed`."""
    survey = surveyed(folder, AudioFolder, sounds(), progress, rate=USUAL_RATE)
    sample = sample_of_sounds(survey.listing.keys, survey.listing.location.paths)
    is_flat = not (survey.labelled or survey.parts)
    source = [survey.source("audio_folder", spec_folder, f", rate: {sample.rate}")]
    comments = [*survey.comments(), *sample.comments(), *survey.remarks]
    about = survey.summary("sounds"), comments, source, None if is_flat else 2 * survey.train, sample
    return spec_of_sounds(*about, splits=survey.splits(), labelled=not is_flat, of_folder=True), survey.labelled


def sample_of_sounds(names: Sequence[str], files: Sequence[str | bytes]) -> SoundSample:
    """Reads the headers of a sample of sounds, at paths or as bytes, with their names."""
    sample = SoundSample()
    for i in spread(len(names), _FILES):
        sample.add(names[i], files[i])
    return sample


def sounds_of_records(listing: Listing, count: int) -> SoundSample:
    """Reads the headers of a sample of the sounds in `count` records."""
    sample = SoundSample()
    for i in spread(count, _FILES):
        reader, place, _ = listing.place_of(i)
        sample.add(f"number {i}", bytes(reader.stored("audio", *place)[0]))
    return sample


def spec_of_sounds(
    summary: str,
    comments: Iterable[str],
    source: Iterable[str],
    rows: int | None,
    sample: SoundSample,
    *,
    splits: str,
    labelled: bool,
    of_folder: bool = False,
    happening: str | None = None,
) -> Written:
    """Writes a spec of sounds; for the arguments see `spec_of`. Without labels, the feature `audio` is all that a model gets, as it is by
    default `of_folder`. Of events, or their classes, by name what is `happening`, it gets those of each frame."""
    seconds = f"{sample.length():g}"
    output = "" if labelled or of_folder else WITHOUT_LABELS.format("audio")
    crop = f"random_crop: {{seconds: {seconds}, padding: as_needed}}" if labelled else f"crop_or_pad: {{seconds: {seconds}}}"
    mel = _MEL
    if happening is not None:
        output = f"output: {{x: audio, y: {happening}, encode: {{{happening}: frames}}}}"
        mel = f"{_MEL.removeprefix('# ').partition('  #')[0]}  # `{happening}` says for each of its steps what happens"
    return spec_of(summary, comments, source, rows, most=32, splits=splits, steps=[f"- {crop}", mel], output=output)
