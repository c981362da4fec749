"""Classes of `torchaudio.transforms` as steps of a spec. The arguments of a function are those of the class, with its defaults."""

from __future__ import annotations

import math

from pipegen.spec.peers import converting as c

TITLE = "torchaudio"
IGNORED = frozenset({"rolloff", "lowpass_filter_width", "beta", "dtype"})  # of the filter of a resampling, which pipegen has one of


PADS = {"constant": "zero", "reflect": "reflect", "replicate": "edge"}


def _framed(op, preset, **given) -> c.Steps:
    """A step that makes spectra, of the arguments that all classes have; those that are None are left out."""
    fft, window, hop = (given.pop(name) for name in ("n_fft", "win_length", "hop_length"))
    c.only("pad", given.pop("pad"), 0, why="silence around a sound is the step `crop_or_pad`")
    c.only("window_fn", given.pop("window_fn"), None, why="a `window_function` has a name")
    c.only("wkwargs", given.pop("wkwargs"), None, None, {}, why="a `window_function` has no arguments")
    c.only(
        "normalized", given.pop("normalized"), False, why="`full_scale` is that factor: 1 over the root of the sum of the window's squares"
    )
    c.only("power", power := given.pop("power"), 1, 2, 1.0, 2.0, why="spectra are magnitudes or powers")
    c.only("pad_mode", pad := given.pop("pad_mode"), *PADS, why="outside is silence, or the sound that is reflected or stands still")
    hop = None if hop is None else c.whole("hop_length", hop)
    window, fft = None if window is None else c.whole("win_length", window), c.whole("n_fft", fft)
    if preset is None:
        given |= {"window": window or fft, "hop": hop or (window or fft) // 2, "frame": "fft" if window not in (None, fft) else None}
    else:
        given = {"preset": preset, **given, "window": window, "hop": hop}
    own = {"fft": (fft, 400), "center": (given.pop("center"), True), "pad": (PADS[pad], "reflect")}
    kept = {name: value for name, (value, default) in own.items() if preset is None or value != default}
    return c.step(op, **given, **kept, power=1 if power == 1 else None)


def spectrogram(
    n_fft=400, win_length=None, hop_length=None, pad=0, window_fn=None, power=2.0, normalized=False, wkwargs=None, center=True,
    pad_mode="reflect", onesided=True, return_complex=None,
) -> c.Steps:  # fmt: skip
    c.only("onesided", onesided, True, None, why="half of the frequencies mirror the others")
    return _framed(
        "spectrogram", None, n_fft=n_fft, win_length=win_length, hop_length=hop_length, pad=pad, window_fn=window_fn, power=power,
        normalized=normalized, wkwargs=wkwargs, center=center, pad_mode=pad_mode,
    )  # fmt: skip


def mel_spectrogram(
    sample_rate=16000, n_fft=400, win_length=None, hop_length=None, f_min=0.0, f_max=None, pad=0, n_mels=128, window_fn=None, power=2.0,
    normalized=False, wkwargs=None, center=True, pad_mode="reflect", onesided=None, norm=None, mel_scale="htk",
) -> c.Steps:  # fmt: skip
    return _mel("mel_spectrogram", **locals())


def mfcc(sample_rate=16000, n_mfcc=40, dct_type=2, norm="ortho", log_mels=False, melkwargs=None) -> c.Steps:
    c.only("dct_type", dct_type, 2)
    c.only("norm", norm, "ortho", why="the cosine transform is orthonormal")
    if not isinstance(melkwargs, (dict, type(None))):
        c.refuse("it is not a map", "melkwargs")
    defaults = dict(zip(mel_spectrogram.__code__.co_varnames, mel_spectrogram.__defaults__ or (), strict=False))
    strange = [name for name in melkwargs or {} if name not in defaults]
    if strange:
        c.refuse(f"the library has no `{strange[0]}`", "melkwargs")
    count = c.whole("n_mfcc", n_mfcc)
    log = {"base": "e", "offset": 1e-6} if log_mels else None
    return _mel("mfcc", **{**defaults, **(melkwargs or {})}, coefficients=None if count == 40 else count, log=log)


def _mel(op, *, sample_rate, f_min, f_max, n_mels, onesided, norm, mel_scale, **given) -> c.Steps:
    c.only("norm", norm, None, "slaney")
    c.only("mel_scale", mel_scale, "htk", "slaney")
    low, high, bands = c.number("f_min", f_min), None if f_max is None else c.number("f_max", f_max), c.whole("n_mels", n_mels)
    known = {"low_hz": low or None, "high_hz": high, "bands": None if bands == 128 else bands, "norm": norm}
    return _framed(op, "torchaudio", **known, scale=None if mel_scale == "htk" else mel_scale, **given)


def amplitude_to_db(stype="power", top_db=None) -> c.Steps:
    c.only("stype", stype, "power", "magnitude")
    top = None if top_db is None else abs(c.number("top_db", top_db))
    step = c.step("log", base="db", top=top)
    return step if stype == "power" else {"log": {**step["log"], "floor": 1e-10}}


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
