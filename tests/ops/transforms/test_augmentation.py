"""RandAugment, TrivialAugment and AutoAugment: each operation against Pillow, what is drawn, and what the layers compose to."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps
from planning import built

from pipegen.ops.families.augmentation import COLOUR, GEOMETRY, NUMBER, OPERATIONS, Augmentation
from pipegen.ops.registry import transforms
from pipegen.ops.transforms.auto_augment import sub_policies

if TYPE_CHECKING:
    from pipegen.plan.nodes import Plan

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
HEIGHT, WIDTH = 30, 42
NAMES = ("rand_augment", "trivial_augment", "auto_augment")
USED = tuple(name for name in OPERATIONS if name != "invert")


@cache
def photo() -> Array:
    """Smooth, with values away from both ends, so that auto-contrast and equalization have something to do."""
    rng = np.random.default_rng(3)
    coarse = np.clip(rng.normal(118, 45, (5, 6, 3)), 25, 215).astype(np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))


@cache
def plan_of(name: str, arguments: str = "") -> Plan:
    import yaml

    given = {"fill": {"constant": 0}, "interpolation": "nearest", **(yaml.safe_load(arguments) or {})}
    return built(transforms=[{"resize": {"size": [HEIGHT, WIDTH]}}, {name: given}])


def augmented(name: str, u: Array, arguments: str = "") -> Array:
    """The photo through a policy, once for each row of draws, stage by stage as in the plan as built."""
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_stage

    features = {"image": tf.constant(np.stack([photo()] * len(u))), "@draws": tf.constant(u, tf.float64)}
    for stage in plan_of(name, arguments).stages()[2:]:
        if stage.feature == "image":
            apply_stage(stage, features)
    return features["image"].numpy()


def pillow(operation: str, amount: float, image: Image.Image) -> Image.Image:
    """One operation as the papers' programs do it, which is with Pillow."""

    def affine(*c: float) -> Image.Image:
        return image.transform(image.size, Image.Transform.AFFINE, c, Image.Resampling.NEAREST)

    match operation:
        case "shear_x":
            return affine(1, -amount, 0, 0, 1, 0)
        case "shear_y":
            return affine(1, 0, 0, -amount, 1, 0)
        case "translate_x":
            return affine(1, 0, -amount, 0, 1, 0)
        case "translate_y":
            return affine(1, 0, 0, 0, 1, -amount)
        case "rotate":
            return image.rotate(amount, Image.Resampling.NEAREST)
        case "brightness" | "color" | "contrast" | "sharpness":
            enhance = getattr(ImageEnhance, operation.capitalize())
            return enhance(image).enhance(1 + amount)  # type: ignore[no-any-return]
        case "posterize":
            return ImageOps.posterize(image, round(8 - amount))
        case "solarize":
            return ImageOps.solarize(image, amount)  # type: ignore[arg-type]
        case "invert":
            return ImageOps.invert(image)
        case "auto_contrast":
            return ImageOps.autocontrast(image)
        case "equalize":
            return ImageOps.equalize(image)
    return image


def compare(operation: str, ours: Array, theirs: Image.Image) -> None:
    """Tables are exact; Pillow cuts off the fractions of colours, and of the luma and the mean they come from; a pixel may fall on the
    other side of a border between two."""
    difference = np.abs(ours - np.asarray(theirs, np.float64))
    if operation in GEOMETRY:
        assert (difference.max(-1) > 0).mean() <= 0.01, operation
    elif operation in (*COLOUR, "sharpness"):
        assert difference.max() <= 1.5, operation
    else:
        assert difference.max() == 0, operation


WIDE = {"shear_x": 0.99, "shear_y": 0.99, "translate_x": 32.0, "translate_y": 32.0, "rotate": 135.0}
NARROW = {"shear_x": 0.3, "shear_y": 0.3, "translate_x": 150 / 331 * WIDTH, "translate_y": 150 / 331 * HEIGHT, "rotate": 30.0}


def amount(operation: str, strength: float, sign: int, limits: dict[str, float], enhancement: float, bits: int) -> float:
    """The argument that the published tables give Pillow."""
    if operation == "posterize":
        return float(np.round(bits * strength))
    return 255 * (1 - strength) if operation == "solarize" else sign * strength * limits.get(operation, enhancement)


def test_every_operation_of_trivial_augment_is_pillows() -> None:
    cases = [(k, level, sign) for k in range(14) for level in (4, 17, 30) for sign in (-1, 1)]
    out = augmented("trivial_augment", np.array([[(k + 0.5) / 14, (level + 0.5) / 31, 0.5 + 0.3 * sign] for k, level, sign in cases]))
    for (k, level, sign), ours in zip(cases, out, strict=True):
        value = amount(USED[k], level / 30, sign, WIDE, 0.99, 6)
        compare(USED[k], ours, pillow(USED[k], value, Image.fromarray(photo())))


def test_every_operation_of_rand_augment_is_pillows() -> None:
    cases = [(k, sign) for k in range(14) for sign in (-1, 1)]
    out = augmented("rand_augment", np.array([[(k + 0.5) / 14, 0.5 + 0.3 * sign] for k, sign in cases]), "{num_ops: 1, magnitude: 13}")
    for (k, sign), ours in zip(cases, out, strict=True):
        value = amount(USED[k], 13 / 30, sign, NARROW, 0.9, 4)
        compare(USED[k], ours, pillow(USED[k], value, Image.fromarray(photo())))


