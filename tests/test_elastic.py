"""A run goes on with batches of another size and on another number of hosts: every example comes once, as it would have come."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pipes import FLIPPED, RESIZE, batches, pipeline, same, write_photos
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

SIZES, HOSTS = (8, 12, 16, 24), (1, 2, 3, 4)
COMBINES: list[Any] = [RESIZE, {"random_rotation": {"degrees": 20}}, {"cutmix": {"probability": 0.7}}, {"mixup": {"alpha": 0.4}}]


# The order alone: the full matrix


def order(n: int, batch: int, remainder: str, shard: tuple[int, int] = (0, 1), steps: int | None = None) -> Any:
    from pipegen.backend.index.order import Order

    return Order(n, batch, remainder, shard, steps, kind="global", window=1, seed=5)


@cache
def shares(n: int, batch: int, remainder: str, hosts: int, steps: int | None, at: Any) -> list[np.ndarray[Any, Any]]:
    """The slots of each step from a position to the end of its epoch, host after host: those of the epoch, counted from its begin."""
    import tensorflow as tf

    from pipegen.backend.index.order import From

    since, found = From(at.origin, at.shift), []
    for index in range(hosts):
        o = order(n, batch, remainder, (index, hosts), steps)
        number = tf.range(at.step, int(o.steps_of(since)), dtype=tf.int64)
        low, high = (edge.numpy() for edge in o.block(number, since))
        found.append([step * batch + np.arange(a, b) for step, a, b in zip(number.numpy(), low, high, strict=True)])
    return [at.origin + np.concatenate(step) for step in zip(*found, strict=True)]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("remainder", ["drop", "keep", "pad"])
def test_the_rest_of_an_epoch_is_cut_into_batches_of_another_size(remainder: str) -> None:
    """Every size and number of hosts to every other: all steps that the rest has, as many on each host, each slot once and in order."""
    from pipegen.physical.extent import Position

    n, checked = 89, 0
    for before, after, hosts in product(SIZES, SIZES, HOSTS):
        for step in range(1, order(n, before, remainder).steps):
            slot, made = step * before, order(n, after, remainder)
            at = made.position(3, step, slot, 0)
            count = (n - slot) // after if remainder == "drop" else -(-(n - slot) // after)
            if not count:
                assert at == Position(4), "nothing is left that fills a batch"
                continue
            found = shares(n, after, remainder, hosts, None, at)
            assert len(found) == count
            assert (at.origin + at.step * after, made.slot(at)) == (slot, slot)
            flat = np.concatenate(found)
            np.testing.assert_array_equal(flat, np.arange(slot, slot + len(flat)))
            assert len(flat) == (n - slot if remainder == "keep" else count * after)
            last = at
            for _ in found:
                last = made.after(last)
            assert last == Position(4), "the next epoch begins at slot 0"
            checked += 1
    assert checked > 250


def test_epochs_of_so_many_steps_keep_their_number_and_their_place() -> None:
    """The stream has no gap and repeats nothing, through several changes, and positions are found again from what a state says."""
    import tensorflow as tf

    from pipegen.backend.index.order import From
    from pipegen.physical.extent import Position

    n, steps, due, at = 29, 3, 0, Position(0)
    runs = [(order(n, size, "drop", steps=steps), size, count) for size, count in ((8, 4), (12, 5), (24, 1), (8, 6), (16, 3))]
    for (o, size, count), (following, *_) in zip(runs, [*runs[1:], runs[-1]], strict=True):
        for _ in range(count):
            since = From(at.origin, at.shift)
            cycle, place, _ = o.at(tf.constant(at.epoch, tf.int64), o.slots_of(tf.constant(at.step, tf.int64), since), since)
            np.testing.assert_array_equal(cycle.numpy() * n + place.numpy(), np.arange(due, due + size))
            at, due = o.after(at), due + size
        moved = following.position(at.epoch, at.step, o.slot(at), o.before(at))
        assert moved[:2] == at[:2]
        at = moved
    assert at[:2] == divmod(19, steps)


def test_a_damaged_record_has_the_same_stand_ins_whatever_batches_and_hosts_there_are() -> None:
    import tensorflow as tf

    from pipegen.backend.index.order import From

    def stand_ins(o: Any, slot: int, origin: int = 0) -> list[int]:
        found = o.alternates(tf.constant(3, tf.int64), tf.constant(slot - origin, tf.int64), 8, From(origin, 0))
        return found.record.numpy().tolist()

    n = 53
    whole = order(n, 8, "keep").found(3, tf.range(n, dtype=tf.int64)).record.numpy().tolist()
    for slot in range(n):
        first = min(slot // 8 * 8, n - 8)
        group = whole[first : first + 8]
        place = slot - first
        expected = [*group[place + 1 :], *group[: place + 1]]
        for size, origin in ((8, 0), (12, 4), (24, 16)):
            assert stand_ins(order(n, size, "keep", (1, 2)), slot, origin) == expected
    assert stand_ins(order(n, 16, "pad"), n) == stand_ins(order(n, 16, "pad"), 0), "what pads is the begin of the order again"
    three = order(3, 2, "keep").found(3, tf.range(3, dtype=tf.int64)).record.numpy()
    assert set(stand_ins(order(3, 2, "keep"), 0)) == set(three.tolist())


# End to end


@cache
def made(folder: Path, kind: str, size: int, remainder: str = "keep") -> Any:
    """A pipeline of a kind; its shares may be uneven."""
    own: dict[str, Any] = {"transforms": FLIPPED, "splits": {"parts": {"train": 39, "validation": 4}}}
    if "combines" in kind:
        own |= {"transforms": COMBINES, "output": {"encode": {"label": "one_hot"}}}
    if "steps" in kind:
        own |= {"epoch": {"steps": 3}}
    if "sampled" in kind:
        own |= {"sampling": {"balance": "label"}}
    if "skips" in kind:
        own |= {"errors": {"decode": {"skip": {"max_fraction": 0.3}}}}
    if "staged" in kind:
        own |= {"stages": [{"epochs": 1, "batch": size}, {"epochs": 2, "batch": 2 * size}]}
    runtime = {"shares": "uneven", "jit": "auto" if "compiled" in kind else "never"}
    return pipeline(folder, runtime, batch={"size": size, "remainder": {"train": remainder}}, **own)


def moved_to(pipe: Any, epoch: int, step: int) -> dict[str, Any]:
    """The state of a pipeline that has handed over so much, as it comes back from a file."""
    pipe.seek(epoch, step)
    state: dict[str, Any] = json.loads(json.dumps(pipe.state()))
    return state


def rest(pipe: Any, hosts: int) -> list[tuple[Any, ...]]:
    """What is left of the epoch that a pipeline stands in, step by step: the shares of all hosts, one behind the other."""
    at = {key: pipe.state()[key] for key in ("epoch", "step", "origin", "shift")}
    each = [batches(pipe.dataset("train", **at, shard=(index, hosts))) for index in range(hosts)]
    assert len({len(steps) for steps in each}) == 1, "every host takes as many steps"
    return [tuple(np.concatenate(parts) for parts in zip(*shares, strict=True)) for shares in zip(*each, strict=True)]


def flat(steps: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(np.concatenate(parts) for parts in zip(*steps, strict=True))


def night(*case: Any) -> Any:
    return pytest.param(*case, marks=pytest.mark.nightly)


@pytest.mark.parametrize(("kind", "remainder", "before", "step", "after", "hosts"), [
    ("flips", "keep", 8, 1, 12, 2),
    night("combines", "drop", 12, 1, 8, 1),  # by day the stream of steps below combines, too
    night("combines", "drop", 12, 1, 8, 2),
    night("flips", "drop", 12, 1, 16, 4),
    night("flips", "pad", 12, 1, 24, 4),
    night("combines", "keep", 12, 1, 16, 3),
    night("combines", "pad", 12, 1, 16, 4),
    night("combines compiled", "keep", 12, 1, 8, 1),
    night("sampled", "keep", 12, 1, 8, 3),
    night("skips", "keep", 8, 1, 12, 2),
    night("skips combines", "keep", 12, 1, 8, 3),
])  # fmt: skip
def test_examples_come_as_they_would_have_come(
    photo_folder: Path, tmp_path: Path, kind: str, remainder: str, before: int, step: int, after: int, hosts: int
) -> None:
    """Images, labels and mixtures, bit by bit; and the epoch behind it is a whole one."""
    folder = damaged(tmp_path) if "skips" in kind else photo_folder
    one, other = made(folder, kind, before), made(folder, kind, after, remainder)
    whole, n = flat(rest_of(one, 0)), 39
    state = moved_to(made(folder, kind, before, remainder), 0, step)
    other.restore(state)
    slot = step * before
    assert (other.state()["examples"], other.state()["origin"]) == (slot, slot % after)
    found = rest(other, hosts)
    assert len(found) == ((n - slot) // after if remainder == "drop" else -(-(n - slot) // after))
    assert {len(part[0]) for part in found[:-1]} <= {after}
    given = flat(found)
    count = min(len(given[0]), n - slot)
    same([part[:count] for part in given[:2]], [part[slot : slot + count] for part in whole[:2]])
    if remainder == "pad":
        np.testing.assert_array_equal(given[2], np.arange(len(given[2])) < n - slot)
    same(flat(batches(other.train))[:2], [part[: len(given[0])] for part in given[:2]])
    assert (other.state()["epoch"], other.state()["step"], other.state()["origin"]) == (1, 0, 0)
    following = flat(rest(other, hosts))
    length = min(len(following[0]), n)
    same([part[:length] for part in following[:2]], [part[:length] for part in flat(rest_of(one, 1))[:2]])


def rest_of(pipe: Any, epoch: int) -> list[tuple[Any, ...]]:
    return batches(pipe.dataset("train", epoch=epoch))


def damaged(root: Path) -> Path:
    """Photographs of which some are cut off."""
    folder = write_photos(root / "photos")
    for name in ("rose/02", "rose/09", "tulip/03", "daisy/05"):
        file = folder / f"{name}.jpg"
        file.write_bytes(file.read_bytes()[:200])
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["steps", "steps combines"])
def test_epochs_of_steps_go_on_in_the_same_stream(photo_folder: Path, kind: str) -> None:
    """The epoch keeps its number and its groups; those behind it have batches of the new size, and leave nothing out."""
    one, other = made(photo_folder, kind, 12), made(photo_folder, kind, 8)
    state = moved_to(one, 1, 1)
    other.restore(state)
    assert [other.state()[key] for key in ("epoch", "step", "origin", "examples")] == [1, 1, 4, 12]
    given = flat(rest(other, 3))
    ended = 16 if kind == "steps" else 12  # a group that the end of an epoch cuts is combined as far as it goes
    same([part[:ended] for part in given], [part[12 : 12 + ended] for part in flat(rest_of(one, 1))])
    same(flat(batches(other.train)), given)
    assert (other.state()["epoch"], other.state()["origin"]) == (2, 0)
    again = made(photo_folder, kind, 12)
    again.restore(json.loads(json.dumps(other.state())))
    if kind == "steps":  # 36 + 12 + 16 examples went before
        stream = flat([*rest_of(one, 1), *rest_of(one, 2)])
        same([part[:24] for part in flat(rest(other, 2))], [part[28:52] for part in stream])
        same([part[:36] for part in flat(batches(again.train))], [part[28:64] for part in stream])


@pytest.mark.nightly  # by day one stage does
def test_stages_go_on_with_batches_of_other_sizes(photo_folder: Path) -> None:
    one, other = made(photo_folder, "staged", 12), made(photo_folder, "staged", 8)
    state = moved_to(one, 1, 1)
    other.restore(state)
    assert (other.state()["epoch"], other.state()["origin"], other.state()["examples"]) == (1, 8, 24)
    assert other.steps("train") == 3
    given = flat(batches(other.train))
    assert len(given[0]) == 39 - 24
    same(given, [part[24:] for part in flat(rest_of(one, 1))])
    assert other.state()["epoch"] == 2


def test_hosts_that_would_get_nothing_of_the_last_batch_are_told_before_a_step(photo_folder: Path) -> None:
    def of_last_host(size: int) -> Any:
        own: dict[str, Any] = {"transforms": FLIPPED, "splits": {"parts": {"train": 39, "validation": 4}}}
        return pipeline(photo_folder, {"shard": {"index": 3, "count": 4}}, batch={"size": size, "remainder": {"train": "keep"}}, **own)

    state = moved_to(made(photo_folder, "flips", 8), 0, 2)
    with pytest.raises(SpecError, match="split `train`, 23 examples, ends in a batch of 3 examples, fewer than the 4 hosts") as caught:
        of_last_host(20).restore(state)
    assert [d.code for d in caught.value.diagnostics] == ["PG412"]
    assert caught.value.diagnostics[0].help == ("go on with batches of 16 or on 3 hosts to the end of the epoch",)
    advised = of_last_host(16)
    advised.restore(state)
    assert [len(labels) for _, labels in advised.train] == [4, 2]
