"""A source of a billion records in ten thousand files: what is held, found and ordered stays small and quick."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.data.manifest import ShardedManifest
from pipegen.data.shards import assign_shards, mix64
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.listing.base import Listing, Location, Shards

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf

FILES, EACH = 10_000, 100_000


def manifest(files: int = FILES, each: int = EACH, *, parts: Any = None, method: Any = "folder") -> ShardedManifest:
    """Files of `each` records, give or take one in a hundred; every tenth lies in another folder."""
    spread = np.arange(files) % 3 - 1
    rows = each + spread * (each // 100)
    rows[-1] += files * each - rows.sum()
    keys = tuple(f"{'validation' if i % 10 == 9 else 'train'}/{i:05}.rec" for i in range(files))
    shards = Shards(rows, np.arange(files), ("",) * files)
    splits = Splits(parts=parts or {"train": "train", "validation": "validation"}, method=method)
    listing = Listing("/data", Location.below("/data", keys, rows * 100), shards=shards)
    return ShardedManifest(listing, assign_shards(splits, listing, tuple(splits.parts), "fake", None), "fake")


@pytest.fixture(autouse=True)
def bounds() -> Iterator[None]:
    """Each test here takes at most five seconds of CPU and 300 MB beside what TensorFlow has."""
    import tensorflow as tf

    tf.constant(0)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    assert time.process_time() - start < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


@pytest.mark.parametrize("shuffle", ["global", "window"])
def test_orders_resumes_and_shares_by_position(shuffle: str) -> None:
    import tensorflow as tf

    from pipegen.backend.index.order import Order
    from pipegen.backend.reading.sharded_records import ShardTensors

    data = manifest()
    assert sum(data.num_examples(s) for s in data.splits) == data.total == 10**9
    n, selected = data.num_examples("train"), data.members["train"]
    batch, hosts = 256, 4

    def order(share: tuple[int, int] = (0, 1)) -> Order:
        return Order(n, batch, "drop", share, None, shuffle, 10_000, 3, tf.constant(selected.starts))

    def records(o: Order, epoch: int, step: int) -> Any:
        cycle, position, _ = o.at(tf.constant(epoch, tf.int64), o.slots_of(tf.constant(step, tf.int64)))
        return o.records(cycle, position)

    places = ShardTensors(selected, data.bases)
    for epoch, step in [(0, 0), (0, order().steps - 1), (10**6, order().steps // 3)]:
        whole = records(order(), epoch, step)
        np.testing.assert_array_equal(np.concatenate([records(order((i, hosts)), epoch, step) for i in range(hosts)]), whole)
        assert len(np.unique(whole)) == batch
        shard, row = (t.numpy() for t in places.locate(whole))
        assert (np.array(selected.rows)[shard] > row).all()
        assert not (shard % 10 == 9).any(), "those are the validation split's"
        if shuffle == "window":
            assert len(np.unique(shard)) <= 2, "10,000 records in a row, of 99,000 and more in a file"
        else:
            assert len(np.unique(shard)) > 200
        low, high = (t.numpy().astype(np.uint64) for t in places.words(whole))
        np.testing.assert_array_equal(high << np.uint64(32) | low, mix64(data.bases[shard] + row.astype(np.uint64)))
    assert (records(order(), 0, 0).numpy() != records(order(), 1, 0).numpy()).any()


def test_names_and_fingerprints_cost_nothing_for_a_record() -> None:
    data = manifest()
    files = data.files("validation")
    assert len(files) == data.num_examples("validation")
    assert files[0] == "/data/validation/00009.rec#0"
    assert files[len(files) - 1].startswith("/data/validation/09999.rec#")
    assert data.fingerprint != manifest(each=EACH + 1).fingerprint
    assert 99 < data.mean_bytes("train") < 101
    assert all(member.bitmap is None for member in data.members.values())


def test_a_split_by_hash_takes_a_bit_a_record() -> None:
    import tensorflow as tf

    from pipegen.backend.reading.sharded_records import ShardTensors

    data = manifest(files=100, each=10_000, parts={"train": 0.9, "validation": 0.1}, method="hash")
    assert sum(data.num_examples(s) for s in data.splits) == 10**6
    assert abs(data.num_examples("validation") - 10**5) < 1500, "five standard deviations"
    for split in data.splits:
        selected = data.members[split]
        assert selected.bitmap is not None
        assert selected.bitmap.bits.nbytes + selected.bitmap.before.nbytes < 10**6 / 8 * 1.03
        member = np.random.default_rng(0).integers(0, len(selected), 2000)
        for ours, expected in zip(ShardTensors(selected, data.bases).locate(tf.constant(member)), selected.locate(member), strict=True):
            np.testing.assert_array_equal(ours.numpy(), expected)
