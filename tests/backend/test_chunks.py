"""Several examples in one call of the element stage: what it gives does not tell how many they were."""

from __future__ import annotations

from pipes import batches, pipeline
from shutil import copytree
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.smoke]


@given(batch=st.integers(1, 300), most=st.integers(1, 8))
def test_the_size_divides_the_batch(batch: int, most: int) -> None:
    from pipegen.physical.decide import chunk_size

    size = chunk_size(batch, most)
    assert batch % size == 0
    assert not [n for n in range(size + 1, min(batch, most) + 1) if batch % n == 0]


@pytest.mark.parametrize("by_reference", [False, True])
@pytest.mark.parametrize(("rows", "full"), [(6, True), (6, False), (5, False), (2, False)])
def test_a_batch_that_is_cut_and_joined_is_the_same(rows: int, full: bool, by_reference: bool, monkeypatch: Any) -> None:
    """Two chunks of 3; or one, which an example fills up."""
    import tensorflow as tf

    from pipegen.backend.running import chunks

    monkeypatch.setattr(chunks, "_BY_REFERENCE", 1 if by_reference else 1 << 20)
    images = np.arange(rows * 8, dtype=np.uint8).reshape(rows, 2, 4, 1)
    given = {"@record": tf.range(rows), "@draws": tf.reshape(tf.range(2.0 * rows), [rows, 2]), "image": tf.constant(images)}
    cut = chunks.cut(given, 3, full=full)
    assert cut["@draws"].shape.as_list() == [-(-rows // 3), 3, 2]
    of = ElementType((("image", FeatureType("image", "uint8", (2, 4, 1))),))
    cut["image"] = tf.stack([chunks._together(tf.unstack(chunk), of["image"]) for chunk in tf.unstack(cut["image"])])
    assert (cut["image"].dtype == tf.variant) is by_reference
    joined = chunks.joined(cut, of, 6, 3, full=full)
    assert set(joined) == set(given)
    for name, value in given.items():
        np.testing.assert_array_equal(joined[name], value)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("transforms", "batch"), [
    ([{"random_resized_crop": {"size": 24}}], {"size": 8, "remainder": "keep"}),
    pytest.param([{"random_resized_crop": {"size": 80}}], {"size": 16, "remainder": "keep"}, marks=pytest.mark.nightly),
    pytest.param([{"resize": {"size": 24}}], {"size": 7, "remainder": "pad"}, marks=pytest.mark.nightly),
    ([{"random_crop": {"size": 24}}, {"random_gaussian_noise": {"std": 9}}], {"size": 11, "remainder": "drop"}),
])  # fmt: skip
def test_a_pipeline_gives_what_it_gives_one_by_one(photo_folder: Path, transforms: list[Any], batch: Any, monkeypatch: Any) -> None:
    """Photographs (one is a PNG) in batches of 8 and 7 (chunks of as many), of 16 (two chunks, of images that are large enough to go by
    reference) and of 11 (which no chunk divides)."""
    from pipegen.backend.running import chunks
    from pipegen.passes import chunk_elements

    alone = batches(pipeline(photo_folder, transforms=transforms, batch=batch).train)
    sizes: list[int] = []
    monkeypatch.setattr(chunks, "cut", lambda f, chunk, cut=chunks.cut, **full: sizes.append(chunk) or cut(f, chunk, **full))
    monkeypatch.setattr(chunk_elements, "LONG_EPOCH", 1)
    monkeypatch.setattr(chunk_elements, "CHUNK", 8)
    together = batches(pipeline(photo_folder, transforms=transforms, batch=batch).train)
    assert set(sizes) == {7: {7}, 8: {8}, 11: set(), 16: {8}}[batch["size"]]
    assert len(together) == len(alone)
    for a, b in zip(together, alone, strict=True):
        for got, expected in zip(a, b, strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("size", [24, 80])
@pytest.mark.parametrize("form", ["training", "derived", "service"])
def test_guarded_examples_give_what_they_give_one_by_one(
    photo_folder: Path, tmp_path: Path, form: str, size: int, monkeypatch: Any
) -> None:
    """A damaged file is replaced or named as it is without chunks, and its batch is marked; images of 80 pixels go by reference."""
    import tensorflow as tf

    from pipegen import DataError
    from pipegen.backend.running.walk import batches_of
    from pipegen.passes import chunk_elements
    from pipegen.physical import nodes as p

    folder = copytree(photo_folder, tmp_path / "photos")
    (folder / "rose" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 nothing")
    errors: Any = {"errors": {"decode": {"skip": {"max_fraction": 0.5}}}} if form == "training" else {}
    given: Any = {"transforms": [{"random_resized_crop": {"size": size}}], "batch": {"size": 8, "remainder": "keep"}, **errors}

    def made(chunk: int) -> tuple[Any, list[Any]]:
        monkeypatch.setattr(chunk_elements, "LONG_EPOCH", 1)
        monkeypatch.setattr(chunk_elements, "CHUNK", chunk)
        pipe = pipeline(folder, **given)
        executor = pipe._engine.executor("train")
        kind, guard = {"training": (p.TRAINING, "replace"), "derived": (p.FIXED.built_on(), "name"), "service": (p.SERVICE, "mark")}[form]
        examples = next(f for f in executor.physical(kind).functions if isinstance(f, p.Examples))
        assert (examples.chunk, examples.guard) == (chunk, guard)
        if form == "training":
            delivered = batches(pipe.train)
            return list(executor.damage.quarantine.damaged.values()), delivered
        if form == "derived":
            with pytest.raises(DataError) as failed:
                list(pipe.train.map(lambda *batch: batch))
            return "broken.jpg" in str(failed.value), []
        steps = tf.data.Dataset.range(executor.steps).map(lambda step: (tf.zeros_like(step), step))
        numbered = list(batches_of(executor, steps, p.SERVICE))
        marks = [int(step) for _, step, _ in numbered]
        return marks, batches(batch for _, step, batch in numbered if step >= 0)  # the trainer makes the marked batch itself

    alone, together = made(1), made(4)
    assert alone[0]
    assert together[0] == alone[0]
    assert len(together[1]) == len(alone[1]) == {"training": 5, "derived": 0, "service": 4}[form]
    for a, b in zip(together[1], alone[1], strict=True):
        for got, expected in zip(a, b, strict=True):
            np.testing.assert_array_equal(got, expected)
