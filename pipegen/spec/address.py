"""Addresses of data on other machines, such as `s3://bucket/flowers`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pipegen.masking import masked_address

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.+)", re.DOTALL)
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hf"})
"""Schemes behind which a provider keeps data: no spec says which machine is asked."""
KNOWN = OBJECT_STORES | {"file", "ftp", "hdfs", "http", "https", "local", "memory", "sftp", "ssh", "viewfs", "webhdfs"}
"""Schemes that a spec may use: what reads them loads no code and no file of options that the address names."""
_ON_THIS_MACHINE = frozenset({"duckdb", "file", "local", "memory", "sqlite"})
_WILD = re.compile(r"[*?\[{]")
_WILD_ON_THE_WEB = re.compile(r"[*{]")
"""There `?` begins a query, and `[` an address of six bytes."""
_WEB = ("http", "https")
_UNSAFE = re.compile(r"[^A-Za-z0-9._=@+ -]")


def names_server(text: str) -> bool:
    """Tells whether a text is the address of a server, such as one of the web or a database, which its owner may watch."""
    found = _ADDRESS.fullmatch(text)
    scheme = found["scheme"].lower() if found is not None else "file"
    return scheme not in OBJECT_STORES and scheme.partition("+")[0] not in _ON_THIS_MACHINE


@dataclass(frozen=True)
class Address:
    """Holds an address.

    Attributes:
        text: As it was given, with its secrets.
        scheme: What stands before `://`, in small letters.
    """

    text: str
    scheme: str

    @classmethod
    def of(cls, path: str) -> Address | None:
        """Returns the address that a path is, or `None` for one on this machine."""
        found = _ADDRESS.fullmatch(path)
        return None if found is None or found["scheme"].lower() == "file" else cls(path, found["scheme"].lower())

    @property
    def folder(self) -> str:
        """Returns the part before the first wildcard, which ends with a whole name."""
        begin = self.text.index("://") + 3
        if self.is_web:
            wild = _WILD_ON_THE_WEB.search(self.text.partition("?")[0], max(begin, self.text.find("/", begin)))
        else:
            wild = _WILD.search(self.text, begin)
        return self.text.rstrip("/") if wild is None else self.text[: wild.start()].rpartition("/")[0]

    @property
    def pattern(self) -> str:
        """Returns the rest from there on; empty without a wildcard."""
        rest = self.text[len(self.folder) :].strip("/") if self.folder != self.text.rstrip("/") else ""
        return rest.partition("?")[0] if self.is_web else rest

    @property
    def query(self) -> str:
        """Returns what stands behind the `?` of a pattern on the web, with it: it goes to each file."""
        return "?" + self.text.partition("?")[2] if self.is_web and self.pattern and "?" in self.text else ""

    @property
    def is_web(self) -> bool:
        """Returns whether a server of the web has it, which lists nothing but pages."""
        return self.scheme in _WEB

    @property
    def place(self) -> tuple[str, ...]:
        """Returns the folders of the cache that its files lie in: without a user and without a query, which may hold secrets."""
        parts = urlsplit(self.folder)
        host = parts.netloc.rpartition("@")[2]
        names = [self.scheme, host, *unquote(parts.path).split("/")]
        return tuple(_UNSAFE.sub("_", name) for name in names if name not in ("", ".", ".."))

    def __str__(self) -> str:
        return masked_address(self.text)

    def __repr__(self) -> str:
        return str(self)
