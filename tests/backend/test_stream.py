"""DESIGN rule 2: what an example looks like, and its place, depend on nothing of how the pipeline runs."""

from __future__ import annotations

from pipes import COLOUR, FLIPPED, GEOMETRY, RESIZE, Identify, batches, close, epoch_of, pipeline, same, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.plan.nodes import Cache

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

TINTED: list[Any] = [*FLIPPED, {"random_contrast": {"factor": 0.3}}]
"""Ends in floats whose last bits may differ, by few steps."""

RECIPES = {
    "tinted": TINTED,
    "colour": COLOUR,
    "random window": [{"random_resized_crop": {"size": 24}}, "random_flip", {"random_brightness": {"factor": 0.3}}],
}


BY_DAY = ("tinted", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("colour", "random window")))
"""One recipe will do by day, for what does not depend on the steps; windows are drawn and decoded in tests of their own."""


@pytest.fixture(scope="module", params=BY_DAY)
def recipe(request: pytest.FixtureRequest) -> list[Any]:
    return RECIPES[request.param]


@pytest.fixture(scope="module")
def expected(photo_folder: Path, recipe: list[Any]) -> Any:
    """The stream of epoch 2 on one thread, with nothing cached and nothing prefetched."""
    return epoch_of(pipeline(photo_folder, {"threads": 1, "prefetch": "none"}, transforms=recipe), 2)


def test_the_reference_is_an_epoch(expected: Any, photo_folder: Path, recipe: list[Any]) -> None:
    pipe = shared(photo_folder, transforms=recipe)
    assert len(expected[0]) == pipe.num_examples("train") // 8 * 8 == 32
    assert expected[0].shape[1:] == (24, 24, 3)
    assert len({image.tobytes() for image in expected[0]}) == 32
    assert not np.array_equal(epoch_of(pipe, 3)[0], expected[0])


