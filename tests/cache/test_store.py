"""A cache on disk survives what happens to disks and processes: nothing is ever read back wrong."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipegen.cache import store as module
from pipegen.cache.folder import caches_in, verify
from pipegen.cache.store import About, Column, Store, file_stamp, open_store, read_about

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 40
WIDTHS = (4096 + 7, 12)
ABOUT = About("a" * 32, "flowers", "decode → resize", RECORDS, tuple(Column(f"f{i}", "uint8", (n,), n) for i, n in enumerate(WIDTHS)))


def values(row: int) -> list[bytes]:
    """What belongs in a row."""
    return [bytes((row * 7 + i + j) % 256 for i in range(n)) for j, n in enumerate(WIDTHS)]


def read(store: Store, row: int) -> list[bytes]:
    buffers = [bytearray(n) for n in WIDTHS]
    store.read(row, [memoryview(b) for b in buffers])
    return [bytes(b) for b in buffers]


def right_or_empty(store: Store) -> int:
    """How many rows are filled, each of which holds what belongs there."""
    whole = [row for row in range(RECORDS) if store.state(row) == "whole"]
    for row in whole:
        assert read(store, row) == values(row)
    return len(whole)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path, ABOUT)


def test_what_is_written_is_read_in_any_order(store: Store, tmp_path: Path) -> None:
    for row in (31, 0, RECORDS - 1, 5):
        assert store.write(row, [memoryview(v) for v in values(row)])
    again = open_store(tmp_path, ABOUT)
    assert list(again.filled()) == [0, 5, 31, RECORDS - 1]
    assert right_or_empty(again) == 4
    assert again.state(1) == "empty"
    about = read_about(again.folder)
    assert about is not None
    assert about.created
    assert replace(about, created="") == ABOUT


def test_another_version_of_a_file_is_as_good_as_empty(store: Store) -> None:
    store.write(3, values(3), stamp=111)
    assert store.state(3, 111) == "whole"
    assert store.state(3, 112) == "empty"


def test_a_stamp_is_the_time_of_change(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"x")
    assert file_stamp(str(tmp_path / "a.jpg")) == (tmp_path / "a.jpg").stat().st_mtime_ns
    assert file_stamp(str(tmp_path / "b.jpg")) == 0


@pytest.mark.parametrize("file", ["0.rows", "1.rows", "index"])
def test_a_flipped_bit_is_found(store: Store, tmp_path: Path, file: str) -> None:
    for row in range(6):
        store.write(row, values(row))
    path = store.folder / file
    damaged = bytearray(path.read_bytes())
    at = {"0.rows": 2 * WIDTHS[0] + 99, "1.rows": 2 * WIDTHS[1] + 3, "index": 2 * 16 + 1}[file]
    damaged[at] ^= 4
    path.write_bytes(damaged)
    again = open_store(tmp_path, ABOUT)
    assert again.state(2) == "damaged"
    assert right_or_empty(again) == 5
    assert verify(caches_in(tmp_path)[0]).damaged == (2,)
    again.write(2, values(2))
    assert right_or_empty(again) == 6


def test_a_row_in_another_s_place_does_not_fit(store: Store) -> None:
    store.write(1, values(1))
    for file, size in (("index", 16), ("0.rows", WIDTHS[0]), ("1.rows", WIDTHS[1])):
        with (store.folder / file).open("r+b") as f:
            f.seek(size)
            row = f.read(size)
            f.seek(4 * size)
            f.write(row)
    assert store.state(4) == "damaged"


@pytest.mark.parametrize("file", ["0.rows", "index", "about.json"])
def test_a_file_that_was_cut_short_or_lost_is_made_whole(store: Store, tmp_path: Path, file: str) -> None:
    for row in range(RECORDS):
        store.write(row, values(row))
    path = store.folder / file
    os.truncate(path, path.stat().st_size // 2)
    assert right_or_empty(open_store(tmp_path, ABOUT)) >= (RECORDS // 2 - 1)
    path.unlink()
    assert right_or_empty(open_store(tmp_path, ABOUT)) == (RECORDS if file == "about.json" else 0)


def test_a_file_cut_short_while_it_is_open_is_an_error_and_no_crash(store: Store) -> None:
    store.write(9, values(9))
    os.truncate(store.folder / "0.rows", 100)
    with pytest.raises(OSError, match="cut short"):
        read(store, 9)


FILL = """
import sys, time
sys.path.insert(0, {root!r}); sys.path.insert(0, {here!r})
from pathlib import Path
from test_store import ABOUT, RECORDS, open_store, values
store = open_store(Path(sys.argv[1]), ABOUT)
print("open", flush=True)
sys.stdin.readline()
while True:
    for row in range(int(sys.argv[2]), RECORDS):
        store.write(row, values(row))
    if sys.argv[3] == "once":
        break
