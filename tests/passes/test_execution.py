"""Every pass keeps the elements: the plan before it and the plan after it run, and give the same within the pass's class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from planning import built, compiled, interpret, learned, load_spec, photos, records, run_plan
from strategies import recipes

from pipegen.plan.nodes import Kernel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.passes import PassRecord
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec

pytestmark = pytest.mark.tf

CASES: dict[str, str] = {
    "scaled decode": "{transforms: [{resize: {size: [20, 26]}}]}",
    "resized window at a scale": "{transforms: [{random_resized_crop: {size: 18}}, random_flip, {normalize: {preset: tf}}]}",
    "resized window, every pixel": "{transforms: [{decode: {scaled: never}}, {random_resized_crop: {size: [30, 20], method: bicubic}}]}",
    "plain window": "{transforms: [{random_crop: {size: [60, 70]}}, {rescale: {to: [0, 1]}}]}",
    "gray decode": "{transforms: [{decode: {channels: 1}}, {resize: {size: 24}}, {random_contrast: {factor: 0.5}}, "
    "{random_brightness: {factor: 0.3}}]}",
    "geometry": "{transforms: [{resize: {size: [24, 36]}}, {random_rotation: {degrees: 30}}, {random_translation: {x: 0.2, y: 0.1}}, "
    "{random_shear: {degrees: 15, probability: 0.5}}, {random_zoom: {factor: 0.4}}, {random_flip: {axis: both}}]}",
    "perspective": "{transforms: [{resize: {size: [24, 36]}}, {random_perspective: {x: 0.2, y: 0.1, probability: 0.7}}, "
    "{random_affine: {degrees: 30, shear_y: 10, factor: 0.3}}, flip, {random_crop: {size: [20, 31]}}]}",
    "floats in perspective": "{transforms: [{perspective: {top_left: [0.2, 0.1], fill: nearest}}, {resize: {size: 24}}, "
    "{rescale: {to: [-1, 1]}}, {zoom: {factor: 1.2, interpolation: bicubic}}, {random_perspective: {y: 0.2, fill: {constant: -1}}}]}",
    "geometry at any shape": "{transforms: [{random_rotation: {degrees: 30}}, random_flip, {resize: {size: 24}}]}",
    "a crop in the batch": "{transforms: [{resize: {size: 32}}, {random_zoom: {factor: 0.3}}, {random_crop: {size: [20, 28]}}, "
    "random_flip]}",
    "arithmetic before moves": "{transforms: [{resize: {size: 32}}, {rescale: {to: [0, 1]}}, random_flip, {random_crop: {size: 24}}, "
    "{normalize: {mean: 0.4, std: 0.2}}]}",
    "floats are warped": "{transforms: [{resize: {size: 24}}, {rescale: {to: [-1, 1]}}, {random_rotation: {degrees: 20, fill: nearest}}]}",
    "colour": "{transforms: [{resize: {size: 24}}, {random_brightness: {factor: 0.5}}, {random_contrast: {factor: 0.5}}, "
    "{random_saturation: {factor: 0.5, probability: 0.5}}, {random_hue: {degrees: 30}}]}",
    "tables": "{transforms: [{random_gamma: {gamma: 0.3}}, {posterization: {bits: 5}}, {resize: {size: 24}}, "
    "{random_contrast: {factor: 0.5}}, {random_solarization: {threshold: [0, 255], probability: 0.6}}, equalization, random_invert, "
    "{normalize: {preset: tf}}]}",
    "tables of histograms": "{transforms: [{resize: {size: [20, 26]}}, random_equalization, {random_solarization: {threshold: [0, 255]}}, "
    "{random_auto_contrast: {probability: 1}}, random_flip, equalization]}",
    "combining": "{transforms: [{resize: {size: 24}}, random_flip, {cutmix: {probability: 0.7}}, {mixup: {probability: 0.7}}], "
    "output: {encode: {label: one_hot}}}",
    "segments on combined images": "{transforms: [{resize: {size: 32}}, {random_contrast: {factor: 0.3}}, cutmix, "
    "{random_crop: {size: 24}}, {random_rotation: {degrees: 20}}, {random_brightness: {factor: 0.4}}, "
    "{normalize: {preset: tf}}], output: {encode: {label: one_hot}}}",
    "policies": "{transforms: [{resize: {size: 24}}, random_flip, {rand_augment: {num_ops: 1, magnitude: {table: [15, 3]}}}, "
    "{one_of: {steps: [random_flip, {random_hue: {degrees: 30}}]}}]}",
    "rare filters": "{transforms: [{resize: {size: [20, 26]}}, {random_sharpness: {factor: 0.9, probability: 0.4}}, "
    "{random_equalization: {probability: 0.3}}, {random_rotation: {degrees: 20}}]}",
    "rare on the host": "{transforms: [{resize: {size: 24}}, random_invert, {random_jpeg: {quality: [30, 90], probability: 0.4}}]}",
    "filters": "{transforms: [{random_elastic: {alpha: 60, sigma: 4}}, {resize: {size: [16, 20]}}, {random_sharpness: {factor: 0.9}}, "
    "{random_gaussian_blur: {sigma: 1.5, probability: 0.9}}, {random_gaussian_noise: {std: [2, 20]}}, random_erasing, "
    "{random_elastic: {alpha: 30, sigma: 2, fill: {constant: 9}, probability: 0.9}}], output: {dtype: uint8}}",
    "one channel": "{transforms: [{resize: {size: 24}}, {random_hue: {degrees: 30}}, {grayscale: {channels: 1}}, "
    "{random_contrast: {factor: 0.5}}, {rescale: {to: [0, 1]}}]}",
    "identities": "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 0}}, {posterization: {bits: 8}}, "
    "{random_gamma: {gamma: 0}}, {random_flip: {probability: 0}}, "
    "{center_crop: {size: 24}}, {cast: {dtype: float32}}, {random_brightness: {factor: 0}}, {random_contrast: {factor: 0.3}}, "
    "{rescale: {scale: 1}}, {cast: {dtype: float32}}]}",
    "constants": "{transforms: [{resize: {size: 24}}, {rescale: {scale: 0.1, offset: 3}}, {rescale: {to: [0, 255]}}, "
    "{normalize: {preset: caffe}}]}",
    "two segments": "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 20}}, {random_brightness: {factor: 0.4}}, "
    "{random_shear: {degrees: 20, fill: {constant: 9}, interpolation: nearest}}, {random_zoom: {factor: 0.2, exact: true}}]}",
    "channels first, one-hot, bytes": "{transforms: [{resize: {size: [24, 30]}}, {random_rotation: {degrees: 20}}, "
    "{random_brightness: {factor: 0.5}}], "
    "output: {channels: first, dtype: uint8, encode: {label: one_hot}}}",
    "Python functions": "{transforms: [{resize: {size: 24}}, {python: {function: my_pkg.filters:denoise}}, "
    "{random_python: {function: my_pkg.weather:rain, probability: 0.5}}, random_flip, {random_python: {function: my_pkg.weather:rain}}, "
    "{rescale: {to: [0, 1]}}, {python: {function: my_pkg.filters:luminance, shape: [24, 24, 1], range: [0, 1]}}]}",
    "a label that nobody asks for": "{transforms: [{resize: {size: 24}}, random_flip], output: {x: image, y: image}}",
    "views": "{transforms: [{resize: {size: 24}}, {rescale: {to: [0, 1]}}, random_flip], "
    "views: {whole: {count: 2}, part: {transforms: [{random_crop: {size: 20}}]}}}",
    "a flip behind a cast to bytes": "{transforms: [{resize: {size: 24}}, {random_contrast: {factor: 0.3}}, {cast: {dtype: uint8}}, "
    "random_flip]}",
    "half floats": "{transforms: [{resize: {size: 24}}, {random_brightness: {factor: 0.5}}, {rescale: {to: [0, 1]}}], "
    "output: {dtype: float16}}",
}
"""What the passes have to keep, by what each is there for."""

ALONE = (
    "resized window at a scale",
    "geometry",
    "tables of histograms",
    "rare filters",
    "rare on the host",
    "identities",
    "constants",
    "a label that nobody asks for",
    "views",
)
"""Cases in which each pass is compared by itself: every pass that works on examples changes one of them."""

EXACT = {
    "geometry", "rare filters", "combining", "perspective", "tables of histograms", "filters", "a crop in the batch",
    "channels first, one-hot, bytes",
}  # fmt: skip
"""Cases that give bytes, or have no float in them: the same bits in XLA and out of it."""

STREAMS: dict[str, tuple[str, tuple[int, int]]] = {
    "shuffled, dropped": ("{transforms: [{random_crop: {size: 20}}, {rescale: {to: [0, 1]}}, random_flip], batch: {size: 4}}", (0, 1)),
    "a shard, padded": ("{transforms: [{resize: {size: 12}}, {random_brightness: {factor: 0.2}}], batch: {size: 4, remainder: pad}, "
    "runtime: {shard: {index: 1, count: 2}}}", (1, 2)),
    "a shard in source order, kept": ("{transforms: [{resize: {size: 12}}], shuffle: none, batch: {size: 6, remainder: keep}, "
    "output: {encode: {label: one_hot}}, runtime: {shard: {index: 0, count: 2}, cache: none}}", (0, 2)),
    "a shard that combines": ("{transforms: [{resize: {size: 12}}, cutmix], batch: {size: 6, remainder: keep}, "
    "output: {encode: {label: one_hot}}, runtime: {shard: {index: 1, count: 2}}}", (1, 2)),
    "sent by workers": ("{transforms: [{resize: {size: 12}}, {random_rotation: {degrees: 20}}, {random_brightness: {factor: 0.2}}, "
    "{normalize: {preset: torch}}], batch: {size: 4}, runtime: {cache: none, service: {address: 'grpc://dispatcher:5050'}}}", (0, 1)),
    "windows, steps": ("{transforms: [{resize: {size: 12}}], shuffle: {window: 9kB}, epoch: {steps: 5}, batch: {size: 4}, "
    "output: {dtype: uint8}}", (0, 1)),
}  # fmt: skip
"""What concerns the order of the examples, with the share of each batch that this host takes."""


def close(record: PassRecord, width: float, before: Any, after: Any) -> None:
    """Compare what two plans gave, within the class of a pass.

    A float format of fewer bits than float32 is a quantisation whose levels are wider than E1's step, so a value there
    may move one level.
    """
    import tensorflow as tf

    for a, b in zip(tf.nest.flatten(before), tf.nest.flatten(after), strict=True):
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


def with_jit(spec: PipelineSpec, jit: str) -> PipelineSpec:
    """The spec with another `runtime: {jit}`."""
    return spec.model_copy(update={"runtime": spec.runtime.model_copy(update={"jit": jit})})


def width_of(plan: Plan, done: Any) -> float:
    """The width of the image's interval at the end; where it has none, as whitened ones have, what its values span."""
    import tensorflow as tf

    interval = next(t for _, t in plan.out.items() if t.kind == "image").interval
    return interval.width if interval else max(255.0, *(float(np.ptp(a.astype(np.float64))) for a in tf.nest.flatten(done)))


