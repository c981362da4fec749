"""Sound on the command line: `init`, `preview`, `export` and `validate --data`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from sound_files import RATE, decoded, encoded, noise, tone

import pipegen

if TYPE_CHECKING:
    from pathlib import Path

    from cli_helpers import Cli


def write_sounds(folder: Path, count: int, frames: int = 4000, rate: int = RATE, ending: str = "wav", channels: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for row in range(count):
        samples = np.repeat(tone(frames, rate, 300 + 50 * row), channels, 1)
        (folder / f"{row}-{rate}.{ending}").write_bytes(encoded(samples, rate, {"wav": "WAV", "flac": "FLAC"}[ending]))


@pytest.mark.tf
def test_init_on_folders_of_classes_writes_a_spec_that_trains(cli: Cli, tmp_path: Path) -> None:
    import keras

    write_sounds(tmp_path / "words" / "go", 12)
    write_sounds(tmp_path / "words" / "stop", 10, ending="flac")
    write_sounds(tmp_path / "words" / "stop", 3, 8000, rate=44100)
    (tmp_path / "words" / "go" / "cover.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    result = cli("init", "words")
    assert result.exit_code == 0, result.output
    assert "wrote words.pipegen.yaml: 25 sounds in 2 classes" in result.stdout
    text = (tmp_path / "words.pipegen.yaml").read_text()
    assert "# Classes: go 12, stop 13" in text
    assert "# 25 sounds examined: 16000 Hz, 44100 Hz; 0.181 to 0.25 seconds long" in text
    assert "source: {audio_folder: {path: words/, rate: 16000}}" in text
    assert "- random_crop: {seconds: 0.25, padding: as_needed}" in text
    assert cli("validate", "words.pipegen.yaml", "--data").exit_code == 0
    pipe = pipegen.build("words.pipegen.yaml")
    layers = [keras.Input((4000, 1)), keras.layers.AveragePooling1D(100), keras.layers.Flatten(), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(pipe.train, validation_data=pipe.validation, verbose=0)


def test_init_on_flat_folders_splits_and_several_channels(cli: Cli, tmp_path: Path) -> None:
    write_sounds(tmp_path / "flat", 6, 80000, channels=2)
    (tmp_path / "flat" / "bad.wav").write_bytes(b"no sound")
    result = cli("init", "flat")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "flat.pipegen.yaml").read_text()
    assert "source: {audio_folder: {path: flat/, labels: none, rate: 16000}}" in text
    assert "# All have several channels, of which the mean is read; `channels: 2` keeps them" in text
    assert "# 1 cannot be read, such as bad.wav" in text
    assert "- crop_or_pad: {seconds: 5}" in text
    for split in ("train", "val"):
        for name in ("a", "b"):
            write_sounds(tmp_path / "words" / split / name, 4, rate=8000)
    assert cli("init", "words").exit_code == 0
    text = (tmp_path / "words.pipegen.yaml").read_text()
    assert "splits: {method: folder, parts: {train: train, validation: val}}" in text
    assert "rate: 8000" in text
    assert cli("validate", "words.pipegen.yaml").exit_code == 0


def test_init_names_sounds_of_formats_that_are_not_read(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "calls" / "owl").mkdir(parents=True)
    (tmp_path / "calls" / "owl" / "1.m4a").write_bytes(b"\0\0\0\x18ftypM4A ")
    result = cli("init", "calls")
    assert result.exit_code != 0
    assert "1 sound of unsupported formats (MP4)" in result.output
    assert "WAV, FLAC" in result.output


def test_init_counts_rates_that_it_does_not_name(cli: Cli, tmp_path: Path) -> None:
    for rate in (8000, 11025, 16000, 22050, 44100):
        write_sounds(tmp_path / "calls", 1 + (rate == 16000), rate=rate)
    assert cli("init", "calls").exit_code == 0
    assert "6 sounds examined: 16000 Hz, 11025 Hz, 22050 Hz, 44100 Hz and 1 more; " in (tmp_path / "calls.pipegen.yaml").read_text()


def test_a_graph_of_sounds_advises_wav(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_sounds(tmp_path / "calls" / "owl", 2, ending="flac")
    pipe = pipegen.build(
        {
            "pipegen": 1,
            "source": {"audio_folder": {"path": str(tmp_path / "calls"), "rate": RATE}},
            "transforms": [{"crop_or_pad": {"seconds": 0.1}}],
            "batch": {"size": 2},
        }
    )
    with pytest.raises(pipegen.SpecError, match="save them in a format that TensorFlow decodes: WAV"):
        pipe.eject(tmp_path / "graph")


def test_images_beside_a_few_sounds_are_still_images(cli: Cli, tmp_path: Path) -> None:
    write_sounds(tmp_path / "mixed", 1)
    for row in range(3):
        Image.new("RGB", (8, 8), (row, 0, 0)).save(tmp_path / "mixed" / f"{row}.png")
    assert cli("init", "mixed").exit_code == 0
    assert "image_folder" in (tmp_path / "mixed.pipegen.yaml").read_text()


SPEC = """pipegen: 1
source: {audio_folder: {path: words/, rate: 16000}}
splits: {parts: {train: 8}}
transforms:
  - random_crop: {seconds: 0.125}
