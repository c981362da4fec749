"""Combining steps against SciPy's Beta distribution, the papers' own rectangle in NumPy, and Keras' layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipegen.errors import OpError
from pipegen.ops.families.combining import GROUP, WHOLE, CombiningTransform, combine_labels, symmetric_beta
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.mixup import Cutmix, Mixup
from pipegen.ops.transforms.mosaic import Mosaic
from pipegen.types import FeatureType, Interval

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]

N, H, W = 24, 13, 17
PARTNER = np.roll(np.arange(N), 5)
FOUR = np.stack([PARTNER, PARTNER[PARTNER], PARTNER[PARTNER[PARTNER]]], 1)
"""The others of a mosaic: each is the partner of the one before."""


def numbers(step: CombiningTransform, n: int = N, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, step.num_draws()))


def pictures(dtype: str = "uint8") -> Array:
    values = np.random.default_rng(7).integers(0, 256, (N, H, W, 3))
    return values.astype(np.uint8) if dtype == "uint8" else (values / 255).astype(dtype)


def chosen(step: CombiningTransform, u: Array, height: int = H, width: int = W) -> Array:
    return step.choose(np.asarray(u), height, width).numpy()


def combined(step: CombiningTransform, images: Array, how: Array) -> Array:
    return step.combine(images, images[others(step)], how).numpy()


def others(step: CombiningTransform) -> Array:
    """The rows of everyone's partners."""
    return FOUR[:, : step.others]


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.4, 0.5, 1, 2.5, 40])
def test_the_share_is_beta_distributed(alpha: float) -> None:
    n, beta = 40_000, stats.beta(alpha, alpha)
    drawn = np.sort(symmetric_beta(np.random.default_rng(3).random((n, 2)), alpha).numpy())
    # The Kolmogorov-Smirnov distance, away from the ends: floats are too coarse near 1 for what lies there at a small alpha.
    at = np.clip(beta.ppf(np.linspace(0, 1, 2001)), 1e-9, 1 - 1e-9)
    distance = np.abs(np.searchsorted(drawn, at, side="right") / n - beta.cdf(at)).max()
    assert distance < 1.95 / np.sqrt(n), "beyond what one in a thousand samples of that distribution shows"


def test_the_ends_of_the_uniform_numbers_are_in_range() -> None:
    ends = [0.0, 2.0**-53, 0.25, 0.5, 0.75, 1 - 2.0**-53]
    u = np.array([[a, b] for a in ends for b in ends])
    for alpha in (1e-3, 0.2, 1.0, 1e3):
        drawn = symmetric_beta(u, alpha).numpy()
        assert np.isfinite(drawn).all()
        assert drawn.min() >= 0
        assert drawn.max() <= 1


def test_bytes_are_blended_exactly() -> None:
    step, images = Mixup(alpha=1), pictures()
    how = chosen(step, numbers(step))
    share = how[:, 0].astype(np.int64)[:, None, None, None]
    exact = (images.astype(np.int64) * share + images[PARTNER].astype(np.int64) * (WHOLE - share)) / WHOLE
    got = combined(step, images, how)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, exact)
    np.testing.assert_array_equal(step.shares(how, H, W)[..., 0].numpy(), how[:, 0] / WHOLE)


def test_a_blend_is_the_one_of_keras() -> None:
    import keras

    step, images = Mixup(alpha=0.7), pictures("float32")
    how = chosen(step, numbers(step))
    share = step.shares(how, H, W)[..., 0].numpy()
    theirs = keras.layers.MixUp().transform_images(images, {"mix_weight": share, "permutation_order": PARTNER})
    np.testing.assert_allclose(combined(step, images, how), theirs, atol=1e-6)
    labels = np.eye(5, dtype=np.float32)[np.arange(N) % 5]
    theirs = keras.layers.MixUp().transform_labels(labels, {"mix_weight": share, "permutation_order": PARTNER})
    np.testing.assert_allclose(combine_labels(labels, labels[PARTNER][:, None], np.stack([share, 1 - share], 1)), theirs, atol=1e-7)


