"""Runs one batch of a spec: of one whose data is there as it is built, of any other on photographs, step by step and without a graph."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from planning import interpret, photos, records

import pipegen
from pipegen.ops.families.custom import CustomTransform
from pipegen.phases.compilation import inspect
from pipegen.plan.check import check
from pipegen.plan.nodes import Read

if TYPE_CHECKING:
    from pipegen.plan.nodes import Plan


def of_photographs(spec: dict[str, Any]) -> str | None:
    """What goes wrong in a batch of four photographs; nothing where all is well, and `None` where the spec asks for more than those."""
    found = inspect(spec)
    model = found.loaded.spec
    assert model is not None, list(found.diagnostics)
    plans = check(model, found.loaded.locate.label, classes=2).plans
    plan = plans.get("train") or next(iter(plans.values()))
    if plan.buckets or any(isinstance(step, CustomTransform) for step in model.transforms) or not _is_photograph(plan):
        return None
    deep = any(getattr(step, "bits", 8) == 16 for step in model.transforms if step.op == "decode")
    said = ""
    for side in (60, 1100):
        try:
            made = interpret(plan, model, records(_deep() if deep else photos(4, side, side + 20), 2))
            return "" if made else "nothing comes out"
        except Exception as error:  # whatever it is, the advice is wrong
            said = f"{type(error).__name__}: {str(error)[:300]}"
            if "exceeds the image" not in said:
                break
    return said


def _is_photograph(plan: Plan) -> bool:
    """Whether a plan reads encoded images, and one label at most of each."""
    read = dict(next(node for node in plan.nodes if isinstance(node, Read)).out.items())
    image, label = read.get("image"), read.get("label")
    return set(read) <= {"image", "label"} and image is not None and image.encoded and (label is None or label.shape == ())


def _deep() -> tuple[bytes, ...]:
    """Pictures of 16 bits."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(3)
    return tuple(tf.io.encode_png(rng.integers(0, 2**16, (60, 80, 3)).astype(np.uint16)).numpy() for _ in range(4))


def of_files(spec: dict[str, Any], folder: Path) -> str:
    """What goes wrong in a first batch of a spec whose data lies in a folder; nothing where all is well."""
    (folder / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        try:
            pipe = pipegen.build("spec.yaml", runtime={"jit": "never", "threads": 1}, allow_code=["my_pkg"])
            split = "train" if "train" in pipe else next(iter(pipe.splits))
            next(iter(pipe.dataset(split)))
        except Exception as error:  # as above
            return f"{type(error).__name__}: {str(error)[:300]}"
    return ""
