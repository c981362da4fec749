"""Archives and shards of every mapped format: where their records are, and what is said of damaged ones."""

from __future__ import annotations

import io
import random
import re
import tarfile
import zipfile
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import WRITERS, examples, write_mds, write_tar, write_tfrecord, write_zip

from pipegen.errors import OpError, SpecError
from pipegen.ops.fields.strings import Strings
from pipegen.ops.registry import sources
from pipegen.ops.sources.shards.members import unpacked_member
from pipegen.ops.sources.shards.tar_headers import tar_members
from pipegen.ops.sources.shards.zip_directory import zip_members
from pipegen.ops.sources.webdataset import MemberNames
from pipegen.phases.compilation import collect_data, load

if TYPE_CHECKING:
    from pathlib import Path

FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}
SUFFIX = {"tfrecord": "tfrecord", "webdataset": "tar", "zip": "zip", "mds": "mds"}


def source(op: str, path: str = ".", **features: Any) -> Any:
    return sources()[op](path=path, features=FEATURES | features)


@pytest.mark.parametrize("op", SUFFIX)
def test_records_and_their_labels_are_found(tmp_path: Path, op: str) -> None:
    for shard, n in enumerate((3, 5)):
        WRITERS[op](tmp_path / f"{shard}.{SUFFIX[op]}", examples(shard, n))
    listing = source(op).list(tmp_path)
    assert listing.shards.rows.tolist() == [3, 5]
    assert listing.reader().column("label", np.array([1, 0])).tolist() == [1, 2, 3, 0, 1, 0, 1, 2]
    named = source(op, label={"kind": "label", "key": "name"}).list(tmp_path)
    assert named.class_names == tuple(f"class {i}" for i in range(4))
    assert named.reader().column("label", np.array([1])).tolist() == [1, 2, 3, 0, 1]


@pytest.mark.parametrize("op", SUFFIX)
@pytest.mark.parametrize(
    "feature",
    [{"image": {"kind": "image", "key": "picture"}}, {"point": {"kind": "tensor", "shape": [3]}}, {"image": {"kind": "weight"}}],
    ids=["no such key", "another shape", "no number"],
)
def test_what_the_records_do_not_hold_is_told(tmp_path: Path, op: str, feature: dict[str, Any]) -> None:
    WRITERS[op](tmp_path / f"a.{SUFFIX[op]}", examples(0, 3))
    with pytest.raises(OpError) as error:
        source(op, **feature).list(tmp_path)
    (name,) = feature
    assert (error.value.code, (error.value.field or "").startswith(f"features.{name}")) == ("PG431", True)


@pytest.mark.parametrize("op", SUFFIX)
def test_no_damage_is_an_exception_of_another_library_or_a_place_outside(tmp_path: Path, op: str) -> None:
    whole = WRITERS[op](tmp_path / "whole", examples(1, 6)).read_bytes()
    path, draw, told = tmp_path / "damaged", random.Random(7), 0
    for case in range(150):
        damaged = bytearray(whole)
        if case % 3 == 0:
            del damaged[draw.randrange(len(whole)) :]
        else:
            for _ in range(draw.choice((1, 4, 64))):
                place = draw.randrange(len(whole))
                damaged[place] = 0 if case % 3 == 1 else damaged[place] ^ 1 << draw.randrange(8)
        path.write_bytes(damaged)
        found = source(op).index_shard(str(path), len(damaged))
        there = found.lengths >= 0
        assert found.offsets.shape == found.lengths.shape
        parts = slice(0, len(FEATURES)) if op in ("zip", "webdataset") else slice(None)
        ends = (found.offsets + found.lengths)[:, parts][there[:, parts]]
        assert (found.offsets[:, parts] >= 0).all()
        assert (ends <= len(damaged)).all()
        if found.damage:
            told += 1
            assert re.match(r"(at byte [\d,]+, (record|member) [\d,]+|behind member [\d,]+): \S", found.damage)
        elif case % 3 == 0:
            between = op == "tfrecord" and (not len(ends) or int(ends.max()) + 4 == len(damaged))
            assert between or len(found.offsets) == 6, "a file that is cut has to say so, if anything is missing, where it can know"
    assert told > 60 if op != "mds" else told > 50


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT], ids=["pax", "gnu", "ustar"])
@pytest.mark.parametrize("folder", ["", "a/", "deep/" * 40, "ü/"], ids=["none", "short", "long", "not ASCII"])
def test_tar_archives_are_those_of_the_standard_library(tmp_path: Path, form: int, folder: str) -> None:
    if form == tarfile.USTAR_FORMAT and len(folder) > 150:
        folder = "deep/" * 20  # what it can hold
    path = write_tar(tmp_path / "a.tar", examples(0, 4), folder=folder, form=form)
    members, damage = tar_members(str(path), path.stat().st_size)
    with tarfile.open(path) as archive:
        found = zip(members.names, members.offsets.tolist(), members.lengths.tolist(), strict=True)
        assert list(found) == [(i.name, i.offset_data, i.size) for i in archive.getmembers()]
    assert damage == ""
    size = path.stat().st_size
    assert tar_members(str(path), int(members.offsets[-1]))[1], "whichever way it is read"
    assert size


