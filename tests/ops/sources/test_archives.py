"""A folder of images in an archive is what it is unpacked: the same records, in place."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from pipegen.data.collect import collect
from pipegen.data.content import content_digest
from pipegen.data.fingerprint import fingerprint
from pipegen.errors import OpError
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.class_folders import ImageFolder
from pipegen.quality.leaks import find_leaks
from pipegen.quality.looks import look_at
from pipegen.spec.models import PipelineSpec, Runtime

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline
    from pipegen.ops.sources.listing.base import Listing

FILES = {f"{kind}/{i:02d}.png": (i, kind) for kind in ("cat", "dog") for i in range(6)} | {"dog/deep/x.jpg": (9, "dog")}
BESIDE = {"cat/notes.txt": b"no image", ".hidden/a.png": b"", "loose.png": b"", "bird/.keep": b""}


def picture(number: int, kind: str, form: str = "PNG") -> bytes:
    rng = np.random.default_rng(number + (kind == "dog") * 100)
    stream = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (9 + number, 12, 3), np.uint8)).save(stream, form)
    return stream.getvalue()


def contents() -> dict[str, bytes]:
    return {name: picture(*about, "JPEG" if name.endswith("jpg") else "PNG") for name, about in FILES.items()} | BESIDE


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """`train/` unpacked in `folder/`, and packed in `stored.zip`, `deflated.zip`, and `train.tar`."""
    for name, content in contents().items():
        file = tmp_path / "folder" / "train" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    for name, how in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w", how) as archive:
            for file in sorted((tmp_path / "folder").rglob("*"), reverse=True):
                archive.write(file, file.relative_to(tmp_path / "folder").as_posix())
    with tarfile.open(tmp_path / "train.tar", "w") as archive:
        archive.add(tmp_path / "folder" / "train", "./train")
    return tmp_path


def listed(data: Path, path: str, **arguments: object) -> Listing:
    return ImageFolder.model_validate({"path": path, **arguments}).list(data)


ARCHIVES = ("stored.zip", "deflated.zip", "train.tar")


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("arguments", [{}, {"labels": "none"}, {"pattern": "*.png"}, {"classes": ["dog", "cat"]}])
def test_an_archive_lists_what_its_folder_lists(data: Path, archive: str, arguments: dict[str, object]) -> None:
    there, here = listed(data, "folder/train", **arguments), listed(data, f"{archive}/train", **arguments)
    assert list(here.keys) == list(there.keys)
    assert here.class_names == there.class_names
    assert (here.labels is None) == (there.labels is None)
    assert here.labels is None or here.labels.tolist() == there.labels.tolist()
    assert here.sizes.tolist() == there.sizes.tolist()
    assert fingerprint(here) == fingerprint(there)
    assert content_digest(here) == content_digest(there)
    assert [note.code for note in here.notes] == [note.code for note in there.notes]
    assert here.location.paths[0] == str(data / archive / "train" / here.keys[0])


def test_what_is_wrong_with_a_path_into_an_archive_is_said(data: Path) -> None:
    with pytest.raises(OpError, match=r"the folder 'tain' is missing in .*stored\.zip") as wrong:
        listed(data, "stored.zip/tain")
    assert wrong.value.code == "PG401"
    assert "'train'" in str(wrong.value.help)
    (data / "no.zip").write_bytes(b"PK is not enough")
    with pytest.raises(OpError, match="damaged") as damaged:
        listed(data, "no.zip")
    assert damaged.value.code == "PG430"
    whole = (data / "train.tar").read_bytes()
    (data / "cut.tar").write_bytes(whole[: len(whole) // 2])
    assert [note.code for note in listed(data, "cut.tar/train").notes if note.severity == "error"] == ["PG430"]
    with pytest.raises(OpError, match=r"the folder .* does not exist"):
        listed(data, "train.tar.gz/train")


def test_members_stay_below_the_folder_and_the_last_of_a_name_counts(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../out.png", picture(0, "cat"))
        archive.writestr("cat/./a.png", picture(1, "cat"))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("cat/./a.png", picture(2, "cat"))
    found = listed(tmp_path, "a.zip")
    assert list(found.keys) == ["cat/a.png"]
    assert found.reader().stored("image", np.array([0]))[0] == picture(2, "cat")


def test_folders_of_splits_may_be_archives(data: Path) -> None:
    with zipfile.ZipFile(data / "val.zip", "w") as archive:
        for kind in ("cat", "dog"):
            archive.writestr(f"{kind}/z.png", picture(3, kind))
            file = data / "all" / "val" / kind / "z.png"
            file.parent.mkdir(parents=True)
            file.write_bytes(picture(3, kind))
    (data / "folder" / "train").rename(data / "all" / "train")
    there = ImageFolder(path="all").list_parts(data, {"train": "train", "validation": "val"})
    here = ImageFolder(path=".").list_parts(data, {"train": "stored.zip/train", "validation": "val.zip"})
    assert list(here.keys) == list(there.keys)
    assert list(here.parts or ()) == list(there.parts or ())
    assert here.labels.tolist() == there.labels.tolist()  # type: ignore[union-attr]
    assert here.location.paths[len(here.keys) - 1] == str(data / "val.zip" / "dog" / "z.png")


@pytest.mark.tf
@pytest.mark.parametrize("archive", ARCHIVES)
def test_the_graph_reads_the_bytes_of_members(data: Path, archive: str) -> None:
    import tensorflow as tf

    found = listed(data, f"{archive}/train", pattern="*.??g")
    read = found.reader().open_together(("image",), 0, lambda array: lambda row: tf.gather(array, row))
    assert read is not None
    kept = [i for i, key in enumerate(found.keys) if contents()[key]]
    for rows in (kept, kept[:3], kept[:1]):
        assert [one.numpy() for one in read(("image",), tf.constant(rows, tf.int64))["image"]] == [contents()[found.keys[i]] for i in rows]


def build(data: Path, source: object, splits: object) -> Pipeline:
    import pipegen

    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 16}}, "random_flip"], "batch": {"size": 3}}
    (data / "spec.pipegen.yaml").write_text(json.dumps(spec | ({"splits": splits} if splits else {})))
    return pipegen.build(data / "spec.pipegen.yaml")


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.parametrize("archive", ARCHIVES)
def test_batches_are_those_of_the_unpacked_folder(data: Path, archive: str) -> None:
    def batches(pipe: Pipeline) -> list[object]:
        return [array for split in ("train", "validation") for batch in pipe[split] for array in map(np.asarray, batch)]

    splits = {"parts": {"train": 0.6, "validation": 0.4}}
    pipe = build(data, {"image_folder": {"path": f"{archive}/train"}}, splits)
    here, there = batches(pipe), batches(build(data, {"image_folder": {"path": "folder/train"}}, splits))
    assert len(here) == len(there)
    assert all(np.array_equal(a, b) for a, b in zip(here, there, strict=True))
    one, other = (np.concatenate(list(pipe.predict_on(data / path).dataset)) for path in (f"{archive}/train/dog", "folder/train/dog"))
    assert np.array_equal(one, other)


def test_each_split_may_lie_in_an_archive_of_its_own(data: Path) -> None:
    source = {
        split: ImageFolder(path=path, pattern="*.??g") for split, path in (("train", "stored.zip/train"), ("validation", "train.tar/train"))
    }
    manifest = collect(
        PipelineSpec.model_validate({"pipegen": 1, "source": BySplit(parts=source), "batch": {"size": 2}}), base=data
    ).manifest
    assert manifest is not None
    assert {key for split in source for key in manifest.keys(split)} == {f"{split}/{name}" for split in source for name in FILES}
    for split in source:
        reader, rows = manifest.listing.reader(split), manifest.rows(split)
        assert rows is not None
        read = list(reader.stored("image", rows))
        assert read == [contents()[key.partition("/")[2]] for key in manifest.keys(split)]
    leaks = find_leaks(manifest, look_at(manifest, Runtime()), manifest.splits, Runtime(), near=False)
    assert {(pair.key, pair.other_key) for pair in leaks.pairs} == {(f"train/{name}", f"validation/{name}") for name in FILES}


def test_links_of_a_tar_archive_are_the_files_that_its_folder_has(tmp_path: Path) -> None:
    for number in range(8):
        file = tmp_path / "f" / ("a", "b")[number // 4] / f"{number + 1:03}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(number, "cat"))
    (tmp_path / "f/b/dup.png").hardlink_to(tmp_path / "f/a/001.png")
    (tmp_path / "f/b/link.png").symlink_to("../a/002.png")
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / "f.tar", "w", format=form) as archive:
            archive.add(tmp_path / "f", "f")
        there, here = listed(tmp_path, "f"), listed(tmp_path, "f.tar/f")
        assert (list(here.keys), len(here.keys)) == (list(there.keys), 10)
        assert here.labels is not None
        assert there.labels is not None
        assert here.labels.tolist() == there.labels.tolist()
        assert content_digest(here) == content_digest(there)
        assert here.reader().stored("image", np.array([8]))[0] == picture(0, "cat")
    (tmp_path / "f/b/gone.png").symlink_to("../none.png")
    (tmp_path / "f/c").symlink_to("a")
    with tarfile.open(tmp_path / "f.tar", "w") as archive:
        archive.add(tmp_path / "f", "f")
    assert list(listed(tmp_path, "f.tar/f").keys) == list(listed(tmp_path, "f").keys)
    said = {note.message.partition(":")[0]: note.severity for note in listed(tmp_path, "f.tar/f").notes}
    assert said == {
        "1 link has no target in its archive and is ignored": "warning",
        "1 link to a folder of the archive is not entered": "warning",
    }


def test_what_an_archive_holds_and_its_folder_would_not_is_counted(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in ("cat/1.png", "/cat/2.png", "cat//3.png", "../4.png", "cat/../5.png", "cat/1.png", "@eaDir/6.png", "cat/@eaDir/7.png"):
            content = picture(1, "cat")
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        pipe = tarfile.TarInfo("cat/pipe")
        pipe.type = tarfile.FIFOTYPE
        archive.addfile(pipe)
    found = listed(tmp_path, "a.tar")
    assert list(found.keys) == ["cat/1.png", "cat/2.png", "cat/3.png"]
    assert [note.message for note in found.notes] == [
        f"1 member is neither a file nor a folder and is ignored: 'cat/pipe' in {str(tmp_path / 'a.tar')!r}",
        f"2 members with `..` in their paths lead out of the archive and are ignored: such as '../4.png' in {str(tmp_path / 'a.tar')!r}",
        f"1 member has the same name as a later one, which is used: 'cat/1.png' in {str(tmp_path / 'a.tar')!r}",
        "ignored: 2 hidden entries ('@eaDir', 'cat/@eaDir')",
    ]


def test_a_damaged_header_of_an_archive_of_images_is_found(data: Path) -> None:
    content = bytearray((data / "train.tar").read_bytes())
    with tarfile.open(data / "train.tar") as archive:
        header = archive.getmembers()[12].offset
    content[header + 3] ^= 1
    (data / "train.tar").write_bytes(content)
    (note,) = [note for note in listed(data, "train.tar/train").notes if note.severity == "error"]
    assert (note.code, f"at byte {header:,}, member 12: the checksum of its header is wrong" in note.message) == ("PG430", True)


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.tar.zst", "a.tar"])
def test_a_compressed_archive_of_images_is_said_to_be_compressed(data: Path, name: str) -> None:
    (data / name).write_bytes(gzip.compress((data / "train.tar").read_bytes()))
    with pytest.raises(OpError, match="1 file is compressed as a whole") as error:
        listed(data, f"{name}/train")
    assert error.value.code == "PG430"
