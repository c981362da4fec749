"""Draws depend on seed, epoch, example and step id, and on nothing else: other steps, the split or the order move none."""

from __future__ import annotations

from itertools import accumulate
from pipes import FLIPPED, GEOMETRY, RESIZE, epoch_of, pipeline, same, shared
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


def draws_of(pipe: Any, step_id: str, epoch: int = 0, split: str = "train") -> Array:
    """What one step draws for each record of a split: `(records, numbers)`."""
    import tensorflow as tf

    executor = pipe._engine.executor(split)
    record = tf.range(len(executor.records), dtype=tf.int64)
    drawn = executor.draws(executor.tensors, record, tf.zeros_like(record) + epoch).numpy()
    ref = next(r for r in executor.plan.index.draws if r.id == step_id)
    return drawn[:, ref.start : ref.start + ref.num_draws]


def reference(seed: int, epoch: int, occurrence: int, example: int, step: int, number: int) -> float:
    """DESIGN §4.4 in Python integers: the key is Threefry of (seed; epoch, occurrence), then of the id; the counter is the draw."""

    def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
        m, k = 0xFFFFFFFF, (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
        x, y = (counter[0] + k[0]) & m, (counter[1] + k[1]) & m
        for i in range(20):
            turn = (13, 15, 26, 6, 17, 29, 16, 24)[i % 8]
            x = (x + y) & m
            y = ((y << turn | y >> (32 - turn)) & m) ^ x
            if i % 4 == 3:
                block = i // 4 + 1
                x, y = (x + k[block % 3]) & m, (y + k[(block + 1) % 3] + block) & m
        return x, y

    visit = threefry((seed & 0xFFFFFFFF, seed >> 32), (epoch, occurrence))
    high, low = threefry(threefry(visit, (example & 0xFFFFFFFF, example >> 32)), (step, number))
    return ((high >> 5) * 2**26 + (low >> 6)) / 2**53


IDS = st.integers(0, 2**64 - 1)
NAMES = st.lists(st.tuples(st.text("abc_#2", min_size=1, max_size=6), st.integers(1, 3)), min_size=1, max_size=4, unique_by=lambda s: s[0])


@pytest.mark.smoke
@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**63 - 1),
    ids=st.lists(IDS, min_size=1, max_size=6, unique=True),
    visits=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**31)), min_size=1, max_size=8),
    steps=NAMES,
    occurrence=st.integers(0, 2),
)
def test_a_draw_is_a_function_of_seed_epoch_example_occurrence_and_step(
    seed: int, ids: list[int], visits: list[tuple[int, int]], steps: list[tuple[str, int]], occurrence: int
) -> None:
    """Whatever stands beside it in the batch, in the spec or in the split: each number is that of its own five, or of its group's."""
    from types import SimpleNamespace

    import tensorflow as tf

    from pipegen.backend.index.draws import Draws
    from pipegen.backend.reading.split_records import Records, RecordTensors
    from pipegen.spec.step_list import step_hash

    def own(count: int) -> SimpleNamespace:
        return SimpleNamespace(draw="group" if count == 2 else "example")

    starts = accumulate((count for _, count in steps), initial=0)
    refs = tuple(SimpleNamespace(id=name, num_draws=n, start=at, step=own(n)) for (name, n), at in zip(steps, starts, strict=False))
    index: Any = SimpleNamespace(parts=(), draws=refs, num_draws=sum(count for _, count in steps), scheduled=False)
    records = RecordTensors(Records([str(i) for i in ids], ids))
    record = [place % len(ids) for place, _ in visits]
    epochs = [epoch for _, epoch in visits]
    groups = [place * 7 for place, _ in reversed(visits)]
    given = (tf.constant(each, tf.int64) for each in (record, epochs, [occurrence] * len(visits)))
    drawn = Draws(seed, index)(records, *given, group=tf.constant(groups, tf.int64)).numpy()
    columns = [((step_hash(name), number), count == 2) for name, count in steps for number in range(count)]
    expected = [
        [reference(seed, e, 0x67726F75 if shared else occurrence, group if shared else ids[r], *column) for column, shared in columns]
        for r, e, group in zip(record, epochs, groups, strict=True)
    ]
    np.testing.assert_array_equal(drawn, expected)


@pytest.fixture(scope="module")
def plain(photo_folder: Path) -> Any:
    return pipeline(photo_folder, transforms=[*GEOMETRY, {"random_brightness": {"factor": 0.2}}])


