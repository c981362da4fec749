"""Each extra, installed alone into a new environment, brings what it is for: a program there uses it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
DECLARED = re.search(r"^\[project\.optional-dependencies\]\n(.*?)^\[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
EXTRAS = re.findall(r"^([\w-]+) = \[", DECLARED[1] if DECLARED else "", re.MULTILINE)
OURS = {"test", "dev", "docs", "benchmark", "peers"}
"""Those that pipegen itself is developed with."""

FORM = """
import io, os
from pathlib import Path
from PIL import Image
import pipegen
from benchmarks.written_sources import SOURCES
photos = []
for i in range(8):
    stream = io.BytesIO()
    Image.new("RGB", (40, 32), (20 * i,) * 3).save(stream, "PNG")
    photos.append((stream.getvalue(), i % 2))
Path("data").mkdir()
SOURCES["{0}"].write(Path("data"), photos)
spec = {{"pipegen": 1, "source": SOURCES["{0}"].spec(Path("data").absolute()), "batch": {{"size": 4}},
        "splits": {{"method": "random", "parts": {{"train": 0.5, "validation": 0.5}}}},
        "transforms": [{{"resize": {{"size": 8}}}}], "output": {{"x": "image", "y": None}}}}
assert next(iter(pipegen.build(spec).dataset("train", epoch=0))).shape == (4, 8, 8, 3)
"""
PICTURE = """
from pathlib import Path
from PIL import Image
import pipegen
{0}
for i in range(4):
    Path(f"data/{{'ab'[i % 2]}}").mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 32), (20 * i,) * 3).save(f"data/{{'ab'[i % 2]}}/{{i}}.{1}")
spec = {{"pipegen": 1, "source": {{"image_folder": {{"path": "data/"}}}}, "batch": {{"size": 2}},
        "transforms": [{{"resize": {{"size": 8}}}}]}}
assert len(list(pipegen.build(spec).dataset("train", epoch=0))) == 2
"""
WEB = """
import functools, http.server, os, sys, tarfile, threading, io
from pathlib import Path
from PIL import Image
import pipegen
Path("web").mkdir()
for shard in range(2):
    with tarfile.open(f"web/a-{{shard}}.tar", "w") as archive:
        for i in range(4):
            stream = io.BytesIO()
            Image.new("RGB", (40, 32), (20 * i,) * 3).save(stream, "PNG")
            info = tarfile.TarInfo(f"{{i:03}}.png"); info.size = len(stream.getvalue())
            archive.addfile(info, io.BytesIO(stream.getvalue()))
class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        if not Path("web" + self.path).is_file():
            return self.send_error(404)
        content = Path("web" + self.path).read_bytes()
        first, last = (self.headers["Range"] or f"bytes=0-{{len(content) - 1}}").removeprefix("bytes=").split("-")
        part = content[int(first) : int(last or len(content)) + 1]
        self.send_response(206 if self.headers["Range"] else 200)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory="web"))
threading.Thread(target=server.serve_forever, daemon=True).start()
spec = {{"pipegen": 1, "source": {{"webdataset": {{"path": f"http://127.0.0.1:{{server.server_address[1]}}/a-{{{{0..1}}}}.tar",
        "features": {{"image": {{"kind": "image", "key": "png"}}}}}}}}, "batch": {{"size": 4}}, "splits": {{"parts": {{"train": 8}}}},
        "transforms": [{{"resize": {{"size": 8}}}}], "output": {{"y": None}},
        "runtime": {{"remote_cache": {{"fetch": "{0}", "path": os.path.abspath("cache")}}}}}}
assert len(list(pipegen.build(spec).dataset("train", epoch=0))) == 2
sys.stdout.flush()
os._exit(0)  # tensorflow-io may abort when it is taken apart
"""
IN_GRAPH = (
    WEB.format("none")
    .replace('"webdataset": {"path"', '"tfrecord": {"content": "bytes", "verify": True, "path"')
    .replace(', "key": "png"', "")
    .replace("a-{{0..1}}.tar", "a-{{0..1}}.tfrecord")
    .replace('tarfile.open(f"web/a-{shard}.tar", "w")', 'tf.io.TFRecordWriter(f"web/a-{shard}.tfrecord")')
    .replace('info = tarfile.TarInfo(f"{i:03}.png"); info.size = len(stream.getvalue())', "archive.write(stream.getvalue())")
    .replace("archive.addfile(info, io.BytesIO(stream.getvalue()))", "pass")
    .replace("import pipegen", "import pipegen, tensorflow as tf")
)
DEEP = """
from pathlib import Path
import numpy as np
import tifffile
import pipegen
Path("data").mkdir()
values = np.arange(4 * 6 * 8 * 3, dtype=np.uint16).reshape(4, 6, 8, 3) * 100
for i in range(4):
    tifffile.imwrite(f"data/{i}.tif", values[i], photometric="rgb")
