"""Batches that come in any order are handed over in the order of their steps; what does not come is to be made here."""

from __future__ import annotations

import threading
import time

import pytest

from pipegen.backend.service.feed import Arrivals, Fed, Unusable
from pipegen.physical.extent import Position

STEPS = 10


def after(at: Position) -> Position:
    return at.begin(at.epoch + 1) if at.step + 1 == STEPS else at._replace(step=at.step + 1)


def arrivals(patience: float = 20, window: int = 8) -> tuple[Arrivals, Fed]:
    fed = Fed()
    return Arrivals(Position(0), Position(0), after, patience, window, fed), fed


def put(into: Arrivals, *steps: int, epoch: int = 0) -> None:
    for step in steps:
        assert into.put(Position(epoch, step), f"{epoch}.{step}")


def test_batches_are_handed_over_in_the_order_of_their_steps() -> None:
    one, fed = arrivals()
    put(one, 2, 0, 1)
    assert [one.take() for _ in range(3)] == ["0.0", "0.1", "0.2"]
    assert fed.late == 0


def test_epochs_follow_each_other() -> None:
    one, _ = arrivals(window=STEPS)
    put(one, *range(STEPS))
    put(one, 1, 0, epoch=1)
    assert [one.take() for _ in range(STEPS + 2)][-3:] == [f"0.{STEPS - 1}", "1.0", "1.1"]


def test_whoever_takes_waits_for_a_batch_that_comes_later() -> None:
    one, fed = arrivals()
    threading.Timer(0.1, put, (one, 0)).start()
    assert one.take() == "0.0"
    assert fed.waited > 0.05


def test_a_batch_that_does_not_come_is_to_be_made_here_after_the_patience() -> None:
    one, _ = arrivals(patience=0.05)
    put(one, 1)
    assert one.take() is None
    assert one.take() == "0.1"


def test_as_many_later_batches_as_the_window_end_the_wait() -> None:
    one, _ = arrivals(window=3)
    put(one, 1, 2, 3)
    assert one.take() is None
    assert [one.take() for _ in range(3)] == ["0.1", "0.2", "0.3"]


def test_nobody_waits_again_until_something_comes() -> None:
    one, fed = arrivals(patience=0.2)
    assert [one.take() for _ in range(5)] == [None] * 5
    assert fed.waited < 0.6, "it waited for each batch"
    put(one, 6)
    threading.Timer(0.05, put, (one, 5)).start()
    assert one.take() == "0.5"


def test_a_batch_that_comes_after_its_turn_is_late() -> None:
    one, fed = arrivals(patience=0.01)
    one.take()
    put(one, 0)
    assert one.behind()
    assert not one.behind(60)
    assert fed.late == 1
    put(one, 1)
    assert not one.behind()


def test_what_comes_before_a_job_begins_is_made_here_at_once() -> None:
    fed = Fed()
    one = Arrivals(Position(0), Position(0, 2), after, 20, 8, fed)
    assert [one.take(), one.take()] == [None, None]
    assert fed.waited < 10
    assert one.alone == 2
    put(one, 2)
    assert one.take() == "0.2"


def test_a_batch_that_cannot_be_used_is_made_here_at_once() -> None:
    one, fed = arrivals()
    assert one.put(Position(0, 0), Unusable.DAMAGED)
    start = time.monotonic()
    assert one.take() is None
    assert (fed.damaged, fed.refused) == (1, 0)
    assert time.monotonic() - start < 10


@pytest.mark.timeout(30)
def test_no_more_than_twice_the_window_is_held() -> None:
    one, _ = arrivals(window=2)
    stored: list[int] = []

    def bring() -> None:
        for step in range(STEPS):
            put(one, step)
            stored.append(step)

    thread = threading.Thread(target=bring, daemon=True)
    thread.start()
    time.sleep(0.2)
    assert stored == [0, 1, 2, 3]
    assert [one.take() for _ in range(STEPS)] == [f"0.{step}" for step in range(STEPS)]
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.timeout(30)
def test_the_batch_whose_turn_it_is_always_finds_room() -> None:
    one, _ = arrivals(patience=20, window=2)
    put(one, 1, 3, 4, 5)
    thread = threading.Thread(target=put, args=(one, 6, 2), daemon=True)
    thread.start()
    assert [one.take() for _ in range(6)] == [None, "0.1", None, "0.3", "0.4", "0.5"]
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.timeout(30)
def test_the_end_lets_everybody_go() -> None:
    one, _ = arrivals()
    threading.Timer(0.05, one.end).start()
    assert one.take() is None
    assert one.ended
    assert not one.put(Position(0, 3), "0.3")


def test_the_first_arrival_is_waited_for_no_longer_than_the_patience() -> None:
    one, _ = arrivals(patience=0.05)
    assert not one.wait_for_first()
    put(one, 1)
    assert one.wait_for_first()
