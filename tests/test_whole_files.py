"""Files that are there whole or not at all: whatever stops the write, whoever else writes, whatever stands in the place."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import shutil
import signal
import stat
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pipegen
from pipegen.files import is_part, part_name, put_in_place, remove_parts, whole_file, whole_place, write_whole
from pipegen.files import whole_files as several
from pipegen.kept import Inside
from pipegen.ops.sources.folders.scan import is_hidden
from pipegen.phases.state import Checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable

OLD, NEW = b"the one before" * 40, b"the new one" * 90
CALLS = ("fsync", "replace", "link")


def killed(moment: int, action: Callable[[], None]) -> bool:
    """Runs something in a process of its own, which dies before the system call of this number that brings a file to its place."""
    process = os.fork()
    if not process:
        left = [moment]
        for name in CALLS:

            def called(*args: Any, original: Any = getattr(os, name), **options: Any) -> Any:  # noqa: B008
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(*args, **options)

            setattr(os, name, called)
        action()
        os._exit(0)
    return os.waitpid(process, 0)[1] != 0


def parts(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if is_part(name)]


def write_in_halves(path: Path, **options: Any) -> None:
    with whole_file(path, **options) as stream:
        stream.write(NEW[:100])
        stream.flush()
        os.fsync(stream.fileno())  # a moment in the middle
        stream.write(NEW[100:])


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("before", "new"), [(OLD, False), (None, False), (None, True)], ids=["old", "none", "new"])
@pytest.mark.parametrize("durable", [True, False])
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path, before: bytes | None, durable: bool, new: bool) -> None:
    file, seen = tmp_path / "state.json", Counter[bytes | None]()
    for moment in range(1, 9):
        file.unlink(missing_ok=True)
        if before is not None:
            file.write_bytes(before)
        died = killed(moment, lambda: write_in_halves(file, durable=durable, new=new))
        seen[file.read_bytes() if file.exists() else None] += 1
        assert len(parts(tmp_path)) <= 1
        assert {*os.listdir(tmp_path)} - {*parts(tmp_path)} <= {"state.json"}
        remove_parts(tmp_path, older=0)
        assert not parts(tmp_path)
        if not died:
            break
    assert {*seen} == {before, NEW}


def test_an_error_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(OLD)
    with pytest.raises(TypeError), whole_file(file) as stream:
        stream.writelines([NEW, "text"])  # type: ignore[list-item]
    assert file.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions(tmp_path: Path, mask: int) -> None:
    """Of a new file as the process gives them; of one that is replaced as they were."""
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "new", "text")
        write_whole(tmp_path / "own", b"text", mode=0o600)
        (tmp_path / "old").write_text("")
        (tmp_path / "old").chmod(0o640)
        write_whole(tmp_path / "old", "text")
        with whole_place(tmp_path / "folder") as made:
            made.mkdir()
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "own", "old", "folder")}
    assert modes == {"new": 0o666 & ~mask, "own": 0o600, "old": 0o640, "folder": 0o777 & ~mask}


def test_a_link_goes_on_showing_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link, dangling = tmp_path / "real" / "spec.yaml", tmp_path / "spec.yaml", tmp_path / "dangling"
    target.write_bytes(OLD)
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "real" / "later")
    write_whole(link, NEW)
    write_whole(dangling, NEW)
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert target.read_bytes() == (tmp_path / "real" / "later").read_bytes() == NEW
    with pytest.raises(FileExistsError):
        write_whole(link, OLD, new=True)
    (tmp_path / "real" / "later").unlink()
    with pytest.raises(FileExistsError):
        write_whole(dangling, OLD, new=True)
    folder = tmp_path / "models"
    (tmp_path / "real" / "v1").mkdir()
    folder.symlink_to(tmp_path / "real" / "v1")
    with whole_place(folder) as made:
        made.mkdir()
        (made / "weights").write_bytes(NEW)
    assert folder.is_symlink()
    assert (tmp_path / "real" / "v1" / "weights").read_bytes() == NEW


def test_what_is_no_file_is_written_directly(tmp_path: Path) -> None:
    write_whole("/dev/null", NEW)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, NEW)
    assert os.read(reader, 4096) == NEW
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    out, into = os.pipe()
    write_whole(f"/proc/self/fd/{into}", NEW)
    write_whole(f"/dev/fd/{into}", OLD)
    assert os.read(out, 8192) == NEW + OLD


def test_what_stands_in_the_way_is_said_of_the_file_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spec.yaml"
    for path, kind in ((tmp_path, IsADirectoryError), (tmp_path / "no" / "a", FileNotFoundError), (file / "a", NotADirectoryError)):
        if kind is NotADirectoryError:
            file.write_bytes(OLD)
        with pytest.raises(kind) as met:
            write_whole(path, NEW)
        assert met.value.filename == str(path)
    real = os.open

    def refused(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if is_part(os.path.basename(path)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OSError, match="cannot create a temporary file in its folder") as met:
        write_whole(file, NEW)
    assert met.value.filename == str(file)
    assert file.read_bytes() == OLD
    monkeypatch.undo()
    monkeypatch.setattr(os, "access", lambda *_a, **_o: False)  # what a file says that may only be read
    with pytest.raises(PermissionError):
        write_whole(file, NEW)
    assert file.read_bytes() == OLD


def test_a_new_file_takes_no_other_ones_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even that of one that appears while it is written, nor where the file system has no links."""
    for number in (0, errno.EPERM):
        file = tmp_path / f"spec{number}"
        if number:

            def unknown(*_args: Any, **_options: Any) -> None:
                raise OSError(errno.EPERM, "no links")

            monkeypatch.setattr(os, "link", unknown)
        write_whole(file, OLD, new=True)
        assert file.read_bytes() == OLD
        file.unlink()
        with pytest.raises(FileExistsError), whole_file(file, new=True):
            file.write_bytes(OLD)
        assert file.read_bytes() == OLD
        assert not parts(tmp_path)


