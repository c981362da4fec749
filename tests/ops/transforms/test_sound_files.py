"""Steps that draw sound files: noise and the responses of rooms; and sound in whole pipelines."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sounds import RATE, Array, applied, by_phases, chatter, draws, tone

import pipegen
from pipegen.errors import OpError, SpecError
from pipegen.ops.families.sounds import SECOND
from pipegen.ops.registry import transforms

pytestmark = pytest.mark.tf


def write(path: Path, sound: Array, rate: int = RATE) -> None:
    """Writes a WAV of 16 bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(sound.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.rint(sound * 32768).clip(-32768, 32767).astype("<i2").tobytes())


@pytest.fixture
def noises(tmp_path: Path) -> Path:
    """A long noise, a short one, one of two channels, and one of another rate."""
    folder = tmp_path / "noises"
    rng = np.random.default_rng(4)
    write(folder / "long.wav", rng.uniform(-0.5, 0.5, (9000, 1)))
    write(folder / "short.wav", rng.uniform(-0.5, 0.5, (700, 1)))
    write(folder / "stereo.wav", rng.uniform(-0.5, 0.5, (5000, 2)))
    write(folder / "slow.wav", tone(440, 1, 8000), 8000)
    (folder / "notes.txt").write_text("no sound")
    return folder


def made(op: str, **given: Any) -> Any:
    return transforms()[op].model_validate(given)


def stored(path: Path) -> Array:
    with wave.open(str(path)) as file:
        values = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
    return values.astype(np.float64) / 32768


@pytest.mark.nightly
@pytest.mark.parametrize("channels", [1, 2])
def test_noise_of_files_is_a_part_of_one(noises: Path, channels: int) -> None:
    step, sounds = made("random_noise", snr_db=[3, 12], files=str(noises)), chatter(40, 2000, channels)
    u = draws(step, 40)
    done = applied(step, sounds, u)
    for other in (by_phases(step, sounds, u), np.concatenate([applied(step, sounds[:1], u[:1], known=False), done[1:]])):
        assert np.abs(other - done).max() < 1e-6
    added = done.astype(np.float64) - sounds
    power = [np.mean(part**2, (1, 2)) for part in (sounds.astype(np.float64), added)]
    np.testing.assert_allclose(10 * np.log10(power[0] / power[1]), 3 + 9 * u[:, 0], atol=1e-3)
    paths = step.paths()
    kept: dict[str, list[int]] = {path.stem: [] for path in paths}
    for one, row in zip(added, u, strict=True):
        path = paths[int(row[1] * 4)]
        if path.stem == "slow":
            spectrum = np.abs(np.fft.rfft(one[:, 0] * np.hanning(2000)))
            assert np.argmax(spectrum) * RATE / 2000 == pytest.approx(440, abs=8)
            continue
        own = stored(path)
        own = own if own.shape[1] in (1, channels) else own.mean(1, keepdims=True)
        start = int(row[2] * (len(own) - 2000 + 1 if len(own) > 2000 else len(own)))
        wanted = np.broadcast_to(own[(start + np.arange(2000)) % len(own)], one.shape)
        np.testing.assert_allclose(one / np.sqrt(np.mean(one**2)), wanted / np.sqrt(np.mean(wanted**2)), atol=2e-4)
        kept[path.stem].append(start)
    assert all(len(set(starts)) > 1 for stem, starts in kept.items() if stem != "slow")


