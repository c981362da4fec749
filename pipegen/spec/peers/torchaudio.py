"""Classes of `torchaudio.transforms` as steps of a spec. The arguments of a function are those of the class, with its defaults."""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

from pipegen.spec.peers import converting as c

TITLE = "torchaudio"
IGNORED = frozenset({"rolloff", "lowpass_filter_width", "beta", "dtype", "sample_rate", "return_complex", "iid_masks"})
"""Arguments that change nothing here: of the filter of a resampling, of which pipegen has one; the rate, which is that of the feature; and
masks of their own, which every example has."""


def amplitude_to_db(stype="power", top_db=None) -> c.Steps:
    c.only("stype", stype, "power", "magnitude", why="spectra are powers or magnitudes")
    return c.step("log", base="db", floor=None if stype == "power" else 1e-10, top=None if top_db is None else c.number("top_db", top_db))


def frequency_masking(freq_mask_param) -> c.Steps:
    return c.step("spec_augment", bands=_longest("freq_mask_param", freq_mask_param), fill={"constant": 0})


def time_masking(time_mask_param, p=1.0) -> c.Steps:
    c.only("p", p, 1, why="a longest mask is a number of steps, or with `time` a share of them; give both to `spec_augment`")
    return c.step("spec_augment", steps=_longest("time_mask_param", time_mask_param), fill={"constant": 0})


def spec_augment(n_time_masks, time_mask_param, n_freq_masks, freq_mask_param, p=1.0, zero_masking=False) -> c.Steps:
    c.only("p", p, 1, why="a longest mask is a number of steps, or with `time` a share of them; give both to `spec_augment`")
    of_time = {"time_masks": c.whole("n_time_masks", n_time_masks), "steps": _longest("time_mask_param", time_mask_param)}
    of_bands = {"frequency_masks": c.whole("n_freq_masks", n_freq_masks), "bands": _longest("freq_mask_param", freq_mask_param)}
    return c.step("spec_augment", **of_time, **of_bands, fill={"constant": 0} if zero_masking else "mean")


def _longest(about, value) -> int:
    """A longest mask: torchaudio's are shorter than the argument."""
    if c.whole(about, value) < 2:
        c.refuse("torchaudio's masks are shorter than that, so it covers nothing", about)
    return value - 1


def compute_deltas(win_length=5, mode="replicate") -> c.Steps:
    c.only("mode", mode, "replicate", why="outside, the first and the last step are repeated")
    nearest = c.step("delta", width=c.whole("win_length", win_length))
    c.refuse("torchaudio gives the slopes alone, and `delta` appends them to the bands", nearest=nearest)


def spectrogram(
    n_fft=400, win_length=None, hop_length=None, pad=0, window_fn=None, power=2.0, normalized=False, wkwargs=None, center=True,
    pad_mode="reflect", onesided=True,
) -> c.Steps:  # fmt: skip
    c.only("onesided", onesided, True, None, why="half of the frequencies mirror the others")
    return c.spectra(
        "spectrogram", None, **_frames(n_fft, win_length, hop_length, pad, window_fn, power, normalized, wkwargs, center, pad_mode)
    )


def mel_spectrogram(
    n_fft=400, win_length=None, hop_length=None, f_min=0.0, f_max=None, pad=0, n_mels=128, window_fn=None, power=2.0, normalized=False,
    wkwargs=None, center=True, pad_mode="reflect", norm=None, mel_scale="htk", onesided=True,
) -> c.Steps:  # fmt: skip
    c.only("onesided", onesided, True, None, why="half of the frequencies mirror the others")
    framed = _frames(n_fft, win_length, hop_length, pad, window_fn, power, normalized, wkwargs, center, pad_mode)
    return c.spectra("mel_spectrogram", "torchaudio", **framed, **_mel(f_min, f_max, n_mels, norm, mel_scale))


def mfcc(n_mfcc=40, dct_type=2, norm="ortho", log_mels=False, melkwargs=None) -> c.Steps:
    c.only("dct_type", dct_type, 2, why="the cosine transform is of type II")
    c.only("norm", norm, "ortho", why="the cosine transform is orthonormal")
    if not isinstance(melkwargs or {}, dict):
        c.refuse("it is not a map of arguments of `MelSpectrogram`", "melkwargs")
    own = {name: value for name, value in (melkwargs or {}).items() if name not in IGNORED}
    for name in own.keys() - {*signature(mel_spectrogram).parameters}:
        c.refuse(f"`MelSpectrogram` has no `{name}`", "melkwargs")
    made: Any = mel_spectrogram(**own)
    mel = made["mel_spectrogram"]
    return c.step("mfcc", **mel, coefficients=None if n_mfcc == 40 else n_mfcc, log={"offset": 1e-6} if log_mels else None)


def _frames(n_fft, win_length, hop_length, pad, window_fn, power, normalized, wkwargs, center, pad_mode) -> dict[str, Any]:
    c.only("pad", pad, 0, why="put the silence around the sound by `crop_or_pad`")
    c.only("normalized", normalized, False, why="spectra are not divided by the window")
    c.only("wkwargs", wkwargs, None, {}, why="a window function has no arguments")
    window = n_fft if win_length is None else win_length
    hop = c.whole("win_length", window) // 2 if hop_length is None else c.whole("hop_length", hop_length)
    return c.frames(n_fft, win_length, hop, window_fn, "window_fn", center, pad_mode, power)


def _mel(f_min, f_max, n_mels, norm, mel_scale) -> dict[str, Any]:
    c.only("norm", norm, None, "slaney", why="filters have a top of 1 or the norm `slaney`")
    c.only("mel_scale", mel_scale, "htk", "slaney", why="the scales are `htk`, `slaney` and `kaldi`")
    high = None if f_max is None else c.number("f_max", f_max)
    found = {"bands": c.whole("n_mels", n_mels), "low_hz": c.number("f_min", f_min), "high_hz": high}
    return {**found, "norm": norm or "none", "scale": mel_scale}


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
