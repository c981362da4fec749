"""AugMix against Pillow's operations and SciPy's sampling of the same numbers, in and out of XLA."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from planning import built, checked, compiled, interpret, load_spec, photos, records

from pipegen.ops.lowering.random import symmetric_dirichlet
from pipegen.ops.transforms.aug_mix import AugMix

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
STEP = {"chains": 3, "depth": [1, 3], "magnitude": 8, "fill": "nearest"}
PILLOW = {
    "auto_contrast": lambda x, _: ImageOps.autocontrast(x),
    "equalize": lambda x, _: ImageOps.equalize(x),
    "posterize": lambda x, strength: ImageOps.posterize(x, max(4 - int(strength * 4), 1)),
    "solarize": lambda x, strength: ImageOps.solarize(x, 256 - int(strength * 256)),
}


def matrix(name: str, signed: float, height: int, width: int) -> Array:
    """From output to input, about the centre of the canvas or its corner, as Pillow's users write it."""
    m = np.eye(3)
    if name == "rotate":
        a = np.radians(30 * signed)
        m[:2, :2] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
        c = np.array([(width - 1) / 2, (height - 1) / 2])
        m[:2, 2] = c - m[:2, :2] @ c
    elif name == "translate_x":
        m[0, 2] = -signed * width / 3
    elif name == "translate_y":
        m[1, 2] = -signed * height / 3
    elif name == "shear_x":
        m[0, 1:] = -0.3 * signed, -0.15 * signed
    else:
        m[1, 0], m[1, 2] = -0.3 * signed, -0.15 * signed
    return m


def reference(step: AugMix, image: Array, u: Array) -> Array:
    """One image as floats make it of the same draws, one operation after another."""
    import tensorflow as tf
    from scipy import ndimage

    drawn = {name: value.numpy() for name, value in step.drawn(tf.constant(u[None])).items()}
    chosen = step._chosen(tf.constant(u[None]))
    strength, sign = (part.numpy()[0] for part in (chosen.strength, chosen.sign))
    total = drawn["own_share"][0] * image
    for chain in range(step.chains):
        names = drawn[f"operations_{chain + 1}"][0].decode().split("+")
        x, m = Image.fromarray(image), np.eye(3)
        for layer, name in enumerate(names):
            if name in PILLOW:
                x = PILLOW[name](x, strength[chain, layer])
            else:
                m = m @ matrix(name, sign[chain, layer] * strength[chain, layer], *image.shape[:2])
        rows, columns = np.indices(image.shape[:2])
        at = m[:2, 0, None, None] * columns + m[:2, 1, None, None] * rows + m[:2, 2, None, None]
        pixels = np.asarray(x, float)
        moved = np.stack([ndimage.map_coordinates(pixels[..., c], at[::-1], order=1, mode="nearest") for c in range(3)], -1)
        total = total + drawn[f"weight_{chain + 1}"][0] * moved
    return total


def smooth(count: int) -> Array:
    y, x = np.mgrid[:40, :52]
    waves = [128 + 100 * np.sin(x / (7 + i) + c) * np.cos(y / (9 + c) + i) for i in range(count) for c in range(3)]
    return np.stack(waves, -1).reshape(40, 52, count, 3).transpose(2, 0, 1, 3).round().astype(np.uint8)


