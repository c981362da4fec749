"""Containers that end early, or are damaged in their structure: nothing of them is left out without a finding."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import random
import struct
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from record_files import WRITERS, examples

from pipegen.errors import OpError
from pipegen.ops.registry import sources
from pipegen.ops.sources.shards.findings import KINDS
from pipegen.ops.sources.shards.tar_headers import tar_members

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipegen.ops.sources.shards.members import Members

FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def packed(form: str, *, long: bool = False, mtime: float = 0, count: int = 9, padded: bool = True) -> bytes:
    """An archive of files of 1 to about 2,000 bytes, some with names that do not fit into a header of ustar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=FORMS[form]) as archive:
        for i in range(count):
            folder = "deep/" * 40 if long and i % 2 and form != "ustar" else "deep/" * 15 if long else ""
            info = tarfile.TarInfo(f"{folder}a/{i:04}.png")
            info.size, info.mtime = 1 + i * 233, mtime + i  # type: ignore[assignment]
            archive.addfile(info, io.BytesIO(bytes([i + 1]) * info.size))
        end = archive.offset
    return stream.getvalue() if padded else stream.getvalue()[: end + 1024]


VARIANTS = {
    "ustar": packed("ustar"), "ustar, prefixes": packed("ustar", long=True), "gnu": packed("gnu"), "gnu, long": packed("gnu", long=True),
    "pax": packed("pax"), "pax, times": packed("pax", mtime=0.5), "pax, long": packed("pax", long=True, mtime=0.5),
}  # fmt: skip


def blocks(content: bytes) -> Iterator[int]:
    """The places of all headers, those of extended ones as well, as GNU tar finds them."""
    at = 0
    while content[at] or content[at : at + 512].strip(b"\0"):
        yield at
        at += 512 + (int(content[at + 124 : at + 135], 8) + 511 & -512)


def found(path: Path, content: bytes) -> tuple[list[tuple[str, int, int]], bool]:
    """What is listed of an archive, and whether anything is said of it."""
    path.write_bytes(content)
    members, damage = tar_members(str(path), len(content))
    return in_rows(members), bool(damage) or any(KINDS[kind].severity != "info" for kind, _ in members.seen)


def in_rows(members: Members) -> list[tuple[str, int, int]]:
    return [*zip(members.names, members.offsets.tolist(), members.lengths.tolist(), strict=True)]


def check(path: Path, whole: bytes, cases: Iterator[tuple[str, bytes]]) -> int:
    """Lists damaged archives; returns how many there were."""
    listed, said = found(path, whole)
    assert not said
    assert listed
    number = 0
    for case, damaged in cases:
        rows, told = found(path, damaged)
        assert told or rows == listed, case
        number += 1
    return number


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_whole_archive_is_what_the_standard_library_lists(tmp_path: Path, variant: str) -> None:
    rows, said = found(tmp_path / "a.tar", VARIANTS[variant])
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert rows == [(one.name, one.offset_data, one.size) for one in archive if one.isreg()]
    assert not said


def flipped(content: bytes, bits: range | list[int], every: int = 1) -> Iterator[tuple[str, bytes]]:
    """With `every`, of each header each so many bytes, and of the next header those behind them."""
    for number, header in enumerate(blocks(content)):
        for place in range(header + number % every, header + 512, every):
            for bit in bits:
                damaged = bytearray(content)
                damaged[place] ^= 1 << (bit + place) % 8
                yield f"byte {place - header} of the header at {header}, bit {(bit + place) % 8}", bytes(damaged)


@pytest.mark.nightly
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_flipped_bit_in_a_header_of_a_tar_archive_is_found(tmp_path: Path, variant: str) -> None:
    assert check(tmp_path / "a.tar", VARIANTS[variant], flipped(VARIANTS[variant], [0], 5)) > 900


@pytest.mark.nightly
@pytest.mark.parametrize("variant", VARIANTS)
def test_each_flipped_bit_in_a_header_of_a_tar_archive_is_found(tmp_path: Path, variant: str) -> None:
    assert check(tmp_path / "a.tar", VARIANTS[variant], flipped(VARIANTS[variant], range(8))) > 36_000


