"""pipegen writes and deletes only in folders and files that are its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from pipes import write_photos
from typing import Any

import pytest

from pipegen.data.collect import collect
from pipegen.data.remote.caches import BLOCK, BlockCache, Remote, RemoteCache
from pipegen.files import add_line, is_foreign
from pipegen.kept import MARKER, ForeignFolderError, claim, is_claimed, keep, make_folder
from pipegen.spec.load import load

fsspec = pytest.importorskip("fsspec")


def findings(spec: dict[str, Any]) -> list[Any]:
    loaded = load({"pipegen": 1, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 2}, **spec})
    assert loaded.spec is not None, loaded.diagnostics.items
    return [d for d in collect(loaded.spec, locate=loaded.locate.label).diagnostics.items if d.severity.value == "error"]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_folder_is_claimed_once_it_is_new_or_empty_or_marked(tmp_path: Path) -> None:
    new, empty, foreign = tmp_path / "new", tmp_path / "empty", tmp_path / "foreign"
    empty.mkdir()
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine")
    for folder in (new, empty):
        claim(folder)
        assert not (folder / MARKER).exists(), "nothing is made before it is used"
        make_folder(folder / "inner")
        assert is_claimed(folder)
        claim(folder)
    with pytest.raises(ForeignFolderError, match=r"mine\.txt"):
        claim(foreign)
    (foreign / MARKER).write_text("a file of this name that is not ours")
    with pytest.raises(ForeignFolderError):
        claim(foreign)
    assert (foreign / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("key", ["disk", "remote"])
def test_a_cache_in_a_folder_of_other_files_is_a_finding(tmp_path: Path, key: str) -> None:
    """more/01: `remote_cache: {path: home, size: 1KiB}` removed the files of the user below `home/blocks`."""
    home = tmp_path / "home"
    for name in ("blocks/a.txt", "blocks/abc/b.txt", "blocks/0/c.jpg", "files/d", "about/d.json", "splits/e.splits"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"x" * 3000)
    photos = write_photos(tmp_path / "photos", per_class=2)
    before = tree(home)
    if key == "disk":
        found = findings({"source": {"image_folder": {"path": str(photos)}}, "runtime": {"cache": {"disk": str(home)}}})
    else:
        where = {"path": str(home), "size": "1KiB"}
        found = findings({"source": {"image_folder": {"path": f"local://{photos}"}}, "runtime": {"remote_cache": where}})
    assert [d.code for d in found] == ["PG674"]
    assert str(home) in found[0].message
    assert tree(home) == before


def test_places_without_a_mark_are_refused_until_they_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    photos = write_photos(tmp_path / "photos", per_class=4)
    cache, report = tmp_path / "cache", tmp_path / "damaged.jsonl"
    (cache / "splits").mkdir(parents=True)
    (cache / "splits" / "0123.splits").write_bytes(b"old")
    report.write_text('{"file": "a.jpg"}\n')
    spec: dict[str, Any] = {
        "pipegen": 1, "source": {"image_folder": {"path": str(photos)}}, "batch": {"size": 1}, "runtime": {"cache": {"disk": str(cache)}},
        "errors": {"decode": {"skip": {"max_fraction": 0.5, "report": str(report)}}},
    }  # fmt: skip
    told = findings(spec)
    assert [d.code for d in told] == ["PG674"] * 2
    assert [repr(str(place)) in d.message for place, d in zip((cache, report), told, strict=True)] == [True, True]
    shutil.rmtree(cache)
    report.unlink()
    assert findings(spec) == []
    make_folder(cache)
    assert is_claimed(cache)


def test_only_blocks_that_pipegen_made_make_room(tmp_path: Path) -> None:
    content = os.urandom(3 * BLOCK)
    memory = fsspec.filesystem("memory")
    memory.pipe("/owned/data.bin", content)
    cache = BlockCache(tmp_path / "cache", BLOCK)
    names = ("a.txt", "abc/notes", "abc/0123-4", f"abc/{'0' * 31}g-1", "used.txt", f"deep/er/{'0' * 32}-0", f"{'0' * 32}-0", "abc/x.part")
    for name in names:
        (tmp_path / "cache" / "blocks" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / "blocks" / name).write_bytes(b"mine" * 1000)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{'0' * 32}-0").write_bytes(b"mine")
    (tmp_path / "cache" / "blocks" / "fff").symlink_to(outside)
    for path in (tmp_path / "cache" / "blocks").rglob("*"):
        os.utime(path, (0, 0))
    file = Remote("/owned/data.bin", "data.bin", len(content), "1")
    assert cache.read(memory, file, 0, len(content)) == content
    cache.make_room(BLOCK)
    for name in names:
        assert (tmp_path / "cache" / "blocks" / name).read_bytes() == b"mine" * 1000, name
    assert (outside / f"{'0' * 32}-0").read_bytes() == b"mine"


@pytest.mark.parametrize("linked", ["locks", "files", "about", "listed", "blocks"])
@pytest.mark.parametrize("fetch", ["whole", "blocks"])
def test_a_link_in_a_cache_is_a_finding(tmp_path: Path, linked: str, fetch: str) -> None:
    """A spec can bring along a marked folder that holds links."""
    outside, cache = tmp_path / "outside", tmp_path / "cache"
    photos = write_photos(tmp_path / "photos", per_class=2)
    (outside / "local").mkdir(parents=True)
    (outside / "mine").write_text("mine")
    claim(cache)
    make_folder(cache)
    (cache / linked).symlink_to(outside)
    before = tree(outside)
    spec = {"image_folder": {"path": f"local://{photos}"}}
    found = findings({"source": spec, "runtime": {"remote_cache": {"path": str(cache), "fetch": fetch}}})
    assert [d.code for d in found] == ["PG674"]
    assert repr(linked) in found[0].message
    assert tree(outside) == before


@pytest.mark.parametrize("inside", ["files/local", "about/local", "listed/local"])
@pytest.mark.parametrize("fetch", ["whole", "blocks"])
def test_a_link_deeper_in_a_cache_leads_no_write_out_of_it(tmp_path: Path, inside: str, fetch: str) -> None:
    outside, cache = tmp_path / "outside", tmp_path / "cache"
    photos = write_photos(tmp_path / "photos", per_class=2)
    outside.mkdir()
    claim(cache)
    make_folder(cache / Path(inside).parent)
    (cache / inside).symlink_to(outside)
    found = findings(
        {"source": {"image_folder": {"path": f"local://{photos}"}}, "runtime": {"remote_cache": {"path": str(cache), "fetch": fetch}}}
    )
    uses = inside.startswith("listed") == (fetch == "blocks")
    assert [d.code for d in found] == (["PG566"] if uses else [])
    assert tree(outside) == {}


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    cache = RemoteCache(tmp_path / "cache", 2**20)
    with cache.locked("a"):
        (name,) = os.listdir(tmp_path / "cache" / "locks")
    (tmp_path / "cache" / "locks" / name).unlink()
    (tmp_path / "cache" / "locks" / name).symlink_to(mine)
    with pytest.raises(OSError), cache.locked("a"):  # noqa: PT011 - the system's own words
        pass
    assert mine.read_text() == "mine"


def test_what_is_kept_goes_through_no_link_of_a_marked_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    claim(tmp_path / "cache")
    make_folder(tmp_path / "cache")
    (tmp_path / "cache" / "splits").symlink_to(outside)
    with pytest.raises(OSError, match="leads out of the cache folder"):
        keep(tmp_path / "cache" / "splits", "a.splits", [b"x"])
    assert not list(outside.iterdir())


# Reports


NAMES = ["$(touch PWNED)`id>PWNED`.png", "a\nb", "x'y\"z;rm -rf ~", "!!", "é\udcff.png", "${IFS}"]


def test_a_report_runs_nothing_where_a_shell_reads_it(tmp_path: Path) -> None:
    import json

    file = tmp_path / "bashrc"
    for number, name in enumerate(NAMES):
        add_line(str(file), {"file": name, "record": number})
    lines = file.read_text().splitlines()
    assert json.loads(lines[0]) == {"pipegen_report": 1}
    assert [json.loads(line)["file"] for line in lines[1:]] == NAMES
    subprocess.run(["bash", "--rcfile", str(file), "-i", "-c", "true"], cwd=tmp_path, capture_output=True, check=False, timeout=20)
    subprocess.run(["sh", str(file)], cwd=tmp_path, capture_output=True, check=False, timeout=20)
    assert os.listdir(tmp_path) == ["bashrc"]


def test_a_report_adds_to_no_file_of_another_kind(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    photos = write_photos(tmp_path / "photos", per_class=2)
    for content in ("# my shell settings\n", "{}", '{"pipegen_report": 2}\n'):
        mine.write_text(content)
        assert is_foreign(str(mine))
        with pytest.raises(OSError, match="not a report"):
            add_line(str(mine), {"file": "x"})
        spec = {"source": {"image_folder": {"path": str(photos)}}, "errors": {"decode": {"skip": {"report": "mine"}}}}
        loaded = load({"pipegen": 1, "transforms": [{"resize": {"size": 8}}], **spec}, overrides={"errors.decode.skip.report": str(mine)})
        assert loaded.spec is not None
        assert "PG674" in [d.code for d in collect(loaded.spec).diagnostics.items]
        assert mine.read_text() == content
    mine.write_text("")
    add_line(str(mine), {"file": "x"})
    add_line(str(mine), {"file": "y"})
    assert len(mine.read_text().splitlines()) == 3


def test_a_report_that_has_no_folder_yet_is_begun_with_it(tmp_path: Path) -> None:
    add_line(str(tmp_path / "logs" / "bad.jsonl"), {"file": "x"})
    assert len((tmp_path / "logs" / "bad.jsonl").read_text().splitlines()) == 2
    (tmp_path / "table.csv").write_text("file")
    photos = write_photos(tmp_path / "photos", per_class=2)
    spec = {"source": {"image_folder": {"path": str(photos)}}, "errors": {"decode": {"skip": {"report": "r"}}}}
    loaded = load(
        {"pipegen": 1, "transforms": [{"resize": {"size": 8}}], **spec},
        overrides={"errors.decode.skip.report": str(tmp_path / "table.csv" / "r")},
    )
    assert loaded.spec is not None
    (finding,) = [d for d in collect(loaded.spec).diagnostics.items if d.code == "PG674"]
    assert "is not a folder" in finding.message
