"""Words of audiomentations and torchaudio keep their meaning: the same sound, drawn by the library and by the steps that a finding says."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module, util
from typing import Any

import numpy as np
import pytest
import yaml
from sounds import RATE, Array, applied, type_of

from docs.generated.other_libraries import answers
from pipegen.diagnostics.diagnostic import Advice
from pipegen.ops.registry import transforms
from pipegen.phases.compilation import inspect
from pipegen.spec.peers.words import meaning_in, shown_arguments

DRAWS = 300
AUDIOMENTATIONS = """
AddBackgroundNoise: {sounds_path: FOLDER, p: 1}
AddBackgroundNoise: {sounds_path: FOLDER, noise_rms: absolute, max_absolute_rms_db: -25, p: 1}
AddColorNoise: {min_f_decay: -3, max_f_decay: -3, p: 1}
AddGaussianNoise: {min_amplitude: 0.01, max_amplitude: 0.01, p: 0.7}
AddGaussianSNR
AddGaussianSNR: {min_snr_db: 0, max_snr_db: 3, p: 1}
Gain
Gain: {min_gain_db: -6, max_gain_db: 0}
Normalize: {p: 1}
Normalize
PitchShift: {p: 1}
PolarityInversion
PolarityInversion: {p: 0.2}
Shift: {fade_duration: 0}
Shift: {min_shift: 0, max_shift: 0.2, rollover: false, fade_duration: 0, p: 0.6}
Shift: {min_shift: -0.1, max_shift: 0.1, shift_unit: seconds, fade_duration: 0}
TimeMask: {fade_duration: 0}
TimeMask: {min_band_part: 0.1, max_band_part: 0.5, fade_duration: 0, p: 0.5}
TimeStretch: {p: 1}
Trim: {p: 1}
"""
TORCHAUDIO = """
Vol: {gain: 0.5}
Vol: {gain: -6, gain_type: db}
Vol: {gain: 0.5, gain_type: power}
"""
TRIMS = """
librosa.effects.trim: {top_db: 30}
librosa.effects.trim: {top_db: 20, frame_length: 512, hop_length: 128}
"""
SPECTRA = """
torchaudio.Spectrogram
torchaudio.Spectrogram: {n_fft: 512, win_length: 400, hop_length: 160, power: 1, pad_mode: constant}
torchaudio.Spectrogram: {n_fft: 300, center: false}
torchaudio.MelSpectrogram
torchaudio.MelSpectrogram: {n_fft: 1024, hop_length: 256, n_mels: 64, f_min: 50, f_max: 7000, norm: slaney, mel_scale: slaney}
torchaudio.MelSpectrogram: {n_fft: 512, win_length: 320, power: 1, center: false, n_mels: 40}
torchaudio.MFCC
torchaudio.MFCC: {n_mfcc: 13, log_mels: true, melkwargs: {n_fft: 512, hop_length: 128, n_mels: 40, center: false}}
keras.layers.MelSpectrogram: {power_to_db: false}
keras.layers.MelSpectrogram: {fft_length: 512, sequence_stride: 160, sequence_length: 400, num_mel_bins: 64}
keras.layers.MelSpectrogram: {fft_length: 512, mag_exp: 1, min_freq: 0, max_freq: 7000, power_to_db: false}
librosa.feature.melspectrogram
librosa.feature.melspectrogram: {n_fft: 512, hop_length: 160, win_length: 400, n_mels: 64, center: false, htk: true, norm: null}
librosa.feature.melspectrogram: {n_fft: 1024, fmin: 50, fmax: 4000, power: 1, pad_mode: reflect}
librosa.feature.mfcc
librosa.feature.mfcc: {n_mfcc: 13, n_fft: 1024, n_mels: 40}
"""
"""Spectra of the sound, which the step and the library make of the same samples."""
OF_SPECTRA = """
torchaudio.AmplitudeToDB
torchaudio.AmplitudeToDB: {top_db: 60}
torchaudio.AmplitudeToDB: {stype: magnitude, top_db: 80}
librosa.power_to_db
librosa.power_to_db: {amin: 1.0e-6, top_db: null}
librosa.amplitude_to_db
torchaudio.FrequencyMasking: {freq_mask_param: 28}
torchaudio.TimeMasking: {time_mask_param: 41}
torchaudio.SpecAugment: {n_time_masks: 2, time_mask_param: 41, n_freq_masks: 2, freq_mask_param: 28}
torchaudio.SpecAugment: {n_time_masks: 1, time_mask_param: 20, n_freq_masks: 1, freq_mask_param: 9, zero_masking: true}
"""
"""Changes of a mel spectrogram."""
ALONE = {"torchaudio": {"Resample"}, "librosa": {"resample"}}
"""Words whose filter is another one, as the remark says; `test_resampling` compares the filter."""
REFUSED = """
torchaudio.Spectrogram: {power: null}
torchaudio.Spectrogram: {normalized: true}
torchaudio.MelSpectrogram: {window_fn: torch.hamming_window}
torchaudio.TimeMasking: {time_mask_param: 20, p: 0.2}
torchaudio.FrequencyMasking: {freq_mask_param: 1}
torchaudio.MFCC: {norm: null}
librosa.feature.mfcc: {lifter: 22}
keras.layers.MelSpectrogram: {ref_power: 2}
keras.layers.MelSpectrogram: {mag_exp: 1}
librosa.feature.melspectrogram: {pad_mode: wrap}
audiomentations.AddColorNoise
audiomentations.AddBackgroundNoise: {sounds_path: noises/, noise_rms: loud}
audiomentations.AddGaussianNoise: {min_amplitude: 0}
audiomentations.Shift: {shift_unit: samples}
audiomentations.TimeStretch: {leave_length_unchanged: false}
audiomentations.Trim
torchaudio.Vol: {gain: -1}
torchaudio.MelSpectrogram: {normalized: true}
torchaudio.MelSpectrogram: {pad: 100}
torchaudio.Spectrogram: {onesided: false}
torchaudio.MFCC: {dct_type: 3}
torchaudio.MFCC: {melkwargs: {bands: 3}}
torchaudio.MFCC: {melkwargs: {norm: area}}
"""
"""Values without a form: the finding says why."""
WITHOUT = """
keras.layers.STFTSpectrogram
audiomentations.LowPassFilter audiomentations.ClippingDistortion audiomentations.ApplyImpulseResponse audiomentations.Mp3Compression
torchaudio.Fade torchaudio.Speed torchaudio.Preemphasis torchaudio.ComputeDeltas torchaudio.MelScale torchaudio.Vad
librosa.effects.preemphasis librosa.effects.pitch_shift librosa.feature.delta librosa.stft librosa.feature.chroma_stft
"""
ROUGH = ("AddColorNoise", "PitchShift", "TimeStretch")
"""Words whose algorithms differ: only levels and pitches are compared, to 3%."""


def written(word: str, given: Any) -> tuple[list[dict[str, Any]] | None, str]:
    """The steps that a finding about a word says, where it says one thing to write; and all of its help."""
    step = word if given is None else f"{word}: {json.dumps(given)}"
    source = "{arrays: {features: {sound: {kind: audio, rate: 16000}}}}"
    text = f"pipegen: 1\nsource: {source}\ntransforms:\n  - {step}\noutput: {{x: sound, y: null}}\n"
    (found,) = [d for d in inspect("spec.yaml", text=text).diagnostics if d.code == "PG103"]
    said = "\n".join(map(str, found.help))
    if len(found.help) != 1 or not isinstance(found.help[0], Advice):
        return None, said
    steps = yaml.safe_load(found.help[0].lines)
    return [{one: {}} if isinstance(one, str) else one for one in (steps if isinstance(steps, list) else [steps])], said


def parsed(line: str, folder: str = "noises/") -> tuple[str, Any]:
    step = yaml.safe_load(line.replace("FOLDER", folder))
    return (step, None) if isinstance(step, str) else next(iter(step.items()))


def lines(text: str, library: str) -> list[Any]:
    return [pytest.param(library, line, id=f"{library} {line}") for line in text.split("\n") if line]


@cache
def sound() -> Array:
    """Two seconds of a vowel whose level swells, with a beginning and an end that are nearly silent: float32 `(frames, 1)`."""
    time = np.arange(RATE) / RATE
    voice = sum(np.sin(2 * np.pi * 150 * k * time) / k for k in range(1, 12)) * (0.6 + 0.4 * np.sin(2 * np.pi * 1.3 * time)) / 6
    voice[: RATE // 8] *= 1e-3
    voice[-RATE // 6 :] *= 1e-3
    return voice.astype(np.float32)[:, None]


def ours(steps: list[dict[str, Any]]) -> list[Array]:
    """The sound after a step, once for each row of draws; each number is drawn once from each of as many equal parts of 0 to 1."""
    ((op, given),) = steps[0].items()
    step: Any = transforms()[op].model_validate(given or {})
    rng = np.random.default_rng(6)
    if op == "trim":
        import tensorflow as tf

        return [np.asarray(step.apply(tf.constant(sound()), tf.zeros([0], tf.float64)))[:, 0]]
    count = DRAWS if step.num_draws() or step.is_gated() else 1
    u = np.stack([(rng.permutation(count) + rng.random(count)) / count for _ in range(step.num_draws() + 1)], 1)
    repeated = np.repeat(sound()[None], count, 0)
    parts = [applied(step, repeated[i : i + 50], u[i : i + 50, :-1]) for i in range(0, count, 50)]
    gate = u[:, -1] < step.probability
    return [*np.where(gate[:, None], np.concatenate(parts)[..., 0], sound()[:, 0])]


def features(found: Array) -> list[float]:
    """Level, peak, likeness to the sound, silence, the distance that it was moved, and the pitch."""
    own = sound()[:, 0]
    if len(found) != len(own):
        return [len(found), float(np.sum(found**2))]
    spectra = [np.fft.rfft(one) for one in (own, found)]
    lag = int(np.argmax(np.fft.irfft(spectra[0].conj() * spectra[1])))
    size = np.abs(np.fft.rfft(found * np.hanning(len(found)), 1 << 16))
    pitch = float(np.argmax(size[400:1200]) + 400)  # 98 to 293 Hz
    likeness = float(np.vdot(own, found) / np.vdot(own, own))
    return [float(np.sqrt(np.mean(found**2))), float(np.abs(found).max()), likeness, float(np.mean(found == 0)), float(lag), pitch]


@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize(("library", "line"), [*lines(AUDIOMENTATIONS, "audiomentations"), *lines(TORCHAUDIO, "torchaudio")])
def test_the_steps_do_what_the_library_does(library: str, line: str, tmp_path: Any) -> None:
    from scipy.stats import ks_2samp

    if util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    word, given = parsed(line, str(tmp_path))
    if "FOLDER" in line:
        from ops.transforms.test_sound_files import write

        write(tmp_path / "noise.wav", np.random.default_rng(1).uniform(-0.4, 0.4, (3 * RATE, 1)))
    steps, said = written(f"{library}.{word}", given)
    assert steps is not None, said
    assert len(steps) == 1
    mine = np.array([features(one) for one in ours(steps)])
    theirs = np.array([features(one) for one in _theirs(library, word, given)])
    if word in ROUGH:
        for own, other in zip(mine.T[[0, 5]], theirs.T[[0, 5]], strict=True):
            assert own.mean() == pytest.approx(other.mean(), rel=0.03)
            assert own.std() == pytest.approx(other.std(), abs=0.03 * other.mean())
        return
    for own, other in zip(mine.T, theirs.T, strict=True):
        spread = max(float(other.std()), 1e-3 * max(1.0, float(np.abs(other).max())))
        assert abs(own.mean() - other.mean()) < 4 / np.sqrt(len(other)) * spread, (own.mean(), other.mean(), spread)
        if len(mine) > 1:  # values as near as a hundredth of a deviation are the same
            assert ks_2samp(*(np.round(part / spread, 2) for part in (own, other))).pvalue > 1e-4


def _theirs(library: str, word: str, given: Any) -> list[Array]:
    if library == "torchaudio":
        import torch
        import torchaudio

        return [getattr(torchaudio.transforms, word)(**(given or {}))(torch.from_numpy(sound().T.copy())).numpy()[0]]
    import random

    random.seed(3)
    np.random.seed(3)
    made = getattr(import_module(library), word)(**(given or {}))
    fixed = word in ("Trim",) or (word == "Normalize" and made.p == 1)
    return [made(samples=sound()[:, 0].copy(), sample_rate=RATE) for _ in range(1 if fixed else DRAWS)]


def made_by(library: str, word: str) -> Any:
    """The class or the function of a library; skips where that is not installed."""
    if library == "torchaudio":
        return getattr(pytest.importorskip("torchaudio").transforms, word)
    if library == "keras":
        return getattr(pytest.importorskip("keras").layers, word)
    librosa = pytest.importorskip("librosa")
    return next(getattr(part, word) for part in (librosa.feature, librosa.effects, librosa) if hasattr(part, word))


def named(line: str) -> tuple[str, str, Any]:
    path, given = parsed(line)
    return path.partition(".")[0], path.rpartition(".")[2], given


def the_steps(line: str) -> list[Any]:
    steps, said = written(*parsed(line))
    assert steps is not None, said
    return [transforms()[op].model_validate(given or {}) for one in steps for op, given in one.items()]


def the_step(line: str) -> Any:
    (step,) = the_steps(line)
    return step


def each(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize("line", each(SPECTRA))
def test_spectra_are_the_library_s(line: str) -> None:
    import tensorflow as tf

    library, word, given = named(line)
    made, (step, *log) = made_by(library, word), the_steps(line)
    spectra, x = applied(step, sound()[None]), type_of(sound()[None])
    for one in log:
        spectra = one.on(step.on(x).infer(x)).finish(tf.constant(spectra)).numpy()
    found = spectra[0, :, :, 0]
    if library == "torchaudio":
        import torch

        theirs = made(**(given or {}))(torch.from_numpy(sound()[:, 0].copy())).numpy().T
    elif library == "keras":
        theirs = made(**(given or {}))(sound().T).numpy()[0].T
    else:
        theirs = made(y=sound()[:, 0], sr=RATE, **(given or {})).T
    assert found.shape == theirs.shape
    assert np.abs(found - theirs).max() <= 1e-4 * np.abs(theirs).max()


@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize("line", each(OF_SPECTRA))
def test_changes_of_spectra_are_the_library_s(line: str) -> None:
    """Decibels alike; masks drawn often, by their share of values, and the longest of them."""
    import tensorflow as tf

    library, word, given = named(line)
    made, power = made_by(library, word), 1 if "amplitude" in line or "magnitude" in line else 2
    mel: Any = transforms()["mel_spectrogram"].model_validate({"preset": "torchaudio", "hop": 160, "bands": 64, "power": power})
    spectra = applied(mel, sound()[None]) + np.float32(1e-12)
    x = mel.on(type_of(sound()[None])).infer(type_of(sound()[None]))
    step: Any = the_step(line).on(x).at(tf.constant(0))
    if step.op == "log":
        found = step.finish(tf.constant(spectra)).numpy()[0, :, :, 0]
        if library == "torchaudio":
            import torch

            theirs = made(**(given or {}))(torch.from_numpy(spectra[0, :, :, 0].T.copy())).numpy().T
        else:
            theirs = made(spectra[0, :, :, 0], **(given or {}))
        np.testing.assert_allclose(found, theirs, atol=1e-3)
        return
    import torch

    torch.manual_seed(1)
    many = np.repeat(spectra + 1, DRAWS, 0)
    u = np.random.default_rng(4).random((DRAWS, step.num_draws()))
    mine = step.apply(tf.constant(many), *step.parameters(tf.constant(u), *many.shape[1:3])).numpy()[..., 0]
    library_s = made(**given)
    theirs = np.stack([library_s(torch.from_numpy(one[:, :, 0].T.copy())[None])[0].numpy().T for one in many])
    shares = [[np.mean(one != many[0, :, :, 0]) for one in part] for part in (mine, theirs)]
    assert np.mean(shares[0]) == pytest.approx(np.mean(shares[1]), abs=4 * np.std(shares[1]) / np.sqrt(DRAWS))
    assert np.max(shares[0]) == pytest.approx(np.max(shares[1]), rel=0.25)
    values = [float(part[part != many[..., 0]].mean()) for part in (mine, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-4, abs=1e-6)


@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize("line", each(TRIMS))
def test_silence_is_trimmed_as_the_library_does(line: str) -> None:
    import tensorflow as tf

    library, word, given = named(line)
    theirs = made_by(library, word)(sound()[:, 0], **given)[0]
    found = the_step(line).apply(tf.constant(sound()), tf.zeros([0], tf.float64)).numpy()[:, 0]
    np.testing.assert_array_equal(found, theirs)


@pytest.mark.parametrize("line", [line for line in REFUSED.split("\n") if line])
def test_values_without_a_form_are_refused(line: str) -> None:
    steps, said = written(*parsed(line))
    assert steps is None
    assert "pipegen has no form of" in said


@pytest.mark.parametrize("word", WITHOUT.split())
def test_steps_without_a_form_say_why(word: str) -> None:
    steps, said = written(word, shown_arguments(word.partition(".")[0], word.rpartition(".")[2]) or None)
    assert steps is None
    assert f"pipegen has no form of {word.split('.')[0]}" in said.lower()


def test_every_word_with_a_form_is_compared() -> None:
    lines = {library: each(text) for library, text in (("audiomentations", AUDIOMENTATIONS), ("torchaudio", TORCHAUDIO))}
    compared = {library: {parsed(line)[0] for line in own} for library, own in lines.items()}
    for line in each(SPECTRA + OF_SPECTRA + TRIMS):
        compared.setdefault(named(line)[0], set()).add(named(line)[1])
    for library in ("audiomentations", "torchaudio", "librosa"):
        found = answers(library)
        with_form = {answer.name for answer in found if answer.meaning is not None and answer.meaning.steps}
        assert with_form - ALONE.get(library, set()) == compared[library]
        assert library == "audiomentations" or all(answer.meaning is not None for answer in found)


def test_a_word_of_images_is_not_one_of_sound() -> None:
    """`Normalize` alone is one of images, and with its library of sound."""
    steps, _ = written("audiomentations.Normalize", {"p": 1})
    assert steps == [{"loudness": {"peak": 0}}]
    meaning = meaning_in("torchaudio", "Resample", {"new_freq": 8000})
    assert meaning is not None
    assert meaning.steps == ({"resample": {"rate": 8000}},)
    _, said = written("Normalize", {"mean": [0.5], "std": [0.5]})
    assert "audiomentations" not in said
