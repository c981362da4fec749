"""A crop of a whole batch of canvases gives the bits of a crop of one image at a time, with and without XLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.backend.kernels.chain import lower_kernel
from pipegen.backend.kernels.lower import apply_element, apply_stage
from pipegen.ops.families.crops import CanvasCrop, place_name, size_name, store_name
from pipegen.ops.registry import transforms
from pipegen.ops.stage import StepRef
from pipegen.plan.nodes import Kernel
from pipegen.plan.stages import Crop, Warp
from pipegen.types import BYTE_RANGE, ElementType, FeatureType

pytestmark = pytest.mark.tf

BATCH = 6
CANVAS = (40, 56)
SIZES = ((16, 16), (9, 31), (45, 20))


def stages(size: tuple[int, int], channels: int = 3) -> tuple[CanvasCrop, Crop, Warp]:
    given: dict[str, Any] = {"size": size}
    crop = StepRef(transforms()["random_resized_crop"](**given), "crop", ("transforms", 0), 0, False)
    axis: dict[str, Any] = {"axis": "both"}
    flip = StepRef(transforms()["random_flip"](**axis), "flip", ("transforms", 1), crop.num_draws, False)
    warp = Warp("image", (flip,), "reflect", "bilinear", size, size, True)
    return CanvasCrop("image", crop, CANVAS, channels, size, (flip,)), Crop("image", crop), warp


def examples(seed: int, channels: int = 3) -> tuple[Any, Any, Any]:
    """Canvases whose images have noise beside and below them, their sizes, and draws."""
    rng = np.random.default_rng(seed)
    sizes = np.stack([rng.integers(1, CANVAS[0] + 1, BATCH), rng.integers(1, CANVAS[1] + 1, BATCH)], 1).astype(np.int32)
    sizes[0] = CANVAS
    return rng.integers(0, 256, (BATCH, *CANVAS, channels), np.uint8), sizes, rng.random((BATCH, 26))


@pytest.mark.parametrize("channels", [1, 4, 7])
def test_it_reads_pixels_of_any_number_of_bytes(channels: int) -> None:
    canvases, sizes, draws = examples(channels, channels)
    features = {"image": tf.constant(canvases), size_name("image"): tf.constant(sizes), "@draws": tf.constant(draws)}
    apply_stage(stages(SIZES[0], channels)[0], features)
    np.testing.assert_array_equal(features["image"], one_by_one(SIZES[0], canvases, sizes, draws))


def test_it_reads_a_memory_in_place() -> None:
    """Images begin at any byte of it."""
    canvases, sizes, draws = examples(1)
    held = np.zeros(canvases.size + 8 * BATCH + 4, np.uint8)
    places = [i * (canvases[0].size + 1) for i in (3, 1, 0, 5, 2, 4)]
    for canvas, place in zip(canvases, places, strict=True):
        held[place : place + canvas.size] = canvas.reshape(-1)
    memory = {
        store_name("image"): tf.constant(held[: len(held) // 8 * 8].view(np.uint64)),
        place_name("image"): tf.constant(places, tf.int64),
    }
    features = {size_name("image"): tf.constant(sizes), "@draws": tf.constant(draws)} | memory
    apply_stage(stages(SIZES[0])[0], features)
    np.testing.assert_array_equal(features["image"], one_by_one(SIZES[0], canvases, sizes, draws))


def one_by_one(size: tuple[int, int], canvases: Any, sizes: Any, draws: Any) -> Any:
    _, crop, mirror = stages(size)
    found = []
    for canvas, (height, width), own in zip(canvases, sizes, draws, strict=True):
        features = {"image": tf.constant(canvas[:height, :width]), "@draws": tf.constant(own)}
        apply_element(crop, features)
        apply_element(mirror, features)
        found.append(features["image"].numpy())
    return np.stack(found)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SIZES))
def test_it_is_bit_equal_to_single_crops(seed: int, size: tuple[int, int]) -> None:
    canvases, sizes, draws = examples(seed)
    features = {"image": tf.constant(canvases), size_name("image"): tf.constant(sizes), "@draws": tf.constant(draws)}
    apply_stage(stages(size)[0], features)
    np.testing.assert_array_equal(features["image"], one_by_one(size, canvases, sizes, draws))


@pytest.mark.nightly
@pytest.mark.parametrize(("size", "seeds"), [(size, 12) for size in SIZES])
def test_xla_gives_the_same_bits(size: tuple[int, int], seeds: int) -> None:
    stage = stages(size)[0]
    entry = ElementType((("image", FeatureType("image", "uint8", (*CANVAS, 3), BYTE_RANGE)),), BATCH)
    out = ElementType((("image", FeatureType("image", "uint8", (*size, 3), BYTE_RANGE)),), BATCH)
    kernel = lower_kernel(Kernel(out, (stage,), True), entry, BATCH, "always")
    for seed in range(seeds):
        canvases, sizes, draws = examples(seed)
        for rows in (BATCH, 4):
            given = {"image": canvases[:rows], size_name("image"): sizes[:rows], "@draws": draws[:rows]}
            got = kernel({name: tf.constant(value) for name, value in given.items()})["image"]
            np.testing.assert_array_equal(got, one_by_one(size, canvases[:rows], sizes[:rows], draws[:rows]))
