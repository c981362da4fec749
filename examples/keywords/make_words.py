"""Write spoken words to learn keywords from, and noises to mix with them: WAV files, a folder for each word.

`espeak-ng` speaks each word with many voices, speeds and pitches; the voices of the validation words are not among those of the training
words. The noises are hum, hiss and babble: many words at once.
"""

from __future__ import annotations

import shutil
import subprocess
import wave
from pathlib import Path

import numpy as np

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
VOICES = {
    "train": ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-gbclan", "en-us+f2", "en-gb+f4", "en-us+m3", "en-gb+m7", "en-gb-x-rp+f1"),
    "validation": ("en-029", "en-gb-x-gbcwmd+f3", "en-us+m5"),
}
"""The voices of each split, of espeak-ng."""
RATE = 22050
"""What espeak-ng writes, in Hz."""


def speak(word: str, voice: str, speed: int, pitch: int, to: Path) -> None:
    """Speaks a word into a WAV file: `speed` in words a minute, `pitch` from 0 to 99."""
    program = shutil.which("espeak-ng")
    if program is None:
        raise SystemExit("this example needs the program espeak-ng; on Debian and Ubuntu: apt install espeak-ng")
    subprocess.run([program, "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", str(to), word], check=True, timeout=30)


def read(path: Path) -> np.ndarray:
    """Samples of a WAV file of 16 bits, float64 from -1 to 1."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


def write(path: Path, samples: np.ndarray) -> None:
    """Writes samples as a WAV file of 16 bits, as loud as they can be."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples / np.abs(samples).max() * 32000).astype("<i2").tobytes())


def write_words(folder: Path, each: int = 4) -> None:
    """Writes `words/SPLIT/WORD/*.wav` and `noises/*.wav` below a folder: `each` recordings of a word by each voice."""
    rng = np.random.default_rng(0)
    for split, voices in VOICES.items():
        for word in WORDS:
            own = folder / "words" / split / word
            own.mkdir(parents=True, exist_ok=True)
            for voice in voices:
                for number in range(each):
                    speak(word, voice, int(rng.integers(120, 220)), int(rng.integers(20, 80)), own / f"{voice}-{number}.wav")
    noises = folder / "noises"
    noises.mkdir(exist_ok=True)
    length, time = 4 * RATE, np.arange(4 * RATE) / RATE
    write(noises / "hiss.wav", rng.normal(size=length))
    write(noises / "hum.wav", sum(np.sin(2 * np.pi * 50 * k * time) / k for k in range(1, 12)) + 0.05 * rng.normal(size=length))
    said = [read(path) for path in sorted((folder / "words" / "train").rglob("*.wav"))]
    babble = np.zeros(length)
    for number in rng.permutation(len(said))[:60]:
        start = int(rng.integers(0, length))
        spoken = said[number][: length - start]
        babble[start : start + len(spoken)] += spoken
    write(noises / "babble.wav", babble)