def rectangle(share: float, centre: tuple[float, float], height: int, width: int) -> tuple[int, int, int, int]:
    """`rand_bbox` of the authors' code, with the centre given: top, left, bottom, right."""
    ratio = np.sqrt(1.0 - share)
    tall, broad = int(height * ratio), int(width * ratio)
    y, x = int(centre[0] * height), int(centre[1] * width)
    top, bottom = np.clip(y - tall // 2, 0, height), np.clip(y + tall // 2, 0, height)
    left, right = np.clip(x - broad // 2, 0, width), np.clip(x + broad // 2, 0, width)
    return int(top), int(left), int(bottom), int(right)


@pytest.mark.parametrize(("height", "width", "alpha"), [(H, W, 1.0), (1, 1, 1.0), (224, 160, 0.3)])
def test_the_rectangle_is_the_paper_s(height: int, width: int, alpha: float) -> None:
    step = Cutmix(alpha=alpha)
    u = numbers(step, 200)
    how = chosen(step, u, height, width)
    shares = np.rint(symmetric_beta(u[:, 2:4], alpha).numpy() * WHOLE) / WHOLE
    wanted = np.array([rectangle(s, (a, b), height, width) for s, a, b in zip(shares, u[:, 4], u[:, 5], strict=True)])
    np.testing.assert_array_equal(how, wanted)
    area = (wanted[:, 2] - wanted[:, 0]) * (wanted[:, 3] - wanted[:, 1]) / (height * width)
    np.testing.assert_array_equal(step.shares(how, height, width)[..., 0].numpy(), (1 - area).astype(np.float32))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_rectangle_holds_the_partner_s_pixels(dtype: str) -> None:
    step, images = Cutmix(), pictures(dtype)
    how = chosen(step, numbers(step))
    wanted = images.copy()
    for i, (top, left, bottom, right) in enumerate(how):
        wanted[i, top:bottom, left:right] = images[PARTNER[i], top:bottom, left:right]
    got = combined(step, images, how)
    assert got.dtype == images.dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("step", [Mixup(alpha=1, probability=0.4), Cutmix(probability=0.4), Mosaic(probability=0.4)], ids=lambda s: s.op)
def test_probability_leaves_the_others_as_they_are(step: CombiningTransform) -> None:
    images, u = pictures(), numbers(step)
    how = chosen(step, u)
    stays = u[:, 1] >= 0.4
    assert 0 < stays.sum() < N
    np.testing.assert_array_equal(combined(step, images, how)[stays], images[stays])
    shares = step.shares(how, H, W).numpy()
    assert (shares[stays] == np.eye(1 + step.others)[0]).all()
    assert (shares[~stays, 0] < 1).any()
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)


@pytest.mark.parametrize("step", [Mixup(alpha=0.3), Cutmix(alpha=0.5), Mosaic()], ids=lambda s: s.op)
def test_the_same_bits_with_xla_and_at_every_batch_size(step: CombiningTransform) -> None:
    import tensorflow as tf

    images, u = pictures(), numbers(step)
    how = chosen(step, u)
    whole = combined(step, images, how)
    compiled = tf.function(lambda x, p, h: step.combine(x, tf.gather(x, p), h), jit_compile=True, autograph=False)
    np.testing.assert_array_equal(compiled(images, others(step), how).numpy(), whole)
    for size in (1, 3, 8):
        parts = [chosen(step, u[i : i + size]) for i in range(0, N, size)]
        np.testing.assert_array_equal(np.concatenate(parts), how)
    np.testing.assert_array_equal(step.combine(images[:3], images[others(step)[:3]], how[:3]).numpy(), whole[:3])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_mosaic_is_a_window_of_four_images_side_by_side(dtype: str) -> None:
    step, images = Mosaic(centre=(0, 1)), pictures(dtype)
    u = numbers(step)
    u[:2, 2:] = [[0, 0], [1 - 2.0**-53, 0.5]]
    how = chosen(step, u)
    assert how.min() == 0
    got, shares = combined(step, images, how), step.shares(how, H, W).numpy()
    assert got.dtype == images.dtype
    for i, (row, column) in enumerate(how):
        a, b, c, d = (images[j] for j in (i, *FOUR[i]))
        canvas = np.concatenate([np.concatenate([a, b], 1), np.concatenate([c, d], 1)])
        np.testing.assert_array_equal(got[i], canvas[H - row : 2 * H - row, W - column : 2 * W - column])
        areas = [row * column, row * (W - column), (H - row) * column, (H - row) * (W - column)]
        np.testing.assert_allclose(shares[i], np.array(areas) / (H * W), atol=1e-7)


def test_labels_of_four_are_weighed() -> None:
    rng = np.random.default_rng(2)
    labels, shares = np.eye(5, dtype=np.float32)[np.arange(N) % 5], rng.dirichlet(np.ones(4), N).astype(np.float32)
    wanted = labels * shares[:, :1] + sum(labels[FOUR[:, i]] * shares[:, i + 1, None] for i in range(3))
    np.testing.assert_allclose(combine_labels(labels, labels[FOUR], shares), wanted, atol=1e-6)


def test_partners_of_partners_are_others_while_the_group_has_any() -> None:
    from pipegen.backend.index.combined_groups import partners, partners_of

    for n, different in ((GROUP, 4), (3, 3), (1, 1)):
        got = partners_of(partners(np.random.default_rng(n).random(n), np.ones(n, bool)), 3).numpy()
        assert all(len({i, *row}) == different for i, row in enumerate(got))


def by_hand(rank: Array, member: Array) -> list[int]:
    """Everyone's partner: the next in the order of the ranks of its group, the last one's the first."""
    partner = list(range(len(rank)))
    for first in range(0, len(rank), GROUP):
        group = [i for i in range(first, min(first + GROUP, len(rank))) if member[i]]
        order = sorted(group, key=lambda i: rank[i])
        for here, there in zip(order, order[1:] + order[:1], strict=True):
            partner[here] = there
    return partner


@pytest.mark.parametrize("n", [1, 2, 8, 13, 24])
@pytest.mark.parametrize("outside", [0, 1, 6])
def test_partners_are_others_of_the_group(n: int, outside: int) -> None:
    from pipegen.backend.index.combined_groups import partners

    rank, member = np.random.default_rng(n).random(n), np.arange(n) < n - outside
    got = partners(rank, member).numpy()
    assert got.tolist() == by_hand(rank, member)
    assert sorted(got) == list(range(n)), "everyone is one partner"
    alone = (np.arange(n) // GROUP * GROUP == n - outside - 1) & member
    assert (got[member & ~alone] != np.arange(n)[member & ~alone]).all()
    assert (got[~member] == np.arange(n)[~member]).all()


def test_every_other_of_the_group_is_as_likely() -> None:
    from pipegen.backend.index.combined_groups import partners

    got = partners(np.random.default_rng(0).random(GROUP * 4000), np.ones(GROUP * 4000, bool)).numpy().reshape(-1, GROUP) % GROUP
    for place in range(GROUP):
        counts = np.bincount(got[:, place], minlength=GROUP)
        assert counts[place] == 0
        assert stats.chisquare(np.delete(counts, place)).pvalue > 1e-4


def test_types() -> None:
    half = FeatureType("image", "float16", (8, 8, 3), Interval(-1, 1))
    assert str(Mixup().infer(half)) == "float32[8×8×3] in [-1, 1]"
    assert Cutmix().infer(half) == half
    mask = FeatureType("mask", "uint8", (8, 8, 1), None, of="image")
    assert Cutmix().infer(mask) == mask, "a mask follows the rectangle"
    with pytest.raises(OpError) as raised:
        Mixup().infer(mask)
    assert raised.value.code == "PG203"


def test_what_changes_nothing_and_what_is_odd() -> None:
    floats = IMAGE_224.with_(dtype="float32")
    assert Cutmix(probability=0).is_identity(IMAGE_224)
    assert Mixup(probability=0).is_identity(floats)
    assert not Mixup(probability=0).is_identity(IMAGE_224), "it makes floats of bytes"
    (odd,) = Mixup(alpha=30).lints(IMAGE_224)
    assert (odd.code, odd.field) == ("PG510", "alpha")
    for wrong in (0, -0.2, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="alpha"):
            Mixup(alpha=wrong)
