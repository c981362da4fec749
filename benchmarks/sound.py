"""The command: `python -m benchmarks.sound [FOLDER]`. WAV files to batches of log-mel spectra, beside what people use for it.

Every system reads a second of each file of 16 kHz from a random place on, makes 64 mel bands from windows of 400 samples every 160 by an
FFT of 512, takes the logarithm, and gives batches of 64 by 98 by 64. All have a turn in each repeat; ratios are taken within it, of
processor time. Without a folder the files are made: 1,000 of two to four seconds in ten classes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

import numpy as np
from rich.console import Console
from rich.table import Table

import pipegen
from benchmarks.measure import ratio, rested
from benchmarks.processes import processor_s
from benchmarks.systems.base import cores
from benchmarks.systems.torch_loader import _epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RATE, SECOND, WINDOW, HOP, FFT, BANDS, LEAST = 16000, 16000, 400, 160, 512, 64, 1e-6
TARGETS = {"tf.data by hand": 1.2, "DataLoader + torch.stft": 1.5, "DataLoader + librosa": 1.5}
"""The least ratio to each peer that pipegen is meant to reach, in processor time."""


def write_sounds(folder: Path, count: int = 1000, classes: int = 10) -> None:
    """Writes WAV files of 16 bits in a folder for each class; seeded."""
    import wave

    rng = np.random.default_rng(0)
    for number in range(count):
        own = folder / f"class_{number % classes:02d}"
        own.mkdir(parents=True, exist_ok=True)
        length = int(rng.integers(2 * RATE, 4 * RATE))
        time_ = np.arange(length) / RATE
        tones = sum(np.sin(2 * np.pi * pitch * time_) for pitch in rng.uniform(80, 4000, 5)) / 8 + rng.normal(0, 0.05, length)
        with wave.open(str(own / f"{number:05d}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes((tones.clip(-1, 1) * 32767).astype("<i2").tobytes())


def mel_matrix() -> Any:
    """The weights of the bands, float32 `(bins, bands)`: triangles on the HTK scale from 0 Hz to half the rate."""
    edges = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2)
    hertz = 700 * (10 ** (edges / 2595) - 1)
    bins = np.linspace(0, RATE / 2, FFT // 2 + 1)[:, None]
    rising = (bins - hertz[:-2]) / (hertz[1:-1] - hertz[:-2])
    falling = (hertz[2:] - bins) / (hertz[2:] - hertz[1:-1])
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def window() -> Any:
    """A periodic Hann window, float32."""
    return np.hanning(WINDOW + 1)[:-1].astype(np.float32)


def spec_of(folder: Path, batch: int) -> dict[str, Any]:
    """The spec of the recipe."""
    mel = {"bands": BANDS, "window_ms": 25, "hop_ms": 10, "fft": FFT, "scale": "htk", "norm": "none", "center": False}
    return {
        "pipegen": 1,
        "source": {"audio_folder": {"path": str(folder), "rate": RATE}},
        "transforms": [{"random_crop": {"seconds": 1.0}}, {"mel_spectrogram": mel}, {"log": {"floor": LEAST}}],
        "batch": {"size": batch},
        "output": {"x": "audio"},
        "runtime": {"cache": "none"},
    }


def of_pipegen(folder: Path, batch: int) -> Iterator[Any]:
    """The training split, epoch after epoch."""
    return iter(pipegen.build(spec_of(folder, batch)).train.repeat())


def of_tf_data(folder: Path, batch: int) -> Iterator[Any]:
    """As TensorFlow's guide on simple audio has it, with all of its calls in parallel: `decode_wav`, `tf.signal.stft`, a product."""
    import tensorflow as tf

    files = sorted(map(str, folder.rglob("*.wav")))
    names = sorted({Path(file).parent.name for file in files})
    labels = [names.index(Path(file).parent.name) for file in files]
    mel, hann = tf.constant(mel_matrix()), tf.constant(window())

    def read(file: Any, label: Any) -> Any:
        samples = tf.audio.decode_wav(tf.io.read_file(file), desired_channels=1)[0][:, 0]
        start = tf.random.uniform([], 0, tf.shape(samples)[0] - SECOND + 1, tf.int32)
        return samples[start : start + SECOND], label

    def spectra(samples: Any, label: Any) -> Any:
        found = tf.signal.stft(samples, WINDOW, HOP, FFT, window_fn=lambda *_args, **_named: hann)
        power = tf.math.real(found) ** 2 + tf.math.imag(found) ** 2
        return tf.math.log(tf.maximum(tf.matmul(power, mel), LEAST))[..., None], label

    made = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files), reshuffle_each_iteration=True).repeat()
    made = made.map(read, tf.data.AUTOTUNE).batch(batch, drop_remainder=True, num_parallel_calls=tf.data.AUTOTUNE)
    return iter(made.map(spectra, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))


