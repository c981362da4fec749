"""Serves git repositories over https on this machine, with a certificate of its own: `git http-backend` as a CGI script."""

from __future__ import annotations

import os
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 30


def git(folder: Path, *arguments: str, **env: str) -> str:
    """Runs git as a person of the test, who has no settings."""
    about = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    about |= {f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **about, **env}, capture_output=True, text=True, check=True, timeout=SECONDS
    )
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str], *tags: str) -> str:
    """Commits files to a repository, which is made where there is none, and tags the commit."""
    if not (folder / ".git").is_dir():
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=change")
    for tag in tags:
        git(folder, "tag", "--force", "--annotate", "--message=release", tag)
    return git(folder, "rev-parse", "HEAD")


def certificate(folder: Path) -> tuple[Path, Path]:
    """Makes a certificate for this machine that signs itself, and its key."""
    folder.mkdir(parents=True, exist_ok=True)
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", str(key), "-out", str(cert), *names]
    subprocess.run(made, check=True, capture_output=True, timeout=SECONDS)
    return cert, key


@contextmanager
def served(root: Path, cert: Path, key: Path) -> Iterator[tuple[str, list[str]]]:
    """Serves the repositories of a folder; yields the address and the list of what is asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        timeout = SECONDS

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            asked.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            env = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH_INFO": url.path,
                "QUERY_STRING": url.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False, timeout=SECONDS)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
            self.send_response(int(lines.pop("Status", "200").split()[0]))
            for name, value in lines.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_about: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)