def keeps_elements(text: str, *, split: str = "train", count: int = 4, each: bool = True) -> None:
    """Work out the plan as built and after each pass that changed it, and compare neighbours; without `each`, first and last alone."""
    data = records(photos(count))
    spec, plan = learned(text, data, split=split, classes=3)
    done = compiled(plan, spec, num_examples=count, ram_budget=2**30)
    changed = [record for record in done.records if record.changed]
    before = interpret(plan, spec, data)
    width = width_of(plan, before)
    if not each:
        rounding = sum(record.rewrite_class == "E1" for record in changed)
        changed = [replace(changed[-1], name="every pass", rewrite_class="E1" if rounding else "E0")]
        width *= max(rounding, 1)  # what each of them may add
    for record in changed:
        after = interpret(record.after, spec, data)
        close(record, width, before, after)
        before = after


def keeps_the_stream(text: str, shard: tuple[int, int], *, every: bool) -> None:
    """The same through datasets: order, shards, the last batch, the cache and two epochs.

    With `every`, each pass that moves the order, the cache or the batch by itself; else the one that moves the shuffle. Then
    all the rest at once: what those do to an example is compared without datasets above, which is much quicker.
    """
    alone = {"shuffle_before_read", "shard_before_read", "batch_early", "place_cache"} if every else {"shuffle_before_read"}
    spec = with_jit(load_spec(text), "never")
    plan, data = built(text, classes=3), records(photos(13, 40, 50))
    done = compiled(plan, spec, num_examples=len(data), ram_budget=2**30)
    changed = [r for r in done.records if r.changed]
    stops = [r for r in changed if r.name in alone or r is changed[-1]]
    before = run_plan(plan, spec, data, shard=shard, epochs=2)
    assert before, "it gives something"
    classes: set[str] = set()
    for record in changed:
        classes.add(record.rewrite_class)
        if record not in stops:
            continue
        after = run_plan(record.after, spec, data, shard=shard, epochs=2)
        assert len(after) == len(before), record.name
        close(replace(record, rewrite_class="E1" if "E1" in classes else "E0"), width_of(plan, before), before, after)
        before = after
        classes.clear()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", ALONE)
