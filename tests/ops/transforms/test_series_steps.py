"""The steps on time series, beside NumPy and by their properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from pipegen.errors import OpError
from pipegen.ops.registry import transforms
from pipegen.types import FeatureType

pytestmark = pytest.mark.tf

N, LENGTH, CHANNELS = 5, 40, 3
X = FeatureType("series", "float32", (LENGTH, CHANNELS))


def windows() -> Any:
    return np.random.default_rng(2).normal(size=(N, LENGTH, CHANNELS)).astype(np.float32)


def applied(op: str, values: Any, draws: Any = None, **arguments: Any) -> Any:
    """What a step makes of windows, by draws of its own."""
    step: Any = transforms()[op].model_validate(arguments)
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
