"""Batches of a ragged feature: as long as the most items that an example has, or one of a few lengths; and models that take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_scenes import FILL, MOST, spec

from pipegen.errors import ModelMismatchError, SpecError
from pipegen.types import ElementType, FeatureType

pytestmark = pytest.mark.usefixtures("open_set")
BUCKETS = [2, 4]
OWN = ("mse", "binary_crossentropy")
STEPS = [{"random_flip": FILL}, {"random_rotation": {"degrees": 10, **FILL}}]


def batches(pipe: Any, split: str = "train", epoch: int = 0) -> list[tuple[Any, Any, Any]]:
    return [(x.numpy(), y["points"].numpy(), y["there"].numpy()) for x, y in pipe.dataset(split, epoch=epoch)]


@pytest.fixture(scope="module")
def plain(open_set: None) -> Any:
    import pipegen

    return pipegen.build(spec(STEPS, size=2), runtime={"jit": "never", "cache": "none"})


@pytest.fixture(scope="module")
def bucketed(open_set: None) -> Any:
    import pipegen

    return pipegen.build(spec(STEPS, size=2, buckets=BUCKETS), runtime={"jit": "never", "cache": "none"})


def test_the_lengths_are_in_the_types() -> None:
    points = FeatureType("points", "float32", (None, 2), of="image", most=7, buckets=(2, 4, 9))
    padded = ElementType((("points", points),)).padded()
    assert padded["points"].buckets == padded["points_valid"].buckets == (2, 4, 7)
    assert (str(padded["points"]), str(points)) == ("float32[7×2]", "float32[2|4|9×2]")
    assert padded.padded() == padded
    unknown = ElementType((("points", points.with_(most=0)),)).padded()
    assert unknown["points"].buckets == (2, 4, 9)
    assert ElementType((("points", points.with_(buckets=(7, 9))),)).padded()["points"].buckets == ()


@pytest.mark.parametrize("buckets", [[0], [4, 2], [2, 2], [-1, 3]], ids=str)
def test_lengths_that_do_not_ascend_are_a_finding(buckets: list[int]) -> None:
    from pipegen.api.building import build

    with pytest.raises(SpecError, match=r"PG105.*\n?.*the `buckets` of `points` are .*; lengths have to ascend from 1"):
        build(spec(STEPS, size=2, buckets=buckets))


@pytest.mark.nightly
@pytest.mark.tf
def test_a_batch_is_as_long_as_its_items_need(bucketed: Any, plain: Any) -> None:
    lengths = set()
    for epoch in range(2):
        for own, whole in zip(batches(bucketed, epoch=epoch), batches(plain, epoch=epoch), strict=True):
            length = own[1].shape[1]
            most = own[2].sum(1).max()
            assert length == min(n for n in (*BUCKETS, MOST) if n >= most)
            np.testing.assert_array_equal(own[0], whole[0])
            np.testing.assert_array_equal(own[1], whole[1][:, :length])
            np.testing.assert_array_equal(own[2], whole[2][:, :length])
            assert not whole[2][:, length:].any()
            lengths.add(length)
    assert len(lengths) > 1
    assert [tuple(s.shape) for s in bucketed.element_spec[1].values()] == [(None, None, 2), (None, None)]
    assert "points: cut to the least of 2, 4, 5 that holds the items of the batch" in str(bucketed.explain())
    assert "points: float32[2|4|5×2], points_valid: bool[2|4|5]" in str(bucketed.explain())


@pytest.mark.tf
@pytest.mark.parametrize(
    "runtime",
    [
        {"cache": "memory"},
        {"cache": {"disk": "kept"}},
        {"jit": "always", "cache": "none"},
    ],
    ids=str,
)
@pytest.mark.nightly  # by day boxes go through a cache: they are of any number, too
def test_every_plan_gives_the_same_lengths(plain: Any, runtime: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipegen

    monkeypatch.chdir(tmp_path)
    pipe = pipegen.build(spec([{"resize": {"size": [40, 56]}}, *STEPS], size=2, buckets=BUCKETS), runtime={"jit": "never", **runtime})
    for _ in range(2):
        for own, whole in zip(batches(pipe), batches(plain), strict=True):
            length = own[1].shape[1]
            assert length in (*BUCKETS, MOST)
            np.testing.assert_array_equal(own[2], whole[2][:, :length])
            np.testing.assert_allclose(own[1], whole[1][:, :length], atol=1 / 128)


@pytest.mark.tf
def test_training_goes_on_with_the_same_batches(bucketed: Any) -> None:
    bucketed.seek(1, 1)
    rest = [(x.numpy(), y["points"].numpy(), y["there"].numpy()) for x, y in bucketed.train]
    for left, right in zip(rest, batches(bucketed, epoch=1)[1:], strict=True):
        for a, b in zip(left, right, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.tf
def test_each_share_has_the_length_that_its_own_items_need(plain: Any) -> None:
    import pipegen

    shares = [
        pipegen.build(spec(STEPS, size=2, buckets=BUCKETS), runtime={"jit": "never", "cache": "none", "shard": {"index": i, "count": 2}})
        for i in range(2)
    ]
    for *parts, whole in zip(*map(batches, shares), batches(plain), strict=True):
        for own, rows in zip(parts, np.split(np.arange(len(whole[0])), 2), strict=True):
            length = own[1].shape[1]
            assert length == min(n for n in (*BUCKETS, MOST) if n >= own[2].sum(1).max())
            np.testing.assert_array_equal(own[1], whole[1][rows][:, :length])
            np.testing.assert_array_equal(own[2], whole[2][rows][:, :length])


@pytest.mark.tf
def test_views_show_every_item(bucketed: Any, plain: Any, tmp_path: Path) -> None:
    tables = [pipe.export(tmp_path / name, split="train", examples=6).table for name, pipe in (("own", bucketed), ("plain", plain))]
    assert tables[0].read_text(encoding="utf-8") == tables[1].read_text(encoding="utf-8")
    sheets = [np.array(pipe.preview(rows=2, draws=1, cell=60)) for pipe in (bucketed, plain)]
    np.testing.assert_array_equal(*sheets)


@pytest.mark.tf
def test_examples_of_batches_of_several_lengths_are_peeked_at_together(bucketed: Any, plain: Any) -> None:
    bucketed.seek(0)
    plain.seek(0)
    (_, own), (_, whole) = bucketed.peek(n=10), plain.peek(n=10)
    length = own["points"].shape[1]
    np.testing.assert_array_equal(own["points"], whole["points"][:, :length])
    np.testing.assert_array_equal(own["there"], whole["there"][:, :length])
    assert not whole["there"][:, length:].any()


@pytest.mark.tf
def test_a_model_of_open_length_is_trained(bucketed: Any, keras: Any) -> None:
    bucketed.seek(0)
    x = keras.Input((40, 56, 3))
    row = keras.layers.Resizing(5, 2)(x)[..., 0]
    points = keras.layers.Lambda(lambda t: t, output_shape=(None, 2), name="points")(row)
    there = keras.layers.Lambda(lambda t: t[..., 0], output_shape=(None,), name="there")(row)

    def loss(y: Any, given: Any) -> Any:
        return keras.ops.mean(keras.ops.square(given[:, : keras.ops.shape(y)[1]] - keras.ops.cast(y, "float32")))

    asked = keras.Model(x, {"points": points, "there": there})
    asked.compile(loss={"points": loss, "there": loss})
    assert "the loss counts" not in bucketed.check(asked)
    assert np.isfinite(asked.fit(bucketed.train, epochs=1, steps_per_epoch=5, verbose=0).history["loss"][0])


# Models


@pytest.fixture(scope="module")
def keras() -> Any:
    import keras

    return keras


def model(keras: Any, points: tuple[int | None, ...], there: tuple[int | None, ...], *losses: str) -> Any:
    """A model whose outputs have these shapes, and which cannot be run."""
    x = keras.Input((40, 56, 3))
    flat = keras.layers.GlobalAveragePooling2D()(x)

    def shaped(shape: tuple[int | None, ...], name: str) -> Any:
        open_ = keras.layers.Lambda(lambda t: t, output_shape=shape, name=name)
        return open_(flat)

    made = keras.Model(x, {"points": shaped(points, "points"), "there": shaped(there, "there")})
    if losses:
        made.compile(loss=dict(zip(("points", "there"), losses, strict=True)))
    return made


@pytest.mark.tf
@pytest.mark.parametrize(("pipe", "points", "there", "losses", "says"), [
    ("plain", (5, 2), (5,), ("mse", "binary_crossentropy"), None),
    ("plain", (5, 2), (5, 1), (), None),
    ("plain", (None, 2), (None,), (), None),
    ("plain", (80, 4), (80,), (), None),
    ("bucketed", (None, 2), (None,), ("huber", "binary_crossentropy"), None),
    ("plain", (10,), (5,), OWN, "output `points`: the model gives 10 for each example, and `points` is padded to 5×2"),
    ("plain", (4, 2), (5,), OWN, "the model gives 4×2 for each example, and `points` is padded to 5×2"),
    ("plain", (5, 2), (1,), OWN, "output `there`: the model gives 1 for each example, and `points_valid` is padded to 5"),
    ("bucketed", (5, 2), (None,), OWN, "`points` is ?×2, as long as the batch needs: one of 2, 4, 5; make the model's length `None`"),
    ("plain", (5, 2), (5,), ("mse", "sparse_categorical_crossentropy"), "`points_valid` has truth values; use binary_crossentropy"),
    ("plain", (5, 2), (5,), ("categorical_crossentropy", "mse"), "`points` has numbers; use mean_squared_error"),
], ids=str)  # fmt: skip
def test_check_compares_places_with_what_a_model_gives(
    pipe: str, points: Any, there: Any, losses: Any, says: str | None, keras: Any, request: pytest.FixtureRequest
) -> None:
    made, asked = request.getfixturevalue(pipe), model(keras, points, there, *losses)
    if says is not None:
        with pytest.raises(ModelMismatchError) as caught:
            made.check(asked)
        assert says in str(caught.value)
        return
    line = made.check(asked)
    assert "the model fits" in line
    assert ("the loss also counts the zeros that pad `points`" in line) == bool(losses)
    assert ("{points: your own, there: binary_crossentropy}; `points` is padded" in line) != bool(losses)


@pytest.mark.tf
@pytest.mark.parametrize(("length", "buckets", "says"), [
    (5, [], None),
    (None, BUCKETS, None),
    (5, BUCKETS, "input `points` takes 5×2, and the pipeline gives ?×2, whose length follows the batch: leave it open, as `None`"),
], ids=str)  # fmt: skip
def test_check_compares_padded_inputs(length: int | None, buckets: list[int], says: str | None, keras: Any) -> None:
    import pipegen

    sections = spec([{"resize": {"size": [40, 56]}}], buckets=buckets) | {
        "output": {"x": {"image": "image", "points": "points", "there": "points_valid"}, "y": None}
    }
    pipe = pipegen.build(sections, runtime={"jit": "never"})
    inputs = {
        "image": keras.Input((40, 56, 3), name="image"),
        "points": keras.Input((length, 2), name="points"),
        "there": keras.Input((length,), dtype="bool", name="there"),
    }
    asked = keras.Model(inputs, keras.layers.Flatten()(inputs["image"]))
    if says is None:
        assert "the model fits" in pipe.check(asked)
        return
    with pytest.raises(ModelMismatchError) as caught:
        pipe.check(asked)
    assert says in str(caught.value)
