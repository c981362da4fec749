"""Sound files that only the library reads are read by one call of Python for each chunk of examples, with the same bits and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from sound_files import RATE, encoded, noise

import pipegen
from pipegen.ops.families.decoder import SoundDecoder
from pipegen.ops.lowering import library

pytestmark = pytest.mark.tf

FORMS: tuple[tuple[str, int, int, dict[str, str]], ...] = (
    ("wav", RATE, 1, {}),
    ("flac", RATE, 1, {"format": "FLAC"}),
    ("ogg", RATE, 2, {"format": "OGG", "subtype": "VORBIS"}),
    ("mp3", 22050, 1, {"format": "MP3", "subtype": "MPEG_LAYER_III"}),
    ("wav", RATE, 1, {"subtype": "IMA_ADPCM"}),
    ("wav", RATE, 2, {"subtype": "PCM_24"}),
)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    folder = tmp_path / "words"
    folder.mkdir()
    for i in range(24):
        ending, rate, channels, form = FORMS[i % len(FORMS)]
        (folder / f"{i:02d}.{ending}").write_bytes(encoded(noise(2000 + 10 * i, channels, i), rate, **form))
    return folder


def spec(words: Path, **own: Any) -> dict[str, Any]:
    """An epoch that is long enough for sixteen examples a call."""
    return {
        "pipegen": 1,
        "source": {"audio_folder": {"path": str(words), "rate": RATE, "labels": "none"}},
        "transforms": [{"crop_or_pad": {"seconds": 0.1, "align": "start"}}],
        "output": {"x": "audio", "y": "audio"},
        "batch": {"size": 16},
        "epoch": {"steps": 256},
        "shuffle": "none",
        "runtime": {"cache": "none", "threads": 1},
        **own,
    }


def test_a_chunk_is_one_call(words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    call = library.numpy_function

    def counting(function: Any, *given: Any, **more: Any) -> Any:
        def counted(*values: Any) -> Any:
            calls.append(np.size(values[0]))
            return function(*values)

        return call(counted, *given, **more)

    monkeypatch.setattr(library, "numpy_function", counting)
    pipe = pipegen.build(spec(words))
    assert "16 a call" in pipe.explain(physical=True)
    names = list(pipe._manifest.keys("train"))
    decoder = SoundDecoder(rate=RATE)
    one_by_one = tf.data.Dataset.from_tensor_slices([(words / name).read_bytes() for name in names]).map(decoder.decode)
    own = dict(zip(names, one_by_one.as_numpy_iterator(), strict=True))
    calls.clear()
    batch = next(iter(pipe.dataset("train", epoch=0)))[0].numpy()
    # One call for the chunk, and one for each WAV of a form that the graph finds out to be rare.
    assert 16 in calls
    assert {size for size in calls if size != 16} <= {1}
    assert calls.count(16) <= 4  # those that are read ahead
    for name, got in zip(names[:16], batch, strict=True):
        frames = min(len(own[name]), len(got))
        assert got[:frames].tobytes() == own[name][:frames].tobytes(), name


def test_damage_names_its_file(words: Path) -> None:
    flac = words / "01.flac"
    flac.write_bytes(flac.read_bytes()[:200])
    with pytest.raises(Exception, match=r"01\.flac .*is damaged or cut short"):
        next(iter(pipegen.build(spec(words)).train))
    skipping = spec(words, errors={"decode": {"skip": {"max_fraction": 0.5}}}, batch={"size": 16})
    batch = next(iter(pipegen.build(skipping).train))[0].numpy()
    assert np.abs(batch).max((1, 2)).all()


def test_an_empty_file_is_named(words: Path) -> None:
    (words / "04.wav").write_bytes(b"")
    with pytest.raises(Exception, match=r"04\.wav"):
        next(iter(pipegen.build(spec(words)).train))