def zeroed(content: bytes, size: int) -> Iterator[tuple[str, bytes]]:
    for begin in sorted({header // size * size for header in blocks(content)}):
        damaged = bytearray(content)
        damaged[begin : begin + size] = bytes(len(damaged[begin : begin + size]))
        yield f"{size} bytes from {begin} on", bytes(damaged)


@pytest.mark.parametrize("size", [512, 4096])
@pytest.mark.parametrize("variant", VARIANTS)
def test_headers_of_a_tar_archive_that_were_overwritten_by_zeros_are_found(tmp_path: Path, variant: str, size: int) -> None:
    # The members in the last sector may end the archive where they are zeros: no format could tell, and the page of sources says so.
    cases = [*zeroed(VARIANTS[variant], size)]
    assert check(tmp_path / "a.tar", VARIANTS[variant], iter(cases[:-1] if size > 512 else cases)) >= 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_tar_archive_that_was_cut_anywhere_is_found(tmp_path: Path, variant: str) -> None:
    content = VARIANTS[variant]
    end = len(content.rstrip(b"\0")) + 511 & -512
    cuts = sorted({*range(0, end + 1, 512), *range(1, end, 509)})
    assert check(tmp_path / "a.tar", content, ((f"cut at {cut}", content[:cut]) for cut in cuts)) > 30
    for cut in range(0, end + 1, 512):
        assert found(tmp_path / "a.tar", content[:cut])[1], cut


def test_one_empty_block_ends_a_tar_archive_at_the_end_of_the_file_alone(tmp_path: Path) -> None:
    whole = packed("ustar", padded=False)
    listed, _ = found(tmp_path / "a.tar", whole)
    assert found(tmp_path / "a.tar", whole[:-512]) == (listed, False)
    assert found(tmp_path / "a.tar", whole[:-512] + b"x" * 512)[1]
    assert found(tmp_path / "a.tar", whole + bytes(9728)) == (listed, False)
    assert found(tmp_path / "a.tar", whole + bytes(10240)) == (listed, True)


def test_a_second_archive_behind_the_end_of_a_tar_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(packed("ustar") + packed("pax", count=3))
    members, damage = tar_members(str(path), path.stat().st_size)
    assert (len(members.names), damage, [kind for kind, _ in members.seen]) == (9, "", ["joined"])
    for behind in (b"\1", b"signature" * 100, bytes(600) + b"x"):
        assert found(path, packed("gnu") + behind)[1]


def test_sizes_that_octal_digits_cannot_hold_are_read_as_the_standard_library_reads_them(tmp_path: Path) -> None:
    for form, how in (("gnu", lambda info: info.tobuf(tarfile.GNU_FORMAT)), ("pax", lambda info: info.tobuf(tarfile.PAX_FORMAT))):
        info = tarfile.TarInfo("large.bin")
        info.size = 9 << 30
        header = how(info)
        path = tmp_path / f"{form}.tar"
        with path.open("wb") as stream:
            stream.write(header)
            stream.truncate(len(header) + info.size)
            stream.seek(0, 2)
            stream.write(packed("ustar"))
        members, damage = tar_members(str(path), path.stat().st_size)
        with tarfile.open(path) as archive:
            assert in_rows(members) == [(one.name, one.offset_data, one.size) for one in archive]
        assert (len(members.names), damage) == (10, "")


def test_members_of_every_type_are_used_or_told(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a/0.png", "a/1.png"):
            info = tarfile.TarInfo(name)
            info.size = 4
            archive.addfile(info, io.BytesIO(name[:4].encode()))
        for kind, name, target in (
            (tarfile.LNKTYPE, "b/hard.png", "a/0.png"), (tarfile.SYMTYPE, "b/soft.png", "../a/1.png"), (tarfile.LNKTYPE, "c", "b/soft.png"),
            (tarfile.SYMTYPE, "b/long.png", "../" * 20 + "a/1.png"), (tarfile.SYMTYPE, "b/etc.png", "/etc/passwd"),
            (tarfile.SYMTYPE, "d", "a"), (tarfile.SYMTYPE, "in.png", "d/0.png"), (tarfile.SYMTYPE, "x", "y"), (tarfile.SYMTYPE, "y", "x"),
            (tarfile.LNKTYPE, "l", "none"), (tarfile.FIFOTYPE, "pipe", ""), (tarfile.CHRTYPE, "device", ""),
            (b"N", "unknown", ""), (tarfile.DIRTYPE, "e", ""),
        ):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    path = tmp_path / "a.tar"
    path.write_bytes(stream.getvalue())
    members, damage = tar_members(str(path), path.stat().st_size)
    own = {name: (offset, length) for name, offset, length in in_rows(members)}
    first, second = own["a/0.png"], own["a/1.png"]
    assert own == {"a/0.png": first, "a/1.png": second, "b/hard.png": first, "b/soft.png": second, "c": second, "in.png": first}
    told = {(kind, name) for kind, name in members.seen}
    assert told == {
        ("link", "b/long.png"), ("link", "b/etc.png"), ("folder link", "d"), ("link", "x"), ("link", "y"), ("link", "l"),
        ("special", "pipe"), ("special", "device"), ("special", "unknown"),
    }  # fmt: skip
    assert damage == ""


def test_sparse_members_are_told_and_those_behind_them_are_read(tmp_path: Path) -> None:
    header = bytearray(tarfile.TarInfo("holes.bin").tobuf(tarfile.GNU_FORMAT))
    header[156:157], header[124:135], header[482] = b"S", b"00000001000", 1
    header[148:156] = b"        "
    header[148:155] = b"%06o\0" % sum(header)
    path = tmp_path / "a.tar"
    path.write_bytes(bytes(header) + bytes(512) + b"x" * 512 + packed("ustar"))
    members, damage = tar_members(str(path), path.stat().st_size)
    with tarfile.open(path) as archive:
        assert in_rows(members) == [(one.name, one.offset_data, one.size) for one in archive if not one.issparse()]
    assert (len(members.names), damage, members.seen) == (9, "", (("sparse", "holes.bin"),))


@pytest.mark.parametrize("content", [b"1 path=a\n", b"99 path=a\n", b"x path=a\n", b"10 path=a", bytes(20), b"12 size=abc\n"])
def test_a_damaged_extended_header_is_found(tmp_path: Path, content: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = b"x", len(content)
    path = tmp_path / "a.tar"
    rows, told = found(path, info.tobuf(tarfile.USTAR_FORMAT) + content.ljust(512, b"\0") + packed("ustar"))
    assert (rows, told) == ([], True)


def test_checksums_of_old_writers_add_bytes_with_a_sign(tmp_path: Path) -> None:
    header = bytearray(tarfile.TarInfo("caf\udce9.png").tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape"))
    header[148:155] = b"%06o\0" % (int(header[148:154], 8) - 256)
    rows, told = found(tmp_path / "a.tar", bytes(header) + bytes(1024))
    assert (rows, told) == ([("caf\udce9.png", 512, 0)], False)


# Sources of every container that pipegen indexes itself

FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}


def indexed(path: Path, op: str, content: bytes, **arguments: Any) -> tuple[list[Any], bool]:
    """The places of the records of a file, and whether anything is said of it."""
    path.write_bytes(content)
    source: Any = sources()[op](path=path.name, features=FEATURES, **arguments)
    try:
        records = source.index_shard(str(path), len(content))
    except OpError:
        return [], True
    said = bool(records.damage) or any(KINDS[kind].severity != "info" for kind in records.findings)
    return [records.offsets.tolist(), records.lengths.tolist()], said


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def whole_of(path: Path, op: str) -> bytes:
    found: bytes = WRITERS[op](path, examples(3, 12)).read_bytes()
    return found


def damaged(content: bytes, draw: random.Random, number: int) -> Iterator[tuple[str, bytes]]:
    """Cuts, single bits, zeroed sectors and bytes behind."""
    for _ in range(number):
        place = draw.randrange(len(content))
        yield f"cut at {place}", content[:place]
        flipped = bytearray(content)
        flipped[place] ^= 1 << draw.randrange(8)
        yield f"bit of byte {place}", bytes(flipped)
        begin = place & -512
        yield f"zeros from {begin} on", content[:begin] + bytes(len(content[begin : begin + 512])) + content[begin + 512 :]
        yield f"{place} bytes behind", content + draw.randbytes(1 + place % 600)
    yield "twice", content * 2


CONTAINERS: dict[str, tuple[str, dict[str, Any]]] = {
    "tfrecord": ("tfrecord", {}), "tfrecord, gzip": ("tfrecord", {"compression": "gzip"}), "webdataset": ("webdataset", {}),
    "zip": ("zip", {}), "mds": ("mds", {}),
}  # fmt: skip


def check_damages(tmp_path: Path, name: str, number: int) -> None:
    op, arguments = CONTAINERS[name]
    content = whole_of(tmp_path / "whole", op)
    content = gzipped(content) if arguments else content
    path = tmp_path / "damaged"
    listed, said = indexed(path, op, content, **arguments)
    assert not said
    assert len(listed[0]) == 12
    for case, other in damaged(content, random.Random(5), number):
        records, told = indexed(path, op, other, **arguments)
        if name == "tfrecord" and case.startswith("cut") and len(other) in {offset - 12 for (offset,) in listed[0]}:
            continue  # between two records, which the format cannot tell
        # What a payload holds, no index knows: a record more or less it does.
        assert told or len(records[0]) >= 12, (name, case)
        if "behind" in case or case == "twice":
            assert told or (op == "tfrecord" and case == "twice" and len(records[0]) == 24), (name, case)


@pytest.mark.parametrize("name", CONTAINERS)
def test_no_record_of_a_damaged_container_is_left_out_in_silence(tmp_path: Path, name: str) -> None:
    check_damages(tmp_path, name, 60)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CONTAINERS)
def test_no_record_of_a_container_that_is_damaged_in_any_way_is_left_out_in_silence(tmp_path: Path, name: str) -> None:
    check_damages(tmp_path, name, 1500)


def test_gzip_is_read_to_its_checksum_and_its_length(tmp_path: Path) -> None:
    plain = whole_of(tmp_path / "whole", "tfrecord")
    packed, path = gzipped(plain), tmp_path / "a"
    half = len(plain) // 2
    assert indexed(path, "tfrecord", gzip.compress(plain[:half]) + gzip.compress(plain[half:]), compression="gzip")[1] is False
    for case in (packed[:-1], packed[:-4], packed[:-8], packed[:-8] + bytes(8), packed[:-4] + b"abcd", packed + b"more", b"", packed[:1]):
        assert indexed(path, "tfrecord", case, compression="gzip")[1], case[-10:]
    assert indexed(path, "tfrecord", packed + bytes(512), compression="gzip")[1] is False  # zeros, as tapes pad it


COMPRESSED = {
    "gzip": gzip.compress, "zlib": zlib.compress, "bzip2": bz2.compress, "xz": lzma.compress,
    "zstd": lambda b: b"\x28\xb5\x2f\xfd" + b[::-1], "lz4": lambda b: b"\x04\x22\x4d\x18" + b[::-1],
}  # fmt: skip


@pytest.mark.by_day(16)
@pytest.mark.parametrize(
    ("op", "how"),
    [
        pytest.param(op, how, marks=[pytest.mark.nightly] * (op == "lmdb" and how not in ("gzip", "zstd")))  # each opened in a process
        for op in ("webdataset", "mds", "tfrecord", "zip", "array_record", "arrow", "sqlite", "hdf5", "lmdb")
        for how in COMPRESSED
    ],
)
def test_a_compressed_container_is_said_to_be_compressed_and_not_damaged(tmp_path: Path, op: str, how: str) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(COMPRESSED[how](whole_of(tmp_path / "whole", op) if op in ("webdataset", "mds", "tfrecord", "zip") else bytes(9999)))
    source: Any = sources()[op](path=path.name, features=FEATURES)
    with pytest.raises(OpError, match="compressed") as error:
        source.list(tmp_path)
    assert error.value.code == "PG430"
    assert "damaged" not in error.value.message


@pytest.mark.parametrize(("op", "ending", "packed"), [
    ("webdataset", ".tar", ".tar.gz"), ("webdataset", ".tar", ".tgz"), ("webdataset", ".tar", ".tar.zst"), ("webdataset", ".tar", ".tzst"),
    ("mds", ".mds", ".mds.zstd"), ("mds", ".mds", ".mds.gz"), ("zip", ".zip", ".zip.xz"), ("tfrecord", ".tfrecord", ".tfrecord.zst"),
])  # fmt: skip
def test_a_folder_of_compressed_shards_says_so(tmp_path: Path, op: str, ending: str, packed: str) -> None:
    """Also by a pattern, and beside what an index says of the shards as they are unpacked."""
    write(tmp_path / f"a{ending}", op)
    raw = {"basename": f"a{ending}", "bytes": (tmp_path / f"a{ending}").stat().st_size, "hashes": {}}
    shard = {"raw_data": raw, "samples": 3, "zip_data": raw | {"basename": f"a{packed}"}, "compression": "zstd"}
    (tmp_path / "index.json").write_text(json.dumps({"version": 2, "shards": [shard]}))
    (tmp_path / f"a{packed}").write_bytes(COMPRESSED["zstd"]((tmp_path / f"a{ending}").read_bytes()))
    (tmp_path / f"a{ending}").unlink()
    for path in (".", f"a{packed}", f"*{packed}"):
        with pytest.raises(OpError, match="1 file is compressed as a whole") as error:
            listed_codes(tmp_path, path, op)
        assert error.value.code == "PG430"


def test_a_folder_of_tfrecord_files_is_read_as_its_compression_says(tmp_path: Path) -> None:
    write(tmp_path / "whole", "tfrecord")
    (tmp_path / "a.tfrecord.gz").write_bytes(gzipped((tmp_path / "whole").read_bytes()))
    for path in (".", "*.gz"):
        with pytest.raises(OpError, match="compressed by gzip") as error:
            listed_codes(tmp_path, path)
        assert error.value.help is not None
        assert "`compression: gzip`" in str(error.value.help)
        source: Any = sources()["tfrecord"](path=path, compression="gzip", features=FEATURES)
        assert source.list(tmp_path).shards.rows.tolist() == [3]


def zip_of(*names: str, streamed: bool = False, comment: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(_Pipe(stream) if streamed else stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, name.encode() * 50)
        archive.comment = comment
    return stream.getvalue()


class _Pipe(io.RawIOBase):
    """A stream that cannot go back, so that sizes stand behind members."""

    def __init__(self, stream: io.BytesIO) -> None:
        self.stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self.stream.write(content)


NAMES = [f"{i}.{key}" for i in range(8) for key in ("image", "label")]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("comment", [b"", b"about" * 9])
def test_a_whole_zip_archive_is_found_whole(tmp_path: Path, streamed: bool, comment: bytes) -> None:
    whole = zip_of(*NAMES, streamed=streamed, comment=comment)
    for content in (whole, b"#!/bin/sh\n" + whole):  # a program in front unpacks the archive
        records, said = indexed(tmp_path / "a.zip", "zip", content)
        assert (len(records[0]), said) == (8, False)


@pytest.mark.parametrize("each", [5, pytest.param(1, marks=pytest.mark.nightly)])  # by day a bit or two of each byte
def test_every_bit_of_the_structure_of_a_zip_archive_is_compared(tmp_path: Path, each: int) -> None:
    whole = zip_of(*NAMES[:4])
    listed, _ = indexed(tmp_path / "a.zip", "zip", whole)
    begin = whole.index(b"PK\1\2")
    local = {
        place
        for member in zipfile.ZipFile(io.BytesIO(whole)).infolist()
        for place in range(member.header_offset, member.header_offset + 37)
    }
    for place, bit in [*itertools.product(sorted(local | set(range(begin, len(whole)))), range(8))][::each]:
        content = bytearray(whole)
        content[place] ^= 1 << bit
        records, said = indexed(tmp_path / "a.zip", "zip", bytes(content))
        assert said or records == listed, (place - begin, bit)


def test_members_that_the_table_of_a_zip_archive_does_not_list_are_told(tmp_path: Path) -> None:
    whole = zip_of(*NAMES)
    end = whole.rindex(b"PK\5\6")
    table = [member.header_offset for member in zipfile.ZipFile(io.BytesIO(whole)).infolist()]
    assert len(table) == 16
    begin = struct.unpack_from("<I", whole, end + 16)[0]
    entries = [b"PK\1\2" + entry for entry in whole[begin:end].split(b"PK\1\2")[1:]]
    for dropped in (range(1), range(14, 16), range(4, 8)):
        kept = b"".join(entry for i, entry in enumerate(entries) if i not in dropped)
        tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 16 - len(dropped), 16 - len(dropped), len(kept), begin, 0)
        assert indexed(tmp_path / "a.zip", "zip", whole[:begin] + kept + tail)[1], dropped
        assert indexed(tmp_path / "a.zip", "zip", whole[:begin] + kept + whole[end:])[1], dropped
    assert indexed(tmp_path / "a.zip", "zip", whole + zip_of("x.image", "x.label"))[1]
    assert indexed(tmp_path / "a.zip", "zip", whole + b"behind")[1]
    assert indexed(tmp_path / "a.zip", "zip", whole + bytes(100))[1]


def test_links_in_a_zip_archive_are_the_files_that_they_lead_to(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a/0.image", b"picture")
        archive.writestr("a/0.label", b"1")
        for name, target in (("b/1.image", "../a/0.image"), ("b/1.label", "../a/0.label"), ("b/2.image", "gone"), ("c", "a")):
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o120777 << 16
            archive.writestr(info, target)
    source: Any = sources()["zip"](path="a.zip", features=FEATURES)
    records = source.index_shard(str(tmp_path / "a.zip"), (tmp_path / "a.zip").stat().st_size)
    assert records.offsets[:, :2].tolist() == [records.offsets[0, :2].tolist()] * 2
    assert records.findings == {"link": (1, "b/2.image"), "folder link": (1, "c")}


# Sets of shards


def listed_codes(folder: Path, path: object, op: str = "tfrecord") -> list[str]:
    source: Any = sources()[op](path=path, features=FEATURES)
    return [note.code for note in source.list(folder).notes]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("op", ["tfrecord", "webdataset", "zip", "mds", "parquet"])
def test_a_set_of_shards_that_name_their_number_is_whole(tmp_path: Path, op: str, first: int) -> None:
    ending = {"webdataset": "tar"}.get(op, op)
    for i in range(first, first + 4):
        write(tmp_path / f"train-{i:05}-of-00004.{ending}", op)
    (tmp_path / f"train-{first + 2:05}-of-00004.{ending}").rename(tmp_path / ".lost")
    for path in (".", f"*.{ending}", f"train-*-of-00004.{ending}"):
        with pytest.raises(OpError, match=rf"1 of 4 shards is missing in .*train-0000{first + 2}-of-00004\.{ending}'") as error:
            listing(tmp_path, op, path)
        assert error.value.code == "PG401"
    named = [f"train-{i:05}-of-00004.{ending}" for i in range(first, first + 4) if i != first + 2]
    listing(tmp_path, op, named)
    listing(tmp_path, op, named[0])
    listing(tmp_path, op, f"train-{{{first:05}..{first + 1:05}}}-of-00004.{ending}")
    listing(tmp_path, op, f"train-0000[{first}{first + 1}]-of-00004.{ending}")  # a pattern that would not match what is missing
    (tmp_path / ".lost").rename(tmp_path / f"train-{first + 2:05}-of-00004.{ending}")
    listing(tmp_path, op, ".")


def write(path: Path, op: str) -> None:
    if op == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"image": ["a.png"], "label": [1]}), path)
    else:
        WRITERS[op](path, examples(0, 3))


def listing(folder: Path, op: str, path: object) -> None:
    if op == "parquet":
        (folder / "a.png").touch()
        sources()[op].model_validate({"path": path, "features": {"image": {"kind": "image"}}}).list(folder)  # type: ignore[attr-defined]
    else:
        listed_codes(folder, path, op)


@pytest.mark.parametrize(
    "names",
    [
        ["a-00000-of-00001", "a-00000-of-00002", "a-00001-of-00002"],
        ["a-0-of-2", "a-00000-of-00002", "a-00001-of-00002"],
        ["a-00000-of-00002", "a-00001-of-00002", "a-00002-of-00002"],
    ],
)
def test_shards_of_different_sets_do_not_go_together(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        write(tmp_path / f"{name}.tfrecord", "tfrecord")
    with pytest.raises(OpError) as error:
        listed_codes(tmp_path, ".")
    assert error.value.code == "PG663"
    assert listed_codes(tmp_path, [f"{name}.tfrecord" for name in names]) == []


def test_sets_in_folders_of_their_own_and_of_names_of_their_own_are_apart(tmp_path: Path) -> None:
    for name in ("a/x-00000-of-00001", "b/x-00000-of-00002", "b/x-00001-of-00002", "b/y-0-of-1", "b/best-of-10"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / f"{name}.tfrecord", "tfrecord")
    assert listed_codes(tmp_path, ".") == []
    write(tmp_path / "b/z-0-of-99999999999.tfrecord", "tfrecord")
    with pytest.raises(OpError, match=r"of 99,999,999,999 shards are missing"):
        listed_codes(tmp_path, ".")


def test_what_lies_beside_shards_in_a_folder_is_told(tmp_path: Path) -> None:
    write(tmp_path / "a.tar", "webdataset")
    assert listed_codes(tmp_path, ".", "webdataset") == []
    (tmp_path / "notes.txt").touch()
    (tmp_path / "@eaDir").mkdir()
    write(tmp_path / "@eaDir" / "b.tar", "webdataset")
    source: Any = sources()["webdataset"](path=".", features=FEATURES)
    (note,) = source.list(tmp_path).notes
    assert note.code == "PG411"
    assert "1 file whose names do not end in .tar ('notes.txt')" in note.message
    assert "1 hidden entry ('@eaDir')" in note.message
    (tmp_path / "b.tar.gz").write_bytes(b"")
    assert next((n.code, n.severity) for n in source.list(tmp_path).notes) == ("PG430", "error")
    write(tmp_path / "b.tar", "webdataset")
    assert [n.code for n in source.list(tmp_path).notes] == ["PG411"]  # it is there unpacked
    (tmp_path / "c.tar").symlink_to(tmp_path / "gone.tar")
    for path in (".", "*.tar"):
        with pytest.raises(OpError, match="1 broken link to shards") as error:
            listed_codes(tmp_path, path, "webdataset")
        assert error.value.code == "PG401"


def index_of(folder: Path, samples: int = 3) -> list[dict[str, Any]]:
    shards = []
    for path in sorted(folder.glob("*.mds")):
        raw = {"basename": path.name, "bytes": path.stat().st_size, "hashes": {}}
        shards.append({"raw_data": raw, "samples": samples, "zip_data": None, "compression": None})
    return shards


def test_shards_of_mds_are_those_that_their_index_lists(tmp_path: Path) -> None:
    for i in range(4):
        write(tmp_path / f"shard.{i:05}.mds", "mds")
    index = tmp_path / "index.json"

    def notes(path: object = ".") -> list[tuple[str, str | None]]:
        source: Any = sources()["mds"](path=path, features=FEATURES)
        return [(note.code, note.severity) for note in source.list(tmp_path).notes if "index.json')" not in note.message]

    shards = index_of(tmp_path)
    index.write_text(json.dumps({"version": 2, "shards": shards}))
    assert notes() == []
    index.write_text(json.dumps({"version": 2, "shards": shards[:3]}))
    assert notes() == [("PG411", "warning")]
    for changed in ({"samples": 4}, {"raw_data": {"basename": "shard.00000.mds", "bytes": 1}}):
        index.write_text(json.dumps({"version": 2, "shards": [shards[0] | changed, *shards[1:]]}))
        assert notes() == [("PG430", "error")]
    for text in ("", json.dumps({"version": 2, "shards": shards})[:-5], "[]", '{"shards": [{}]}'):
        index.write_text(text)
        assert notes() == [("PG430", "error")]
    index.write_text(json.dumps({"version": 2, "shards": shards}))
    (tmp_path / "shard.00002.mds").unlink()
    for path in (".", "*.mds"):
        with pytest.raises(OpError, match=r"1 of 4 shards listed in .*index\.json' is missing: 'shard\.00002\.mds'") as error:
            notes(path)
        assert error.value.code == "PG401"
    assert notes("shard.{00000..00001}.mds") == []


@pytest.mark.parametrize("kept", [False, True], ids=["indexed", "index kept"])
@pytest.mark.parametrize("at", [0, 4, 80, 200])
def test_labels_of_a_damaged_shard_are_a_finding(tmp_path: Path, at: int, kept: bool) -> None:
    """Labels whose classes the spec does not say are read when the data is listed, also where an index that was kept hides the damage."""
    features = {"image": {"kind": "image"}, "label": {"kind": "label"}}
    source: Any = sources()["mds"](path=str(tmp_path / "data"), features=features)
    source.keep_index_in(tmp_path / "kept")
    for i in range(2):
        write(tmp_path / "data" / f"shard.{i:05}.mds", "mds")
    path = tmp_path / "data" / "shard.00001.mds"
    about, content = path.stat(), path.read_bytes()
    if kept:
        source.list(tmp_path)
        for labels in (tmp_path / "kept").glob("*-labels.*"):
            labels.unlink()
    path.write_bytes(content[:at] + b"\xff" * 8 + content[at + 8 :])
    if kept:
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    try:
        found = [(note.code, note.message) for note in source.list(tmp_path).notes if note.severity == "error"]
    except OpError as error:
        found = [(error.code, error.message)]
    assert [code for code, message in found if "shard.00001.mds" in message] == ["PG430"]


# Members that no record uses


@pytest.mark.parametrize("op", ["webdataset", "zip"])
def test_records_whose_names_have_a_dot_are_counted_and_not_dropped(tmp_path: Path, op: str) -> None:
    names = [f"photo{i}{'.0mm' if i % 2 else ''}" for i in range(10)]
    pack(tmp_path / f"a.{op}", op, {f"{name}.{key}": b"1" for name in names for key in ("image", "label")})
    source: Any = sources()[op](path=f"a.{op}", features=FEATURES)
    listing = source.list(tmp_path)
    (note,) = listing.notes
    assert (listing.shards.rows.tolist(), note.code, note.severity) == ([5], "PG431", "error")
    assert note.message.startswith("5 records have none of the keys, since their names have a dot: such as 'photo1.0mm.image' in ")
    assert "starts at the first dot" in str(note.help)
    pack(tmp_path / f"b.{op}", op, {f"{name}.0mm.{key}": b"1" for name in names for key in ("image", "label")})
    with pytest.raises(OpError, match="10 records have none of the keys, since their names have a dot"):
        sources()[op].model_validate({"path": f"b.{op}", "features": FEATURES}).list(tmp_path)  # type: ignore[attr-defined]


@pytest.mark.parametrize("op", ["webdataset", "zip"])
def test_every_other_member_is_counted(tmp_path: Path, op: str) -> None:
    names = ["0.image", "0.label", "0.extra", "1.png", "about.json", "README", ".hidden.image"]
    names += ["@eaDir/2.image", "cat/#recycle/3.image", "$RECYCLE.BIN/4.label"]
    pack(tmp_path / "a", op, dict.fromkeys(names, b"1"))
    source: Any = sources()[op](path="a", features=FEATURES)
    listing = source.list(tmp_path)
    assert listing.shards.rows.tolist() == [1]
    assert [(note.code, note.severity, note.message.partition(":")[0]) for note in listing.notes] == [
        ("PG411", "warning", "2 records have none of the keys and are ignored"),
        ("PG411", "info", "1 member has no key in its name and is ignored"),
        ("PG411", "info", "4 system files are ignored"),
    ]


def pack(path: Path, op: str, members: dict[str, bytes]) -> None:
    if op == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def test_what_was_found_in_a_shard_is_kept_with_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tmp_path / "a.tar", "webdataset", {"0.image": b"", "0.label": b"1", "1.0.image": b"", "README": b""})
    source: Any = sources()["webdataset"](path="a.tar", features=FEATURES)
    source.keep_index_in(tmp_path / "kept")
    first = source.list(tmp_path).notes
    monkeypatch.setattr(type(source), "index_shard", None)
    assert source.list(tmp_path).notes == first
    assert len(first) == 2
    monkeypatch.setattr("pipegen.ops.sources.records.index.FORMAT", 99)  # what an earlier version kept is not asked
    with pytest.raises(TypeError):
        source.list(tmp_path)
