"""Runs one batch of a spec: of one whose data is there as it is built, of any other on photographs, step by step and without a graph."""

from __future__ import annotations

import copy
import importlib
from pathlib import Path
from typing import Any

import pytest
from planning import interpret, photos, records, with_code

import pipegen
from pipegen.phases.compilation import inspect
from pipegen.plan.check import check


def of_photographs(spec: dict[str, Any]) -> str | None:
    """What goes wrong in a batch of four photographs; nothing where all is well, and `None` where the spec reads more than those."""
    found = inspect(spec)
    assert found.loaded.spec is not None, list(found.diagnostics)
    if not set(names := {name for plan in found.plans.values() for name, _ in _read(plan).items()}) <= {"image", "label"} or not names:
        return None
    try:
        model = with_code(found.loaded.spec)
    except (ModuleNotFoundError, AttributeError):
        return None  # the user's own function
    plans = check(model, found.loaded.locate.label, classes=2).plans
    deep = any(getattr(step, "bits", 8) == 16 for step in model.transforms if step.op == "decode")
    try:
        made = interpret(plans.get("train") or next(iter(plans.values())), model, records(_deep() if deep else photos(4, 60, 80), 2))
    except Exception as error:  # whatever it is, the advice is wrong
        return f"{type(error).__name__}: {str(error)[:300]}"
    return "" if made else "nothing comes out"


def _read(plan: Any) -> Any:
    return next(node for node in plan.nodes if type(node).__name__ == "Read").out


def _deep() -> tuple[bytes, ...]:
    """Pictures of 16 bits."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(3)
    return tuple(tf.io.encode_png(rng.integers(0, 2**16, (60, 80, 3)).astype(np.uint16)).numpy() for _ in range(4))


def of_files(spec: dict[str, Any], folder: Path) -> str:
    """What goes wrong in a first batch of a spec whose data lies in a folder; nothing where all is well."""
    small = copy.deepcopy(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        try:
            pipe = pipegen.build(small, runtime={"jit": "never", "threads": 1}, allow_code=["my_pkg"])
            split = "train" if "train" in pipe else next(iter(pipe.splits))
            next(iter(pipe.dataset(split)))
        except Exception as error:  # as above
            return f"{type(error).__name__}: {str(error)[:300]}"
    return ""
