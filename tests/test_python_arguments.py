"""Wrong arguments from Python: each is told by its name and what was expected, and nothing from inside shows."""

from __future__ import annotations

import re
from functools import partial
from pipes import RESIZE, shared
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pipegen
from pipegen.errors import SpecError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPEC = {"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "batch": {"size": 4}}
TAKES = {"build": pipegen.build, "load": pipegen.load}


@pytest.mark.parametrize("function", TAKES)
@pytest.mark.parametrize("spec", [3, None, b"x.yaml", [SPEC], {1, 2}, Ellipsis], ids=repr)
def test_what_is_no_spec(function: str, spec: Any) -> None:
    with pytest.raises(TypeError, match=re.escape('a spec is a path, a map with its sections, or a `pipegen.Spec`, such as "flowers')):
        TAKES[function](spec)


@pytest.mark.parametrize("function", TAKES)
@pytest.mark.parametrize("name", ["params", "overrides", "runtime"])
@pytest.mark.parametrize("value", [3, [1], [], "batch.size=3", {1: 2}, {None: 3}, {("a",): 1}, 0], ids=repr)
def test_what_is_no_map_of_values(function: str, name: str, value: Any) -> None:
    wanted = f"the keys of `{name}` are text, as in {{" if isinstance(value, dict) else f"`{name}` is a map, such as {{"
    with pytest.raises(TypeError, match=re.escape(wanted)):
        TAKES[function](SPEC, **{name: value})


@pytest.mark.parametrize(("name", "value", "says"), [
    ("allow_code", 3, "`allow_code` is a list of modules"),
    ("allow_code", "my_pkg", "`allow_code` is a list of modules, such as ['my_pkg']"),
    ("progress", 3, "`progress` is a function"),
])  # fmt: skip
def test_the_other_arguments_of_build(name: str, value: Any, says: str) -> None:
    with pytest.raises(TypeError, match=re.escape(says)):
        pipegen.build(SPEC, **{name: value})


def test_the_text_of_a_spec_is_no_path() -> None:
    with pytest.raises(SpecError, match=r"yaml\.safe_load"):
        pipegen.load("pipegen: 1\nsource: {image_folder: {path: photos}}\n")


SPLITS = ["dataset", "numpy", "peek", "preview", "files", "labels", "num_examples", "steps", "explain", "__getitem__"]
CALLS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("dataset", {"split": "train", "epoch": "x"}, TypeError, "`epoch` is a whole number, got 'x' (str)"),
    ("dataset", {"split": "train", "epoch": 1.5}, TypeError, "`epoch` is a whole number"),
    ("dataset", {"split": "train", "step": None}, TypeError, "`step` is a whole number, got None"),
    ("dataset", {"split": "train", "step": 99}, ValueError, "step 99 is not in split"),
    ("seek", {"epoch": "x"}, TypeError, "`epoch` is a whole number, got 'x' (str)"),
    ("seek", {"epoch": 0, "step": None}, TypeError, "`step` is a whole number, got None"),
    ("seek", {"epoch": -1}, ValueError, "epoch -1, step 0 is not in split 'train'"),
    ("dataset", {"split": "train", "shard": 3}, TypeError, "`shard` is (index, count), such as (0, 2), got 3"),
    ("dataset", {"split": "train", "shard": (0,)}, TypeError, "`shard` is (index, count)"),
    ("dataset", {"split": "train", "shard": ("a", 2)}, TypeError, "`shard[0]` is a whole number"),
    ("dataset", {"split": "train", "shard": (2, 2)}, ValueError, "share 2 of 2 is out of range"),
    ("dataset", {"split": "train", "device": 3}, TypeError, "`device` is text, such as 'GPU:0'"),
    ("peek", {"n": "x"}, TypeError, "`n` is a whole number"),
    ("peek", {"n": 1.5}, TypeError, "`n` is a whole number"),
    ("peek", {"n": 0}, ValueError, "`n` is at least 1, got 0"),
    ("preview", {"rows": 0}, ValueError, "`rows` is at least 1, got 0"),
    ("preview", {"draws": "x"}, TypeError, "`draws` is a whole number"),
    ("preview", {"cell": 10**7}, ValueError, "is too large"),
    ("preview", {"epoch": -1}, ValueError, "`epoch` is at least 0"),
    ("preview", {"progress": 3}, TypeError, "`progress` is a function"),
    ("export", {"folder": 3}, TypeError, "`folder` is a path, such as 'augmented/', got 3"),
    ("export", {"folder": "x", "form": "gif"}, ValueError, "`form` is `png` or `jpeg`, got 'gif'"),
    ("export", {"folder": "x", "examples": "x"}, TypeError, "`examples` is a whole number"),
    ("export", {"folder": "x", "examples": 0}, ValueError, "`examples` is at least 1"),
    ("export", {"folder": "x", "draws": 0}, ValueError, "`draws` is at least 1"),
    ("export", {"folder": "x", "epoch": "x"}, TypeError, "`epoch` is a whole number"),
    ("export", {"folder": "x", "form": "jpeg", "quality": 0}, ValueError, "`quality` is from 1 to 100, got 0"),
    ("export", {"folder": "x", "prefix": 3}, TypeError, "`prefix` is text"),
    ("export", {"folder": "x", "progress": 3}, TypeError, "`progress` is a function"),
    ("callback", {"directory": 3}, TypeError, "`directory` is a path, such as 'checkpoints/', got 3"),
    ("trim", {"split": "train", "predictions": 3}, TypeError, "`predictions` must be an array from `model.predict`"),
    ("trim", {"split": "train", "predictions": {"y": None}}, TypeError, "`predictions` must be an array from `model.predict`"),
    ("trim", {"split": "train", "predictions": np.zeros(())}, TypeError, "`predictions` must be an array from `model.predict`"),
    ("predict_on", {"wanted": 3}, TypeError, "predict_on takes a folder"),
    ("restore", {"state": 3}, StateError, "a state is a map"),
    ("check", {"model": 3}, TypeError, "check takes a Keras model"),
]


@pytest.mark.tf
def test_wrong_arguments_of_a_pipeline(photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method of one pipeline, so that it is made only once."""
    monkeypatch.chdir(tmp_path)
    pipe = shared(photo_folder, transforms=[RESIZE])
    for name in SPLITS:
        for split in (3, ["train"], {"train": 1}):
            _says(partial(getattr(pipe, name), split), TypeError, "a split must be a name such as 'train', got")
    for name, arguments, kind, says in CALLS:
        _says(partial(getattr(pipe, name), **arguments), kind, says)
    assert ["train"] not in pipe
    assert "train" in pipe
    assert not list(tmp_path.iterdir())
    assert len(pipe.peek(n=np.int64(2))[0]) == 2  # the numbers of NumPy are whole, too


def _says(call: Callable[[], Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert says in str(caught.value), call
