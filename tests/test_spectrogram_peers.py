"""Spectra beside the libraries themselves, where they are installed: what `spectral_oracles.py` wrote down of them, and the steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spectral_oracles import cepstra, kaldi_fbank, librosa_mel, power_to_db, sound, torchaudio_mel, whisper_log_mel

pytestmark = pytest.mark.peers

Array = np.ndarray[Any, Any]
Y = sound(16000)


def near(found: Array, expected: Array, relative: float = 1e-5) -> None:
    assert found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= relative * np.abs(expected).max(-1, keepdims=True) + 1e-9)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"n_fft": 512, "hop_length": 160, "win_length": 400, "n_mels": 64, "center": False, "htk": True, "norm": None},
        {"n_fft": 1024, "hop_length": 256, "fmin": 50.0, "fmax": 4000.0, "power": 1.0, "pad_mode": "reflect"},
    ],
)
def test_librosa(arguments: dict[str, Any]) -> None:
    librosa = pytest.importorskip("librosa")
    near(librosa_mel(Y, 16000, **arguments), librosa.feature.melspectrogram(y=Y, sr=16000, **arguments).T)


def test_librosa_decibels_and_cepstra() -> None:
    librosa = pytest.importorskip("librosa")
    mel = librosa_mel(Y, 16000)
    np.testing.assert_allclose(power_to_db(mel), librosa.power_to_db(mel), atol=1e-6)
    near(cepstra(power_to_db(mel), 20), librosa.feature.mfcc(y=Y, sr=16000).T, 1e-4)


def test_torchaudio() -> None:
    torch, torchaudio = pytest.importorskip("torch"), pytest.importorskip("torchaudio")
    y = torch.from_numpy(Y)
    near(torchaudio_mel(Y), torchaudio.transforms.MelSpectrogram()(y).numpy().T)
    found = torchaudio.transforms.MFCC()(y).numpy().T
    melspectrogram = torchaudio_mel(Y)
    near(cepstra(power_to_db(melspectrogram), 40), found, 1e-3)
    for given, own in (
        ({}, {}),
        ({"snip_edges": False}, {"snip_edges": False}),
        ({"window_type": "hamming", "num_mel_bins": 40}, {"window": "hamming", "bands": 40}),
        ({"window_type": "hanning", "use_power": False, "htk_compat": True}, {"window": "hanning", "use_power": False}),
    ):
        fbank = torchaudio.compliance.kaldi.fbank(y[None] * 32768, dither=0.0, **given).numpy()
        np.testing.assert_allclose(kaldi_fbank(Y, **own), fbank, atol=5e-3)
    mfcc = torchaudio.compliance.kaldi.mfcc(y[None] * 32768, dither=0.0).numpy()
    np.testing.assert_allclose(cepstra(kaldi_fbank(Y), 13, 22.0), mfcc, atol=2e-2)


@pytest.mark.parametrize("window", ["povey", "hanning", "hamming", "blackman", "rectangular"])
@pytest.mark.parametrize("snip_edges", [True, False])
def test_kaldi(window: str, snip_edges: bool) -> None:
    kaldi = pytest.importorskip("kaldi_native_fbank")
    for y, use_power in ((Y, True), (Y[:1234], False)):
        options = kaldi.FbankOptions()
        options.frame_opts.dither, options.frame_opts.window_type, options.frame_opts.snip_edges = 0, window, snip_edges
        options.use_power, options.mel_opts.num_bins = use_power, 40
        fbank = kaldi.OnlineFbank(options)
        fbank.accept_waveform(16000, (y * 32768).tolist())
        fbank.input_finished()
        expected = np.array([fbank.get_frame(i) for i in range(fbank.num_frames_ready)])
        found = kaldi_fbank(y, bands=40, window=window, snip_edges=snip_edges, use_power=use_power)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found[expected > -15], expected[expected > -15], atol=1e-3)


def test_whisper() -> None:
    whisper = pytest.importorskip("whisper")
    np.testing.assert_allclose(whisper_log_mel(Y), whisper.log_mel_spectrogram(Y).numpy().T, atol=1e-4)
