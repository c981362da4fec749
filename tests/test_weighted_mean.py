"""`pipegen.WeightedMean` is the mean over real examples, wherever they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from processes import in_process

pytestmark = pytest.mark.tf

BODY = """
import keras, pipegen
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration() for _ in range(4)])
cross = keras.losses.SparseCategoricalCrossentropy(reduction="none")

def trained(pipe, replicas):
    pipe.seek(0)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    with strategy.scope():
        fitted = model()
        fitted.compile(keras.optimizers.SGD(0.01), pipegen.WeightedMean("sparse_categorical_crossentropy"))
    fitted.fit(pipe.distribute(strategy), epochs=1, verbose=0)
    assert pipe.state()["epoch"] == 1
    return [np.array(w) for w in fitted.get_weights()]

def by_hand(pipe):
    made, optimizer = model(), keras.optimizers.SGD(0.01)
    for x, y, *w in pipe.dataset("train", epoch=0):
        real = w[0].numpy() > 0 if w else np.ones(len(y), bool)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(cross(y[real], made(x[real])))
        optimizer.apply(tape.gradient(loss, made.trainable_variables), made.trainable_variables)
    return [np.array(w) for w in made.get_weights()]

results = {}
for batch in ({"size": 12, "remainder": "pad"}, {"size": 11, "remainder": "keep"}):
    pipe = pipeline(folder, transforms=STEPS, batch=batch)
    expected = by_hand(pipe)
    for replicas in REPLICAS:
        weights = trained(pipe, replicas)
        results[f"{batch['remainder']} {replicas}"] = max(float(np.abs(a - b).max()) for a, b in zip(weights, expected))
print(json.dumps(results))
"""


@pytest.mark.nightly  # by day it is Keras' loss, on one device
@pytest.mark.parametrize("replicas", [[1, 4], *(pytest.param([n], marks=pytest.mark.nightly) for n in (2, 3))], ids=str)
def test_padding_and_replicas_change_no_gradient(photo_folder: Path, replicas: list[int]) -> None:
    """Nor does a batch that replicas do not divide, be it the first one, at which Keras looks."""
    got = in_process(photo_folder, BODY.replace("REPLICAS", str(replicas)))
    assert len(got) == 2 * len(replicas)
    assert max(got.values()) < 1e-6


def test_it_is_kerass_loss_without_padding_and_is_saved_with_a_model() -> None:
    import keras

    import pipegen

    rng = np.random.default_rng(0)
    y, scores, weights = rng.integers(0, 3, 8), rng.random((8, 3)).astype("float32"), rng.random(8).astype("float32")
    plain = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    loss = pipegen.WeightedMean(plain)
    assert float(loss(y, scores)) == pytest.approx(float(plain(y, scores)), rel=1e-6)
    each = np.array(plain.call(y, scores))
    assert float(loss(y, scores, weights)) == pytest.approx(float((each * weights).sum() / weights.sum()), rel=1e-5)
    assert float(loss(y, scores, 0 * weights)) == 0
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert float(again(y, scores, weights)) == float(loss(y, scores, weights))
    pixels, masks = rng.random((2, 4, 4, 3)).astype("float32"), rng.integers(0, 3, (2, 4, 4))
    by_image = pipegen.WeightedMean(plain)(masks, pixels, np.array([1.0, 0.0], "float32"))
    assert float(by_image) == pytest.approx(float(plain(masks[:1], pixels[:1])), rel=1e-6)