@pytest.mark.smoke
@pytest.mark.parametrize(
    "runtime",
    # A cache is filled by day in an order that is worse.
    [
        pytest.param({}, marks=pytest.mark.nightly),
        {"threads": 4, "ram_budget": "64MiB"},
        pytest.param({"cache": "memory"}, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_the_runtime_changes_no_bit(expected: Any, photo_folder: Path, recipe: list[Any], runtime: dict[str, Any]) -> None:
    pipe = shared(photo_folder, runtime, transforms=recipe)
    same(epoch_of(pipe, 2), expected)
    same(epoch_of(pipe, 2), expected)


@pytest.mark.smoke
def test_a_cache_filled_in_any_order_changes_no_bit(photo_folder: Path) -> None:
    cached, plain = (f(photo_folder, runtime, transforms=TINTED) for f, runtime in ((pipeline, {"cache": "memory"}), (shared, None)))
    for split in ("train", "validation"):
        assert any(isinstance(node, Cache) for node in cached._compiled.splits[split].plan.nodes)
    next(iter(cached.train))  # fills a part, and is abandoned
    cached.seek(3, 2)
    next(iter(cached.train))
    for epoch in (0, 1, 0, 5):
        same(epoch_of(cached, epoch), epoch_of(plain, epoch))
    for _ in range(2):
        same(stream(cached.validation), stream(plain.validation))


def test_a_cache_reads_each_file_once(photo_folder: Path, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(photo_folder, tmp_path / "photos")
    pipe = pipeline(folder, {"cache": "memory"}, transforms=FLIPPED, batch={"size": 8, "remainder": "keep"})
    first, second = epoch_of(pipe, 0), epoch_of(pipe, 1)
    shutil.rmtree(folder)
    same(epoch_of(pipe, 1), second)
    same(epoch_of(pipe, 0), first)


def test_an_epoch_resumed_at_any_step_is_the_rest_of_it(expected: Any, photo_folder: Path, recipe: list[Any]) -> None:
    pipe = shared(photo_folder, transforms=recipe)
    for step in (1, 2, 3):
        same(epoch_of(pipe, 2, step), [part[8 * step :] for part in expected])
    rest = pipe.dataset("train", epoch=2, step=3)
    assert len(rest) == 1
    same(stream(rest), [part[24:] for part in expected])
    assert batches(pipe.dataset("train", epoch=2, step=4)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("steps", [FLIPPED, COLOUR], ids=["flipped", "colour"])
def test_the_remainder_moves_nothing(photo_folder: Path, steps: list[Any]) -> None:
    expected = epoch_of(shared(photo_folder, transforms=steps), 2)
    pipes = [pipeline(photo_folder, transforms=steps, batch={"size": 5, "remainder": r}) for r in ("keep", "pad", "drop")]
    streams = [epoch_of(p, 2) for p in pipes]
    n = pipes[0].num_examples("train")
    assert [len(s[0]) for s in streams] == [n, -(-n // 5) * 5, n // 5 * 5]
    same(streams[0], [part[:n] for part in streams[1][:2]])
    same(streams[2], [part[: n // 5 * 5] for part in streams[0]])
    close(tuple(part[:30] for part in streams[0]), tuple(part[:30] for part in expected), 1e-6 * 255)
    np.testing.assert_array_equal(streams[1][2], np.arange(len(streams[1][0])) < n)


@pytest.mark.nightly  # by day those of combined examples and of rows have the same bits in batches of other sizes
@pytest.mark.parametrize("size", [1, 3, 32])
def test_the_batch_size_changes_no_pixel_of_geometry(photo_folder: Path, size: int) -> None:
    reference = epoch_of(shared(photo_folder), 1)
    same([part[:30] for part in epoch_of(pipeline(photo_folder, batch={"size": size}), 1)], [part[:30] for part in reference])


@pytest.mark.nightly  # by day those of shares, of 6 in a batch of 12, are near those of the whole one
@pytest.mark.parametrize("size", [3, 16])
def test_the_batch_size_changes_colour_within_e1(photo_folder: Path, size: int) -> None:
    one, other = (shared(photo_folder, transforms=TINTED, batch={"size": s, "remainder": "keep"}) for s in (8, size))
    close(epoch_of(other, 1), epoch_of(one, 1), 1e-6 * 255)


@pytest.mark.parametrize(
    ("remainder", "count"),
    [pytest.param("drop", 4, marks=pytest.mark.nightly), ("keep", 2), pytest.param("pad", 4, marks=pytest.mark.nightly)],
)
def test_shards_make_up_the_global_batch(photo_folder: Path, remainder: str, count: int) -> None:
    pipe = pipeline(photo_folder, transforms=TINTED, batch={"size": 12, "remainder": {"train": remainder}})
    shares = [batches(pipe.dataset("train", epoch=0, shard=(i, count))) for i in range(count)]
    assert {len(s) for s in shares} == {pipe.steps("train")}
    for step, batch in enumerate(batches(pipe.train)):
        joined = tuple(np.concatenate(parts) for parts in zip(*(s[step] for s in shares), strict=True))
        close(joined, batch, 1e-6 * 255)


def test_the_runtime_s_own_shard_is_that_share(photo_folder: Path) -> None:
    mine = pipeline(photo_folder, {"shard": {"index": 1, "count": 2}}, transforms=FLIPPED)
    assert mine.element_spec[0].shape[0] == 4
    whole = epoch_of(shared(photo_folder, transforms=FLIPPED), 0)
    share = [part.reshape(4, 8, *part.shape[1:])[:, 4:].reshape(16, *part.shape[1:]) for part in whole]
    same(stream(mine.train), share)
    unshared = pipeline(photo_folder, {"shard": "none"}, transforms=FLIPPED)
    same(stream(unshared.dataset("train", epoch=0, shard=(1, 2))), share)


def test_other_splits_are_complete_and_in_source_order(photo_folder: Path) -> None:
    pipe = shared(photo_folder, transforms=[*FLIPPED, {"normalize": {"preset": "tf"}}])
    plain = pipeline(photo_folder, transforms=[RESIZE, {"normalize": {"preset": "tf"}}], batch={"size": 1}, shuffle="none")
    images, labels = stream(pipe.validation)
    same((images, labels), stream(plain.validation))
    np.testing.assert_array_equal(labels, pipe.labels("validation"))
    assert len(images) == len(pipe.files("validation")) == pipe.num_examples("validation")
    assert [pipe.class_names[i] for i in labels] == [f.split("/")[-2] for f in pipe.files("validation")]


@pytest.mark.smoke
@pytest.mark.parametrize("shuffle", ["global", "none", {"window": "6kB"}], ids=str)
def test_labels_stay_with_their_images(photo_folder: Path, shuffle: Any) -> None:
    pipe = pipeline(photo_folder, transforms=[RESIZE], shuffle=shuffle, batch={"size": 8, "remainder": "keep"})
    who = Identify(photo_folder)
    for epoch in (0, 1):
        images, labels = epoch_of(pipe, epoch)
        order = who(images)
        assert sorted(order) == list(range(pipe.num_examples("train")))
        np.testing.assert_array_equal(pipe.labels("train")[order], labels)
        if shuffle == "none":
            assert order == sorted(order)
        else:
            assert order != sorted(order)


def test_an_epoch_of_steps_goes_on_through_the_passes(photo_folder: Path) -> None:
    n = 32
    own: dict[str, Any] = {"transforms": FLIPPED, "splits": {"parts": {"train": n, "validation": 5}}}
    whole, part = pipeline(photo_folder, batch={"size": n, "remainder": "keep"}, **own), pipeline(photo_folder, epoch={"steps": 5}, **own)
    assert part.steps("train") == 5
    served = [np.concatenate(p) for p in zip(*(epoch_of(part, e) for e in range(3)), strict=True)]
    passes = [np.concatenate(p) for p in zip(*(epoch_of(whole, e) for e in range(4)), strict=True)]
    same(served, [p[: 3 * 5 * 8] for p in passes])


def test_very_small_data_makes_an_epoch_of_many_passes(photo_folder: Path) -> None:
    pipe = pipeline(
        photo_folder, epoch={"steps": 6}, batch={"size": 8}, splits={"parts": {"train": 7, "validation": 5}}, transforms=[RESIZE]
    )
    who = Identify(photo_folder, splits={"parts": {"train": 7, "validation": 5}})
    order = np.asarray(who(stream(pipe.train)[0])[:42]).reshape(6, 7)
    np.testing.assert_array_equal(np.sort(order, 1), np.broadcast_to(np.arange(7), (6, 7)))
    assert len({row.tobytes() for row in order}) > 1


@pytest.mark.nightly
@pytest.mark.smoke
def test_xla_changes_no_pixel_of_geometry(photo_folder: Path) -> None:
    batch = {"size": 8, "remainder": "keep"}
    always, never = (shared(photo_folder, {"jit": jit}, transforms=GEOMETRY, batch=batch) for jit in ("always", "never"))
    same(epoch_of(always, 1), epoch_of(never, 1))


@pytest.mark.smoke
@pytest.mark.nightly
def test_xla_changes_colour_within_e1(photo_folder: Path) -> None:
    batch = {"size": 8, "remainder": "keep"}
    always, never = (shared(photo_folder, {"jit": jit}, transforms=COLOUR, batch=batch) for jit in ("always", "never"))
    close(epoch_of(always, 1), epoch_of(never, 1))
    close(stream(always.validation), stream(never.validation))