batch: {size: 4}
"""


@pytest.mark.tf
def test_preview_draws_waveforms_and_export_writes_them(cli: Cli, tmp_path: Path) -> None:
    for name in ("go", "stop"):
        write_sounds(tmp_path / "words" / name, 4)
    (tmp_path / "a.pipegen.yaml").write_text(SPEC)
    result = cli("preview", "a.pipegen.yaml", "-o", "sheet.png")
    assert result.exit_code == 0, result.output
    with Image.open("sheet.png") as sheet:
        assert np.asarray(sheet).std() > 10
    result = cli("export", "a.pipegen.yaml", "out", "--draws", "2")
    assert result.exit_code == 0, result.output
    assert "wrote 16 sounds of split train" in result.stdout
    pipe = pipegen.build("a.pipegen.yaml")
    lines = [json.loads(line) for line in (tmp_path / "out" / "metadata.jsonl").read_text().splitlines()]
    assert all(line["file_name"].endswith(".wav") for line in lines)
    x = np.concatenate([batch.numpy() for batch, _ in pipe.dataset("train", epoch=1)])
    for line in (line for line in lines if line["epoch"] == 1):
        np.testing.assert_array_equal(decoded((tmp_path / "out" / line["file_name"]).read_bytes()), x[line["position"]])


EVENTS = """pipegen: 1
source:
  csv:
    path: t.csv
    features:
      sound: {kind: audio, rate: 16000, column: file}
      events: {kind: events}
      what: {kind: label, with: events}
splits: {parts: {train: 8}}
transforms:
  - random_shift: {seconds: 0.1, fill: silence}
  - crop_or_pad: {seconds: 0.25}