def test_members_that_lie_close_together_are_found_all_at_once(tmp_path: Path) -> None:
    draw, path = random.Random(5), tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for i in range(1500):
            info = tarfile.TarInfo(f"{'a/' * draw.randrange(3)}{i}.cls")
            info.size = draw.choice([0, 1, 511, 512, 513, draw.randrange(3000)])
            info.type = draw.choice([tarfile.REGTYPE, tarfile.AREGTYPE])
            # What looks like a header is none where it lies in a member.
            archive.addfile(info, io.BytesIO((tarfile.TarInfo("no").tobuf() * 6)[: info.size]))
    with tarfile.open(path) as archive:
        due = [(info.name, info.offset_data, info.size) for info in archive.getmembers()]
    content = bytearray(path.read_bytes())
    for at in (-1, 400, 1499, 1000):  # nothing, then a length that needs a look of its own, and one that is none
        if at >= 0:
            begin = due[at][1] - 512
            content[begin + 124 : begin + 136] = b"           " + b"7" if at == 400 else content[begin + 124 : begin + 135] + b"x"
            path.write_bytes(content)
        members, damage = tar_members(str(path), path.stat().st_size)
        found = list(zip(members.names, members.offsets.tolist(), members.lengths.tolist(), strict=True))
        until = len(due) if at < 0 else min(at, 400)
        assert found == due[:until]
        assert ("member 400: the checksum" in damage) == (at >= 0), damage
    for cut in draw.sample(range(due[399][1]), 60):
        members, damage = tar_members(str(path), cut)
        assert len(members.names) == sum(offset + length <= cut for _, offset, length in due[:400])
        assert "ends with" in damage


