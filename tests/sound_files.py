"""Sound files for tests, made by soundfile, and WAV files with headers of our own."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import soundfile

RATE = 16000
LIBRARY = {
    "FLAC": ("FLAC", "PCM_16"),
    "Ogg Vorbis": ("OGG", "VORBIS"),
    "Opus": ("OGG", "OPUS"),
    "MP3": ("MP3", "MPEG_LAYER_III"),
    "AIFF": ("AIFF", "PCM_24"),
    "AU": ("AU", "PCM_16"),
    "RF64": ("RF64", "PCM_16"),
    "W64": ("W64", "PCM_16"),
    "SPHERE": ("NIST", "PCM_16"),
}
"""The formats that soundfile reads: its names of the format and of the coding."""


def noise(frames: int, channels: int = 1, seed: int = 0) -> np.ndarray[Any, Any]:
    """Samples of a clipped noise, float64 `(frames, channels)`."""
    return np.clip(np.random.default_rng(seed).normal(0, 0.3, (frames, channels)), -1, 1)


def tone(frames: int, rate: int = RATE, hertz: float = 440.0) -> np.ndarray[Any, Any]:
    """Samples of a sine that swells and fades, float64 `(frames, 1)`."""
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(frames) / rate) * np.hanning(frames))[:, None]


def encoded(samples: Any, rate: int = RATE, format: str = "WAV", subtype: str = "PCM_16") -> bytes:
    """The bytes of a file, by soundfile."""
    stream = io.BytesIO()
    soundfile.write(stream, samples, rate, subtype=subtype, format=format)
    return stream.getvalue()


def decoded(content: bytes) -> np.ndarray[Any, Any]:
    """The samples of a file, by soundfile: float32 `(frames, channels)`. `soundfile.read` would seek first, which changes bits of MP3."""
    with soundfile.SoundFile(io.BytesIO(content)) as file:
        return file.read(file.frames, dtype="float32", always_2d=True)


def with_sizes(wav: bytes, *, riff: int | None = None, data: int | None = None) -> bytes:
    """The WAV with other sizes in its header."""
    found, at = bytearray(wav), wav.index(b"data")
    for place, size in ((4, riff), (at + 4, data)):
        if size is not None:
            found[place : place + 4] = struct.pack("<I", size)
    return bytes(found)


def with_chunk(wav: bytes, name: bytes, content: bytes) -> bytes:
    """The WAV with a chunk before all others, padded to an even length."""
    chunk = name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
    return with_sizes(wav[:12] + chunk + wav[12:], riff=len(wav) + len(chunk) - 8)
