"""Datasets that left: bit for bit the same in a process that has no pipegen, and as a page of code; what cannot go is a finding."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from pipes import COLOUR, GEOMETRY, RESIZE, batches, close, picture, pipeline, same, sections, stream, write_photos
from typing import TYPE_CHECKING, Any

import copies
import numpy as np
import pytest

from pipegen.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipegen.api.pipeline import Pipeline

pytestmark = pytest.mark.tf
ROOT = Path(__file__).parents[1]
LATE = (3, 2)
"""An epoch, and the step to begin with."""

LOADER = """\
import json, os, re, sys
sys.modules["pipegen"] = None  # importing it raises ModuleNotFoundError
import numpy as np
import tensorflow as tf

def check(folder, wanted, where):
    # Every batch of a split from an epoch and a step on, as it was in pipegen.
    about = json.load(open(os.path.join(folder, "datasets.json")))
    for split, told in about["splits"].items():
        loaded = tf.saved_model.load(os.path.join(folder, split))
        for epoch, step in starts(split, told["steps"]):
            known = np.load(f"{wanted}-{split}-{epoch}.npz")
            given = (epoch, step) if where is None else (epoch, step, where)
            dataset = loaded.batches(*given)
            assert len(dataset) == told["steps"] - step
            assert types(dataset.element_spec) == told["element_spec"], dataset.element_spec
            parts = [t for batch in dataset for t in tf.nest.flatten(batch)]
            assert len(parts) == len(known.files)
            for name, part in zip(known.files, parts):
                assert part.dtype.as_numpy_dtype == known[name].dtype and np.array_equal(part, known[name]), (split, epoch, name)
    return about

def starts(split, steps):
    return [(3, min(2, steps - 1))] if split == "train" else [(0, 0)]

def types(spec):
    if isinstance(spec, dict):
        return {"dict": {name: types(part) for name, part in spec.items()}}
    if isinstance(spec, tuple):
        return {"tuple": [types(part) for part in spec]}
    return {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
"""


def outside(body: str, folder: Path) -> str:
    """What a program prints that has TensorFlow and no pipegen."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = copies.run(LOADER + body, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def keep(pipe: Pipeline, at: Path, splits: Iterable[str] | None = None) -> None:
    """Writes what a pipeline gives, as `LOADER` reads it."""
    for split in splits or pipe:
        for epoch, step in [(LATE[0], min(LATE[1], pipe.steps(split) - 1))] if split == "train" else [(0, 0)]:
            parts = [part for batch in batches(pipe.dataset(split, epoch=epoch, step=step)) for part in batch]
            np.savez(f"{at}-{split}-{epoch}.npz", *parts)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("eject")


@pytest.fixture(scope="module")
def photos(home: Path) -> Pipeline:
    """Photographs, shuffled, with draws and a cache in memory."""
    folder = write_photos(home / "photos")
    steps = [RESIZE, "random_flip", {"random_brightness": {"factor": 0.3}}, {"rescale": {"to": [0, 1]}}]
    own = {"transforms": steps, "output": {"encode": {"label": "one_hot"}}}
    return pipeline(folder, {"cache": "memory"}, name="flowers", **own)


@pytest.fixture(scope="module")
def rows(home: Path) -> Pipeline:
    """Rows of arrays that are handed over, of which a batch is one gather; no cache."""
    import pipegen

    rng = np.random.default_rng(1)
    data = {"image": rng.integers(0, 256, (21, 12, 12, 3), np.uint8), "label": np.arange(21) % 3, "extra": rng.random((21, 2), np.float32)}
    features = {"image": {"kind": "image"}, "label": {"kind": "label"}, "extra": {"kind": "tensor"}}
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": features}},
        "splits": {"parts": {"train": 0.7, "validation": 0.3}},
        "transforms": ["random_flip", {"random_contrast": {"factor": 0.2}}],
        "batch": {"size": 4, "remainder": {"validation": "pad"}},
        "output": {"x": {"picture": "image", "numbers": "extra"}},
    }
    return pipegen.build(spec, data=data, runtime={"jit": "never", "cache": "none"})


