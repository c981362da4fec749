"""Each extra, installed alone into a new environment, brings what it is for: a program there uses it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory="web"))
threading.Thread(target=server.serve_forever, daemon=True).start()
spec = {{"pipegen": 1, "source": {{"webdataset": {{"path": f"http://127.0.0.1:{{server.server_address[1]}}/a-{{{{0..1}}}}.tar",
        "features": {{"image": {{"kind": "image", "key": "png"}}}}}}}}, "batch": {{"size": 4}},
        "transforms": [{{"resize": {{"size": 8}}}}], "output": {{"y": None}},
        "runtime": {{"remote_cache": {{"fetch": "{0}", "path": os.path.abspath("cache")}}}}}}
assert len(list(pipegen.build(spec).dataset("train", epoch=0))) == 2
sys.stdout.flush()
os._exit(0)  # tensorflow-io may abort when it is taken apart
"""
USES = {
    "remote": WEB.format("blocks"),
    "io": "import importlib.util\nassert importlib.util.find_spec('fsspec') is None\n" + WEB.format("none"),
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
    "tiff": PICTURE.format("import tifffile", "tif"),
    "check": PICTURE.format("import simplejpeg", "jpg"),
    "compat": "import numpy as np\nfrom pipegen.compat import ImageDataGenerator\n"
    "assert ImageDataGenerator(rotation_range=20).random_transform(np.zeros((8, 8, 3))).shape == (8, 8, 3)\n",
    "monitor": "import pipegen\npipegen.Monitor\nimport psutil, matplotlib, pynvml\n",
    "nifti": "import nibabel\n",
    "dicom": "import pydicom\n",
    "geotiff": "import rasterio\n",
    "beam": "import apache_beam\n",
}
"""By the extra, a program that needs it."""


def test_every_extra_has_a_use_and_a_name_that_any_pip_finds() -> None:
    assert set(USES) == set(EXTRAS) - OURS
    assert [name for name in EXTRAS if "_" in name] == [], "pip before 23.3 compares extras as they are written, and wheels have hyphens"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("extra", USES)
def test_an_extra_alone_is_enough(extra: str, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    try:
        installed = subprocess.run(
            [place / "bin" / "pip", "install", "--quiet", f"{ROOT}[{extra}]"], capture_output=True, text=True, check=False
        )
        if installed.returncode and "No matching distribution" in installed.stderr:
            pytest.skip(f"not for this Python: {installed.stderr.strip().splitlines()[-1]}")
        assert installed.returncode == 0, installed.stderr
        assert "does not provide the extra" not in installed.stderr
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        used = subprocess.run(
            [place / "bin" / "python", "-c", USES[extra]], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert used.returncode == 0, used.stderr[-3000:]
    finally:
        shutil.rmtree(place, ignore_errors=True)
