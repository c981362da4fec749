"""Pipelines of sound to spectrograms: compiled and plain, in batches of any size, with caches, resumed, fitted and served."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spectral_oracles import librosa_mel, sound, whisper_log_mel

import pipegen

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
COUNT, FRAMES = 22, 8000
STEPS: list[Any] = [
    {"random_crop": {"seconds": 0.45}},
    {"mel_spectrogram": {"bands": 40}},
    "log",
    {"spec_augment": {"time": 0.2, "frequency": 0.1, "probability": 0.8}},
    {"standardize": {"statistics": "samplewise", "per": "band"}},
]


@cache
def sounds(channels: int = 1) -> Array:
    return np.stack([np.stack([sound(FRAMES, seed=i + 100 * c) for c in range(channels)], -1) for i in range(COUNT)])


def built(steps: list[Any], *, channels: int = 1, batch: int = 8, **runtime: Any) -> Any:
    audio = {"kind": "audio", "rate": 16000, "channels": channels}
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"audio": audio, "number": {"kind": "tensor"}}}},
        "splits": {"parts": {"train": 16, "validation": 6}},
        "transforms": steps,
        "batch": {"size": batch},
        "output": {"x": "audio", "y": "number"},
        "runtime": {"cache": "none", **runtime},
    }
    return pipegen.build(spec, data={"audio": sounds(channels), "number": np.arange(COUNT, dtype=np.float32)})


def by_number(dataset: Any) -> dict[int, Array]:
    """The examples by their number."""
    return {int(n): x for batch in dataset for x, n in zip(batch[0].numpy(), batch[1].numpy().ravel(), strict=True)}


def same(one: dict[int, Array], other: dict[int, Array], tolerance: float) -> None:
    assert one.keys() == other.keys()
    assert one
    for number, x in one.items():
        np.testing.assert_allclose(x, other[number], atol=tolerance)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("channels", [1, 2])
def test_compiled_plain_and_batches_of_another_size_are_equal_within_rounding(channels: int) -> None:
    pipe = built(STEPS, channels=channels)
    train, validation = by_number(pipe.dataset("train", epoch=1)), by_number(pipe.validation)
    assert train[next(iter(train))].shape == (43, 40, channels)
    for other in (built(STEPS, channels=channels, jit="never"), built(STEPS, channels=channels, batch=4)):
        same(train, by_number(other.dataset("train", epoch=1)), 2e-4)
        same(validation, by_number(other.validation), 2e-4)


def test_a_run_goes_on_where_it_stopped_to_the_bit_and_a_cache_changes_nothing() -> None:
    pipe = built(STEPS)
    whole = [batch[0].numpy() for batch in pipe.dataset("train", epoch=3)]
    for other in (pipe, built(STEPS)):
        assert np.array_equal(next(iter(other.dataset("train", epoch=3, step=1)))[0].numpy(), whole[1])
    cached = built(STEPS, cache="memory")
    for epoch in (2, 3):
        found = [batch[0].numpy() for batch in cached.dataset("train", epoch=epoch)]
    assert all(map(np.array_equal, whole, found))


def test_what_a_model_sees_is_what_the_libraries_give() -> None:
    found = by_number(built([{"mel_spectrogram": {"preset": "librosa"}}]).validation)
    for number, x in found.items():
        expected = librosa_mel(sounds()[number, :, 0], 16000)
        np.testing.assert_allclose(x[..., 0], expected, atol=3e-6 * expected.max())
    found = by_number(built([{"mel_spectrogram": {"preset": "whisper"}}]).validation)
    for number, x in found.items():
        np.testing.assert_allclose(x[..., 0], whisper_log_mel(sounds()[number, :, 0]), atol=2e-5)


@pytest.mark.parametrize("per", ["band", "channel"])
def test_moments_of_the_training_split(per: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mel: list[Any] = [{"mel_spectrogram": {"bands": 40}}, "log"]
    plain = by_number(built(mel, channels=2).dataset("train"))
    values = np.stack(list(plain.values())).astype(np.float64)
    axes = (0, 1) if per == "band" else (0, 1, 2)
    pipe = built([*mel, {"standardize": {"statistics": "featurewise", "per": per}}], channels=2)
    found = by_number(pipe.dataset("train"))
    for number, x in found.items():
        np.testing.assert_allclose(x, (plain[number] - values.mean(axes)) / (values.std(axes) + 1e-6), atol=2e-4)
    told = pipe.explain()
    assert ("(80)" in told) == (per == "band")


@pytest.mark.parametrize("per", [None, "channel"])
@pytest.mark.parametrize("jit", ["never", "auto"])
def test_samples_by_their_own_moments(per: str | None, jit: str) -> None:
    step = {"standardize": {"statistics": "samplewise"} | ({"per": per} if per else {})}
    found = by_number(built([step], channels=2, jit=jit).validation)
    axes = (0, 1) if per is None else (0,)
    for number, x in found.items():
        own = sounds(2)[number].astype(np.float64)
        np.testing.assert_allclose(x, (own - own.mean(axes)) / (own.std(axes) + 1e-6), atol=1e-4)


def test_arithmetic_on_samples() -> None:
    steps = [{"rescale": {"scale": 2.0, "offset": 0.5}}, {"normalize": {"mean": [0.5, 0.25], "std": 4}}, {"cast": {"dtype": "float16"}}]
    pipe = built([*steps, {"cast": {"dtype": "float32"}}], channels=2)
    for number, x in by_number(pipe.validation).items():
        np.testing.assert_allclose(x, (sounds(2)[number] * 2 + 0.5 - [0.5, 0.25]) / 4, atol=1e-3)


def test_a_layer_of_the_model_computes_the_spectra() -> None:
    fitted = {"standardize": {"statistics": "featurewise", "per": "band"}}
    pipe = built([*STEPS[:3], fitted], channels=2)
    expected, given = by_number(pipe.validation), by_number(pipe.dataset("validation", stages="element"))
    assert next(iter(given.values())).shape == (7200, 2)
    layer = pipe.layer()
    again = type(layer).from_config(layer.get_config())
    for own in (layer, again):
        same({number: own(x[None]).numpy()[0] for number, x in given.items()}, expected, 2e-4)


def test_a_request_goes_through_the_same_steps() -> None:
    pipe = built(STEPS, channels=2)
    expected = by_number(pipe.validation)
    given = sounds(2)[list(expected)]
    for jit in (False, True):  # in a request, sounds are decoded as images are
        found = pipe.serving_fn(takes="images", jit=jit)(given).numpy()
        for x, number in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, expected[number], atol=2e-4)
