"""Every pass keeps the elements: the plan before it and the plan after it run, and give the same within the pass's class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from planning import built, compiled, load_spec, photos, records, run_plan
from strategies import recipes

from pipegen.plan.nodes import Batch, Kernel

if TYPE_CHECKING:
    from pipegen.passes import PassRecord
    from pipegen.plan.nodes import Plan

pytestmark = pytest.mark.tf

CASES: dict[str, str] = {
    "shuffle": "{transforms: [{resize: {size: 24}}], output: {dtype: uint8}}",
    "window shuffle": "{transforms: [{resize: {size: 24}}], shuffle: {window: 30kB}}",
    "stored order, kept": "{transforms: [{resize: {size: 24}}, random_flip], shuffle: none, batch: {size: 8, remainder: keep}}",
    "padded": "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 30}}], batch: {size: 8, remainder: pad}}",
    "fixed steps": "{transforms: [{resize: {size: 24}}, random_flip], epoch: {steps: 4}}",
    "scaled decode": "{transforms: [{resize: {size: [20, 26]}}]}",
    "resized window at a scale": "{transforms: [{random_resized_crop: {size: 18}}, random_flip, {normalize: {preset: tf}}]}",
    "resized window, every pixel": "{transforms: [{decode: {scaled: never}}, {random_resized_crop: {size: [30, 20], method: bicubic}}]}",
    "plain window": "{transforms: [{random_crop: {size: [60, 70]}}, {rescale: {to: [0, 1]}}]}",
    "gray decode": "{transforms: [{decode: {channels: 1}}, {resize: {size: 24}}, {random_contrast: {factor: 0.5}}, {random_brightness: {factor: 0.3}}]}",
    "geometry": "{transforms: [{resize: {size: [24, 36]}}, {random_rotation: {degrees: 30}}, {random_translation: {x: 0.2, y: 0.1}}, "
    "{random_shear: {degrees: 15, probability: 0.5}}, {random_zoom: {factor: 0.4}}, {random_flip: {axis: both}}]}",
    "geometry at any shape": "{transforms: [{random_rotation: {degrees: 30}}, random_flip, {resize: {size: 24}}]}",
    "a crop in the batch": "{transforms: [{resize: {size: 32}}, {random_zoom: {factor: 0.3}}, {random_crop: {size: [20, 28]}}, random_flip]}",
    "arithmetic before moves": "{transforms: [{resize: {size: 32}}, {rescale: {to: [0, 1]}}, random_flip, {random_crop: {size: 24}}, "
    "{normalize: {mean: 0.4, std: 0.2}}]}",
    "floats are warped": "{transforms: [{resize: {size: 24}}, {rescale: {to: [-1, 1]}}, {random_rotation: {degrees: 20, fill: nearest}}]}",
    "colour": "{transforms: [{resize: {size: 24}}, {random_brightness: {factor: 0.5}}, {random_contrast: {factor: 0.5}}, "
    "{random_saturation: {factor: 0.5, probability: 0.5}}, {random_hue: {degrees: 30}}]}",
    "one channel": "{transforms: [{resize: {size: 24}}, {random_hue: {degrees: 30}}, {grayscale: {channels: 1}}, {random_contrast: {factor: 0.5}}, "
    "{rescale: {to: [0, 1]}}]}",
    "identities": "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 0}}, {random_flip: {probability: 0}}, {center_crop: {size: 24}}, "
    "{cast: {dtype: float32}}, {random_brightness: {factor: 0}}, {random_contrast: {factor: 0.3}}, {rescale: {scale: 1}}, {cast: {dtype: float32}}]}",
    "constants": "{transforms: [{resize: {size: 24}}, {rescale: {scale: 0.1, offset: 3}}, {rescale: {to: [0, 255]}}, {normalize: {preset: caffe}}]}",
    "two segments": "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 20}}, {random_brightness: {factor: 0.4}}, "
    "{random_shear: {degrees: 20, fill: {constant: 9}, interpolation: nearest}}, {random_zoom: {factor: 0.2, exact: true}}]}",
    "channels first, one-hot, bytes": "{transforms: [{resize: {size: [24, 30]}}, {random_brightness: {factor: 0.5}}], "
    "output: {channels: first, dtype: uint8, encode: {label: one_hot}}}",
    "half floats": "{transforms: [{resize: {size: 24}}, {random_brightness: {factor: 0.5}}, {rescale: {to: [0, 1]}}], output: {dtype: float16}}",
    "cached": "{transforms: [{resize: {size: 24}}, random_flip], runtime: {cache: memory}}",
}
"""What the passes have to keep, by what each is there for."""

SHARDS: dict[str, str] = {
    "shuffled": "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 30}}], runtime: {shard: {index: 1, count: 2}}}",
    "kept": "{transforms: [{resize: {size: 24}}, random_flip], shuffle: none, batch: {remainder: keep}, runtime: {shard: {index: 0, count: 2}}}",
    "padded": "{transforms: [{resize: {size: 24}}, random_flip], batch: {remainder: pad}, runtime: {shard: {index: 1, count: 2}}}",
}


def close(record: PassRecord, width: float, before: Any, after: Any) -> None:
    """Compare two batches within the class of a pass.

    A float format of fewer bits than float32 is a quantisation whose levels are wider than E1's step, so a value there
    may move one level.
    """
    import tensorflow as tf

    flat_before, flat_after = tf.nest.flatten(before), tf.nest.flatten(after)
    assert len(flat_before) == len(flat_after)
    for a, b in zip(flat_before, flat_after, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), record.name
        if record.rewrite_class == "E0":
            np.testing.assert_array_equal(b, a, err_msg=record.name)
        elif a.dtype == np.uint8:
            moved = np.abs(a.astype(int) - b.astype(int))
            assert moved.max(initial=0) <= 1, record.name
            assert np.count_nonzero(moved) <= max(1, a.size // 10**5), record.name
        else:
            step = 1e-6 * width + (2.0**-10 * np.abs(a.astype(np.float64)) if a.dtype.itemsize == 2 else 0)
            assert (np.abs(a.astype(np.float64) - b.astype(np.float64)) <= step).all(), record.name


def keeps_elements(text: str, *, split: str = "train", shard: tuple[int, int] = (0, 1), count: int = 21, jit: bool = False) -> None:
    """Run the plan as built and after each pass that changed it, and compare neighbours."""
    runtime = "never" if not jit else "always"
    spec = load_spec(text)
    spec = spec.model_copy(update={"runtime": spec.runtime.model_copy(update={"jit": runtime})})
    plan = built(text, split=split, classes=3)
    data = records(photos(count))
    epochs = 2
    done = compiled(plan, spec, num_examples=count, ram_budget=2**30)
    interval = plan.out["image"].interval
    width = interval.width if interval else 255.0
    before = run_plan(plan, spec, data, shard=shard, epochs=epochs)
    assert before, "it gives something"
    for record in done.records:
        if record.changed:
            after = run_plan(record.after, spec, data, shard=shard, epochs=epochs)
            assert len(after) == len(before), record.name
            for a, b in zip(before, after, strict=True):
                close(record, width, a, b)
            before = after


@pytest.mark.parametrize("name", list(CASES))
def test_each_pass_keeps_the_elements(name: str) -> None:
    keeps_elements(CASES[name])


@pytest.mark.parametrize("name", list(SHARDS))
def test_each_pass_keeps_a_shard(name: str) -> None:
    text = SHARDS[name]
    sharded = load_spec(text).runtime.shard
    assert not isinstance(sharded, str)
    keeps_elements(text, shard=(sharded.index, sharded.count))


@pytest.mark.parametrize("text", [
    "{transforms: [{random_resized_crop: {size: 18}}, random_flip, {normalize: {preset: torch}}]}",
    "{transforms: [{resize: {size: 24}}, {random_crop: {size: 20}}, {rescale: {to: [0, 1]}}], batch: {size: 8, remainder: pad}}",
])  # fmt: skip
def test_each_pass_keeps_the_elements_of_other_splits(text: str) -> None:
    keeps_elements(text, split="validation")


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=recipes())
def test_each_pass_keeps_the_elements_of_any_recipe(text: str) -> None:
    keeps_elements(text, count=9)


@pytest.mark.parametrize("name", ["geometry", "colour", "one channel", "a crop in the batch", "channels first, one-hot, bytes"])
def test_the_whole_list_keeps_the_elements_in_xla(name: str) -> None:
    spec = load_spec(CASES[name])
    plan = built(CASES[name], classes=3)
    done = compiled(plan, spec)
    data = records(photos(9))
    last = replace(done.records[-1], rewrite_class="E1")
    interval = plan.out["image"].interval
    assert interval is not None
    strict = spec.model_copy(update={"runtime": spec.runtime.model_copy(update={"jit": "always"})})
    for a, b in zip(run_plan(plan, spec, data), run_plan(done.plan, strict, data), strict=True):
        close(last, interval.width, a, b)


def test_geometry_is_exact_through_every_pass_and_xla() -> None:
    text = "{transforms: [{resize: {size: [24, 36]}}, {random_rotation: {degrees: 30}}, {random_zoom: {factor: 0.4}}, random_flip], output: {dtype: uint8}}"
    spec, data = load_spec(text), records(photos(9))
    plan = built(text)
    for a, b in zip(run_plan(plan, spec, data), run_plan(compiled(plan, spec).plan, spec, data), strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def test_every_pass_is_tried() -> None:
    """Over the cases above, each pass changes a plan at least once, so that none is kept by doing nothing."""
    from pipegen.passes import PASSES

    changed: set[str] = set()
    for text in (*CASES.values(), *SHARDS.values()):
        done = compiled(built(text, classes=3), load_spec(text), num_examples=21, ram_budget=2**30)
        changed |= {r.name for r in done.records if r.changed}
    assert changed == {p.name for p in PASSES}


def test_a_broken_rewrite_is_noticed() -> None:
    """The comparison itself: dropping a kernel must fail."""
    text = CASES["colour"]
    spec = load_spec(text)
    done = compiled(built(text), spec)
    record = next(r for r in done.records if r.name == "form_kernels")
    broken: Plan = record.after.with_nodes([n for n in record.after.nodes if not isinstance(n, Kernel)])
    assert any(isinstance(n, Batch) for n in broken.nodes)
    data = records(photos(9))
    never = spec.model_copy(update={"runtime": spec.runtime.model_copy(update={"jit": "never"})})
    with pytest.raises(AssertionError):
        for a, b in zip(run_plan(record.before, never, data), run_plan(broken, never, data), strict=True):
            close(record, 255.0, a, b)
