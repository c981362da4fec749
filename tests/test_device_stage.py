"""A device stage makes of features and parameters what `pipe.train` and its like give, bit for bit on a CPU."""

from __future__ import annotations

from pathlib import Path
from pipes import COLOUR, FLIPPED, GEOMETRY, RESIZE, SIZE, batches, same
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, reject, settings
from processes import in_process
from strategies import recipes

import pipegen
from pipegen.physical.device import sent

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
COMBINING: list[Any] = [
    RESIZE,
    "random_flip",
    {"mixup": {"alpha": 0.4}},
    {"cutmix": {"alpha": 1.0}},
    {"random_brightness": {"factor": 0.2}},
]
FEW: list[Any] = [*FLIPPED, {"random_brightness": {"factor": 0.3}}, {"rescale": {"to": [0, 1]}}]
"""For what does not depend on the steps."""
ONE_HOT = {"encode": {"label": "one_hot"}}
RECIPES: dict[str, dict[str, Any]] = {
    "geometry and colour, two kernels": {"transforms": COLOUR},
    "a perspective and a crop": {
        "transforms": [{"resize": {"size": 40}}, {"random_perspective": {"x": 0.1, "y": 0.1}}, {"random_crop": {"size": SIZE}}]
    },
    "a crop that fixes the shape": {
        "transforms": [{"random_resized_crop": {"size": SIZE}}, "random_flip", {"normalize": {"preset": "torch"}}]
    },
    "combining": {"transforms": COMBINING, "output": ONE_HOT, "batch": {"size": 16}},
    "filters and tables": {
        "transforms": [RESIZE, {"random_posterization": {"bits": [3, 6]}}, "random_clahe", {"random_gaussian_blur": {"sigma": [0.5, 2]}}],
    },
    "a displacement": {
        "transforms": [RESIZE, {"random_elastic": {"alpha": 20, "sigma": 4}}, {"random_solarization": {"threshold": [100, 250]}}]
    },
    "a policy": {"transforms": [RESIZE, "rand_augment", {"rescale": {"to": [0, 1]}}]},
    "channels first": {"transforms": COLOUR, "output": {"channels": "first"}},
    "a schedule over the epochs": {
        "transforms": [
            RESIZE,
            {"random_rotation": {"degrees": {"linear": {"from": 0, "to": 30, "epochs": [0, 4]}}}},
            {"rescale": {"to": [0, 1]}},
        ],
    },
    "two views": {"transforms": [RESIZE, "random_flip", {"random_brightness": {"factor": 0.3}}], "views": 2},
}

BY_DAY = ("combining",)
"""Several kernels, and groups of examples that are combined; the rest repeats the proof by night."""


def compiled(folder: Path, runtime: dict[str, Any] | None = None, allow_code: tuple[str, ...] = (), **own: Any) -> Any:
    """A pipeline whose kernels XLA compiles."""
    spec = {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(folder)}},
        "splits": {"parts": {"train": 0.75, "validation": 0.25}},
        "batch": {"size": 8},
        **own,
    }
    return pipegen.build(spec, runtime={"cache": "none", **(runtime or {})}, allow_code=allow_code)


def masked(transforms: list[Any], **output: Any) -> Any:
    """A pipeline over images and masks in memory."""
    rng = np.random.default_rng(2)
    data = {"image": rng.integers(0, 256, (24, 32, 32, 3), np.uint8), "mask": rng.integers(0, 3, (24, 32, 32, 1), np.uint8)}
    features = {"image": {"kind": "image"}, "mask": {"kind": "mask", "of": "image"}}
    output = {"x": "image", "y": "mask", **output}
    spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "transforms": transforms, "output": output, "batch": {"size": 8}}
    return pipegen.build(spec, data=data, runtime={"cache": "none"})


def applied(stage: Any, sent: Any, *, jit: bool = False) -> list[tuple[Array, ...]]:
    """What a device makes of what it is sent."""
    import tensorflow as tf

    apply = tf.function(stage.apply, jit_compile=jit, autograph=False)
    return batches(apply(*element) for element in sent)


def alike(given: list[tuple[Array, ...]], expected: list[tuple[Array, ...]]) -> None:
    """Each batch is the other one, bit for bit."""
    assert len(given) == len(expected) > 0
    for one, other in zip(given, expected, strict=True):
        same(one, other)


