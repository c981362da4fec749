"""`pipe.jax` gives JAX what `pipe.train` gives TensorFlow, on as many devices and processes as a sharding names."""

from __future__ import annotations

import importlib.util
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fleet import free_port
from processes import in_process

pytestmark = [
    pytest.mark.tf,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]

ONE = """
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
pipe = pipeline(folder, transforms=STEPS)
def arrays(batches):
    return [(np.asarray(x), np.asarray(y)) for x, y in batches]
def same(given, expected):
    return len(given) == len(expected) and all((a == c).all() and (b == d).all() for (a, b), (c, d) in zip(given, expected))
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
sharding = NamedSharding(mesh, P("data"))
results = {"devices": len(jax.devices())}
for name, batches in (("alone", pipe.jax("train")), ("sharded", pipe.jax("train", sharding))):
    pipe.seek(0)
    results[name] = same(arrays(batches), arrays(pipe.dataset("train", epoch=0))) and pipe.state()["epoch"] == 1
    iterator = iter(batches)
    x, _ = next(iterator)
    results[name + " step"] = pipe.state()["step"]
    results[name + " devices"] = len(x.sharding.device_set)
results["shard"] = [s.data.shape[0] for s in x.addressable_shards]
results["length"] = len(batches)
try:
    pipe.jax("validation", sharding)
except ValueError as error:
    results["short"] = str(error)
results["validation"] = same(arrays(pipe.jax("validation")), arrays(pipe.dataset("validation")))
import pipegen
padded = pipeline(folder, transforms=STEPS, batch={"size": 8, "remainder": {"validation": "pad"}})
results["padded"] = [w.shape for _, _, w in padded.jax("validation", sharding)]
print(json.dumps(results))
"""

TWO = """
import jax
jax.distributed.initialize({address!r}, 2, {index})
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
pipe = pipeline(folder, transforms=STEPS)
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
x, y = next(iter(pipe.jax("train", sharding)))
whole = next(iter(pipe.dataset("train", epoch=0, shard=(0, 1))))
held = [(s.index[0].indices(8)[:2], np.asarray(s.data)) for s in x.addressable_shards]
print(json.dumps({{
    "engine": pipe._engine.shard, "shape": x.shape, "rows": [list(at) for at, _ in held],
    "same": all(np.abs(rows - whole[0].numpy()[a:b]).max() < 1e-5 for (a, b), rows in held),
    "auto": float(np.abs(np.asarray(next(iter(pipe.jax("train")))[0]) - whole[0].numpy()[4 * {index}:][:4]).max()),
}}))
"""


@pytest.mark.nightly
def test_a_sharding_says_where_the_rows_lie(photo_folder: Path) -> None:
    flags = "--xla_force_host_platform_device_count=4"
    got = in_process(photo_folder, ONE, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    assert got["devices"] == 4
    assert got["alone"]
    assert got["sharded"]
    assert (got["alone step"], got["sharded step"]) == (1, 1)
    assert (got["alone devices"], got["sharded devices"]) == (1, 4)
    assert got["shard"] == [4, 4, 4, 4]
    assert got["length"] == 4
    assert "has 3 examples, which do not divide among 2 devices" in got["short"]
    assert "remainder: {validation: pad}" in got["short"]
    assert got["validation"]
    assert got["padded"] == [[8], [8]]


@pytest.mark.nightly
def test_each_process_makes_its_rows_alone(photo_folder: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    results: dict[int, Any] = {}

    def run(index: int) -> None:
        body = TWO.format(address=address, index=index)
        results[index] = in_process(photo_folder, body, JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=2")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=250)
    assert len(results) == 2, json.dumps(results)
    for index, got in results.items():
        assert got["engine"] == [index, 2]
        assert got["shape"] == [8, 24, 24, 3]
        assert got["rows"] == [[4 * index, 4 * index + 2], [4 * index + 2, 4 * index + 4]]
        assert got["same"]
        assert got["auto"] == 0
