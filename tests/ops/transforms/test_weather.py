"""Weather on bytes against what NumPy makes of the same numbers, and in XLA; and steps in an order that is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import built, compiled, interpret, load_spec, photos, records

from pipegen.ops.families.neighbourhood import ByteTransform
from pipegen.ops.registry import transforms
from pipegen.ops.transforms.one_of import RandomOrder
from pipegen.ops.transforms.weather import RandomFog, RandomRain, RandomShadow, RandomSpatter, RandomSunFlare

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
N, HEIGHT, WIDTH = 3, 60, 80
STEPS = (
    RandomFog(sigma=9), RandomSpatter(of="mud"), RandomShadow(count=2), RandomSunFlare(), RandomRain(density=(0.3, 0.5)),
)  # fmt: skip


def images() -> Array:
    return np.random.default_rng(0).integers(0, 256, (N, HEIGHT, WIDTH, 3)).astype(np.uint8)


def draws(step: Any) -> Array:
    return np.random.default_rng(5).random((N, step.num_draws()))


def given(step: ByteTransform, u: Array) -> list[Array]:
    import tensorflow as tf

    return [part.numpy() for part in step.parameters(tf.constant(u), HEIGHT, WIDTH)]


def applied(step: ByteTransform, x: Array, u: Array, *, jit: bool = False) -> Array:
    import tensorflow as tf

    def whole(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return step.apply(x, *step.parameters(u, *x.shape[1:3]))

    return tf.function(whole, jit_compile=jit, autograph=False)(tf.constant(x), tf.constant(u)).numpy()


BY_DAY = ("random_rain",)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "step", [pytest.param(s, marks=[pytest.mark.nightly] * (s.op not in BY_DAY)) for s in STEPS], ids=lambda step: step.op
)
def test_weather_is_the_same_in_xla_and_for_each_example(step: ByteTransform) -> None:
    x, u = images(), draws(step)
    done = applied(step, x, u)
    assert (done != x).any()
    np.testing.assert_array_equal(applied(step, x, u, jit=True), done)
    np.testing.assert_array_equal(applied(step, x[1:2], u[1:2]), done[1:2])
    gray = applied(step, x[..., :1], u)
    assert gray.shape == (N, HEIGHT, WIDTH, 1)


def test_even_fog_is_a_blend_with_white() -> None:
    step = RandomFog(density=(0.25, 0.25), patchiness=0)
    np.testing.assert_allclose(applied(step, images(), draws(step)), 0.75 * images() + 0.25 * 255, atol=0.51)
    patchy = RandomFog(density=(0.4, 0.4), patchiness=0.3, sigma=3)
    share = applied(patchy, np.zeros((N, 200, 220, 3), np.uint8), draws(patchy)) / 255.0
    assert share.mean() == pytest.approx(0.4, abs=0.02)
    assert share.std() == pytest.approx(0.12, rel=0.1), "`patchiness` is the deviation over the density"


def test_a_shadow_lies_between_two_lines() -> None:
    step = RandomShadow(darkness=(0.5, 0.5), rows=(0.25, 0.75))
    u = draws(step)
    done = applied(step, np.full((N, HEIGHT, WIDTH, 3), 200, np.uint8), u)[..., 0]
    assert set(np.unique(done)) == {100, 200}
    top, bottom = HEIGHT // 4, 3 * HEIGHT // 4
    for dark, row in zip(done == 100, u, strict=True):
        assert not dark[:top].any()
        assert not dark[bottom:].any()
        ends = row[1:].reshape(2, 2) * (WIDTH + 1)
        for y in range(top, bottom):
            down = (y + 0.5 - top) / (bottom - top)
            first, behind = np.sort(ends[0] * (1 - down) + ends[1] * down).astype(int)
            np.testing.assert_array_equal(np.flatnonzero(dark[y]), np.arange(first, min(behind, WIDTH)))


def test_the_sun_glows_most_in_its_middle() -> None:
    step = RandomSunFlare(intensity=(0.8, 0.8), reach=(0.4, 0.4), ghosts=0)
    u = draws(step)
    done = applied(step, np.zeros((N, HEIGHT, WIDTH, 3), np.uint8), u)[..., 0]
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for glow, row in zip(done, u, strict=True):
        away = ((x - row[2] * WIDTH) ** 2 + (y - row[3] * HEIGHT / 2) ** 2) / (0.4 * WIDTH) ** 2
        np.testing.assert_allclose(glow, 255 * 0.8 * np.maximum(1 - away, 0) ** 2, atol=0.7)
    assert (applied(RandomSunFlare(), images(), draws(RandomSunFlare())) != applied(step, images(), u)).any()


def test_drops_cover_their_share() -> None:
    step = RandomSpatter(share=(0.1, 0.1), opacity=1, sigma=2)
    white = np.full((N, 200, 220, 3), 255, np.uint8)
    assert (applied(step, white, draws(step))[..., 0] < 255).mean() == pytest.approx(0.1, abs=0.02)


def test_rain_falls_in_streaks_along_its_slant() -> None:
    step = RandomRain(density=(0.3, 0.3), length=6, slant_degrees=(30, 30), opacity=1)
    black = np.zeros((N, 240, 200, 3), np.uint8)
    done = applied(step, black, draws(step))[..., 0].astype(int)
    share = (done > 0).mean()
    assert share == pytest.approx(0.3 / 2, abs=0.01), "half of a stretch is a streak"
    moved = np.rint(np.tan(np.radians(30)) * np.arange(240)).astype(int)
    straight = np.stack([np.roll(row, -by, axis=1) for row, by in zip(np.moveaxis(done, 1, 0), moved, strict=True)], 1)
    # Along a straight column a streak gets denser step by step, and ends at once.
    above, below = straight[:, :-1], straight[:, 1:]
    step_ = below - above
    assert ((step_ == 0) | ((step_ > 30) & (step_ < 40)) | (below == 0)).all()
    assert done.max() in range(200, 206)


ORDERED = ["random_invert", {"random_brightness": {"factor": [0.5, 0.5]}}, {"random_solarization": {"threshold": [100, 100]}}]


def test_every_order_is_drawn_and_acts_in_that_order() -> None:
    import tensorflow as tf

    step = RandomOrder.model_validate({"steps": ORDERED})
    u = np.random.default_rng(1).random((3000, 3))
    places = np.stack([value.numpy() for value in step.drawn(tf.constant(u)).values()], 1)
    np.testing.assert_array_equal(places, u.argsort(1).argsort(1) + 1)
    found, counts = np.unique(places, axis=0, return_counts=True)
    assert len(found) == 6
    assert counts.min() > 400
    for number in range(9):
        np.testing.assert_array_equal(step.chosen(tf.constant(u), number).numpy(), places[:, number % 3] == number // 3 + 1)
    with pytest.raises(ValueError, match="cannot hold `one_of`"):
        RandomOrder.model_validate({"steps": ["random_flip", {"one_of": {"steps": ["random_flip", "random_invert"]}}]})


@pytest.mark.nightly
@pytest.mark.parametrize("jit", ["never", "always"])
def test_an_order_in_a_plan_is_that_of_the_steps_one_by_one(jit: str) -> None:
    """Each of 16 examples is what one of the six orders of the three functions makes of it, and all six come."""
    steps = "random_invert: {probability: 1}}, {random_brightness: {factor: [0.5, 0.5]}}, {random_solarization: {threshold: [100, 100]}"
    text = f"{{transforms: [{{resize: {{size: [16, 20]}}}}, {{random_order: {{steps: [{{{steps}}}]}}}}, {{cast: {{dtype: uint8}}}}]"
    text, never = (f"{text}, batch: {{size: 16}}, runtime: {{jit: {run}}}}}" for run in (jit, "never"))
    plan, data = built(text, classes=3), records(photos(16, 40, 50))
    spec = load_spec(text)
    fast = interpret(compiled(plan, spec).plan, spec, data)["image"]
    np.testing.assert_array_equal(interpret(plan, load_spec(never), data)["image"], fast)
    before = "{transforms: [{resize: {size: [16, 20]}}], batch: {size: 16}}"
    entering = interpret(built(before, classes=3), load_spec(before), data)["image"].astype(np.uint8)

    def invert(x: Array) -> Array:
        return 255 - np.clip(np.rint(x), 0, 255)

    def darken(x: Array) -> Array:
        return x * 0.5

    def solarize(x: Array) -> Array:
        x = np.clip(np.rint(x), 0, 255)
        return np.where(x >= 100, 255 - x, x)

    from itertools import permutations

    seen = set()
    for x, y in zip(entering.astype(float), fast, strict=True):
        made = {}
        for order in permutations((invert, darken, solarize)):
            value = x
            for place, function in enumerate(order):
                value = function(value)
                if place < 2:
                    value = np.rint(value)  # a table that does not act rounds as well
            made[tuple(f.__name__ for f in order)] = np.rint(value)
        fits = [order for order, value in made.items() if np.abs(value - y).max() <= 1 and (value != y).mean() < 0.6]
        assert fits
        seen |= set(fits[:1]) if len(fits) == 1 else set()
    assert len(seen) >= 3, "orders that differ are told apart"


def test_the_steps_of_an_order_draw_once() -> None:
    step = transforms()["random_order"].model_validate({"steps": ["random_flip", {"random_hue": {"degrees": 9}}]})
    from pipegen.plan.recipe import recipe
    from pipegen.spec.models import PipelineSpec

    made = recipe(PipelineSpec.model_construct(transforms=(step,)), "train")
    assert [ref.step.op for ref in made.draws] == ["random_order", "random_flip", "random_hue"]
    assert [ref.step.op for ref in made.steps] == ["random_flip", "random_hue"] * 2
    assert made.steps[0].start == made.steps[2].start