@pytest.mark.parametrize("name", [name if name in BY_DAY else pytest.param(name, marks=pytest.mark.nightly) for name in RECIPES])
def test_every_recipe_is_bit_for_bit_that_of_the_host(name: str, photo_folder: Path) -> None:
    pipe = compiled(photo_folder, **RECIPES[name])
    stage = pipe.device_stage("train")
    alike(applied(stage, stage.dataset(epoch=3, step=1)), batches(pipe.dataset("train", epoch=3, step=1)))


@pytest.mark.parametrize("remainder", [pytest.param("keep", marks=pytest.mark.nightly), "pad"])
def test_an_evaluation_split_ends_in_its_short_batch_or_in_weights(remainder: str, photo_folder: Path) -> None:
    pipe = compiled(photo_folder, transforms=FEW, batch={"size": 8, "remainder": remainder})
    stage = pipe.device_stage("validation")
    expected = batches(pipe.validation)
    assert len(expected[-1]) == (3 if remainder == "pad" else 2)
    alike(applied(stage, stage.batches), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["a crop that fixes the shape", "geometry and colour, two kernels", "combining"])
def test_within_a_compiled_function_the_bits_are_the_same(name: str, photo_folder: Path) -> None:
    pipe = compiled(photo_folder, **RECIPES[name])
    stage = pipe.device_stage("train")
    alike(applied(stage, stage.dataset(epoch=1), jit=True), batches(pipe.dataset("train", epoch=1)))


@pytest.mark.nightly
def test_masks_go_with_their_image() -> None:
    pipe = masked(COLOUR)
    stage = pipe.device_stage("train")
    assert stage.element_spec[0]["mask"].dtype == "uint8"
    alike(applied(stage, stage.dataset(epoch=1)), batches(pipe.dataset("train", epoch=1)))


@pytest.mark.nightly  # by day other features are left on the host
def test_boxes_stay_on_the_host_and_the_image_goes() -> None:
    rng = np.random.default_rng(1)
    corner = rng.uniform(0, 20, (16, 3, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(4, 12, (16, 3, 2))], -1).astype(np.float32)
    data = {"image": rng.integers(0, 256, (16, 32, 32, 3), np.uint8), "boxes": boxes}
    source = {"arrays": {"features": {"image": {"kind": "image"}, "boxes": {"kind": "boxes", "format": "xyxy", "of": "image"}}}}
    spec = {
        "pipegen": 1,
        "source": source,
        "transforms": [*GEOMETRY[1:], {"random_contrast": {"factor": 0.2}}, "mosaic"],
        "output": {"x": "image", "y": {"boxes": "boxes", "there": "boxes_valid"}},
        "batch": {"size": 8},
    }
    pipe = pipegen.build(spec, data=data, runtime={"cache": "none"})
    stage = pipe.device_stage("train")
    assert "3 kernels" in repr(stage)
    alike(applied(stage, stage.dataset(epoch=2)), batches(pipe.dataset("train", epoch=2)))


