"""Shards on a server of the web: a range names its files, a pattern asks for the page of the folder."""

from __future__ import annotations

import functools
import http.server
import threading
from typing import TYPE_CHECKING, Any

import pytest
from record_files import WRITERS, jpeg

from pipegen.errors import SpecError
from pipegen.phases.compilation import collect_data, load
from pipegen.spec.places import Address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("aiohttp")


class Handler(http.server.SimpleHTTPRequestHandler):
    lists = True

    def list_directory(self, path: Any) -> Any:
        return super().list_directory(path) if self.lists else self.send_error(403)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a folder with three shards of four records, and a file of another kind."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "web" / "set"
    folder.mkdir(parents=True)
    for shard in range(3):
        WRITERS["webdataset"](folder / f"wds-{shard:04}.tar", [{"jpg": jpeg("24x16"), "cls": i % 2} for i in range(4)])
    (folder / "notes.txt").write_text("three shards")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path / "web")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/set"
    server.shutdown()
    server.server_close()


def collected(path: str | list[str], cache: Path, fetch: str = "blocks") -> Any:
    features = {"image": {"kind": "image", "key": "jpg"}, "label": {"kind": "label", "key": "cls", "classes": 2}}
    return collect_data(load({
        "pipegen": 1,
        "source": {"webdataset": {"path": path, "features": features}},
        "transforms": [{"resize": {"size": 8}}],
        "batch": {"size": 2},
        "runtime": {"remote_cache": {"path": str(cache), "fetch": fetch}},
    }))  # fmt: skip


@pytest.mark.parametrize("fetch", ["blocks", "whole"])
@pytest.mark.parametrize(("name", "records"), [
    ("wds-{0000..0002}.tar", 12), ("wds-{0000,0002}.tar", 8), ("wds-000{0..1}.tar", 8), ("wds-*.tar", 12), ("wds-*{1,2}.tar", 8),
    ("wds-{0000..0002}.tar?key=a*b", 12), ("wds-0001.tar", 4), ("", 12),
])  # fmt: skip
def test_what_an_address_stands_for(web: str, tmp_path: Path, name: str, records: int, fetch: str) -> None:
    found = collected(f"{web}/{name}", tmp_path / "cache", fetch)
    assert found.total == records
    here = tmp_path / "web" / "set"
    if name.endswith(".tar"):
        assert found.fingerprint == collected(str(here / name), tmp_path / "cache").fingerprint


@pytest.mark.parametrize(("name", "says", "helps"), [
    ("wds-{0000..0003}.tar", "wds-0003.tar, which is one of", "check the range"),
    ("none-*.tar", "nothing found at", "name the files by a range"),
    ("none.tar", "nothing found at", "a folder ends in `/`"),
    ("", "/set is a folder or a page of the web", "write a `/` at the end"),
])  # fmt: skip
def test_what_is_not_there_is_named(web: str, tmp_path: Path, name: str, says: str, helps: str) -> None:
    with pytest.raises(SpecError) as raised:
        collected(f"{web}/{name}".rstrip("/"), tmp_path / "cache")
    assert says in str(raised.value)
    assert helps in str(raised.value)
    assert "region" not in str(raised.value)


@pytest.mark.parametrize("fetch", ["blocks", "whole"])
def test_a_folder_takes_the_place_of_a_file_that_was_there_before(web: str, tmp_path: Path, fetch: str) -> None:
    folder, aside = tmp_path / "web" / "set", tmp_path / "web" / "aside"
    folder.rename(aside)
    (aside / "wds-0000.tar").rename(folder)
    assert collected(web, tmp_path / "cache", fetch).total == 4
    folder.rename(aside / "wds-0000.tar")
    aside.rename(folder)
    assert collected(f"{web}/", tmp_path / "cache", fetch).total == 12


def test_a_server_that_lists_nothing(web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "lists", False)
    assert collected(f"{web}/wds-{{0000..0002}}.tar", tmp_path / "cache").total == 12
    with pytest.raises(SpecError, match="set/wds"):
        collected(f"{web}/wds-*.tar", tmp_path / "cache")


@pytest.mark.parametrize(("text", "folder", "pattern", "query"), [
    ("http://h/a-{0..2}.tar", "http://h", "a-{0..2}.tar", ""),
    ("https://h/d/a-*.tar?k=*", "https://h/d", "a-*.tar", "?k=*"),
    ("https://h/d/a.tar?k={x}", "https://h/d/a.tar?k={x}", "", ""),
    ("http://[::1]:80/d/a-{0..2}.tar", "http://[::1]:80/d", "a-{0..2}.tar", ""),
    ("http://h/d?e=1", "http://h/d?e=1", "", ""),
    ("s3://b/d/a-{0..2}.tar", "s3://b/d", "a-{0..2}.tar", ""),
    ("s3://b/d/a?.tar", "s3://b/d", "a?.tar", ""),
])  # fmt: skip
def test_the_parts_of_an_address(text: str, folder: str, pattern: str, query: str) -> None:
    address = Address.of(text)
    assert address is not None
    assert (address.folder, address.pattern, address.query) == (folder, pattern, query)
