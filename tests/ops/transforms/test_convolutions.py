"""Runs of filters and reverberation: one convolution of the sound that enters, in NumPy and SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planning import built
from sounds import RATE, Array, applied, chatter, type_of
from test_sound_files import made, stored, write

import pipegen
from pipegen.ops.families.convolutions import Convolution, ConvolutionTransform
from pipegen.ops.stage import StepRef

pytestmark = pytest.mark.tf

HIGH, BAND = made("high_pass", hz=80), made("random_band_pass", low_hz=[50, 500], high_hz=[2000, 7000], order=2)
ROOM = made("random_reverb", seconds=[0.02, 0.06])


def run_of(steps: list[ConvolutionTransform], sounds: Array) -> Convolution:
    """The stage of a run of steps, each gated if it has a probability below 1."""
    refs: list[StepRef[Any]] = []
    for step in steps:
        start = refs[-1].end if refs else 0
        gated = step.probability != 1
        refs.append(StepRef(step.on(type_of(sounds)), f"step{len(refs)}", ("transforms", len(refs)), start, gated))
    return Convolution("sound", tuple(refs))


def convolved(stage: Convolution, sounds: Array, u: Array, *, jit: bool = False, known: bool = True) -> Array:
    """A stage on a batch, as kernels run it, with the frames statically `known` or not."""
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_stage

    def whole(x: tf.Tensor, draws: tf.Tensor) -> tf.Tensor:
        features = {"sound": x, "@draws": draws}
        apply_stage(stage, features)
        return features["sound"]

    shape = sounds.shape if known else (len(sounds) if len(sounds) == 1 else None, None, sounds.shape[2])
    signature = [tf.TensorSpec(shape, sounds.dtype), tf.TensorSpec([shape[0], u.shape[1]], tf.float64)]
    return tf.function(whole, jit_compile=jit, autograph=False, input_signature=signature)(tf.constant(sounds), tf.constant(u)).numpy()


def draws_of(stage: Convolution, n: int, acting: Array | None = None) -> Array:
    """Draws by which the gated steps act as `acting` says, bool `(n, steps)`; and the epoch, 0."""
    u = np.random.default_rng(5).random((n, stage.refs[-1].end + 1))
    u[:, -1] = 0
    for number, ref in enumerate(stage.refs):
        if ref.gated and acting is not None:
            u[:, ref.end - 1] = np.where(acting[:, number], 0.0, 0.999)
    return u


def impulse_of(step: ConvolutionTransform, u: Array, margin: int, channels: int) -> Array:
    """What a step makes of an impulse `margin` frames behind the start, by itself: float64 `(2 · margin, channels)`."""
    click = np.zeros((1, 2 * margin, channels), np.float32)
    click[0, margin] = 1
    return applied(step, click, u[None]).astype(np.float64)[0]


def by_impulses(stage: Convolution, sounds: Array, u: Array, margin: int = 4096) -> Array:
    """The definition, in float64: each sound with silence around it, convolved with the response of one step after the other; cut to its
    length at the end."""
    from scipy import signal

    done = []
    for sound, row in zip(sounds.astype(np.float64), u, strict=True):
        before = margin * len(stage.refs)
        now = np.pad(sound, ((before, before), (0, 0)))
        for ref in stage.refs:
            response = impulse_of(ref.step, row[ref.start : ref.start + ref.step.num_draws()], margin, sound.shape[1])
            now = signal.fftconvolve(now, response, axes=0)[margin : margin + len(now)]
        done.append(now[before : before + len(sound)])
    return np.stack(done)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    "steps", [[HIGH, BAND], [BAND, ROOM], [ROOM, HIGH, BAND], [ROOM, ROOM]], ids=["filters", "a room last", "three", "rooms"]
)
def test_a_run_is_the_convolution_with_one_response_after_the_other(steps: list[ConvolutionTransform], channels: int) -> None:
    sounds = chatter(2, 1500, channels)
    stage = run_of(steps, sounds)
    u = draws_of(stage, 2)
    done = convolved(stage, sounds, u)
    wanted = by_impulses(stage, sounds, u)
    np.testing.assert_allclose(done, wanted, atol=3e-5)  # filters settle to 1e-4
    assert np.abs(convolved(stage, sounds, u, jit=True) - done).max() < 1e-6
    for i in range(2):
        assert np.abs(convolved(stage, sounds[i : i + 1], u[i : i + 1], known=False) - done[i]).max() < 1e-6


def test_the_transfer_functions_are_those_of_scipy() -> None:
    """To the rounding of float32, with the same number of frequencies."""
    from scipy import signal

    steps = [made("high_pass", hz=120, order=3), made("band_pass", low_hz=300, high_hz=3400), made("low_pass", hz=1000, order=1)]
    sounds = chatter(2, 4000)
    done = convolved(run_of(steps, sounds), sounds, np.zeros((2, 1)))
    angle = 2 * np.pi * np.fft.rfftfreq(8192, 1 / RATE)
    cuts = (("highpass", 120, 3), ("highpass", 300, 4), ("lowpass", 3400, 4), ("lowpass", 1000, 1))
    response = np.prod([np.abs(signal.freqs(*signal.butter(o, 2 * np.pi * hz, kind, analog=True), angle)[1]) for kind, hz, o in cuts], 0)
    wanted = np.fft.irfft(np.fft.rfft(sounds.astype(np.float64), 8192, 1) * response[:, None], axis=1)[:, :4000]
    np.testing.assert_allclose(done, wanted, atol=1e-6)


def test_one_step_alone_is_that_step() -> None:
    sounds = chatter(3, 1500)
    for step in (HIGH, BAND, ROOM):
        stage = run_of([step], sounds)
        u = draws_of(stage, 3)
        np.testing.assert_array_equal(convolved(stage, sounds, u), applied(step, sounds, u[:, : step.num_draws()]))


def test_a_step_that_acts_on_some_examples_leaves_the_others() -> None:
    for step in (BAND, ROOM):
        sounds = chatter(4, 1500, 2)
        stage = run_of([step.model_copy(update={"probability": 0.5})], sounds)
        acting = np.array([[True], [False], [True], [False]])
        u = draws_of(stage, 4, acting)
        done = convolved(stage, sounds, u)
        always = convolved(run_of([step], sounds), sounds, u[:, [*range(step.num_draws()), -1]])
        np.testing.assert_array_equal(done, np.where(acting[..., None], always, sounds))


def test_responses_of_files_are_a_part_of_a_run(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    response = rng.normal(0, 0.05, (400, 2)) * np.exp(-np.arange(400) / 60)[:, None]
    response[0] = 0.9
    write(tmp_path / "rooms" / "hall.wav", response)
    files = made("random_reverb", files=str(tmp_path / "rooms"))
    sounds = chatter(2, 1500, 2)
    stage = run_of([BAND, files], sounds)
    u = draws_of(stage, 2)
    done = convolved(stage, sounds, u)
    np.testing.assert_allclose(done, by_impulses(stage, sounds, u), atol=3e-5)
    own = stored(tmp_path / "rooms" / "hall.wav")
    assert (own[:, 0] != own[:, 1]).any(), "each channel has its own response"
    assert np.abs(convolved(stage, sounds[:1], u[:1], known=False) - done[0]).max() < 1e-6


def stages_of(*steps: Any) -> list[str]:
    source = {"arrays": {"features": {"sound": {"kind": "audio", "rate": RATE}}}}
    plan = built(source=source, transforms=list(steps), output={"x": "sound", "y": None})
    return [type(stage).__name__ for stage in plan.stages() if stage.feature == "sound"]


CUT = {"crop_or_pad": {"seconds": 0.1}}


def test_neighbours_are_one_stage() -> None:
    low, high, room = (
        {"low_pass": {"hz": 4000}},
        {"random_high_pass": {"hz": [50, 80]}},
        {"random_reverb": {"seconds": [0.1, 0.2]}},
    )
    assert stages_of(CUT, low, high, room) == ["Apply", "Convolution"]
    assert stages_of(low, CUT, high, room) == ["Convolution", "Apply", "Convolution"]
    assert stages_of(CUT, low, "polarity", room) == ["Apply", "Convolution", "Neighbourhood", "Convolution"]
    assert stages_of(CUT, low, {"random_gain": {"db": 3, "when": "eval"}}, room) == ["Apply", "Convolution"]
    assert stages_of(CUT, {"one_of": {"steps": [low, room]}}, high) == ["Apply", *["Convolution"] * 3]
    assert stages_of(CUT, low, {"random_low_pass": {"hz": [900, 3000], "probability": 0.5}}, room, high) == ["Apply", *["Convolution"] * 3]


def batches(steps: list[Any], **more: Any) -> Array:
    source = {"arrays": {"features": {"sound": {"kind": "audio", "rate": RATE}}}}
    spec = {"pipegen": 1, "source": source, "transforms": steps, "batch": {"size": 8}, "output": {"x": "sound", "y": "sound"}, **more}
    pipe = pipegen.build(spec, data={"sound": chatter(16, 1600, 1)})
    return np.concatenate([np.asarray(x) for x, _ in pipe.dataset("train", epoch=0)])


RECIPE = [
    {"random_reverb": {"seconds": [0.01, 0.05], "probability": {"linear": {"from": 0.3, "to": 0, "epochs": [0, 9]}}}},
    {"one_of": {"steps": [{"low_pass": {"hz": 2000}}, {"random_high_pass": {"hz": [100, 400]}}]}},
    {"random_band_pass": {"low_hz": [50, 200], "high_hz": [2000, 4000], "probability": 0.5}},
    {"random_low_pass": {"hz": [1000, 6000]}},
    {"high_pass": {"hz": 100}},
]


@pytest.mark.nightly
@pytest.mark.parametrize("steps", [RECIPE, RECIPE[:3:2]], ids=["always", "sometimes"])
def test_a_pipeline_gives_the_same_numbers_anywhere(steps: list[Any]) -> None:
    ways: list[dict[str, Any]] = [{"runtime": {"jit": "never"}}, {"batch": {"size": 4}}, {"runtime": {"cache": "none", "jit": "always"}}]
    whole = batches(steps)
    for more in ways:
        assert np.abs(batches(steps, **more) - whole).max() < 1e-6
    one_by_one = batches([{"trim": {"db": 200}}, *steps, CUT])
    assert np.abs(one_by_one - whole).max() < 1e-6


def test_samples_that_are_rounded_later_are_computed_exactly() -> None:
    pytest.importorskip("tensorflow", "2.18", reason="XLA had no Fourier transforms of float64")
    bytes_: list[Any] = [{"loudness": {"peak": 0}}, {"rescale": {"to": [0, 255]}}, {"cast": {"dtype": "uint8"}}]
    steps = [{"low_pass": {"hz": 2000}}, {"random_reverb": {"seconds": [0.01, 0.05]}}, *bytes_]
    whole = batches(steps)
    assert len(np.unique(whole)) > 50, "bytes, as float32"
    for more in ({"runtime": {"jit": "never"}}, {"batch": {"size": 4}}):
        np.testing.assert_array_equal(batches(steps, **more), whole)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_floats_are_convolved(dtype: str) -> None:
    steps = [{"low_pass": {"hz": 2000}}, {"random_reverb": {"seconds": [0.01, 0.05]}}]
    assert np.abs(batches([{"cast": {"dtype": dtype}}, *steps]) - batches(steps)).max() < {"float16": 1e-3, "bfloat16": 1e-2}[dtype]
