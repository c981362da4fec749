"""The plan as a page: with examples where the data is there, without TensorFlow where it is not, and sound in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from pipes import picture
from typing import TYPE_CHECKING, Any

import pytest
from browser import looked_at
from page_tags import Tags

from pipegen.plan.plan_text import plan_json

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline

ROOT = Path(__file__).parents[1]
HOSTILE = "<img src=x onerror=alert(1)>&'\""
SPEC = """\
pipegen: 1
name: "</title><script>alert(1)</script>"
description: "<b>bold</b>"
source: {image_folder: {path: photos/}}
splits: {parts: {train: 0.75, validation: 0.25}}
transforms:
  - resize: {size: 24}
  - random_flip
  - mixup: {alpha: 0.4}
  - random_brightness: {factor: 0.3}
  - normalize: {preset: tf}
batch: {size: 4}
output: {encode: {label: one_hot}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hostile spec, and photographs in classes whose names and files are hostile, too."""
    from PIL import Image

    root = tmp_path_factory.mktemp("plan page")
    for number, name in enumerate(("rose", HOSTILE)):
        (root / "photos" / name).mkdir(parents=True)
        for i in range(12):
            Image.fromarray(picture(20 * number + i, 30 + i, 34)).save(root / "photos" / name / f"{i:02d} <i>.jpg")
    (root / "flowers.pipegen.yaml").write_text(SPEC, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def pipe(folder: Path) -> Pipeline:
    import pipegen

    return pipegen.build(folder / "flowers.pipegen.yaml", runtime={"jit": "never", "cache": "memory"})


@pytest.fixture(scope="module")
def page(pipe: Pipeline) -> Any:
    return pipe.explain_html(physical=True)


def explain(folder: Path, *args: str, poisoned: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    code = f"""\
import sys
for name in {poisoned!r}:
    sys.modules[name] = None
from pipegen.cli.app import main
sys.argv = ["pipegen", "explain", *sys.argv[1:]]
main()
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code, *args], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60)


def test_without_data_there_are_no_pictures_and_no_tensorflow(folder: Path) -> None:
    done = explain(folder, "flowers.pipegen.yaml", "--format", "html", "-o", "plan.html", poisoned=("tensorflow", "keras", "numpy"))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "wrote plan.html\n")
    tags = Tags((folder / "plan.html").read_text(encoding="utf-8"))
    assert not [tag for tag, _ in tags.found if tag in ("img", "script", "b>")]
    assert "The data is unknown here" in tags.text
    assert "Split validation" in tags.text
    printed = explain(folder, "flowers.pipegen.yaml", "--format", "html", "--split", "train", poisoned=("tensorflow",)).stdout
    assert printed.startswith("<!doctype html>")
    assert "Split validation" not in printed


@pytest.mark.tf
def test_data_that_is_not_there_leaves_the_pictures_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from pipegen.cli.commands import app

    monkeypatch.chdir(tmp_path)
    Path("flowers.pipegen.yaml").write_text(SPEC, encoding="utf-8")
    done = CliRunner().invoke(app, ["explain", "flowers.pipegen.yaml", "--format", "html", "--data", "-o", "plan.html"])
    assert done.exit_code == 0
    assert "PG401" in done.stderr
    tags = Tags(Path("plan.html").read_text(encoding="utf-8"))
    assert "No pictures, because the data cannot be used" in tags.text
    assert "img" not in [tag for tag, _ in tags.found]


def test_data_is_for_pages_alone(folder: Path) -> None:
    done = explain(folder, "flowers.pipegen.yaml", "--data")
    assert done.returncode == 2
    assert "--format html" in done.stderr


@pytest.mark.tf
def test_the_page_has_every_node_and_an_example_at_each_edge(pipe: Pipeline, page: str) -> None:
    tags = Tags(page)
    nodes = [node["node"] for done in pipe._compiled.splits.values() for node in plan_json(done.plan)["nodes"]]
    assert tags.all("data-node") == nodes
    assert tags.all("data-behind") == nodes, "an edge behind each"
    alts = [str(alt) for alt in tags.all("alt")]
    assert len(alts) > len(nodes)
    edges = page.split("data-behind=")[1:]
    assert all("<img" in edge.partition("</li>")[0] for edge in edges if not edge.startswith('"index"'))
    for done in pipe._compiled.splits.values():
        for stage in (stage for node in plan_json(done.plan)["nodes"] for stage in node.get("stages", ())):
            assert stage["text"] in tags.text
        assert all(record.name in tags.text and (not record.changed or record.reason in tags.text) for record in done.records)
    assert "form: training" in tags.text


@pytest.mark.nightly
@pytest.mark.tf
def test_the_examples_are_those_of_the_first_batch(pipe: Pipeline) -> None:
    """What the page says of the last edge is what the dataset gives."""
    from pipegen.views.edges import shown_along

    shown = shown_along(pipe._engine, "train")
    images, labels = next(iter(pipe.dataset("train", epoch=0)))
    seen = shown.edges[-1]
    assert seen["image"].text == f"{images[0].numpy().min():.4g} to {images[0].numpy().max():.4g}"
    said = [dict(reversed(part.split(" at ")) for part in one.split(", ")) for one in seen["label"].text.split("; ")]
    for one, label in zip(said, labels.numpy(), strict=False):
        assert {int(key.split()[0]): float(value) for key, value in one.items()} == pytest.approx(
            {i: float(v) for i, v in enumerate(label) if v}, rel=1e-5
        )
    assert len(said) == len(seen["image"].pictures) == len(labels) == 4, "a batch, though combined groups are larger"


@pytest.mark.tf
def test_what_a_spec_and_its_data_say_is_escaped(page: str) -> None:
    tags = Tags(page)
    assert not [tag for tag, _ in tags.found if tag in ("script", "i")]
    assert not [name for _, attrs in tags.found for name in attrs if name.startswith("on") or name == "style"]
    assert HOSTILE in tags.text
    assert "</title><script>" in tags.text


@pytest.mark.tf
def test_a_file_that_cannot_be_read_leaves_the_pictures_out(folder: Path, tmp_path: Path) -> None:
    import shutil

    import pipegen

    shutil.copytree(folder / "photos", tmp_path / "photos")
    shutil.copy(folder / "flowers.pipegen.yaml", tmp_path)
    for path in (tmp_path / "photos").rglob("*.jpg"):
        path.write_bytes(path.read_bytes()[:40])
    page = pipegen.build(tmp_path / "flowers.pipegen.yaml", runtime={"jit": "never"}).explain_html("train")
    assert "one of the first examples cannot be read" in page
    assert "<img" not in page


@pytest.mark.tf
def test_a_browser_finds_nothing_to_complain_of(page: Any, tmp_path: Path) -> None:
    page.save(tmp_path / "plan.html")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{page._repr_html_()}", encoding="utf-8")
    plan, notebook = tmp_path / "plan.html", tmp_path / "notebook.html"
    wide, narrow, framed = looked_at((plan, 1280, "light"), (plan, 400, "dark"), (notebook, 900, "light"))
    for one in (wide, narrow, framed):
        assert (one["said"], one["asked"], one["broken"]) == ([], [], 0)
        assert one["pictures"] == page.count("<img ")
        assert one["over"] <= 0, "nothing scrolls sideways"
    assert wide["paper"] != narrow["paper"] == "rgb(23, 23, 26)", "dark, where the system is"