@pytest.fixture(scope="module")
def ejected(home: Path, photos: Pipeline, rows: Pipeline) -> dict[str, Any]:
    """Both, ejected; then the photographs move, and the folder of graphs, too."""
    made = {"photos": photos.eject(home / "made" / "photos"), "rows": rows.eject(home / "rows", splits=["train"])}
    keep(photos, home / "photos-wanted")
    keep(rows, home / "rows-wanted", ["train"])
    return made


def test_without_pipegen_every_batch_is_the_same(home: Path, ejected: dict[str, Any]) -> None:
    """Also where the photographs and the graphs have moved; and the README's lines run as they stand, on photographs where they were."""
    said = outside(
        """
check("rows", "rows-wanted", None)
os.rename("photos", "photos, elsewhere")
os.rename("made/photos", "graphs")
about = check("graphs", "photos-wanted", os.path.abspath("photos, elsewhere"))
os.rename("photos, elsewhere", "photos")
os.chdir("graphs")
code = re.search(r"```python\\n(.*?)```", open("README.md").read(), re.DOTALL)[1]
shown = {}
exec(code, shown)
problems = []
for given in ((0, 5), (-1, 0), (0, 0, "/nowhere")):
    try:
        list(shown["train"].batches(*given))
    except tf.errors.InvalidArgumentError as error:
        problems.append(str(error))
print(json.dumps([about, shown["x"].shape.as_list(), problems, "pipegen" in sys.modules and sys.modules["pipegen"] is not None]))
""",
        home,
    )
    about, shape, problems, imported = json.loads(said.strip().splitlines()[-1])
    assert not imported
    assert shape == [8, 24, 24, 3]
    assert about["class_names"] == ["daisy", "rose", "tulip"]
    assert about["root"] == str(home / "photos")
    assert {split: (told["examples"], told["steps"]) for split, told in about["splits"].items()} == {
        "train": (32, 4),
        "validation": (11, 2),
    }
    assert "an epoch has 4 steps" in problems[0]
    assert "an epoch has 4 steps" in problems[1]
    assert "cannot read or decode /nowhere/" in problems[2], "a file that is not there is named"