def test_each_pass_keeps_the_elements(name: str) -> None:
    keeps_elements(CASES[name])


@pytest.mark.by_day(7)
@pytest.mark.parametrize("name", [name for name in CASES if name not in ALONE])
def test_the_passes_keep_the_elements(name: str) -> None:
    keeps_elements(CASES[name], count=2 if name == "policies" else 4, each=False)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in CASES if name not in ALONE])
def test_each_pass_keeps_the_elements_of_every_case(name: str) -> None:
    keeps_elements(CASES[name])


@pytest.mark.parametrize("text", [
    "{transforms: [{random_resized_crop: {size: 18}}, random_flip, {normalize: {preset: torch}}]}",
    "{transforms: [{resize: {size: 24}}, {random_crop: {size: 20}}, {rescale: {to: [0, 1]}}]}",
])  # fmt: skip
def test_each_pass_keeps_the_elements_of_other_splits(text: str) -> None:
    keeps_elements(text, split="validation")


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=recipes())
@example(
    "{transforms: [{resize: {size: 8}}, {random_contrast: {factor: 0.3}}, {standardize: {statistics: featurewise}}, random_flip, whiten]}"
)
def test_the_passes_keep_the_elements_of_any_recipe(text: str) -> None:
    keeps_elements(text, count=3, each=False)


