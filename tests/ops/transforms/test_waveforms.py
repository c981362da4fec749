"""Steps on the samples of sound, against NumPy and SciPy: the same in XLA and without, of known and of unknown length, in any batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sounds import RATE, Array, applied, by_phases, chatter, draws, tone, type_of

from pipegen.errors import OpError
from pipegen.ops.families.sounds import ANY_SOUND, SECOND, SoundTransform
from pipegen.ops.kinds.audio import Sound
from pipegen.ops.registry import transforms

pytestmark = pytest.mark.tf

STEPS: list[tuple[str, dict[str, Any]]] = [
    ("gain", {"db": -6}),
    ("random_gain", {"db": [-12, 6]}),
    ("loudness", {"peak": -1}),
    ("loudness", {"rms": -20}),
    ("polarity", {}),
    ("random_polarity", {}),
    ("fade", {"fade_in": 0.05, "fade_out": 0.1, "shape": "half_sine"}),
    ("random_fade", {"fade_in": 0.1, "fade_out": 0.2, "shape": "logarithmic"}),
    ("random_clipping", {"db": 20}),
    ("random_shift", {"share": 0.7}),
    ("random_shift", {"seconds": 0.1, "fill": "silence"}),
    ("random_time_mask", {"share": 0.5}),
    ("random_time_mask", {"seconds": [0.05, 0.1]}),
    ("random_speed", {"factor": [0.8, 1.3]}),
    ("random_time_stretch", {"factor": [0.8, 1.3]}),
    ("random_pitch", {"semitones": 4}),
    ("random_noise", {"snr_db": [0, 20]}),
    ("random_noise", {"snr_db": [0, 20], "color": "pink"}),
    ("random_noise", {"snr_db": [0, 20], "color": "violet"}),
    ("random_noise", {"rms": [-60, -30], "color": "brown"}),
    ("low_pass", {"hz": 2000}),
    ("random_low_pass", {"hz": [500, 4000]}),
    ("random_high_pass", {"hz": [50, 2000], "order": 2}),
    ("random_band_pass", {"low_hz": [50, 300], "high_hz": [1000, 4000], "order": 8}),
    ("random_reverb", {"seconds": [0.05, 0.2]}),
]
IDS = [f"{op}-{number}" for number, (op, _) in enumerate(STEPS)]


def made(op: str, **given: Any) -> Any:
    return transforms()[op].model_validate(given)


def close(one: Array, other: Array) -> None:
    """Equal to 1e-6 of the largest value."""
    assert one.shape == other.shape
    assert np.isfinite(one).all()
    assert np.abs(one - other).max() <= 1e-6 * max(1.0, np.abs(other).max())


@pytest.mark.by_day(3)
@pytest.mark.parametrize(("op", "given"), STEPS, ids=IDS)
def test_the_same_in_xla_and_of_unknown_length_and_in_any_batch(op: str, given: dict[str, Any]) -> None:
    step, sounds = made(op, **given), chatter()
    u = draws(step, len(sounds))
    plain = applied(step, sounds, u)
    assert plain.dtype == np.float32
    if not step.on_host:
        close(by_phases(step, sounds, u), plain)
        close(applied(step, sounds, u, jit=True), plain)
    for i in range(len(sounds)):
        close(applied(step, sounds[i : i + 1], u[i : i + 1], known=False), plain[i : i + 1])
    assert (plain != sounds).any()


@pytest.mark.parametrize(("op", "given"), STEPS, ids=IDS)
def test_inference_holds(op: str, given: dict[str, Any]) -> None:
    step, sounds = made(op, **given), chatter(channels=1)
    x = type_of(sounds)
    y, done = step.on(x).infer(x), applied(step, sounds)
    assert y.dtype == "float32"
    assert y.shape == done.shape[1:]
    if y.interval is not None:
        assert y.interval.low - 1e-6 <= done.min()
        assert done.max() <= y.interval.high + 1e-6
    assert step.on(ANY_SOUND).infer(ANY_SOUND).shape == (None, 1)


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("op", "given"),
    [pytest.param(*step, id=name) for step, name in zip(STEPS, IDS, strict=True) if "rms" not in step[1] or step[0] == "loudness"],
)
def test_silence_and_a_single_frame_are_taken(op: str, given: dict[str, Any]) -> None:
    step = made(op, **given)
    for frames in (1, 700):
        silence = np.zeros((2, frames, 1), np.float32)
        for jit in {False, not step.on_host}:
            np.testing.assert_array_equal(applied(step, silence, jit=jit), silence)
    click = np.full((1, 1, 1), 0.5, np.float32)
    close(applied(step, click, jit=not step.on_host), applied(step, click, known=False))


def decibels(ratio: Any) -> Any:
    return 20 * np.log10(ratio)


def rms(sounds: Array) -> Array:
    return np.sqrt(np.mean(np.square(sounds.astype(np.float64)), (1, 2)))


def test_gains_are_decibels() -> None:
    sounds = chatter()
    np.testing.assert_allclose(applied(made("gain", db=6), sounds), sounds * 10 ** (6 / 20), rtol=1e-6)
    step = made("random_gain", db=[-20, 10])
    u = draws(step, 3)
    gains = applied(step, sounds, u)[:, 5:9] / sounds[:, 5:9]
    np.testing.assert_allclose(decibels(np.nanmedian(gains, (1, 2))), -20 + 30 * u[:, 0], atol=1e-4)


def test_levels_are_of_full_scale() -> None:
    sounds = chatter()
    np.testing.assert_allclose(decibels(np.abs(applied(made("loudness", peak=-3), sounds)).max((1, 2))), -3, atol=1e-5)
    np.testing.assert_allclose(decibels(rms(applied(made("loudness", rms=-23), sounds))), -23, atol=1e-5)
    with pytest.raises(ValidationError, match="give either `peak` or `rms`"):
        made("loudness")
    with pytest.raises(ValidationError, match="give either `peak` or `rms`"):
        made("loudness", peak=-1, rms=-20)
    (lint,) = made("loudness", rms=20).lints(SECOND)
    assert "above full scale" in str(lint)


def test_polarity() -> None:
    sounds = chatter()
    np.testing.assert_array_equal(applied(made("polarity"), sounds), -sounds)


@pytest.mark.parametrize("shape", ["linear", "exponential", "logarithmic", "quarter_sine", "half_sine"])
def test_fades_are_torchaudio_s(shape: str) -> None:
    """By the formulas of `torchaudio.transforms.Fade`."""
    ones = np.ones((1, 1000, 1), np.float32)
    done = applied(made("fade", fade_in=0.02, fade_out=0.03, shape=shape), ones)[0, :, 0]

    def curve(u: Array) -> Array:
        return {
            "linear": u,
            "exponential": 2.0 ** (u - 1) * u,
            "logarithmic": np.log10(0.1 + u) + 1,
            "quarter_sine": np.sin(u * np.pi / 2),
            "half_sine": np.sin(u * np.pi - np.pi / 2) / 2 + 0.5,
        }[shape]

    wanted = np.ones(1000)
    wanted[:320] = np.clip(curve(np.linspace(0, 1, 320)), 0, 1)
    wanted[-480:] = np.clip(curve(1 - np.linspace(0, 1, 480)), 0, 1)
    np.testing.assert_allclose(done, wanted, atol=1e-6)


def test_clipping_is_below_the_peak() -> None:
    sounds = chatter()
    done = applied(made("random_clipping", db=[6, 6]), sounds)
    limit = np.abs(sounds).max((1, 2), keepdims=True) * 10 ** (-6 / 20)
    np.testing.assert_allclose(done, np.clip(sounds, -limit, limit), rtol=1e-6)


def test_shifts_are_whole_frames() -> None:
    sounds = chatter()
    step = made("random_shift", seconds=[0.01, 0.01])
    np.testing.assert_array_equal(applied(step, sounds), np.roll(sounds, 160, 1))
    step = made("random_shift", share=[-0.25, -0.25], fill="silence")
    wanted = np.zeros_like(sounds)
    wanted[:, :3000] = sounds[:, 1000:]
    np.testing.assert_array_equal(applied(step, sounds), wanted)
    with pytest.raises(ValidationError, match="give either `seconds` or `share`"):
        made("random_shift", seconds=1, share=0.1)


def test_masks_silence_a_stretch() -> None:
    ones = np.ones((200, 1000, 1), np.float32)
    done = applied(made("random_time_mask", share=[0.1, 0.3]), ones)[..., 0]
    lengths = (done == 0).sum(1)
    assert lengths.min() >= 100
    assert lengths.max() <= 300
    assert (np.abs(np.diff(done, axis=1)).sum(1) <= 2).all(), "in one piece"
    starts = np.argmin(done, 1) / (1000 - lengths)
    assert abs(starts.mean() - 0.5) < 0.07, "anywhere"


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.25, 2.0])
def test_another_speed_moves_pitch_and_time(factor: float) -> None:
    rate, hz = RATE, 600.0
    sound = tone(hz)[None]
    done = applied(made("random_speed", factor=[factor, factor]), sound)[0, :, 0]
    middle = slice(200, int(min(rate, rate / factor)) - 200)
    np.testing.assert_allclose(done[middle], tone(hz * factor)[middle, 0], atol=2e-3)
    if factor > 1:
        assert not np.abs(done[int(rate / factor) + 40 :]).any(), "silence follows"


def test_what_would_alias_is_removed() -> None:
    sound = tone(6000)[None]
    done = applied(made("random_speed", factor=[2, 2]), sound)[0, :, 0]
    assert np.abs(done[200:7800]).max() < 0.5 * 10 ** (-50 / 20), "12 kHz is beyond half the rate"


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.25])
def test_stretched_sound_keeps_its_pitch(factor: float) -> None:
    sound = tone(440)[None]
    sound[0, :, 0] += tone(1000, level=0.2)[:, 0]
    done = applied(made("random_time_stretch", factor=[factor, factor]), sound)[0, :, 0]
    end = min(RATE, round(RATE / factor))
    assert highest(done[2000 : end - 2000]) == pytest.approx(440, abs=1)
    assert np.abs(done[4000 : end - 2000]).max() == pytest.approx(0.7, rel=0.1)
    assert np.abs(done[end + 1024 :]).max(initial=0) < 1e-3, "silence follows"
    if factor == 1:
        np.testing.assert_allclose(done, sound[0, :, 0], atol=1e-6)


@pytest.mark.parametrize("semitones", [-7, -1, 0, 0.5, 3, 12])
def test_another_pitch_moves_a_sine(semitones: float) -> None:
    done = applied(made("random_pitch", semitones=[semitones, semitones]), tone(440)[None])[0, :, 0]
    assert highest(done[2000:-2000]) == pytest.approx(440 * 2 ** (semitones / 12), rel=2e-3)
    assert rms(done[None, 2000:-2000, None])[0] == pytest.approx(0.5 / np.sqrt(2), rel=0.02)


def highest(sound: Array) -> float:
    """The frequency of the highest peak of the spectrum, in Hz, by a parabola through its logarithm."""
    size = np.log(np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 1 << 17)) + 1e-12)
    at = int(np.argmax(size))
    left, middle, right = size[at - 1 : at + 2]
    return (at + 0.5 * (left - right) / (left - 2 * middle + right)) * RATE / (1 << 17)


def test_only_an_old_tensorflow_runs_the_vocoder_on_the_host() -> None:
    import tensorflow as tf

    version = tuple(map(int, tf.__version__.split(".")[:2]))
    assert {made(op, **given).on_host for op, given in (("random_pitch", {"semitones": 2}), ("random_time_stretch", {"factor": 0.1}))} == {
        version < (2, 18)
    }
    assert not made("random_speed", factor=0.1).on_host


def test_the_vocoder_is_the_published_one() -> None:
    """Step by step in NumPy, with the angles that the papers have."""
    rng = np.random.default_rng(5)
    sound, factor, window, hop = rng.normal(0, 0.1, 6000).astype(np.float32), 1.3, 1024, 256
    done = applied(made("random_time_stretch", factor=[factor, factor]), sound[None, :, None])[0, :, 0]
    bell = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    padded = np.pad(sound.astype(np.float64), (window // 2, 3 * window))
    spectra = np.stack([np.fft.rfft(padded[i * hop : i * hop + window] * bell) for i in range(len(sound) // hop + 6)])
    bins = np.arange(window // 2 + 1)
    centre = 2 * np.pi * bins * hop / window
    phase = ahead = np.angle(spectra[0])
    out, weight = np.zeros(len(sound) + 2 * window), np.zeros(len(sound) + 2 * window)
    for j in range((len(sound) + window // 2) // hop + 1):
        at = min(int(j * factor), len(spectra) - 2)
        share = j * factor - int(j * factor)
        size = (1 - share) * np.abs(spectra[at]) + share * np.abs(spectra[at + 1])
        if j:
            phase = phase.copy()
            beside = np.pad(size, 2, constant_values=-1)
            peaks = [k for k in bins if size[k] > max(beside[[k, k + 1, k + 3, k + 4]])]
            for k in bins if peaks else ():
                peak = min(peaks, key=lambda p: abs(p - k))
                phase[k] = ahead[peak] + np.angle(spectra[at][k]) - np.angle(spectra[at][peak])
        piece = slice(j * hop, j * hop + window)
        out[piece] += np.fft.irfft(size * np.exp(1j * phase)) * bell
        weight[piece] += bell**2
        moved = np.angle(spectra[at + 1]) - np.angle(spectra[at]) - centre
        phase = ahead = phase + centre + moved - 2 * np.pi * np.round(moved / (2 * np.pi))
    wanted = (out / np.maximum(weight, 1e-9))[window // 2 : window // 2 + len(sound)]
    np.testing.assert_allclose(done, wanted, atol=1e-6)


@pytest.mark.parametrize("color", ["white", "pink", "brown", "blue", "violet"])
def test_noise_has_its_ratio_and_its_slope(color: str) -> None:
    sounds = np.stack([tone(300), tone(2000, level=0.1)])
    step = made("random_noise", snr_db=[-5, 30], color=color)
    u = draws(step, 2)
    noise = applied(step, sounds, u).astype(np.float64) - sounds
    reached = decibels(rms(sounds) / rms(noise))
    np.testing.assert_allclose(reached, -5 + 35 * u[:, 0], atol=1e-3)
    from scipy import signal

    hz, power = signal.welch(noise[0, :, 0], RATE, nperseg=1024)
    inside = (hz >= 100) & (hz <= 6000)
    slope = np.polyfit(np.log2(hz[inside]), 10 * np.log10(power[inside]), 1)[0]
    wanted = {"white": 0, "pink": -3.01, "brown": -6.02, "blue": 3.01, "violet": 6.02}[color]
    assert slope == pytest.approx(wanted, abs=0.4)


@pytest.mark.parametrize("color", ["white", "violet"])
def test_noise_has_a_level_of_its_own(color: str) -> None:
    sounds = np.stack([tone(300), np.zeros_like(tone(300))])
    step = made("random_noise", rms=[-90, -30], color=color)
    u = draws(step, 2)
    noise = applied(step, sounds, u).astype(np.float64) - sounds
    np.testing.assert_allclose(decibels(rms(noise)), -90 + 60 * u[:, 0], atol=2e-2)
    for given in ({}, {"rms": [-60, -30], "snr_db": [0, 10]}):
        with pytest.raises(ValidationError, match="give either `snr_db`, relative to each sound, or `rms`"):
            made("random_noise", **given)


def test_a_value_of_white_noise_depends_on_its_place_alone() -> None:
    step = made("random_noise", snr_db=[0, 0])
    sounds = np.ones((1, 900, 2), np.float32)
    u = draws(step, 1)
    long, short = (applied(step, part, u) - 1 for part in (sounds, sounds[:, :300]))
    np.testing.assert_allclose(short / rms(short), long[:, :300] / rms(long[:, :300]), atol=1e-5)
    assert abs(np.corrcoef(long[0].T)[0, 1]) < 0.15, "channels have values of their own"
    assert np.abs(applied(step, sounds, draws(step, 1, 9)) - 1 - long).max() > 0.1


@pytest.mark.parametrize("order", [1, 2, 4, 8])
def test_filters_have_the_magnitude_of_butterworth_s(order: int) -> None:
    from scipy import signal

    click = np.zeros((1, 8192, 1), np.float32)
    click[0, 4096] = 1
    hz = np.fft.rfftfreq(8192, 1 / RATE)
    angle = 2 * np.pi * hz

    def response(kind: str, cutoff: float) -> Array:
        b, a = signal.butter(order, 2 * np.pi * cutoff, kind, analog=True)
        return np.abs(signal.freqs(b, a, angle)[1])

    ways = {
        "low_pass": ({"hz": 1200}, response("lowpass", 1200)),
        "high_pass": ({"hz": 700}, response("highpass", 700)),
        "band_pass": ({"low_hz": 300, "high_hz": 3400}, response("highpass", 300) * response("lowpass", 3400)),
    }
    for op, (given, wanted) in ways.items():
        done = applied(made(op, order=order, **given), click)[0, :, 0]
        found = np.fft.rfft(np.roll(done, -4096))
        slack = 2e-3 if order == 1 else 3e-4  # of what lies beyond the ends
        np.testing.assert_allclose(found.real, wanted, atol=slack)
        np.testing.assert_allclose(found.imag, 0, atol=slack)


def test_cut_offs_are_below_half_the_rate() -> None:
    with pytest.raises(OpError, match="reaches 8000 Hz in sound of 16000 Hz") as found:
        made("low_pass", hz=8000).infer(SECOND)
    assert "half the rate, 8000 Hz" in str(found.value.help)
    with pytest.raises(OpError, match="reaches 9000 Hz"):
        made("random_low_pass", hz=[100, 9000]).infer(SECOND)
    with pytest.raises(ValidationError, match="`low_hz` is below `high_hz`"):
        made("band_pass", low_hz=3000, high_hz=300)


def test_nothing_wraps_around() -> None:
    """What leaves at one end does not enter at the other."""
    sounds = np.zeros((1, 16384, 1), np.float32)
    sounds[0, 0] = 1
    for step in (made("high_pass", hz=40), made("random_reverb", seconds=[0.3, 0.3])):
        assert np.abs(applied(step, sounds)[0, 12000:]).max() < 1e-4


def test_reverberation_decays_by_60_db_in_its_time() -> None:
    from scipy import signal

    step = made("random_reverb", seconds=[0.4, 0.4], direct_db=[3, 3])
    click = np.zeros((1, RATE, 1), np.float32)
    click[0, 0] = 1
    u = draws(step, 1)
    response = applied(step, click, u)[0, :, 0].astype(np.float64)
    assert (response**2).sum() == pytest.approx(1, rel=1e-5)
    assert 10 * np.log10(response[0] ** 2 / (response[1:] ** 2).sum()) == pytest.approx(3, abs=1e-3)
    left = 10 * np.log10(np.cumsum(response[:0:-1] ** 2)[::-1])  # Schroeder's integral
    time = np.arange(len(left)) / RATE
    inside = (left < left[0] - 5) & (left > left[0] - 35)
    assert -60 / np.polyfit(time[inside], left[inside], 1)[0] == pytest.approx(0.4, rel=0.05)
    sounds = chatter(1, 6000)
    done = applied(step, sounds, u)
    for channel in range(2):
        wanted = signal.fftconvolve(sounds[0, :, channel].astype(np.float64), response)[:6000]
        np.testing.assert_allclose(done[0, :, channel], wanted, atol=1e-6)


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100])
def test_another_rate_is_the_same_sound(rate: int) -> None:
    step, sound = made("resample", rate=rate), np.stack([tone(440), tone(3000)])
    done = applied(step, sound)
    x = type_of(sound)
    y = step.on(x).infer(x)
    assert done.shape[1:] == y.shape == (rate, 1)
    assert y.details == Sound(rate)
    close(applied(step, sound, jit=True), done)
    close(applied(step, sound[:1], known=False), done[:1])
    inside = slice(rate // 50, -rate // 50)
    for one, hz in zip(done, (440, 3000), strict=True):
        np.testing.assert_allclose(one[inside], tone(hz, 1, rate)[inside], atol=1e-4)
    with pytest.raises(OpError, match="cannot make 100 Hz of 16000 Hz"):
        made("resample", rate=100).infer(SECOND)


def librosa_trim(sound: Array, db: float, window: int, hop: int) -> tuple[int, int]:
    """`librosa.effects.trim` 0.11 in NumPy: root mean squares of centred windows, in decibels of the largest, with a floor of 1e-5."""
    padded = np.pad(sound.astype(np.float64), ((window // 2, window // 2), (0, 0)))
    count = 1 + (len(padded) - window) // hop
    root = np.sqrt(np.stack([(padded[i * hop : i * hop + window] ** 2).mean(0) for i in range(count)]))
    level = 20 * np.log10(np.maximum(1e-5, root)) - 20 * np.log10(max(1e-5, root.max()))
    (loud,) = np.nonzero((level > -db).any(1))
    return hop * loud[0], min(len(sound), hop * (loud[-1] + 1))


@pytest.mark.parametrize("given", [{"db": 40, "window": 512, "hop": 128}, {"db": 20, "window": 300, "hop": 7}, {}], ids=str)
def test_trim_drops_silence(given: dict[str, Any]) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(1)
    sound = rng.normal(0, 1e-4, (20000, 2))
    sound[6000:9000] += tone(500, 3000 / RATE)
    sound = sound.astype(np.float32)
    step = made("trim", **given)
    trim = tf.function(lambda x: step.apply(x, tf.zeros([0], tf.float64)), input_signature=[tf.TensorSpec([None, 2])], autograph=False)
    start, end = librosa_trim(sound, step.db, step.window, step.hop)
    np.testing.assert_array_equal(trim(sound).numpy(), sound[start:end])
    assert 6000 - step.window - step.hop <= start <= 6000
    assert 9000 <= end <= 9000 + step.window + 2 * step.hop
    silence = np.zeros((3000, 2), np.float32)
    np.testing.assert_array_equal(trim(silence).numpy(), silence)
    for frames in (1, 100):
        np.testing.assert_array_equal(trim(sound[6010 : 6010 + frames]).numpy(), sound[6010 : 6010 + frames])


def test_odd_values_are_reported() -> None:
    odd = [
        ("gain", {"db": 80}, "multiplies samples by 1e"),
        ("random_gain", {"db": [-90, 0]}, "reaches -90"),
        ("random_clipping", {"db": 90}, "square wave"),
        ("random_shift", {"seconds": 2, "fill": "silence"}, "leaves nothing"),
        ("random_time_mask", {"share": 1}, "whole sound"),
        ("random_speed", {"factor": [0.3, 1]}, "reaches 0.3"),
        ("random_pitch", {"semitones": 20}, "octaves"),
        ("random_noise", {"snr_db": [-40, 0]}, "cannot be heard"),
        ("random_noise", {"snr_db": [0, 0.5]}, "not an amplitude"),
        ("random_noise", {"rms": [0.001, 0.01]}, "above full scale"),
        ("random_reverb", {"seconds": [1, 12]}, "cathedral"),
        ("trim", {"db": 3}, "not silence"),
    ]
    for op, given, said in odd:
        (lint,) = made(op, **given).lints(SECOND)
        assert said in f"{lint} {lint.help}", op


def test_images_and_spectra_are_refused() -> None:
    from pipegen.ops.families.sounds import SPECTRA
    from pipegen.ops.traits import IMAGE_224

    for op, given in STEPS:
        step: SoundTransform = made(op, **given)
        with pytest.raises(OpError, match="no rule for a feature of kind `image`"):
            step.infer(IMAGE_224)
        with pytest.raises(OpError, match="works on samples, and gets spectra"):
            step.infer(SPECTRA)