"""


def fill(folder: Path, first: int, how: str) -> subprocess.Popen[str]:
    """A process that fills the cache, from the moment that it is told to."""
    program = textwrap.dedent(FILL).format(root=str(ROOT), here=str(Path(__file__).parent))
    command = [sys.executable, "-c", program, str(folder), str(first), how]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_process_that_is_killed_leaves_nothing_wrong(tmp_path: Path) -> None:
    for wait in (0.002, 0.01):
        process = fill(tmp_path, 0, "forever")
        go(process)
        time.sleep(wait)  # wherever it is then: in the middle of a row as well as between two
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=120)
        store = open_store(tmp_path, ABOUT)
        right_or_empty(store)
        assert not verify(caches_in(tmp_path)[0]).problem
    for row in range(RECORDS):
        store.write(row, values(row))
    assert right_or_empty(store) == RECORDS


@pytest.mark.parametrize("step", range(4))
def test_a_process_that_ends_between_two_writes_leaves_nothing_wrong(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """What `kill -9` meets by chance, one moment after another: each write of a row that takes another's place is the last."""
    store.write(2, values(3), stamp=1)
    calls = []

    def some(number: int, data: bytes, offset: int) -> None:
        calls.append(offset)
        if len(calls) > step:
            raise KeyboardInterrupt
        os.pwrite(number, data[: len(data) // 2] if len(calls) == step else data, offset)

    monkeypatch.setattr(module, "_write_all", some)
    try:
        store.write(2, values(2), stamp=2)
    except KeyboardInterrupt:
        assert step < 3
    again = open_store(tmp_path, ABOUT)
    assert again.state(2, 2) != "whole" or read(again, 2) == values(2)
    assert again.state(2, 1) != "whole" or read(again, 2) == values(3)


def test_two_processes_fill_one_cache(tmp_path: Path) -> None:
    processes = [fill(tmp_path, first, "once") for first in (0, RECORDS // 2)]
    for process in processes:
        go(process)
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert right_or_empty(open_store(tmp_path, ABOUT)) == RECORDS
    assert [h.path.name for h in caches_in(tmp_path)] == [ABOUT.key]
    assert {p.name for p in (tmp_path / ABOUT.key).iterdir()} == {"index", "0.rows", "1.rows", "about.json"}


def test_a_full_disk_ends_the_filling_and_spoils_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for row in range(3):
        assert store.write(row, values(row))
    real = os.pwrite

    def full(number: int, data: memoryview, offset: int) -> int:
        if len(data) < 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(number, data[:1000], offset)

    monkeypatch.setattr(os, "pwrite", full)
    assert not store.write(3, values(3))
    assert store.refused is not None
    assert store.refused.errno == errno.ENOSPC
    monkeypatch.undo()
    assert not store.write(4, values(4)), "it stays so: a disk that is nearly full would stop the run again and again"
    assert right_or_empty(store) == 3
    assert open_store(tmp_path, ABOUT).write(3, values(3)), "another run tries again"


def test_a_disk_that_takes_parts_is_written_to_the_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda number, data, offset: real(number, data[:999], offset))
    store.write(7, values(7))
    assert store.state(7) == "whole"


def test_a_cache_that_may_only_be_read_serves_what_it_holds(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(1, values(1))
    real = os.open

    def read_only(path: Any, flags: int, *mode: int, **more: Any) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *mode, **more)

    monkeypatch.setattr(os, "open", read_only)
    again = open_store(tmp_path, ABOUT)
    assert right_or_empty(again) == 1
    assert not again.write(2, values(2))
    with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
        open_store(tmp_path / "elsewhere", ABOUT)


def test_files_are_sparse_and_closed_in_the_end(tmp_path: Path) -> None:
    store = open_store(tmp_path, ABOUT)
    assert (store.folder / "0.rows").stat().st_size == RECORDS * WIDTHS[0]
    assert caches_in(tmp_path)[0].bytes < RECORDS * WIDTHS[0]
    files = list(store._files)
    del store
    for number in files:
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            os.fstat(number)


def test_what_is_no_cache_is_left_alone(tmp_path: Path) -> None:
    open_store(tmp_path, ABOUT)
    (tmp_path / "photos").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    renamed = tmp_path / ("b" * 32)
    renamed.mkdir()
    (renamed / "about.json").write_text((tmp_path / ABOUT.key / "about.json").read_text())
    assert [h.about.key for h in caches_in(tmp_path)] == [ABOUT.key], "a folder that does not bear its key was made by hand"
    (tmp_path / ABOUT.key / "about.json").write_text('{"pipegen_cache": 2}')
    assert caches_in(tmp_path) == []


@pytest.mark.parametrize("name", ["index", "0.rows", "1.rows"])
@pytest.mark.parametrize("kind", ["link", "dangling", "second name", "pipe", "folder"])
def test_what_others_lay_in_a_files_place_is_neither_written_nor_waited_for(tmp_path: Path, name: str, kind: str) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"precious")
    folder = tmp_path / "shared"
    own = open_store(folder, ABOUT).folder
    (own / name).unlink()
    if kind == "second name":
        os.link(mine, own / name)
    elif kind == "pipe":
        os.mkfifo(own / name)
    elif kind == "folder":
        (own / name).mkdir()
    else:
        (own / name).symlink_to(mine if kind == "link" else tmp_path / "new")
    with pytest.raises(OSError, match=name):
        open_store(folder, ABOUT)
    assert mine.read_bytes() == b"precious"
    assert not (tmp_path / "new").exists()
    if kind != "second name":
        assert verify(replace_held(own)).problem


def replace_held(own: Path) -> Any:
    from pipegen.cache.folder import Held

    return Held("cache", ABOUT.key, own, 0, 0.0, ABOUT, None)


def test_what_a_cache_says_of_itself_is_written_through_no_link(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    own = open_store(tmp_path / "shared", ABOUT).folder
    (own / "about.json").unlink()
    (own / f"about.json.{os.getpid()}").symlink_to(mine)
    (own / "about.json").symlink_to(mine)
    assert read_about(own) is None
    assert open_store(tmp_path / "shared", ABOUT).refused is None
    assert mine.read_text() == "precious"
    assert not (own / "about.json").is_symlink()


def test_files_of_another_user_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen import files

    own = open_store(tmp_path, ABOUT).folder
    within = os.open(own, os.O_RDONLY)
    try:
        other = os.geteuid() + 1
        monkeypatch.setattr(files.os, "geteuid", lambda: other)
        with pytest.raises(OSError, match="another user"):
            files.open_owned("index", os.O_RDONLY, within=within, owners=())
        os.close(files.open_owned("index", os.O_RDONLY, within=within, owners=[other - 1]))
        (tmp_path / "link").symlink_to(own)
        with pytest.raises(OSError, match="link of another user"):
            files.open_folder(tmp_path / "link")
    finally:
        os.close(within)


def test_the_cache_may_lie_behind_a_link_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "disk")
    assert open_store(tmp_path / "here", ABOUT).refused is None
    assert (tmp_path / "disk" / ABOUT.key / "index").is_file()
