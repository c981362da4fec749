"""Sounds that records hold as lists of samples, as TensorFlow Datasets writes them: they are what files of the same samples are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import record_files as files
from tfds_files import prepare

import pipegen
from pipegen.errors import DataError
from pipegen.ops.lowering.sounds import encode_wav, wav

pytestmark = pytest.mark.tf

RATE, COUNT = 8000, 12


def samples(form: str, channels: int = 1) -> list[Any]:
    """Of another length each."""
    rng = np.random.default_rng(4)
    sounds = [rng.integers(-(2**15), 2**15, (300 + 40 * i) * channels) for i in range(COUNT)]
    return sounds if form == "int" else [(sound / 3e4).astype(np.float32) for sound in sounds]


def as_file(sound: Any, channels: int) -> bytes:
    """A WAV of 16 bits, or of floats."""
    whole = sound.dtype.kind == "i"
    return wav(sound.astype("<i2").tobytes(), RATE, channels, (1, 2)) if whole else encode_wav(sound.reshape(-1, channels), RATE)


def written(op: str, path: Path, values: list[Any]) -> dict[str, Any]:
    """Writes a record of each value; returns the arguments of the source."""
    held = [{"audio": value if isinstance(value, bytes) else value.tolist(), "label": i % 2} for i, value in enumerate(values)]
    path.mkdir(exist_ok=True)
    if op == "tfds":
        folder = prepare(path, {"train": [held[:5], held[5:]]}, name="speech")
        about = json.loads((folder / "features.json").read_text())
        told = {"shape": {"dimensions": ["-1"]}, "dtype": "int64", "sampleRate": str(RATE)}
        about["featuresDict"]["features"]["audio"] = {
            "pythonClassName": "tensorflow_datasets.core.features.audio_feature.Audio",
            "audio": told,
        }
        about["featuresDict"]["features"]["label"]["classLabel"] = {"numClasses": "2"}
        (folder / "features.json").write_text(json.dumps(about))
        return {"name": "speech", "data_dir": str(path)}
    if op in ("arrow", "huggingface"):
        pa = pytest.importorskip("pyarrow")
        table = pa.Table.from_pylist(held)
        with pa.OSFile(str(path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
        (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}], "_split": "train"}))
        features = {
            "audio": {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"},
            "label": {"dtype": "int64", "_type": "Value"},
        }
        splits = {"train": {"name": "train", "num_examples": len(held)}}
        (path / "dataset_info.json").write_text(json.dumps({"features": features, "splits": splits}))
        return {"path": str(path / "a.arrow") if op == "arrow" else str(path)}
    if op == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(held), path / "a.parquet", row_group_size=5)
        return {"path": str(path / "a.parquet")}
    if op == "jsonl":
        (path / "a.jsonl").write_text("\n".join(map(json.dumps, held)))
        return {"path": str(path / "a.jsonl")}
    (files.write_tfrecord if op == "tfrecord" else files.write_array_record)(path / f"a.{op}", held)
    return {"path": str(path / f"a.{op}")}


def spec_of(op: str, arguments: dict[str, Any], channels: int = 1, **own: Any) -> dict[str, Any]:
    audio = {"kind": "audio", "rate": RATE, **({"channels": channels} if channels > 1 else {})}
    features = {"audio": audio, "label": {"kind": "label", "classes": 2} if op != "tfds" else {"kind": "label"}}
    spec = {"pipegen": 1, "source": {op: {**arguments, "features": features}}, "transforms": [], "shuffle": "none"}
    return {**spec, "batch": {"size": 4, "pad": {"to": 800}}, "output": {"x": ["audio", "audio_length"], "y": "label"}, **own}


def read(spec: dict[str, Any], **runtime: Any) -> list[Any]:
    import tensorflow as tf

    pipe = pipegen.build(spec, runtime={"jit": "never", **runtime})
    return [np.asarray(part) for batch in pipe.dataset("train", epoch=0) for part in tf.nest.flatten(batch)]


@pytest.mark.by_day(3)
@pytest.mark.parametrize(("form", "channels"), [("int", 1), ("float", 2), ("int", 2)])
@pytest.mark.parametrize("op", ["tfrecord", "array_record", "tfds", "arrow", "huggingface", "parquet", "jsonl"])
def test_a_list_of_samples_is_a_file_of_them(op: str, form: str, channels: int, tmp_path: Path) -> None:
    """To the bit, padded or cut; and from a cache."""
    if op == "array_record":
        pytest.importorskip("array_record")
    if op == "tfds" and channels > 1:
        return  # whose metadata tells of one channel
    sounds = samples(form, channels)
    specs = [
        spec_of("tfrecord", written("tfrecord", tmp_path / "files", [as_file(sound, channels) for sound in sounds]), channels),
        spec_of(op, written(op, tmp_path / "lists", sounds), channels),
    ]
    steps = [{"random_gain": {"db": 6}}, {"crop_or_pad": {"seconds": 0.05}}]
    for changed in ({}, {"transforms": steps, "batch": {"size": 4}, "output": {"x": "audio", "y": "label"}}):
        (due, got), (_, again) = ([read({**spec, **changed}, cache=cache) for spec in specs] for cache in ("none", "memory"))
        assert len(due) == len(got) > 2
        for one, other, third in zip(due, got, again, strict=True):
            if changed:  # draws are those of each source's ids
                assert one.shape == other.shape
                np.testing.assert_array_equal(other, third)
            else:
                np.testing.assert_array_equal(one, other)
                np.testing.assert_array_equal(other, third)


@pytest.mark.parametrize(
    ("values", "channels", "said"),
    [
        ([0, 40_000], 1, "has integers beyond the 16 bits of samples, -32768 to 32767"),
        ([1, 2, 3], 2, "has a number of samples that is no multiple of its 2 channels"),
        ([], 1, "has no samples"),
        ([0.5, float("nan")], 1, "has samples that are not finite numbers"),
        ([0.5, 0.25], 1, "Data types don't match"),
    ],
)
@pytest.mark.parametrize("op", ["tfrecord", "arrow"])
def test_what_is_no_sound_names_its_record(op: str, values: list[Any], channels: int, said: str, tmp_path: Path) -> None:
    if op == "arrow" and values in ([], [0.5, 0.25]):
        return  # of a column of floats, and an empty list is none of numbers
    floats = values[1:] not in ([], [0.25]) and isinstance(values[1], float)  # in all records
    sounds = [
        *samples("float" if floats else "int", channels)[:5],
        np.array(values, np.float32 if floats or values == [0.5, 0.25] else np.int64),
    ]
    spec = spec_of(op, written(op, tmp_path, sounds), channels, batch={"size": 1, "pad": {"to": 800}})
    with pytest.raises(DataError) as caught:
        read(spec)
    assert said in str(caught.value)
    assert f"a.{op}#5" in str(caught.value)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"sampleRate": "16000"}, "'audio' of 'speech' has 16000 samples a second(.*\n)*.*rate: 16000"),
        ({"shape": {"dimensions": ["-1", "2"]}}, "'audio' of 'speech' has 2 channels(.*\n)*.*channels: 2"),
    ],
)
def test_metadata_that_tells_another_rate_or_channels_is_a_finding(told: dict[str, Any], said: str, tmp_path: Path) -> None:
    """With the argument to write, which then works."""
    spec = spec_of("tfds", written("tfds", tmp_path, samples("int")))
    (named,) = tmp_path.rglob("features.json")
    about = json.loads(named.read_text())
    about["featuresDict"]["features"]["audio"]["audio"] |= told
    named.write_text(json.dumps(about))
    with pytest.raises(pipegen.SpecError, match=said):
        pipegen.build(spec)
    spec["source"]["tfds"]["features"]["audio"] |= {"rate": 16000} if "sampleRate" in told else {"channels": 2}
    assert read(spec)


@pytest.mark.parametrize("op", ["parquet", "jsonl"])
def test_a_cell_of_a_table_that_is_no_sound_is_named(op: str, tmp_path: Path) -> None:
    sounds = samples("float", 2)
    for wrong, said in (([], "it has no samples"), ([0.5], "it has a number of samples that is no multiple of its 2 channels")):
        source = written(op, tmp_path / str(len(wrong)), [*sounds[:7], np.array(wrong, np.float32), *sounds[8:]])
        with pytest.raises(DataError if op == "parquet" else pipegen.SpecError, match=said) as caught:
            read(spec_of(op, source, 2))
        assert ("a.parquet#7" if op == "parquet" else "a.jsonl:8 cannot be `audio`") in str(caught.value)


@pytest.mark.parametrize("op", ["parquet", "jsonl"])
def test_samples_are_one_list(op: str, tmp_path: Path) -> None:
    """A list for each frame would have as many steps as it has frames, and not a frame for each channel."""
    source = written(op, tmp_path, [sound.reshape(-1, 2) for sound in samples("float", 2)])
    with pytest.raises((DataError, pipegen.SpecError), match="is a list of lists; the samples of all channels stand in one list"):
        read(spec_of(op, source, 2))


@pytest.mark.parametrize("dtype", ["int16", "uint8", "float32"])
def test_a_frame_of_arrays_is_what_an_array_is(dtype: str) -> None:
    """With the scale of their dtype; a path beside lists is named."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(6)
    held = (rng.normal(size=(4, 200)) * 0.3).astype(dtype) if dtype[0] == "f" else rng.integers(0, np.iinfo(dtype).max, (4, 200), dtype)
    frame = pandas.DataFrame({"audio": list(held), "label": [0, 1, 0, 1]})
    steps = {"transforms": [{"crop_or_pad": {"seconds": 200 / RATE}}], "batch": {"size": 4}, "output": {"x": "audio", "y": "label"}}
    found = [
        next(iter(pipegen.build(spec_of(op, {}, **steps), data=data, runtime={"jit": "never"}).dataset("train", epoch=0)))[0]
        for op, data in (("dataframe", frame), ("arrays", {"audio": held, "label": np.arange(4) % 2}))
    ]
    np.testing.assert_array_equal(*found)
    frame["audio"] = [held[0], "a.wav", held[2], held[3]]
    with pytest.raises(pipegen.SpecError, match=r"row 1.* cannot be `audio`: it is no list of numbers"):
        pipegen.build(spec_of("dataframe", {}, **steps), data=frame)


