"""`pipe.distribute` gives the replicas of a strategy the parts of one process' batches."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fleet import free_port
from processes import in_process

pytestmark = pytest.mark.tf

MIRRORED = """
import pipegen
pipe = pipeline(folder, transforms=STEPS)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
results = {}
batches = pipe.distribute(strategy)
pipe.seek(0)
def joined(value):
    return np.concatenate([t.numpy() for t in strategy.experimental_local_results(value)])
for epoch in range(2):
    expected = list(pipe.dataset("train", epoch=epoch))
    given = list(batches)
    results[f"epoch {epoch}"] = len(given) == len(expected) and all(
        (joined(x) == image.numpy()).all() and (joined(y) == label.numpy()).all()
        for (x, y), (image, label) in zip(given, expected)
    )
results["devices"] = [t.device[-5:] for t in strategy.experimental_local_results(given[0][0])]
iterator = iter(batches)
next(iterator)
results["state"] = [pipe.state()["epoch"], pipe.state()["step"]]

def trained(data, scope, **more):
    import keras
    with scope:
        fitted = model()
    history = fitted.fit(data, epochs=2, verbose=0, **more)
    return history.history["loss"], [float(np.square(w).sum()) for w in fitted.get_weights()], fitted
import contextlib
pipe.seek(0)
one, weights, _ = trained(pipe.train, contextlib.nullcontext())
pipe.seek(0)
both, shared, fitted = trained(batches, strategy.scope(), validation_data=pipe.distribute(strategy, "validation"))
results["loss"] = [abs(a - b) for a, b in zip(one, both)]
results["weights"] = [abs(a - b) / (1e-9 + abs(a)) for a, b in zip(weights, shared)]
results["epochs"] = pipe.state()["epoch"]
given = fitted.evaluate(pipe.distribute(strategy, "validation"), verbose=0)
results["evaluation"] = abs(given - fitted.evaluate(pipe.validation, verbose=0))
import logging
said = []
logging.getLogger("pipegen").addHandler(type("Kept", (logging.Handler,), {"emit": lambda self, record: said.append(record.getMessage())})())
odd = pipeline(folder, transforms=STEPS, batch={"size": 7}).distribute(strategy)
results["odd"] = [[len(part) for part in strategy.experimental_local_results(y)] for _, y in odd]
with strategy.scope():
    pipeline(folder, transforms=STEPS, batch={"size": 10, "remainder": "keep"}, splits={"parts": {"train": 31, "validation": 12}})
results["warned"] = [line for line in said if "PG667" in line]
# epochs of two steps, which a strategy reads ahead
few = pipeline(folder, transforms=STEPS, batch={"size": 16})
for name, data in (("ahead", few.train), ("ahead, mapped", few.train.map(lambda x, y: (x, y)))):
    try:
        trained(data, strategy.scope())
    except Exception as error:
        results[name] = f"{type(error).__name__}: {error}"
epochs = []
with strategy.scope():
    counted = model()
import keras
noting = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epochs.append(few.state()["epoch"]))
counted.fit(few.train, epochs=2, verbose=0, callbacks=[few.callback(), noting])
few.seek(0)
counted.fit(few.distribute(strategy), epochs=2, verbose=0, callbacks=[noting])
results["counted"] = epochs
for name, wrong in (("no strategy", "mirrored"), ("servers", object.__new__(tf.distribute.ParameterServerStrategy))):
    try:
        pipe.distribute(wrong)
    except (TypeError, ValueError) as error:
        results[name] = str(error)
print(json.dumps(results))
"""

WORKER = """
import os
os.environ["TF_CONFIG"] = json.dumps({{"cluster": {{"worker": {addresses}}}, "task": {{"type": "worker", "index": {index}}}}})
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
pipe = pipeline(folder, transforms=STEPS)
results = {{"share": pipe._engine.shard, "replicas": strategy.num_replicas_in_sync}}
try:
    iter(strategy.experimental_distribute_dataset(pipe.train))
except RuntimeError as error:
    results["twice"] = str(error)
try:
    iter(strategy.experimental_distribute_dataset(pipe.train.map(lambda x, y: (x, y))))
except RuntimeError as error:
    results["twice, mapped"] = str(error)
with strategy.scope():
    fitted = model()
try:
    fitted.fit(pipe.distribute(strategy), verbose=0)
except RuntimeError as error:
    results["fit"] = str(error)

@tf.function
def total(x):
    def one(part):
        return tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(part))
    return strategy.run(one, args=(x,))

whole = [float(x.numpy().sum()) for x, _ in pipe.dataset("train", epoch=0, shard=(0, 1))]
sums, rows = [], []
for x, y in pipe.distribute(strategy):
    sums.append(float(strategy.experimental_local_results(total(x))[0]))
    rows.append(int(strategy.experimental_local_results(y)[0].shape[0]))
results |= {{"off": max(abs(a - b) / (1 + abs(b)) for a, b in zip(sums, whole)), "steps": len(sums), "rows": rows}}
print(json.dumps(results), flush=True)
os._exit(0)
"""


@pytest.mark.nightly  # by day a mirrored strategy trains on each example once
def test_replicas_take_the_parts_of_a_batch(photo_folder: Path) -> None:
    got = in_process(photo_folder, MIRRORED)
    assert got["epoch 0"]
    assert got["epoch 1"]
    assert got["devices"] == ["CPU:0", "CPU:1"]
    assert got["state"] == [2, 1]
    assert max(got["loss"]) < 1e-5
    assert max(got["weights"]) < 1e-5
    assert got["epochs"] == 2
    assert got["evaluation"] < 1e-5
    assert got["odd"] == [[3, 4]] * 4
    assert len(got["warned"]) == 2, got["warned"]
    assert "batches of 7 do not divide among 2 replicas of MirroredStrategy" in got["warned"][0]
    assert "the last batch of split `train`, 1 example, does not divide among 2 replicas" in got["warned"][1]
    for name in ("ahead", "ahead, mapped"):
        assert got[name].startswith("StateError: a distribution strategy may read all 2 steps of an epoch ahead"), got[name]
    assert got["counted"] == [1, 2, 1, 2]
    assert "do not step together" in got["servers"]
    assert "takes a strategy of `tf.distribute`" in got["no strategy"]


@pytest.mark.nightly
def test_workers_take_their_shares_and_not_shares_of_those(photo_folder: Path) -> None:
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    results: dict[int, Any] = {}

    def run(index: int) -> None:
        results[index] = in_process(photo_folder, WORKER.format(addresses=addresses, index=index), beside=True)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=250)
    assert len(results) == 2, json.dumps(results)
    for index, got in results.items():
        assert got["share"] == [index, 2]
        assert got["replicas"] == 2
        assert "pipe.distribute(strategy)" in got["twice"]
        assert "pipe.distribute(strategy)" in got["twice, mapped"]
        assert "keras#20585" in got["fit"]
        assert got["steps"] == 4
        assert got["rows"] == [4] * 4
        assert got["off"] < 1e-5