batch: {size: 4}
output: {x: sound, y: [events, events_valid, what]}
"""


@pytest.mark.tf
def test_events_are_drawn_exported_and_checked(cli: Cli, tmp_path: Path) -> None:
    write_sounds(tmp_path, 8)
    rows = [f'{row}-{RATE}.wav,"[[0.05, 0.1], [0.15, 0.2]]","[""a"", ""b""]"' for row in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(["file,events,what", *rows]))
    (tmp_path / "a.pipegen.yaml").write_text(EVENTS)
    assert cli("validate", "a.pipegen.yaml", "--data=all").exit_code == 0
    result = cli("preview", "a.pipegen.yaml", "-o", "sheet.png", "--rows", "2", "--draws", "1")
    assert result.exit_code == 0, result.output
    with Image.open("sheet.png") as sheet:
        pixels = np.asarray(sheet.convert("RGB")).astype(int)
    assert (np.ptp(pixels, -1) > 100).sum() > 200, "frames of events are coloured"
    assert cli("export", "a.pipegen.yaml", "out").exit_code == 0
    lines = {line["position"]: line for line in map(json.loads, (tmp_path / "out" / "metadata.jsonl").read_text().splitlines())}
    pipe, place = pipegen.build("a.pipegen.yaml"), 0
    for _, (events, valid, what) in pipe.dataset("train", epoch=0):
        for own, there, names in zip(events.numpy(), valid.numpy(), what.numpy(), strict=True):
            np.testing.assert_allclose(np.reshape(lines[place]["events"], (-1, 2)), own[there], atol=1e-6)
            assert lines[place]["what"] == [["a", "b"][name] for name in names[there]]
            place += 1
    part = EVENTS.replace("column: file", "column: file, offset: 0.06, duration: 0.05").replace("0.25", "0.05")
    (tmp_path / "part.pipegen.yaml").write_text(part)
    result = cli("validate", "part.pipegen.yaml", "--data=all")
    assert "PG483" not in result.output, "events behind the part are left out, and no mistake"
    (tmp_path / "t.csv").write_text("\n".join(["file,events,what", rows[0].replace("0.2]", "200]"), *rows[1:]]))
    result = cli("validate", "a.pipegen.yaml", "--data=all")
    assert "PG483" in result.output
    assert "event 1 of '0-16000.wav' ends at 200 s, and its sound at 0.25 s" in " ".join(result.output.split())
    (tmp_path / "t.csv").write_text("\n".join(["file,events,what", *(f"{row}-{RATE}.wav,1 0 1,2 0 1" for row in range(8))]))
    for hop, late, early in ((120, False, False), (500, True, False), (40, False, True)):  # the sound may end within the last frame
        frames = EVENTS.replace("{kind: events}", f"{{kind: events, hop_ms: {hop}}}").replace("with: events", "with: events, classes: 3")
        (tmp_path / "frames.pipegen.yaml").write_text(frames)
        result = cli("validate", "frames.pipegen.yaml", "--data=all")
        assert [code in result.output for code in ("PG483", "PG484")] == [late, early], result.output


@pytest.mark.tf
def test_validate_data_names_damaged_sounds(cli: Cli, tmp_path: Path) -> None:
    for name in ("go", "stop"):
        write_sounds(tmp_path / "words" / name, 4)
    (tmp_path / "a.pipegen.yaml").write_text(SPEC)
    assert cli("validate", "a.pipegen.yaml", "--data=all").exit_code == 0
    go = tmp_path / "words" / "go"
    whole = (go / "0-16000.wav").read_bytes()
    (go / "0-16000.wav").write_bytes(whole[:-1000])
    (go / "1-16000.wav").write_bytes(b"")
    (go / "2-16000.wav").write_bytes(b"<html>")
    (go / "3-16000.wav").write_bytes(encoded(noise(800), format="FLAC")[:300])
    result = cli("validate", "a.pipegen.yaml", "--data=all", "--write-exclude", "damaged.txt")
    assert result.exit_code == 1
    shown = " ".join(result.output.split())
    for said in (
        "0-16000.wav", "is cut short: its header promises 8,000 bytes of samples, and it has 7,000", "1-16000.wav", "is empty",
        "2-16000.wav", "is not a sound file", "3-16000.wav", "is damaged or cut short",
    ):  # fmt: skip
        assert said in shown
    listed = (tmp_path / "damaged.txt").read_text().splitlines()[1:]
    assert listed == [f"go/{row}-16000.wav" for row in range(4)]


@pytest.mark.tf
def test_predictions_on_sounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("go", "stop"):
        write_sounds(tmp_path / "words" / name, 4)
    (tmp_path / "a.pipegen.yaml").write_text(SPEC)
    pipe = pipegen.build("a.pipegen.yaml")
    of_folder = pipe.predict_on("words/go")
    files = [str(tmp_path / "words" / "go" / f"{row}-16000.wav") for row in range(4)]
    due = [x.numpy() for x in of_folder.dataset]
    for given in (files, [decoded((tmp_path / file).read_bytes()) for file in files]):
        for got, own in zip(pipe.predict_on(given).dataset, due, strict=True):
            np.testing.assert_array_equal(got.numpy(), own)
    with pytest.raises(TypeError, match="sound 0 is int64 of shape"):
        pipe.predict_on([np.zeros((4000, 1), int)])