spec = {"pipegen": 1, "source": {"files": {"features": {"image": {"kind": "image", "path": "data/*.tif", "bits": 16, "channels": 3}}}},
        "batch": {"size": 4}, "shuffle": "none", "splits": {"parts": {"train": 4}}, "transforms": [{"resize": {"size": [6, 8]}}],
        "output": {"x": "image", "y": None}}
assert (next(iter(pipegen.build(spec).dataset("train", epoch=0))).numpy() == values).all()
"""
ARRAY = """
from pathlib import Path
import numpy as np
import pipegen
{0}
Path("data").mkdir()
values = np.arange(4 * 6 * 8 * 3, dtype=np.int16).reshape(4, 6, 8, 3)
for i in range(4):
    write(f"data/{{i}}.{1}", values[i])
spec = {{"pipegen": 1, "source": {{"files": {{"features": {{"image": {{"kind": "image", "path": "data/*.{1}", "format": {2}}}}}}}}},
        "batch": {{"size": 4}}, "shuffle": "none", "splits": {{"parts": {{"train": 4}}}},
        "transforms": [{{"resize": {{"size": [6, 8]}}}}],        "output": {{"x": "image", "y": None}}}}
assert (next(iter(pipegen.build(spec).dataset("train", epoch=0))).numpy() == values{3}).all()
"""
DAMAGED = """
import io, sys
from pathlib import Path
import numpy as np
from PIL import Image
from pipegen.cli.app import main
Path("data/a").mkdir(parents=True)
for i in range(2):
    Image.fromarray(np.random.default_rng(i).integers(0, 256, (64, 64, 3), np.uint8)).save(f"data/a/{i}.jpg", quality=95)
whole = Path("data/a/1.jpg").read_bytes()
Path("data/a/1.jpg").write_bytes(whole[: len(whole) // 2] + whole[len(whole) // 2 + 600 :])
Path("a.pipegen.yaml").write_text("pipegen: 1\\nsource: {image_folder: {path: data/}}\\ntransforms: [{resize: {size: 8}}]\\n")
sys.argv, sys.stdout = ["pipegen", "validate", "a.pipegen.yaml", "--data=all"], io.StringIO()
try:
    main()
except SystemExit:
    pass
assert "1.jpg can be decoded but is damaged inside" in " ".join(sys.stdout.getvalue().split()), sys.stdout.getvalue()
"""
PNG = """
from pathlib import Path
import keras
from PIL import Image
import pipegen
for i in range(8):
    Path(f"data/{'ab'[i % 2]}").mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 32), (20 * i,) * 3).save(f"data/{'ab'[i % 2]}/{i}.png")
spec = {"pipegen": 1, "source": {"image_folder": {"path": str(Path("data").absolute())}}, "batch": {"size": 4},
        "splits": {"parts": {"train": 8}}, "transforms": [{"resize": {"size": 8}}]}
"""
MONITOR = (
    PNG
    + """
model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(2)])
model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(pipegen.build(spec).train, epochs=2, verbose=0, callbacks=[pipegen.Monitor("run.jsonl", picture="run.png")])
assert '"epoch"' in Path("run.jsonl").read_text()
with Image.open("run.png") as picture:
    assert picture.size[0] > 100
import pynvml  # what reads GPUs where there are any
"""
)
BEAM = (
    PNG
    + """
import json, subprocess, sys
Path("a.pipegen.yaml").write_text(json.dumps(spec))
subprocess.run([sys.executable, "-m", "pipegen", "prepare", "a.pipegen.yaml", "store/", "--runner", "beam", "--verify"], check=True)
assert len(list(pipegen.build("store/prepared.pipegen.yaml").dataset("train", epoch=0))) == 2
"""
)
SOUND = """
from pathlib import Path
import numpy as np
import soundfile
import pipegen
values = np.arange(-400, 400, dtype=np.int16).reshape(4, 200) * 80
for i in range(4):
    Path(f"data/{'ab'[i % 2]}").mkdir(parents=True, exist_ok=True)
    soundfile.write(f"data/{'ab'[i % 2]}/{i}.flac", values[i], 16000)
spec = {"pipegen": 1, "source": {"audio_folder": {"path": "data/", "rate": 16000}}, "batch": {"size": 4}, "shuffle": "none",
        "splits": {"parts": {"train": 4}}, "transforms": [{"crop_or_pad": {"seconds": 0.0125}}], "output": {"x": "audio", "y": None}}