def test_names_as_long_as_they_may_be(tmp_path: Path) -> None:
    name = "n" * 255
    write_whole(tmp_path / name, NEW)
    with Inside(tmp_path) as inside:
        inside.put("m" * 255, [NEW[:5], memoryview(NEW)[5:]])
    assert (tmp_path / name).read_bytes() == (tmp_path / ("m" * 255)).read_bytes() == NEW


def test_several_files_take_their_places_together(tmp_path: Path) -> None:
    targets = {"a": tmp_path / "a", "b": tmp_path / "b"}
    targets["a"].write_bytes(OLD)
    with pytest.raises(FileNotFoundError), several(targets, tmp_path) as made:
        made["a"].write_bytes(NEW)
    assert targets["a"].read_bytes() == OLD, "the other one was not written"
    with several(targets, tmp_path) as made:
        for file in made.values():
            file.write_bytes(NEW)
    assert [file.read_bytes() for file in targets.values()] == [NEW, NEW]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    (tmp_path / "c.part").write_bytes(NEW)
    put_in_place(tmp_path / "c.part", targets["a"])
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def made_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_a_kill_leaves_the_old_folder_or_the_new_one(tmp_path: Path) -> None:
    """Between the two steps it stands where `older` says."""
    place, older = tmp_path / "model", tmp_path / "model.older"

    def write() -> None:
        with whole_place(place, older=older) as made:
            (made / "sub").mkdir(parents=True)
            for name in ("a", "sub/b"):
                (made / name).write_bytes(NEW)

    one, other = {"a": OLD, "sub/b": OLD}, {"a": NEW, "sub/b": NEW}
    seen = []
    for moment in range(1, 20):
        for folder in (place, older):
            shutil.rmtree(folder, ignore_errors=True)
        (place / "sub").mkdir(parents=True)
        for name in one:
            (place / name).write_bytes(OLD)
        died = killed(moment, write)
        seen.append(made_of(place if place.exists() else older))
        remove_parts(tmp_path, older=0)
        if not died:
            break
    assert not died
    assert seen == sorted(seen, key=lambda found: found == other)
    assert seen[0] == one
    assert seen[-1] == other
    assert all(found in (one, other) for found in seen)
    assert not older.exists()


def test_a_folder_in_the_place_of_a_file_and_a_file_in_that_of_a_folder(tmp_path: Path) -> None:
    place = tmp_path / "model"
    place.write_bytes(OLD)
    with whole_place(place) as made:
        made.mkdir()
        (made / "a").write_bytes(NEW)
    assert made_of(place) == {"a": NEW}
    with pytest.raises(OSError, match="not empty"), whole_place(place, new=True) as made:
        made.mkdir()
    assert made_of(place) == {"a": NEW}
    with whole_place(place) as made:
        made.write_bytes(NEW)
    assert place.read_bytes() == NEW
    assert os.listdir(tmp_path) == ["model"]


def test_what_is_in_the_making_is_no_data(tmp_path: Path) -> None:
    """What lists a folder passes over it, and it is cleared away once it is old."""
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(OLD)
    (tmp_path / "cat" / part_name()).write_bytes(OLD)
    (tmp_path / part_name()).mkdir()
    assert all(is_hidden(name) for folder in (tmp_path, tmp_path / "cat") for name in parts(folder))
    remove_parts(tmp_path)
    assert parts(tmp_path), "it may be in the making"
    old = time.time() - 7200
    for folder in (tmp_path, tmp_path / "cat"):
        for name in parts(folder):
            os.utime(folder / name, (old, old))
        remove_parts(folder)
        assert not parts(folder)
    assert os.listdir(tmp_path / "cat") == ["a.png"]
    remove_parts(tmp_path / "no such folder")


def save_often(folder: str, host: int, times: int, errors: Any) -> None:
    try:
        kept = Checkpoints(Path(folder))
        for k in range(times):
            kept.save({"host": host, "k": k}, late=k % 3 == 1)
            state = kept.state()
            assert state is not None
            assert {*state} == {"host", "k"}
    except BaseException as error:
        errors.put(repr(error))
        raise


@pytest.mark.timeout(120)
def test_processes_share_a_folder_of_checkpoints(tmp_path: Path) -> None:
    """Each saves 400 times, and reads a whole state each time."""
    fork = multiprocessing.get_context("fork")
    errors = fork.SimpleQueue()
    processes = [fork.Process(target=save_often, args=(str(tmp_path), host, 400, errors)) for host in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
    assert errors.empty(), errors.get()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert os.listdir(tmp_path) == ["pipegen.state.json"]


def test_a_folder_that_another_process_removes_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras removes it when `fit` ends, be it in another process."""
    kept, replace, left = Checkpoints(tmp_path / "ck"), os.replace, [1]

    def removed(*args: Any, **options: Any) -> None:
        left[0] -= 1
        if not left[0]:
            shutil.rmtree(tmp_path / "ck")
        replace(*args, **options)

    monkeypatch.setattr(os, "replace", removed)
    kept.save({"k": 1})
    assert kept.state() == {"k": 1}


BY_HAND = re.compile(r"\b(?:os\.(?:replace|rename|renames|link)|shutil\.move|tempfile\.NamedTemporaryFile)\(")


def test_nothing_else_puts_files_in_their_places_by_hand() -> None:
    root = Path(pipegen.__file__).parent
    found = {file.relative_to(root).as_posix() for file in root.rglob("*.py") if BY_HAND.search(file.read_text(encoding="utf-8"))}
    assert found == {"files.py"}
