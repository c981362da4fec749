"""`audio_dataset_from_directory` beside Keras': the same files, labels and samples."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipegen.compat import UnsupportedArgument, audio_dataset_from_directory

pytestmark = pytest.mark.tf


def write(path: Path, frames: int, rate: int = 8000, seed: int = 0, channels: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.random.default_rng(seed).integers(-32768, 32767, (frames, channels)).astype("<i2").tobytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of sounds of different lengths."""
    root = tmp_path_factory.mktemp("sounds")
    for number in range(17):
        write(root / f"class_{number % 3}" / f"{number:02d}.wav", 400 + 37 * number, seed=number)
    return root


def theirs(folder: Path, **given: Any) -> Any:
    keras = pytest.importorskip("keras")
    return keras.utils.audio_dataset_from_directory(folder, verbose=False, **given)


def flat(dataset: Any) -> list[tuple[Any, ...]]:
    import tensorflow as tf

    def numbers(part: Any) -> Any:
        return part.to_list() if isinstance(part, tf.RaggedTensor) else part.numpy()

    return [tuple(map(numbers, element if isinstance(element, tuple) else (element,))) for element in dataset]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("given", [
    {}, {"label_mode": "categorical"}, {"label_mode": None}, {"labels": None}, {"output_sequence_length": 500}, {"batch_size": 5},
    {"class_names": ["class_2", "class_0", "class_1"]}, {"labels": [i % 2 for i in range(17)]}, {"ragged": True, "batch_size": 4},
    {"batch_size": None}, {"batch_size": None, "output_sequence_length": 450}, {"output_sequence_length": 5000, "batch_size": 3},
], ids=str)  # fmt: skip
def test_in_order_all_is_as_in_keras(folder: Path, given: dict[str, Any]) -> None:
    ours = audio_dataset_from_directory(folder, shuffle=False, verbose=False, **given)
    other = theirs(folder, shuffle=False, **given)
    mine, due = flat(ours), flat(other)
    assert len(mine) == len(due) == len(ours)
    for one, two in zip(mine, due, strict=True):
        for a, b in zip(one, two, strict=True):
            if isinstance(a, list):
                assert a == b
            else:
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype
    assert ours.class_names == other.class_names


@pytest.mark.by_day(1)
@pytest.mark.parametrize("subset", ["training", "validation", "both"])
def test_subsets_have_the_files_of_keras(folder: Path, subset: str) -> None:
    given = {"validation_split": 0.3, "subset": subset, "seed": 5, "batch_size": 4}
    ours, other = audio_dataset_from_directory(folder, verbose=False, **given), theirs(folder, **given)
    for mine, due in zip(ours, other, strict=True) if subset == "both" else [(ours, other)]:
        sums = [sorted(round(float(np.abs(sound).sum()), 3) for batch, _ in flat(part) for sound in batch) for part in (mine, due)]
        assert sums[0] == sums[1]


def test_rates_are_resampled(folder: Path, tmp_path: Path) -> None:
    """Keras needs tensorflow-io for that, which does not load with TensorFlow 2.21."""
    faster = audio_dataset_from_directory(folder, sampling_rate=16000, shuffle=False, verbose=False, batch_size=1)
    plain = audio_dataset_from_directory(folder, shuffle=False, verbose=False, batch_size=1)
    for (one, _), (two, _) in zip(flat(faster), flat(plain), strict=True):
        assert one.shape == (1, 2 * two.shape[1], 1)
        assert np.abs(np.fft.rfft(one[0, :, 0])[one.shape[1] // 4 + 40 :]).mean() < 0.05 * np.abs(np.fft.rfft(two[0, :, 0])).mean()


def test_the_rate_is_that_of_most_files(tmp_path: Path) -> None:
    for number, rate in enumerate([8000, 16000, 16000]):
        write(tmp_path / "a" / f"{number}.wav", 800, rate)
    made = audio_dataset_from_directory(tmp_path, labels=None, shuffle=False, verbose=False)
    assert made.spec()["source"] == {"audio_folder": {"path": str(tmp_path), "rate": 16000, "channels": 1}}
    ((sounds,),) = flat(made)
    assert sounds.shape == (3, 1600, 1)


def test_a_map_runs_on_top_and_steps_are_added_to_the_spec(folder: Path) -> None:
    made = audio_dataset_from_directory(folder, shuffle=False, verbose=False, output_sequence_length=400)
    mapped = made.map(lambda x, y: (x * 2, y))
    np.testing.assert_allclose(flat(mapped)[0][0], 2 * flat(made)[0][0])


@pytest.mark.parametrize(("given", "said"), [
    ({"ragged": True, "output_sequence_length": 4}, "`ragged` keeps the length"), ({"sampling_rate": 0}, "whole number above 0"),
    ({"output_sequence_length": 1.5}, "whole number above 0"), ({"label_mode": "words"}, "label_mode"),
    ({"validation_split": 0.2}, "go together"),
], ids=str)  # fmt: skip
def test_wrong_arguments(folder: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        audio_dataset_from_directory(folder, **given)


def test_a_folder_without_sounds(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ValueError, match=r"no sounds found in .*; allowed formats: \.wav"):
        audio_dataset_from_directory(tmp_path, verbose=False)
    with pytest.raises(UnsupportedArgument, match="is an address"):
        audio_dataset_from_directory("https://example.org/sounds", verbose=False)
