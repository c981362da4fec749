"""`pipegen report`: what is odd is told, the page is whole and quiet, and the list of copies leaves them out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from browser import looked_at
from page_tags import Tags
from PIL import Image, ImageFilter
from quality_pictures import encoded, photos, put
from typer.testing import CliRunner

import pipegen
from pipegen.api.tasks import DataReport
from pipegen.cli.commands import app
from pipegen.errors import SpecError

SPEC = """\
pipegen: 1
name: animals
source: {image_folder: {path: data/}}
splits: {parts: {train: 0.7, validation: 0.3}, seed: 3}
transforms:
  - resize: {size: 32}
batch: {size: 2}
runtime: {cache: {disk: cache/}}
"""
ROOT = Path(__file__).parents[2]


def files() -> dict[str, bytes]:
    pictures = [picture.resize((160, 140)) for picture in photos(200)[:10]]
    found = {f"cat/{i}.jpg": encoded(p, quality=90) for i, p in enumerate(pictures)}
    found |= {f"cat/copy {i}.jpg": encoded(p, quality=40) for i, p in enumerate(pictures)}
    found["cat/again.jpg"] = found["dog/same.jpg"] = found["cat/0.jpg"]
    odd = {"dark": pictures[0].point(lambda v: v // 5), "bright": pictures[0].point(lambda v: 255 - v // 5)}
    odd |= {"<i>blurry": pictures[2].filter(ImageFilter.GaussianBlur(9)), "flat": Image.new("RGB", (160, 140), (200, 200, 205))}
    odd |= {"wide": pictures[3].resize((400, 56)), "tiny": pictures[3].resize((20, 18))}
    return found | {f"dog/{name}.jpg": encoded(p, quality=90) for name, p in odd.items()} | {"dog/bad.jpg": b"no picture"}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    put(folder / "data", files())
    (folder / "animals.pipegen.yaml").write_text(SPEC)
    return folder


@pytest.fixture(scope="module")
def seen(here: Path) -> DataReport:
    return pipegen.report(here / "animals.pipegen.yaml")


def test_what_is_odd_is_told_and_nothing_of_it_is_an_error(seen: DataReport) -> None:
    told = {odd.name: [seen.manifest.listing.keys[int(r)] for r in odd.records] for odd in seen.survey.odd}
    assert told["dark"] == ["dog/dark.jpg"]
    assert told["bright"] == ["dog/bright.jpg"]
    assert told["flat"] == ["dog/flat.jpg"]
    assert told["blurry"][0] == "dog/<i>blurry.jpg"
    assert told["of an odd size"] == ["dog/tiny.jpg"]
    assert told["of an odd aspect"] == ["dog/wide.jpg"]
    severities = {d.code: d.severity.value for d in seen.diagnostics}
    assert {severities[code] for code in ("PG735", "PG736", "PG737", "PG740")} == {"info"}
    assert (severities["PG742"], seen.survey.unreadable) == ("warning", ("dog/bad.jpg",))


def test_the_page_is_whole_escaped_and_without_scripts(seen: DataReport) -> None:
    text = str(seen.html())
    read = Tags(text)
    tags = [tag for tag, _ in read.found]
    assert not {"script", "iframe", "link", "i", "object"} & set(tags)
    policy = next(about["content"] for tag, about in read.found if about.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy)
    images = [about for tag, about in read.found if tag == "img"]
    assert len(images) > 30
    assert all(about["alt"] and str(about["src"]).startswith("data:image/") for about in images)
    assert "dog/<i>blurry.jpg" in read.text
    for title in ("Splits and classes", "Samples", "Copies in two splits", "Oddities", "Sizes", "Statistics"):
        assert title in read.text
    anchors = {about["id"] for tag, about in read.found if tag == "h2"}
    assert {str(about["href"])[1:] for tag, about in read.found if tag == "a"} == anchors


def test_statistics_are_those_of_the_pixels(here: Path, seen: DataReport) -> None:
    record = list(seen.manifest.listing.keys).index("cat/3.jpg")
    with Image.open(here / "data/cat/3.jpg") as picture:
        pixels = np.asarray(picture.convert("RGB"), np.float64) / 255
    np.testing.assert_allclose(seen.survey.looks["means"][record], pixels.mean((0, 1)), atol=0.01)
    np.testing.assert_allclose(seen.survey.looks["squares"][record], (pixels**2).mean((0, 1)), atol=0.02)


def run(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["report", *args], prog_name="pipegen")
    return result.exit_code, result.stdout, result.stderr


def test_the_list_leaves_the_copies_out_and_moves_nothing(here: Path, seen: DataReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    code, out, err = run("animals.pipegen.yaml", "--write-exclude", "copies.txt", "-o", "page.html")
    assert (code, "PG731" in out, "splits: {exclude: copies.txt}" in err) == (1, True, True)
    listed = (here / "copies.txt").read_text().splitlines()[1:]
    assert listed == seen.leaks.to_exclude()
    assert set(listed) <= set(seen.manifest.keys("train"))
    Path("without.pipegen.yaml").write_text(SPEC.replace("seed: 3", "seed: 3, exclude: copies.txt"))
    code, out, _ = run("without.pipegen.yaml", "-o", "page.html", "--write-exclude", "copies.txt")
    assert (code, "PG730" in out or "PG731" in out) == (0, False)
    after = pipegen.report("without.pipegen.yaml")
    assert list(after.manifest.keys("validation")) == list(seen.manifest.keys("validation"))
    assert list(after.manifest.keys("train")) == [key for key in seen.manifest.keys("train") if key not in listed]
    assert (here / "copies.txt").read_text().splitlines()[1:] == listed, "what is left out stays on the list"
    Path("copies.txt").unlink()
    code, _, _ = run("without.pipegen.yaml", "-o", "page.html", "--write-exclude", "copies.txt")
    assert (code, Path("copies.txt").exists()) == (1, True), "a list that is yet to be written may be named already"


def test_a_file_of_someone_else_is_not_written_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    Path("notes.txt").write_text("mine\n")
    code, _, err = run("animals.pipegen.yaml", "--write-exclude", "notes.txt", "-o", "page.html")
    assert (code, "it is unchanged" in err, Path("notes.txt").read_text()) == (2, True, "mine\n")


@pytest.mark.parametrize("form", ["json", "github", "sarif"])
def test_findings_in_other_formats(form: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    code, out, err = run("animals.pipegen.yaml", "--format", form, "-o", "page.html")
    assert (code, "wrote page.html" in err) == (1, True)
    assert "PG731" in (out if form == "github" else json.dumps(json.loads(out)))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nowhere.yaml",), "PG005"),
        (("animals.pipegen.yaml", "-o", "nowhere/page.html"), "there is no folder"),
        (("animals.pipegen.yaml", "-o", "data"), "is a folder"),
        (("animals.pipegen.yaml", "--set", "source.image_folder.path=nowhere"), "PG401"),
    ],
)
def test_what_cannot_be_done_is_said(args: tuple[str, ...], said: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    code, _, err = run(*args)
    assert code in (1, 2)
    assert said in err
    assert "internal" not in err


def test_an_ignore_comment_silences_a_note(here: Path) -> None:
    (here / "quiet.pipegen.yaml").write_text(SPEC.replace("data/}}", "data/}}  # pipegen: ignore[PG735, PG742]"))
    codes = {d.code for d in pipegen.report(here / "quiet.pipegen.yaml").diagnostics}
    assert "PG736" in codes
    assert not {"PG735", "PG742"} & codes


def test_arrays_and_records_without_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = {"image": {"kind": "image"}, "label": {"kind": "label"}}
    spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "splits": {"parts": {"train": 0.5, "validation": 0.5}}}
    images = rng.integers(0, 256, (8, 6, 6, 3), dtype=np.uint8).repeat(8, 1).repeat(8, 2)
    images[4:] = images[:4]
    found = pipegen.report({**spec, "batch": {"size": 1}}, data={"image": images, "label": np.arange(8) % 2})
    assert found.leaks.looked_at == 8
    assert {d.code for d in found.diagnostics} & {"PG730", "PG741"}
    assert "<img" in found.html()
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{i},{i + 1},{i % 2}\n" for i in range(8)))
    columns = {"x": {"kind": "tensor", "columns": ["a", "b"]}, "label": {"kind": "label", "column": "y"}}
    table = {**spec, "source": {"csv": {"path": str(tmp_path / "t.csv"), "features": columns}}, "output": {"x": "x"}, "batch": {"size": 1}}
    numbers = pipegen.report(table)
    assert numbers.leaks.looked_at == 0
    assert "PG742" in {d.code for d in numbers.diagnostics}
    assert "<h1>" in numbers.html()


@pytest.mark.nightly
def test_tensorflow_is_not_needed(here: Path) -> None:
    code = """\
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
import pipegen
found = pipegen.report("animals.pipegen.yaml")
print(len(found.leaks.pairs), len(found.html()) > 10000)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=here, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split()[1:] == ["True"], done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_every_picture_and_asks_for_nothing(scheme: str, seen: DataReport, tmp_path: Path) -> None:
    seen.save(tmp_path / "page.html")
    (found,) = looked_at((tmp_path / "page.html", 400, scheme))
    assert (found["said"], found["asked"], found["broken"], found["over"]) == ([], [], 0, 0)