BLACK = {"fill": {"constant": 0}}
MOVED: list[Any] = [{"random_flip": BLACK}, {"random_rotation": {"degrees": 20, **BLACK}}]
NUMBERED: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "uint8, in one kernel": (MOVED[:1], {"dtype": "uint8"}, "1 kernel,"),
    "pasted": ([*MOVED, "copy_paste", {"random_contrast": {"factor": 0.2}}], {}, "1 kernel,"),
    "a rectangle": ([*MOVED, "cutmix", {"random_contrast": {"factor": 0.2}}], {}, "3 kernels"),
    "four in one, moved again": ([*MOVED, "mosaic", MOVED[1]], {"dtype": "uint8"}, "3 kernels"),
}
"""Steps beside masks of instances, the output, and what goes to a device."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*NUMBERED])
def test_masks_of_instances_are_numbered_on_the_host_and_their_image_goes(name: str) -> None:
    transforms, output, kernels = NUMBERED[name]
    rng, masks, boxes = np.random.default_rng(1), np.zeros((24, 32, 32), np.uint8), np.zeros((24, 3, 4), np.float32)
    for i, k in np.ndindex(24, 3):
        (x, y), (w, h) = rng.integers(0, 20, 2), rng.integers(4, 12, 2)
        masks[i, y : y + h, x : x + w], boxes[i, k] = k + 1, [x, y, x + w, y + h]
    features = {"image": {"kind": "image"}, "boxes": {"kind": "boxes"}, "masks": {"kind": "mask", "with": "boxes"}}
    spec = {
        "pipegen": 1, "source": {"arrays": {"features": features}}, "transforms": transforms, "batch": {"size": 8},
        "output": {"x": "image", "y": {name: name for name in ("boxes", "boxes_valid", "masks")}, **output},
    }  # fmt: skip
    data = {"image": rng.integers(0, 256, (24, 32, 32, 3), np.uint8), "boxes": boxes, "masks": masks}
    pipe = pipegen.build(spec, data=data, runtime={"cache": "none"})
    stage = pipe.device_stage("train")
    assert kernels in repr(stage)
    alike(applied(stage, stage.dataset(epoch=2, step=1)), batches(pipe.dataset("train", epoch=2, step=1)))


@pytest.mark.nightly  # by day two kernels are divided
def test_what_is_not_for_xla_stays_on_the_host_with_what_comes_before() -> None:
    pipe = masked([*GEOMETRY, "copy_paste", {"random_contrast": {"factor": 0.2}}])
    stage = pipe.device_stage("train")
    assert "1 kernel," in repr(stage)
    alike(applied(stage, stage.dataset(epoch=1)), batches(pipe.dataset("train", epoch=1)))
    last = masked([*GEOMETRY, "copy_paste"], dtype="uint8")
    with pytest.raises(
        ValueError, match="XLA cannot compile `copy_paste`, which works on the output of `random_flip` and `random_rotation` and"
    ):
        last.device_stage("train")


@pytest.mark.nightly  # by day whole batches are
def test_a_share_of_a_batch_is_made_on_the_device_too(photo_folder: Path) -> None:
    shared = {"shard": {"index": 1, "count": 2}}
    combining = [RESIZE, "random_flip", {"mixup": {"alpha": 0.4}}, {"random_gaussian_blur": {"sigma": 1}}]
    for own, kernels in (
        ({"transforms": COLOUR}, "2 kernels"),
        ({"transforms": combining, "output": ONE_HOT, "batch": {"size": 12}}, "1 kernel,"),
    ):
        pipe = compiled(photo_folder, shared, **own)
        stage = pipe.device_stage("train")
        assert kernels in repr(stage)
        alike(applied(stage, stage.dataset(epoch=1)), batches(pipe.dataset("train", epoch=1)))
    combined = compiled(photo_folder, shared, transforms=combining[:3], output=ONE_HOT, batch={"size": 12})
    with pytest.raises(ValueError, match="`mixup` combines examples with those of other hosts, unless each host has whole groups of 8"):
        combined.device_stage("train")


@pytest.mark.nightly
def test_cached_records_and_rows_of_arrays_go_as_they_are(photo_folder: Path) -> None:
    cached = compiled(photo_folder, {"cache": "memory"}, transforms=COLOUR)
    data = {"image": np.random.default_rng(0).integers(0, 256, (24, 32, 32, 3), np.uint8), "label": np.arange(24) % 3}
    source = {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}}}}
    spec = {"pipegen": 1, "source": source, "transforms": ["random_flip", {"random_crop": {"size": 24}}, {"rescale": {"to": [0, 1]}}]}
    rows = pipegen.build({**spec, "batch": {"size": 8}}, data=data, runtime={"cache": "none"})
    for pipe in (cached, rows):
        stage = pipe.device_stage("train")
        for epoch in range(2):
            alike(applied(stage, stage.dataset(epoch=epoch)), batches(pipe.dataset("train", epoch=epoch)))


@pytest.mark.nightly
def test_epochs_are_counted_and_resumed_as_those_of_the_training_split(photo_folder: Path) -> None:
    pipe, other = (compiled(photo_folder, transforms=FEW) for _ in range(2))
    stage = pipe.device_stage("train")
    expected = [*batches(other.train), *batches(other.train)]
    given = applied(stage, stage.batches)
    iterator = iter(stage.batches)
    sent = [next(iterator), next(iterator)]
    state = pipe.state()
    assert (state["epoch"], state["step"]) == (1, 2)
    pipe.restore(state)
    alike([*given, *applied(stage, sent), *applied(stage, stage.batches)], expected)
    assert pipe.state()["epoch"] == 2


def test_what_cannot_be_on_a_device_is_said_with_its_step(photo_folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no step of split `train` can run on a device: `runtime: .jit: never.` leaves its steps"):
        compiled(photo_folder, {"jit": "never"}, transforms=COLOUR).device_stage("train")
    buckets = {"size": 8, "buckets": {"sizes": [[24, 32], [32, 24]]}}
    with pytest.raises(ValueError, match="each batch has a program of its own"):
        compiled(photo_folder, transforms=[{"resize": {"size": "bucket"}}, "random_flip"], batch=buckets).device_stage("train")
    with pytest.raises(KeyError, match="there is no split 'test'"):
        compiled(photo_folder, transforms=COLOUR).device_stage("test")


def test_products_of_matrices_are_exact_float32(photo_folder: Path) -> None:
    """A GPU would compute them in TF32 else, which has 11 bits."""
    import tensorflow as tf

    pipe = compiled(photo_folder, transforms=[RESIZE, "random_clahe", {"random_elastic": {"alpha": 20, "sigma": 4}}])
    stage = pipe.device_stage("train")
    features, params = next(iter(stage.dataset()))
    text = tf.function(stage.apply, jit_compile=True, autograph=False).experimental_get_compiler_ir(features, params)(stage="hlo")
    products = [line for line in text.splitlines() if " dot(" in line and "f32[" in line.partition("=")[2]]
    assert products
    assert all("operand_precision={highest,highest}" in line for line in products)


def test_what_is_sent_is_smaller_by_the_size_of_a_float(photo_folder: Path) -> None:
    stage = compiled(photo_folder, transforms=COLOUR).device_stage("train")
    image, label = SIZE * SIZE * 3, 8
    assert image + label < stage.bytes_per_example() < image + label + 256


FITTED = """
import keras, pipegen
STEPS = [RESIZE, "random_flip", {"random_rotation": {"degrees": 25}}, {"random_contrast": {"factor": 0.3}}, {"normalize": {"preset": "tf"}}]
pipe = pipeline(folder, {"jit": "auto"}, transforms=STEPS)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
results = {}

