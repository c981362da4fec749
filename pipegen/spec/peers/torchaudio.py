"""Classes of `torchaudio.transforms` as steps of a spec. The arguments of a function are those of the class, with its defaults."""

from __future__ import annotations

import math

from pipegen.spec.peers import converting as c

TITLE = "torchaudio"
IGNORED = frozenset({"rolloff", "lowpass_filter_width", "beta", "dtype"})  # of the filter of a resampling, which pipegen has one of


def resample(orig_freq=16000, new_freq=16000, resampling_method="sinc_interp_hann") -> c.Steps:
    return c.step("resample", rate=c.whole("new_freq", new_freq))


def vol(gain, gain_type="amplitude") -> c.Steps:
    c.only("gain_type", gain_type, "amplitude", "db", "power", why="a gain is in decibels")
    value = c.number("gain", gain)
    if gain_type != "db":
        if value <= 0:
            c.refuse("a gain in decibels is of an amplitude above 0", "gain")
        value = (20 if gain_type == "amplitude" else 10) * math.log10(value)
    return c.step("gain", db=c.tidy(value))
