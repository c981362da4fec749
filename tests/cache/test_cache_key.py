"""What makes another cache, and what goes on with the one that is there."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planning import built, compiled, load_spec

from pipegen.cache import store as module
from pipegen.cache.store import cache_key, describe_cache, steps_in_words, upstream
from pipegen.data.manifest import Manifest
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.plan.nodes import Cache

BASE: dict[str, Any] = {
    "transforms": [{"resize": {"size": 32}}, "random_flip", {"random_rotation": {"degrees": 10}}],
    "runtime": {"cache": {"disk": "cache/"}},
}
DATA = "f" * 64


def key(split: str = "train", data: str = DATA, **own: Any) -> str:
    sections = {**BASE, **own}
    spec = load_spec(sections)
    listing = Listing.labelled("/data", Location.below("/data", ("a.jpg",), (5,)), (0,), "xyz")
    manifest: Any = SimpleNamespace(fingerprint=data, by_part=lambda: {"": SimpleNamespace(listing=listing)})
    return cache_key(spec, compiled(built(sections, split=split, classes=3), spec).plan, manifest)


@pytest.mark.parametrize(
    "own",
    [
        {"batch": {"size": 4, "remainder": "keep"}},
        {"seed": 5},
        {"shuffle": "none"},
        {"name": "another", "description": "words"},
        {"splits": {"parts": {"train": 0.5, "validation": 0.5}, "seed": 3}},
        {"epoch": {"steps": 7}},
        {"transforms": [{"resize": {"size": 32}}]},
        {"transforms": [{"resize": {"size": [32, 32], "id": "other"}}, {"random_zoom": {"factor": 0.5}}, {"normalize": {"preset": "tf"}}]},
        {"transforms": [{"resize": {"size": 32, "when": "all"}}, "random_flip"]},
        {"output": {"encode": {"label": "one_hot"}, "dtype": "float16", "channels": "first"}},
        {"runtime": {"cache": {"disk": "elsewhere/"}, "jit": "never", "threads": 1, "prefetch": "none"}},
        {"source": {"image_folder": {"path": "/mnt/moved"}}},
    ],
    ids=str,
)
def test_what_comes_later_goes_on_with_the_cache(own: dict[str, Any]) -> None:
    assert key(**own) == key()


@pytest.mark.parametrize(
    "own",
    [
        {"transforms": [{"resize": {"size": 33}}]},
        {"transforms": [{"resize": {"size": 32, "antialias": True}}]},
        {"transforms": [{"resize": {"size": 32, "method": "bicubic"}}]},
        {"transforms": [{"decode": {"exif": "ignore"}}, {"resize": {"size": 32}}]},
        {"transforms": [{"decode": {"scaled": "never"}}, {"resize": {"size": 32}}]},
        {"transforms": [{"resize": {"size": 40}}, {"center_crop": {"size": 32}}]},
        {"data": "e" * 64},
    ],
    ids=str,
)
def test_what_changes_the_bytes_makes_another(own: dict[str, Any]) -> None:
    assert key(**own) != key()


def test_splits_share_a_cache_when_they_do_the_same() -> None:
    assert key("validation") == key("train")
    cropped = [{"resize": {"size": 40}}, {"random_crop": {"size": 32}}]
    assert key("validation", transforms=cropped) != key("train", transforms=cropped), "only the crop at the centre can be cached"
    assert key("train", transforms=cropped) == key("train", transforms=[cropped[0]])
    own = [{"resize": {"size": 40, "when": "train"}}, {"resize": {"size": 32, "when": "eval"}}, {"center_crop": {"size": 32}}]
    assert key("validation", transforms=own) != key("train", transforms=own)


def test_versions_make_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(module, "tensorflow_version", lambda: "0.1")
    other = key()
    made = module.makers()
    changed = [other]
    for name in made:
        monkeypatch.setattr(module, "makers", lambda name=name: made | {name: "99.0"})
        changed.append(key())
    assert len({before, *changed}) == len(made) + 2


def test_a_change_of_the_code_of_a_decoder_makes_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Within one version of pipegen a decoder can change."""
    package = Path(module.__file__).parents[1]
    for name in module._CODE:
        shutil.copytree(package / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "__file__", str(tmp_path / "cache" / "key.py"))
    before = module.makers.__wrapped__()
    assert before == module.makers()
    for changed in ("ops/lowering/library.py", "ops/lowering/decoding.py", "ops/transforms/resize.py", "backend/reading/split_records.py"):
        (tmp_path / changed).write_text((tmp_path / changed).read_text() + "# changed\n")
        after = module.makers.__wrapped__()
        assert after["pipegen"] != before["pipegen"], changed
        before = after


def test_the_version_of_every_library_that_decodes_counts() -> None:
    extras = re.findall(r"^([\w-]+) = \[(.*)\]", (Path(module.__file__).parents[2] / "pyproject.toml").read_text(), re.MULTILINE)
    named = {name for extra, listed in extras if extra in DECODE for name in re.findall(r'"([\w-]+)', listed)}
    assert len(named) >= len(DECODE)
    assert named <= {*module._DECODERS}
    assert module.makers()["pillow"]


DECODE = {"heif", "avif", "jxl", "nifti", "dicom", "geotiff", "tiff"}
"""Extras of formats."""


def test_the_version_of_tensorflow_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.tensorflow_version().count(".") >= 2
    monkeypatch.setattr(module, "_DISTRIBUTIONS", ("no-such-distribution",))
    assert module.tensorflow_version() == ""


def test_a_cache_has_a_row_for_each_record_of_the_data() -> None:
    spec = load_spec({**BASE, "name": "flowers"})
    plan = compiled(built(BASE, classes=3), spec).plan
    location = Location.below("/data", ("a.jpg", "b.jpg", "c.jpg"), (5, 6, 7))
    listing = Listing.labelled("/data", location, (0, 1, 1), "xy")
    about = describe_cache(spec, plan, Manifest(listing, {"train": (0, 2), "validation": (1,)}, "image_folder"))
    assert (about.records, about.spec, about.steps) == (3, "flowers", "decode → resize")
    assert [(c.name, c.dtype, c.shape, c.row) for c in about.columns] == [("image", "uint8", (32, 32, 3), 3072)]
    assert len(upstream(plan)) == 2
    plain = replace(plan, nodes=tuple(n for n in plan.nodes if not isinstance(n, Cache)))
    assert upstream(plain) == ()
    assert steps_in_words(plain) == ""
