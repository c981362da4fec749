"""Which examples an epoch has, by every means of a spec, beside everything that a run can do with them.

Each cell of the table is one test: what is computed is compared with the batches of a plain run of the same spec.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from pipes import picture
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image
from record_files import example, write_tfrecord

import pipegen
from pipegen.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.tf

TESTS = Path(__file__).parent
CLASSES = {"cat": 9, "dog": 4, "fox": 3}
STEPS: list[Any] = [{"resize": {"size": 8}}, "random_flip", {"random_brightness": {"factor": 0.3}}]
Spec = dict[str, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen pictures, as a folder, a table and shards."""
    folder = tmp_path_factory.mktemp("choice")
    rows, records = ["file,label,loss,often"], []
    for name, n in CLASSES.items():
        (folder / "p" / name).mkdir(parents=True)
        for i in range(n):
            file = folder / "p" / name / f"{i}.png"
            Image.fromarray(picture(len(rows), 12 + i, 10)).save(file)
            rows.append(f"{file},{name},{len(rows) * 7 % 16 / 16},{i % 3}")
            records.append({"image": file.read_bytes(), "label": [*CLASSES].index(name)})
    (folder / "t.csv").write_text("\n".join(rows) + "\n")
    for shard in range(2):
        write_tfrecord(folder / "r" / f"{shard}.tfrecord", map(example, records[shard::2]))
    return folder


def folder_of(root: Path) -> Spec:
    return {"image_folder": {"path": str(root / "p")}}


def table_of(root: Path) -> Spec:
    columns = {"image": {"kind": "image", "column": "file", "root": "/"}, "label": {"kind": "label"}, "loss": {"kind": "tensor"}}
    return {"csv": {"path": str(root / "t.csv"), "features": columns | {"often": {"kind": "weight"}}}}


def shards_of(root: Path) -> Spec:
    label = {"kind": "label", "classes": [*CLASSES]}
    return {"tfrecord": {"path": str(root / "r"), "features": {"image": {"kind": "image"}, "label": label}}}


def mix_of(root: Path, *sources: Spec, epoch: Any = 24, **more: Any) -> Spec:
    parts = {
        f"part{i}": {"weight": weight, "source": source, **more} for i, (weight, source) in enumerate(zip((0.6, 0.4), sources, strict=True))
    }
    return {"source": {"mix": {"epoch": epoch, "parts": parts}}}


def ordered(spec: Spec) -> Spec:
    spec["source"]["mix"]["parts"]["part0"]["order"] = {"by": "loss", "pace": PACE}
    return spec


PACE = {"linear": {"from": 0.4, "to": 1, "epochs": [0, 2]}}
HELD_OUT = {"splits": {"parts": {"train": 0.75, "validation": 0.25}, "method": "random"}}
WHAT: dict[str, Callable[[Path], Spec]] = {
    "balance": lambda root: {"source": folder_of(root), "sampling": {"balance": "label"}, **HELD_OUT},
    "repeat": lambda root: {"source": folder_of(root), "sampling": {"repeat_factor": {"threshold": 0.6}}, **HELD_OUT},
    "weights": lambda root: {"source": table_of(root), "sampling": {"weights": "often"}, **HELD_OUT},
    "subset": lambda root: {"source": folder_of(root), "sampling": {"subset": {"count": 8}}, **HELD_OUT},
    "order": lambda root: {
        "source": table_of(root),
        "order": {"by": "loss", "pace": {"linear": {"from": 0.4, "to": 1, "epochs": [0, 2]}}},
        **HELD_OUT,
    },
    "shards": lambda root: {"source": shards_of(root), "sampling": {"balance": "label"}, **HELD_OUT},
    "plain_shards": lambda root: {"source": shards_of(root), **HELD_OUT},
    "mix": lambda root: mix_of(root, folder_of(root), shards_of(root), **HELD_OUT),
    "sampled_mix": lambda root: mix_of(root, shards_of(root), folder_of(root), sampling={"balance": "label"}, **HELD_OUT),
    "ordered_mix": lambda root: ordered(mix_of(root, table_of(root), shards_of(root), **HELD_OUT)),
}


def build(spec: Spec, runtime: Spec | None = None, **own: Any) -> Any:
    whole = {"pipegen": 1, "transforms": STEPS, "batch": {"size": 4, "remainder": "keep"}, "output": {"dtype": "uint8"}, **spec, **own}
    return pipegen.build(whole, runtime={"jit": "never", "cache": "none", **(runtime or {})})


