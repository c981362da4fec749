"""What a segment means, in numbers (DESIGN §4.2): plans as built, on images that are not square, against SciPy and NumPy.

The draws are those that the index stage made, so every example has its own matrices. A warp rounds positions to 1/256
pixel and coefficients to 2^-16; on these smooth images that moves a value by less than a level (see `test_warp`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from planning import AS_ERRORS, built, interpret, load_spec, records
from scipy import ndimage

from pipegen.ops.stage import StepRef
from pipegen.plan import stages as s

if TYPE_CHECKING:
    from pipegen.plan.nodes import Plan

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

HEIGHT, WIDTH, COUNT = 26, 40, 6
LUMA = np.array([0.299, 0.587, 0.114])
Array = np.ndarray[Any, Any]


def images() -> Array:
    """Smooth images, also across the edges, that are like no others."""
    rng = np.random.default_rng(0)
    noise = ndimage.gaussian_filter(rng.uniform(0, 255, (COUNT, HEIGHT, WIDTH, 3)), (0, 2, 2, 0), mode="wrap")
    low, high = noise.min((1, 2, 3), keepdims=True), noise.max((1, 2, 3), keepdims=True)
    return np.rint((noise - low) / (high - low) * 200 + 20).astype(np.uint8)


def png(image: Array) -> bytes:
    """An image as a file."""
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


def run(*steps: str) -> tuple[Plan, Array, Array]:
    """The plan as built of some steps behind a resize to the size that images have, its output, and the draws."""
    import tensorflow as tf

    from pipegen.backend.running.execute import Executor

    text = f"{{transforms: [{{resize: {{size: [{HEIGHT}, {WIDTH}]}}}}, {', '.join(steps)}], runtime: {{jit: never}}}}"
    plan, spec = built(text), load_spec(text)
    data = records(tuple(png(image) for image in images()))
    x = Executor(plan, spec, data, damage=AS_ERRORS)
    record = tf.range(COUNT, dtype=tf.int64)
    return plan, interpret(plan, spec, data)["image"], x.draws(x.tensors, record, tf.zeros_like(record)).numpy()


def matrix_of(ref: StepRef, draws: Array, canvas: tuple[int, int]) -> Array:
    """One step's matrix on (x, y), by the op's own definition; `test_geometry` holds that to OpenCV's."""
    import tensorflow as tf

    step: Any = ref.step
    u = tf.constant(draws[ref.start : ref.start + step.num_draws()], tf.float64)
    if hasattr(step, "window"):
        top, left, _, _ = step.window(u, tf.constant(canvas[0]), tf.constant(canvas[1])).numpy()
        return np.array([[1.0, 0, left], [0, 1, top], [0, 0, 1]])
    if ref.gated and not draws[ref.start + step.num_draws()] < step.probability:
        return np.eye(3)
    return step.matrix(u, tf.constant(float(canvas[0]), tf.float64), tf.constant(float(canvas[1]), tf.float64)).numpy()


def resample(image: Array, matrix: Array, size: tuple[int, int] = (HEIGHT, WIDTH), **how: Any) -> Array:
    """SciPy's bilinear resampling of (row, column, channel) through a matrix on (x, y)."""
    swap = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    m = swap @ matrix @ swap
    how = {"mode": "reflect", **how}
    channels = [
        ndimage.affine_transform(image[..., c].astype(float), m[:2, :2], m[:2, 2], output_shape=size, order=1, prefilter=False, **how)
        for c in range(3)
    ]
    return np.stack(channels, -1)


def composed(plan: Plan) -> list[list[s.Compose]]:
    """The steps of each geometric segment."""
    found: list[list[s.Compose]] = []
    for stage in plan.stages():
        if isinstance(stage, s.Compose):
            found = [*found, [stage]] if stage.opens else [*found[:-1], [*found[-1], stage]]
    return found


GEOMETRY = (
    "{random_rotation: {degrees: 25}}", "{random_translation: {x: 0.2, y: 0.1}}", "{random_shear: {degrees: 12, probability: 0.5}}",
    "{random_zoom: {factor: 0.3}}", "{random_flip: {axis: both}}",
)  # fmt: skip


def expected_of(plan: Plan, draws: Array, size: tuple[int, int] = (HEIGHT, WIDTH)) -> Array:
    """Each segment's product, and one resampling for each."""
    done = []
    for image, u in zip(images(), draws, strict=True):
        value = image.astype(float)
        segments = composed(plan)
        for number, segment in enumerate(segments):
            matrix = np.eye(3)
            for stage in segment:
                matrix = matrix @ matrix_of(stage.ref, u, (HEIGHT, WIDTH))
            value = np.rint(resample(value, matrix, size if number == len(segments) - 1 else (HEIGHT, WIDTH)))
        done.append(value)
    return np.stack(done)


def test_a_run_of_geometric_steps_resamples_once() -> None:
    plan, given, draws = run(*GEOMETRY)
    assert len(composed(plan)) == 1
    assert np.abs(given - expected_of(plan, draws)).max() <= 1


def test_a_crop_at_the_end_reads_through_the_same_product() -> None:
    plan, given, draws = run(*GEOMETRY, "{random_crop: {size: [20, 31]}}")
    assert given.shape == (COUNT, 20, 31, 3)
    assert len(composed(plan)) == 1
    assert np.abs(given - expected_of(plan, draws, (20, 31))).max() <= 1