def test_a_wrong_spec_is_refused() -> None:
    with pytest.raises(SpecError):
        pipegen.report({"pipegen": 1, "source": {"image_folder": {"path": "nowhere"}}})


@pytest.mark.nightly
@pytest.mark.usefixtures("signals_as_usual")
def test_ctrl_c_ends_at_once_and_keeps_what_was_seen(tmp_path: Path) -> None:
    picture = photos(400)[0].resize((1200, 1200))
    put(tmp_path / "data", {f"cat/{i}.png": encoded(picture, "PNG") for i in range(2)})
    for i in range(2, 600):
        os.link(tmp_path / "data/cat/0.png", tmp_path / f"data/cat/{i}.png")
    (tmp_path / "spec.yaml").write_text(SPEC)
    code = "import sys; from pipegen.cli.app import main; sys.argv[0] = 'pipegen'; main()"
    command = [sys.executable, "-c", code, "report", "spec.yaml", "--set", "runtime.threads=2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and len(os.listdir(f"/proc/{process.pid}/task")) < 3:  # until two threads decode
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, "interrupted" in err) == (130, True)
    assert time.monotonic() - began < 60
    assert re.fullmatch(r"[0-9a-f]{32}\.looks", next((tmp_path / "cache/looks").iterdir()).name)


