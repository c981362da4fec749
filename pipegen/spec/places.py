"""The places of data in a spec: relative paths, made absolute from the folder of their file, and addresses on other machines.

A shared base cannot have relative paths: the folder of a package or of a lock holds no data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from operator import is_not
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.frozen import dataclass
from pipegen.ops.registry import sources
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.sources.tables.readings import Join
from pipegen.spec.compose import flow
from pipegen.spec.locate import Locate, Locator, Place
from pipegen.spec.models import PipelineSpec, Runtime
from pipegen.spec.source_map import KeyPath, format_path, lookup, scalars
from pipegen.terminal import masked_address

_PATHS = ("errors.exclude", "errors.decode.skip.report", "runtime.cache.disk", "runtime.remote_cache.path", "splits.exclude")
PATHS: tuple[KeyPath, ...] = tuple(tuple(path.split(".")) for path in _PATHS)  # settings outside the source that are paths
SOURCE_PATHS = frozenset({"path", "root"})  # arguments of sources that are paths of data; a source may have others, its `places`
STEP_PATHS = frozenset({"files", "references"})  # arguments of steps that are paths of files beside the spec
ADDRESS = "url"  # the argument of sources that is the address of a database; that of SQLite has a path, which may be relative
SNAPSHOT = "snapshot"  # the argument that is the file for the rows of a database
PLACES = SOURCE_PATHS | {SNAPSHOT, ADDRESS}  # arguments of sources that are the place of data, not its content
NAMES = frozenset({"features", "fill", "map", "on"})  # arguments of sources that are maps whose keys are names, not arguments
_PARTS: KeyPath = ("source", "mix", "parts")
_SQLITE = re.compile(r"(?P<before>sqlite(?:\+\w+)?:///)(?P<path>[^/?][^?]*)")


def own_places(node: Mapping[str, Any], key: str) -> frozenset[str]:
    """The arguments besides `PLACES` that are places, if `key` is the name of a source."""
    return sources()[key].places if len(node) == 1 and key in sources() else frozenset()


def places(node: Any, at: KeyPath, own: frozenset[str] = frozenset()) -> Iterator[tuple[dict[str, Any], str, KeyPath]]:
    """Yields the arguments of a source that are places: the map that holds each, its key, its key path."""
    for key, value in node.items() if isinstance(node, dict) else ():
        if isinstance(value, dict):
            if key != "splits" or at[:-1] != _PARTS:  # a `path` of the `splits` of a part is a regular expression
                yield from places(value, (*at, key), own_places(node, key))
        elif (key in PLACES or key in own) and at[-1] not in NAMES:
            yield node, key, (*at, key)


def make_absolute(spec: dict[str, Any], place: Place) -> None:
    """Makes paths absolute, in place, and reports relative ones of shared bases."""
    for *parents, last in settings(spec):
        at = lookup(spec, tuple(parents))
        if isinstance(at, dict) and last in at:
            at[last] = _absolute(at[last], (*parents, last), place)
    for node, key, path in [*places(spec.get("source"), ("source",))]:
        value = node[key]
        if key == ADDRESS:
            if isinstance(value, str) and (file := _SQLITE.match(value)):
                node[key] = f"{file['before']}{_absolute(file['path'], path, place)}{value[file.end() :]}"
        elif isinstance(value, list):
            node[key] = [_absolute(v, (*path, i), place) for i, v in enumerate(value)]
        else:
            node[key] = _absolute(value, path, place)
    # The paths of steps: in lists, in edits of a base, in branches, inside other steps.
    for at in (("transforms",), ("views",), *((*_PARTS, name, "transforms") for name in _parts(spec))):
        for path, value in [*scalars(lookup(spec, at), at)]:
            if path[-1] in STEP_PATHS and isinstance(value, str):
                lookup(spec, path[:-1])[path[-1]] = _absolute(value, path, place)


def settings(spec: dict[str, Any]) -> Iterator[KeyPath]:
    """Yields the key paths of settings that are paths: `PATHS`, the `exclude` of each part of a mix, and files of values of splits."""
    yield from PATHS
    every: list[KeyPath] = [("splits",), *((*_PARTS, name, "splits") for name in _parts(spec))]
    yield from ((*at, "exclude") for at in every[1:])
    for at in every:
        parts = lookup(spec, (*at, "parts"))
        for name, part in parts.items() if isinstance(parts, dict) else ():
            for column, values in part.items() if isinstance(part, dict) else ():
                if isinstance(values, dict):
                    yield (*at, "parts", name, column, "file")


def _parts(spec: dict[str, Any]) -> dict[str, Any]:
    """The parts of a mix by name, as written; none for another source."""
    parts = lookup(spec, _PARTS)
    return parts if isinstance(parts, dict) else {}


def _absolute(value: Any, path: KeyPath, place: Place) -> Any:
    if not isinstance(value, str) or not value:
        return value
    place.at(*path).add(homeless(value, path, place.locate))
    return absolute(value, place.locate.folder(path))


def absolute(path: str, folder: Path) -> str:
    """`path` from `folder`, with `~` expanded; addresses such as `gs://` stay."""
    return path if "://" in path else os.path.abspath(os.path.join(folder, os.path.expanduser(path)))


def homeless(value: str, path: KeyPath, locate: Locator) -> Diagnostic | None:
    """The finding about a relative path in a shared base; `None` for other paths."""
    if "://" in value or os.path.isabs(os.path.expanduser(value)) or not locate.in_shared_base(path):
        return None
    said: Any = value
    for key in reversed(path):
        said = [said] if isinstance(key, int) else {key: said}
    help_: list[str] = [write(flow(said)[1:-1], "spec", "set the path in the spec that extends the base: {}")]
    if path[0] == "params":
        help_.append("or, in the base, leave the default out, so that each spec that extends it sets the path of its data")
    else:
        help_.append("or, in the base, declare `params: {data: {type: path}}` without a default, and use `$data` here")
    message = f"`{format_path(path)}` is the relative path `{value}` in a shared base, which has no folder of data"
    return make("PG114", message, locate.label(path), help=tuple(help_))


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
Change = Callable[[Address, "tuple[str, ...]", "Source | None"], str]
"""Maps an address, its key path, and the source that it is an argument of (`None` in a joined table), to a replacement."""


def replaced(source: M, change: Change) -> M:
    """Replaces the addresses of a source."""
    made: M = _inside(source, (), None, change)
    return made


def _inside(value: Any, path: tuple[str, ...], of: Source | None, change: Change) -> Any:
    """A part of a source with its addresses replaced; the part itself without any."""
    if isinstance(value, BaseModel):
        of = value if isinstance(value, Source) else None if isinstance(value, Join) else of  # a joined table is read whole
        given = {name: getattr(value, name) for name in type(value).model_fields}
        found = {name: new for name, old in given.items() if (new := _inside(old, (*path, name), of, change)) is not old}
        return value.model_copy(update=found) if found else value
    if isinstance(value, Mapping):
        made = {key: _inside(old, (*path, str(key)), of, change) for key, old in value.items()}
        return made if any(made[key] is not old for key, old in value.items()) else value
    if isinstance(value, (list, tuple)):
        items = [_inside(old, (*path, str(i)), of, change) for i, old in enumerate(value)]
        return type(value)(items) if any(map(is_not, items, value)) else value
    address = Address.of(value) if isinstance(value, str) and SOURCE_PATHS & set(path[-2:]) else None
    return value if address is None else change(address, path, of)


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
        beside = done == "whole" and (of is None or of.fetched_as_read())  # such as a table of image files
        if done != wanted and not beside:
            needs = "whole files" if done == "whole" else "parts of files, which TensorFlow cannot read from addresses"
            labels = (locate(_FETCH), locate(("source", spec.source.op, *path), "this address"))
            yield make("PG743", f"`{spec.source.op}` reads {needs}, but `fetch` is `{wanted}`", *labels, help=f"use `fetch: {done}`")
            return
