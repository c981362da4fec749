"""What every step owes: documentation, worked examples that hold, arguments that survive being written down, and a
lowering that gives what `infer` promises."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from planning import callee_of

from pipegen.ops import registry
from pipegen.ops.arguments.learned import Fitted
from pipegen.ops.data_test import DataTest
from pipegen.ops.families.chains import ChainsTransform
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.item_stages import PastingTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import DisplacementTransform, NeighbourhoodTransform
from pipegen.ops.model import field_docs
from pipegen.ops.registry import default_decoder, transforms
from pipegen.ops.stage import StepRef, step_kwargs
from pipegen.ops.step_bases import ColourTransform, CropTransform, ElementTransform, GeometricTransform, PointwiseTransform
from pipegen.ops.traits import Family
from pipegen.ops.transform import Policy, Transform

if TYPE_CHECKING:
    from pipegen.ops.traits import Example
    from pipegen.types import FeatureType

EXPECTED = {
    "cast", "center_crop", "decode", "grayscale", "normalize", "random_brightness", "random_contrast", "random_crop", "random_flip",
    "random_hue", "random_resized_crop", "random_rotation", "random_saturation", "random_shear", "random_translation", "random_zoom",
    "rescale", "resize",
    "auto_contrast", "brightness", "contrast", "equalization", "gamma", "hue", "invert", "posterization", "random_auto_contrast",
    "random_channel_shift", "random_color_jitter", "random_equalization", "random_gamma", "random_grayscale", "random_invert",
    "random_posterization", "random_solarization", "saturation", "solarization",
    "copy_paste", "cutmix", "mixup", "mosaic",
    "clahe", "random_clahe", "median_blur", "random_median_blur", "random_coarse_dropout", "random_grid_dropout", "random_grid_mask",
    "gaussian_blur", "random_elastic", "random_erasing", "random_gaussian_blur", "random_gaussian_noise", "random_sharpness", "sharpness",
    "affine", "flip", "perspective", "random_affine", "random_perspective", "rotation", "shear", "translation", "zoom",
    "standardize", "whiten",
    "python", "random_python",
    "random_channel_drop", "random_channel_shuffle", "random_color_temperature", "random_pca_lighting", "random_photometric_distort",
    "random_fog", "random_order", "random_rain", "random_shadow", "random_spatter", "random_sun_flare",
    "random_hsv", "random_iso_noise", "random_salt_and_pepper", "random_shot_noise",
    "random_rgb_shift", "random_sepia", "random_solarize_add", "random_tone_curve", "sepia",
}  # fmt: skip

OPS = sorted(transforms().items())
EXAMPLES = [(op, example) for _, op in OPS for example in op.examples]


def build(op: type[Transform], example: Example) -> Transform:
    """The step of a worked example, read as a spec is read."""
    written: Any = yaml.safe_load(example.yaml)
    if isinstance(written, str):
        assert written == op.op
        return op()
    ((name, arguments),) = written.items()
    assert name == op.op
    return op.model_validate(arguments)


def test_the_language_names_these_steps() -> None:
    assert set(transforms()) >= EXPECTED


@pytest.mark.parametrize(("name", "op"), OPS)
def test_documentation(name: str, op: type[Transform]) -> None:
    assert op.op == name
    assert op.__doc__, "the class docstring is the user's documentation"
    assert op.__doc__ != Transform.__doc__
    assert op.__doc__.splitlines()[0].endswith((".", ":", "…")) or len(op.__doc__.splitlines()) > 1
    assert op.examples, "at least one worked example"
    assert set(field_docs(op)) == set(op.model_fields), "every argument has its documentation below it"


@pytest.mark.parametrize(("name", "op"), OPS)
def test_an_argument_says_its_unit(name: str, op: type[Transform]) -> None:
    units = {"degrees": "degrees", "size": "pixels", "shorter_side": "pixels"}
    for field, unit in units.items():
        if field in op.model_fields:
            assert unit in field_docs(op)[field], f"{name}.{field}"


@pytest.mark.parametrize(("op", "example"), EXAMPLES, ids=[e.yaml for _, e in EXAMPLES])
def test_example(op: type[Transform], example: Example) -> None:
    step = build(op, example).on(example.given)
    assert str(step.infer(example.given)) == example.then
    assert step.lints(example.given) == (), "a worked example is good practice"
    assert not step.is_identity(example.given)


@pytest.mark.by_day(100)
@pytest.mark.parametrize(("op", "example"), EXAMPLES, ids=[e.yaml for _, e in EXAMPLES])
def test_arguments_survive_yaml(op: type[Transform], example: Example) -> None:
    step = build(op, example)
    again = op.model_validate(yaml.safe_load(yaml.safe_dump(step_kwargs(step))) or {})
    assert again == step


@pytest.mark.parametrize(("name", "op"), OPS)
def test_traits_agree_with_the_class(name: str, op: type[Transform]) -> None:
    example = op.examples[0]
    step = build(op, example)
    traits = step.traits(example.given)
    draws = step.num_draws() > 0 or getattr(step, "probability", 1.0) < 1  # what draws nothing of its own may still draw whether it acts
    assert op.random == draws
    by_name = traits.family not in (Family.COMBINING, Family.POLICY) and name not in (
        "scale_jitter",
        "aug_mix",
        "spec_augment",
    )  # as the literature has it
    assert op.random == (name.startswith("random_") or not by_name)
    if isinstance(step, GeometricTransform):
        assert traits.family is Family.GEOMETRIC


@pytest.mark.parametrize(("name", "op"), OPS)
def test_a_random_step_that_fixes_the_shape_has_an_evaluation_form(name: str, op: type[Transform]) -> None:
    step = build(op, op.examples[0])
    x = op.examples[0].given
    form = step.evaluation_form()
    assert bool(form) == (op.random and (step.infer(x).shape != x.shape or step.traits(x).resizes))
    y = x
    for part in form:
        assert not part.random
        y = part.infer(y)
    if form:
        assert y == step.infer(x)


def test_the_default_decoder_is_decode() -> None:
    assert default_decoder() == transforms()["decode"]()


def test_unknown_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match=re.compile("extra", re.IGNORECASE)):
        transforms()["random_rotation"].model_validate({"degrees": 10, "angle": 3})


def image_of(x: FeatureType, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Noise of the given type; unknown sides are 260 by 300 pixels, and an unknown length is 40,000 samples or 300 frames."""
    usual = (260, 300, 3) if x.kind == "image" else (40_000, 1) if len(x.shape) == 2 else (300, 80, 1)
    shape = [d or fallback for d, fallback in zip(x.shape, usual, strict=True)]
    values = rng.uniform(*((x.interval.low, x.interval.high) if x.interval is not None else (-5, 5)), shape)
    return (np.round(values) if x.dtype == "uint8" else values).astype(x.dtype)


