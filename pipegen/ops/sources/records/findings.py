"""Findings about a file of records beside its records: members that none uses, and bytes that should not be there."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipegen.ops.sources.listing.base import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

Findings: TypeAlias = "Mapping[str, tuple[int, str]]"
"""By kind, how many there are, and the first one."""


class Kind(NamedTuple):
    """A kind of finding.

    Attributes:
        one: What is said of one, behind the number.
        many: What is said of several.
        help: What to do.
        code: A diagnostic code.
        severity: How bad it is.
    """

    one: str
    many: str
    help: str
    code: str = "PG411"
    severity: Literal["error", "warning", "info"] = "warning"


UNPACK = "`gunzip FILE`, `zstd -d FILE` or `xz -d FILE`, as its ending says"
KINDS: Mapping[str, Kind] = {
    "compressed": Kind(
        "file is compressed as a whole, and its records cannot be read in place",
        "files are compressed as a whole, and their records cannot be read in place",
        f"unpack it first: {UNPACK}; the images in it are compressed already",
        "PG430",
        "error",
    ),
    "joined": Kind(
        "archive goes on behind its end with a second archive, which is not read",
        "archives go on behind their end with a second archive, which is not read",
        "join archives by `tar --concatenate` or write one of both, where `cat` leaves the end of the first between them",
        "PG430",
        "error",
    ),
    "front": Kind(
        "archive has another archive in front of it, which is not read",
        "archives have another archive in front of them, which is not read",
        "write one archive of both: `cat` does not join ZIP archives",
        "PG430",
        "error",
    ),
    "unlisted": Kind(
        "member lies in the archive and is not in its table of contents",
        "members lie in archives and are not in their tables of contents",
        "write the archive again: a member that was removed from the table alone, or a damaged table, leaves such",
        "PG430",
        "error",
    ),
    "behind": Kind(
        "archive is followed by bytes that belong to no member",
        "archives are followed by bytes that belong to no member",
        "copy or write the archive again",
        "PG430",
        "error",
    ),
    "sparse": Kind(
        "member is stored with its holes left out, and cannot be read in place",
        "members are stored with their holes left out, and cannot be read in place",
        "pack the archive again without `--sparse`",
        "PG430",
        "error",
    ),
    "dotted": Kind(
        "record has none of the keys, since its name has a dot",
        "records have none of the keys, since their names have a dot",
        "a key starts at the first dot of a name: rename these members, or give all their keys, such as `key: jpg;0mm.jpg`",
        "PG431",
        "error",
    ),
    "unwritten": Kind(
        "record holds the fill value, since a chunk of it does not exist",
        "records hold the fill value, since a chunk of them does not exist",
        "where a chunk was lost, write it again; `write_empty_chunks=True` lets Zarr store also chunks of nothing else",
        "PG430",
        "warning",
    ),
    "zeros": Kind(
        "archive ends in more zeros than its padding needs, as where a file system crashed while it was written",
        "archives end in more zeros than their padding needs, as where a file system crashed while they were written",
        "compare the number of records with that of the original; large records (`tar --blocking-factor`) end so, too",
        "PG430",
        "warning",
    ),
    "empty": Kind("file holds no record", "files hold no record", "remove files that are empty, or write them again if they should not be"),
    "keyless": Kind(
        "record has none of the keys and is ignored",
        "records have none of the keys and are ignored",
        "where they are meant, give their keys as well, such as `key: jpg;png`",
    ),
    "unmatched": Kind(
        "key matches the `key` of no feature and is ignored",
        "keys match the `key` of no feature and are ignored",
        "a feature whose `key` matches them reads them",
        severity="info",
    ),
    "unnamed": Kind(
        "member has no key in its name and is ignored", "members have no key in their names and are ignored", "", severity="info"
    ),
    "system": Kind("file of the system is ignored", "files of the system are ignored", "", severity="info"),
    "link": Kind(
        "link leads to no file of its archive and is ignored",
        "links lead to no file of their archive and are ignored",
        "pack the files that links lead to in place of them (`tar --dereference`)",
    ),
    "folder link": Kind(
        "link to a folder of the archive is not entered",
        "links to folders of the archive are not entered",
        "pack the folder in place of the link (`tar --dereference`)",
    ),
    "special": Kind(
        "member is neither a file nor a folder and is ignored",
        "members are neither files nor folders and are ignored",
        "devices, pipes and sockets hold no data",
    ),
    "outside": Kind(
        "member has `..` in its path, leads out of the archive and is ignored",
        "members have `..` in their paths, lead out of the archive and are ignored",
        "pack them by paths below one folder",
    ),
    "twice": Kind(
        "member has the name of a later one, which counts",
        "members have the names of later ones, which count",
        "remove members that are there twice",
    ),
}
"""All kinds, the gravest first."""

_MAGICS = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x04\x22\x4d\x18": "lz4",
    b"\x1f\x9d": "compress", b"\xff\x06\0\0sNaPpY": "snappy", b"7z\xbc\xaf\x27\x1c": "7z",
}  # fmt: skip

_ENDINGS = frozenset({".gz", ".zst", ".zstd", ".bz2", ".xz", ".lz4", ".br", ".snappy", ".Z"})
"""What programs that compress files put behind their names."""
_TARS = frozenset({".tgz", ".tbz", ".tbz2", ".txz", ".tzst", ".tlz4"})
"""Short forms of these behind `.tar`."""


def compression(head: bytes) -> str:
    """Returns what compressed a file that begins with these bytes; empty where nothing known did."""
    found = next((name for magic, name in _MAGICS.items() if head.startswith(magic)), "")
    zlib = len(head) > 1 and head[0] == 0x78 and int.from_bytes(head[:2], "big") % 31 == 0
    return found or ("zlib" if zlib else "")


def unpacked_name(name: str) -> str:
    """Returns the name that a file has before a program compresses it, by its ending; empty where no such program gave it its name."""
    stem, ending = os.path.splitext(name)
    return stem if ending in _ENDINGS else f"{stem}.tar" if ending in _TARS else ""


def unpacking_help(how: str) -> str:
    """Returns what is said of files that a source reads where its `compression` says what they are compressed by."""
    return f"`compression: {how}` reads them; uncompressed files are read in any order, and faster"


def tallied(seen: Iterable[tuple[str, str]]) -> dict[str, tuple[int, str]]:
    """Counts what was seen, each a kind and what it is called; the first of a kind is kept."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for kind, name in seen:
        counts[kind] += 1
        first.setdefault(kind, name)
    return {kind: (number, first[kind]) for kind, number in counts.items()}


def finding_notes(found: Iterable[tuple[str, Findings]], field: str = "path") -> Iterator[Note]:
    """Yields one note for each kind; `found` has the path of each file and what was found in it."""
    totals: Counter[str] = Counter()
    first: dict[str, str] = {}
    for path, findings in found:
        for kind, (number, name) in findings.items():
            totals[kind] += number
            first.setdefault(kind, f"{name!r} in {path!r}" if name else repr(path))
    for kind, (one, many, help_, code, severity) in KINDS.items():
        if kind in totals:
            number = totals[kind]
            message = f"{number:,} {one if number == 1 else many}: {'' if number == 1 else 'such as '}{first[kind]}"
            yield Note(code, message, help_ or None, field, severity)