class Sounds:
    """A map-style dataset: second `i` of the files, as spectra of PyTorch or librosa."""

    def __init__(self, folder: Path, by: str) -> None:
        self.files, self.by = sorted(folder.rglob("*.wav")), by
        self.names = sorted({file.parent.name for file in self.files})

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        import soundfile

        frames = soundfile.info(self.files[i]).frames
        start = int(np.random.randint(0, frames - SECOND + 1))
        samples = soundfile.read(self.files[i], SECOND, start, dtype="float32")[0]
        return getattr(self, f"_{self.by}")(samples), self.names.index(self.files[i].parent.name)

    def _torch(self, samples: Any) -> Any:
        import torch

        if not hasattr(self, "mel"):
            torch.set_num_threads(1)
            self.mel, self.hann = torch.from_numpy(mel_matrix()), torch.from_numpy(window())
        found = torch.stft(torch.from_numpy(samples), FFT, HOP, WINDOW, self.hann, center=False, return_complex=True)
        return torch.log(torch.clamp(found.abs().square().T @ self.mel, min=LEAST))[..., None]

    def _librosa(self, samples: Any) -> Any:
        import librosa

        found = librosa.feature.melspectrogram(
            y=samples, sr=RATE, n_fft=FFT, win_length=WINDOW, hop_length=HOP, n_mels=BANDS, center=False, htk=True, norm=None
        )
        return np.log(np.maximum(found, LEAST)).T[..., None]


def of_loader(by: str) -> Callable[[Path, int], Iterator[Any]]:
    """Batches of PyTorch's `DataLoader`, with a process for each core."""

    def start(folder: Path, batch: int) -> Iterator[Any]:
        import torch.utils.data

        __import__(by)
        return _epochs(
            torch.utils.data.DataLoader(
                Sounds(folder, by),
                batch_size=batch,
                shuffle=True,
                drop_last=True,
                num_workers=cores(),
                persistent_workers=True,
                multiprocessing_context="forkserver",  # a fork of a process that runs TensorFlow may hang
            )
        )

    return start


SYSTEMS: dict[str, Callable[[Path, int], Iterator[Any]]] = {
    "pipegen": of_pipegen,
    "tf.data by hand": of_tf_data,
    "DataLoader + torch.stft": of_loader("torch"),
    "DataLoader + librosa": of_loader("librosa"),
}


def turn(batches: Iterator[Any], batch: int, seconds: float) -> tuple[float, float | None]:
    """Sounds a second, and milliseconds of processor time for each, over whole batches after a second of warming up."""
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        next(batches)
    before, start, count = processor_s(os.getpid()), time.perf_counter(), 0
    while (now := time.perf_counter()) < start + seconds:
        next(batches)
        count += 1
    after = processor_s(os.getpid())
    used = None if before is None or after is None else 1e3 * (after - before) / (count * batch)
    return count * batch / (now - start), used


def main(argv: list[str] | None = None) -> None:
    """Print rates, processor times and ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sound", description="Measure WAV files to log-mel spectra.")
    parser.add_argument("folder", type=Path, nargs="?", help="a folder of WAV files of 16 kHz and at least a second, in class folders")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args(argv)
    rates: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    times: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    console = Console()
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        if given.folder is None:
            write_sounds(folder)
        for number in range(given.repeats):
            for name in (list(SYSTEMS), list(reversed(SYSTEMS)))[number % 2]:
                try:
                    batches = SYSTEMS[name](folder.resolve(), given.batch)
                except ImportError as error:
                    console.print(f"{name}: left out, since it does not import: {error}")
                    continue
                found, used = turn(batches, given.batch, given.seconds)
                rates[name].append(found)
                times[name] += [used] if used is not None else []
                del batches
                rested()
    table = Table("system", "sounds/s", "ms of processor time", "its time / pipegen's")
    for name in SYSTEMS:
        of = ratio(times[name], times["pipegen"])
        each = (f"{statistics.median(own):,.{digits}f}" if own else "" for own, digits in ((rates[name], 0), (times[name], 3)))
        table.add_row(name, *each, f"{of:.2f}" if of and name != "pipegen" else "")
    console.print(table)
    for name, target in TARGETS.items():
        of = ratio(times[name], times["pipegen"])
        if of is not None:
            console.print(f"target beside {name}: {target} ×, {'reached' if of >= target else 'not reached'}")


if __name__ == "__main__":
    main()