def test_what_stays_behind_is_told(ejected: dict[str, Any], home: Path) -> None:
    assert [d.code for d in ejected["photos"].remarks] == ["PG554"]
    assert not ejected["rows"].remarks
    assert ejected["rows"].splits == ("train",)
    assert not list(home.glob(".*")), "nothing half-made is left"


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, rows: Pipeline) -> None:
    (tmp_path / "own.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError):
        rows.eject(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["own.txt"]
    with pytest.raises(KeyError):
        rows.eject(tmp_path / "new", splits=["tarin"])
    with pytest.raises(ValueError, match="form"):
        rows.eject(tmp_path / "new", "grahp")  # type: ignore[arg-type]


def test_what_no_graph_can_hold_is_found_with_its_place(tmp_path: Path, home: Path) -> None:
    """All of it in one run, and nothing is written."""
    import pipegen

    text = f"""\
pipegen: 1
source: {{image_folder: {{path: {home / "photos"}}}}}
splits: {{parts: {{train: 0.75, validation: 0.25}}}}
transforms:
  - resize: {{size: 24}}
  - python: {{function: my_pkg.filters:blur}}
batch: {{size: 8}}
errors: {{decode: {{skip: {{max_fraction: 0.1}}}}}}
"""
    (tmp_path / "flowers.pipegen.yaml").write_text(text, encoding="utf-8")
    pipe = pipegen.build(tmp_path / "flowers.pipegen.yaml", allow_code=["my_pkg"], runtime={"jit": "never", "cache": "none"})
    with pytest.raises(SpecError) as caught:
        pipe.eject(tmp_path / "out")
    found = {d.code: d for d in caught.value.diagnostics}
    assert set(found) == {"PG550", "PG553"}
    assert [found[code].span.line for code in ("PG550", "PG553")] == [6, 8]  # type: ignore[union-attr]
    assert "my_pkg.filters:blur" in found["PG550"].message
    assert all(d.help for d in found.values())
    assert not (tmp_path / "out").exists()
    assert {d.code for d in _refused(pipe, tmp_path / "code.py", "code")} == {"PG553"}, "code may call Python"


def _refused(pipe: Pipeline, path: Path, form: Any) -> Any:
    with pytest.raises(SpecError) as caught:
        pipe.eject(path, form)
    return caught.value.diagnostics


def test_arrays_that_are_handed_over_have_no_page(tmp_path: Path, rows: Pipeline) -> None:
    assert [d.code for d in _refused(rows, tmp_path / "code.py", "code")] == ["PG555"]


@pytest.fixture(scope="module")
def page(home: Path, photos: Pipeline) -> Iterator[Any]:
    """The page of code of the photographs, imported."""
    photos.eject(home / "flowers_data.py", "code")
    spec = importlib.util.spec_from_file_location("flowers_data", home / "flowers_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flowers_data"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["flowers_data"]


@pytest.mark.nightly
def test_the_page_of_code_gives_the_same_bits(page: Any, photos: Pipeline) -> None:
    """Without XLA; with it, floats differ within E1."""
    same(stream(page.train_batches(*LATE)), stream(photos.dataset("train", epoch=LATE[0], step=LATE[1])))
    same(stream(page.validation_batches(0)), stream(photos.dataset("validation")))
    assert page.train_batches(0).element_spec == photos.train.element_spec


def test_the_page_of_code_is_a_page(page: Any, photos: Pipeline, home: Path) -> None:
    text = (home / "flowers_data.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60 * 2
    assert max(map(len, text.splitlines())) <= 140
    assert re.search(r'f = train\["random_flip"\]\(f\)  # image: mirror: random_flip', text)
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "-"], input=text, text=True, capture_output=True, check=False
    )
    assert "No module named" in checked.stderr or checked.returncode == 0, checked.stdout


def test_a_stage_that_is_unknown_is_told_with_those_that_are_there(page: Any) -> None:
    assert "resize" in list(page.train)
    with pytest.raises(KeyError, match="did you mean 'resize'"):
        page.train["resiz"]


# Every combination that a spec can say, by night

CASES: dict[str, dict[str, Any]] = {
    "window, epoch of steps": {"shuffle": {"window": "64kB"}, "epoch": {"steps": 7}, "transforms": GEOMETRY},
    "share of a host": {"transforms": GEOMETRY, "runtime": {"shard": {"index": 1, "count": 2}}},
    "combined, widened": {
        "transforms": [*GEOMETRY, {"mixup": {"alpha": 0.2}}],
        "output": {"encode": {"label": "one_hot"}},
        "batch": {"size": 6},
    },
    "windows of files": {"transforms": [{"random_resized_crop": {"size": 24}}, {"rand_augment": {}}]},
    "rare, on single examples": {"transforms": [RESIZE, {"random_equalization": {"probability": 0.3}}, {"rescale": {"to": [0, 1]}}]},
    "padded": {"transforms": COLOUR, "batch": {"size": 8, "remainder": "pad"}},
    "accurate": {"transforms": [{"decode": {"jpeg": "accurate"}}, RESIZE]},
    "as TensorFlow decodes": {"transforms": [{"decode": {"jpeg": "tensorflow"}}, RESIZE]},
    "stages": {
        "params": {"side": {"type": "int", "default": 24}},
        "transforms": [{"resize": {"size": "$side"}}, "random_flip"],
        "stages": [{"epochs": 1, "params": {"side": 16}, "batch": 4}, {"epochs": 2}],
    },
}


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["none", "memory", "disk"])
@pytest.mark.parametrize("jit", ["never", "auto"])
@pytest.mark.parametrize("case", CASES)
def test_every_combination_leaves_and_is_the_same(case: str, cache: str, jit: str, photo_folder: Path, tmp_path: Path) -> None:
    import pipegen

    own = dict(CASES[case])
    runtime = {**own.pop("runtime", {}), "jit": jit, "cache": {"disk": str(tmp_path / "cache")} if cache == "disk" else cache}
    pipe = pipegen.build(sections(photo_folder, **own), runtime=runtime)
    pipe.eject(tmp_path / "out")
    keep(pipe, tmp_path / "wanted")
    outside('check("out", "wanted", None)', tmp_path)
    pipe.eject(tmp_path / "page.py", "code")
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile((tmp_path / "page.py").read_text(encoding="utf-8"), "page.py", "exec"), found)
    for split in pipe:
        made, wanted = stream(found[f"{split}_batches"](1)), stream(pipe.dataset(split, epoch=1))
        (same if jit == "never" else close)(made, wanted)


