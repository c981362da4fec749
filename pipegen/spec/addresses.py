"""Addresses of data on other machines: their parts, their places in a source, and how they are fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.frozen import dataclass
from pipegen.ops.sources.listing.base import Source
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, Runtime
from pipegen.spec.rebase import SOURCE_PATHS
from pipegen.terminal import masked_address

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.+)", re.DOTALL)
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hf"})
"""Schemes of cloud providers, whose servers are fixed, not named by the spec."""
KNOWN = OBJECT_STORES | {"file", "ftp", "hdfs", "http", "https", "local", "memory", "sftp", "ssh", "viewfs", "webhdfs"}
"""Schemes that a spec may use: their readers load no code and no options from a place that the address names."""
_ON_THIS_MACHINE = frozenset({"duckdb", "file", "local", "memory", "sqlite"})
_WILD = re.compile(r"[*?\[{]")
_WILD_ON_THE_WEB = re.compile(r"[*{]")  # on the web `?` begins a query, and `[` an IPv6 address
_WEB = ("http", "https")
_UNSAFE = re.compile(r"[^A-Za-z0-9._=@+ -]")


def names_server(text: str) -> bool:
    """Tests if a text is the address of a server, such as one of the web or a database, whose owner sees requests."""
    found = _ADDRESS.fullmatch(text)
    scheme = found["scheme"].lower() if found is not None else "file"
    return scheme not in OBJECT_STORES and scheme.partition("+")[0] not in _ON_THIS_MACHINE


@dataclass(frozen=True)
class Address:
    """An address of data: its text as given, with its secrets, and its scheme, the part before `://` in lower case."""

    text: str
    scheme: str

    @classmethod
    def of(cls, path: str) -> Address | None:
        """Parses a path; `None` if it is on this machine."""
        found = _ADDRESS.fullmatch(path)
        return None if found is None or found["scheme"].lower() == "file" else cls(path, found["scheme"].lower())

    @property
    def folder(self) -> str:
        """The part before the first name with a wildcard."""
        begin = self.text.index("://") + 3
        if self.is_web:
            wild = _WILD_ON_THE_WEB.search(self.text.partition("?")[0], max(begin, self.text.find("/", begin)))
        else:
            wild = _WILD.search(self.text, begin)
        return self.text.rstrip("/") if wild is None else self.text[: wild.start()].rpartition("/")[0]

    @property
    def pattern(self) -> str:
        """The part after `folder`; "" without a wildcard."""
        rest = self.text[len(self.folder) :].strip("/") if self.folder != self.text.rstrip("/") else ""
        return rest.partition("?")[0] if self.is_web else rest

    @property
    def query(self) -> str:
        """The query of a pattern on the web, with its `?`, which is added to each file."""
        return "?" + self.text.partition("?")[2] if self.is_web and self.pattern and "?" in self.text else ""

    @property
    def is_web(self) -> bool:
        """Whether it is on a web server, which cannot list files."""
        return self.scheme in _WEB

    @property
    def place(self) -> tuple[str, ...]:
        """The cache folder of its files, as names: without user and query, which may be secrets."""
        parts = urlsplit(self.folder)
        names = [self.scheme, parts.netloc.rpartition("@")[2], *unquote(parts.path).split("/")]
        return tuple(_UNSAFE.sub("_", name) for name in names if name not in ("", ".", ".."))

    def __str__(self) -> str:
        return masked_address(self.text)

    def __repr__(self) -> str:
        return str(self)


M = TypeVar("M", bound=BaseModel)
Change = Callable[[Address, "tuple[str, ...]", "Source | None"], str]  # maps an address, its key path and its source to a replacement


def replaced(source: M, change: Change) -> M | None:
    """Replaces the addresses of a source; `None` if it has none."""
    found: M | None = _inside(source, (), None, change)
    return found


def _inside(value: Any, path: tuple[str, ...], of: Source | None, change: Change) -> Any:
    if isinstance(value, BaseModel):
        of = value if isinstance(value, Source) else of
        given = {name: getattr(value, name) for name in type(value).model_fields}
        found = {name: new for name, old in given.items() if (new := _inside(old, (*path, name), of, change)) is not None}
        return value.model_copy(update=found) if found else None
    if isinstance(value, Mapping):
        changed = {key: new for key, old in value.items() if (new := _inside(old, (*path, str(key)), of, change)) is not None}
        return {**value, **changed} if changed else None
    if isinstance(value, (list, tuple)):
        items = [_inside(old, (*path, str(i)), of, change) for i, old in enumerate(value)]
        if all(item is None for item in items):
            return None
        return type(value)(old if new is None else new for old, new in zip(value, items, strict=True))
    if not isinstance(value, str) or not SOURCE_PATHS & set(path[-2:]):
        return None
    address = Address.of(value)
    return None if address is None else change(address, path, of)


def addresses_in(source: Source) -> list[tuple[Address, tuple[str, ...], Source | None]]:
    """The addresses of a source, each with its key path and the source around it."""
    found: list[tuple[Address, tuple[str, ...], Source | None]] = []

    def look(address: Address, path: tuple[str, ...], of: Source | None) -> str:
        found.append((address, path, of))
        return address.text

    replaced(source, look)
    return found


def fetches_blocks(source: Source, runtime: Runtime) -> bool:
    """Tests if records of a source are at an address and are fetched in blocks as they are read."""
    return any(fetched(of, path, address, runtime) == "blocks" for address, path, of in addresses_in(source))


def fetched(source: Source | None, path: tuple[str, ...], address: Address, runtime: Runtime) -> Literal["blocks", "whole", "none"]:
    """The way to fetch the address at `path`: that of `runtime.remote_cache.fetch`, or of `auto` if the source does not support it."""
    wanted = runtime.remote_cache.fetch
    if source is None or next(name for name in reversed(path) if name in SOURCE_PATHS) not in source.fetched_as_read():
        return "whole"
    in_place = source.reads_addresses()
    if wanted == "auto":
        return "none" if address.scheme == "gs" and in_place else "blocks"
    return "blocks" if wanted == "none" and not in_place else wanted


_FETCH = ("runtime", "remote_cache", "fetch")


def check_fetching(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Finds a source that cannot read its files in the way of `runtime.remote_cache.fetch`."""
    wanted = spec.runtime.remote_cache.fetch
    if wanted in ("auto", "whole"):
        return
    for address, path, of in addresses_in(spec.source):
        done = fetched(of, path, address, spec.runtime)
        beside = done == "whole" and of is not None and of.fetched_as_read()  # such as a table of image files
        if done != wanted and not beside:
            needs = "whole files" if done == "whole" else "parts of files, which TensorFlow cannot read from addresses"
            labels = (locate(_FETCH), locate(("source", spec.source.op, *path), "this address"))
            yield make("PG743", f"`{spec.source.op}` reads {needs}, but `fetch` is `{wanted}`", *labels, help=f"use `fetch: {done}`")
            return
