"""Workers make the batches of every kind of spec: those of one process, bit for bit."""

from __future__ import annotations

import json
import signal
from pipes import CLASSES, RESIZE, batches, same, sections
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.ops.lowering.sounds import encode_wav

if TYPE_CHECKING:
    from pathlib import Path

    from fleet import Fleet

pytestmark = [pytest.mark.tf, pytest.mark.nightly, pytest.mark.timeout(180)]

WINDOW = {"random_resized_crop": {"size": "bucket", "area": [0.5, 1]}}
SHARE = {"weight": 1, "splits": {"parts": {"train": 0.75, "validation": 0.25}}}
COUNTED = {"epochs": 1, "params": {"size": 12}, "batch": 4}
CASES: dict[str, dict[str, Any]] = {
    "buckets": {"transforms": [WINDOW, "random_flip"], "batch": {"size": 4, "buckets": {"sizes": [[24, 24], [20, 28], [28, 20]]}}},
    "views": {"transforms": [RESIZE, "random_flip", {"random_brightness": {"factor": 0.3}}], "views": 2},
    "a balanced epoch": {"transforms": [RESIZE, "random_flip"], "sampling": {"balance": "label"}},
    "rare classes": {"transforms": [RESIZE, "random_flip"], "sampling": {"repeat_factor": {"feature": "label", "threshold": 0.5}}},
    "policies": {"transforms": [RESIZE, "rand_augment", {"one_of": {"steps": ["random_flip", {"random_hue": {"degrees": 30}}]}}]},
    "padded": {"transforms": [RESIZE], "batch": {"size": 8, "remainder": {"validation": "pad"}}},
}


def both(fleet: Fleet, spec: dict[str, Any]) -> tuple[Any, Any]:
    """A pipeline of this process, and one whose batches a worker makes."""
    runtimes: tuple[dict[str, Any], ...] = ({}, fleet.runtime())
    here, there = (pipegen.build(spec, runtime={"jit": "never", "cache": "none", **runtime}) for runtime in runtimes)
    return here, there


def of_both(here: Any, there: Any) -> None:
    """Two epochs of training, the rest of one, and the other splits."""
    for epoch, step in ((0, 0), (1, 0), (1, 1)):
        for pipe in (here, there):
            pipe.seek(epoch, step)
        alike(batches(there.train), batches(here.train))
    for split in set(here.splits) - {"train"}:
        alike(batches(there[split]), batches(here[split]))
    assert there.fed().there, there.fed()


def alike(given: list[Any], expected: list[Any]) -> None:
    assert len(given) == len(expected) > 0
    for one, other in zip(given, expected, strict=True):
        same(one, other)


@pytest.mark.parametrize("name", list(CASES))
def test_a_worker_makes_what_one_process_makes(name: str, photos: Path, fleet: Fleet) -> None:
    of_both(*both(fleet, sections(photos, **CASES[name])))


def test_parts_of_a_mix(photos: Path, fleet: Fleet) -> None:
    parts = {
        name: {**SHARE, "source": {"image_folder": {"path": str(photos), "classes": [*CLASSES]}}, "transforms": own}
        for name, own in {"plain": [], "turned": [{"random_rotation": {"degrees": 20}}]}.items()
    }
    spec = {"pipegen": 1, "source": {"mix": {"epoch": 24, "parts": parts}}, "transforms": [RESIZE, "random_flip"], "batch": {"size": 8}}
    of_both(*both(fleet, spec))


def boxed(folder: Path) -> dict[str, Any]:
    """Photographs with up to four boxes each, as COCO writes them."""
    images, boxes, rng = [], [], np.random.default_rng(0)
    for i in range(16):
        Image.fromarray(rng.integers(0, 256, (40 + i, 50, 3), np.uint8)).save(folder / f"{i:02}.png")
        images.append({"id": i, "file_name": f"{i:02}.png", "width": 50, "height": 40 + i})
        boxes += [{"id": 10 * i + k, "image_id": i, "category_id": 1, "bbox": [3 * k, 2, 20, 25 + k]} for k in range(i % 5)]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "thing"}]}
    (folder / "boxes.json").write_text(json.dumps(content))
    return {"coco": {"images": str(folder), "annotations": str(folder / "boxes.json")}}


@pytest.mark.parametrize("most", [3, None], ids=["at most", "any number"])
def test_boxes(most: int | None, tmp_path: Path, fleet: Fleet) -> None:
    source = boxed(tmp_path)
    if most is not None:
        source["coco"]["max"] = most
    spec = {
        "pipegen": 1,
        "source": source,
        "splits": {"parts": {"train": 12, "validation": 4}},
        "transforms": [RESIZE, "random_flip", "mosaic"],
        "batch": {"size": 4},
        "output": {"x": "image", "y": {"boxes": "boxes", "there": "boxes_valid", "labels": "labels"}},
    }
    of_both(*both(fleet, spec))


@pytest.mark.parametrize(
    "how", [{"pad": {}}, {"buckets": {"by": "length", "sizes": [500, 1200]}, "remainder": "keep"}], ids=["padded", "buckets"]
)
def test_sounds_of_several_lengths(how: dict[str, Any], tmp_path: Path, fleet: Fleet) -> None:
    rng = np.random.default_rng(0)
    for i in range(16):
        (tmp_path / f"c{i % 2}").mkdir(exist_ok=True)
        (tmp_path / f"c{i % 2}" / f"{i}.wav").write_bytes(encode_wav(rng.uniform(-1, 1, (100 + 60 * i, 1)).astype(np.float32), 1000))
    spec = {
        "pipegen": 1,
        "source": {"audio_folder": {"path": str(tmp_path), "rate": 1000}},
        "splits": {"parts": {"train": 12, "validation": 4}},
        "transforms": [{"random_gain": {"db": 6}}],
        "batch": {"size": 4, **how},
        "output": {"x": ["audio", "audio_length", "audio_valid"]},
    }
    of_both(*both(fleet, spec))


def test_stages(photos: Path, fleet: Fleet) -> None:
    """One after another, each from its own job."""
    spec = {
        "params": {"size": {"type": "int", "default": 24}},
        "transforms": [{"resize": {"size": "$size"}}, "random_flip"],
        "stages": [COUNTED, {"epochs": 1}],
    }
    here, there = both(fleet, sections(photos, **spec))
    for one, other, size in zip(here.stages, there.stages, (12, 24), strict=True):
        expected = batches(one.train)
        assert expected[0][0].shape[1] == size
        alike(batches(other.train), expected)
        assert other.fed().there, other.fed()
    assert here.state() == there.state()


def test_ctrl_c_stops_a_worker_and_the_stream_goes_on(photos: Path, fleet: Fleet) -> None:
    here, there = both(fleet, sections(photos, transforms=[RESIZE, "random_flip"]))
    worker = fleet.begin_worker()
    worker.wait_for("ready: ")
    iterator = iter(there.train)
    got = [batches([next(iterator)])[0]]
    told = worker.end(signal.SIGINT)
    assert "stopping: " in told
    assert "Traceback" not in told
    alike([*got, *batches(iterator)], batches(here.train))
