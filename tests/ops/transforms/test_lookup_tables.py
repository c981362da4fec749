"""Look-up tables against Pillow's `ImageOps`, bit for bit, and NumPy; with XLA and without; alone and folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from pipegen.errors import OpError
from pipegen.ops.families.lookup_tables import LookupTable
from pipegen.ops.registry import transforms
from pipegen.ops.stage import StepRef
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.contrast import AutoContrast, RandomAutoContrast
from pipegen.ops.transforms.equalization import Equalization, RandomEqualization
from pipegen.ops.transforms.gamma import Gamma, RandomGamma
from pipegen.ops.transforms.posterization import Posterization, RandomPosterization
from pipegen.ops.transforms.solarization import Invert, RandomInvert, RandomSolarization, Solarization
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.families.lookup_tables import LookupTableTransform

Array = np.ndarray[Any, Any]
FLOATS = FeatureType("image", "float32", (8, 8, 3), Interval(0, 255))
TABLES = {name: op for name, op in transforms().items() if hasattr(op, "needs_histogram")}


def pictures(count: int = 40) -> Array:
    """uint8 `(count, 14, 18, 3)`: every channel has a range and a shape of values of its own; the first are plain."""
    rng = np.random.default_rng(0)
    made: list[Array] = [np.full((14, 18, 3), v, np.uint8) for v in (0, 77, 255)]
    for _ in range(count - len(made)):
        low, high = np.sort(rng.integers(0, 256, (2, 3)), axis=0)
        values = rng.normal((low + high) / 2, (high - low + 1) / 3, (14, 18, 3))
        made.append(np.clip(np.rint(values), low, high).astype(np.uint8))
    return np.stack(made)


def ref(step: LookupTableTransform, start: int = 0) -> StepRef:
    """A use of a step as a recipe has it."""
    return StepRef(step, step.op, (), start, step.probability < 1)


def folded(*steps: LookupTableTransform) -> LookupTable:
    """A stage of these steps, folded."""
    used: list[StepRef] = []
    for step in steps:
        used.append(ref(step, used[-1].start + used[-1].num_draws if used else 0))
    return LookupTable("image", tuple(used), any(step.needs_histogram for step in steps))


def apply(stage: LookupTable, images: Array, u: Array | None = None) -> Array:
    """The stage on a batch, through the backend."""
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_stage

    count = max(stage.refs[-1].start + stage.refs[-1].num_draws, 1)
    features = {"image": tf.constant(images), "@draws": tf.constant(np.zeros((len(images), count)) if u is None else u, tf.float64)}
    apply_stage(stage, features)
    return features["image"].numpy()


def pillow(function: Any, images: Array, *arguments: Any) -> Array:
    """What Pillow makes of each."""
    return np.stack([np.asarray(function(Image.fromarray(image), *arguments)) for image in images])


@pytest.mark.tf
@pytest.mark.parametrize(("step", "function", "arguments"), [
    (AutoContrast(), ImageOps.autocontrast, ()),
    (Equalization(), ImageOps.equalize, ()),
    (Invert(), ImageOps.invert, ()),
    (Solarization(), ImageOps.solarize, ()),
    (Solarization(threshold=30), ImageOps.solarize, (30,)),
    (Posterization(bits=1), ImageOps.posterize, (1,)),
    (Posterization(bits=5), ImageOps.posterize, (5,)),
], ids=lambda value: getattr(value, "op", "-"))  # fmt: skip
def test_tables_are_pillow_s(step: LookupTableTransform, function: Any, arguments: tuple[Any, ...]) -> None:
    images = pictures()
    np.testing.assert_array_equal(apply(folded(step), images), pillow(function, images, *arguments))


@pytest.mark.nightly
@pytest.mark.tf
def test_auto_contrast_rounds_as_pillow_does() -> None:
    """One range of every seven, in XLA and out of it: Pillow is 1 below the exact quotient in places."""
    import tensorflow as tf

    from pipegen.ops.lowering.colours import auto_contrasted

    low, high = (v[::7] for v in np.nonzero(np.less.outer(np.arange(256), np.arange(256))))
    histogram: Array = np.zeros((len(low), 1, 256), np.int32)
    histogram[np.arange(len(low)), 0, low] = histogram[np.arange(len(low)), 0, high] = 1
    scale = 255.0 / (high - low)
    expected = np.clip((np.arange(256) * scale[:, None] - (low * scale)[:, None]).astype(int), 0, 255)
    exact = np.clip(255 * (np.arange(256) - low[:, None]) // (high - low)[:, None], 0, 255)
    assert np.count_nonzero(expected != exact) > 1000
    np.testing.assert_array_equal(auto_contrasted(tf.constant(histogram))[:, 0], expected)
    compiled = tf.function(auto_contrasted, jit_compile=True, autograph=False)
    np.testing.assert_array_equal(compiled(tf.constant(histogram))[:, 0], expected)


@pytest.mark.tf
def test_the_largest_steps_of_equalization_are_clipped() -> None:
    """With few pixels Pillow's entries pass 255, and it clips them."""
    values = np.minimum(np.arange(400), 255).astype(np.uint8)
    image = np.stack([values, values // 2, np.roll(values, 150) // 3 * 3], -1).reshape(1, 20, 20, 3)
    done = apply(folded(Equalization()), image)
    np.testing.assert_array_equal(done, pillow(ImageOps.equalize, image))
    assert done.max() == 255


@pytest.mark.tf
@pytest.mark.parametrize("gamma", [0.1, 0.5, 1.0, 2.2, 7.0])
def test_gamma_is_the_power(gamma: float) -> None:
    """The definition of skimage's `adjust_gamma` on uint8: the table is rounded half to even."""
    images = pictures()
    table = np.rint(255 * np.linspace(0, 1, 256) ** gamma).astype(np.uint8)
    np.testing.assert_array_equal(apply(folded(Gamma(gamma=gamma)), images), table[images])


@pytest.mark.tf
def test_random_forms_draw_over_their_ranges() -> None:
    images = pictures(8)
    u = np.array([0, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1 - 2.0**-53])[:, None]
    threshold = 20 + 200 * u
    solarized = np.where(images >= threshold[..., None, None], 255 - images, images)
    np.testing.assert_array_equal(apply(folded(RandomSolarization(threshold=(20, 220))), images, u), solarized)
    step = 2 ** (8 - (3 + np.floor(4 * u).astype(int)))[..., None, None]
    assert set(np.unique(step)) == {4, 8, 16, 32}, "each number of bits from 3 to 6"
    np.testing.assert_array_equal(apply(folded(RandomPosterization(bits=(3, 6))), images, u), images // step * step)
    power = np.rint(255 * (images / 255.0) ** (0.5 + u)[..., None, None])
    np.testing.assert_array_equal(apply(folded(RandomGamma(gamma=0.5)), images, u), power)


@pytest.mark.tf
@pytest.mark.parametrize(("random", "always"), [
    (RandomInvert(), Invert()), (RandomAutoContrast(probability=0.3), AutoContrast()), (RandomEqualization(), Equalization()),
    (RandomGamma(gamma=(2, 2), probability=0.3), Gamma(gamma=2)),
], ids=lambda step: step.op)  # fmt: skip
def test_probability_leaves_the_others_alone(random: LookupTableTransform, always: LookupTableTransform) -> None:
    images = pictures(10)
    u = np.random.default_rng(1).random((10, 2))
    acts = u[:, random.num_draws()] < random.probability
    assert 0 < acts.sum() < 10
    expected = np.where(acts[:, None, None, None], apply(folded(always), images), images)
    np.testing.assert_array_equal(apply(folded(random), images, u), expected)


@pytest.mark.tf
def test_floats_are_rounded_half_to_even_and_clipped() -> None:
    values = np.array([-3, -0.5, 0.49, 0.5, 1.5, 2.5, 254.5, 255.4, 300], np.float32)
    image = np.repeat(values.reshape(1, 3, 3, 1), 3, -1)
    rounded = np.array([0, 0, 0, 0, 2, 2, 254, 255, 255], np.uint8)
    given = np.repeat(rounded.reshape(1, 3, 3, 1), 3, -1)
    np.testing.assert_array_equal(apply(folded(Posterization(bits=8)), image), given)
    np.testing.assert_array_equal(apply(folded(Equalization()), image), pillow(ImageOps.equalize, given))


CHAINS = {
    "drawn": (RandomSolarization(threshold=(0, 255)), RandomGamma(gamma=0.5, probability=0.5), Posterization(bits=4)),
    "histogram last": (RandomGamma(gamma=0.5), Invert(), Equalization()),
    "histograms between": (
        RandomSolarization(threshold=(0, 255)), RandomEqualization(), RandomPosterization(bits=(2, 8)), RandomAutoContrast(),
        Equalization(),
    ),
}  # fmt: skip


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("name", list(CHAINS))
def test_a_folded_chain_is_its_steps_one_after_another(name: str) -> None:
    """Bit for bit, in XLA too, for images of one channel and of three, and for floats."""
    import tensorflow as tf

    from pipegen.backend.kernels.lower import LOWERINGS, expand, run_stage

    stage = folded(*CHAINS[name])
    u = np.random.default_rng(2).random((12, 9))
    for images in (pictures(12), pictures(12)[..., :1], pictures(12) + np.float32(0.3)):
        expected = images
        for used in stage.refs:
            expected = apply(LookupTable("image", (used,), used.step.needs_histogram), expected, u)  # type: ignore[attr-defined]
        np.testing.assert_array_equal(apply(stage, images, u), expected)
        if images.dtype == np.uint8 and images.shape[-1] == 3:
            params = LOWERINGS[type(stage)].parameters(stage, {"image": tf.constant(images), "@draws": tf.constant(u)})
            run = lambda image, given: run_stage(stage, image, expand(stage, image, given))  # noqa: E731
            compiled = tf.function(run, jit_compile=True, autograph=False)
            np.testing.assert_array_equal(compiled(tf.constant(images), params), expected)


@pytest.mark.tf
@pytest.mark.parametrize("name", list(TABLES))
def test_a_table_is_int32_of_every_example(name: str) -> None:
    import tensorflow as tf
    import yaml

    op = TABLES[name]
    written = yaml.safe_load(op.examples[0].yaml)
    step: Any = op() if isinstance(written, str) else op.model_validate(written[name])
    u = tf.constant(np.random.default_rng(0).random((5, step.num_draws())))
    counts = tf.constant(np.random.default_rng(0).integers(0, 9, (5, 3, 256)), tf.int32) if step.needs_histogram else None
    table = step.table(u, counts)
    assert table.dtype == tf.int32
    assert table.shape == (5, 3 if step.needs_histogram else 1, 256)
    assert 0 <= table.numpy().min() <= table.numpy().max() <= 255


def test_a_table_of_the_histogram_has_no_strength_that_a_schedule_may_change() -> None:
    """Such a table is made inside a kernel, which no epoch reaches."""

    def scheduled(op: type[Any]) -> set[str]:
        return {name for name, field in op.model_fields.items() if name != "probability" and "Schedule" in str(field.annotation)}

    assert any(scheduled(op) for op in TABLES.values() if not op.needs_histogram)
    assert not any(scheduled(op) for op in TABLES.values() if op.needs_histogram)


@pytest.mark.parametrize(("x", "text"), [
    (FLOATS.with_(interval=Interval(0, 1)), r"gets values in \[0, 1\]"),
    (FLOATS.with_(interval=Interval(-1, 1)), "gets values in"),
    (FLOATS.with_(interval=Interval(0, 510)), "gets values in"),
    (FLOATS.with_(interval=None), "an unknown range"),
    (FLOATS.with_(dtype="uint16", interval=Interval(0, 65535)), "gets uint16"),
])  # fmt: skip
def test_other_values_than_bytes_are_an_error(x: FeatureType, text: str) -> None:
    with pytest.raises(OpError, match=text) as caught:
        Invert().infer(x)
    assert caught.value.code == "PG221"


def test_floats_become_bytes() -> None:
    assert str(Equalization().infer(FLOATS)) == "uint8[8×8×3] in [0, 255]"


@pytest.mark.parametrize(("step", "text"), [
    (lambda: Solarization(threshold=300), "between 0 and 256"),
    (lambda: RandomSolarization(threshold=(200, 100)), "is above"),
    (lambda: RandomPosterization(bits=(5, 3)), "is above"),
    (lambda: Posterization(bits=0), "greater than or equal to 1"),
    (lambda: Gamma(gamma=0), "above 0"),
    (lambda: RandomGamma(gamma=1), r"means the range \[0, 2\]"),
    (lambda: Invert.model_validate({"probability": 0.5}), "probability"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(step: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        step()


@pytest.mark.parametrize(("step", "codes"), [
    (Solarization(threshold=0.5), ["PG510"]), (RandomSolarization(threshold=(0, 1)), ["PG510"]), (Solarization(), []),
    (RandomGamma(gamma=(0.05, 1)), ["PG510"]), (Gamma(gamma=20), ["PG510"]), (RandomGamma(gamma=0.5), []),
])  # fmt: skip
def test_lints(step: LookupTableTransform, codes: list[str]) -> None:
    assert [lint.code for lint in step.lints(IMAGE_224)] == codes


@pytest.mark.parametrize("step", [
    Solarization(threshold=256), Posterization(bits=8), Gamma(gamma=1), RandomGamma(gamma=0), RandomInvert(probability=0),
    RandomSolarization(threshold=(0, 9), probability=0), RandomPosterization(bits=(8, 8)), RandomEqualization(probability=0),
], ids=str)  # fmt: skip
def test_what_changes_nothing_says_so_on_bytes_alone(step: LookupTableTransform) -> None:
    assert step.is_identity(IMAGE_224)
    assert not step.is_identity(FLOATS), "it makes bytes"


def test_auto_contrast_needs_the_extremes_alone() -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.table_kernels import extremes, histogram
    from pipegen.ops.lowering.colours import auto_contrasted

    images = np.random.default_rng(0).integers(30, 200, (4, 9, 7, 3), np.uint8)
    images[3] = 17
    tables = [auto_contrasted(count(tf.constant(images))).numpy() for count in (extremes, histogram)]
    np.testing.assert_array_equal(*tables)
