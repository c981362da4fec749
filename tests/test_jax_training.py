"""Keras on JAX trains under `DataParallel` as on one device: on the devices of a process, and in processes that share each batch."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fleet import free_port
from processes import in_process

pytestmark = [
    pytest.mark.tf,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]

FITTING = """
def fitted(pipe, data, **more):
    made = model()
    history = made.fit(data, epochs=2, verbose=0, callbacks=[pipe.callback()], **more)
    return {"loss": history.history["loss"], "weights": [np.asarray(w).tolist() for w in made.get_weights()]}
"""

ONE = (
    FITTING
    + """
import jax, keras
results = {"devices": len(jax.devices())}
pipe = pipeline(folder, transforms=STEPS)
results["alone"] = fitted(pipe, pipe.numpy("train"))
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=keras.distribution.list_devices("cpu")))
for name in ("numpy", "train"):
    pipe = pipeline(folder, transforms=STEPS)
    results[name] = fitted(pipe, pipe.numpy("train") if name == "numpy" else pipe.train)
    results[name + " epoch"] = pipe.state()["epoch"]
print(json.dumps(results))
"""
)

TWO = (
    """
import jax
jax.distributed.initialize({address!r}, 2, {index})
"""
    + FITTING.replace("{", "{{").replace("}", "}}")
    + """
import keras
keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
results = {{"devices": [len(jax.devices()), len(jax.local_devices())]}}
for name in ("train", "numpy"):
    pipe = pipeline(folder, transforms=STEPS)
    results[name] = fitted(pipe, pipe.numpy("train") if name == "numpy" else pipe.train)
results["shard"] = pipe._engine.shard
keras.distribution.set_distribution(keras.distribution.DataParallel())
pipe = pipeline(folder, transforms=STEPS)
try:
    fitted(pipe, pipe.train)
except RuntimeError as error:
    results["twice"] = str(error)
print(json.dumps(results), flush=True)
import os
os._exit(0)
"""
)


def like(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Two trainings come to the same, but for the order of sums."""
    np.testing.assert_allclose(given["loss"], expected["loss"], rtol=1e-5)
    for one, other in zip(given["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def on_four(folder: Path) -> Any:
    return in_process(folder, ONE, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=4")


@pytest.mark.nightly  # by day NumPy batches train Keras on JAX, and sharded arrays are compared with them
def test_four_devices_train_as_one(photo_folder: Path) -> None:
    got = on_four(photo_folder)
    assert got["devices"] == 4
    assert len(got["alone"]["loss"]) == 2
    assert got["alone"]["loss"][0] != got["alone"]["loss"][1]
    for name in ("numpy", "train"):
        like(got[name], got["alone"])
        assert got[name + " epoch"] == 2


@pytest.mark.nightly
def test_two_processes_train_as_one(photo_folder: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    flags = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    results: dict[int, Any] = {}

    def run(index: int) -> None:
        results[index] = in_process(photo_folder, TWO.format(address=address, index=index), **flags)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=250)
    assert len(results) == 2
    alone = on_four(photo_folder)["alone"]
    for index, got in results.items():
        assert got["devices"] == [4, 2]
        assert got["shard"] == [index, 2]
        like(got["train"], alone)
        like(got["numpy"], alone)
        assert "`DataParallel(auto_shard_dataset=False)`" in got["twice"]