def batches(dataset: Any) -> list[tuple[Any, ...]]:
    return [tuple(part.numpy() for part in batch) for batch in dataset]


def same(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        for left, right in zip(a, b, strict=True):
            np.testing.assert_array_equal(left, right)


class Plain:
    """A spec, and what a plain run of it gives: epochs 0 and 1 of training, and validation."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.spec, self.root = name, WHAT[name](root), root
        self.pipe = build(self.spec)

    @cached_property
    def epochs(self) -> list[list[tuple[Any, ...]]]:
        return [batches(self.pipe.dataset("train", epoch=epoch)) for epoch in (0, 1)]

    @cached_property
    def validation(self) -> list[tuple[Any, ...]]:
        return batches(self.pipe.validation)


@pytest.fixture(scope="module")
def plain(root: Path) -> Callable[[str], Plain]:
    held: dict[str, Plain] = {}

    def get(name: str) -> Plain:
        if name not in held:
            held[name] = Plain(name, root)
        return held[name]

    return get


def memory_cache(plain: Plain, folder: Path) -> None:
    pipe = build(plain.spec, {"cache": "memory"})
    for epoch in (0, 1):
        same(batches(pipe.train), plain.epochs[epoch])
        same(batches(pipe.validation), plain.validation)


def disk_cache(plain: Plain, folder: Path) -> None:
    for _ in range(2):
        pipe = build(plain.spec, {"cache": {"disk": str(folder)}})
        same(batches(pipe.train), plain.epochs[0])
        same(batches(pipe.train), plain.epochs[1])
        same(batches(pipe.validation), plain.validation)


KILLED = """
import json, os, signal, sys
from test_every_choice import build
pipe = build(json.loads(sys.argv[1]), {"cache": {"disk": sys.argv[2]}})
for number, batch in enumerate(pipe.train):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_cache(plain: Plain, folder: Path) -> None:
    """Killed in its second batch; what the cache holds by then is of no harm."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent), str(TESTS), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", KILLED, json.dumps(plain.spec), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    disk_cache(plain, folder)


def hosts(plain: Plain, folder: Path) -> None:
    shares = [batches(plain.pipe.dataset("train", epoch=1, shard=(i, 2))) for i in range(2)]
    same([tuple(map(np.concatenate, zip(*both, strict=True))) for both in zip(*shares, strict=True)], plain.epochs[1])


def resume(plain: Plain, folder: Path) -> None:
    """From a state at every step of an epoch, by another pipeline, and with batches of another size."""
    other = build(plain.spec)
    for step in range(len(plain.epochs[1])):
        plain.pipe.seek(1, step)
        state = json.loads(json.dumps(plain.pipe.state()))
        if step in (1, len(plain.epochs[1]) - 1):
            other.restore(state)
            same(batches(other.train), plain.epochs[1][step:])
        assert state["step"] == step
    plain.pipe.seek(1, 1)
    half = build(plain.spec, batch={"size": 2, "remainder": "keep"})
    half.restore(plain.pipe.state())
    rest = [tuple(map(np.concatenate, zip(*some, strict=True))) for some in (batches(half.train), plain.epochs[1][1:])]
    same(rest[:1], rest[1:])
    plain.pipe.seek(0)


def stages(plain: Plain, folder: Path) -> None:
    """Each epoch has the examples that it has without stages, whatever the batch; caches of a stage that was broken off serve the next."""
    staged = [{"epochs": 1, "batch": 2}, {"epochs": 1}]
    pipe = build(plain.spec, {"cache": {"disk": str(folder)}}, stages=staged)
    next(iter(pipe.train))
    for number, stage in enumerate(pipe.stages):
        found, wanted = ([tuple(map(np.concatenate, zip(*some, strict=True)))] for some in (batches(stage.train), plain.epochs[number]))
        same(found, wanted)
    assert pipe.state()["epoch"] == 2


def fixed_epoch(plain: Plain, folder: Path) -> None:
    pipe = build(plain.spec)
    for epoch in (0, 1):
        same(batches(pipe.train), plain.epochs[epoch])
    same(batches(pipe.dataset("train", epoch=0, step=1)), plain.epochs[0][1:])


def validation(plain: Plain, folder: Path) -> None:
    """The other splits are complete, in source order, and untouched by what is chosen for training."""
    files = list(plain.pipe.files("validation"))
    assert len(set(files)) == len(files) == sum(len(y) for _, y in plain.validation) == plain.pipe.num_examples("validation")
    assert np.concatenate([y for _, y in plain.validation]).tolist() == plain.pipe.labels("validation").tolist()
    assert not set(files) & set(plain.pipe.files("train"))


def class_weights(plain: Plain, folder: Path) -> None:
    """Against a count of what is seen, over as many epochs as even out the rounding."""
    epochs = range(4, 44)
    labels = np.concatenate([plain.pipe.labels("train")[plain.pipe._engine.order_of("train", epoch)] for epoch in epochs])
    counts = np.bincount(labels, minlength=3)
    wanted = {i: len(labels) / ((counts > 0).sum() * n) if n else 0.0 for i, n in enumerate(counts.tolist())}
    assert plain.pipe.class_weights == pytest.approx(wanted, rel=0.03)


def export(plain: Plain, folder: Path) -> None:
    done = plain.pipe.export(folder / "out", examples=None)
    lines = [json.loads(line) for line in (folder / "out" / "metadata.jsonl").read_text().splitlines()]
    labels = [plain.pipe.class_names[label] for _, y in plain.epochs[0] for label in y]
    assert [line["label"] for line in lines] == labels
    assert done is not None
    pixels = [np.asarray(Image.open(folder / "out" / line["file_name"])) for line in lines]
    np.testing.assert_array_equal(np.stack(pixels), np.concatenate([x for x, _ in plain.epochs[0]]))


def predict(plain: Plain, folder: Path) -> None:
    files = [str(path) for path in sorted((plain.root / "p" / "dog").iterdir())]
    found = plain.pipe.predict_on(files)
    assert [Path(file).name for file in found.files] == [Path(file).name for file in files]
    assert sum(len(batch) for batch in found.dataset) == len(files)


def eject(plain: Plain, folder: Path) -> None:
    import tensorflow as tf

    plain.pipe.eject(folder / "graph", splits=["train"])
    loaded = tf.saved_model.load(str(folder / "graph" / "train"))
    same([tuple(t.numpy() for t in tf.nest.flatten(batch)) for batch in loaded.batches(1, 1)], plain.epochs[1][1:])


def prepare(plain: Plain, folder: Path) -> None:
    spec = {"pipegen": 1, "transforms": STEPS, "batch": {"size": 4, "remainder": "keep"}, "output": {"dtype": "uint8"}, **plain.spec}
    if "mix" in spec["source"]:
        with pytest.raises(SpecError, match="prepare the source of each part by itself"):
            pipegen.prepare(spec, folder / "store")
        return
    pipegen.prepare(spec, folder / "store")
    (made,) = (folder / "store").glob("*.pipegen.yaml")
    pipe = pipegen.build(made, runtime={"jit": "never", "cache": "none"})
    for epoch in (0, 1):
        same(batches(pipe.dataset("train", epoch=epoch)), plain.epochs[epoch])
    same(batches(pipe.validation), plain.validation)


def part_in_output(plain: Plain, folder: Path) -> None:
    """The number of the part of each example, beside the same pictures."""
    if "mix" not in plain.spec["source"]:
        with pytest.raises(SpecError, match="part"):
            build(plain.spec, output={"x": {"image": "image", "part": "part"}})
        return
    pipe = build(plain.spec, output={"x": {"image": "image", "part": "part"}, "dtype": "uint8"})
    keys = list(pipe._manifest.keys("train"))
    for epoch in (0, 1):
        found = [({k: v.numpy() for k, v in x.items()}, y.numpy()) for x, y in pipe.dataset("train", epoch=epoch)]
        same([(x["image"], y) for x, y in found], plain.epochs[epoch])
        shown = [f"part{number}" for x, _ in found for number in x["part"]]
        assert shown == [keys[record].partition("/")[0] for record in pipe._engine.order_of("train", epoch).tolist()]


HOW: tuple[Callable[[Plain, Path], None], ...] = (
    memory_cache, disk_cache, killed_cache, hosts, resume, stages, fixed_epoch, validation, class_weights, export, predict, eject, prepare,
    part_in_output,
)  # fmt: skip
QUICK = {("sampled_mix", "class_weights")}
CELLS = [
    pytest.param(what, how, marks=[] if (what, how.__name__) in QUICK else [pytest.mark.nightly], id=f"{what}-{how.__name__}")
    for what in WHAT
    for how in HOW
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("what", "how"), CELLS)
def test_what_an_epoch_has_goes_with_what_a_run_does(
    what: str, how: Callable[[Plain, Path], None], plain: Callable[[str], Plain], tmp_path: Path
) -> None:
    how(plain(what), tmp_path)
