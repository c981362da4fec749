"""Data at addresses that is fetched as it is read: block by block, into a cache that processes share and that keeps to its size."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.data.remote import caches
from pipegen.data.remote.caches import BlockCache, DroppedError, Remote, RemoteCache
from pipegen.data.remote.localise import RemoteMount
from pipegen.errors import DataError, SpecError
from pipegen.files import part_name
from pipegen.phases.compilation import collect_data, inspect, load

if TYPE_CHECKING:
    from collections.abc import Iterator

fsspec = pytest.importorskip("fsspec")
COUNTS = {"a.tfrecord": 40, "b.tfrecord": 24}
FEATURES = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}


class Counting:
    """Drops connections now and then, and writes down what is asked for."""

    protocol = "memory"

    def __init__(self, fs: Any, drops: int = 0, *, ranges: bool = True) -> None:
        self.fs, self.drops, self.ranges = fs, drops, ranges
        self.asked: list[tuple[str, int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fs, name)

    def cat_file(self, name: str, start: int, end: int) -> bytes:
        self.asked.append((name, start, end))
        if self.drops:
            self.drops -= 1
            raise ConnectionResetError("connection reset by peer")
        content: bytes = self.fs.cat_file(name, start=start, end=end) if self.ranges else self.fs.cat_file(name)
        return content


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty file system in memory, of blocks of a kilobyte."""
    monkeypatch.setattr(caches, "BLOCK", 1024)
    monkeypatch.setattr(caches, "WAITS", 0.0)
    fs = fsspec.filesystem("memory")
    for _ in range(2):
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]
        if not _:
            yield fs


def put(memory: Any, content: bytes, name: str = "/file", version: str = "1") -> Remote:
    memory.pipe(name, content)
    return Remote(name, name.strip("/"), len(content), version)


def spec(path: Any, cache: Path, source: str = "image_folder", fetch: str = "blocks", size: str = "1GiB", **own: Any) -> dict[str, Any]:
    named = {"features": FEATURES} if source in ("tfrecord", "webdataset", "zip", "mds") else {}
    return {
        "pipegen": 1,
        "source": {source: {"path": str(path), **named}},
        "transforms": [{"resize": {"size": 2}}],
        "output": {"dtype": "uint8"},
        "batch": {"size": 8, "remainder": "keep"},
        "runtime": {"cache": "none", "remote_cache": {"path": str(cache), "size": size, "fetch": fetch}},
    } | own


def kept(cache: Path) -> int:
    return sum(path.stat().st_size for path in (cache / "blocks").rglob("*-*"))