@pytest.mark.nightly
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=recipes())
def test_each_pass_keeps_the_elements_of_any_recipe(text: str) -> None:
    keeps_elements(text, count=3)


REPEATED = {"a shard, padded", "shuffled, dropped"}
"""Streams of which the others have each part."""


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("text", "shard"),
    [pytest.param(*given, marks=[pytest.mark.nightly] * (name in REPEATED)) for name, given in STREAMS.items()],
    ids=list(STREAMS),
)
def test_each_pass_keeps_the_stream(text: str, shard: tuple[int, int]) -> None:
    keeps_the_stream(text, shard, every="window" in text)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("geometry", marks=pytest.mark.nightly),
        pytest.param("combining", marks=pytest.mark.nightly),  # by day pipelines combine in XLA
        pytest.param("perspective", marks=pytest.mark.nightly),
        pytest.param("colour", marks=pytest.mark.nightly),
        pytest.param("tables of histograms", marks=pytest.mark.nightly),
        pytest.param("filters", marks=pytest.mark.nightly),
        pytest.param("one channel", marks=pytest.mark.nightly),
        pytest.param("a crop in the batch", marks=pytest.mark.nightly),
        pytest.param("channels first, one-hot, bytes", marks=pytest.mark.nightly),  # by day `test_exact_floats.py` compares the same
    ],
)
def test_the_whole_list_keeps_the_elements_in_xla(name: str) -> None:
    plan, spec, data = built(CASES[name], classes=3), load_spec(CASES[name]), records(photos(8))
    done = compiled(plan, spec)
    whole = replace(done.records[-1], rewrite_class="E0" if name in EXACT else "E1")
    before = interpret(plan, spec, data)
    close(whole, width_of(plan, before), before, interpret(done.plan, with_jit(spec, "always"), data))


def test_every_pass_is_tried() -> None:
    """Over the cases above, each pass changes a plan at least once, so that none is kept by doing nothing."""
    from pipegen.passes import PASSES

    changed: set[str] = set()
    for text in (*CASES.values(), *(text for text, _ in STREAMS.values())):
        for ram_budget in (2**30, 0):  # where there is a cache, nothing is branched
            done = compiled(built(text, classes=3), load_spec(text), num_examples=21, ram_budget=ram_budget)
            changed |= {r.name for r in done.records if r.changed}
    assert changed | {"crop_batches"} == {p.name for p in PASSES}, "whose images are stored: see tests/backend/test_canvas_crops.py"


def test_every_pass_on_elements_is_tried_by_itself() -> None:
    """The chosen cases are enough: over them each pass changes a plan that it changes in any case."""

    def changing(names: Iterable[str]) -> set[str]:
        found = (compiled(built(CASES[name], classes=3), load_spec(CASES[name]), num_examples=6, ram_budget=2**30) for name in names)
        return {record.name for done in found for record in done.records if record.changed}

    assert changing(ALONE) == changing(CASES)


def test_a_broken_rewrite_is_noticed() -> None:
    """The comparison itself: a plan that lost its kernels gives something else."""
    text = CASES["geometry"]
    spec, plan, data = with_jit(load_spec(text), "never"), built(text), records(photos(3))
    record = next(r for r in compiled(plan, spec).records if r.name == "batch_early")
    kernels = [n for n in record.after.nodes if isinstance(n, Kernel)]
    broken = record.after.with_nodes([n for n in record.after.nodes if n is not kernels[0]])
    with pytest.raises(AssertionError):
        close(record, 255.0, interpret(record.before, spec, data), interpret(broken, spec, data))