def run(step: Transform, x: FeatureType, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """The step's output on one image, the plainest way."""
    import tensorflow as tf

    step = step.at(tf.constant(0))
    if isinstance(step, CustomTransform):
        step = step.with_callee(callee_of(step))
    if isinstance(step, FittedTransform):
        (part,) = step.parts()
        return run(part.step, x, rng)
    if isinstance(step, Policy):
        image = image_of(x, rng)
        for part in step.parts():
            x = part.step.infer(x)
            image = run(part.step, x, rng)
        return image.astype(x.dtype)
    u = tf.constant(rng.random(step.num_draws()))
    if isinstance(step, DecodeTransform):
        wide = step.infer(x).dtype == "uint16"
        png = tf.io.encode_png(rng.integers(0, 256, (20, 30, 3)).astype(np.uint16 if wide else np.uint8))
        return step.apply(png, u).numpy()
    image = image_of(x, rng)
    height, width, channels = (*image.shape, 1)[:3]
    if isinstance(step, CropTransform):
        return step.finish(step.cut(tf.constant(image), step.window(u, tf.constant(height), tf.constant(width)))).numpy()
    if isinstance(step, ElementTransform):
        return step.apply(tf.constant(image), u).numpy()
    if isinstance(step, GeometricTransform):
        matrix = step.matrix(u, tf.constant(float(height), tf.float64), tf.constant(float(width), tf.float64))
        assert matrix.shape == (3, 3)
        assert matrix.dtype == tf.float64
        return image.swapaxes(0, 1) if step.traits(x).turns and step.infer(x).shape != x.shape else image
    if isinstance(step, ColourTransform):
        a, b, m = (t.numpy() for t in step.matrix(u, channels))
        mean = image.mean((0, 1)) if m.ndim == 2 else (image @ np.array([0.299, 0.587, 0.114])).mean()
        assert x.interval is not None
        return np.clip(image @ a.T + b + m @ mean if m.ndim == 2 else image @ a.T + b + m * mean, x.interval.low, x.interval.high).astype(
            np.float32
        )
    if isinstance(step, LookupTableTransform):
        from pipegen.backend.kernels.table_kernels import histogram, look_up

        one = tf.constant(image)[None]
        return look_up(one, step.table(u[None], histogram(one) if step.needs_histogram else None)).numpy()[0]
    if isinstance(step, PastingTransform):
        mask = np.ones((1, height, width, 1), np.uint8)
        assert step.pasted(tf.constant(mask), u[None], 0).shape == mask.shape
        return image
    if isinstance(step, CombiningTransform):
        others = np.stack([image[::-1]] * step.others)[None]
        return step.combine(image[None], others, step.choose(u[None], height, width)).numpy()[0]
    if isinstance(step, NeighbourhoodTransform):
        parameters = step.parameters(u[None], height, width)
        assert all(p.shape[0] == 1 for p in parameters)
        if isinstance(step, (ChainsTransform, DisplacementTransform)):  # the backend reads where it says
            from pipegen.backend.kernels.lower import apply_stage

            features = {"image": tf.constant(image)[None], "@draws": tf.concat([u, [0.0]], 0)[None]}
            apply_stage(step.stage("image", StepRef(step, step.op, (), 0, gated=False), x), features)
            return features["image"].numpy()[0]
        return step.apply(tf.constant(image)[None], *parameters, clip=step.clip_of(x)).numpy()[0]
    assert isinstance(step, PointwiseTransform)
    arithmetic = step.arithmetic(x)
    ordered = image[..., list(arithmetic.order)] if arithmetic.order else image
    y = ordered * np.array(arithmetic.scale) + np.array(arithmetic.offset)
    return (np.clip(np.rint(y), 0, 255) if arithmetic.dtype == "uint8" else y).astype(arithmetic.dtype)


def learned(step: FittedTransform, x: FeatureType) -> FittedTransform:
    """The step, fitted on noise."""
    import tensorflow as tf

    given, rng = step.measuring("image"), np.random.default_rng(9)
    measured = [given.apply(tf.constant(image_of(x, rng)), tf.zeros(0)).numpy() for _ in range(8)]
    return step.with_numbers(Fitted({"image": step.gather([np.stack(measured[:5]), np.stack(measured[5:])])}, 8))


@pytest.mark.tf
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
@pytest.mark.parametrize(
    ("op", "example"),
    [  # by day `test_soundness.py` tries the same of what is not fitted, and the first example stands for a step that is
        pytest.param(op, e, marks=[pytest.mark.nightly] * (not issubclass(op, FittedTransform) or e is not op.examples[0]))
        for op, e in EXAMPLES
    ],
    ids=[e.yaml for _, e in EXAMPLES],
)
def test_inference_holds(op: type[Transform], example: Example, seed: int) -> None:
    step: Any = build(op, example).on(example.given)
    if isinstance(step, FittedTransform) and step.learns():
        step = learned(step, example.given)
    promised = step.infer(example.given)
    y = run(step, example.given, np.random.default_rng(seed))
    assert y.dtype == promised.dtype
    assert len(y.shape) == len(promised.shape)
    assert all(d is None or d == n for d, n in zip(promised.shape, y.shape, strict=True))
    if promised.interval is None:
        assert example.given.kind in ("audio", "series"), "images keep an interval in good practice"
        return
    slack = 1e-6 * promised.interval.width
    assert promised.interval.low - slack <= y.min()
    assert y.max() <= promised.interval.high + slack


@pytest.mark.parametrize(
    ("table", "folder", "base"), [(registry._STEPS, "transforms", Transform), (registry._DATA_TESTS, "datatests", DataTest)]
)
def test_the_tables_of_the_registry_name_every_file_and_every_op_in_it(table: dict[str, str], folder: str, base: type[Any]) -> None:
    package = f"pipegen.ops.{folder}"
    files = [info.name for info in pkgutil.iter_modules(importlib.import_module(package).__path__)]
    assert {file: sorted(registry._ops_in(f"{package}.{file}", base)) for file in files} == {
        file: ops.split() for file, ops in table.items()
    }
