"""Noise, plasma, stain, light, snow, morphology and blurs of whole numbers: the same in XLA, and of the distribution that they name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import checked
from scipy import stats

from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.transforms.blurs import RandomAdvancedBlur, RandomBoxBlur
from pipegen.ops.transforms.dropout import RandomPixelDropout
from pipegen.ops.transforms.light import RandomIllumination, RandomPlasma
from pipegen.ops.transforms.morphology import RandomMorphology
from pipegen.ops.transforms.noise import RandomAdditiveNoise
from pipegen.ops.transforms.stain import RandomStain
from pipegen.ops.transforms.weather import RandomPlasmaShadow, RandomSnow

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
STEPS = (
    RandomAdditiveNoise(delta=30, distribution="laplace"), RandomAdvancedBlur(sigma=(0.3, 1.4)), RandomBoxBlur(reach=(0, 3)),
    RandomIllumination(intensity=0.5, pattern="spot"), RandomIllumination(intensity=0.5, pattern="corner"), RandomMorphology(reach=(0, 2)),
    RandomPixelDropout(share=0.3, per_channel=True), RandomPlasma(brightness=0.4, contrast=0.5, sigma=9), RandomPlasmaShadow(sigma=9),
    RandomSnow(point=(0.3, 0.7)), RandomStain(factor=0.4, delta=0.2),
)  # fmt: skip


def applied(step: NeighbourhoodTransform, images: Array, *, jit: bool = False, seed: int = 3) -> Array:
    import tensorflow as tf

    def whole(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return step.apply(x, *step.parameters(u, *images.shape[1:3]))

    u = np.random.default_rng(seed).random((len(images), step.num_draws()))
    return tf.function(whole, jit_compile=jit, autograph=False)(tf.constant(images), tf.constant(u)).numpy()


BY_DAY = ("random_additive_noise", "random_plasma_shadow")


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "step", [pytest.param(s, marks=[pytest.mark.nightly] * (s.op not in BY_DAY)) for s in STEPS], ids=lambda step: step.op
)
def test_bytes_are_the_same_in_xla(step: NeighbourhoodTransform) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 20, 24, 3)).astype(np.uint8)
    done = applied(step, images)
    assert (done != images).any()
    np.testing.assert_array_equal(applied(step, images, jit=True), done)


@pytest.mark.nightly
def test_noise_has_its_distribution() -> None:
    gray = np.full((2, 90, 100, 3), 128, np.uint8)
    flat = (applied(RandomAdditiveNoise(delta=(60, 60)), gray).astype(float) - 128).ravel()
    assert stats.kstest(flat + np.random.default_rng(0).random(flat.size) - 0.5, stats.uniform(-60.5, 121).cdf).statistic < 0.01
    peaked = (applied(RandomAdditiveNoise(delta=(9, 9), distribution="laplace"), gray).astype(float) - 128).ravel()
    assert np.abs(peaked).mean() == pytest.approx(9, rel=0.02)
    assert np.median(np.abs(peaked)) == pytest.approx(9 * np.log(2), abs=0.6)
    one = applied(RandomAdditiveNoise(delta=(60, 60), each="channel"), gray)
    assert (one == one[:, :1, :1]).all()
    assert (applied(RandomAdditiveNoise(delta=(60, 60), each="pixel"), gray)[..., :1] == applied(
        RandomAdditiveNoise(delta=(60, 60), each="pixel"), gray)).all()  # fmt: skip
    dropped = applied(RandomPixelDropout(share=(0.2, 0.2), value=7), gray)
    assert (dropped == 7).mean() == pytest.approx(0.2, abs=0.01)
    assert ((dropped == 7).all(-1) | (dropped == 128).all(-1)).all()


@pytest.mark.nightly
def test_plasma_reaches_both_ways_and_shadows_darken() -> None:
    gray = np.full((3, 120, 140, 3), 128, np.uint8)
    done = applied(RandomPlasma(brightness=(0.4, 0.4), sigma=12), gray).astype(int) - 128
    assert done.min() < -60
    assert done.max() > 60
    assert abs(done.mean()) < 12
    dark = applied(RandomPlasmaShadow(darkness=(1, 1), sigma=12), gray)
    assert dark.max() <= 128
    assert dark.min() < 10
    assert dark.mean() == pytest.approx(64, abs=8)
    assert (applied(RandomPlasma(contrast=(0.5, 0.5)), gray) == 128).all(), "contrast pivots on the middle"


def test_cells_move_masks_and_no_boxes() -> None:
    source = "source: {files: {features: {image: {kind: image, path: a/}, mask: {kind: mask, path: b/}}}}\n"
    found = checked(source + "transforms: [{resize: {size: 32}}, random_grid_shuffle]\noutput: {y: mask}")
    acted = {stage.feature for stage in found.plans["train"].stages() for use in stage.uses() if use.step.op == "random_grid_shuffle"}
    assert acted == {"image", "mask"}
    boxes = {"coco": {"images": "photos/", "annotations": "boxes.json"}}
    refused = checked({"source": boxes, "transforms": [{"resize": {"size": 32}}, "random_grid_shuffle"], "output": {"y": "boxes"}})
    assert [d.code for d in refused.diagnostics.items if d.severity.value == "error"] == ["PG203"]
