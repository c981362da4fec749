"""A store of sounds gives the samples of the original files, bit for bit, and knows their lengths."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import tensorflow as tf
from PIL import Image
from sound_files import RATE, decoded, encoded, noise

import pipegen
from pipegen.errors import SpecError
from pipegen.ops.families.decoder import SoundDecoder
from pipegen.ops.lowering.sounds import pack_wav

pytestmark = pytest.mark.tf

RUNTIME = {"cache": "none", "jit": "never", "threads": 2}
KEPT = {"remainder": "keep"}
FILES: dict[str, tuple[int, int, int, dict[str, str]]] = {
    "0.wav": (RATE, 1, 4000, {}),
    "1.wav": (RATE, 1, 4700, {"subtype": "PCM_24"}),
    "2.wav": (RATE, 1, 3100, {"subtype": "FLOAT"}),
    "3.flac": (RATE, 1, 5200, {"format": "FLAC"}),
    "4.ogg": (RATE, 1, 4400, {"format": "OGG", "subtype": "VORBIS"}),
    "5.wav": (44100, 1, 12000, {}),
    "6.wav": (11024, 1, 2500, {}),
    "7.wav": (RATE, 2, 3600, {}),
    "8.flac": (22050, 2, 6000, {"format": "FLAC"}),
    "9.wav": (RATE, 1, 4100, {"subtype": "ALAW"}),
    "10.mp3": (RATE, 1, 5000, {"format": "MP3", "subtype": "MPEG_LAYER_III"}),
}
"""The rate, the channels, the frames and the form of each file."""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    for i, (name, (rate, channels, frames, form)) in enumerate(FILES.items()):
        (folder / "ab"[i % 2]).mkdir(exist_ok=True)
        (folder / "ab"[i % 2] / name).write_bytes(encoded(noise(frames, channels, i), rate, **form))
    return folder


def spec(words: Path, steps: list[Any], own: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    source = {"audio_folder": {"path": str(words), "rate": RATE, **(own or {})}}
    found = {"source": source, "splits": {"parts": {"train": 8, "validation": 3}}, "batch": {"size": 3, **KEPT}, "runtime": RUNTIME}
    return {"pipegen": 1, "transforms": steps, **found, **sections}


def same(original: dict[str, Any], store: Path) -> None:
    """A store gives the same batches as the spec that it was prepared from."""
    a, b = pipegen.build(original), pipegen.build(store, runtime=RUNTIME)
    assert a.splits == b.splits
    for split in a.splits:
        assert list(a._manifest.keys(split)) == list(b._manifest.keys(split))
        for one, other in zip(a.dataset(split, epoch=1), b.dataset(split, epoch=1), strict=True):
            for x, y in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
                assert (x.dtype, x.shape) == (y.dtype, y.shape)
                assert x.numpy().tobytes() == y.numpy().tobytes()


FIXED = [{"crop_or_pad": {"seconds": 0.25}}, "random_polarity"]
GAIN = [{"random_gain": {"db": 6}}]
LONGEST = {"batch": {"size": 3, **KEPT, "pad": {"to": "longest"}}}
BUCKETS = {"batch": {"size": 2, **KEPT, "buckets": {"by": "length", "sizes": [4000, 4500, 6000]}}}
PART = {"channels": 1, "offset": 0.01, "duration": 0.2}


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("steps", "own", "sections", "format"),
    [
        pytest.param(FIXED, {}, {}, "raw", id="fixed length"),
        pytest.param(GAIN, {}, {"batch": {"size": 3, **KEPT, "pad": {"to": 5500}}}, "raw", id="padded"),
        pytest.param(FIXED, PART, {}, "raw", id="a part of each file"),
        pytest.param(FIXED, {"rate": 8000}, {}, "raw", id="another rate"),
        pytest.param(["decode", {"trim": {"db": 20}}, *FIXED], {}, {}, "raw", id="steps of sound before the first random one"),
        pytest.param(FIXED, {}, {}, "jpeg", id="jpeg is for images"),
        pytest.param(FIXED, {}, {}, "tfrecord", id="tfrecord"),
        pytest.param(FIXED, {}, {}, "webdataset", id="webdataset"),
        pytest.param([{"crop_or_pad": {"seconds": 0.25}}, {"mel_spectrogram": {}}, "log"], {}, {}, "raw", id="spectra"),
    ],
)
def test_it_gives_the_same(words: Path, tmp_path: Path, steps: list[Any], own: Any, sections: Any, format: Any) -> None:
    original = spec(words, steps, own, **sections)
    done = pipegen.prepare(original, tmp_path / "store", format=format, verify=True)
    assert (done.steps, done.examples, done.verified, done.changes) == ("decode", len(FILES), len(FILES), ())
    same(original, done.spec)


@pytest.mark.parametrize("sections", [LONGEST, pytest.param(BUCKETS, marks=pytest.mark.nightly)], ids=["padded", "in buckets"])
def test_it_knows_the_lengths(words: Path, tmp_path: Path, sections: Any) -> None:
    """Also those of the MP3, whose header need not tell."""
    original = spec(words, GAIN, **sections)
    done = pipegen.prepare(original, tmp_path / "store")
    same(original, done.spec)
    decoder = SoundDecoder(rate=RATE)
    files = {file.name: file.read_bytes() for file in words.glob("*/*")}
    manifest = pipegen.build(done.spec)._manifest
    for name, length in zip(manifest.every_key, manifest.lengths["audio"], strict=True):
        assert length == len(decoder.decode(tf.constant(files[name.rpartition("/")[2]])))


@pytest.mark.nightly
def test_segments_of_recordings_beside_images(words: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["image,sound,start,length,label"]
    for i, sound in enumerate(["a/0.wav", "b/3.flac", "b/3.flac", "b/5.wav", "a/4.ogg", "a/8.flac"]):
        Image.fromarray(rng.integers(0, 256, (20 + i, 24, 3), np.uint8)).save(tmp_path / f"{i}.png")
        lines.append(f"{i}.png,{words / sound},{0.01 * i},{0.1 if i % 2 else ''},{i % 2}")
    (tmp_path / "both.csv").write_text("\n".join(lines))
    sound = {"kind": "audio", "column": "sound", "rate": 8000, "channels": 2, "offset": "start", "duration": "length"}
    features = {"image": {"kind": "image", "column": "image"}, "sound": sound, "label": {"kind": "label", "column": "label"}}
    original = {
        "pipegen": 1,
        "source": {"csv": {"path": str(tmp_path / "both.csv"), "features": features}},
        "transforms": [{"decode": {"scaled": "never"}}, {"resize": {"size": 12}}, "random_flip", {"crop_or_pad": {"seconds": 0.1}}],
        "output": {"x": ["image", "sound"], "y": "label"},
        "batch": {"size": 4, **KEPT},
        "runtime": RUNTIME,
    }
    for format, more in (("raw", {}), ("tfrecord", {"encoding": "png"}), ("webdataset", {"encoding": "png"})):
        done = pipegen.prepare(original, tmp_path / format, format=format, verify=True, **more)  # type: ignore[arg-type]
        assert done.steps == "decode → resize"
        same(original, done.spec)


def test_events_lie_in_the_stored_part_of_a_file(words: Path, tmp_path: Path) -> None:
    """Stored as starts and durations in the file, they are written as they enter the sound that a store has."""
    rows = [
        {"sound": str(words / "a/0.wav"), "event": [[0.05, 0.2], [0.4, 0.05]], "call": ["owl", "fox"]},
        {"sound": str(words / "b/3.flac"), "event": [], "call": []},
        {"sound": str(words / "b/5.wav"), "event": [[0.0, 0.5], [0.01, 0.02], [0.12, 0.01]], "call": ["fox", "owl", "owl"]},
    ]
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, rows)))
    features = {
        "sound": {"kind": "audio", "column": "sound", "rate": RATE, "offset": 0.1, "duration": 0.1},
        "event": {"kind": "events", "column": "event", "format": "start_duration"},
        "call": {"kind": "label", "column": "call", "with": "event"},
    }
    original: dict[str, Any] = {
        "pipegen": 1,
        "source": {"jsonl": {"path": str(tmp_path / "calls.jsonl"), "features": features}},
        "transforms": [{"random_crop": {"seconds": 0.08}}],
        "output": {"x": "sound", "y": ["event", "event_valid", "call"]},
        "batch": {"size": 3},
        "runtime": RUNTIME,
    }
    same(original, pipegen.prepare(original, tmp_path / "store").spec)
    for i, row in enumerate(rows):
        Image.new("RGB", (20, 16), (40 * i, 0, 0)).save(tmp_path / f"{i}.jpg")
        row["image"] = f"{i}.jpg"
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, rows)))
    features["image"] = {"kind": "image", "column": "image"}
    original["output"]["x"] = ["image", "sound"]
    original["transforms"] = ["random_flip", {"resize": {"size": 8}}, {"random_crop": {"seconds": 0.08, "feature": "sound"}}]
    same(original, pipegen.prepare(original, tmp_path / "both", format="tfrecord", encoding="original").spec)


def test_sounds_of_16_bits_stay_so(words: Path, tmp_path: Path) -> None:
    """In tar files other programs find a WAV of the rate that the spec says, and what is told of it."""
    done = pipegen.prepare(spec(words, FIXED), tmp_path / "store", format="webdataset")
    found = {}
    for archive in (tmp_path / "store").glob("*.tar"):
        with tarfile.open(archive) as members:
            contents = {one.name: members.extractfile(one).read() for one in members}  # type: ignore[union-attr]
        for name, content in contents.items():
            if name.endswith(".wav"):
                about = json.loads(contents[name.replace(".wav", ".json")])
                found[about["filename"].rpartition("/")[2]] = content
                assert (about["rate"], about["frames"]) == (RATE, len(decoded(content)))
    assert set(found) == set(FILES)
    for name, content in found.items():
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            same_form = FILES[name][:2] == (RATE, 1) and FILES[name][3] in ({}, {"format": "FLAC"}, {"subtype": "ALAW"})
            assert (file.samplerate, file.channels, file.subtype) == (RATE, 1, "PCM_16" if same_form else "FLOAT"), name
    assert done.bytes > 0


@pytest.mark.parametrize(
    ("samples", "width"),
    [([[0.5], [-1.0], [32767 / 32768]], 2), ([[1.0]], 4), ([[-0.0]], 4), ([[2.0**-16]], 4), ([[1e9], [-3.0]], 4), ([[0.25, 2.0**-15]], 2)],
)
def test_every_sample_is_kept(samples: list[list[float]], width: int) -> None:
    """A zero with a sign, full scale, and what lies beyond are no integers of 16 bits."""
    x = np.array(samples, np.float32)
    content = pack_wav(tf.constant(x), RATE)
    assert len(content.numpy()) == 44 + width * x.size
    read = SoundDecoder(rate=RATE, channels=x.shape[1]).decode(content)
    assert read.numpy().tobytes() == x.tobytes()


SERIES = {"arrays": {"features": {"series": {"kind": "series"}}}}
ARRAY = {"arrays": {"features": {"audio": {"kind": "audio", "rate": RATE}}}}


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (SERIES, {}, "`series` is read from one array as it is, with nothing to decode or compute(.|\n)*a store would not be read faster"),
        (ARRAY, {}, "`audio` is read from an array as it is, with nothing to decode"),
        (None, {"at": "crop_or_pad"}, "`crop_or_pad` changes `audio`, and a store has sounds as they are decoded"),
        (None, {"shorter_side": 8}, "`--shorter-side` shrinks images, and the spec has none"),
        (None, {"format": "tfrecord", "encoding": "original"}, "`audio`: a store has sounds as they are decoded"),
    ],
)
def test_what_cannot_be_prepared_is_said(words: Path, tmp_path: Path, source: Any, options: dict[str, Any], message: str) -> None:
    original = spec(words, FIXED if source is None else [])
    if source is not None:
        (name,) = source["arrays"]["features"]
        del original["splits"]
        original |= {"source": source, "output": {"x": name, "y": name}}
        np.savez(tmp_path / "a.npz", **{name: np.zeros((8, 40, 1), np.float32)})
        source["arrays"]["path"] = str(tmp_path / "a.npz")
    with pytest.raises(SpecError, match=message):
        pipegen.prepare(original, tmp_path / "store", **options)