def test_machines_get_every_pair_and_people_the_first_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pictures = [encoded(p.resize((48, 40)), quality=90) for p in photos(60)[:18]]
    put(tmp_path / "data", {f"{split}/c/{i}.jpg": data for split in ("train", "validation") for i, data in enumerate(pictures)})
    splits = "splits: {method: folder, parts: {train: train, validation: validation}}"
    Path("a.pipegen.yaml").write_text(SPEC.replace("splits: {parts: {train: 0.7, validation: 0.3}, seed: 3}", splits))
    _, text, _ = run("a.pipegen.yaml", "-o", "page.html")
    assert "8 more pairs are like these; `--format json` has all of them" in text
    _, out, _ = run("a.pipegen.yaml", "-o", "page.html", "--format", "json")
    document = json.loads(out)
    named = [d["message"] for d in document["diagnostics"] if d["code"] == "PG730"]
    assert len(named) == len(set(named)) == 18
    assert not any("more pairs" in message for message in named)
    pairs = document["found"]["pairs"]
    assert sorted(p["key"] for p in pairs) == sorted(f"train/c/{i}.jpg" for i in range(18))
    assert {(p["split"], p["other_split"], p["same"]) for p in pairs} == {("train", "validation", True)}
    for form in ("sarif", "github"):
        _, out, _ = run("a.pipegen.yaml", "-o", "page.html", "--format", form)
        assert out.count("are the same, byte by byte") >= 18


def test_the_document_names_every_record_that_is_odd(seen: DataReport) -> None:
    from pipegen.quality.survey import in_full

    found = json.loads(json.dumps(in_full(seen.survey)))
    assert {one["name"] for one in found["odd"]} >= {"dark", "bright", "flat"}
    assert sum(len(one["records"]) for one in found["odd"]) == sum(len(odd.records) for odd in seen.survey.odd)
    assert found["unreadable"] == ["dog/bad.jpg"]