def test_any_bytes_are_those_of_the_file_and_are_fetched_once(memory: Any, tmp_path: Path) -> None:
    content = random.Random(0).randbytes(50_000)
    file, fs = put(memory, content), Counting(memory, drops=5)
    cache, draw = BlockCache(tmp_path, 2**20), random.Random(1)
    spans = [(start, draw.randint(0, 9000)) for start in (draw.randrange(50_000) for _ in range(60))]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda span: cache.read(fs, file, span[0], min(span[1], 50_000 - span[0])), spans)  # type: ignore[arg-type]
        assert [*found] == [content[start : start + length] for start, length in spans]
    assert not fs.drops
    fetched = [number for _, start, end in fs.asked[5:] for number in range(start // 1024, -(-end // 1024))]
    assert len(set(fetched)) <= len(fetched) <= len(set(fetched)) + 5, "a block is asked for anew only where a connection dropped"
    asked = len(fs.asked)
    assert BlockCache(tmp_path, 2**20).read(fs, file, *spans[0]) == content[spans[0][0] : sum(spans[0])]  # type: ignore[arg-type]
    assert len(fs.asked) == asked, "another process finds it there"
    assert cache.read(fs, put(memory, b"x" * 50_000, version="2"), 10, 5) == b"xxxxx", "another version has blocks of its own"  # type: ignore[arg-type]


def test_a_server_without_ranges_is_asked_once(memory: Any, tmp_path: Path) -> None:
    content = random.Random(0).randbytes(9_500)
    file, fs = put(memory, content), Counting(memory, ranges=False)
    cache = BlockCache(tmp_path, 2**20)
    assert [cache.read(fs, file, at, 100) for at in (9_000, 20, 5_000)] == [content[at : at + 100] for at in (9_000, 20, 5_000)]  # type: ignore[arg-type]
    assert len(fs.asked) == 1


def test_it_keeps_to_its_size_and_what_is_read_is_right_all_the_same(memory: Any, tmp_path: Path) -> None:
    content, draw = random.Random(0).randbytes(40_000), random.Random(1)
    file, cache = put(memory, content), BlockCache(tmp_path, 8 * 1024)
    (tmp_path / "blocks" / "000").mkdir(parents=True)
    left = tmp_path / "blocks" / "000" / part_name()
    left.write_bytes(b"killed")
    os.utime(left, (0, 0))

    def look(at: int) -> bool:
        return cache.read(memory, file, at, 700) == content[at : at + 700]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(look, [draw.randrange(39_000) for _ in range(300)]))
    assert 0 < kept(tmp_path) <= 8 * 1024
    assert not left.exists(), "what a process left behind that was killed"
    damaged = next((tmp_path / "blocks").rglob("*-*"))
    damaged.write_bytes(b"cut off")
    assert all(look(at) for at in range(0, 39_000, 700)), "a block of another size is none"


def test_what_is_lost_is_said(memory: Any, tmp_path: Path) -> None:
    file = put(memory, b"x" * 100)
    with pytest.raises(DroppedError, match="connection reset"):
        BlockCache(tmp_path, 2**20).read(Counting(memory, drops=99), file, 0, 10)  # type: ignore[arg-type]


def test_what_may_not_be_read_any_more_is_named(memory: Any, tmp_path: Path) -> None:
    class Refusing(Counting):
        def cat_file(self, *_: Any, **__: Any) -> bytes:
            raise PermissionError("403, the link has expired")

        def info(self, *_: Any) -> Any:
            self.cat_file()

    file, fs = put(memory, b"x" * 100), Refusing(memory)
    mount = RemoteMount("https://x/y", fs, RemoteCache(tmp_path, 2**20), ("y",), [file])  # type: ignore[arg-type]
    for reads in (partial(mount.read, "file", 0, 10), partial(mount.whole, ["file"]), partial(mount.check, ["file"])):
        with pytest.raises(OSError, match=r"^https://x/y.* cannot be \w+: 403, the link has expired"):
            reads()


def test_a_folder_is_listed_by_names_and_sizes_alone(memory: Any, tmp_path: Path) -> None:
    from pipes import write_photos

    folder = write_photos(tmp_path / "flowers", per_class=3)
    memory.put(str(folder), "/flowers", recursive=True)
    memory.pipe("/flowers/rose/no_ending", (folder / "rose" / "00.jpg").read_bytes())
    (folder / "rose" / "no_ending").write_bytes((folder / "rose" / "00.jpg").read_bytes())
    there, here = (collect_data(load(spec(path, tmp_path / "c"))) for path in ("memory://flowers", folder))
    assert there.fingerprint == here.fingerprint
    assert there.all_ids.tolist() == here.all_ids.tolist()  # type: ignore[union-attr]
    assert there.files("train")[0] == "memory://flowers/daisy/00.jpg"
    assert kept(tmp_path / "c") == 1024, "a block of what had to be looked into"
    memory.rm("/flowers/rose/no_ending")
    assert collect_data(load(spec("memory://flowers", tmp_path / "c"))).num_examples("train") == here.num_examples("train") - 1


@pytest.mark.parametrize("path", ["memory://shards/*.tfrecord", "memory://shards/a.tfrecord"])
def test_an_index_of_large_records_reads_their_heads(memory: Any, tmp_path: Path, path: str) -> None:
    from record_files import framed

    from pipegen.mounts import mounted

    records = [bytes([i]) * 20_000 for i in range(6)]
    memory.pipe("/shards/a.tfrecord", b"".join(map(framed, records)))
    own = {"tfrecord": {"path": path, "content": "bytes", "features": {"image": {"kind": "image"}}}}
    found = collect_data(load(spec("", tmp_path / "c") | {"source": own}))
    assert found.num_examples("predict") == 6
    assert kept(tmp_path / "c") < 0.2 * 6 * 20_000
    away = mounted("memory://shards/a.tfrecord")
    assert away is not None
    assert (away[0].address, away[1]) == ("memory://shards", "a.tfrecord")
    assert away[0].read("a.tfrecord", 12, 20_000) == records[0]


@pytest.mark.tf
def test_batches_are_those_of_the_files_beyond_the_size_of_the_cache(memory: Any, tmp_path: Path) -> None:
    import numpy as np
    from record_files import examples, write_tfrecord

    import pipegen

    for shard, (name, count) in enumerate(COUNTS.items()):
        write_tfrecord(tmp_path / "r" / name, examples(shard, count))
    memory.put(str(tmp_path / "r"), "/r", recursive=True)
    total = sum(path.stat().st_size for path in (tmp_path / "r").iterdir())
    there = pipegen.build(spec("memory://r", tmp_path / "c", "tfrecord", size=f"{total // 3}B", shuffle={"window": "2KiB"}))
    wanted = [(shard, row, (shard + row) % 4) for shard, count in enumerate(COUNTS.values()) for row in range(count)]
    for _ in range(2):
        seen = []
        for x, y in there.train:
            assert np.array_equal(x.numpy()[:, 0, 0, 2], y)
            seen += [tuple(pixel) for pixel in x.numpy()[:, 0, 0].tolist()]
        assert sorted(seen) == wanted
        assert seen != wanted
    assert 0 < kept(tmp_path / "c") <= total // 3
    memory.pipe("/r/a.tfrecord", memory.cat("/r/a.tfrecord") + b"more")
    with pytest.raises(DataError, match=r"memory://r/a\.tfrecord changed after it was listed; build the pipeline again"):
        for _ in there.train:
            pass


@pytest.mark.parametrize(
    ("path", "size", "fetch", "code", "words"),
    [
        ("memory://nothing", "1GiB", "blocks", "PG401", "nothing found at memory://nothing"),
        ("memory://empty", "1GiB", "blocks", "PG402", "memory://empty"),
        ("memory://large", "1KiB", "whole", "PG567", "`remote_cache` may take 1 KiB"),
    ],
)
def test_findings_name_addresses(memory: Any, tmp_path: Path, path: str, size: str, fetch: str, code: str, words: str) -> None:
    memory.pipe("/large/rose/a.jpg", b"x" * 2048)
    memory.pipe("/empty/notes.txt", b"no picture")
    with pytest.raises(SpecError) as told:
        collect_data(load(spec(path, tmp_path, size=size, fetch=fetch)))
    (finding,) = told.value.diagnostics
    assert (finding.code, finding.labels[0].path) == (code, "source.image_folder.path")
    assert words in finding.message
    assert str(tmp_path) not in str(told.value)


def test_a_source_says_what_it_can() -> None:
    from pipegen.ops.registry import sources
    from pipegen.spec.models import Runtime
    from pipegen.spec.places import Address, fetched

    gs, s3 = Address.of("gs://bucket/x"), Address.of("s3://bucket/x")
    assert gs is not None
    assert s3 is not None
    folder = sources()["image_folder"].model_validate({"path": "gs://bucket/x"})
    tars = sources()["webdataset"].model_validate({"path": "gs://bucket/x", "features": FEATURES})
    assert [fetched(folder, ("path",), one, Runtime()) for one in (gs, s3)] == ["none", "blocks"]
    assert [fetched(tars, ("path",), one, Runtime()) for one in (gs, s3)] == ["blocks", "blocks"]
    assert fetched(None, ("path",), s3, Runtime()) == "whole"


def test_tensorflow_says_what_it_does_not_read(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.ops.lowering import fetched

    monkeypatch.setattr(fetched, "_knows", lambda address: False)
    memory.pipe("/r/a.jpg", b"x")
    with pytest.raises(SpecError) as told:
        collect_data(load(spec("memory://r", tmp_path, fetch="none")))
    (finding,) = told.value.diagnostics
    assert finding.code == "PG744"
    assert any("pipegen[remote]" in line for line in finding.help)


def test_an_explanation_says_what_python_is_called_for() -> None:
    from pipegen.physical.physical_text import render_physical
    from pipegen.views.explanation import physical_plans

    found = inspect(spec("s3://bucket/flowers", Path("c"), fetch="auto"))
    assert found.spec is not None
    (done,) = found.spec.compiled.values()
    plans = physical_plans(found.spec.model, done.plan, 2, every=False)
    text = render_physical(plans[0])
    assert "steps whose records are being fetched" in text
    assert "Python: remote files" in text
