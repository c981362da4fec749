"""Keras' layers for sound as steps of a spec. The arguments of a function are those of the layer, with Keras' defaults."""

from __future__ import annotations

from pipegen.spec.peers import converting as c

TITLE = "Keras"
IGNORED = frozenset({"sampling_rate", "data_format", "name", "dtype", "trainable"})
"""Arguments that change nothing here: the rate is that of the feature."""


def mel_spectrogram(
    fft_length=2048, sequence_stride=512, sequence_length=None, window="hann", num_mel_bins=128, min_freq=20.0, max_freq=None,
    power_to_db=True, top_db=80.0, mag_exp=2.0, min_power=1e-10, ref_power=1.0,
) -> c.Steps:  # fmt: skip
    c.only("ref_power", ref_power, 1, why="decibels are of a power of 1")
    stride = c.whole("sequence_stride", sequence_stride)
    framed = c.frames(fft_length, sequence_length, stride, window, "window", True, "reflect", mag_exp)
    high = None if max_freq is None else c.number("max_freq", max_freq)
    bands = {"bands": c.whole("num_mel_bins", num_mel_bins), "low_hz": c.number("min_freq", min_freq), "high_hz": high}
    mel = c.spectra("mel_spectrogram", None, **framed, **bands, norm="none", scale="kaldi")
    if not power_to_db:
        return mel
    c.only("mag_exp", mag_exp, 2, why="Keras takes decibels of powers")
    top = None if top_db is None else c.number("top_db", top_db)
    return [mel, c.step("log", base="db", floor=None if min_power == 1e-10 else c.number("min_power", min_power), top=top)]
