"""Data at addresses: fetched into a cache, block by block, once for all processes, and read like any other."""

from __future__ import annotations

import json
import os
from pathlib import Path
from pipes import write_photos
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.data.remote import caches
from pipegen.data.remote.caches import DroppedError, FullError, Remote, RemoteCache, fetch
from pipegen.data.remote.localise import listed
from pipegen.errors import SpecError
from pipegen.phases.compilation import collect_data, inspect, load
from pipegen.spec.places import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system in memory, with classes of photographs at `memory://flowers`."""
    fs = fsspec.filesystem("memory")
    _emptied(fs)
    yield fs
    _emptied(fs)


def _emptied(fs: Any) -> None:
    """Leaves no file, and no folder: `put` would copy into one that is there already."""
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "WAITS", 0.0)


def spec(path: Any, cache: Path, source: str = "image_folder", size: str = "1GiB", **own: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {source: {"path": path, **own}},
        "transforms": [{"resize": {"size": 8}}],
        "batch": {"size": 2},
        "runtime": {"remote_cache": {"path": str(cache), "size": size, "fetch": "whole"}},
    }


def put(fs: Any, folder: Path, to: str = "/flowers") -> None:
    fs.put(str(folder), to, recursive=True)


class Unsteady:
    """Drops the connection now and then, and counts what is asked for."""

    def __init__(self, fs: Any, drops: int) -> None:
        self.fs, self.drops, self.asked = fs, drops, []  # type: ignore[var-annotated]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fs, name)

    def cat_file(self, name: str, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        if self.drops:
            self.drops -= 1
            raise ConnectionResetError("connection reset by peer")
        content: bytes = self.fs.cat_file(name, start=start, end=end)
        return content


def test_records_at_an_address_are_those_of_the_folder(memory: Any, tmp_path: Path) -> None:
    put(memory, write_photos(tmp_path / "flowers", per_class=4))
    here = load(spec(str(tmp_path / "flowers"), tmp_path / "cache"))
    there = load(spec("memory://flowers", tmp_path / "cache"))
    assert here.hash == there.hash
    ours, theirs = collect_data(here), collect_data(there)
    assert ours.fingerprint == theirs.fingerprint
    assert ours.all_ids.tolist() == theirs.all_ids.tolist()  # type: ignore[union-attr]
    assert all(
        Path(path).read_bytes() == (tmp_path / "flowers" / key).read_bytes()
        for path, key in zip(theirs.files("train"), ours.listing.keys, strict=True)
    )
    memory.pipe("/flowers/daisy/00.jpg", memory.cat("/flowers/daisy/01.jpg"))
    again = collect_data(there)
    assert Path(again.files("train")[0]).read_bytes() == (tmp_path / "flowers" / "daisy" / "01.jpg").read_bytes(), "it was written anew"


def test_validate_asks_no_network(tmp_path: Path) -> None:
    found = inspect(spec("s3://there-is-no-such-bucket/flowers", tmp_path))
    assert not found.diagnostics.has_errors
    assert found.spec is not None
    assert not list(tmp_path.iterdir())


def test_patterns_and_single_files(memory: Any, tmp_path: Path) -> None:
    from record_files import examples, write_tfrecord

    for shard in range(3):
        write_tfrecord(tmp_path / "records" / f"train-{shard}.tfrecord", examples(shard, 4))
    (tmp_path / "records" / "notes.txt").write_text("no record")
    put(memory, tmp_path / "records", "/records")
    features = {"image": {"kind": "image", "key": "image"}, "label": {"kind": "label", "key": "label"}}
    counts = {}
    for path in ("memory://records/train-*.tfrecord", "memory://records/train-{0..1}.tfrecord", "memory://records/train-1.tfrecord"):
        found = collect_data(load(spec(path, tmp_path / "cache", "tfrecord", features=features)))
        counts[path] = found.num_examples("train")
    assert list(counts.values()) == [12, 8, 4]
    assert not (tmp_path / "cache" / "files" / "memory" / "records" / "notes.txt").exists()


def test_a_dropped_connection_is_tried_again_and_a_part_is_gone_on_with(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "FETCHED_AT_ONCE", 1000)
    content = os.urandom(3500)
    memory.pipe("/file", content)
    file, to, seen = Remote("/file", "file", 3500, "ETag:1"), tmp_path / "file", []
    unsteady = Unsteady(memory, 3)
    fetch(unsteady, file, to, seen.append)
    assert (to.read_bytes(), len(unsteady.asked), sum(seen)) == (content, 7, 3500)
    to.unlink()
    (tmp_path / "file.part").write_bytes(content[:2500])
    (tmp_path / "file.part.json").write_text(json.dumps({"version": "ETag:1", "size": 3500}))
    steady = Unsteady(memory, 0)
    fetch(steady, file, to, seen.append)
    assert (to.read_bytes(), steady.asked) == (content, [(2000, 3000), (3000, 3500)])
    to.unlink()
    (tmp_path / "file.part").write_bytes(b"x" * 2500)
    (tmp_path / "file.part.json").write_text(json.dumps({"version": "ETag:0", "size": 3500}))
    fetch(memory, file, to, seen.append)
    assert to.read_bytes() == content, "a part of an older version is no part"
    with pytest.raises(DroppedError, match="connection reset"):
        fetch(Unsteady(memory, 99), file, tmp_path / "other", seen.append)
    with pytest.raises(DroppedError, match="it changed while it was fetched"):
        fetch(memory, file._replace(size=3000), tmp_path / "third", seen.append)


def test_the_cache_keeps_to_its_size(memory: Any, tmp_path: Path) -> None:
    for name in "abc":
        memory.pipe(f"/{name}/file", name.encode() * 100)
    cache = RemoteCache(tmp_path / "cache", 250)

    def released(name: str) -> None:
        """Does what the end of a process does that reads an address."""
        path = next(path for path in caches._HELD if tmp_path in path.parents and path.read_text() == f"memory/{name}")
        caches._HELD.pop(path).close()

    def hold(name: str) -> list[str]:
        root = cache.hold(("memory", name), [Remote(f"/{name}/file", "file", 100, "1")], memory, lambda done: None)
        assert (root / "file").read_text() == name * 100
        return sorted(path.parent.name for path in (tmp_path / "cache" / "files").rglob("file"))

    assert (hold("a"), hold("b")) == (["a"], ["a", "b"])
    os.utime(tmp_path / "cache" / "about" / "memory" / "b" / "file.json", (1, 1))
    with pytest.raises(FullError) as full:
        hold("c")
    assert full.value.args == (100, 250, 200), "nothing is taken away from whoever reads it"
    released("b")
    assert hold("c") == ["a", "c"], "what was asked for the longest time ago goes"
    with pytest.raises(FullError):
        cache.hold(("memory", "a"), [Remote("/a/file", "file", 300, "1")], memory, lambda done: None)


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("memory://nothing", "PG401", "nothing found at memory://nothing"),
        ("ftp://me:s3cret@127.0.0.1:9/x", "PG566", "ftp://me:***@127.0.0.1:9/x"),
        ("memory://large", "PG567", "need 2 KiB, and `remote_cache` may take 1 KiB"),
    ],
)
def test_what_stands_in_the_way(memory: Any, tmp_path: Path, path: str, code: str, words: str) -> None:
    memory.pipe("/large/rose/a.jpg", b"x" * 2048)
    with pytest.raises(SpecError) as told:
        collect_data(load(spec(path, tmp_path, size="1KiB")))
    (finding,) = told.value.diagnostics
    assert finding.code == code
    assert words in finding.message
    assert finding.labels[0].path == "source.image_folder.path"
    assert "s3cret" not in str(told.value)


def test_addresses() -> None:
    assert Address.of("/data/flowers") is None
    assert Address.of("file:///data") is None
    one = Address.of("s3://bucket/train-{000..099}.tar")
    assert one is not None
    assert (one.scheme, one.folder, one.pattern, one.place) == ("s3", "s3://bucket", "train-{000..099}.tar", ("s3", "bucket"))
    two = Address.of("https://me:pass@host:80/a/../b%20c/x.csv?token=abc")
    assert two is not None
    assert (two.pattern, two.place) == ("", ("https", "host_80", "a", "b c", "x.csv"))
    assert "pass" not in str(two)
    assert "abc" not in repr(two)


def test_a_folder_without_an_answer_is_asked_for_again(memory: Any, tmp_path: Path) -> None:
    """fsspec's own `find` leaves out what is in such a folder, without a word; `isfile` takes an address for one of a folder."""
    put(memory, write_photos(tmp_path / "flowers", per_class=2))
    dropped = set[tuple[str, str]]()

    class Dropping(type(memory)):  # type: ignore[misc]
        cachable = False
        find = fsspec.AbstractFileSystem.find

        def ls(self, path: str, **more: Any) -> Any:
            return self._second_time("ls", path) or super().ls(path, **more)

        def info(self, path: str, **more: Any) -> Any:
            return self._second_time("info", path) or super().info(path, **more)

        def _second_time(self, what: str, path: str) -> None:
            if (what, path) not in dropped:
                dropped.add((what, path))
                raise ConnectionResetError("connection reset by peer")

    folder, file = (Address.of(f"memory://{path}") for path in ("flowers/", "flowers/rose/00.jpg"))
    assert folder is not None
    assert file is not None
    single, found = listed(Dropping(), folder)
    assert not single
    assert len(dropped) == 5, "what it is, what is in it, and what is in each of three folders"
    assert {f"/flowers/{one.key}" for one in found} == set(memory.store)
    assert listed(Dropping(), file)[0]