def zipped(path: Path, draw: random.Random) -> Path:
    """An archive with whatever one can have: folders, comments, extra fields, names in other letters, 64-bit fields, bytes before it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for i in range(draw.randrange(12)):
            name = "".join(draw.choice(["a", "b/", ".", "x.jpg", "ü", "嗚", "up"]) for _ in range(draw.randrange(1, 5)))
            info = zipfile.ZipInfo(name + draw.choice(["", "/"]))
            info.comment, info.compress_type = draw.choice([b"", b"note"]), draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            info.extra = draw.choice([b"", b"UT\5\0\1abcd"])
            with archive.open(info, "w", force_zip64=draw.random() < 0.5) as stream:
                stream.write(b"" if info.is_dir() else bytes(draw.randrange(3)) * i)
        archive.comment = draw.choice([b"", b"a comment"])
    content = made.getvalue()
    path.write_bytes(draw.choice([b"", b"#!/bin/sh"]) + content)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zip_archives_are_those_of_the_standard_library(tmp_path: Path) -> None:
    draw = random.Random(3)
    for case in range(60):
        path = zipped(tmp_path / f"{case}.zip", draw)
        members, damage = zip_members(str(path), path.stat().st_size)
        assert damage == ""
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in sorted(archive.infolist(), key=lambda info: info.header_offset) if not info.is_dir()]
            assert list(members.names) == [info.filename for info in infos]
            content = path.read_bytes()
            for info, offset, length, check in zip(infos, members.offsets, members.lengths, members.checks, strict=True):  # type: ignore[arg-type]
                assert unpacked_member(content[offset : offset + length], int(check)) == archive.read(info)
                assert (~check if check < 0 else check) & 0xFFFFFFFF == info.CRC


def test_a_large_archive_is_read_by_its_wider_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.txt", b"one")
        archive.start_dir = 5_000_000_000  # a hole, which takes no room
        for i in range(2, 70_000, 30_000):
            archive.writestr(f"{i}.txt", str(i))
    members, damage = zip_members(str(path), path.stat().st_size)
    assert (list(members.names), damage) == (["1.txt", "2.txt", "30002.txt", "60002.txt"], "")
    with path.open("rb") as stream:
        stream.seek(int(members.offsets[3]))
        assert stream.read(int(members.lengths[3])) == b"60002"


def test_a_name_that_begins_like_an_entry_of_the_table_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    names = ["PK\1\2" * 20, "a" + "PK\1\2" * 11, "b.txt"]
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    members, damage = zip_members(str(path), path.stat().st_size)
    assert (list(members.names), damage) == (names, "")


def test_names_are_taken_apart_as_the_standard_library_does_it() -> None:
    draw = random.Random(5)
    for _ in range(300):
        names = [
            "".join(draw.choice(["a", "b", ".", "/", "x", "JPG", "é"]) for _ in range(draw.randrange(7))) for _ in range(draw.randrange(9))
        ]
        found = MemberNames(Strings.hold(names))
        parted = [(name, *name.rpartition("/")[2].partition(".")) for name in names]
        whole = [(place, name[: len(name) - len(key) - 1], key) for place, (name, stem, dot, key) in enumerate(parted) if stem and dot]
        assert found.places.tolist() == [place for place, *_ in whole]
        stems = [stem for _, stem, _ in whole]
        assert found.groups().tolist() == [list(dict.fromkeys(stems)).index(stem) for stem in stems]
        assert found.runs().tolist() == [n for n, (_, run) in enumerate(groupby(stems)) for _ in run]
        wanted = {"jpg": 0, "a": 1, "x.a": 2}
        assert found.columns(wanted).tolist() == [wanted.get(key.lower(), -1) for *_, key in whole]


def test_members_are_grouped_by_their_names(tmp_path: Path) -> None:
    files = [
        ("a/1.jpg", 1),
        ("a/1.cls", 2),
        ("README", 3),
        ("b/1.jpg", 4),
        ("b/1.seg.png", 5),
        ("b/1.CLS", 6),
        ("2.cls", 7),
        ("a/1.jpg", 8),
    ]
    with tarfile.open(tmp_path / "a.tar", "w") as tar, zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, length in files:
            info = tarfile.TarInfo(name)
            info.size = length
            tar.addfile(info, io.BytesIO(bytes(length)))
            if length < 8:
                archive.writestr(name, bytes(length))
    features = {
        "image": {"kind": "image", "key": "png;jpg"},
        "label": {"kind": "label", "key": "cls"},
        "mask": {"kind": "mask", "key": "seg.png"},
    }
    lengths = {}
    for op, suffix in (("webdataset", "tar"), ("zip", "zip")):
        path = tmp_path / f"a.{suffix}"
        found = sources()[op](path=str(path), features=features).index_shard(str(path), path.stat().st_size)
        assert found.damage == ""
        lengths[op] = found.lengths[:, :3].tolist()
    assert lengths["webdataset"] == [[1, 2, -1], [4, 6, 5], [-1, 7, -1], [8, -1, -1]], "only neighbours belong together"
    assert lengths["zip"] == [[1, 2, -1], [4, 6, 5], [-1, 7, -1]]
    with pytest.raises(ValueError, match="both have the key `JPG`"):
        sources()["zip"](path="x", features={"image": {"kind": "image", "key": "jpg"}, "b": {"kind": "image", "key": "png;JPG"}})


def test_deflated_members_are_what_they_were(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [{"txt": bytes(5000)}], deflated=True)
    found = sources()["zip"](path=str(path), features={"image": {"kind": "image", "key": "txt"}}).index_shard(
        str(path), path.stat().st_size
    )
    (offset, check), (length, _) = found.offsets[0].tolist(), found.lengths[0].tolist()
    content = path.read_bytes()[offset : offset + length]
    assert unpacked_member(content, check) == bytes(5000)
    for wrong in (content[:-1], content[:-3] + b"abc", b""):
        with pytest.raises(ValueError, match=r".+"):
            unpacked_member(wrong, check)


def test_columns_of_several_varying_sizes_are_found(tmp_path: Path) -> None:
    records = [{"image": bytes(i), "name": "x" * (i + 1), "label": i} for i in range(5)]
    path = write_mds(tmp_path / "a.mds", records)
    found = source("mds", str(path), name={"kind": "label", "key": "name", "classes": ["x"]}).index_shard(str(path), path.stat().st_size)
    content = path.read_bytes()
    parts = [
        [content[o : o + n] for o, n in zip(*row, strict=True)] for row in zip(found.offsets.tolist(), found.lengths.tolist(), strict=True)
    ]
    assert parts == [[r["image"], r["label"].to_bytes(8, "little"), r["name"].encode()] for r in records]  # type: ignore[attr-defined]


def test_bytes_are_a_feature_themselves(tmp_path: Path) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [b"one", b"two"])
    listing = sources()["tfrecord"](path="a.tfrecord", content="bytes", features={"image": {"kind": "image"}}).list(tmp_path)
    assert listing.shards.rows.tolist() == [2]
    with pytest.raises(OpError, match=r"record 0 of '.*' is not a `tf.Example`"):
        source("tfrecord", "a.tfrecord").list(tmp_path)


@pytest.mark.parametrize("section", ["sampling: {balance: label}", "splits: {parts: {train: 0.5, validation: 0.5}, stratify: label}"])
def test_a_label_that_names_no_class_is_told_at_its_feature(tmp_path: Path, section: str) -> None:
    WRITERS["tfrecord"](tmp_path / "a.tfrecord", examples(0, 12))
    (tmp_path / "a.yaml").write_text(f"""\
pipegen: 1
source:
  tfrecord:
    path: a.tfrecord
    features:
      image: {{kind: image}}
      label: {{kind: label, classes: 4, offset: -1}}
{section}
transforms: [{{resize: {{size: 8}}}}]
""")
    with pytest.raises(SpecError) as error:
        collect_data(load(tmp_path / "a.yaml"))
    (found,) = error.value.diagnostics
    assert (found.code, found.primary.path) == ("PG420", "source.tfrecord.features.label.classes")
    assert found.help == ("use `offset: 0` for classes from 0",)
