"""Spectra as the libraries define them, in float64 NumPy and SciPy, written down from their documentation: what steps are compared with
where the libraries are not installed, and what `test_spectrogram_peers.py` compares with the libraries where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
import scipy.signal

Array = np.ndarray[Any, Any]


def hz_to_mel(hz: Array, *, htk: bool) -> Array:
    if htk:
        return 2595.0 * np.log10(1.0 + hz / 700.0)
    linear, logarithmic = hz / (200.0 / 3), 15.0 + np.log(np.maximum(hz, 1e-10) / 1000.0) / (np.log(6.4) / 27.0)
    return np.where(hz >= 1000.0, logarithmic, linear)


def mel_to_hz(mel: Array, *, htk: bool) -> Array:
    if htk:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    return np.where(mel >= 15.0, 1000.0 * np.exp(np.log(6.4) / 27.0 * (mel - 15.0)), mel * 200.0 / 3)


def mel_filters(rate: int, fft: int, bands: int, low: float, high: float, *, htk: bool, slaney_norm: bool) -> Array:
    """`librosa.filters.mel`, `(bands, bins)`."""
    ends = hz_to_mel(np.array([low, high]), htk=htk)
    edges = mel_to_hz(np.linspace(*ends, bands + 2), htk=htk)
    ramps = edges[:, None] - np.fft.rfftfreq(fft, 1.0 / rate)[None]
    width = np.diff(edges)
    weights = np.maximum(0, np.minimum(-ramps[:-2] / width[:-1, None], ramps[2:] / width[1:, None]))
    return weights * (2.0 / (edges[2:] - edges[:-2]))[:, None] if slaney_norm else weights


def stft(y: Array, fft: int, hop: int, window: Array, *, center: bool, mode: str) -> Array:
    """Complex spectra of frames of `fft` samples with the window in their middle, as `librosa.stft` and `torch.stft`: `(steps, bins)`."""
    before = (fft - len(window)) // 2
    window = np.pad(window, (before, fft - len(window) - before))
    y = np.pad(y.astype(np.float64), fft // 2, mode=mode) if center else y.astype(np.float64)  # type: ignore[call-overload]
    frames = np.lib.stride_tricks.sliding_window_view(y, fft)[::hop]
    return np.fft.rfft(frames * window)


def hann(length: int) -> Array:
    return scipy.signal.get_window("hann", length, fftbins=True)


def librosa_mel(
    y: Array, rate: int, *, n_fft: int = 2048, hop_length: int = 512, win_length: int | None = None, center: bool = True,
    pad_mode: str = "constant", power: float = 2.0, n_mels: int = 128, fmin: float = 0.0, fmax: float | None = None, htk: bool = False,
    norm: str | None = "slaney",
) -> Array:  # fmt: skip
    """`librosa.feature.melspectrogram`, `(steps, bands)`."""
    spectra = np.abs(stft(y, n_fft, hop_length, hann(win_length or n_fft), center=center, mode=pad_mode)) ** power
    return spectra @ mel_filters(rate, n_fft, n_mels, fmin, fmax or rate / 2, htk=htk, slaney_norm=norm == "slaney").T


def torchaudio_mel(y: Array, rate: int = 16000, *, n_fft: int = 400, hop_length: int | None = None, n_mels: int = 128) -> Array:
    """`torchaudio.transforms.MelSpectrogram`, `(steps, bands)`."""
    hop = hop_length or n_fft // 2
    spectra = np.abs(stft(y, n_fft, hop, hann(n_fft), center=True, mode="reflect")) ** 2
    return spectra @ mel_filters(rate, n_fft, n_mels, 0.0, float(rate // 2), htk=True, slaney_norm=False).T


def whisper_log_mel(y: Array, n_mels: int = 80) -> Array:
    """`whisper.audio.log_mel_spectrogram`, `(steps, bands)`."""
    spectra = np.abs(stft(y, 400, 160, hann(400), center=True, mode="reflect")[:-1]) ** 2
    mel = spectra @ mel_filters(16000, 400, n_mels, 0.0, 8000.0, htk=False, slaney_norm=True).T
    log = np.log10(np.maximum(mel, 1e-10))
    return (np.maximum(log, log.max() - 8.0) + 4.0) / 4.0


def kaldi_window(name: str, size: int) -> Array:
    """Kaldi's window functions, which are symmetric."""
    turn = 2 * np.pi * np.arange(size) / (size - 1)
    return {
        "povey": (0.5 - 0.5 * np.cos(turn)) ** 0.85,
        "hanning": 0.5 - 0.5 * np.cos(turn),
        "hamming": 0.54 - 0.46 * np.cos(turn),
        "blackman": 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn),
        "rectangular": np.ones(size),
    }[name]


