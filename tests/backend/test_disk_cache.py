"""A cache on disk gives the same stream, bit for bit, whatever it holds and whatever happens to it.

The recipe caches both ways: single examples are fetched before the random crop of training, whole batches in validation.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path
from pipes import epoch_of, pipeline, same, shared, stream
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.cache.folder import caches_in, verify
from pipegen.errors import SpecError

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
    from pipegen.cache.folder import Held

pytestmark = pytest.mark.tf

CROP: list[Any] = [{"resize": {"size": 30}}, {"random_crop": {"size": 24}}, "random_flip"]


def cached(photos: Path, folder: Path, **own: Any) -> Pipeline:
    return pipeline(photos, {"cache": {"disk": str(folder)}}, transforms=CROP, **own)


def of_side(folder: Path, side: int) -> Held:
    """The cache of images of one size."""
    return next(held for held in caches_in(folder) if held.about.columns[0].shape[0] == side)


@pytest.fixture(scope="module")
def plain(photo_folder: Path) -> Pipeline:
    """The same without a cache."""
    return shared(photo_folder, transforms=CROP)


@pytest.fixture(scope="module")
def filled(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory, plain: Pipeline) -> Path:
    """Full caches, filled from the middle of an epoch on, and by a pass that was broken off."""
    folder = tmp_path_factory.mktemp("filled") / "cache"
    pipe = cached(photo_folder, folder)
    assert "cache    on disk" in pipe.explain("train")
    assert not folder.exists(), "nothing is made before it is used"
    next(iter(pipe.train))
    for epoch, step in ((2, 2), (0, 0)):
        same(epoch_of(pipe, epoch, step), epoch_of(plain, epoch, step))
    same(stream(pipe.validation), stream(plain.validation))
    assert [(of_side(folder, side).about.records, of_side(folder, side).filled) for side in (30, 24)] == [(43, 32), (43, 11)]
    return folder


def test_another_run_reads_what_is_cached_and_whole_and_nothing_else(
    photo_folder: Path, filled: Path, tmp_path: Path, plain: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the validation files, number 3 has changed, number 5 is damaged in the cache, and the others cannot be decoded."""
    photos, folder = (Path(shutil.copytree(f, tmp_path / f.name)) for f in (photo_folder, filled))
    files = [photos / Path(f).relative_to(photo_folder) for f in plain.files("validation")]
    expected = stream(plain.validation)
    size = files[3].stat().st_size
    files[3].write_bytes(files[0].read_bytes()[:size].ljust(size, b"\0"))
    for path in (f for i, f in enumerate(files) if i not in (3, 5)):
        before = path.stat()
        path.write_bytes(b"\0" * before.st_size)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    pipe = cached(photos, folder, seed=4, batch={"size": 6})
    held = of_side(folder, 24)
    with (held.path / "0.rows").open("r+b") as rows:
        rows.seek(pipe._manifest.members["validation"][5] * held.about.row + 17)
        rows.write(b"\x80\x7f")
    images, labels = stream(pipe.validation)
    assert [i for i in range(11) if (images[i] != expected[0][i]).any()] == [3]
    same([labels], [expected[1]])
    told = [r.getMessage() for r in caplog.records if "damaged records" in r.getMessage()]
    assert len(told) == 1
    assert str(files[5]) in told[0]
    assert not verify(held).damaged
    assert len(caches_in(folder)) == 2, "another batch size and another seed use the caches that are there"


def test_training_goes_on_when_the_disk_is_full(
    photo_folder: Path, tmp_path: Path, plain: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, left, disk = os.pwrite, [12 * 30 * 30 * 3], threading.Lock()

    def full(number: int, data: memoryview, offset: int) -> int:
        with disk:
            left[0] -= len(data)
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(number, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    pipe = cached(photo_folder, tmp_path)
    expected = epoch_of(plain, 1)
    for _ in range(2):
        same(epoch_of(pipe, 1), expected)
    share = pipe.dataset("train", epoch=1, shard=(1, 2)).map(lambda x, y: (x, y))
    same(stream(share), [part.reshape(4, 8, *part.shape[1:])[:, 4:].reshape(16, *part.shape[1:]) for part in expected])
    same(stream(pipe.validation), stream(plain.validation))
    told = [r.getMessage() for r in caplog.records if "cannot be written" in r.getMessage()]
    assert len(told) == 2, "one for each cache"
    assert os.strerror(errno.ENOSPC) in told[0]
    held = of_side(tmp_path, 30)
    assert f"{held.filled} of 43" in told[0]
    assert held.filled in (10, 11), "a thread's pixels may be the last to fit, with no room for their entry"
    assert not verify(held).damaged


def test_a_folder_that_is_lost_before_it_is_used_is_a_finding(photo_folder: Path, tmp_path: Path) -> None:
    pipe = cached(photo_folder, tmp_path / "later")
    (tmp_path / "later").write_text("")
    with pytest.raises(SpecError) as caught:
        pipe["train"]
    assert [d.code for d in caught.value.diagnostics] == ["PG417"]


@pytest.mark.nightly
@pytest.mark.parametrize("forms", [("parquet", "csv"), ("csv", "parquet")])
def test_files_of_a_split_beside_rows_of_another_are_watched(tmp_path: Path, forms: tuple[str, str]) -> None:
    """A cache is not read for images that have changed, whichever split comes first."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    import pipegen

    def write(level: int) -> bytes:
        Image.fromarray(np.full((8, 8, 3), level, np.uint8)).save(tmp_path / "0.bmp")
        return (tmp_path / "0.bmp").read_bytes()

    pq.write_table(pa.table({"image": [write(10)], "label": [0]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("image,label\n0.bmp,0\n")
    features = {"image": {"kind": "image", "column": "image"}, "label": {"kind": "label", "column": "label", "classes": 2}}
    parts = {
        split: {form: {"path": str(tmp_path / f"t.{form}"), "features": features}}
        for split, form in zip(("train", "test"), forms, strict=True)
    }
    spec = {"pipegen": 1, "source": {"by_split": parts}, "transforms": ["decode", {"resize": {"size": 8}}], "batch": {"size": 1}}
    seen = []
    for level in (10, 200):
        write(level)
        os.utime(tmp_path / "0.bmp", (level, level))
        pipe = pipegen.build(spec, runtime={"jit": "never", "cache": {"disk": str(tmp_path / "cache")}})
        split = "train" if forms[0] == "csv" else "test"
        seen += [int(image[0].numpy().max()) for _ in range(2) for image, _ in pipe.dataset(split)]
    assert seen == [10, 10, 200, 200]
