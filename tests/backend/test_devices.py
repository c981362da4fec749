"""Device prefetch and distribution, on logical CPUs, in a process of its own since devices are set once a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from processes import in_process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

BODY = """
plain = pipeline(folder, transforms=STEPS)
clean = [sums(plain.train) for _ in range(2)]

pipe = pipeline(folder, {"prefetch": {"device": "CPU:1"}}, transforms=STEPS)
first = next(iter(pipe.train))
passes = [sums(pipe.train) for _ in range(2)]
states = [pipe.state()["epoch"], pipe.state()["step"]]
fitted = model()
history = fitted.fit(pipe.train, validation_data=pipe.validation, epochs=2, verbose=0, callbacks=[pipe.callback()])
pipe.seek(0, 0)
fitted.fit(pipe.train, steps_per_epoch=pipe.steps("train"), epochs=2, verbose=0)
auto = pipeline(folder, {"prefetch": {"device": "auto"}}, transforms=STEPS)
prefetch = {
    "device": first[0].device, "equal": passes == clean, "states": states, "after_fit": pipe.state()["epoch"],
    "losses": len(history.history["val_loss"]), "length": len(pipe.train), "auto": sums(auto.train) == clean[0],
    "own": [next(iter(pipe.dataset(s, epoch=1)))[0].device for s in ("train", "validation")],
    "layered": next(iter(pipe.dataset("train", stages="element")))[0].device,
    "none": next(iter(pipe.dataset("train", device="none")))[0].device,
    "other": next(iter(pipe.dataset("train", device="CPU:0")))[0].device,
    "same": sums(pipe.dataset("train", epoch=1)) == clean[1],
    "fixed": next(iter(plain.dataset("train", device="CPU:1")))[0].device,
}

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
pipe = pipeline(folder, transforms=STEPS)
seen = []
for _ in range(2):
    for x, y in strategy.experimental_distribute_dataset(pipe.train):
        parts = strategy.experimental_local_results(x)
        seen.append([len(p) for p in parts] + [round(sum(float(np.sum(p.numpy(), dtype=np.float64)) for p in parts), 1)])
epochs = pipe.state()["epoch"]
with strategy.scope():
    fitted = model()
# Keras builds the model with an iterator of its own, and a strategy's reads ahead, here past the end of a
# whole epoch of four steps: the callback says which epoch it is.
fitted.fit(pipe.train, validation_data=pipe.validation, epochs=2, verbose=0, callbacks=[pipe.callback()])
single = model()
plain.seek(0, 0)
single.fit(plain.train, epochs=2, verbose=0)
off = max(float(np.abs(a - b).max()) for a, b in zip(fitted.get_weights(), single.get_weights()))
pipe.seek(0, 2)
rest = sum(1 for _ in strategy.experimental_distribute_dataset(pipe.train))
mirrored = {"seen": seen, "clean": clean[0] + clean[1], "epochs": epochs, "after": pipe.state()["epoch"], "off": off, "rest": rest}

from pipegen.backend.kernels import reuse
reuse.LARGE = 1  # so that batches of small images have places of their own
with strategy.scope():
    inside = pipeline(folder, {"jit": "always"}, transforms=STEPS)
    within = sums(inside.train)
    cached = pipeline(folder, {"cache": "memory"}, transforms=STEPS)
    again = [sums(cached.train) for _ in range(2)]
scope = {"within": within, "clean": clean[0], "cached": again == clean}

print(json.dumps({"prefetch": prefetch, "mirrored": mirrored, "scope": scope}))
"""


@pytest.fixture(scope="module")
def seen(photo_folder: Path) -> Any:
    """What one process saw, for both tests: starting it takes longer than what it does."""
    return in_process(photo_folder, BODY)


def test_device_prefetch_keeps_the_epoch_rule(seen: Any) -> None:
    got = seen["prefetch"]
    assert got["device"].endswith("CPU:1")
    assert got["fixed"].endswith("CPU:1")
    assert all(device.endswith("CPU:1") for device in [*got["own"], got["layered"]]), "`pipe.dataset` holds to the spec"
    assert got["none"].endswith("CPU:0")
    assert got["other"].endswith("CPU:0")
    assert got["same"]
    assert got["equal"]
    assert got["states"] == [2, 0]
    assert got["after_fit"] == 2
    assert got["losses"] == 2
    assert got["length"] == 4
    assert got["auto"]


def test_a_mirrored_strategy_trains_on_each_example_once(seen: Any) -> None:
    got = seen["mirrored"]
    assert all(row[:-1] == [4, 4] for row in got["seen"])
    assert [row[-1] for row in got["seen"]] == pytest.approx(got["clean"], abs=0.5)
    assert got["epochs"] == 2
    assert got["off"] < 1e-5
    assert got["rest"] == 2
    assert got["after"] == 1


def test_a_pipeline_built_under_a_strategy_holds_plain_variables(seen: Any) -> None:
    """Its batches, its cache and its progress would be one for each replica otherwise, which XLA refuses."""
    got = seen["scope"]
    assert got["within"] == pytest.approx(got["clean"], abs=0.5), "what XLA may round"
    assert got["cached"]
