"""`pipegen cache`: listing, deleting and checking caches, without TensorFlow."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from cli_helpers import GOOD, Cli

from pipegen.cache.store import About, Column, open_store
from pipegen.cli.cache import age


@pytest.fixture
def caches(tmp_path: Path) -> Path:
    """`cache/` in the working directory: one of 3 filled records of 5, one that is empty, and a file of the user's."""
    for key, spec, filled in (("a1" * 16, "flowers", 3), ("b2" * 16, "", 0)):
        store = open_store(tmp_path / "cache", About(key, spec, "decode → resize", 5, (Column("image", "uint8", (4, 4, 3), 48),)))
        for row in range(filled):
            assert store.write(row, [bytes([row]) * 48])
    (tmp_path / "cache" / "mine.txt").write_text("keep me")
    return tmp_path / "cache"


@pytest.fixture
def spec(tmp_path: Path, caches: Path) -> Path:
    """`flowers.pipegen.yaml` beside it, and a spec without a cache on disk below."""
    path = tmp_path / "flowers.pipegen.yaml"
    path.write_text(GOOD + "runtime: {cache: {disk: cache/}}\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.pipegen.yaml").write_text(GOOD, encoding="utf-8")
    return path


def damage(caches: Path) -> None:
    with (caches / ("a1" * 16) / "0.rows").open("r+b") as file:
        file.seek(50)
        file.write(b"\xff")