@pytest.mark.smoke
def test_every_draw_differs(plain: Any) -> None:
    drawn = np.concatenate([draws_of(plain, step, e) for step in ("random_flip", "random_rotation") for e in range(5)], axis=None)
    assert len(np.unique(drawn)) == len(drawn)
    assert drawn.min() >= 0
    assert drawn.max() < 1


@pytest.mark.smoke
@pytest.mark.parametrize("extra", ["random_hue", "random_contrast", "random_shear"])
def test_inserting_a_step_leaves_the_others_alone(plain: Any, photo_folder: Path, extra: str) -> None:
    arguments = {"factor": 0.2} if extra == "random_contrast" else {"degrees": 5}
    more = pipeline(photo_folder, transforms=[*GEOMETRY[:2], {extra: arguments}, *GEOMETRY[2:], {"random_brightness": {"factor": 0.2}}])
    for step in ("random_flip", "random_rotation", "random_zoom", "random_brightness"):
        np.testing.assert_array_equal(draws_of(plain, step, 3), draws_of(more, step, 3))


def test_a_second_step_of_a_name_draws_for_itself(photo_folder: Path) -> None:
    turn = {"random_rotation": {"degrees": 5}}
    pipe = pipeline(photo_folder, transforms=[RESIZE, turn, "random_flip", turn])
    first, second = draws_of(pipe, "random_rotation"), draws_of(pipe, "random_rotation#2")
    assert not np.any(first == second)
    np.testing.assert_array_equal(first, draws_of(pipeline(photo_folder, transforms=[RESIZE, turn]), "random_rotation"))


def test_an_explicit_id_keeps_the_draws_when_steps_change_places(photo_folder: Path) -> None:
    a, b = {"random_rotation": {"degrees": 5, "id": "tilt"}}, {"random_rotation": {"degrees": 90, "id": "turn"}}
    one = pipeline(photo_folder, transforms=[RESIZE, a, "random_flip", b])
    other = pipeline(photo_folder, transforms=[RESIZE, b, "random_flip", a])
    for step in ("tilt", "turn"):
        np.testing.assert_array_equal(draws_of(one, step, 2), draws_of(other, step, 2))


def test_the_seed_moves_order_and_draws_but_no_file(photo_folder: Path) -> None:
    pipes = [pipeline(photo_folder, seed=seed) for seed in (0, 1, 2**40)]
    for split in ("train", "validation"):
        assert len({p.files(split) for p in pipes}) == 1, "the split has a seed of its own"
    drawn = [draws_of(p, "random_rotation") for p in pipes]
    assert not np.any(drawn[0] == drawn[1])
    assert not np.any(drawn[0] == drawn[2])
    whole = {"size": 8, "remainder": "keep"}
    shown = [[i.tobytes() for i in epoch_of(shared(photo_folder, seed=s, transforms=[RESIZE], batch=whole), 0)[0]] for s in (0, 1, 2**40)]
    assert len({tuple(images) for images in shown}) == 3
    assert len({tuple(sorted(images)) for images in shown}) == 1, "the same images in another order"


def test_the_split_s_own_seed_moves_files(photo_folder: Path) -> None:
    parts = {"train": 0.75, "validation": 0.25}
    one, other = (pipeline(photo_folder, splits={"parts": parts, "seed": s}) for s in (0, 1))
    assert one.files("validation") != other.files("validation")


def test_an_example_is_the_same_in_whatever_split_of_the_data(photo_folder: Path) -> None:
    """A record's draws follow its path, not its place in the list."""
    all_of_it = pipeline(photo_folder, splits={"parts": {}})
    part = pipeline(photo_folder)
    at = {file: i for i, file in enumerate(all_of_it.files("train"))}
    rows = [at[file] for file in part.files("train")]
    assert rows != list(range(len(rows)))
    np.testing.assert_array_equal(draws_of(all_of_it, "random_rotation", 4)[rows], draws_of(part, "random_rotation", 4))


def test_epochs_augment_anew(plain: Any) -> None:
    assert not np.any(draws_of(plain, "random_rotation", 0) == draws_of(plain, "random_rotation", 1))


def test_a_moved_folder_changes_nothing(photo_folder: Path, tmp_path: Path) -> None:
    import shutil

    moved = shutil.copytree(photo_folder, tmp_path / "elsewhere")
    one, other = shared(photo_folder, transforms=FLIPPED), pipeline(moved, transforms=FLIPPED)
    assert one.fingerprint == other.fingerprint
    assert one.spec_hash == other.spec_hash
    same(epoch_of(one, 1), epoch_of(other, 1))
