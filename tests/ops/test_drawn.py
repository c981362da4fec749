"""What random steps say they drew: finite, within what the arguments allow, and the very numbers that they work with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from pipegen.ops.arguments.magnitudes import factor_range, symmetric_range
from pipegen.ops.families.augmentation import OPERATIONS, Augmentation
from pipegen.ops.families.combining import WHOLE, CombiningTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.selections import Selection
from pipegen.ops.families.sounds import SoundTransform
from pipegen.ops.registry import transforms
from pipegen.ops.step_bases import ColourTransform, CropTransform, GeometricTransform
from pipegen.ops.transform import Policy, Transform

if TYPE_CHECKING:
    from pipegen.ops.traits import Example

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
SHAPE = (260, 300, 3)
SOUND_SHAPE = (16000, 1, 1)  # frames and channels, and an axis that is not read
SPECTRA_SHAPE = (98, 64, 1)  # steps, bands and channels
RANDOM = [(op, example) for _, op in sorted(transforms().items()) if op.random for example in op.examples]
OWN_NAMES = {
    "spec_augment",
    "random_fourier_adaptation",
    "random_histogram_matching",
    "random_box_crop",
    "random_chromatic_aberration",
    "random_advanced_blur",
    "random_box_blur",
    "random_grid_shuffle",
    "random_illumination",
    "random_morphology",
    "random_stain",
    "aug_mix",
    "random_d4",
    "random_flip",
    "random_crop",
    "random_crop_around",
    "random_resized_crop",
    "random_rotate_90",
    "random_transpose",
    "random_erasing",
    "random_grid_distortion",
    "copy_paste",
    "cutmix",
    "mixup",
    "mosaic",
    "random_python",
    "random_coarse_dropout",
    "random_grid_dropout",
    "random_grid_mask",
    "random_shorter_side",
    "random_zoom_out",
    "scale_jitter",
    "random_iou_crop",
    "random_box_safe_crop",
    "random_glass_blur",
    "random_defocus_blur",  # of another width, its filter has another shape: see `test_degradations.py`
    "random_motion_blur",
    "random_channel_drop",
    "random_channel_shuffle",
    "random_pca_lighting",
    "random_photometric_distort",
    "random_tone_curve",
    "random_time_warp",  # whose speeds matter only beside each other
}
"""Steps, beside policies, that name what comes of their arguments instead of the arguments."""


def build(op: type[Transform], example: Example) -> Transform:
    written: Any = yaml.safe_load(example.yaml)
    step = op() if isinstance(written, str) else op.model_validate(written[op.op])
    return step.on(example.given).at(_tf().constant(0))


def _tf() -> Any:
    import tensorflow as tf

    return tf


def drawn(step: Transform, u: Array) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in step.drawn_on(_tf().constant(u), shape_for(step)).items()}


def shape_for(step: Transform) -> tuple[int, int, int]:
    if isinstance(step, SoundTransform):
        return SOUND_SHAPE if step.form != "spectra" else SPECTRA_SHAPE
    return SHAPE


def effect(step: Transform, u: Array) -> list[Array]:
    """What a step does, before it meets pixels."""
    tf = _tf()
    given, (height, width, channels) = tf.constant(u), shape_for(step)
    found: Any
    if isinstance(step, GeometricTransform):
        found = [step.matrix(given, tf.constant(float(height), tf.float64), tf.constant(float(width), tf.float64))]
    elif isinstance(step, ColourTransform):
        found = step.matrix(given, channels)
    elif isinstance(step, LookupTableTransform):
        found = [step.table(given, None)]
    elif isinstance(step, CropTransform):
        found = [step.window(given, tf.constant(height), tf.constant(width))]
    elif isinstance(step, CombiningTransform):
        found = [step.choose(given, height, width)]
    else:
        assert isinstance(step, NeighbourhoodTransform)
        found = step.parameters(given, height, width)
    return [np.asarray(part) for part in found]


def pinned(step: Transform, name: str, value: float) -> Transform:
    """The step with one argument at one value."""
    same = step.model_copy(update={name: (value, value)})
    if hasattr(step, "radius"):
        same._scheduled = step  # a filter is as wide as its largest sigma asks
    return same


def bounds_of(step: Transform, name: str) -> tuple[float, float]:
    given = getattr(step, name)
    return factor_range(given) if name in step.factors else symmetric_range(given)


@pytest.mark.by_day(60)
@pytest.mark.parametrize(("op", "example"), RANDOM, ids=[e.yaml for _, e in RANDOM])
def test_every_random_step_names_finite_numbers(op: type[Transform], example: Example) -> None:
    step = build(op, example)
    u = np.random.default_rng(0).random((200, step.num_draws()))
    named = drawn(step, u)
    assert bool(named) == (step.num_draws() > 0), "whoever draws says what came of it"
    for name, values in named.items():
        assert len(values) == 200, name
        if isinstance(step, Augmentation) and not name.startswith("operation"):
            continue  # an amount of one operation, which others do not have
        assert values.dtype.kind != "f" or np.isfinite(values).all(), name
        assert len(np.unique(values.astype(str), axis=0)) > 1 or _fixed(step, name), f"{name} never changes"


def _fixed(step: Transform, name: str) -> bool:
    """Whether the arguments leave nothing to draw."""
    if name in type(step).model_fields:
        low, high = bounds_of(step, name)
        return low == high
    if name == "pastes":
        return bool(step.probability == 1)  # type: ignore[attr-defined]
    return (name in ("height", "width") and step.op == "random_crop") or (name in ("top", "left") and step.op == "scale_jitter")


@pytest.mark.by_day(60)
@pytest.mark.parametrize(("op", "example"), RANDOM, ids=[e.yaml for _, e in RANDOM])
def test_a_named_argument_is_within_its_range_and_is_what_the_step_does(op: type[Transform], example: Example) -> None:
    step = build(op, example)
    if isinstance(step, Policy) or op.op in OWN_NAMES or not step.num_draws():
        return
    low_u, high_u = np.full((1, step.num_draws()), 0.125), np.full((1, step.num_draws()), 0.99)
    some = drawn(step, np.random.default_rng(1).random((500, step.num_draws())))
    for shown, value in drawn(step, low_u).items():
        name = shown if shown in type(step).model_fields else shown.rpartition("_")[0]
        low, high = bounds_of(step, name)
        assert low - 1e-15 * abs(low) <= some[shown].min() <= some[shown].max() <= high + 1e-15 * abs(high)  # logarithms round
        if low == high:
            continue
        assert some[shown].std() > 0.1 * (high - low), "all of the range is drawn from"
        if value.size > 1 and getattr(step, "each", None) == "channel":
            np.testing.assert_allclose(effect(step, low_u)[0], value, rtol=1e-6)
            continue
        same, other = (effect(pinned(step, name, np.ravel(v)[0].item()), low_u) for v in (value, drawn(step, high_u)[shown]))
        for was, is_ in zip(effect(step, low_u), same, strict=True):
            np.testing.assert_allclose(is_, was, rtol=1e-12, atol=1e-12)
        assert any(np.any(a != b) for a, b in zip(effect(step, low_u), other, strict=True)), f"{shown} changes nothing"


def test_a_flip_says_which_way() -> None:
    tf = _tf()
    step = transforms()["random_flip"].model_validate({"axis": "both", "probability": 0.3})
    u = np.random.default_rng(2).random((50, 2))
    named = drawn(step, u)
    matrix = step.matrix(tf.constant(u), tf.constant(9.0, tf.float64), tf.constant(9.0, tf.float64)).numpy()  # type: ignore[attr-defined]
    np.testing.assert_array_equal(matrix[:, 0, 0] < 0, named["horizontal"])
    np.testing.assert_array_equal(matrix[:, 1, 1] < 0, named["vertical"])
    assert 0 < named["horizontal"].sum() < 50


@pytest.mark.parametrize("name", ["random_crop", "random_resized_crop"])
def test_a_crop_says_its_window(name: str) -> None:
    step = transforms()[name].model_validate({"size": [40, 50]})
    u = np.random.default_rng(3).random((50, step.num_draws()))
    (window,) = effect(step, u)
    np.testing.assert_array_equal(np.stack(list(drawn(step, u).values()), -1), window)
    assert list(drawn(step, u)) == ["top", "left", "height", "width"]


def test_erasing_says_what_is_gone() -> None:
    step = transforms()["random_erasing"].model_validate({"fill": {"constant": 0}})
    u = np.random.default_rng(4).random((5, 4))
    images: Array = np.full((5, *SHAPE), 255, np.uint8)
    gone = step.apply(_tf().constant(images), *(_tf().constant(p) for p in effect(step, u))).numpy()[..., 0] == 0  # type: ignore[attr-defined]
    for mask, top, left, height, width in zip(gone, *drawn(step, u).values(), strict=True):
        assert mask.sum() == height * width
        assert mask[top : top + height, left : left + width].all()


@pytest.mark.parametrize("given", [{"mixup": {"alpha": 1}}, {"cutmix": {"alpha": 1}}, {"mosaic": {}}], ids=lambda given: next(iter(given)))
def test_combining_says_how_much_stays(given: dict[str, Any]) -> None:
    ((name, arguments),) = given.items()
    step = transforms()[name].model_validate({**arguments, "probability": 0.7})
    assert isinstance(step, CombiningTransform)
    u = np.random.default_rng(5).random((40, step.num_draws()))
    named = drawn(step, u)
    ones = _tf().ones((40, *SHAPE))
    left = step.combine(ones, 0 * _tf().stack([ones] * step.others, 1), _tf().constant(effect(step, u)[0])).numpy().mean((1, 2, 3))
    np.testing.assert_allclose(left, named["own_share"], atol=2 / WHOLE)
    assert (named["own_share"][u[:, 1] >= 0.7] == 1).all()
    if "row" in named:
        np.testing.assert_allclose(named["row"] * named["column"] / (SHAPE[0] * SHAPE[1]), named["own_share"], atol=1e-6)
    if "height" in named:
        np.testing.assert_allclose(1 - named["height"] * named["width"] / (SHAPE[0] * SHAPE[1]), named["own_share"], atol=1e-6)


def test_a_selection_says_what_is_chosen() -> None:
    steps = ["random_flip", {"random_hue": {"degrees": 9}}, "random_flip"]
    one = transforms()["one_of"].model_validate({"steps": steps})
    assert isinstance(one, Selection)
    u = np.random.default_rng(6).random((60, 1))
    named = drawn(one, u)
    assert list(named) == ["random_flip", "random_hue", "random_flip#2"]
    assert (np.sum(list(named.values()), 0) == 1).all()
    some = transforms()["some_of"].model_validate({"steps": steps, "count": [0, 2]})
    counts = np.sum(list(drawn(some, np.random.default_rng(7).random((90, 4))).values()), 0)
    assert set(counts) == {0, 1, 2}


UNITS = {
    "rotate": "degrees", "shear_x": "slope", "shear_y": "slope", "brightness": "factor", "color": "factor", "contrast": "factor",
    "sharpness": "factor", "posterize": "bits", "solarize": "threshold",
}  # fmt: skip


@pytest.mark.parametrize("name", ["rand_augment", "trivial_augment", "auto_augment"])
def test_an_augmentation_says_what_each_layer_does(name: str) -> None:
    step = transforms()[name]()
    assert isinstance(step, Augmentation)
    u = np.random.default_rng(8).random((400, step.num_draws()))
    named = drawn(step, u)
    way = "pixels" if step.limits.in_pixels else "fraction"
    for layer in range(1, len(step.shares()) + 1):
        words = [word.decode() for word in named[f"operation_{layer}"]]
        assert set(words) <= set(OPERATIONS)
        for i, word in enumerate(words):
            has = {unit for unit in {*UNITS.values(), way} if np.isfinite(named[f"{unit}_{layer}"][i])}
            assert has == ({way} if word.startswith("translate") else {UNITS[word]} if word in UNITS else set()), word


def test_the_amounts_of_an_augmentation_are_those_of_its_matrices() -> None:
    """One layer, so that each example's matrices are those of one operation, which plain steps can do as well."""
    step = transforms()["trivial_augment"]()
    assert isinstance(step, Augmentation)
    u = np.random.default_rng(9).random((300, step.num_draws()))
    named, parts = drawn(step, u), {part.step.part: part.step for part in step.parts()}
    (geometry,), (a, _, m) = effect(parts["geometry"], u), effect(parts["colour"], u)
    table, tried = effect(parts["tables"], u)[0][:, 0], set()
    none = np.zeros((1, 0))
    for i, word in enumerate(word.decode() for word in named["operation_1"]):
        amount = {unit: float(named[f"{unit}_1"][i]) for unit in ("degrees", "slope", "pixels", "factor", "bits", "threshold")}
        if word == "rotate":
            plain = transforms()["rotation"].model_validate({"degrees": amount["degrees"]})
            np.testing.assert_allclose(geometry[i], effect(plain, none)[0].reshape(3, 3), atol=1e-9)
        elif word == "translate_x":
            assert geometry[i, 0, 2] == pytest.approx(-amount["pixels"])
        elif word == "shear_y":
            assert geometry[i, 1, 0] == pytest.approx(-amount["slope"])
        elif word in ("brightness", "contrast"):
            plain = transforms()[word].model_validate({"factor": amount["factor"]})
            wanted = effect(plain, none)
            np.testing.assert_allclose(a[i], wanted[0].reshape(3, 3), atol=1e-12)
            np.testing.assert_allclose(m[i], wanted[2].reshape(3), atol=1e-12)
        elif word == "posterize":
            assert (table[i] == np.arange(256) >> 8 - int(amount["bits"]) << 8 - int(amount["bits"])).all()
        elif word == "solarize":
            x = np.arange(256)
            assert (table[i] == np.where(x >= amount["threshold"], 255 - x, x)).all()
        else:
            continue
        tried.add(word)
    assert len(tried) == 7
