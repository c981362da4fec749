"""`Iterator` as a base for classes that make batches in Python, as Keras' own is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipegen import compat
from pipegen.compat import ImageDataGenerator, UnsupportedArgument

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

Array = np.ndarray[Any, Any]
VALUES = np.arange(7.0)


def derived(base: type) -> type:
    """A class as people wrote them."""

    class Rows(base):  # type: ignore[misc]
        def __init__(self, values: Array, generator: Any, batch_size: int, shuffle: bool = False, seed: int | None = None) -> None:
            self.values, self.generator = values, generator
            super().__init__(len(values), batch_size, shuffle, seed)

        def _get_batches_of_transformed_samples(self, index_array: Array) -> Any:
            images = np.stack([np.full((4, 4, 1), self.values[i], np.float32) for i in index_array])
            turned = [self.generator.get_random_transform((4, 4, 1))["theta"] for _ in index_array]
            return images, np.array([[self.values[i], t] for i, t in zip(index_array, turned, strict=True)])

    return Rows


@pytest.fixture(scope="module")
def keras_image() -> Any:
    from keras.src.legacy.preprocessing import image

    return image


def test_a_class_of_ones_own_gives_what_it_gives_on_keras(keras_image: Any) -> None:
    """The same batches, orders and draws for the same seed, by `next` and by index."""
    flows = [
        derived(base)(VALUES, generator(rotation_range=20), 3, shuffle=True, seed=5)
        for base, generator in ((compat.Iterator, ImageDataGenerator), (keras_image.Iterator, keras_image.ImageDataGenerator))
    ]
    ours, theirs = ([[next(flow) for _ in range(7)], [flow[i] for i in (2, 0, 1)]] for flow in flows)
    for mine, other in zip([*ours[0], *ours[1]], [*theirs[0], *theirs[1]], strict=True):
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)
    for name in ("n", "batch_size", "shuffle", "seed", "batch_index", "total_batches_seen"):
        assert getattr(flows[0], name) == getattr(flows[1], name), name
    np.testing.assert_array_equal(flows[0].index_array, flows[1].index_array)
    assert len(flows[0]) == len(flows[1]) == 3
    for flow in flows:
        flow.reset()
        assert flow.batch_index == 0
        with pytest.raises(ValueError, match="3"):
            flow[3]


def test_fit_takes_it() -> None:
    import keras

    class Seen(keras.Model):
        def call(self, x: Any) -> Any:
            return keras.ops.mean(x, (1, 2, 3))

        def train_step(self, data: Any) -> dict[str, Any]:
            seen.append(np.asarray(data[1])[:, 0])
            return {"loss": 0.0}

    seen: list[Array] = []
    model = Seen()
    model.compile(run_eagerly=True)
    flow = derived(compat.Iterator)(VALUES, ImageDataGenerator(), 3, shuffle=True)
    model.fit(flow, epochs=2, verbose=0)
    epochs = [np.concatenate(seen[:3]), np.concatenate(seen[3:])]
    assert [sorted(e) for e in epochs] == [VALUES.tolist()] * 2
    assert epochs[0].tolist() != epochs[1].tolist()
    np.testing.assert_allclose(model.predict(derived(compat.Iterator)(VALUES, ImageDataGenerator(), 3), verbose=0), VALUES)
    with pytest.raises(UnsupportedArgument, match="Rows"):
        flow.take(1)


def test_old_classes_override_next() -> None:
    class Old(compat.Iterator):
        def next(self) -> Any:
            with self.lock:
                indices = next(self.index_generator)
            return VALUES[indices]

    flow = Old(7, 3, False, None)
    walk = iter(flow)
    np.testing.assert_array_equal(np.concatenate([next(walk) for _ in range(3)]), VALUES)
    np.testing.assert_array_equal(next(flow), VALUES[:3])


def test_nothing_is_there() -> None:
    for batch_size in (0, 4):
        assert next(compat.Iterator(0, batch_size, False, 0).index_generator).size == 0
    with pytest.raises(NotImplementedError, match="_get_batches_of_transformed_samples"):
        next(compat.Iterator(3, 2, False, None))


def test_flows_are_not_turned_to_other_rows() -> None:
    flow = compat.NumpyArrayIterator(np.zeros((5, 4, 4, 3), np.uint8), np.arange(5), None, 2, shuffle=True, seed=3)
    with pytest.raises(UnsupportedArgument, match=r"`_set_index_array`: .*`flow_from_dataframe`"):
        flow._set_index_array()
    with pytest.raises(UnsupportedArgument, match="`_get_batches_of_transformed_samples`"):
        flow._get_batches_of_transformed_samples(np.arange(2))


@pytest.mark.nightly
def test_the_order_of_the_open_epoch_is_known() -> None:
    """`it.filenames[it.index_array]`, as people found out what a shuffled iterator had given."""
    y = np.arange(7) * 10
    flow = compat.NumpyArrayIterator(np.zeros((7, 4, 4, 3), np.uint8), y, None, 3, shuffle=True, seed=3)
    orders = []
    for _ in range(2):
        order = flow.index_array
        np.testing.assert_array_equal(np.concatenate([flow[i][1] for i in range(3)]), y[order])
        np.testing.assert_array_equal(np.concatenate([next(flow)[1] for _ in range(3)]), y[order])
        orders.append(order.tolist())
    assert orders[0] != orders[1]
    np.testing.assert_array_equal(compat.NumpyArrayIterator(np.zeros((4, 4, 4, 3), np.uint8), None, None).index_array, range(4))
