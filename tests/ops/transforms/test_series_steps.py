"""The steps on time series, beside NumPy and by their properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from pipegen.errors import OpError
from pipegen.ops.kinds.series import OnSteps
from pipegen.ops.registry import transforms
from pipegen.types import FeatureType

pytestmark = pytest.mark.tf

N, LENGTH, CHANNELS = 5, 40, 3
X = FeatureType("series", "float32", (LENGTH, CHANNELS))


def windows() -> Any:
    return np.random.default_rng(2).normal(size=(N, LENGTH, CHANNELS)).astype(np.float32)


def applied(op: str, values: Any, draws: Any = None, **arguments: Any) -> Any:
    """What a step makes of windows, by draws of its own."""
    step: Any = transforms()[op].model_validate(arguments).on(X.with_(shape=values.shape[1:]))
    u = np.random.default_rng(7).random((len(values), step.num_draws())) if draws is None else draws
    return step.apply(tf.constant(values), *step.parameters(tf.constant(u, tf.float64), *values.shape[1:])).numpy()


def test_jitter_is_normal_and_of_the_drawn_spread() -> None:
    values = np.zeros((200, LENGTH, CHANNELS), np.float32)
    noise = applied("random_jitter", values, std=[0.5, 0.5])
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - 0.5) < 0.02
    assert len(np.unique(noise[0])) > LENGTH


def test_scale_has_one_factor_for_a_series_or_each_channel() -> None:
    values = windows()
    for each, axis in (("series", (1, 2)), ("channel", 1)):
        factors = applied("random_scale", values, factor=0.2, each=each) / values
        assert (np.ptp(factors, axis=axis) < 1e-5).all()
        assert 0.8 <= factors.min() < factors.max() <= 1.2
    assert np.ptp((applied("random_scale", values, factor=0.2, each="channel") / values)[0, 0]) > 1e-3


def test_mask_replaces_stretches_in_all_channels() -> None:
    values = windows()
    found = applied("random_mask", values, fraction=[0.25, 0.25], spans=1, value=-7)
    hidden = found == -7
    assert (hidden.all(2) == hidden.any(2)).all()
    assert (hidden.all(2).sum(1) == LENGTH // 4).all()
    assert all(np.ptp(np.flatnonzero(own)) == LENGTH // 4 - 1 for own in hidden[..., 0])
    np.testing.assert_array_equal(found[~hidden], values[~hidden])


@pytest.mark.parametrize("lag", [1, 7])
def test_difference_is_that_of_numpy(lag: int) -> None:
    values = windows()
    np.testing.assert_array_equal(applied("difference", values, lag=lag), values[:, lag:] - values[:, :-lag])
    assert transforms()["difference"].model_validate({"lag": lag}).infer(X).shape == (LENGTH - lag, CHANNELS)
    with pytest.raises(OpError, match="leaves nothing"):
        transforms()["difference"].model_validate({"lag": LENGTH}).infer(X)


def filled(values: Any, method: str, value: float) -> Any:
    """What pandas would make of each channel of each window, by hand."""
    found = values.copy()
    for own in found.transpose(0, 2, 1).reshape(-1, values.shape[1]):
        known = np.flatnonzero(~np.isnan(own))
        for time in np.flatnonzero(np.isnan(own)):
            if method == "value" or not len(known):
                new = value
            elif method == "linear":
                new = np.interp(time, known, own[known])
            else:
                new = own[known[known < time][-1]] if (known < time).any() else own[known[0]]
            own[time] = new
    return found


@pytest.mark.parametrize("method", ["forward", "linear", "value"])
def test_missing_values_are_filled_within_their_window(method: str) -> None:
    values = windows()
    values[np.random.default_rng(0).random(values.shape) < 0.4] = np.nan
    values[1, :, 0], values[2, 5:, 1], values[3, :9, 2] = np.nan, np.nan, np.nan
    due = np.empty_like(values)
    for i in range(N):
        for channel in range(CHANNELS):
            due[i, :, channel] = filled(values[i : i + 1, :, channel : channel + 1], method, -2)[0, :, 0]
    np.testing.assert_allclose(applied("fill_missing", values, method=method, value=-2), due, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("op", "given"), [("random_time_warp", {"factor": 0.5}), ("random_window_warp", {"fraction": 0.3})])
def test_warps_keep_the_ends_and_the_order_of_time(op: str, given: dict[str, Any]) -> None:
    time = np.broadcast_to(np.arange(LENGTH, dtype=np.float32)[None, :, None], (50, LENGTH, 1))
    found = applied(op, time, **given)[..., 0]
    np.testing.assert_allclose(found[:, 0], 0, atol=1e-4)
    np.testing.assert_allclose(found[:, -1], LENGTH - 1, atol=1e-4)
    assert (np.diff(found, axis=1) > 0).all()
    assert np.abs(found - time[..., 0]).max() > 1
    assert len(np.unique(found[:, LENGTH // 2])) > 40


def test_a_window_warp_changes_the_speed_of_one_part() -> None:
    time = np.arange(101, dtype=np.float32)[None, :, None]
    found = applied("random_window_warp", time, np.array([[1.0, 0.5]]), fraction=0.2, factor=[0.5, 2.0])[0, :, 0]
    shown = np.interp(np.arange(101), np.array([0, 40, 80, 120]) * 100 / 120, [0, 40, 60, 100])
    np.testing.assert_allclose(found, shown, atol=1e-3)


def test_a_warp_by_one_speed_changes_nothing() -> None:
    values = windows()
    np.testing.assert_allclose(applied("random_time_warp", values, factor=[1, 1]), values, atol=1e-5)


@pytest.mark.parametrize("op", ["random_jitter", "random_scale", "random_time_warp"])
def test_steps_refuse_other_kinds(op: str) -> None:
    step = transforms()[op].model_validate({"std": 1} if op == "random_jitter" else {"factor": 0.1})
    with pytest.raises(OpError, match="has no rule for a feature of kind `image`"):
        step.infer(FeatureType("image", "float32", (4, 4, 3)))


def gaps() -> Any:
    values = windows()
    values[np.random.default_rng(1).random(values.shape) < 0.3] = np.nan
    return values


@pytest.mark.parametrize("length", [1, 2, 7, 14, 39, 40, 41, 79, 200])
@pytest.mark.parametrize("missing", [False, True])
def test_a_length_is_reached_by_linear_interpolation_as_numpy_does(length: int, missing: bool) -> None:
    values = gaps() if missing else windows()
    places = np.linspace(0, LENGTH - 1, length)
    due = np.stack([[np.interp(places, np.arange(LENGTH), own) for own in one.T] for one in values.astype(np.float64)]).transpose(0, 2, 1)
    found = applied("resample", values, length=length)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(due))
    np.testing.assert_allclose(found, due, atol=2e-6)
    assert transforms()["resample"].model_validate({"length": length}).on(X).infer(X).shape == (length, CHANNELS)


@pytest.mark.parametrize("every", [1, 2, 3, 7, 39, 40, 50])
def test_means_of_steps_are_those_of_pandas(every: int) -> None:
    pandas = pytest.importorskip("pandas")
    values = gaps()
    values[0, :, 0] = np.nan
    hours = pandas.date_range("2024-01-01", periods=LENGTH, freq="h")
    due = np.stack([pandas.DataFrame(one, hours).resample(f"{every}h").mean() for one in values])
    np.testing.assert_allclose(applied("resample", values, every=every), due, rtol=1e-5, atol=1e-6)
    if LENGTH % every == 0:
        again = applied("resample", values, length=LENGTH // every, method="mean")
        np.testing.assert_array_equal(again, applied("resample", values, every=every))


@pytest.mark.parametrize("length", [1, 3, 7, 23, 40])
def test_means_of_another_length_take_each_step_once(length: int) -> None:
    values = windows()
    bins = np.arange(LENGTH) * length // LENGTH
    due = np.stack([values[:, bins == i].mean(1) for i in range(length)], 1)
    np.testing.assert_allclose(applied("resample", values, length=length, method="mean"), due, atol=1e-6)


FOLLOWING = [("resample", {"length": 17}), ("resample", {"every": 6}), ("difference", {"lag": 3}), ("random_time_warp", {"factor": 0.4})]


@pytest.mark.parametrize(("op", "given"), FOLLOWING)
def test_a_value_counts_as_observed_unless_it_would_be_missing(op: str, given: dict[str, Any]) -> None:
    values = gaps()
    values[:2, 3:15] = np.nan
    step: Any = transforms()[op].model_validate(given)
    u = tf.constant(np.random.default_rng(7).random((N, step.num_draws())))
    of_mask = step.on(X.with_(details=OnSteps("observed")))
    seen = of_mask.apply(tf.constant(1.0 - np.isnan(values), tf.float32), *of_mask.parameters(u, LENGTH, CHANNELS)).numpy()
    np.testing.assert_array_equal(seen, 1.0 - np.isnan(step.on(X).apply(tf.constant(values), *step.on(X).parameters(u, LENGTH, CHANNELS))))
    assert set(np.unique(seen)) == {0, 1}


def test_classes_and_times_of_new_steps() -> None:
    x = FeatureType("timestep_label", "int64", (8,), details=OnSteps("classes"))
    labels = np.array([[2, 2, 1, 1, 0, 1, 1, 3]], np.int64)
    times = np.arange(8, dtype=np.float32)[None, :, None]

    def of(what: FeatureType, values: Any, op: str, **given: Any) -> Any:
        step: Any = transforms()[op].model_validate(given).on(what)
        found = step.apply(tf.constant(values))
        assert step.infer(what).shape[0] == found.shape[1]
        return found.numpy().ravel().tolist()

    moments = X.with_(shape=(8, 1), details=OnSteps("times"))
    assert of(x, labels, "resample", every=4) == [2, 1]  # the first of two as frequent
    assert of(x, labels, "resample", every=3) == [2, 1, 1]  # the last stretch has two steps, as frequent
    assert of(moments, times, "resample", every=3) == [0, 3, 6]
    assert of(x, labels, "resample", length=3) == [2, 1, 3]
    assert of(moments, times, "resample", length=3) == [0, 3, 7]  # of 3.5, the first of two as near
    assert of(x, labels, "difference", lag=2) == [1, 1, 0, 1, 1, 3]
    assert of(moments, times, "difference", lag=2) == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give `rate` for sound, or `length` or `every` for a series"),
        ({"length": 3, "every": 2}, "give `rate` for sound"),
        ({"rate": 8000, "method": "mean"}, "`method` is for a series"),
        ({"every": 2, "method": "linear"}, "`every` takes means"),
    ],
)
def test_resample_says_which_arguments_fit(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        transforms()["resample"].model_validate(given)


def test_resample_is_told_apart_by_kinds() -> None:
    with pytest.raises(OpError, match="changes series by their `length` or `every`"):
        transforms()["resample"].model_validate({"rate": 8000}).infer(X)
    with pytest.raises(OpError, match="cannot make 41 means of 40 time steps"):
        transforms()["resample"].model_validate({"length": 41, "method": "mean"}).on(X).infer(X)


def test_differences_and_means_of_whole_numbers_are_exact() -> None:
    """Integers up to 16,777,216 are float32 to the bit, and so is what these steps make of them, if it is such an integer again."""
    values = np.random.default_rng(4).integers(0, 2**22, (N, LENGTH, CHANNELS)) * 4.0
    whole = values.astype(np.float32)
    np.testing.assert_array_equal(applied("difference", whole, lag=5), values[:, 5:] - values[:, :-5])
    np.testing.assert_array_equal(applied("resample", whole, every=4), values.reshape(N, -1, 4, CHANNELS).mean(2))
    np.testing.assert_array_equal(applied("resample", whole, length=1 + (LENGTH - 1) * 2)[:, ::2], values)