IMAGE, TENSOR = {"kind": "image"}, {"kind": "tensor"}
SOURCES: dict[str, dict[str, Any]] = {
    "masks": {
        "source": {"files": {"features": {"image": IMAGE | {"path": "images/*.jpg"}, "mask": {"kind": "mask", "path": "masks/*.png"}}}},
        "transforms": [RESIZE, "random_flip", {"random_rotation": {"degrees": 10}}],
        "output": {"x": "image", "y": "mask"},
    },
    "a table of images and numbers": {
        "source": {"csv": {"path": "table.csv", "features": {"image": IMAGE | {"column": "file"}, "price": TENSOR | {"column": "price"}}}},
        "transforms": [RESIZE, "random_flip"],
        "output": {"x": "image", "y": {"price": "price"}},
    },
    "a table of numbers": {
        "source": {"csv": {"path": "table.csv", "features": {name: TENSOR | {"column": name} for name in ("size", "price")}}},
        "output": {"x": "size", "y": "price"},
    },
    "boxes that decide": {
        "source": {"coco": {"images": "images", "annotations": "boxes.json"}},
        "transforms": ["random_iou_crop", RESIZE, "random_flip", "mosaic", {"jpeg": {"quality": 60}}],
        "output": {"x": "image", "y": {"boxes": "boxes", "labels": "labels", "there": "boxes_valid"}},
    },
    "channels first": {
        "source": {"image_folder": {"path": ".", "labels": "none", "pattern": "images/*.jpg"}},
        "transforms": [RESIZE, {"rescale": {"to": [-1, 1]}}],
        "output": {"x": "image", "y": None, "channels": "first"},
    },
}


@pytest.mark.nightly
@pytest.mark.parametrize("case", SOURCES)
def test_every_source_leaves_and_is_the_same(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipegen

    monkeypatch.chdir(tmp_path)
    _write_pairs(tmp_path)
    spec = {"pipegen": 1, "splits": {"parts": {"train": 0.6, "validation": 0.4}}, "batch": {"size": 4}, **SOURCES[case]}
    pipe = pipegen.build(spec, runtime={"jit": "never", "cache": "none"})
    assert pipe.explain_html().count("<img") == 0 or case != "a table of numbers"
    pipe.eject(tmp_path / "out")
    keep(pipe, tmp_path / "wanted")
    outside('check("out", "wanted", None)', tmp_path)
    pipe.eject(tmp_path / "page.py", "code")
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile((tmp_path / "page.py").read_text(encoding="utf-8"), "page.py", "exec"), found)
    for split in pipe:
        same(stream(found[f"{split}_batches"](1)), stream(pipe.dataset(split, epoch=1)))


def _write_pairs(folder: Path) -> None:
    """Images, their masks, and a table of them."""
    from PIL import Image

    for name in ("images", "masks"):
        (folder / name).mkdir()
    rows = ["file,price,size"]
    for i in range(20):
        Image.fromarray(picture(i, 40, 44)).save(folder / "images" / f"{i:02d}.jpg")
        mask = np.zeros((40, 44), np.uint8)
        mask[5:20, 8:30] = 1 + i % 2
        Image.fromarray(mask).save(folder / "masks" / f"{i:02d}.png")
        rows.append(f"images/{i:02d}.jpg,{i * 1.5},{i}")
    (folder / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    boxes = [{"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [4 + i, 3, 12, 20]} for i in range(20)]
    images = [{"id": i, "file_name": f"{i:02d}.jpg", "width": 44, "height": 40} for i in range(20)]
    names = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    (folder / "boxes.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": names}))


def test_splits_whose_names_are_no_variables() -> None:
    """Words of Python, and names that differ in signs alone."""
    from pipegen.views.eject import _variables

    names = _variables(["train", "class", "val-1", "val_1", "1st"])
    assert names == {"train": "train", "class": "split_class", "val-1": "val_1", "val_1": "val_1_", "1st": "split_1st"}