@pytest.mark.nightly
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.nightly)])  # XLA takes four seconds to compile it
@pytest.mark.parametrize("more", [pytest.param({}, marks=pytest.mark.nightly), {"geometry": False}])
def test_a_blend_is_pillow_s_of_the_same_draws(more: dict[str, Any], jit: bool) -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.table_kernels import blend_chains, chain_phases
    from pipegen.ops.stage import StepRef
    from pipegen.ops.traits import IMAGE_224

    step = AugMix.model_validate_json(json.dumps({**STEP, **more}))
    images = smooth(12)
    u = np.random.default_rng(4).random((12, step.num_draws()))
    stage = step.stage("image", StepRef(step, "aug_mix", ("transforms", 0), 0, False), IMAGE_224)

    def whole(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        params = step.parameters(u, 40, 52)
        for phase in chain_phases(stage):
            params = phase(x, params)
        return blend_chains(stage, x, params)

    done = tf.function(whole, autograph=False)(tf.constant(images), tf.constant(u)).numpy()
    for image, draws, mine in zip(images, u, done, strict=True):
        away = np.abs(mine - reference(step, image, draws))
        assert away.max() <= (0.6 if more else 2.5), "bytes after each chain's tables, and again after its geometry"
        assert away.mean() < 0.6
    unknown = tf.function(
        whole, autograph=False, input_signature=[tf.TensorSpec([None, None, None, 3], tf.uint8), tf.TensorSpec(u.shape, u.dtype)]
    )
    np.testing.assert_array_equal(unknown(tf.constant(images), tf.constant(u)), done, err_msg="before a resize sizes are unknown")
    if jit:
        np.testing.assert_array_equal(tf.function(whole, jit_compile=True)(tf.constant(images), tf.constant(u)), done)


def test_weights_are_dirichlet_s() -> None:
    import tensorflow as tf
    from scipy import stats

    u = np.random.default_rng(0).random((4000, 3))
    for alpha in (0.3, 1.0, 4.0):
        shares = symmetric_dirichlet(tf.constant(u), alpha).numpy()
        np.testing.assert_allclose(shares.sum(1), 1)
        gamma = stats.gamma(alpha).ppf(u)
        np.testing.assert_allclose(shares, gamma / gamma.sum(1, keepdims=True), atol=1e-9)
    step = AugMix(alpha=2.0)
    drawn = step.drawn(tf.constant(np.random.default_rng(1).random((4000, step.num_draws()))))
    assert stats.kstest(drawn["own_share"].numpy(), stats.beta(2, 2).cdf).pvalue > 0.001
    depths = [len(text.decode().split("+")) for text in drawn["operations_2"].numpy()]
    np.testing.assert_allclose(np.bincount(depths)[1:] / 4000, [1 / 3] * 3, atol=0.03)


@pytest.mark.nightly  # by day a blend is compared with Pillow's
def test_a_plan_of_it_is_the_same_in_xla() -> None:
    text = "transforms: [{resize: {size: [24, 30]}}, {aug_mix: {probability: 0.6, magnitude: {step: {0: 2, 1: 9}}}}]\nbatch: {size: 12}\n"
    plan, data = built(text, classes=3), records(photos(12, 40, 50))
    spec, never = load_spec(text), load_spec(text + "runtime: {jit: never}")
    fast = interpret(compiled(plan, spec).plan, spec, data)["image"]
    np.testing.assert_array_equal(interpret(plan, never, data)["image"], fast)


FILES = "source: {files: {features: {image: {kind: image, path: a/}, other: {kind: image, path: c/}, OTHERS}}}\n"
MASK, DEPTH = "mask: {kind: mask, path: b/, of: image}", "depth: {kind: image, path: d/, of: image}"


@pytest.mark.parametrize(("others", "step", "acting"), [
    (MASK, "aug_mix", {"image": False, "other": False}), (DEPTH, "aug_mix", {"image": None, "depth": None, "other": None}),
    (f"{MASK}, {DEPTH}", "aug_mix", {"image": False, "other": False}), (MASK, "{aug_mix: {feature: other}}", {"other": None}),
    (MASK, "{aug_mix: {feature: image}}", {"image": False}),
    (MASK, "{one_of: {steps: [aug_mix, random_invert]}}", {"image": False, "other": False}),
])  # fmt: skip
def test_beside_what_cannot_follow_it_leaves_geometry_out(others: str, step: str, acting: dict[str, bool | None]) -> None:
    text = f"{FILES.replace('OTHERS', others)}transforms: [{{resize: {{size: 32}}}}, {step}]\noutput: {{x: [image, other]}}"
    found = checked(text)
    assert not found.diagnostics.has_errors, found.diagnostics.items
    stages = [stage for stage in found.plans["train"].stages() if type(stage).__name__ == "BlendChains"]
    assert {stage.feature: stage.ref.step.geometry for stage in stages} == acting
    assert {ref.step.geometry for ref in found.plans["train"].index.draws if ref.step.op == "aug_mix"} <= {*acting.values()}


def test_geometry_beside_a_mask_is_refused_and_the_hash_is_that_of_geometry() -> None:
    from pipegen.spec.spec_hash import spec_hash

    steps = "transforms: [{resize: {size: 32}}, {aug_mix: {geometry: true}}]\noutput: {x: image, y: mask}"
    masks = FILES.replace("OTHERS", MASK) + steps
    (error,) = [d for d in checked(masks).diagnostics.items if d.code == "PG203"]
    assert "leave `geometry` out" in str(error.help)
    assert not checked(masks.replace("{geometry: true}", "{}")).diagnostics.has_errors
    plain, said = (load_spec(f"transforms: [{{aug_mix: {arguments}}}]") for arguments in ("{}", "{geometry: true}"))
    assert spec_hash(plain) == spec_hash(said)
