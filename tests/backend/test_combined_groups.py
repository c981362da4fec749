"""Combining in a running pipeline: the partner is fixed by the epoch's order, so nothing of how it runs moves a pixel."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path
from pipes import RESIZE, batches, epoch_of, same, shared, stream
from typing import Any

import numpy as np
import pytest

from pipegen.ops.families.combining import GROUP
from pipegen.physical.extent import Position

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]

STEPS: list[Any] = [RESIZE, {"mosaic": {"probability": 0.7}}, {"cutmix": {"probability": 0.7}}, {"mixup": {"alpha": 0.4}}]


def combining(
    folder: Path, size: int, remainder: str = "keep", runtime: dict[str, Any] | None = None, steps: list[Any] = STEPS, **own: Any
) -> Any:
    """A pipeline that combines three times; evaluation keeps its last batch."""
    batch = {"size": size, "remainder": {"train": remainder}}
    return shared(folder, runtime, transforms=steps, output={"encode": {"label": "one_hot"}}, batch=batch, **own)


@pytest.fixture(scope="module")
def expected(photo_folder: Path) -> Any:
    """Epoch 2 in batches that are whole groups."""
    pipe = combining(photo_folder, 8)
    assert pipe._engine.executor("train").wide is None, "whole groups cost nothing more"
    return epoch_of(pipe, 2)


def combine_by_hand(step: Any, u: Array, images: Array, labels: Array) -> tuple[Array, Array]:
    """One step on a whole epoch, example by example; the draws decide through the step's own `choose`."""
    chosen = step.choose(u, *images.shape[1:3]).numpy()
    shares = step.shares(chosen, *images.shape[1:3]).numpy().astype(np.float64)
    share, combined, soft = shares[:, 0], images.astype(np.float64), labels.copy()
    for first in range(0, len(images), GROUP):
        ranked = first + np.argsort(u[first : first + GROUP, 0])
        for own, other, third, fourth in zip(*(np.roll(ranked, -i) for i in range(4)), strict=True):
            if step.others == 3:
                soft[own] = shares[own] @ labels[[own, other, third, fourth]]
                canvas = np.concatenate([np.concatenate(images[[own, other]], 1), np.concatenate(images[[third, fourth]], 1)])
                top, left = images.shape[1:3] - chosen[own]
                combined[own] = canvas[top : top + images.shape[1], left : left + images.shape[2]]
                continue
            soft[own] = share[own] * labels[own] + (1 - share[own]) * labels[other]
            if chosen.shape[1] == 4:
                top, left, bottom, right = chosen[own]
                combined[own, top:bottom, left:right] = images[other, top:bottom, left:right]
            else:
                combined[own] = share[own] * images[own] + (1 - share[own]) * images[other]
    return combined, soft


@pytest.mark.nightly
def test_an_epoch_is_what_numpy_makes_of_it(photo_folder: Path, expected: Any) -> None:
    import tensorflow as tf

    from pipegen.plan.nodes import Element, Read

    executor = combining(photo_folder, 8)._engine.executor("train")
    epoch = tf.fill([len(expected[0])], tf.constant(2, tf.int64))
    record = executor.order.records(epoch, tf.range(len(epoch), dtype=tf.int64))
    u = executor.draws(executor.tensors, record, epoch)
    compute = executor.compute([n for n in executor.plan.nodes if isinstance(n, (Read, Element))])
    rows = [compute({"@record": r, "@draws": d}) for r, d in zip(record, u, strict=True)]
    images, labels = (np.stack([row[name].numpy() for row in rows]) for name in ("image", "label"))
    labels = np.eye(3)[labels]
    for ref in executor.plan.index.draws:
        images, labels = combine_by_hand(ref.step, u.numpy()[:, ref.start : ref.start + ref.num_draws], images, labels)
    np.testing.assert_array_equal(expected[0], images)
    np.testing.assert_allclose(expected[1], labels, atol=1e-6)
    np.testing.assert_allclose(expected[1].sum(1), 1, atol=1e-6)
    assert (expected[1].max(1) < 1).any()


@pytest.mark.smoke
def test_the_batch_size_changes_no_bit(photo_folder: Path, expected: Any) -> None:
    pipe = combining(photo_folder, 12)
    assert pipe._engine.executor("train").wide == 16, "its batches begin inside groups"
    assert len(expected[0]) % 12, "the last one is smaller"
    same(epoch_of(pipe, 2), expected)


@pytest.mark.nightly
def test_shards_make_up_the_global_batch(photo_folder: Path, expected: Any) -> None:
    count = 3
    pipe = combining(photo_folder, 12)
    shares = [batches(pipe.dataset("train", epoch=2, shard=(i, count))) for i in range(count)]
    joined = [np.concatenate([share[step][part] for step in range(len(shares[0])) for share in shares]) for part in (0, 1)]
    same(joined, expected)


def test_an_epoch_resumed_at_any_step_is_the_rest_of_it(photo_folder: Path, expected: Any) -> None:
    pipe = combining(photo_folder, 12)
    for step in (1, 2):
        same(epoch_of(pipe, 2, step), [part[12 * step :] for part in expected])


