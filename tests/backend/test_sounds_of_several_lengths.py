"""Sound files of several lengths: padded samples and spectra are those of each file alone, on every split, share and cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipegen
from pipegen.errors import DataError, SpecError
from pipegen.mounts import Opened
from pipegen.ops.families.decoder import SoundDecoder
from pipegen.ops.lowering.sounds import encode_wav

pytestmark = pytest.mark.tf

RATE = 1000
FRAMES = [150, 400, 999, 1600, 1600, 700, 123, 1500, 800, 300, 640, 1000]
LONGEST = 1600
SPECTRA = [{"mel_spectrogram": {"bands": 8, "window_ms": 64, "hop_ms": 32}}, "log"]


def samples(i: int) -> Any:
    """The samples of sound `i`, none of which is 0."""
    return (0.6 + 0.3 * np.sin(np.arange(FRAMES[i]) / 9 + i)).astype(np.float32)[:, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("words")
    for i in range(len(FRAMES)):
        (at / f"c{i % 2}").mkdir(exist_ok=True)
        (at / f"c{i % 2}" / f"{i:02}.wav").write_bytes(encode_wav(samples(i), RATE))
    return at


def build(folder: Path, batch: Any, steps: Any = (), *, y: Any = "label", **own: Any) -> Any:
    """A pipeline over the sounds; the model also gets their lengths, unless it gets labels of several classes."""
    spec = {
        "pipegen": 1,
        "source": {"audio_folder": {"path": str(folder), "rate": RATE}},
        "splits": {"parts": {"train": 8, "validation": 4}},
        "transforms": list(steps),
        "batch": {"size": 4, **batch},
        "output": {"x": {"sound": "audio", "length": "audio_length"}, "y": y},
        "runtime": {"jit": "never", "cache": "none"},
    }
    return pipegen.build(spec | own)


def epoch(pipe: Any, split: str = "validation", **where: Any) -> list[tuple[Any, int]]:
    """The sounds of an epoch with their lengths."""
    found = [(x["sound"].numpy(), x["length"].numpy()) for x, _ in pipe.dataset(split, **where)]
    return [(sound, int(length)) for sounds, lengths in found for sound, length in zip(sounds, lengths, strict=True)]


def test_samples_are_those_of_the_file_and_then_silence(folder: Path) -> None:
    pipe = build(folder, {"pad": {}})
    assert sorted(pipe._manifest.lengths["audio"].tolist()) == sorted(FRAMES)
    for file, (sound, length) in zip(pipe.files("validation"), epoch(pipe), strict=True):
        i = int(Path(file).stem)
        assert sound.shape == (LONGEST, 1)
        assert length == FRAMES[i]
        np.testing.assert_array_equal(sound, np.pad(samples(i), [[0, LONGEST - length], [0, 0]]))


@pytest.mark.parametrize(("rate", "part"), [(1000, {}), (1500, {}), (333, {}), (1000, {"offset": 0.05, "duration": 0.4})])
def test_a_header_tells_the_frames_that_are_decoded(folder: Path, rate: int, part: dict[str, float]) -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.sounds import decode_sound

    for file in sorted(folder.rglob("*.wav")):
        decoded = decode_sound(tf.constant(file.read_bytes()), rate, 1, **part)
        with Opened(str(file)) as opened:
            assert SoundDecoder(rate=rate, **part).stored_length(opened) == decoded.shape[0]


def test_the_longest_spectrum_is_known_before_any_is_made(folder: Path) -> None:
    """Steps turn lengths of samples into lengths of spectra; each is that of the sound alone."""
    pipe = build(folder, {"pad": {"value": -9}}, SPECTRA)
    rows = epoch(pipe)
    alone = build(folder, {"size": 1, "buckets": {"by": "length", "sizes": [4, 11, 21, 49]}}, SPECTRA)
    by_file = dict(zip(alone.files("validation"), epoch(alone), strict=True))
    assert rows[0][0].shape == (49, 8, 1)
    for file, (sound, length) in zip(pipe.files("validation"), rows, strict=True):
        other, same = by_file[file]
        assert length == same <= len(other)
        np.testing.assert_allclose(sound[:length], other[:length], atol=1e-5)
        np.testing.assert_array_equal(sound[length:], -9)
        assert (other[length:] == 0).all()


def test_an_example_is_in_the_shortest_bucket_for_its_spectrum(folder: Path) -> None:
    sizes = [10, 20, 49]
    pipe = build(folder, {"size": 2, "remainder": "keep", "buckets": {"by": "length", "sizes": sizes}}, SPECTRA)
    for split in ("train", "validation"):
        seen = []
        for x, _ in pipe.dataset(split):
            lengths = x["length"].numpy().tolist()
            assert {next(size for size in sizes if length <= size) for length in lengths} == {x["sound"].shape[1]}
            seen += lengths
        assert len(seen) == pipe.num_examples(split)


def test_numbers_do_not_depend_on_the_batch_or_the_share(folder: Path) -> None:
    steps = ["polarity", *SPECTRA]
    whole = epoch(build(folder, {"pad": {}}, steps), "train", epoch=1)
    for found in (
        epoch(build(folder, {"pad": {}, "size": 2}, steps), "train", epoch=1),
        epoch(build(folder, {"pad": {}}, steps, runtime={"cache": "memory"}), "train", epoch=1),
    ):
        for (a, n), (b, m) in zip(whole, found, strict=True):
            assert n == m
            np.testing.assert_allclose(a, b, atol=1e-5)
    parts = [epoch(build(folder, {"pad": {}}, steps), "train", epoch=1, shard=(i, 2)) for i in range(2)]
    for k, (a, _) in enumerate(whole):
        batch, row = divmod(k, 4)
        np.testing.assert_allclose(a, parts[row // 2][2 * batch + row % 2][0], atol=1e-5)


def test_a_sound_too_short_for_a_step_is_named(folder: Path) -> None:
    pipe = build(folder, {"pad": {}}, [{"mel_spectrogram": {"bands": 8, "window_ms": 200, "hop_ms": 32}}], splits={"parts": {"train": 12}})
    with pytest.raises(pipegen.DataError, match=r"0[06]\.wav"):
        epoch(pipe, "train")


def test_combined_sounds_are_padded_first_and_have_no_length(folder: Path) -> None:
    mixup = [{"mixup": {"alpha": 1}}]
    soft = {"x": "audio", "y": "label", "encode": {"label": "one_hot"}}
    pipe = build(folder, {"pad": {"to": 1700}}, mixup, output=soft)
    (first, *_) = pipe.dataset("train")
    assert first[0].shape == (4, 1700, 1)
    with pytest.raises(pipegen.SpecError, match="has no rule to combine `audio_length`"):
        build(folder, {"pad": {"to": 1700}}, mixup, output={**soft, "x": ["audio", "audio_length"]})


def test_training_on_crops_and_evaluation_on_whole_sounds(folder: Path) -> None:
    crop = [{"random_crop": {"seconds": 0.5, "padding": "as_needed", "when": "train"}}]
    pipe = build(folder, {"pad": {"audio": {"to": LONGEST}}}, crop)
    assert "random_crop(when: train, seconds: 0.5, padding: as_needed)" in pipe.explain()
    assert {(sound.shape, length) for sound, length in epoch(pipe, "train")} == {((LONGEST, 1), 500)}
    assert {length for _, length in epoch(pipe)} <= {*FRAMES}
    with pytest.raises(pipegen.SpecError, match="a model takes one of them"):
        build(folder, {"pad": {"to": LONGEST}}, crop, output={"x": "audio"})


def test_a_step_that_changes_lengths_by_its_content_needs_a_number(folder: Path) -> None:
    trim = [{"trim": {}}]
    with pytest.raises(pipegen.SpecError, match="write the length of the padding"):
        build(folder, {"pad": {}}, trim)
    assert epoch(build(folder, {"pad": {"to": 1600}}, trim))[0][0].shape == (1600, 1)


@pytest.mark.nightly
def test_it_is_served_and_written_out(folder: Path, tmp_path: Path) -> None:
    import keras
    import tensorflow as tf

    sound = keras.Input((LONGEST, 1), name="sound")
    model = keras.Model(sound, keras.layers.Dense(2)(keras.layers.GlobalAveragePooling1D()(sound)))
    output = {"x": "audio", "y": "label"}
    pipe = build(folder, {"pad": {}}, output=output)
    expected = model.predict(pipe.validation, verbose=0)
    serve = pipe.serving_fn(model)
    given = tf.constant([Path(file).read_bytes() for file in pipe.files("validation")])
    np.testing.assert_allclose(serve(given), expected, atol=1e-5)
    pipe.eject(tmp_path / "graph", splits=["validation"])
    saved = tf.saved_model.load(str(tmp_path / "graph" / "validation"))
    for (a, _), (b, _) in zip(saved.batches(0, 0), pipe.dataset("validation"), strict=True):
        np.testing.assert_array_equal(a, b)
    buckets = build(folder, {"buckets": {"by": "length", "sizes": [800, 1600]}}, output=output)
    with pytest.raises(pipegen.SpecError, match="a model is served for one length"):
        buckets.serving_fn(model)
    assert pipe.preview("train", rows=2, draws=2).width > 100
    assert len(pipe.export(tmp_path / "out", "train").files) == 8
    assert buckets.preview("train", rows=2, draws=2).width > 100


def test_prediction_takes_files_and_arrays_of_any_length(folder: Path) -> None:
    files = [str(path) for path in sorted(folder.rglob("*.wav"))]
    padded = build(folder, {"pad": {}}, output={"x": "audio", "y": "label"}).predict_on(files)
    whole = np.concatenate([x.numpy() for x in padded.dataset])
    assert whole.shape == (len(FRAMES), LONGEST, 1)
    buckets = build(folder, {"buckets": {"by": "length", "sizes": [800, 1600]}}, output={"x": "audio", "y": "label"})
    for given in (files, [samples(int(Path(file).stem)) for file in files]):
        found = buckets.predict_on(given)
        shown = [sound for x in found.dataset for sound in x.numpy()]
        assert sorted(found.files) == sorted(files if given is files else map(str, range(len(files))))
        for name, sound in zip(found.files, shown, strict=True):
            place = files.index(name) if given is files else int(name)
            frames = FRAMES[int(Path(files[place]).stem)]
            assert len(sound) == (800 if frames <= 800 else 1600)
            np.testing.assert_array_equal(sound, whole[place][: len(sound)])
    with pytest.raises(pipegen.DataError, match=r"has a length of 2000, but `batch\.pad` has room for 1600"):
        list(build(folder, {"pad": {}}, output={"x": "audio", "y": "label"}).predict_on([np.zeros((2000, 1), np.float32)]).dataset)


def test_each_view_has_its_length(folder: Path) -> None:
    views = {"near": {"transforms": [{"random_crop": {"seconds": 0.3, "padding": "as_needed"}}]}, "far": {}}
    output = {"x": ["audio", "audio_length"], "y": "label"}
    pipe = build(folder, {"pad": {"to": LONGEST}}, output=output, views=views)
    for (near, far, of_near, of_far), _ in pipe.dataset("train"):
        assert near.shape == far.shape == (4, LONGEST, 1)
        assert of_near.numpy().tolist() == [300] * 4
        assert {*of_far.numpy().tolist()} <= {*FRAMES}
    assert [value.shape for value in next(iter(pipe.dataset("validation")))[0]] == [(4, LONGEST, 1), (4,)]
    with pytest.raises(pipegen.SpecError, match="write the length of the padding"):
        build(folder, {"pad": {}}, output=output, views=views)
    alike = build(folder, {"pad": {}}, output=output, views={"near": {"transforms": [{"random_gain": {"db": 6}}]}, "far": {}})
    assert next(iter(alike.dataset("train")))[0][0].shape == (4, LONGEST, 1)


def test_the_parts_of_a_mix_have_one_length(folder: Path) -> None:
    source = {"audio_folder": {"path": str(folder), "rate": RATE}}
    part = {"weight": 1, "source": source, "splits": {"parts": {"train": 8, "validation": 4}}}
    mix = {"source": {"mix": {"epoch": 8, "parts": {"near": part, "far": {**part, "transforms": [{"gain": {"db": -6}}]}}}}}
    spec = {"pipegen": 1, **mix, "batch": {"size": 4, "pad": {"to": 700, "longer": "cut"}}, "output": {"x": ["audio", "audio_valid"]}}
    for x, _ in pipegen.build(spec).dataset("train"):
        np.testing.assert_array_equal(x[0].numpy()[..., 0] != 0, x[1].numpy())


def test_stages_pad_each_to_its_own_length_and_leave_out_the_same(folder: Path) -> None:
    params = {"params": {"n": {"type": "int", "default": 1600}}, "stages": [{"epochs": 1, "params": {"n": 1800}}, {"epochs": 1}]}
    pipe = build(folder, {"pad": {"to": "$n"}}, **params)
    assert [x["sound"].shape[1] for stage in pipe.stages for x, _ in stage.train] == [1800, 1800, 1600, 1600]
    with pytest.raises(pipegen.SpecError, match="stage 1 leaves out other examples"):
        build(folder, {"pad": {"to": "$n", "longer": "drop"}}, **{**params, "stages": [{"epochs": 1, "params": {"n": 700}}, {"epochs": 1}]})


def test_what_leaving_out_leaves_has_to_fill_a_batch(folder: Path) -> None:
    with pytest.raises(pipegen.SpecError, match="every example of split `train` is longer"):
        build(folder, {"pad": {"to": 1, "longer": "drop"}})
    with pytest.raises(pipegen.SpecError, match="fewer than one batch of 8"):
        build(folder, {"size": 8, "pad": {"to": 700, "longer": "drop"}})


BUCKETS = {"buckets": {"by": "length", "sizes": [4, 8]}, "pad": {"longer": "cut"}}


def test_pitch_of_sounds_of_unknown_length_is_drawn(folder: Path) -> None:
    given = build(folder, {"pad": {}}, [{"random_pitch": {"semitones": 2}}])
    assert sorted(length for _, length in epoch(given, "train")) == sorted(
        length for _, length in epoch(build(folder, {"pad": {}}), "train")
    )


@pytest.mark.parametrize("batch", [BUCKETS, {"pad": {"to": 8, "longer": "drop"}}], ids=["buckets", "drop"])
def test_a_sound_that_is_too_short_for_a_step_is_named(folder: Path, batch: Any) -> None:
    pipe = build(folder, batch, [{"mel_spectrogram": {"bands": 8, "window_ms": 200, "hop_ms": 200}}])
    with pytest.raises(DataError, match=r"0[06]\.wav .*needs sounds of 200 samples or more, and this one has 1(50|23);"):
        _ = epoch(pipe, "train"), epoch(pipe, "validation")


def test_buckets_after_a_step_whose_length_depends_on_the_values_are_refused(folder: Path) -> None:
    with pytest.raises(SpecError, match="PG265"):
        build(folder, BUCKETS, ["trim"])