def kaldi_fbank(
    y: Array, rate: int = 16000, *, bands: int = 23, low: float = 20.0, high: float | None = None, window: str = "povey",
    snip_edges: bool = True, use_power: bool = True, shift_ms: float = 10.0,
) -> Array:  # fmt: skip
    """Kaldi's `compute-fbank-feats --dither=0` of samples in [-1, 1), which it sees as 16 bits: `(steps, bands)`."""
    size, hop = int(rate * 0.025), int(rate * shift_ms / 1000)
    fft = 1 << (size - 1).bit_length()
    y = y.astype(np.float64) * 32768.0
    if snip_edges:
        frames = np.lib.stride_tricks.sliding_window_view(y, size)[::hop]
    else:
        starts = np.arange((len(y) + hop // 2) // hop) * hop + hop // 2 - size // 2
        places = (starts[:, None] + np.arange(size)) % (2 * len(y))
        frames = y[np.minimum(places, 2 * len(y) - 1 - places)]
    frames = frames - frames.mean(1, keepdims=True)
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    spectra = np.abs(np.fft.rfft(frames * kaldi_window(window, size), fft)) ** (2 if use_power else 1)

    def mel(hz: Array) -> Array:
        return 1127.0 * np.log(1.0 + hz / 700.0)

    low_mel, high_mel = mel(np.array(low)), mel(np.array(high or rate / 2))
    left = low_mel + np.arange(bands)[:, None] * (high_mel - low_mel) / (bands + 1)
    step = (high_mel - low_mel) / (bands + 1)
    place = mel(np.arange(fft // 2) * rate / fft)[None]
    weights = np.maximum(0, np.minimum((place - left) / step, (left + 2 * step - place) / step))
    return np.log(np.maximum(spectra[:, :-1] @ weights.T, 2.0**-23))


def power_to_db(power: Array, top: float | None = 80.0) -> Array:
    """`librosa.power_to_db`."""
    found = 10.0 * np.log10(np.maximum(power, 1e-10))
    return found if top is None else np.maximum(found, found.max() - top)


def cepstra(log: Array, count: int, lifter: float = 0.0) -> Array:
    """The first numbers of the orthonormal cosine transform of `(steps, bands)`, lifted as Kaldi does."""
    found = scipy.fft.dct(log, type=2, norm="ortho", axis=1)[:, :count]
    return found * (1.0 + lifter / 2.0 * np.sin(np.pi * np.arange(count) / lifter)) if lifter else found


def sound(frames: int, rate: int = 16000, seed: int = 0) -> Array:
    """Tones that rise, with noise and a silent part: float32, like a recording of 16 bits."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames) / rate
    y = 0.4 * np.sin(2 * np.pi * (200 + 600 * t) * t) + 0.2 * np.sin(2 * np.pi * 3100 * t) + rng.normal(0, 0.02, frames)
    y[frames // 3 : frames // 3 + frames // 10] = 0.0
    return (np.clip(np.rint(y * 32768), -32768, 32767) / 32768).astype(np.float32)
