"""Functions of librosa that make features of sound, or change it, as steps of a spec. The arguments are those of the function."""

from __future__ import annotations

from typing import Any

from pipegen.spec.peers import converting as c

TITLE = "librosa"
IGNORED = frozenset({"y", "s", "sr", "orig_sr", "dtype", "axis", "fix", "scale", "ref"})
"""Arguments that change nothing here: the values, the rate, which is that of the feature, and what has one form."""


def melspectrogram(
    n_fft=2048, hop_length=512, win_length=None, window="hann", center=True, pad_mode="constant", power=2.0, n_mels=128, fmin=0.0,
    fmax=None, htk=False, norm="slaney",
) -> c.Steps:  # fmt: skip
    framed = _frames(n_fft, hop_length, win_length, window, center, pad_mode, power)
    return c.spectra("mel_spectrogram", "librosa", **framed, **_mel(n_mels, fmin, fmax, htk, norm))


def mfcc(
    n_mfcc=20, dct_type=2, norm="ortho", lifter=0, mel_norm="slaney", n_fft=2048, hop_length=512, win_length=None, window="hann",
    center=True, pad_mode="constant", power=2.0, n_mels=128, fmin=0.0, fmax=None, htk=False,
) -> c.Steps:  # fmt: skip
    c.only("dct_type", dct_type, 2, why="the cosine transform is of type II")
    c.only("norm", norm, "ortho", why="the cosine transform is orthonormal")
    c.only("lifter", lifter, 0, why="librosa's lifter has another form than HTK's, which `lifter` has")
    framed = _frames(n_fft, hop_length, win_length, window, center, pad_mode, power)
    return c.spectra("mfcc", "librosa", **framed, **_mel(n_mels, fmin, fmax, htk, mel_norm), coefficients=c.whole("n_mfcc", n_mfcc))


def stft(n_fft=2048, hop_length=None, win_length=None, window="hann", center=True, pad_mode="constant") -> c.Steps:
    framed = _frames(n_fft, hop_length, win_length, window, center, pad_mode, 1)
    c.refuse(
        "librosa gives complex numbers, and `spectrogram` their magnitude or its square", nearest=c.spectra("spectrogram", None, **framed)
    )


def power_to_db(amin=1e-10, top_db=80.0) -> c.Steps:
    return c.step("log", base="db", floor=None if amin == 1e-10 else amin, top=None if top_db is None else c.number("top_db", top_db))


def amplitude_to_db(amin=1e-5, top_db=80.0) -> c.Steps:
    return c.step("log", base="db", floor=None if amin == 1e-5 else amin, top=None if top_db is None else c.number("top_db", top_db))


def resample(target_sr, res_type="soxr_hq") -> c.Steps:
    return c.step("resample", rate=c.whole("target_sr", target_sr))


def trim(top_db=60, frame_length=2048, hop_length=512) -> c.Steps:
    return c.step(
        "trim", db=c.number("top_db", top_db), window=c.whole("frame_length", frame_length), hop=c.whole("hop_length", hop_length)
    )


def _frames(n_fft, hop_length, win_length, window, center, pad_mode, power) -> dict[str, Any]:
    length = n_fft if win_length is None else win_length
    hop = c.whole("win_length", length) // 4 if hop_length is None else c.whole("hop_length", hop_length)
    return c.frames(n_fft, win_length, hop, window, "window", center, pad_mode, power)


def _mel(n_mels, fmin, fmax, htk, norm) -> dict[str, Any]:
    c.only("norm", norm, None, "slaney", why="filters have a top of 1 or the norm `slaney`")
    high = None if fmax is None else c.number("fmax", fmax)
    found = {"bands": c.whole("n_mels", n_mels), "low_hz": c.number("fmin", fmin), "high_hz": high}
    return {**found, "norm": norm or "none", "scale": "htk" if htk else "slaney"}