def test_the_remainder_moves_nothing(photo_folder: Path, expected: Any) -> None:
    padded, n = epoch_of(combining(photo_folder, 12, "pad"), 2), len(expected[0])
    same([part[:n] for part in padded[:2]], expected)
    np.testing.assert_array_equal(padded[2], np.arange(36) < n)


@pytest.mark.nightly
def test_a_cache_and_xla_change_nothing(photo_folder: Path, expected: Any) -> None:
    pipe = combining(photo_folder, 12, runtime={"cache": "memory", "jit": "always"})
    for _ in range(2):
        images, labels = epoch_of(pipe, 2)
        np.testing.assert_array_equal(images, expected[0])
        np.testing.assert_allclose(labels, expected[1], rtol=0, atol=1e-6)


def test_other_splits_are_left_alone(photo_folder: Path) -> None:
    pipe = combining(photo_folder, 12)
    labels = stream(pipe.validation)[1]
    assert set(np.unique(labels)) == {0, 1}
    assert pipe.train.element_spec == pipe.validation.element_spec


def test_peek_and_preview(photo_folder: Path, expected: Any) -> None:
    from pipegen.backend.running.damaged_record import examples_of
    from pipegen.views.preview import render_example

    pipe = combining(photo_folder, 12)
    pipe.seek(2, 0)
    same(pipe.peek("train", 14), [part[:14] for part in expected])
    executor = pipe._engine.executor("train")
    first = [record for record, *_ in examples_of(executor, Position(2))][:2]
    for record, image in zip(first, expected[0], strict=False):
        np.testing.assert_allclose(render_example(executor, record, 2, "image"), image, atol=0.5 + 1e-3)


@pytest.fixture(scope="module")
def hurt(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four damaged training files."""
    folder = shutil.copytree(photo_folder, tmp_path_factory.mktemp("combining") / "photos")
    for file in [f for f in shared(folder).files("train") if f.endswith(".jpg")][2::7][:4]:
        data = Path(file).read_bytes()
        Path(file).write_bytes(data[: len(data) // 2])
    return folder


def test_a_record_is_replaced_alike_on_every_host() -> None:
    """A host works out examples of others for the sake of a group, and must find the stand-ins that those find."""
    import tensorflow as tf

    from pipegen.backend.index.order import Order

    hosts = [Order(53, 12, "keep", (i, 2), None, "global", 1, 7) for i in (0, 1)]
    for slot in (0, 5, 6, 11, 17, 48, 50, 52):
        found = [
            [t.numpy().tolist() for t in order.alternates(tf.constant(1, tf.int64), tf.constant(slot, tf.int64), 8)[:2]] for order in hosts
        ]
        assert found[0] == found[1]
        first = min(slot // 8 * 8, 53 - 8)
        group = hosts[0].found(1, tf.range(first, first + 8, dtype=tf.int64)).record.numpy().tolist()
        assert sorted(found[0][0]) == sorted(group), "which stand together, be it in another batch"


def test_damaged_records_are_skipped(hurt: Path) -> None:
    pipe = combining(hurt, 12, steps=[RESIZE, STEPS[-1]], errors={"decode": {"skip": {"max_fraction": 0.5}}})
    images, labels = epoch_of(pipe, 1)
    assert len(images) == pipe.num_examples("train")
    np.testing.assert_allclose(labels.sum(1), 1)


def test_a_damaged_partner_of_another_batch_is_named(hurt: Path) -> None:
    from pipegen.errors import DataError

    pipe = combining(hurt, 5, steps=[RESIZE, STEPS[-1]])
    with pytest.raises(DataError, match=r"cannot decode .*jpg"):
        stream(pipe.dataset("train", epoch=1))


def orders() -> list[Any]:
    """Orders of many sizes, on every host of several."""
    from pipegen.backend.index.order import Order

    found = []
    for n, batch, count, remainder, steps in product((7, 8, 21, 41), (6, 8, 16, 20), (1, 2), ("drop", "keep", "pad"), (None, 3)):
        for index in range(count):
            found.append(Order(n, batch, remainder, (index, count), steps, "stored", 1, 0))  # type: ignore[arg-type]
    return found


@pytest.mark.nightly
def test_a_widened_block_holds_every_group_that_it_touches() -> None:
    import tensorflow as tf

    from pipegen.backend.index.combined_groups import widened

    widths = set()
    for order in orders():
        rows = order.widened
        widths.add(rows)
        for step in range(order.steps):
            first, last = order._block(step, order.num_examples)
            low, high = (int(v) for v in order.block(tf.constant(step, tf.int64)))
            assert (first, last) == (step * order.batch + low, step * order.batch + high), order
            touched = {g * GROUP + i for s in range(first, last) for g in [s // GROUP] for i in range(GROUP)}
            wanted = {s for s in touched if s < order.grouped}
            if rows is None:
                assert wanted <= set(range(first, last)), order
                continue
            if step < 3:
                slot, own = (t.numpy() for t in widened(order, tf.constant(step, tf.int64), rows))
                assert wanted <= set(slot.tolist()), order
                assert slot[own].tolist() == list(range(first, last)), order
                assert slot[0] % GROUP == 0
    assert widths == {None, 8, 16, 24}
