"""Data on servers of this machine: one that speaks as S3 does, and one of the web, both of which drop connections."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path
from pipes import write_photos
from typing import TYPE_CHECKING, Any

import pytest
from dropping import Dropping

from pipegen.data.remote import caches
from pipegen.mounts import content_of
from pipegen.phases.compilation import collect_data, load

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(120)]
pytest.importorskip("aiohttp")


@pytest.fixture
def dropping() -> Iterator[Any]:
    """Makes a server in front of another one that drops connections."""
    servers: list[Dropping] = []

    def made(port: int) -> Dropping:
        servers.append(Dropping(port))
        return servers[-1]

    yield made
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "WAITS", 0.01)
    monkeypatch.setattr(caches, "TRIES", 12)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def data(path: str, cache: Path, fetch: str = "whole") -> Any:
    sections = {
        "pipegen": 1,
        "source": {"image_folder": {"path": path}},
        "transforms": [{"resize": {"size": 8}}],
        "batch": {"size": 2},
        "runtime": {"remote_cache": {"path": str(cache), "fetch": fetch}},
    }
    return collect_data(load(sections))


def test_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropping: Any) -> None:
    pytest.importorskip("s3fs")
    server_of = pytest.importorskip("moto.server")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    server = server_of.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        front = dropping(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{front.server_address[1]}")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()  # another file's tests may have left a client of a server that is gone
        fs = s3fs.S3FileSystem(endpoint_url=f"http://127.0.0.1:{port}", skip_instance_cache=True)
        fs.mkdir("dropped")  # a name of its own: all such servers of a process have the same buckets
        photos = write_photos(tmp_path / "flowers", per_class=6)
        fs.put(str(photos), "dropped/flowers", recursive=True)
        found = data("s3://dropped/flowers", tmp_path / "cache")
        assert found.fingerprint == data(str(photos), tmp_path / "cache").fingerprint
        assert front.dropped, "or nothing was dropped"
        for path, key in zip(found.files("train"), found.listing.keys, strict=True):
            assert Path(path).read_bytes() == (photos / key).read_bytes()
        times = {path: Path(path).stat().st_mtime_ns for path in found.files("train")}
        fs.put(str(photos / "rose" / "01.jpg"), "dropped/flowers/rose/00.jpg")
        again = data("s3://dropped/flowers", tmp_path / "cache")
        fresh = [path for path in again.files("train") if Path(path).stat().st_mtime_ns != times[path]]
        assert [Path(path).name for path in fresh] == ["00.jpg"], "the one of another ETag"
        assert Path(fresh[0]).read_bytes() == (photos / "rose" / "01.jpg").read_bytes()
    finally:
        server.stop()


@pytest.mark.parametrize("fetch", ["whole", "blocks"])
def test_a_page_with_links(tmp_path: Path, dropping: Any, fetch: str) -> None:
    photos = write_photos(tmp_path / "flowers", per_class=4)
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        front = dropping(server.server_address[1])
        found = data(f"http://me:s3cret@127.0.0.1:{front.server_address[1]}/flowers/", tmp_path / "cache", fetch)
        assert found.fingerprint == data(str(photos), tmp_path / "cache").fingerprint
        for path, key in zip(found.files("train"), found.listing.keys, strict=True):
            assert content_of(path) == (photos / key).read_bytes()
            assert "s3cret" not in path
        server.shutdown()
    assert not [path for path in (tmp_path / "cache").rglob("*") if "s3cret" in str(path)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Says nothing."""
