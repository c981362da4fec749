"""A server on this machine that speaks as Google Cloud Storage does, for TensorFlow, which asks no other address than Google's: it is
reached as a proxy, with a certificate of its own."""

from __future__ import annotations

import datetime
import json
import re
import socketserver
import ssl
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

HOSTS = ("www.googleapis.com", "storage.googleapis.com")


def certificate(folder: Path) -> Path:
    """Writes a key and a certificate for Google's hosts, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


class Storage(socketserver.ThreadingTCPServer):
    """Serves the files of a folder: each folder in it is a bucket. Every `drops`-th request is cut off before its answer."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, folder: Path, pem: Path, drops: int = 0) -> None:
        self.folder, self.drops, self.seen, self.lock = folder, drops, [], threading.Lock()  # type: ignore[var-annotated]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pem)
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """What TensorFlow is told by."""
        return {
            "https_proxy": f"http://127.0.0.1:{self.server_address[1]}",
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "token",
            "GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "1000",
        }


class _Handler(socketserver.StreamRequestHandler):
    server: Storage

    def handle(self) -> None:
        self._request(self.rfile)
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.wfile.flush()
        try:
            with self.server.context.wrap_socket(self.connection, server_side=True) as secure, secure.makefile("rb") as stream:
                while (asked := self._request(stream)) is not None:
                    with self.server.lock:
                        self.server.seen.append(asked[0])
                        drop = self.server.drops and len(self.server.seen) % self.server.drops == 0
                    if drop:
                        return
                    status, content = self._answer(*asked)
                    secure.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        except (OSError, ssl.SSLError):
            return

    @staticmethod
    def _request(stream: Any) -> tuple[str, dict[str, str]] | None:
        line = stream.readline().decode()
        if not line:
            return None
        headers = {}
        while header := stream.readline().decode().strip():
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        return line.split()[1], headers

    def _answer(self, target: str, headers: dict[str, str]) -> tuple[str, bytes]:
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        found = re.fullmatch(r"/storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?", url.path)
        if found is None:
            return self._content(self.server.folder / unquote(url.path).strip("/"), headers)
        bucket = self.server.folder / found[1]
        if found[2] is not None:
            file = bucket / unquote(found[2])
            return ("200 OK", json.dumps(self._about(bucket, file)).encode()) if file.is_file() else ("404 Not Found", b"{}")
        if not url.path.endswith("/o"):
            return "200 OK", json.dumps({"name": found[1], "location": "EU"}).encode()
        prefix, items, folders = query.get("prefix", ""), [], set()
        for file in sorted(path for path in bucket.rglob("*") if path.is_file()):
            name = file.relative_to(bucket).as_posix()
            inside, _, rest = name[len(prefix) :].partition("/")
            if name.startswith(prefix) and "delimiter" in query and rest:
                folders.add(f"{prefix}{inside}/")
            elif name.startswith(prefix):
                items.append(self._about(bucket, file))
        items = items[: int(query.get("maxResults", 10_000))]
        return "200 OK", json.dumps({"items": items, "prefixes": sorted(folders)} if folders or items else {}).encode()

    @staticmethod
    def _about(bucket: Path, file: Path) -> dict[str, str]:
        about = file.stat()
        written = datetime.datetime.fromtimestamp(about.st_mtime, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        name = file.relative_to(bucket).as_posix()
        return {"name": name, "size": str(about.st_size), "generation": str(about.st_mtime_ns), "updated": written}

    @staticmethod
    def _content(file: Path, headers: dict[str, str]) -> tuple[str, bytes]:
        if not file.is_file():
            return "404 Not Found", b""
        content = file.read_bytes()
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("range", ""))
        if span is None:
            return "200 OK", content
        part = content[int(span[1]) : int(span[2]) + 1]
        return ("206 Partial Content", part) if part else ("416 Range Not Satisfiable", b"")