@pytest.mark.by_day(1)
@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
def test_auto_augment_does_the_published_pairs(policy: Any) -> None:
    """The first operation of each pair alone, and then the second alone, with draws that let the other one go."""
    table = sub_policies(policy)
    assert len(table) == 25
    cases = [
        (i, layer) for i in range(25) for layer in range(2) if table[i].probabilities[layer] > 0 and table[i].probabilities[1 - layer] < 1
    ]
    u = np.full((len(cases), 5), 0.8)
    for row, (i, layer) in zip(u, cases, strict=True):
        row[0], row[1 + layer], row[2 - layer] = (i + 0.5) / 25, 0, 1 - 2**-53
    out = augmented("auto_augment", u, f"{{policy: {policy}}}")
    for (i, layer), ours in zip(cases, out, strict=True):
        operation, level = table[i].operations[layer], table[i].levels[layer]
        compare(operation, ours, pillow(operation, amount(operation, level / 9, 1, NARROW, 0.9, 4), Image.fromarray(photo())))


def test_layers_are_applied_by_family() -> None:
    """Whatever the order of the layers: tables, then filters where they stand, then one warp, then one colour matrix."""
    turn, paint, table = (USED.index(n) for n in ("rotate", "brightness", "solarize"))
    u = np.array([[(a + 0.5) / 14, (b + 0.5) / 14, 0.9, 0.9] for a, b in ((turn, table), (table, turn), (paint, turn), (turn, paint))])
    out = augmented("rand_augment", u, "{magnitude: 20}")
    np.testing.assert_array_equal(out[0], out[1])
    np.testing.assert_array_equal(out[2], out[3])
    two = augmented("rand_augment", np.array([[(turn + 0.5) / 14, (turn + 0.5) / 14, 0.9, 0.9]]), "{magnitude: 10}")
    one = augmented("rand_augment", np.array([[(turn + 0.5) / 14, 0.9]]), "{num_ops: 1, magnitude: 20}")
    np.testing.assert_array_equal(two, one), "two rotations are one, and not a rotation of what was resampled"


def test_tables_see_what_the_layer_before_left() -> None:
    solarize, equalize = USED.index("solarize"), USED.index("equalize")
    out = augmented("rand_augment", np.array([[(solarize + 0.5) / 14, (equalize + 0.5) / 14, 0.9, 0.9]]), "{magnitude: 15}")
    first = pillow("solarize", 127.5, Image.fromarray(photo()))
    np.testing.assert_array_equal(out[0], np.asarray(ImageOps.equalize(first), np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_each_operation_has_its_share(name: str) -> None:
    """Chi-square at 5 standard deviations, and what `share` says of each choice."""
    import tensorflow as tf

    step = transforms()[name]()
    assert isinstance(step, Augmentation)
    n = 40_000
    u = tf.constant(np.random.default_rng(0).random((n, step.num_draws())))
    counts = [np.bincount(column, minlength=len(OPERATIONS)) for column in step.operations(u).numpy().T]
    for layer, own in enumerate(step.shares()):
        expected = np.array([own.get(op, 0.0) for op in OPERATIONS])
        expected[0] += 1 - expected.sum()
        there = expected > 1e-12
        assert not counts[layer][~there].any()
        chi = float(((counts[layer][there] - n * expected[there]) ** 2 / (n * expected[there])).sum())
        freedom = int(there.sum()) - 1
        assert abs(chi - freedom) < 5 * (2 * freedom) ** 0.5
    for part in step.parts():
        if part.choice is not None:
            assert float(tf.reduce_mean(tf.cast(step.chosen(u, part.choice), tf.float64))) == pytest.approx(
                step.share(part.choice), abs=0.01
            )


def test_directions_are_alike_and_strengths_even() -> None:
    import tensorflow as tf

    step = transforms()["trivial_augment"]()
    assert isinstance(step, Augmentation)
    chosen = step.layers(tf.constant(np.random.default_rng(1).random((31_000, 3))))
    assert abs(float(tf.reduce_mean(chosen.sign))) < 0.03
    levels = np.bincount(np.round(chosen.strength.numpy()[:, 0] * 30).astype(int), minlength=31)
    assert levels.min() > 850
    assert levels.max() < 1150


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_is_one_warp_and_one_matrix(name: str) -> None:
    from planning import compiled, load_spec

    from pipegen.plan.nodes import Kernel

    spec = load_spec(transforms=[{"resize": {"size": [HEIGHT, WIDTH]}}, {name: {}}], runtime={"cache": "none"})
    plan = compiled(built(transforms=[{"resize": {"size": [HEIGHT, WIDTH]}}, {name: {}}]), spec).plan
    kinds = [type(stage).__name__ for stage in plan.stages()]
    assert kinds.count("Warp") == 1
    assert kinds.count("Colour") == 1
    (rows,) = (node for node in plan.nodes if isinstance(node, Kernel) and node.rows)
    assert {"LookupTable", "Neighbourhood", "Warp"} == {type(stage).__name__ for stage in rows.stages}


def test_numbers_stay() -> None:
    assert [NUMBER[n] for n in ("identity", "shear_x", "equalize")] == [0, 1, 14]


@pytest.mark.parametrize(("given", "wrong"), [
    ({"magnitude": 31}, "must be between 0 and `max_magnitude`, which is 30, got 31"),
    ({"magnitude": 11, "max_magnitude": 10}, "which is 10, got 11"),
    ({"magnitude": {"table": [3, [4, 5]]}}, "a plain number in each epoch"),
    ({"magnitude": {"table": [3, -1]}}, "got -1"),
    ({"num_ops": 0}, "greater than or equal to 1"),
])  # fmt: skip
def test_wrong_arguments(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        transforms()["rand_augment"].model_validate(given)
