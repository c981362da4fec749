"""Resampling: the filter, against scipy with the same one and against soxr, at static rates and at those of files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.signal
import tensorflow as tf

from pipegen.ops.lowering import resampling
from pipegen.ops.lowering.resampling import BETA, CROSSINGS, ROLLOFF, USUAL, resample

pytestmark = pytest.mark.tf

PAIRS = [(44100, 16000), (48000, 16000), (22050, 16000), (8000, 16000), (16000, 44100), (44100, 48000), (96000, 8000), (11025, 22050)]


def by_scipy(x: Any, before: int, after: int) -> Any:
    """Resamples float64 `(n, frames, channels)` by `resample_poly`, with the filter at all its phases."""
    common = math.gcd(before, after)
    up, down = after // common, before // common
    scale = ROLLOFF * min(1.0, after / before)
    reach = math.ceil(CROSSINGS / scale) * up
    t = np.arange(-reach, reach + 1) / up
    # resample_poly multiplies the filter by `up`, and its passband has a gain of 1.
    window = np.where(
        np.abs(t * scale) < CROSSINGS, np.i0(BETA * np.sqrt(np.maximum(1 - (t * scale / CROSSINGS) ** 2, 0))) / np.i0(BETA), 0
    )
    return scipy.signal.resample_poly(x, up, down, axis=1, window=scale * np.sinc(t * scale) * window / up)


def noise(n: int, frames: int, channels: int) -> Any:
    return np.random.default_rng(frames).normal(0, 0.3, (n, frames, channels)).astype(np.float32)


@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("frames", [1, 777, 9001])
def test_it_is_polyphase_filtering_by_the_filter_that_is_named(before: int, after: int, frames: int) -> None:
    x = noise(2, frames, 2)
    got = resample(tf.constant(x), before, after)
    due = by_scipy(x.astype(np.float64), before, after)
    assert got.shape == due.shape == (2, math.ceil(frames * after / before), 2)
    np.testing.assert_allclose(got, due, atol=2e-6)


@pytest.mark.by_day(4)
@pytest.mark.parametrize(("before", "after"), [*PAIRS, (16000, 16000), (11024, 16000), (44101, 8000), (15999, 16000), (1000, 16)])
def test_the_rate_of_a_file_is_known_when_it_is_read(before: int, after: int) -> None:
    x = noise(1, 3000, 2)
    of_file = tf.function(lambda x, rate: resample(x, rate, after), autograph=False)
    got = of_file(tf.constant(x), tf.constant(before, tf.int64))
    due = x if before == after else by_scipy(x.astype(np.float64), before, after)
    np.testing.assert_allclose(got, due, atol=2e-6)


def test_the_table_is_as_near_as_it_says() -> None:
    """Linear interpolation of the filter between two entries is off by no more than 3e-8, its float32 entries included."""
    table = np.asarray(resampling._filter(), np.float64)
    places = np.random.default_rng(0).uniform(0, CROSSINGS + 1.9, 200_000)
    entry = places * resampling._ENTRIES
    number = entry.astype(int)
    near = table[0][number] + table[1][number] * (entry - number)
    inside = np.sqrt(np.maximum(1 - (places / CROSSINGS) ** 2, 0))
    due = np.where(places < CROSSINGS, np.sinc(places) * np.i0(BETA * inside) / np.i0(BETA), 0)
    assert np.abs(near - due).max() < 6e-8
    far = np.abs(places) > 1  # where float32 rounds little
    assert np.abs(near - due)[far].max() < 3e-8


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("before", "frames"), [(11024, 1), (11024, 11024), (15999, 40), (320_001, 5000), (24001, 30_000)])
def test_a_rate_that_is_not_usual_has_the_same_filter(before: int, frames: int) -> None:
    """Also for sounds shorter than a phase of each place, several of them, of several channels, and over more parts than one."""
    x = noise(3, frames, 2)
    got = resample(tf.constant(x), tf.constant(before, tf.int64), 16000)
    np.testing.assert_allclose(got, by_scipy(x.astype(np.float64), before, 16000), atol=2e-6)


def test_a_saved_graph_resamples(tmp_path: Any) -> None:
    module = tf.Module()
    signature = [tf.TensorSpec([1, None, 1]), tf.TensorSpec([], tf.int64)]
    module.of_file = tf.function(lambda x, rate: resample(x, rate, 16000), input_signature=signature, autograph=False)
    x = tf.constant(noise(1, 500, 1))
    due = module.of_file(x, tf.constant(44100, tf.int64))
    tf.saved_model.save(module, str(tmp_path))
    np.testing.assert_array_equal(tf.saved_model.load(str(tmp_path)).of_file(x, tf.constant(44100, tf.int64)), due)


def test_frames_may_be_unknown_and_xla_compiles_it() -> None:
    x = noise(3, 500, 1)
    due = resample(tf.constant(x), 8000, 16000)
    unknown = tf.function(lambda x: resample(x, 8000, 16000), input_signature=[tf.TensorSpec([None, None, 1])], autograph=False)
    np.testing.assert_allclose(unknown(x), due, atol=1e-6)
    compiled = tf.function(lambda x: resample(x, 8000, 16000), jit_compile=True, autograph=False)
    np.testing.assert_allclose(compiled(tf.constant(x)), due, atol=1e-6)


@pytest.mark.parametrize("rate", [rate for rate in USUAL if rate not in (88200, 192000)])
def test_it_is_near_soxr_for_sound_below_the_cutoff(rate: int) -> None:
    soxr = pytest.importorskip("soxr")
    after, seconds = 16000, 0.5
    time = np.arange(int(rate * seconds)) / rate
    highest = 0.8 * min(rate, after) / 2
    x = sum(np.sin(2 * np.pi * hertz * time + hertz) for hertz in np.linspace(100, highest, 7)) / 10 * np.hanning(len(time))
    got = resample(tf.constant(x[None, :, None], tf.float32), rate, after)[0, :, 0].numpy()
    due = soxr.resample(x, rate, after, quality="VHQ")
    assert abs(len(got) - len(due)) <= 1, "soxr rounds the length"
    inner = slice(200, len(due) - 200)
    np.testing.assert_allclose(got[inner], due[inner], atol=5e-5)


def test_nothing_above_half_the_lower_rate_is_left() -> None:
    time = np.arange(44100) / 44100
    above = np.sin(2 * np.pi * 9000 * time) * np.hanning(len(time))
    left = resample(tf.constant(above[None, :, None], tf.float32), 44100, 16000).numpy()
    assert np.abs(left).max() < 1e-5