def test_a_list_of_words_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"audio": ["a"] * 9, "label": i % 2}) for i in range(4)))
    audio = {"kind": "audio", "rate": RATE, "column": "audio"}
    source = {"jsonl": {"path": str(tmp_path / "t.jsonl"), "features": {"audio": audio, "label": {"kind": "label"}}}}
    spec = {"pipegen": 1, "source": source, "transforms": [{"crop_or_pad": {"seconds": 1}}], "batch": {"size": 2}}
    with pytest.raises(pipegen.SpecError, match=r"t.jsonl:1 holds a list of 9 values, not the path of a sound file"):
        pipegen.build(spec)
    audio |= {"kind": "image"}
    del audio["rate"]
    with pytest.raises(pipegen.SpecError, match="pixels in a list need the `size` of the image"):
        pipegen.build(spec | {"transforms": [{"resize": {"size": 8}}], "output": {"x": "audio", "y": "label"}})


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint8", "float32", "float64"])
def test_a_list_of_a_dtype_is_an_array_of_it(dtype: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(6)
    held = (rng.normal(size=(4, 200)) * 0.3).astype(dtype) if dtype[0] == "f" else rng.integers(0, np.iinfo(dtype).max, (4, 200), dtype)
    table = pa.table({"audio": pa.array(list(held), pa.list_(pa.from_numpy_dtype(np.dtype(dtype)))), "label": [0, 1, 0, 1]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    steps = {"transforms": [{"crop_or_pad": {"seconds": 200 / RATE}}], "batch": {"size": 4}, "output": {"x": "audio", "y": "label"}}
    found = read(spec_of("arrow", {"path": str(tmp_path / "a.arrow")}, **steps))
    pipe = pipegen.build(spec_of("arrays", {}, **steps), data={"audio": held, "label": np.arange(4) % 2}, runtime={"jit": "never"})
    np.testing.assert_array_equal(found[0], next(iter(pipe.dataset("train", epoch=0)))[0])


@pytest.mark.parametrize(("op", "value"), [("tfrecord", [7]), ("arrow", [7])])
def test_one_number_is_no_list_of_samples(op: str, value: list[int], tmp_path: Path) -> None:
    source = written(op, tmp_path, [np.array(value)] * 4)
    if op == "arrow":
        source = {**source, "features": {"audio": {"kind": "audio", "rate": RATE, "key": "label"}}}
        spec = spec_of(op, {}) | {"source": {op: source}, "output": {"x": "audio", "y": "audio"}}
    else:
        spec = spec_of(op, source)
    spec |= {"output": {"x": "audio", "y": "audio"}}
    with pytest.raises(pipegen.SpecError, match="needs the bytes of a sound file"):
        pipegen.build(spec | {"transforms": [{"crop_or_pad": {"seconds": 0.1}}], "batch": {"size": 2}})