def test_perspective_joins_the_run() -> None:
    """The whole segment divides, once; SciPy reads at the quotients of the same product."""
    plan, given, draws = run(
        "{rotation: {degrees: 20}}", "{random_perspective: {x: 0.15, y: 0.1}}", *GEOMETRY, "{random_crop: {size: [20, 31]}}"
    )
    (segment,) = composed(plan)
    assert [stage.projective for stage in plan.stages() if isinstance(stage, s.Resample)] == [True]
    y, x = np.mgrid[:20, :31]
    for image, u, ours in zip(images(), draws, given, strict=True):
        matrix = np.linalg.multi_dot([matrix_of(stage.ref, u, (HEIGHT, WIDTH)) for stage in segment])
        right, down, depth = np.tensordot(matrix, np.stack([x, y, np.ones(x.shape)]).astype(float), 1)
        at = [down / depth, right / depth]
        theirs = np.stack([ndimage.map_coordinates(image[..., c].astype(float), at, order=1, mode="reflect") for c in range(3)], -1)
        assert np.abs(ours - theirs).max() <= 1


def test_exact_stands_alone() -> None:
    """Two resamplings, which blur: the numbers are those of two, and not those of one."""
    plan, given, draws = run("{random_rotation: {degrees: 25}}", "{random_shear: {degrees: 12, exact: true}}")
    assert [len(segment) for segment in composed(plan)] == [1, 1]
    assert np.abs(given - expected_of(plan, draws)).max() <= 2, "a rounded level may be resampled once more"
    once, joined, _ = run("{random_rotation: {degrees: 25}}", "{random_shear: {degrees: 12}}")
    assert [len(segment) for segment in composed(once)] == [2]
    assert np.abs(given - joined).max() > 3


def test_the_fill_is_applied_once_outside_the_canvas_that_entered() -> None:
    """Shifted out and back in one segment nothing is lost; in two, what left is gone."""
    out = "{random_translation: {x: [0.5, 0.5], fill: {constant: 0}}}"
    back = "{random_translation: {x: [-0.5, -0.5], fill: {constant: 0}%s}}"
    _, once, _ = run(out, back % "")
    np.testing.assert_array_equal(once, images())
    _, twice, _ = run(out, back % ", exact: true")
    np.testing.assert_array_equal(twice[:, :, : WIDTH // 2], images()[:, :, : WIDTH // 2])
    assert (twice[:, :, WIDTH // 2 :] == 0).all()


def test_probability_is_drawn_for_each_example() -> None:
    plan, given, draws = run("{random_rotation: {degrees: [90, 90], probability: 0.5, fill: {constant: 0}}}")
    (stage,) = composed(plan)[0]
    acts = draws[:, stage.ref.start + stage.ref.step.num_draws()] < 0.5
    assert set(acts) == {True, False}, "both happen here"
    unmoved = np.array([(a == b).all() for a, b in zip(given, images(), strict=True)])
    np.testing.assert_array_equal(unmoved, ~acts)


def test_a_colour_segment_multiplies_first_and_clips_once() -> None:
    _, given, _ = run("{random_brightness: {factor: [3, 3]}}", "{random_brightness: {factor: [0.4, 0.4]}}")
    np.testing.assert_allclose(given, np.clip(images() * 1.2, 0, 255), atol=255e-6)
    _, apart, _ = run("{random_brightness: {factor: [3, 3]}}", "{cast: {dtype: float32}}", "{random_brightness: {factor: [0.4, 0.4]}}")
    np.testing.assert_allclose(apart, np.clip(images() * 3.0, 0, 255) * 0.4, atol=255e-6)


def test_contrast_pivots_on_the_image_that_enters_the_segment() -> None:
    _, given, _ = run("{random_brightness: {factor: [0.5, 0.5]}}", "{random_contrast: {factor: [2, 2]}}")
    entering = (images() @ LUMA).mean((1, 2))[:, None, None, None]
    np.testing.assert_allclose(given, np.clip(images() * 1.0 - entering, 0, 255), atol=255e-5)
    _, other, _ = run("{random_contrast: {factor: [2, 2]}}", "{random_brightness: {factor: [0.5, 0.5]}}")
    np.testing.assert_allclose(other, np.clip((images() * 2.0 - entering) * 0.5, 0, 255), atol=255e-5)


def test_arithmetic_folds_in_behind_the_clip() -> None:
    _, given, _ = run("{random_brightness: {factor: [2, 2]}}", "{normalize: {mean: 10, std: 5}}")
    np.testing.assert_allclose(given, (np.clip(images() * 2.0, 0, 255) - 10) / 5, atol=51e-6)


def test_colour_between_geometry_is_not_moved() -> None:
    """A fill of black is coloured by a step behind it, and not by one before it."""
    shift = "{random_translation: {x: [0.5, 0.5], fill: {constant: 0}}}"
    dim = "{random_contrast: {factor: [0, 0]}}"
    _, before, _ = run(dim, shift)
    _, behind, _ = run(shift, dim)
    assert (before[:, :, : WIDTH // 2] == 0).all()
    assert (before[:, :, WIDTH // 2 :] > 0).all()
    assert (behind > 0).all()
