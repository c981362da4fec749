"""`timeseries_dataset_from_array` gives the batches of Keras' utility."""

from __future__ import annotations

from itertools import product
from typing import Any

import keras
import numpy as np
import pytest

from pipegen.compat import timeseries_dataset_from_array
from pipegen.compat.checks import UnsupportedArgument

pytestmark = pytest.mark.tf

ROWS = 50


def batches(dataset: Any) -> list[tuple[Any, ...]]:
    """The batches of a dataset, as tuples of arrays."""
    return [tuple(part.numpy() for part in (batch if isinstance(batch, tuple) else (batch,))) for batch in dataset]


def equal(ours: Any, theirs: Any) -> None:
    """The same batches, to the bit and with the same dtypes."""
    ours, theirs = batches(ours), batches(theirs)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for own, due in zip(one, other, strict=True):
            assert own.dtype == due.dtype
            np.testing.assert_array_equal(own, due)


GRID = [*product((1, 7), (1, 4), (1, 3), (None, 5), (None, 41), (1, 6))]


@pytest.mark.parametrize("with_targets", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_batches_are_those_of_keras_for_all_arguments(with_targets: bool) -> None:
    data = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
    targets = np.arange(ROWS, dtype=np.int64) if with_targets else None
    for length, stride, rate, start, end, size in GRID[:: 1 if with_targets else 5]:  # by day, other tests have targets
        given = {"sequence_length": length, "sequence_stride": stride, "sampling_rate": rate, "start_index": start, "end_index": end}
        equal(
            timeseries_dataset_from_array(data, targets, batch_size=size, **given),
            keras.utils.timeseries_dataset_from_array(data, targets, batch_size=size, **given),
        )


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "int16", "bool", "float16"])
def test_values_keep_their_dtype_and_shape(dtype: str) -> None:
    for shape in ((ROWS,), (ROWS, 2, 3)):
        data = (np.random.default_rng(0).normal(size=shape) * 9).astype(dtype)
        equal(
            timeseries_dataset_from_array(data[:-10], data[10:], 10, batch_size=8),
            keras.utils.timeseries_dataset_from_array(data[:-10], data[10:], 10, batch_size=8),
        )


@pytest.mark.parametrize("number", [int, float])
def test_lists_have_the_dtypes_of_keras(number: type) -> None:
    data = [number(i) for i in range(ROWS)]
    equal(timeseries_dataset_from_array(data, data, 5), keras.utils.timeseries_dataset_from_array(data, data, 5))


def test_fewer_targets_end_the_windows() -> None:
    data = np.arange(ROWS, dtype=np.float32)
    equal(timeseries_dataset_from_array(data, data[30:], 5), keras.utils.timeseries_dataset_from_array(data, data[30:], 5))
    with pytest.raises(ValueError, match="`targets` has 20 rows"):
        timeseries_dataset_from_array(data, data[30:], 5, start_index=10)


def test_single_windows() -> None:
    data = np.arange(ROWS, dtype=np.float32)
    ours = timeseries_dataset_from_array(data, None, 5, batch_size=None)
    equal(ours, keras.utils.timeseries_dataset_from_array(data, None, 5, batch_size=None))
    assert len(ours) == ROWS - 4


def test_shuffled_windows_are_all_and_in_a_new_order() -> None:
    data = np.arange(ROWS, dtype=np.float32)
    ours = timeseries_dataset_from_array(data, data, 5, batch_size=8, shuffle=True, seed=3)
    first, second = ([float(x[0]) for batch in batches(ours) for x in batch[0]] for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second) == [*range(ROWS - 4)]
    again = timeseries_dataset_from_array(data, data, 5, batch_size=8, shuffle=True, seed=3)
    assert [float(x[0]) for batch in batches(again) for x in batch[0]] == first
    assert all((x[:, 0] == y).all() for x, y in batches(ours))


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_index": -1},
        {"start_index": ROWS},
        {"end_index": ROWS},
        {"end_index": 0, "start_index": 3},
        {"sampling_rate": 0},
        {"sequence_stride": ROWS},
        {"sequence_length": ROWS + 1},
        {"sequence_length": 0},
        {"batch_size": 0},
        {"format": "torch"},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any]) -> None:
    data = np.arange(ROWS, dtype=np.float32)
    with pytest.raises(ValueError):  # noqa: PT011 - the message of each is its own
        timeseries_dataset_from_array(data, None, **{"sequence_length": 5, **wrong})


def test_text_is_refused() -> None:
    with pytest.raises(UnsupportedArgument, match="pass numbers"):
        timeseries_dataset_from_array(np.array(["a"] * ROWS), None, 5)


def test_a_model_trains_on_it() -> None:
    wave = np.sin(np.arange(400) / 5).astype(np.float32)
    data = timeseries_dataset_from_array(wave[:-8], wave[8:], 8, batch_size=32, shuffle=True, seed=0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    losses = model.fit(data, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert data.pipeline.spec.model.source.op == "series"
