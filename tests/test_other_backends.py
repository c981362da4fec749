"""`numpy()` feeds Keras on JAX and on PyTorch, with TensorFlow kept off the accelerator."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest
from processes import in_process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

BODY = """
import keras
assert keras.backend.backend() == {backend!r}
pipe = pipeline(folder, transforms=STEPS)
batches = pipe.numpy("train")
assert all(type(x) is np.ndarray and type(y) is np.ndarray for x, y in batches)
pipe.seek(0, 0)
fitted = model()
history = fitted.fit(pipe.numpy("train"), validation_data=pipe.numpy("validation"), epochs=3, verbose=0, callbacks=[pipe.callback()])
after = pipe.state()["epoch"]
result = fitted.evaluate(pipe.numpy("validation"), verbose=0)
rows = fitted.predict(pipe.numpy("validation"), verbose=0)
by_hand = []
for x, y in pipe.numpy("train"):
    by_hand.append(float(fitted.train_on_batch(x, y)))
pipe.seek(0, 0)
fitted.fit(pipe.train, epochs=1, verbose=0)
print(json.dumps({{
    "after": after, "losses": history.history["loss"], "val": len(history.history["val_loss"]), "loss": float(np.ravel(result)[0]),
    "rows": len(rows), "by_hand": len(by_hand), "direct": pipe.state()["epoch"], "visible": len(tf.config.get_visible_devices("GPU")),
}}))
"""


@pytest.mark.nightly  # a process of Keras' own, half a minute each; by day `test_jax_batches.py` has JAX train
@pytest.mark.parametrize(("backend", "package"), [("jax", "jax"), ("torch", "torch")])
def test_keras_trains_on_numpy_batches(photo_folder: Path, backend: str, package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    got = in_process(photo_folder, BODY.format(backend=backend), KERAS_BACKEND=backend)
    assert got["after"] == 3
    assert len(got["losses"]) == got["val"] == 3
    assert got["losses"][2] < got["losses"][0]
    assert got["rows"] == 11
    assert got["by_hand"] == 4
    assert got["direct"] == 1
    assert got["visible"] == 0