def test_ls_shows_what_is_in_each(cli: Cli, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = max(path.stat().st_mtime for path in caches.rglob("*"))
    monkeypatch.setattr(time, "time", lambda: now + 5)
    old = now - 3 * 86400
    for path in (caches / ("b2" * 16)).iterdir():
        os.utime(path, (old, old))
    result = cli("cache", "ls", "cache")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("cache: ")
    assert lines[1].split()[:4] == ["KEY", "SPEC", "RECORDS", "SIZE"]
    assert lines[2].split()[:5] == ["a1a1a1a1", "flowers", "3", "of", "5"]
    assert "just now" in lines[2]
    assert lines[2].endswith("decode → resize: image uint8[4×4×3]")
    assert lines[3].split()[:5] == ["b2b2b2b2", "unnamed", "0", "of", "5"]
    assert "3 days ago" in lines[3]


@pytest.mark.parametrize("where", [(), ("flowers.pipegen.yaml",), ("cache",)], ids=str)
def test_a_spec_stands_for_its_folder(cli: Cli, spec: Path, where: tuple[str, ...]) -> None:
    result = cli("cache", "ls", *where, "--format", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    (folder,) = document["folders"]
    assert Path(folder["folder"]).name == "cache"
    assert {(c["spec"], c["filled"], c["records"]) for c in folder["caches"]} == {("flowers", 3, 5), ("", 0, 5)}
    assert folder["caches"][0]["features"] == [{"name": "image", "dtype": "uint8", "shape": [4, 4, 3]}]


def test_what_has_no_cache_is_told(cli: Cli, spec: Path, tmp_path: Path) -> None:
    for where, words in (("sub/other.pipegen.yaml", "has no cache on disk"), ("nowhere", "nowhere does not exist")):
        result = cli("cache", "ls", where)
        assert result.exit_code == 2
        assert words in result.stderr
    spec.write_text(GOOD + "runtime: {cache: {disk: later/}}\n", encoding="utf-8")
    assert cli("cache", "ls", "flowers.pipegen.yaml").exit_code == 0, "a cache that is to come is no error"
    (tmp_path / "empty").mkdir()
    assert cli("cache", "ls", "empty").stdout == "empty: no caches\n"
    spec.write_text("pipegen: 1\n")
    assert cli("cache", "ls", "flowers.pipegen.yaml").exit_code == 1


def test_verify_finds_what_is_damaged(cli: Cli, caches: Path) -> None:
    whole = cli("cache", "verify", "cache")
    assert whole.exit_code == 0, whole.output
    assert "a1a1a1a1  flowers: 3 records are intact" in whole.stdout
    damage(caches)
    result = cli("cache", "verify", "cache", "--only", "a1")
    assert result.exit_code == 1
    assert result.stdout == "a1a1a1a1  flowers: 1 of 3 records are damaged and will be recomputed: rows 1\n"
    document = json.loads(cli("cache", "verify", "cache", "--format", "json").stdout)
    assert {c["key"][:2]: c["damaged"] for c in document["folders"][0]["caches"]} == {"a1": [1], "b2": []}
    (caches / ("a1" * 16) / "0.rows").unlink()
    lost = cli("cache", "verify", "cache")
    assert lost.exit_code == 1
    assert "cannot be checked: No such file or directory: 0.rows" in lost.stdout
    assert "a file is missing" in cli("cache", "ls", "cache").stdout


def test_clear_asks_and_deletes_caches_alone(cli: Cli, caches: Path) -> None:
    unasked = cli("cache", "clear", "cache")
    assert unasked.exit_code == 2
    assert "use --yes" in unasked.stderr
    one = cli("cache", "clear", "cache", "--only", "b2", "--yes")
    assert one.exit_code == 0, one.output
    assert one.stdout.startswith("deleted 1 cache, ")
    assert cli("cache", "clear", "cache", "--only", "c3", "--yes").exit_code == 2
    assert sorted(p.name for p in caches.iterdir()) == ["a1" * 16, "mine.txt"]
    assert cli("cache", "clear", "cache", "-y").exit_code == 0
    assert [p.name for p in caches.iterdir()] == ["mine.txt"]
    assert cli("cache", "clear", "cache", "-y").stdout == "nothing to delete\n"


def test_clear_leaves_what_is_not_of_a_cache(cli: Cli, caches: Path) -> None:
    foreign = caches / ("a1" * 16) / "thesis.txt"
    foreign.write_text("mine")
    assert cli("cache", "clear", "cache", "-y").exit_code == 0
    assert [str(p.relative_to(caches)) for p in sorted(caches.rglob("*")) if p.is_file()] == [f"{'a1' * 16}/thesis.txt", "mine.txt"]
    assert cli("cache", "clear", "cache", "-y").stdout == "nothing to delete\n"


def test_split_assignments_are_shown_and_deleted_as_caches_are(cli: Cli, caches: Path) -> None:
    (caches / "splits").mkdir()
    for name in ("c3" * 16 + ".splits", "mine.txt"):
        (caches / "splits" / name).write_bytes(bytes(8192))
    os.symlink(caches / "mine.txt", caches / "splits" / ("d4" * 16 + ".splits"))
    shown = cli("cache", "ls", "cache").stdout.splitlines()
    assert shown[-1].split()[:3] == ["c3c3c3c3", "8", "KiB"]
    assert shown[-1].endswith("the split of each record")
    (folder,) = json.loads(cli("cache", "ls", "cache", "--format", "json").stdout)["folders"]
    assert [(s["key"], s["bytes"]) for s in folder["splits"]] == [("c3" * 16, 8192)]
    assert cli("cache", "verify", "cache", "--only", "c3").stdout == "no caches found\n"
    assert cli("cache", "clear", "cache", "--only", "c3", "--yes").stdout == "deleted 1 split assignment, 8 KiB\n"
    assert sorted(p.name[:4] for p in (caches / "splits").iterdir()) == ["d4d4", "mine"]
    (caches / "splits" / ("c3" * 16 + ".splits")).touch()
    learned = caches / "statistics" / ("d" * 32 + ".json")
    learned.parent.mkdir()
    for file in (learned, learned.with_stem("mine")):
        file.write_bytes(b"{}")
    assert "what a step has learned from the training split" in cli("cache", "ls", "cache").stdout
    assert cli("cache", "clear", "cache", "--yes").stdout.startswith("deleted 2 caches, 1 split assignment and 1 fitted step, ")
    assert [p.name for p in learned.parent.iterdir()] == ["mine.json"]


def test_clear_on_a_terminal_takes_a_no(cli: Cli, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.cli.cache.is_terminal", lambda _stream: True)
    import typer

    monkeypatch.setattr(typer, "confirm", lambda text, abort: (_ for _ in ()).throw(typer.Abort()))
    assert cli("cache", "clear", "cache").exit_code == 1
    assert len(list(caches.iterdir())) == 3
    asked = []
    monkeypatch.setattr(typer, "confirm", lambda text, abort: asked.append(text))
    assert cli("cache", "clear", "cache").exit_code == 0
    assert asked[0].startswith("delete 2 caches, ")


def test_help_teaches(cli: Cli) -> None:
    for command in ("ls", "clear", "verify"):
        text = cli("cache", command, "--help").stdout
        assert f"pipegen cache {command} flowers.pipegen.yaml" in text
    assert "verify" in cli("cache", "--help").stdout


@pytest.mark.parametrize(("seconds", "text"), [(5, "just now"), (61, "1 minute ago"), (7300, "2 hours ago"), (200_000, "2 days ago")])
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text
