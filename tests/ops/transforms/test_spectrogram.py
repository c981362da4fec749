"""`spectrogram`, `mel_spectrogram` and `mfcc` against NumPy and SciPy: the presets of libraries, every argument, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal
import yaml
from pydantic import ValidationError
from spectral_oracles import cepstra, kaldi_fbank, librosa_mel, mel_filters, power_to_db, sound, torchaudio_mel, whisper_log_mel

from pipegen.errors import OpError
from pipegen.ops.arguments.spectra import Mel, weights
from pipegen.ops.kinds.audio import Sound
from pipegen.ops.registry import transforms
from pipegen.types import FeatureType, Interval

Array = np.ndarray[Any, Any]


def type_of(frames: int | None, rate: int = 16000, channels: int = 1) -> FeatureType:
    return FeatureType("audio", "float32", (frames, channels), Interval(-1, 1), details=Sound(rate))


def made(written: str, rate: int = 16000, channels: int = 1) -> Any:
    """The step of a line of a spec, for sound of a rate."""
    ((name, arguments),) = yaml.safe_load(written).items() if ":" in written else ((written, None),)
    return transforms()[name].model_validate(arguments or {}).on(type_of(None, rate, channels))


def computed(step: Any, y: Array, *, jit: bool = False, unknown: bool = False) -> Array:
    """The step on a batch `(n, frames, channels)`."""
    import tensorflow as tf

    shape = [None, None, y.shape[2]] if unknown else y.shape
    signature = [tf.TensorSpec(shape, tf.float32)]
    return tf.function(lambda x: step.apply(x, *step.parameters(tf.zeros([tf.shape(x)[0], 0], tf.float64), 0, 0)), jit_compile=jit,
        autograph=False, input_signature=signature)(tf.constant(y)).numpy()  # fmt: skip


def near(found: Array, expected: Array, relative: float = 2e-6) -> None:
    """Equal up to the rounding of float32 sums, which is relative to the largest value of a step."""
    assert found.shape == expected.shape
    largest = np.abs(expected).max(-1, keepdims=True)
    assert np.all(np.abs(found - expected) <= relative * largest + 1e-10)


CASES = {
    "librosa": ("mel_spectrogram: {preset: librosa}", lambda y: librosa_mel(y, 16000)),
    "librosa, another window": (
        "mel_spectrogram: {preset: librosa, window: 800, hop: 160, bands: 40}",
        lambda y: librosa_mel(y, 16000, win_length=800, hop_length=160, n_mels=40),
    ),
    "librosa, inside": (
        "mel_spectrogram: {preset: librosa, fft: 1024, window: 600, center: false, low_hz: 100, high_hz: 4000}",
        lambda y: librosa_mel(y, 16000, n_fft=1024, win_length=600, center=False, fmin=100, fmax=4000),
    ),
    "librosa, fft alone": ("mel_spectrogram: {preset: librosa, fft: 1024}", lambda y: librosa_mel(y, 16000, n_fft=1024)),
    "librosa, magnitudes": (
        "mel_spectrogram: {preset: librosa, power: 1, scale: htk, norm: none}",
        lambda y: librosa_mel(y, 16000, power=1.0, htk=True, norm=None),
    ),
    "an odd length": (
        "mel_spectrogram: {preset: librosa, fft: 551, hop: 221, bands: 32, pad: edge}",
        lambda y: librosa_mel(y, 16000, n_fft=551, hop_length=221, n_mels=32, pad_mode="edge"),
    ),
    "torchaudio": ("mel_spectrogram: {preset: torchaudio}", torchaudio_mel),
    "many steps": (
        "mel_spectrogram: {preset: librosa, fft: 512, hop: 7, bands: 20}",
        lambda y: librosa_mel(y, 16000, n_fft=512, hop_length=7, n_mels=20),
    ),
    "torchaudio, fft alone": ("mel_spectrogram: {preset: torchaudio, fft: 1024}", lambda y: torchaudio_mel(y, n_fft=1024)),
}


@pytest.mark.tf
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("jit", [False, True])
def test_mel_spectrogram_is_that_of_the_libraries(name: str, jit: bool) -> None:
    written, oracle = CASES[name]
    y = sound(9001)
    step = made(written)
    found = computed(step, y[None, :, None], jit=jit)[0, :, :, 0]
    near(found, oracle(y))
    assert found.shape == step.infer(type_of(9001)).shape[:2]


@pytest.mark.tf
@pytest.mark.parametrize("jit", [False, True])
def test_whisper_and_kaldi(jit: bool) -> None:
    y = sound(16000)
    found = computed(made("mel_spectrogram: {preset: whisper}"), y[None, :, None], jit=jit)[0, :, :, 0]
    np.testing.assert_allclose(found, whisper_log_mel(y), atol=2e-5)
    assert found.shape == (100, 80)
    found = computed(made("mel_spectrogram: {preset: kaldi, bands: 80}"), y[None, :, None], jit=jit)[0, :, :, 0]
    expected = kaldi_fbank(y, bands=80)
    heard = expected > -15  # of silence, the logarithm is the floor's
    np.testing.assert_allclose(found[heard], expected[heard], atol=2e-3)
    np.testing.assert_allclose(found[~heard], expected[~heard], atol=1e-5)


@pytest.mark.tf
@pytest.mark.by_day(4)
@pytest.mark.parametrize("window", ["povey", "hanning", "hamming", "blackman", "rectangular"])
@pytest.mark.parametrize("edges", ["", ", center: hop"])
def test_kaldi_of_each_window_and_with_edges(window: str, edges: str) -> None:
    name = "hann" if window == "hanning" else window
    for frames, hop, power in ((5000, 10.0, 2), (4321, 7.5, 1), (401, 30.0, 2), *([(250, 10.0, 2), (90, 10.0, 2)] if edges else [])):
        y = sound(frames)
        own = f"bands: 40, window_function: {name}, hop_ms: {hop}, power: {power}, log: none{edges}"
        step = made(f"mel_spectrogram: {{preset: kaldi, {own}}}")
        found = computed(step, y[None, :, None], jit=power == 1)[0, :, :, 0]
        expected = np.exp(kaldi_fbank(y, bands=40, window=window, snip_edges=not edges, use_power=power == 2, shift_ms=hop))
        assert found.shape == step.infer(type_of(frames)).shape[:2]
        near(np.maximum(found, 2.0**-23), expected, 1e-5)
        near(computed(step, y[None, :, None], unknown=True)[0, :, :, 0], found, 1e-5)


@pytest.mark.tf
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("window", ["povey", "hamming"])
def test_silence_behind_a_loud_sample_is_zero(window: str, jit: bool) -> None:
    """Not what rounding leaves, which the logarithm would show."""
    y = np.concatenate([np.full(1439, -0.4990234), [-0.7], np.zeros(880)]).astype(np.float32)
    step = made(f"mel_spectrogram: {{preset: kaldi, bands: 40, window_function: {window}, hop_ms: 7.5, power: 1, log: none}}")
    found = computed(step, np.stack([y, y / 3])[:, :, None], jit=jit)
    assert np.all(found[:, 12:] == 0)
    assert np.all(found[:, 11].max(1) > 0)


@pytest.mark.tf
def test_steps_in_the_middle_of_hops() -> None:
    y = sound(1000)
    for window, hop, pad, mode in ((64, 100, "zero", "constant"), (301, 50, "symmetric", "symmetric"), (64, 33, "reflect", "reflect")):
        step = made(f"spectrogram: {{window: {window}, hop: {hop}, fft: 512, center: hop, pad: {pad}, window_function: rectangular}}")
        padded = np.pad(y.astype(np.float64), 400, mode=mode)  # type: ignore[call-overload]
        starts = [400 + hop * i + hop // 2 - window // 2 for i in range((1000 + hop // 2) // hop)]
        expected = np.abs(np.fft.rfft(np.stack([padded[start : start + window] for start in starts]), 512)) ** 2
        near(computed(step, y[None, :, None])[0, :, :, 0], expected, 1e-5)
        assert step.infer(type_of(1000)).shape[0] == len(starts)
    step = made("spectrogram: {window: 64, hop: 33, center: hop, drop_last: true}")
    assert step.analysis(16000).needed() == 2 * 33 - 16
    assert step.infer(type_of(50)).shape[0] == 1


@pytest.mark.tf
@pytest.mark.parametrize(
    "written", ["mel_spectrogram: {preset: kaldi}", "spectrogram: {window: 300, fft: 512, center: true, pad: reflect}"]
)
def test_without_fourier_transforms_it_is_a_product(written: str) -> None:
    from pipegen.ops.lowering.graphs import made_for

    y, step = sound(3000)[None, :, None], made(written)
    expected = computed(step, y)
    with made_for("converter"):
        found = computed(step, y)
    assert not np.array_equal(found, expected)
    near(found[0, :, :, 0], expected[0, :, :, 0], 1e-5)


@pytest.mark.tf
def test_mfcc_of_each_preset() -> None:
    y = sound(12000)
    batch = y[None, :, None]
    librosa = cepstra(power_to_db(librosa_mel(y, 16000)), 20)
    near(computed(made("mfcc: {preset: librosa}"), batch)[0, :, :, 0], librosa, 1e-5)
    torchaudio = cepstra(power_to_db(torchaudio_mel(y)), 40)
    near(computed(made("mfcc: {preset: torchaudio}"), batch)[0, :, :, 0], torchaudio, 1e-5)
    kaldi = cepstra(kaldi_fbank(y), 13, 22.0)
    found = computed(made("mfcc: {preset: kaldi}"), batch)[0, :, :, 0]
    np.testing.assert_allclose(found, kaldi, atol=5e-3)
    plain = cepstra(
        np.log(np.maximum(librosa_mel(y, 16000, n_fft=512, hop_length=160, win_length=400, n_mels=40, htk=True, norm=None), 1e-10)), 13
    )
    found = computed(made("mfcc: {bands: 40, center: true, frame: fft}"), batch)[0, :, :, 0]
    near(found, plain, 1e-5)


@pytest.mark.tf
@pytest.mark.parametrize("function", ["hann", "hamming", "blackman", "rectangular"])
def test_spectrogram_of_each_window_function(function: str) -> None:
    y, name = sound(4000), {"rectangular": "boxcar"}.get(function, function)
    window = scipy.signal.get_window(name, 320, fftbins=True)
    np.testing.assert_allclose(weights(function, 320), window, atol=1e-12)  # type: ignore[arg-type]
    symmetric = scipy.signal.get_window(name, 320, fftbins=False)
    np.testing.assert_allclose(weights(function, 320, periodic=False), symmetric, atol=1e-12)  # type: ignore[arg-type]
    expected = np.abs(np.fft.rfft(np.lib.stride_tricks.sliding_window_view(y.astype(np.float64), 320)[::100] * window, 512))
    near(
        computed(made(f"spectrogram: {{window: 320, hop: 100, power: 1, window_function: {function}}}"), y[None, :, None])[0, :, :, 0],
        expected,
    )


@pytest.mark.tf
def test_channels_lengths_and_hops_give_what_single_sounds_give() -> None:
    two = np.stack([sound(3001), sound(3001, seed=1)], -1)
    for written in ("spectrogram: {window: 256, hop: 300}", "mel_spectrogram: {preset: torchaudio}", "mfcc: {preset: kaldi}"):
        step = made(written, channels=2)
        both = computed(step, two[None])[0]
        for channel in range(2):
            near(both[..., channel], computed(step, two[None, :, channel : channel + 1])[0, :, :, 0], 1e-6)
        unknown = computed(step, two[None], unknown=True)[0]
        near(unknown, both, 1e-6)
        several = computed(step, np.stack([two, two[::-1]]))
        near(several[0], both, 1e-6)


@pytest.mark.tf
def test_decibels_of_two_channels_have_one_top() -> None:
    two = np.stack([sound(4000), sound(4000, seed=1) * np.float32(1e-4)], -1)
    found = computed(made("mfcc: {preset: torchaudio, coefficients: 5}", channels=2), two[None])[0]
    power = np.stack([torchaudio_mel(two[:, c]) for c in range(2)])
    expected = power_to_db(power)
    for channel in range(2):
        near(found[..., channel], cepstra(expected[channel], 5), 1e-4)


@pytest.mark.tf
def test_a_short_sound_of_unknown_length_fails_and_a_short_one_is_reflected_often_enough() -> None:
    import tensorflow as tf

    step = made("spectrogram: {window: 400, hop: 160}")
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs sounds of 400 samples or more"):
        computed(step, sound(399)[None, :, None], unknown=True)
    assert computed(step, sound(400)[None, :, None], unknown=True).shape == (1, 1, 257, 1)
    y = sound(7)
    for pad, mode in (("reflect", "reflect"), ("edge", "edge"), ("zero", "constant")):
        step = made(f"spectrogram: {{window: 40, hop: 16, fft: 64, center: true, pad: {pad}}}")
        padded = np.pad(y.astype(np.float64), 20, mode=mode)  # type: ignore[call-overload]
        window = scipy.signal.get_window("hann", 40, fftbins=True)
        expected = np.abs(np.fft.rfft(padded[:40][None] * window, 64)) ** 2
        near(computed(step, y[None, :, None], unknown=True)[0, :, :, 0], expected)
        one = computed(step, y[None, :1, None], unknown=True)
        assert np.isfinite(one).all()
        with pytest.raises(tf.errors.InvalidArgumentError, match="1 samples or more"):
            computed(step, y[None, :0, None], unknown=True)


@pytest.mark.parametrize("scale", ["htk", "slaney"])
@pytest.mark.parametrize("norm", ["none", "slaney"])
def test_mel_filters(scale: Any, norm: Any) -> None:
    mel = Mel(40, 50.0, 7000.0, scale, norm, 512, 16000)
    found = np.zeros((40, 257))
    for band, own in enumerate(mel.filters()):
        for number, weight in own:
            found[band, number] = weight
    np.testing.assert_allclose(
        found, mel_filters(16000, 512, 40, 50.0, 7000.0, htk=scale == "htk", slaney_norm=norm == "slaney"), atol=1e-12
    )


def test_milliseconds_are_rounded_down_and_presets_give_way() -> None:
    for written, rate, lengths in (
        ("spectrogram: {window_ms: 25, hop_ms: 10}", 44100, (1102, 441, 2048)),
        ("spectrogram", 22050, (551, 220, 1024)),
        ("spectrogram: {window_ms: 0.001}", 16000, (1, 160, 1)),
        ("mel_spectrogram: {preset: librosa}", 22050, (2048, 512, 2048)),
        ("mel_spectrogram: {preset: librosa, window_ms: 25, hop_ms: 10}", 16000, (400, 160, 2048)),
        ("mel_spectrogram: {preset: torchaudio, window: 200}", 16000, (200, 100, 400)),
        ("mel_spectrogram: {preset: whisper, hop_ms: 20}", 16000, (400, 320, 400)),
        ("mel_spectrogram: {preset: kaldi, window: 500}", 8000, (500, 80, 512)),
    ):
        found = made(written, rate).analysis(rate)
        assert (found.window, found.hop, found.fft) == lengths, written


def test_a_preset_means_its_arguments() -> None:
    step = made("mel_spectrogram: {preset: torchaudio}")
    given = {"bands": 128, "fft": 400, "center": True, "pad": "reflect", "frame": "fft"}
    assert step.meaning() == transforms()["mel_spectrogram"].model_validate({"preset": "torchaudio", **given}).meaning()
    assert step.meaning() != made("mel_spectrogram: {preset: torchaudio, bands: 64}").meaning()
    plain = made("mel_spectrogram")
    assert plain.meaning() == made("mel_spectrogram: {bands: 80, window_ms: 25, hop_ms: 10, scale: htk, norm: none, log: none}").meaning()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("spectrogram: {window: 4, window_ms: 3}", "either `window`, in samples, or `window_ms`"),
        ("spectrogram: {hop: 4, hop_ms: 3}", "either `hop`, in samples, or `hop_ms`"),
        ("spectrogram: {power: 3}", "Input should be 1 or 2"),
        ("spectrogram: {probability: 0.5}", "Extra inputs"),
        ("mfcc: {preset: whisper}", "Input should be 'librosa'"),
        ("mel_spectrogram: {log: {floor: 1, offset: 1}}", "either `floor` or `offset`"),
        ("mel_spectrogram: {log: {scale: 0}}", "makes every value the same"),
    ],
)
def test_contradictions_are_rejected(written: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        made(written)


@pytest.mark.parametrize(
    ("written", "x", "code", "said"),
    [
        ("spectrogram: {window: 600, fft: 512}", type_of(16000), "PG105", "600 samples does not fit the `fft` of 512"),
        ("mel_spectrogram: {high_hz: 9000}", type_of(16000), "PG105", "up to 8000 Hz, not 9000"),
        ("mel_spectrogram: {low_hz: 8000}", type_of(16000), "PG105", "hold no frequency"),
        ("mel_spectrogram: {preset: whisper}", type_of(16000, 44100), "PG105", "16,000 Hz, and this has 44,100 Hz"),
        ("mfcc: {bands: 20, coefficients: 21}", type_of(16000), "PG105", "no more than 20 coefficients"),
        ("spectrogram", type_of(399), "PG206", "400 samples or more, and gets 399"),
        ("spectrogram", type_of(16000).with_(shape=(98, 64, 1)), "PG204", "works on samples"),
        ("log", type_of(16000), "PG204", "works on spectra"),
        ("spec_augment: {time: 0.1}", type_of(16000), "PG204", "works on spectra"),
    ],
)
def test_what_does_not_fit_is_an_error(written: str, x: FeatureType, code: str, said: str) -> None:
    with pytest.raises(OpError, match=said) as caught:
        made(written).infer(x)
    assert caught.value.code == code


def test_a_window_longer_than_the_transform_is_mended_by_the_advice() -> None:
    with pytest.raises(OpError) as caught:
        made("spectrogram: {window: 600, fft: 512}").infer(type_of(16000))
    assert "`fft: 1024`" in str(caught.value.help[0] if isinstance(caught.value.help, tuple) else caught.value.help)
    assert made("spectrogram: {window: 600, fft: 1024}").infer(type_of(16000)).shape == (97, 513, 1)


def test_bands_without_frequencies_are_told() -> None:
    (lint,) = made("mel_spectrogram: {bands: 128, window_ms: 25}").lints(type_of(16000))
    assert lint.code == "PG510"
    assert "of the 128 bands" in str(lint)
    assert not made("mel_spectrogram: {bands: 40}").lints(type_of(16000))


def test_what_a_feature_holds_is_known() -> None:
    x = type_of(16000)
    mel = made("mel_spectrogram").infer(x)
    assert mel.details == Sound(16000, 160.0, "powers")
    assert made("spectrogram: {power: 1}").infer(x).details.holds == "magnitudes"  # type: ignore[union-attr]
    log = made("log").infer(mel)
    assert log.details == Sound(16000, 160.0, "logarithms")
    assert made("mel_spectrogram: {preset: whisper}").infer(x).details.holds == "logarithms"  # type: ignore[union-attr]
    with pytest.raises(OpError, match="a logarithm has been taken before"):
        made("log").infer(log)
    with pytest.raises(OpError, match="expects values from 0 on"):
        made("log").infer(mel.with_(interval=Interval(-1, 1)))


def test_the_expected_cost_is_that_of_the_steps_whatever_is_known_of_the_length() -> None:
    from pipegen.ops.families.neighbourhood import Neighbourhood
    from pipegen.ops.kinds.base import kind_of

    step = made("mel_spectrogram: {bands: 64}")
    weight = step.traits(type_of(16000)).weight
    assert 60 < weight * Neighbourhood.ns_per_value * 98 * 64 / 1e3 < 160  # microseconds for a second; about 100 were measured
    encoded = FeatureType("audio", "string", (), details=Sound(16000))
    assert step.traits(type_of(None)).weight == step.traits(encoded).weight == weight
    samples = kind_of(encoded).samples
    assert samples is not None
    assert samples.assumed_length(encoded) == 48000
    assert samples.assumed_length(step.infer(type_of(None))) == 300
