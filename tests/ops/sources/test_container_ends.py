"""Containers that end early, or are damaged in their structure: nothing of them is left out without a finding."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.ops.sources.records.findings import KINDS
from pipegen.ops.sources.records.tar_headers import tar_members

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipegen.ops.sources.records.members import Members

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
    for number, (case, damaged) in enumerate(cases, 1):
        rows, told = found(path, damaged)
        assert told or rows == listed, case
    return number


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_whole_archive_is_what_the_standard_library_lists(tmp_path: Path, variant: str) -> None:
    rows, said = found(tmp_path / "a.tar", VARIANTS[variant])
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert rows == [(one.name, one.offset_data, one.size) for one in archive if one.isreg()]
    assert not said


def flipped(content: bytes, bits: range | list[int], every: int = 1) -> Iterator[tuple[str, bytes]]:
    for header in blocks(content):
        for place in range(header, header + 512, every):
            for bit in bits:
                damaged = bytearray(content)
                damaged[place] ^= 1 << (bit + place) % 8
                yield f"byte {place - header} of the header at {header}, bit {(bit + place) % 8}", bytes(damaged)


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
    assert (len(members), damage, [kind for kind, _ in members.seen]) == (9, "", ["joined"])
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
        assert (len(members), damage) == (10, "")


def test_members_of_every_type_are_used_or_told(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a/0.png", "a/1.png"):
            info = tarfile.TarInfo(name)
            info.size = 4
            archive.addfile(info, io.BytesIO(name[:4].encode()))
        for kind, name, target in (
            (tarfile.LNKTYPE, "b/hard.png", "a/0.png"), (tarfile.SYMTYPE, "b/soft.png", "../a/1.png"), (tarfile.LNKTYPE, "c", "b/soft.png"),
            (tarfile.SYMTYPE, "b/long.png", "../" * 20 + "a/1.png"), (tarfile.SYMTYPE, "b/etc.png", "/etc/passwd"), (tarfile.SYMTYPE, "d", "a"),
            (tarfile.SYMTYPE, "in.png", "d/0.png"), (tarfile.SYMTYPE, "x", "y"), (tarfile.SYMTYPE, "y", "x"), (tarfile.LNKTYPE, "l", "none"),
            (tarfile.FIFOTYPE, "pipe", ""), (tarfile.CHRTYPE, "device", ""), (b"N", "unknown", ""), (tarfile.DIRTYPE, "e", ""),
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
        ("link", "b/long.png"), ("link", "b/etc.png"), ("folder link", "d"), ("link", "x"), ("link", "y"), ("link", "l"), ("special", "pipe"),
        ("special", "device"), ("special", "unknown"),
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
    assert (len(members), damage, members.seen) == (9, "", (("sparse", "holes.bin"),))


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