def compiled(jit, scope=None):
    import contextlib
    with scope or contextlib.nullcontext():
        made = model()
        made.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=jit)
    return made

def record(name, fitted, fit):
    pipe.seek(0)
    history = fit(epochs=2, verbose=0).history
    results[name] = {"history": history, "weights": [w.tolist() for w in fitted.get_weights()], "epoch": pipe.state()["epoch"]}

host = compiled(False)
record("host", host, lambda **how: host.fit(pipe.train, validation_data=pipe.validation, **how))
for jit in (False, True):
    one = compiled(jit)
    record(f"device, jit {jit}", one, pipe.on_device(one).fit)
own = {name for name in vars(one) if name.endswith("_step")}
results["left"] = sorted(own)
one.test_step = marked = lambda data, step=one.test_step: step(data)  # one of the user's own
evaluated = pipe.on_device(one).evaluate("validation", verbose=0), one.evaluate(pipe.validation, verbose=0)
results["evaluated"] = float(np.abs(np.subtract(*evaluated)).max())
results["kept"] = vars(one).pop("test_step") is marked
predicted = pipe.on_device(one).predict("validation", verbose=0), one.predict(pipe.validation, verbose=0)
results["predicted"] = float(np.abs(np.subtract(*predicted)).max())
both = compiled(False, strategy.scope())
record("strategy", both, pipe.on_device(both).fit)

# strategy.run, in a loop of one's own
stage = pipe.device_stage("train")
run = tf.function(lambda f, p: strategy.run(stage.apply, args=(f, p)), autograph=False)
def joined(value):
    return np.concatenate([t.numpy() for t in strategy.experimental_local_results(value)])
expected = list(pipe.dataset("train", epoch=1))
given = [run(*sent) for sent in strategy.experimental_distribute_dataset(stage.dataset(epoch=1))]
pipe.seek(1)
given += [run(*sent) for sent in stage.distribute(strategy)]
def equal(given, expected):
    pairs = zip(given, expected, strict=True)
    return [bool((joined(x) == image.numpy()).all() and (joined(y) == label.numpy()).all()) for (x, y), (image, label) in pairs]
