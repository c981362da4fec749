"""Findings about a file of records: unused members and unexpected bytes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from pipegen.ops.fields.notes import Note

Severity: TypeAlias = Literal["error", "warning", "info"]
Findings: TypeAlias = "Mapping[str, tuple[int, str]]"  # number and first example of each kind of finding


class Kind(NamedTuple):
    """A kind of finding: its text after a number, where `{one|several}` depends on that; what to do; its code and severity."""

    text: str
    help: str
    code: str
    severity: Severity


_FORMS = re.compile(r"\{(.*?)\|(.*?)\}")
UNPACK = "`gunzip FILE`, `zstd -d FILE` or `xz -d FILE`, by its ending"
_KINDS: Mapping[tuple[str, Severity], Mapping[str, tuple[str, str]]] = {
    ("PG430", "error"): {
        "compressed": (
            "{file is|files are} compressed as a whole, and {its|their} records cannot be read in place",
            f"unpack it first: {UNPACK}; the images in it are compressed already",
        ),
        "joined": (
            "{archive is|archives are} followed by a second archive, which is not read",
            "join archives by `tar --concatenate`; `cat` leaves the end of the first between them",
        ),
        "front": (
            "{archive is|archives are} preceded by another archive, which is not read",
            "write both into one archive; `cat` does not join ZIP archives",
        ),
        "unlisted": (
            "{member of the archive is not in its table of contents|members of archives are not in their tables of contents}",
            "write the archive again; its table is damaged, or a member was removed from the table only",
        ),
        "behind": ("{archive is|archives are} followed by bytes outside of any member", "copy or write the archive again"),
        "sparse": ("{member is|members are} stored sparsely and cannot be read in place", "pack the archive again without `--sparse`"),
    },
    ("PG431", "error"): {
        "dotted": (
            "{record has|records have} none of the keys, since {its name has|their names have} a dot",
            "a key starts at the first dot of a name; rename these members, or list all their keys, such as `key: jpg;0mm.jpg`",
        ),
    },
    ("PG430", "warning"): {
        "unwritten": (
            "{record holds the fill value, since its chunk is|records hold the fill value, since their chunks are} missing",
            "write lost chunks again; with `write_empty_chunks=True` Zarr also stores chunks of fill values",
        ),
        "zeros": (
            "{archive ends|archives end} in more zeros than padding needs, as after a crash during writing",
            "compare the number of records with the original; a large `tar --blocking-factor` gives the same ending",
        ),
    },
    ("PG411", "warning"): {
        "empty": ("{file holds|files hold} no record", "remove empty files, or write them again"),
        "keyless": (
            "{record has|records have} none of the keys and {is|are} ignored",
            "to read them, add their keys, such as `key: jpg;png`",
        ),
        "link": (
            "{link has no target in its|links have no target in their} archive and {is|are} ignored",
            "pack the linked files instead (`tar --dereference`)",
        ),
        "folder link": (
            "{link to a folder of the archive is|links to folders of the archive are} not entered",
            "pack the linked folder instead (`tar --dereference`)",
        ),
        "special": (
            "{member is neither a file nor a folder and is|members are neither files nor folders and are} ignored",
            "devices, pipes and sockets hold no data",
        ),
        "outside": (
            "{member|members} with `..` in {its path leads|their paths lead} out of the archive and {is|are} ignored",
            "pack them with paths below one folder",
        ),
        "twice": (
            "{member has the same name as a later one, which is|members have the same names as later ones, which are} used",
            "remove duplicate members",
        ),
    },
    ("PG411", "info"): {
        "unmatched": (
            "{key matches no feature and is|keys match no feature and are} ignored",
            "to read them, add a feature whose `key` matches",
        ),
        "unnamed": ("{member has no key in its name and is|members have no key in their names and are} ignored", ""),
        "system": ("system {file is|files are} ignored", ""),
    },
}
KINDS = {kind: Kind(*texts, *how) for how, kinds in _KINDS.items() for kind, texts in kinds.items()}  # all kinds, most severe first

_MAGICS = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x04\x22\x4d\x18": "lz4",
    b"\x1f\x9d": "compress", b"\xff\x06\0\0sNaPpY": "snappy", b"7z\xbc\xaf\x27\x1c": "7z",
}  # fmt: skip

_ENDINGS = frozenset({".gz", ".zst", ".zstd", ".bz2", ".xz", ".lz4", ".br", ".snappy", ".Z"})  # file endings of compression programs
_TARS = frozenset({".tgz", ".tbz", ".tbz2", ".txz", ".tzst", ".tlz4"})  # short forms of these after `.tar`


def compression(head: bytes) -> str:
    """Names the compression of a file that begins with these bytes, or ""."""
    found = next((name for magic, name in _MAGICS.items() if head.startswith(magic)), "")
    zlib = len(head) > 1 and head[0] == 0x78 and int.from_bytes(head[:2], "big") % 31 == 0
    return found or ("zlib" if zlib else "")


def unpacked_name(name: str) -> str:
    """Returns the name that a file had before compression, by its ending; else ""."""
    stem, ending = os.path.splitext(name)
    return stem if ending in _ENDINGS else f"{stem}.tar" if ending in _TARS else ""


def unpacking_help(how: str) -> str:
    """Suggests the `compression` that reads these files."""
    return f"`compression: {how}` reads them; uncompressed files are read in any order, and faster"


def tallied(seen: Iterable[tuple[str, str]]) -> dict[str, tuple[int, str]]:
    """Counts pairs of kind and name by kind, keeping the first name."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for kind, name in seen:
        counts[kind] += 1
        first.setdefault(kind, name)
    return {kind: (number, first[kind]) for kind, number in counts.items()}


def finding_notes(found: Iterable[tuple[str, Findings]], field: str = "path") -> Iterator[Note]:
    """Yields one note per kind; `found` has the path of each file and its findings."""
    totals: Counter[str] = Counter()
    first: dict[str, str] = {}
    for path, findings in found:
        for kind, (number, name) in findings.items():
            totals[kind] += number
            first.setdefault(kind, f"{name!r} in {path!r}" if name else repr(path))
    for kind, (text, help_, code, severity) in KINDS.items():
        if kind in totals:
            number = totals[kind]
            said = _FORMS.sub(lambda form: form[1 if number == 1 else 2], text)  # noqa: B023 - called at once
            message = f"{number:,} {said}: {'' if number == 1 else 'such as '}{first[kind]}"
            yield Note(code, message, help_ or None, field, severity)