got = next(iter(pipegen.build(spec).dataset("train", epoch=0))).numpy()[..., 0]
assert (got == values[[0, 2, 1, 3]] / np.float32(32768)).all()
"""
USES = {
    "remote": WEB.format("blocks"),
    "io": "import importlib.util\nassert importlib.util.find_spec('fsspec') is None\n" + IN_GRAPH,
    "parquet": FORM.format("parquet"),
    "arrow": FORM.format("arrow"),
    "array-record": FORM.format("array_record"),
    "lmdb": FORM.format("lmdb"),
    "hdf5": FORM.format("hdf5"),
    "zarr": FORM.format("zarr"),
    "sql": FORM.format("sql"),
    "excel": FORM.format("excel"),
    "heif": PICTURE.format("import pillow_heif; pillow_heif.register_heif_opener()", "heic"),
    "avif": PICTURE.format("", "avif"),
    "jxl": PICTURE.format("import pillow_jxl", "jxl"),
    "tiff": DEEP,
    "check": DAMAGED,
    "compat": "import numpy as np\nfrom pipegen.compat import ImageDataGenerator\n"
    "picture = np.arange(192.0).reshape(8, 8, 3)\n"
    "turned = ImageDataGenerator(rotation_range=20).random_transform(picture)\n"
    "assert turned.shape == (8, 8, 3) and (turned != picture).any()\n",
    "monitor": MONITOR,
    "nifti": ARRAY.format(
        """
import nibabel
def write(path, values):
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
""",
        "nii.gz",
        '{"nifti": {"slice": 1}}',
        "[..., 1:2]",
    ),
    "dicom": ARRAY.format(
        """
import pydicom
def write(path, values):
    data = pydicom.Dataset()
    data.file_meta = pydicom.dataset.FileMetaDataset()
    data.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID = pydicom.uid.CTImageStorage
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID = "1.2.3"
    data.Rows, data.Columns = values.shape[:2]
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
    data.PixelData = values[..., 0].astype("<u2").tobytes()
    pydicom.dcmwrite(path, data, enforce_file_format=True)
""",
        "dcm",
        '{"dicom": "stored"}',
        "[..., :1]",
    ),
    "geotiff": ARRAY.format(
        """
import rasterio
def write(path, values):
    about = {"driver": "GTiff", "height": 6, "width": 8, "count": 3, "dtype": "int16"}
    with rasterio.open(path, "w", **about) as raster:
        raster.write(np.moveaxis(values, -1, 0))
""",
        "tif",
        '{"geotiff": {"bands": [3, 1]}}',
        "[..., [2, 0]]",
    ),
    "audio": SOUND,
    "beam": BEAM,
}
"""By the extra, a program that needs it."""
BROUGHT = {"hdf5": "h5py, by Keras", "avif": "Pillow's newest"}
"""Extras whose libraries the core brings, as long as these do."""
OTHER_CORE = {"io", "beam"}
"""Extras that ask for older libraries than the core gets, such as TensorFlow or Pillow, and are installed from nothing."""


def test_every_extra_has_a_use_and_a_name_that_any_pip_finds() -> None:
    assert set(USES) == set(EXTRAS) - OURS
    assert [name for name in EXTRAS if "_" in name] == [], "pip before 23.3 compares extras as they are written, and wheels have hyphens"


class Place:
    """An environment of its own.

    Args:
        folder: Where it is made.
        upon: One whose libraries count as installed; those that are installed here stand before them.
    """

    def __init__(self, folder: Path, upon: Place | None = None) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = folder / "bin" / "python"
        (self.libraries,) = folder.glob("lib/*/site-packages")
        if upon is not None:
            (self.libraries / "upon.pth").write_text(f"{upon.libraries}\n")

    def pip(self, *arguments: str) -> None:
        command = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and "No matching distribution" in done.stderr:
            pytest.skip(f"not for this Python: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        assert "does not provide the extra" not in done.stderr

    def use(self, extra: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Runs the program of an extra in a new folder."""
        folder.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        return subprocess.run([self.python, "-c", USES[extra]], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Iterator[Place]:
    """pipegen without any extra, which takes most of the time and the space: it is installed once."""
    folder = tmp_path_factory.mktemp("core")
    try:
        place = Place(folder)
        place.pip("install", "--no-compile", str(wheel))
        yield place
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("extra", USES)
def test_an_extra_alone_is_enough(extra: str, tmp_path: Path, wheel: Path, request: pytest.FixtureRequest) -> None:
    upon = None if extra in OTHER_CORE else request.getfixturevalue("core")
    try:
        place = Place(tmp_path / "own", upon)
        place.pip("install", "--no-compile", f"pipegen[{extra}] @ {wheel.as_uri()}")
        done = place.use(extra, tmp_path / "use")
        assert done.returncode == 0, done.stderr[-3000:]
    finally:
        shutil.rmtree(tmp_path / "own", ignore_errors=True)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_without_its_extra_no_program_runs(tmp_path: Path, core: Place) -> None:
    """Otherwise such a program would prove nothing of the extra."""
    fine = {extra for extra in USES if core.use(extra, tmp_path / extra).returncode == 0}
    assert fine == set(BROUGHT)
