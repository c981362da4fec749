"""One iterator taken by several threads gives each batch once, ends for all of them, and leaves nothing behind."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pipes import numbered
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.tf

THREADS = 6


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Lets threads meet wherever they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[], Any]) -> list[Any]:
    """Returns what the work gave in each of some threads that start together; raises what one of them raised."""
    ready, done, failed = threading.Barrier(THREADS), [], []

    def run() -> None:
        ready.wait()
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if failed:
        raise failed[0]
    return done


def taken(iterator: Any) -> list[Any]:
    """Returns the batches that all threads together got until each met the end, which stays the end."""
    batches = [batch for part in in_threads(lambda: list(iterator)) for batch in part]
    assert in_threads(lambda: next(iterator, None)) == [None] * THREADS
    return batches


@pytest.fixture(scope="module")
def pipe() -> Any:
    """16 training batches of rows 0 to 31, and 6 validation batches."""
    return numbered()


def rows_of(batches: Any) -> list[int]:
    return [int(row) for _, y in batches for row in np.asarray(y)]


ROWS = {"train": range(32), "validation": range(1000, 1012)}
DERIVED: dict[str, Callable[[Any, str], Any]] = {
    "plain": lambda pipe, split: pipe[split],
    "map": lambda pipe, split: pipe[split].map(lambda x, y: (x, y)),
    "prefetch": lambda pipe, split: pipe[split].prefetch(2),
    "take": lambda pipe, split: pipe[split].take(100),
    "repeat": lambda pipe, split: pipe[split].repeat(1),
    "numpy": lambda pipe, split: pipe.numpy(split),
    "fixed": lambda pipe, split: pipe.dataset(split, epoch=3),
}


@pytest.mark.by_day(3)  # each kind once, with one of the splits
@pytest.mark.parametrize("kind", DERIVED)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_several_threads_share_a_pass(pipe: Any, split: str, kind: str) -> None:
    pipe.seek(3, 0)
    dataset = DERIVED[kind](pipe, split)
    for number in range(3):
        assert Counter(rows_of(taken(iter(dataset)))) == Counter(ROWS[split]), f"pass {number}"
        epochs = number + 1 if split == "train" and kind != "fixed" else 0
        assert (pipe.state()["epoch"], pipe.state()["step"]) == (3 + epochs, 0)


@pytest.mark.parametrize("kind", ["plain", "map", *(pytest.param(k, marks=pytest.mark.nightly) for k in ("repeat", "numpy"))])
def test_the_state_counts_what_threads_took(pipe: Any, kind: str) -> None:
    """`next` in six threads, twice each: then twelve batches are handed over, and the next pass begins the epoch again."""
    pipe.seek(1, 0)
    dataset = DERIVED[kind](pipe, "train")
    for round_ in range(3):
        iterator = iter(dataset)
        for _ in range(2):
            in_threads(lambda it=iterator: next(it))
        assert (pipe.state()["epoch"], pipe.state()["step"]) == (1, 2 * THREADS), f"round {round_}"
    assert rows_of(dataset) == rows_of(pipe.dataset("train", epoch=1))


@pytest.mark.parametrize("split", ["train", "validation"])
def test_an_iterator_each_over_one_dataset(pipe: Any, split: str) -> None:
    fixed = pipe.dataset(split, epoch=1)
    expected = rows_of(fixed)
    assert in_threads(lambda: rows_of(fixed)) == [expected] * THREADS


def test_iterators_of_one_epoch_side_by_side_end_it_once(pipe: Any) -> None:
    pipe.seek(2, 0)
    iterators = [iter(pipe.train) for _ in range(THREADS)]
    first = rows_of([next(iterator) for iterator in iterators])  # an iterator chooses its epoch when its first batch is asked for
    assert len(set(first)) == len(first) // THREADS == 2
    turns = iter(iterators)
    for rows in in_threads(lambda: rows_of(next(turns))):
        assert sorted([*rows, *first[:2]]) == list(ROWS["train"])
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (3, 0)


def test_a_note_that_comes_late_does_not_reopen_an_epoch(pipe: Any) -> None:
    """One iterator ends the epoch between another one's look at it and what that one notes."""
    progress = pipe._engine.train_progress()
    pipe.seek(0, 0)
    list(pipe.train)
    progress.delivered.assign([0, 5, 0, 0])
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (1, 0)


def test_threads_that_ask_first_get_one_dataset_and_one_state() -> None:
    pipe = numbered()
    assert len({id(dataset) for dataset in in_threads(lambda: pipe.train)}) == 1
    assert len({id(progress) for progress in in_threads(pipe._engine.train_progress)}) == 1


@pytest.mark.parametrize("ask", [iter, lambda flow: flow], ids=["iter", "next"])
def test_flows_give_each_batch_once(ask: Callable[[Any], Any]) -> None:
    from pipegen.compat import ImageDataGenerator

    rows = np.arange(24)
    flow = ImageDataGenerator().flow(np.zeros((24, 4, 4, 1), np.uint8), rows, batch_size=1, shuffle=True, seed=1)
    iterator = ask(flow)
    served = [int(y[0]) for part in in_threads(lambda: [next(iterator)[1] for _ in range(8)]) for y in part]
    assert Counter(served) == Counter({row: THREADS * 8 // 24 for row in range(24)})


def test_a_class_of_one_s_own_gives_each_batch_once() -> None:
    from pipegen.compat.base_iterator import Iterator as Base

    class Rows(Base):
        def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
            return [int(i) for i in index_array]

    iterator = iter(Rows(24, 1, True, None))
    served = [row for part in in_threads(lambda: [next(iterator)[0] for _ in range(8)]) for row in part]
    assert Counter(served) == Counter({row: THREADS * 8 // 24 for row in range(24)})