def test_what_a_client_of_the_web_met_is_said_in_place_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "WAITS", 0.0)

    def ask() -> None:
        raise FileNotFoundError("http://x/y") from ConnectionResetError("connection reset by peer")

    with pytest.raises(caches.DroppedError, match=r"^connection reset by peer$"):
        caches.patiently(ask)


def test_what_a_client_of_the_web_calls_missing_may_be_a_dropped_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a server that has been asked too often, or does not let us read it."""
    monkeypatch.setattr(caches, "WAITS", 0.0)
    aiohttp = pytest.importorskip("aiohttp")
    about: Any = SimpleNamespace(real_url="http://x/y")
    for cause, tries in (
        (aiohttp.ServerDisconnectedError(), 2),
        (aiohttp.ClientResponseError(about, (), status=503), 2),
        (aiohttp.ClientResponseError(about, (), status=429), 2),
        (aiohttp.ClientResponseError(about, (), status=404), 1),
        (aiohttp.ClientResponseError(about, (), status=403), 1),
        (None, 1),
    ):
        asked = []

        def ask(cause: Any = cause, asked: list[int] = asked) -> int:
            asked.append(1)
            if len(asked) == 1:
                raise FileNotFoundError("http://x/y") from cause
            return 7

        if tries == 1:
            with pytest.raises(PermissionError if getattr(cause, "status", 404) == 403 else FileNotFoundError):
                caches.patiently(ask)
        else:
            assert caches.patiently(ask) == 7
        assert len(asked) == tries