results["run"] = equal(given, expected * 2)
sent, _ = next(iter(stage.distribute(strategy)))
results["devices"] = [t.device[-5:] for t in strategy.experimental_local_results(sent["image"])]

# partners in groups of 8 stay on their replica
combining = dict(transforms=[RESIZE, "random_flip", {"mixup": {"alpha": 0.4}}], output={"encode": {"label": "one_hot"}})
combined = pipeline(folder, {"jit": "auto"}, batch={"size": 16}, **combining)
groups = combined.device_stage("train")
both_of = tf.function(lambda f, p: strategy.run(groups.apply, args=(f, p)), autograph=False)
results["groups"] = equal([both_of(*sent) for sent in groups.distribute(strategy)], list(combined.dataset("train", epoch=0)))
odd = pipeline(folder, {"jit": "auto"}, **combining).device_stage("train")
for name, wrong in (
    ("few", lambda: odd.distribute(strategy)),
    ("part", lambda: strategy.run(odd.apply, args=next(iter(strategy.experimental_distribute_dataset(odd.dataset()))))),
    ("data", lambda: pipe.on_device(one).fit(x=pipe.train)),
    ("uncompiled", lambda: pipe.on_device(keras.Sequential([keras.layers.Dense(1)]))),
):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        results[name] = str(error)
with tf.device("CPU:1"):
    x, _ = stage.apply(*next(iter(stage.dataset())))
results["placed"] = x.device[-5:]
print(json.dumps(results))
"""


@pytest.mark.nightly  # by day a compiled function does
def test_keras_and_strategies_run_the_kernels_in_their_steps(photo_folder: Path) -> None:
    got = in_process(photo_folder, FITTED)
    host = got["host"]
    assert set(host["history"]) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert got["device, jit False"] == host
    for name in ("device, jit True", "strategy"):
        assert got[name]["epoch"] == 2
        np.testing.assert_allclose(got[name]["history"]["loss"], host["history"]["loss"], rtol=1e-5)
        np.testing.assert_allclose(got[name]["history"]["val_loss"], host["history"]["val_loss"], rtol=1e-5)
        for fitted, expected in zip(got[name]["weights"], host["weights"], strict=True):
            np.testing.assert_allclose(fitted, expected, atol=1e-5)
    assert got["left"] == []
    assert got["kept"]
    assert got["evaluated"] < 1e-6
    assert got["predicted"] < 1e-6
    assert got["run"] == [True] * 8
    assert got["devices"] == ["CPU:0", "CPU:1"]
    assert got["groups"] == [True, True]
    assert "a multiple of 16" in got["few"]
    assert "in groups of 8, into which 4 examples on a replica do not divide" in got["part"]
    assert got["data"] == "`on_device(model).fit` takes its data from the pipeline: leave out x"
    assert "compile the model first" in got["uncompiled"]
    assert got["placed"] == "CPU:1"


ELSEWHERE = """
pipe = pipeline(folder, {"jit": "auto"}, transforms=STEPS)
try:
    pipe.on_device(model())
except ValueError as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.nightly
def test_under_keras_on_jax_it_says_that_it_is_not_there(photo_folder: Path) -> None:
    pytest.importorskip("jax")
    said = in_process(photo_folder, ELSEWHERE, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    assert "Keras runs on jax: train on `pipe.train`, `pipe.numpy` or `pipe.jax`" in said


@pytest.mark.nightly
@pytest.mark.timeout(900)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(recipe=recipes())
def test_any_recipe_is_bit_for_bit_that_of_the_host_or_says_why_not(photo_folder: Path, recipe: str) -> None:
    sections = yaml.safe_load(recipe)
    batch = {"size": 8, **{k: v for k, v in sections.pop("batch", {}).items() if k == "remainder"}}
    try:
        pipe = compiled(photo_folder, batch=batch, allow_code=("my_pkg",), **sections)
    except pipegen.SpecError:
        reject()
    for split in ("train", "validation"):
        if sent(pipe._engine.executor(split).plan).obstacle:
            with pytest.raises(ValueError, match=r"no step of split `.*` can run on a device"):
                pipe.device_stage(split)
            continue
        stage = pipe.device_stage(split)
        alike(applied(stage, stage.dataset(epoch=1)), batches(pipe.dataset(split, epoch=1)))