def test_responses_of_files_convolve(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    response = rng.normal(0, 0.05, (400, 1)) * np.exp(-np.arange(400) / 60)[:, None]
    response[:30] = 0
    response[30] = 0.9
    write(tmp_path / "rooms" / "hall.wav", response)
    step, sounds = made("random_reverb", files=str(tmp_path / "rooms" / "*.wav")), chatter(2, 1500)
    own = stored(tmp_path / "rooms" / "hall.wav")[30:, 0]
    own = own / np.sqrt((own**2).sum())
    done = applied(step, sounds)
    assert np.abs(by_phases(step, sounds, draws(step, 2)) - done).max() < 1e-6
    for one, sound in zip(done, sounds, strict=True):
        for channel in range(2):
            np.testing.assert_allclose(one[:, channel], np.convolve(sound[:, channel].astype(np.float64), own)[:1500], atol=1e-6)


def test_the_content_of_files_is_a_part_of_the_meaning(noises: Path) -> None:
    step = made("random_noise", snr_db=[0, 10], files=str(noises))
    before = step.meaning()
    (noises / "long.wav").rename(noises / "renamed.wav")
    assert step.meaning() == before
    write(noises / "renamed.wav", tone(100))
    assert step.meaning() != before


def spec_of(steps: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {"arrays": {"features": {"sound": {"kind": "audio", "rate": RATE}, "label": {"kind": "label", "classes": 3}}}},
        "transforms": steps,
        "batch": {"size": 8},
        "output": {"x": "sound", "encode": {"label": "one_hot"}},
        "seed": 3,
        **more,
    }


def batches(steps: list[Any], n: int = 16, **more: Any) -> list[Any]:
    data = {"sound": chatter(n, 1600, 1), "label": np.arange(n) % 3}
    pipe = pipegen.build(spec_of(steps, **more), data=data)
    return [tuple(np.asarray(part) for part in batch) for batch in pipe.dataset("train", epoch=0)]


RECIPE = [
    {"random_gain": {"db": 6}},
    "random_polarity",
    {"random_shift": {"share": 0.2, "probability": 0.5}},
    {"random_noise": {"snr_db": [5, 20], "color": "pink"}},
    {"random_band_pass": {"low_hz": [50, 200], "high_hz": [2000, 4000], "probability": 0.5}},
    {"random_speed": {"factor": 0.1, "probability": 0.5}},
    {"random_pitch": {"semitones": 2, "probability": 0.5}},
]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("more", [{"runtime": {"jit": "never"}}, {"batch": {"size": 4}}], ids=["plain", "batches"])
def test_a_pipeline_gives_the_same_numbers_anywhere(more: dict[str, Any]) -> None:
    whole, other = (np.concatenate([x for x, _ in batches(RECIPE, **own)]) for own in ({}, more))
    assert whole.shape == (16, 1600, 1)
    assert np.abs(whole - other).max() < 1e-6


def test_sounds_of_other_lengths_are_changed_one_by_one() -> None:
    steps = [*RECIPE, {"trim": {"db": 30, "window": 64, "hop": 16}}, {"crop_or_pad": {"seconds": 0.05}}]
    (x, _), *_ = batches(steps)
    assert x.shape == (8, 800, 1)
    assert np.isfinite(x).all()


def test_mixup_blends_sounds_and_labels() -> None:
    plain = {tuple(np.round(x[:5, 0], 6)): (x, y) for part in batches([], shuffle="none") for x, y in zip(*part, strict=True)}
    assert len(plain) == 16
    for x, y in batches([{"mixup": {"alpha": 1}}], shuffle="none"):
        assert x.shape == (8, 1600, 1)
        np.testing.assert_allclose(y.sum(1), 1, atol=1e-6)
    sounds, labels = (np.concatenate(parts) for parts in zip(*batches([], shuffle="none"), strict=True))
    mixed, soft = (np.concatenate(parts) for parts in zip(*batches([{"mixup": {"alpha": 1}}], shuffle="none"), strict=True))
    for i in range(16):
        group = range(i // 8 * 8, i // 8 * 8 + 8)
        found = []
        for j in group:
            step = sounds[i] - sounds[j]
            share = float(np.vdot(step, mixed[i] - sounds[j]) / np.vdot(step, step)) if i != j else 1.0
            if np.abs(share * sounds[i] + (1 - share) * sounds[j] - mixed[i]).max() < 1e-5:
                found.append(share * labels[i] + (1 - share) * labels[j])
        assert any(np.abs(label - soft[i]).max() < 1e-4 for label in found)


def test_what_is_wrong_with_files_is_said(tmp_path: Path, noises: Path) -> None:
    step = made("random_noise", snr_db=[0, 10], files=str(tmp_path / "nowhere"))
    with pytest.raises(OpError, match="finds no sound file at") as found:
        step.require_files()
    assert found.value.code == "PG401"
    assert "noises/*.wav" in str(found.value.help)
    (noises / "cut.wav").write_bytes((noises / "long.wav").read_bytes()[:400])
    with pytest.raises(OpError, match=r"the file `cut.wav` of `random_noise` is cut short"):
        made("random_noise", snr_db=[0, 10], files=str(noises)).require_files()
    with pytest.raises(OpError, match=r"the file `notes.txt` of `random_reverb` is not a sound file"):
        made("random_reverb", files=str(noises / "notes.txt")).require_files()
    with pytest.raises(SpecError, match="PG401"):
        batches([{"random_noise": {"snr_db": [0, 10], "files": str(tmp_path / "nowhere")}}])
    with pytest.raises(ValidationError, match="`color` is for noise that is made"):
        made("random_noise", snr_db=[0, 10], files="noises/", color="pink")
    with pytest.raises(ValidationError, match="give either `seconds`"):
        made("random_reverb")
    with pytest.raises(ValidationError, match="give either `seconds`"):
        made("random_reverb", seconds=[0.1, 0.2], files="rooms/")
    assert made("random_noise", snr_db=[0, 10], files="noises/").infer(SECOND).interval is None


@pytest.mark.nightly
def test_files_of_another_rate_in_a_compiled_kernel(noises: Path) -> None:
    """Filters are made once in a process while files are read once: one inside the other. A pipeline once waited for ever here."""
    step = {"random_noise": {"snr_db": [3, 12], "files": str(noises)}}
    source = {"arrays": {"features": {"sound": {"kind": "audio", "rate": RATE}}}}
    spec = {"pipegen": 1, "source": source, "transforms": [step], "output": {"x": "sound", "y": "sound"}, "batch": {"size": 4}}
    data = {"sound": chatter(8, 4000, 1).astype(np.float32)}
    plain, compiled = (pipegen.build(spec, data=data, runtime={"jit": jit}) for jit in ("never", "always"))
    for one, other in zip(plain.train, compiled.train, strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=2e-6)


@pytest.mark.parametrize(
    "source", [{"audio_folder": {"path": "x", "rate": 8000}}, {"arrays": {"features": {"audio": {"kind": "audio", "rate": 8000}}}}]
)
def test_samples_are_not_cut_to_bytes(source: Any) -> None:
    """The range of files and arrays is not known without them; bytes would leave 0 and 1."""
    steps = [{"crop_or_pad": {"seconds": 1}}, {"cast": {"dtype": "uint8"}}]
    with pytest.raises(SpecError, match="keeps whole numbers from 0 to 255"):
        pipegen.load({"pipegen": 1, "source": source, "transforms": steps, "output": {"x": "audio", "y": None}})
