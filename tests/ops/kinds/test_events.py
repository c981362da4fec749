"""What happens in a sound moves with it: events follow every step along time, and neighbouring steps are one reading of the samples."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipegen
from pipegen.ops.registry import transforms
from pipegen.ops.stage import StepRef
from pipegen.plan.stages import Retime

pytestmark = pytest.mark.tf

RATE, FRAMES, COUNT = 1000, 4000, 16
Array = np.ndarray[Any, Any]

CHAINS: dict[str, list[Any]] = {
    "crop_or_pad": [{"crop_or_pad": {"seconds": 2.5, "align": "center"}}],
    "longer": [{"crop_or_pad": {"seconds": 5, "align": "end"}}],
    "random_crop": [{"random_crop": {"seconds": 1.5}}],
    "padded": [{"random_crop": {"seconds": 6, "padding": "as_needed"}}],
    "random_shift": [{"random_shift": {"seconds": 1, "fill": "silence", "probability": 0.7}}],
    "random_speed": [{"random_speed": {"factor": 0.4}}],
    "random_time_stretch": [{"random_time_stretch": {"factor": [0.7, 1.4], "probability": 0.7}}],
    "trim": [{"trim": {"db": 30, "window": 64, "hop": 16}}, {"crop_or_pad": {"seconds": 4}}],
    "a segment": [
        {"random_speed": {"factor": 0.3, "probability": 0.5}},
        {"random_shift": {"share": 0.2, "fill": "silence"}},
        {"random_speed": {"factor": [0.8, 1.3]}},
        {"random_crop": {"seconds": 2}},
    ],
    "after a gain": [{"random_gain": {"db": [1, 3]}}, {"crop_or_pad": {"seconds": 3, "align": "end"}}, {"random_speed": {"factor": 0.2}}],
    "chosen": [
        {"one_of": {"steps": [{"random_speed": {"factor": 0.3}}, {"random_shift": {"seconds": 0.5, "fill": "silence"}}]}},
        {"random_crop": {"seconds": 3}},
    ],
    "another rate": [{"resample": {"rate": 2000}}, {"random_crop": {"seconds": 2}}],
    "trim, then random": [{"trim": {"db": 30, "window": 64, "hop": 16}}, {"random_crop": {"seconds": 3, "padding": "as_needed"}}],
}
"""Every step along time, alone and with others."""
BLURRED = {"random_time_stretch"}
"""Steps that move edges of a stretch by up to half a window, 64 ms."""


def written(chosen: set[str]) -> set[str]:
    return {op for chain in CHAINS.values() for op in json.dumps(chain).split('"') if op in chosen}


def test_every_step_along_time_is_tried() -> None:
    moving = {op for op, step in transforms().items() if step.moves_time}
    assert written(moving) == moving


def sounds(seed: int = 0) -> tuple[Array, list[Array], list[Array]]:
    """Sounds that are loud where something happens: at most two events each, apart from one another, of classes that tell them."""
    rng = np.random.default_rng(seed)
    samples, events, names = np.zeros((COUNT, FRAMES, 1), np.float32), [], []
    for i in range(COUNT):
        own = []
        for k in range(i % 3):
            start = int(rng.integers(200, 900)) + 1800 * k
            end = start + int(rng.integers(300, 700))
            # A tone, whose pitch tells nothing but which every step keeps: 100 periods a second.
            samples[i, start:end, 0] = np.sin(np.arange(end - start) * (2 * np.pi * 0.1))
            own.append([start / RATE, end / RATE])
        events.append(np.array(own[::-1]).reshape(-1, 2))  # in no order
        names.append(np.array(["first", "second"][: i % 3][::-1]))
    return samples, events, names


def spec_of(steps: list[Any], **own: Any) -> dict[str, Any]:
    features = {
        "sound": {"kind": "audio", "rate": RATE},
        "events": {"kind": "events"},
        "name": {"kind": "label", "with": "events", "classes": ["first", "second"]},
    }
    output = {"x": "sound", "y": ["events", "events_valid", "name"]}
    spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "transforms": steps, "batch": {"size": 4}, "output": output}
    return spec | own


def built(steps: list[Any], seed: int = 0, runtime: dict[str, Any] | None = None, **own: Any) -> Any:
    samples, events, names = sounds(seed)
    data = {"sound": samples, "events": events, "name": names}
    return pipegen.build(spec_of(steps, **own), data=data, runtime={"jit": "never", **(runtime or {})})


def examples(pipe: Any, epoch: int = 0) -> list[tuple[Array, ...]]:
    import tensorflow as tf

    batches = [[np.asarray(part) for part in tf.nest.flatten(batch)] for batch in pipe.dataset("train", epoch=epoch)]
    return [tuple(part[i] for part in batch) for batch in batches for i in range(len(batch[0]))]


def loud(sound: Array, rate: int) -> list[tuple[float, float]]:
    """Start and end of the loud stretches of a sound, in seconds."""
    period = rate // 100
    level = np.sqrt(np.convolve(sound[:, 0] ** 2, np.ones(2 * period + 1) / (2 * period + 1), "same"))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (level > 0.4).astype(int), [0]])))
    return [(start / rate, end / rate) for start, end in edges.reshape(-1, 2) if end - start > 4 * period]


@pytest.mark.by_day(5)
@pytest.mark.parametrize("chain", sorted(CHAINS))
def test_a_loud_stretch_is_where_the_events_say(chain: str) -> None:
    """And nowhere else; those that left the sound are dropped, with their classes, and those that cross its edge end there."""
    pipe = built(CHAINS[chain], batch={"size": 4, "remainder": "keep"})
    near = 0.07 if {*written(BLURRED)} & {*json.dumps(CHAINS[chain]).split('"')} else 0.03
    rate = 2000 if chain == "another rate" else RATE
    seen = 0
    for epoch in range(2):
        for sound, events, valid, names in examples(pipe, epoch):
            length = len(sound) / rate
            own = events[valid]
            assert not events[~valid].any()
            assert not names[~valid].any()
            assert ((own >= 0) & (own <= length + 1e-6)).all()
            assert (own[:, 0] < own[:, 1]).all()
            assert (np.diff(own[np.argsort(names[valid])][:, 0]) > 0).all(), "the first one is the first"
            due = sorted((start, end) for start, end in own.tolist() if end - start > 0.12)
            found = loud(sound, rate)
            clear = [one for one in found if one[1] - one[0] > 0.12]
            for start, end in clear:
                assert any(a - near <= start and end <= b + near for a, b in own.tolist()), (found, own)
            for start, end in due:
                assert any(abs(a - start) < near and abs(b - end) < near for a, b in found), (found, own)
            seen += len(due)
    assert seen > COUNT / 2


@pytest.mark.by_day(1)
@pytest.mark.parametrize("chain", ["a segment", "random_crop", "after a gain", "trim, then random"])
def test_events_do_not_depend_on_how_they_are_computed(chain: str) -> None:
    """On the batch size, on what is compiled, on hosts, and on where an epoch was entered; all but samples to the bit."""
    pipe = built(CHAINS[chain], batch={"size": 4, "remainder": "keep"})
    due = examples(pipe, 1)
    for other in (
        built(CHAINS[chain], batch={"size": 3, "remainder": "keep"}),
        built(CHAINS[chain], runtime={"jit": "auto", "cache": "memory"}, batch={"size": 4, "remainder": "keep"}),
    ):
        for one, two in zip(due, examples(other, 1), strict=True):
            np.testing.assert_allclose(one[0], two[0], atol=3e-6)
            for part, again in zip(one[1:], two[1:], strict=True):
                np.testing.assert_array_equal(part, again)
    pipe.seek(1, 2)
    rest = [np.asarray(y[0]) for _, y in pipe.train]
    np.testing.assert_array_equal(np.concatenate(rest), np.stack([one[1] for one in due[8:]]))
    shares = [[np.asarray(y[0]) for _, y in pipe.dataset("train", epoch=1, shard=(number, 2))] for number in range(2)]
    both = np.concatenate([np.concatenate(pair) for pair in zip(*shares, strict=True)])
    np.testing.assert_array_equal(both, np.stack([one[1] for one in due]))


def ramp(steps: list[Any], **own: Any) -> Array:
    """What a ramp becomes, which tells of every output frame at which input frame it was read; 0 is silence."""
    data = {"sound": np.tile(np.arange(1, FRAMES + 1, dtype=np.float32)[None, :, None], (COUNT, 1, 1))}
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"sound": {"kind": "audio", "rate": RATE}}}},
        "transforms": steps,
        "batch": {"size": COUNT},
        "shuffle": "none",
        "output": {"x": "sound", "y": "sound"},
        **own,
    }
    batch, _ = next(iter(pipegen.build(spec, data=data, runtime={"jit": "never"}).dataset("train")))
    return np.asarray(batch)[..., 0]


def test_cuts_and_shifts_of_a_segment_copy_samples() -> None:
    """Of the sound that enters it: what a shift moved out comes back. A window ends the segment."""
    shift = {"random_shift": {"seconds": [-1.5, 1.5], "fill": "silence"}}
    both = ramp([shift, shift, {"crop_or_pad": {"seconds": 5}}])
    first = both[:, :1] - 1
    place = np.arange(5000)[None, :] + np.where(both[:, :1] > 0, first, -np.argmax(both > 0, 1)[:, None])
    np.testing.assert_array_equal(both, np.where((place >= 0) & (place < FRAMES), place + 1, 0))
    assert (np.argmax(both > 0, 1) > 0).any()
    assert (both[:, 0] > 1).any()
    window = {"crop_or_pad": {"seconds": 2}}
    apart = ramp([window, shift])
    assert apart.max() <= 2000, "the segment ended with the window, so that nothing from behind it enters"


def test_a_window_behind_another_speed_reads_what_the_speed_made() -> None:
    """To the bit, at a part of the cost."""
    speed, window = {"random_speed": {"factor": 0.3}}, {"random_crop": {"seconds": 1}}
    rng = np.random.default_rng(1)
    data = {"sound": rng.normal(size=(COUNT, FRAMES, 1)).astype(np.float32) * 0.1}
    seen = []
    for steps in ([speed, window], [speed, {"random_gain": {"db": 0}}, window]):
        spec = spec_of(steps)
        spec["source"]["arrays"]["features"] = {"sound": {"kind": "audio", "rate": RATE}}
        pipe = pipegen.build(spec | {"output": {"x": "sound", "y": "sound"}}, data=data, runtime={"jit": "never"})
        batch, _ = next(iter(pipe.dataset("train")))
        seen.append((np.asarray(batch), pipe.explain()))
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    assert "resample once" in seen[0][1]
    assert "resample once" not in seen[1][1]


def sinc(sound: Array, places: Array, pace: float) -> Array:
    """NumPy: a windowed sinc of 16 zero crossings, wider above a pace of 1."""
    cutoff = 1 / max(pace, 1.0)
    distance = (np.arange(len(sound))[None, :] - places[:, None]) * cutoff
    weights = np.where(np.abs(distance) < 16, np.sinc(distance) * (0.5 + 0.5 * np.cos(np.pi * distance / 16)) * cutoff, 0)
    return weights @ sound


@pytest.mark.parametrize(("pace", "start"), [(1.25, 30.5), (0.8, -20.0), (1.0, 0.25), (2.5, 100.0)])
def test_a_segment_is_one_reading_by_a_windowed_sinc(pace: float, start: float) -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.waveforms import fixed_step, resampled_by

    sound = np.random.default_rng(2).normal(size=400)
    fixed = [fixed_step(tf.constant([value], tf.float64)) for value in (pace, start)]
    found = resampled_by(tf.constant(sound[None, :, None], tf.float32), fixed[0], 250, 2.5, fixed[1]).numpy()[0, :, 0]
    np.testing.assert_allclose(found, sinc(sound, start + pace * np.arange(250), pace), atol=2e-5)


def test_the_filter_is_wide_enough_where_a_slower_step_does_not_act() -> None:
    slow, fast = (transforms()["random_speed"].model_validate({"factor": factor}) for factor in ([0.4, 0.5], [2, 2.5]))
    refs = tuple(StepRef(step, step.op, ("transforms",), 0, gated=step is slow) for step in (slow, fast))
    assert Retime("sound", refs, None).fastest == 2.5


def test_maps_multiply_as_fractions_do() -> None:
    import tensorflow as tf

    from pipegen.ops.families.sounds import TimeMap

    rng, one = np.random.default_rng(3), 1 << 32
    whole, pace, start = None, Fraction(1), Fraction(0)
    for _ in range(6):
        fixed, shift = int(rng.integers(0.4 * one, 2.5 * one)), int(rng.integers(-3000, 3000))
        own = TimeMap(tf.constant([fixed], tf.int64), tf.constant([shift * one], tf.int64), FRAMES)
        whole = own if whole is None else whole.then(own)
        start, pace = start + pace * shift, pace * Fraction(fixed, one)
        assert abs(float(Fraction(int(whole.pace[0]), one) - pace)) < 1e-8
        assert abs(float(Fraction(int(whole.start[0]), one) - start)) < 1e-4


def test_frames_are_labelled_by_what_overlaps_them() -> None:
    """Samples, and the steps of spectra."""
    for steps, hop in (
        ([{"random_shift": {"seconds": 0.5, "fill": "silence"}}], 1),
        ([{"mel_spectrogram": {"window_ms": 64, "hop_ms": 20}}], 20),
    ):
        encode = {"events": "frames", "name": "frames"}
        plain = examples(built(steps, batch={"size": 4, "remainder": "keep"}))
        pipe = built(steps, output={"x": "sound", "y": ["events", "name"], "encode": encode}, batch={"size": 4, "remainder": "keep"})
        for (sound, happening, named), (_, events, valid, names) in zip(examples(pipe), plain, strict=True):
            due = np.zeros((len(sound), 2), np.float32)
            for (start, end), name in zip(events[valid], names[valid], strict=True):
                due[int(np.rint(start * RATE)) // hop : -(-int(np.rint(end * RATE)) // hop), name] = 1
            np.testing.assert_array_equal(named, due)
            np.testing.assert_array_equal(happening, due.max(1))


def uneven(folder: Path, steps: list[Any], **own: Any) -> Any:
    """A pipeline on sounds of several lengths, each with an event from its 0.1 s to its end, and another one."""
    from pipegen.ops.lowering.sounds import encode_wav

    for length in LENGTHS:
        (folder / f"{length}.wav").write_bytes(encode_wav(np.full((length, 1), 0.5, np.float32), RATE))
    rows = [{"file": f"{n}.wav", "starts": [0.1, 0.15], "ends": [n / RATE, 0.2], "what": ["first", "second"]} for n in LENGTHS]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    features = {
        "sound": {"kind": "audio", "rate": RATE, "column": "file"},
        "events": {"kind": "events", "columns": ["starts", "ends"]},
        "name": {"kind": "label", "column": "what", "with": "events"},
    }
    source = {"jsonl": {"path": str(folder / "t.jsonl"), "features": features}}
    return pipegen.build(spec_of(steps, source=source, shuffle="none", **own), runtime={"jit": "never"})


LENGTHS = [500, 1200, 800, 2000, 1000, 801, 300, 1999]


@pytest.mark.parametrize(
    "batch",
    [
        {"pad": {"to": 800, "longer": "cut"}},
        {"pad": {"sound": {"to": 800, "longer": "cut"}}},
        {"pad": {"longer": "cut"}, "buckets": {"by": "length", "sizes": [400, 800]}},
    ],
)
def test_events_are_cut_with_the_sound_that_padding_cuts(batch: dict[str, Any], tmp_path: Path) -> None:
    output = {"x": ["sound", "sound_length"], "y": ["events", "events_valid", "name"]}
    cut = examples(uneven(tmp_path, [], batch={"size": 4, "remainder": "keep"} | batch, output=output))
    assert sorted(int(length) for _, length, *_ in cut) == sorted(min(length, 800) for length in LENGTHS)
    for sound, length, events, valid, names in cut:
        due = [[0.1, length / RATE], [0.15, 0.2]]
        np.testing.assert_allclose(events[valid], due, atol=1e-6)
        assert not sound[length:].any()
        assert names[valid].tolist() == [0, 1]
    behind = examples(uneven(tmp_path, [], batch={"size": 4, "pad": {"to": 120, "longer": "cut"}}, output=output))
    assert all(valid.tolist() == [True, False] for *_, valid, _ in behind)


@pytest.mark.parametrize("center", [True, False])
def test_events_are_cut_with_spectra_and_nothing_happens_in_their_padding(center: bool, tmp_path: Path) -> None:
    steps = [{"mel_spectrogram": {"window_ms": 64, "hop_ms": 20, "bands": 8, "center": center}}]
    output = {"x": ["sound", "sound_length", "sound_valid"], "y": ["events", "events_valid", "name"]}
    labels = output | {"encode": {"events": "frames", "name": "frames"}, "y": ["events", "name"]}
    pad = {"pad": {"to": 40, "longer": "cut"}}
    plain, framed = (examples(uneven(tmp_path, steps, batch={"size": 4} | pad, output=own)) for own in (output, labels))
    for length, (_, steps_of, there, events, valid, _), (*_, happening, named) in zip(LENGTHS, plain, framed, strict=True):
        frames = 1 + length // 20 if center else 1 + (length - 64) // 20
        assert steps_of == min(frames, 40)
        np.testing.assert_allclose(
            events[valid], [[0.1, min(length / RATE, 0.8) if frames > 40 else length / RATE], [0.15, 0.2]], atol=1e-6
        )
        due = np.zeros(40)
        due[5 : -(-length // 20)] = 1
        np.testing.assert_array_equal(happening, due * there)
        np.testing.assert_array_equal(named[:, 0], due * there)


def test_frames_of_mixed_sounds_are_labelled_to_the_end_of_the_longest(tmp_path: Path) -> None:
    """Padding is that of neither sound alone."""
    batch = {"size": 8, "pad": {"to": "longest"}}
    own: dict[str, Any] = {"batch": batch, "output": {"x": "sound", "y": ["events", "events_valid", "name"]}}
    plain = examples(uneven(tmp_path, [{"mixup": {"alpha": 1}}], **own))
    own["output"] = {"x": "sound", "y": "name", "encode": {"name": "frames"}}
    for (sound, events, valid, names), (_, frames) in zip(plain, examples(uneven(tmp_path, ["mixup"], **own)), strict=True):
        due = np.zeros((2000, 2))
        for (start, end), name in zip(events[valid], names[valid], strict=True):
            due[round(start * RATE) : round(end * RATE), name] = 1
        np.testing.assert_array_equal(frames, due)
        assert frames[:, 0].nonzero()[0].max() == np.abs(sound).nonzero()[0].max()


@pytest.mark.parametrize("longer", ["cut", "error"])
def test_sounds_are_padded_to_their_length_before_they_are_mixed(longer: str, tmp_path: Path) -> None:
    """Whatever later steps make of it."""
    own: dict[str, Any] = {"batch": {"size": 8, "pad": {"to": "longest", "longer": longer}}, "output": {"x": "sound", "y": "events"}}
    plain, slow = (examples(uneven(tmp_path, ["mixup", *steps], **own)) for steps in ([], [{"resample": {"rate": 500}}]))
    assert {len(sound) for sound, _ in plain} == {2000}
    assert {len(sound) for sound, _ in slow} == {1000}
    for (whole, events), (half, others) in zip(plain, slow, strict=True):
        np.testing.assert_array_equal(events, others)
        assert abs(np.abs(half).sum() * 2 - np.abs(whole).sum()) < 30  # nothing is cut off


def test_a_model_of_frames_is_checked() -> None:
    """Each frame has 0 or 1, for each class, or for whatever happens."""
    import keras

    def model(units: int, cut: int = 0, loss: str = "binary_crossentropy") -> Any:
        layers = [keras.layers.Reshape((200, 33)), keras.layers.Cropping1D((0, cut)), keras.layers.Dense(units, "sigmoid")]
        own = keras.Sequential([keras.Input((200, 33, 1)), *layers])
        own.compile(loss=loss)
        return own

    steps = [{"spectrogram": {"window_ms": 64, "hop_ms": 20, "center": "hop"}}]
    for name, units in (("name", 2), ("events", 1)):
        pipe = built(steps, output={"x": "sound", "y": name, "encode": {name: "frames"}}, batch={"size": 4})
        assert "loss: binary_crossentropy\n" in str(pipe)
        assert "the model fits" in pipe.check(model(units))
        with pytest.raises(
            pipegen.ModelMismatchError,
            match=f"the model gives 200×3 for each example, and `{name}` needs 200.*, a row for each step of time",
        ):
            pipe.check(model(3))
        with pytest.raises(pipegen.ModelMismatchError, match="a row for each step of time"):
            pipe.check(model(units, cut=1))
        with pytest.raises(pipegen.ModelMismatchError, match=f"is for classes, but `{name}` has truth values; use binary_crossentropy"):
            pipe.check(model(units, loss="sparse_categorical_crossentropy"))


def test_what_remains_of_an_event_decides_if_it_stays() -> None:
    crop = [{"crop_or_pad": {"seconds": 0.5}}]
    spec = spec_of(crop)
    features = spec["source"]["arrays"]["features"]
    del features["name"]
    data = {"sound": np.zeros((4, FRAMES), np.float32), "events": [np.array([[0.4, 0.6], [0.1, 0.1], [0.0, 2.0], [0.5, 0.5]])] * 4}
    due: list[tuple[dict[str, Any], list[list[float]]]] = [
        ({}, [[0.4, 0.5], [0.1, 0.1], [0.0, 0.5]]),
        ({"min_duration": 0.2}, [[0.0, 0.5]]),
        ({"min_visibility": 0.4}, [[0.4, 0.5], [0.1, 0.1]]),
        ({"max": 2}, [[0.4, 0.5], [0.0, 0.5]]),
        ({"format": "start_duration"}, [[0.4, 0.5], [0.1, 0.2], [0.0, 0.5]]),
    ]
    for rules, left in due:
        features["events"] = {"kind": "events", **rules}
        output = {"x": "sound", "y": ["events", "events_valid"]}
        pipe = pipegen.build(spec | {"output": output}, data=data)
        _, (events, valid) = next(iter(pipe.dataset("train")))
        np.testing.assert_allclose(np.asarray(events)[0][np.asarray(valid)[0]], left, atol=1e-6)
    pipe = pipegen.build(spec | {"output": output | {"events": "start_duration"}}, data=data)
    assert np.allclose(np.asarray(next(iter(pipe.dataset("train")))[1][0])[0, 1], [0.1, 0.1], atol=1e-6)


def test_events_are_times_of_the_file(tmp_path: Path) -> None:
    """Where the sound is a part of it, by numbers or by columns of each row."""
    from pipegen.ops.lowering.sounds import encode_wav

    (tmp_path / "a.wav").write_bytes(encode_wav(np.arange(8000, dtype=np.float32)[:, None] / 8000, RATE))
    rows = ["file,at,long,starts,ends,what", *(f'a.wav,{i},2,"[1.5, 0.5]","[2.0, 3.5]","[""a"", ""b""]"' for i in range(4))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    label = {"kind": "label", "column": "what", "with": "events"}

    def read(**part: Any) -> tuple[Array, ...]:
        sound = {"kind": "audio", "rate": RATE, "column": "file", **part}
        features = {"sound": sound, "events": {"kind": "events", "columns": ["starts", "ends"]}, "what": label}
        spec = spec_of([{"crop_or_pad": {"seconds": 2}}], source={"csv": {"path": str(tmp_path / "t.csv"), "features": features}})
        spec |= {"shuffle": "none", "output": {"x": "sound", "y": ["events", "events_valid", "what"]}}
        sounds, others = next(iter(pipegen.build(spec).dataset("train")))
        return np.asarray(sounds)[:, 0, 0] * 8000, *map(np.asarray, others)

    for part in ({"offset": 1.0}, {"offset": 1.0, "duration": 2.0}, {"offset": 1, "duration": "long"}):
        first, events, valid, what = read(**part)
        np.testing.assert_allclose(first, 1000, atol=0.1)
        np.testing.assert_allclose(events, [[[0.5, 1.0], [0.0, 2.0]]] * 4, atol=1e-6)
        assert valid.all()
        assert (what == [0, 1]).all()
    first, events, valid, what = read(offset="at", duration="long")
    np.testing.assert_allclose(first, [0, 1000, 2000, 3000], atol=0.1)
    np.testing.assert_allclose(events[3], [[0.0, 0.5], [0, 0]], atol=1e-6)
    assert valid.sum(1).tolist() == [2, 2, 1, 1]
    assert what[:, 0].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("events", "rules", "code"),
    [
        ([[0.5, 0.2]], {}, "PG253"),
        ([[-0.1, 0.2]], {}, "PG253"),
        ([[0.1, float("nan")]], {}, "PG419"),
        ([[0.1, -1.0]], {"format": "start_duration"}, "PG253"),
        (np.zeros((0, 2)), {"empty": "refuse"}, "PG254"),
    ],
)
def test_what_is_no_event_is_found(events: Any, rules: dict[str, Any], code: str) -> None:
    spec = spec_of([])
    features = spec["source"]["arrays"]["features"]
    del features["name"]
    features["events"] |= rules
    data = {"sound": np.zeros((4, FRAMES), np.float32), "events": [np.array(events)] * 4}
    with pytest.raises(pipegen.SpecError) as caught:
        pipegen.build(spec | {"output": {"x": "sound", "y": "events"}}, data=data)
    assert code in [finding.code for finding in caught.value.diagnostics]


def test_a_shift_that_wraps_around_is_refused_beside_events() -> None:
    with pytest.raises(pipegen.SpecError) as caught:
        built([{"random_shift": {"seconds": 0.5}}])
    (finding,) = (finding for finding in caught.value.diagnostics if finding.code == "PG203")
    assert "fill: silence" in str(finding.help)
    assert built([{"random_shift": {"seconds": 0.5, "fill": "silence"}}]) is not None


def test_events_move_with_a_sound_that_a_step_names() -> None:
    """Of two sounds, a random step may move one: what happens in it follows."""
    samples, events, _ = sounds()
    features = {name: {"kind": "audio", "rate": RATE} for name in ("sound", "other")} | {"events": {"kind": "events", "of": "sound"}}
    spec = spec_of([{"random_crop": {"seconds": 2, "feature": "sound"}}, {"random_polarity": {"feature": "other"}}])
    spec |= {"source": {"arrays": {"features": features}}, "output": {"x": ["sound", "other"], "y": ["events", "events_valid"]}}
    pipe = pipegen.build(spec, data={"sound": samples, "other": samples, "events": events}, runtime={"jit": "never"})
    for sound, other, own, valid in examples(pipe):
        assert (len(sound), len(other)) == (2000, FRAMES)
        told = [(start, end) for start, end in sorted(own[valid].tolist()) if end - start > 0.1]
        assert np.allclose(told, [stretch for stretch in loud(sound, RATE) if stretch[1] - stretch[0] > 0.1], atol=0.03)


def test_events_need_a_sound() -> None:
    spec = spec_of([])
    spec["source"]["arrays"]["features"]["sound"] = {"kind": "image"}
    with pytest.raises(pipegen.SpecError, match="in which its events happen"):
        pipegen.build(spec, data={})


def test_a_step_along_time_without_a_map_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pitch: list[Any] = [{"random_pitch": {"semitones": 2}}]
    assert built(pitch) is not None
    monkeypatch.setattr(transforms()["random_pitch"], "moves_time", True)
    with pytest.raises(pipegen.SpecError, match="`random_pitch` has no rule for events, and `events` has some"):
        built(pitch)


def test_a_warp_of_spectra_is_refused_and_masks_are_not() -> None:
    spectra: list[Any] = [{"mel_spectrogram": {"window_ms": 64, "hop_ms": 20}}]
    assert built([*spectra, {"spec_augment": {"time": 0.1}}]) is not None
    with pytest.raises(pipegen.SpecError, match="`spec_augment` has no rule for events"):
        built([*spectra, {"spec_augment": {"warp": 5, "time": 0.1}}])


def test_only_events_of_sounds_that_are_mixed_are_joined() -> None:
    """`cutmix` mixes images alone, and has no rule for what happens in a sound beside them."""
    samples, events, _ = sounds()
    data = {"sound": samples, "events": events, "image": np.zeros((COUNT, 8, 8, 3), np.uint8)}
    features = {"sound": {"kind": "audio", "rate": RATE}, "events": {"kind": "events"}, "image": {"kind": "image"}}
    output = {"x": ["image", "sound"], "y": ["events", "events_valid"]}
    spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "batch": {"size": 8}, "output": output}
    stored = {tuple(np.round(one, 3)) for rows in events for one in rows.tolist()}
    for step, most in (({"mixup": {"alpha": 1}}, 4), ({"mixup": {"alpha": 1, "feature": "image"}}, 2)):
        _, (found, valid) = next(iter(pipegen.build(spec | {"transforms": [step]}, data=data).dataset("train")))
        assert found.shape[1] == most
        assert {tuple(np.round(one, 3)) for one in found.numpy()[valid.numpy()].tolist()} <= stored
    spec |= {"transforms": [{"cutmix": {"alpha": 1}}], "output": {**output, "x": "image"}}
    with pytest.raises(pipegen.SpecError, match="no rule to combine `events`"):
        pipegen.build(spec, data=data)


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [("[0.1, 0.2]", "[0.3]", "it has lists of 2 and of 1 item"), ("[0.1, 0.2]", "[0.3, [1]]", "its items are no numbers")],
)
def test_lists_of_other_lengths_are_named(start: str, end: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f'file,start,end\na.wav,"{start}","{end}"\n')
    features = {"sound": {"kind": "audio", "column": "file", "rate": RATE}, "calls": {"kind": "events", "columns": ["start", "end"]}}
    source = {"csv": {"path": str(tmp_path / "t.csv"), "features": features}}
    with pytest.raises(pipegen.SpecError, match=rf"t.csv:2 cannot be `calls`: {why}"):
        pipegen.build(spec_of([{"crop_or_pad": {"seconds": 1}}], source=source, output={"x": "sound", "y": "calls"}))


def found_in(frames: list[Any], hop: float) -> tuple[list[list[float]], list[Any]]:
    """Python: the events of a sound with a label for each frame, and their labels; frame by frame."""
    several = np.ndim(frames) > 1
    tracks = [*zip(*frames, strict=True)] if several else [frames]
    found = []
    for number, track in enumerate(tracks):
        for frame, label in enumerate(track):
            if not label:
                continue
            if frame and track[frame - 1] == label:
                found[-1][1] = frame + 1
            else:
                found.append([frame, frame + 1, number, number if several else label])
    found.sort(key=lambda event: (event[0], event[2]))
    return [[start * hop, end * hop] for start, end, *_ in found], [label for *_, label in found]


LABELS_OF_FRAMES = st.one_of(
    st.lists(st.lists(st.integers(0, 2), max_size=9), min_size=1, max_size=5),
    st.lists(st.lists(st.sampled_from(["", "owl", "fox"]), max_size=9), min_size=1, max_size=5),
    st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)).map(list), max_size=9), min_size=1, max_size=5),
)


@given(LABELS_OF_FRAMES)
def test_neighbouring_frames_with_one_label_are_an_event(sounds: list[list[Any]]) -> None:
    from pipegen.ops.fields.columns import Ragged
    from pipegen.ops.kinds.events import events_of_frames

    full = [np.array(frames) for frames in sounds if frames]
    held = np.concatenate(full) if full else np.zeros(0)
    events, labels = events_of_frames(Ragged(held, np.array([*map(len, sounds)])), 0.25)
    due = [found_in(frames, 0.25) for frames in sounds]
    assert events.lengths.tolist() == [len(times) for times, _ in due]
    assert events.values.tolist() == [time for times, _ in due for time in times]
    assert labels.tolist() == [label for _, own in due for label in own]


def framed(form: str) -> Any:
    """Labels of 200 frames of 20 ms of each sound: 0 for nothing, 1 and 2; or names; or both classes apart, which may overlap."""
    rng = np.random.default_rng(5)
    numbers = np.repeat(rng.integers(0, 3, (COUNT, 40)), 5, axis=1)
    if form == "classes":
        return np.stack([numbers > 0, np.roll(numbers, 3, 1) > 0], -1).astype(np.uint8)
    return np.array(["", "fox", "owl"])[numbers] if form == "names" else numbers


@pytest.mark.parametrize("form", ["numbers", "names", "classes"])
def test_stored_labels_of_frames_come_back_for_frames(form: str) -> None:
    """To the step of a spectrum of the same hop; and shifted by as much as the sound was."""
    frames = framed(form)
    each = {"numbers": {"classes": 3}, "names": {"classes": ["fox", "owl"]}, "classes": {"classes": 2}}[form]
    features = {
        "sound": {"kind": "audio", "rate": RATE},
        "events": {"kind": "events", "hop_ms": 20},
        "name": {"kind": "label", "with": "events", **each},
    }
    spec = spec_of([{"spectrogram": {"window_ms": 64, "hop_ms": 20, "center": "hop"}}], source={"arrays": {"features": features}})
    spec |= {"shuffle": "none", "output": {"x": "sound", "y": "name", "encode": {"name": "frames"}}}
    due = {
        "numbers": lambda: np.eye(3)[frames] * [0, 1, 1],
        "names": lambda: np.stack([frames == "fox", frames == "owl"], -1),
        "classes": lambda: frames,
    }[form]()
    data = {"sound": sounds()[0], "events": frames, "name": frames}
    got = np.stack([y for _, y in examples(pipegen.build(spec, data=data))])
    np.testing.assert_array_equal(got, due)
    moved = spec | {"transforms": [{"crop_or_pad": {"seconds": 3, "align": "end"}}, *spec["transforms"]]}
    got = np.stack([y for _, y in examples(pipegen.build(moved, data=data))])
    np.testing.assert_array_equal(got, due[:, 50:])


@pytest.mark.parametrize(
    ("events", "names", "own", "wrong"),
    [
        ([0, 0.5, 1], [0, 0, 1], {}, "PG431.*row 0 of `events` cannot be `events`: frame 1 holds 0.5"),
        ([[0, 1], [2, 0]], [[0, 1], [1, 0]], {}, "PG431.*frame 1 holds 2; frames of several classes hold 0 or 1"),
        ([0, 1, 1], [0, 1], {}, "PG418.*has 2 frames of `name`, and at least 3 of `events`"),
        ([[0, 1], [1, 0]], [[0, 1], [0, 1]], {}, "PG418.*the frames of `name` have other events than those of `events`"),
        ([0, 1, 1], [0, 1, 1], {"format": "start_end"}, "leave `format` out"),
    ],
)
def test_what_is_no_label_of_frames_is_found(events: Any, names: Any, own: dict[str, Any], wrong: str) -> None:
    spec = spec_of([])
    spec["source"]["arrays"]["features"] |= {
        "events": {"kind": "events", "hop_ms": 20, **own},
        "name": {"kind": "label", "with": "events", "classes": 3},
    }
    data = {"sound": np.zeros((4, FRAMES), np.float32), "events": [np.array(events)] * 4, "name": [np.array(names)] * 4}
    with pytest.raises(pipegen.SpecError, match=wrong):
        pipegen.build(spec, data=data)


def test_labels_of_frames_in_a_table_are_one_column(tmp_path: Path) -> None:
    """As JSON, or numbers between blanks. The end of the sound cuts the last frame."""
    from pipegen.ops.lowering.sounds import encode_wav

    (tmp_path / "a.wav").write_bytes(encode_wav(np.zeros((1050, 1), np.float32), RATE))
    (tmp_path / "t.csv").write_text('file,of\na.wav,"[0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 2]"\na.wav,0 0 2 2 1 1 0 0 0 0 0\n')
    features: dict[str, Any] = {
        "sound": {"kind": "audio", "column": "file", "rate": RATE},
        "calls": {"kind": "events", "column": "of", "hop_ms": 100},
        "which": {"kind": "label", "column": "of", "with": "calls", "classes": 3},
    }
    source = {"csv": {"path": str(tmp_path / "t.csv"), "features": features}}
    spec = spec_of([{"crop_or_pad": {"seconds": 1.05}}], source=source, batch={"size": 2}, shuffle="none")
    spec |= {"output": {"x": "sound", "y": ["calls", "calls_valid", "which"]}}
    _, (calls, _, which) = next(iter(pipegen.build(spec).dataset("train")))
    np.testing.assert_allclose(calls, [[[0.1, 0.3], [1.0, 1.05]], [[0.2, 0.4], [0.4, 0.6]]], atol=1e-6)
    assert np.asarray(which).tolist() == [[1, 2], [2, 1]]
    features["calls"] = {"kind": "events", "columns": ["of", "of"], "hop_ms": 100}
    with pytest.raises(pipegen.SpecError, match="one list with a label for each frame; leave `columns` out"):
        pipegen.build(spec)
