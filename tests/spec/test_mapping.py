"""Specs given as Python mappings: findings carry the key path."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from spec_helpers import codes, only

from pipegen.spec.load import load

GOOD: dict[str, Any] = {"pipegen": 1, "source": {"image_folder": {"path": "photos"}}}


def test_the_same_as_a_file() -> None:
    spec = load({**GOOD, "transforms": [{"resize": {"size": (8, 9)}}, "random_flip"], "batch": MappingProxyType({"size": 4})}, env={}).spec
    assert spec is not None
    assert spec.name is None
    assert spec.transforms[0].size == (8, 9)  # type: ignore[attr-defined]
    assert spec.source.path == str(Path.cwd() / "photos")  # type: ignore[attr-defined]


def test_a_path_object() -> None:
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": PurePosixPath("/data")}}}, env={})
    assert loaded.spec is not None
    assert loaded.spec.source.path == "/data"  # type: ignore[attr-defined]


def test_array_scalars() -> None:
    class Scalar:
        ndim = 0

        def item(self) -> int:
            return 7

    loaded = load({**GOOD, "seed": Scalar()}, env={})
    assert loaded.spec is not None
    assert loaded.spec.seed == 7


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"batch": {"size": 0}}, "PG105", "batch.size"),
        ({"batch": {"sise": 4}}, "PG102", "batch.sise"),
        ({"transforms": ["random_flip", {"random_flip": {"probability": "yes"}}]}, "PG104", "transforms[1].random_flip.probability"),
        ({"transforms": [{"random_flip": {"probabilty": 1}}]}, "PG102", "transforms[0].random_flip.probabilty"),
        ({"transforms": ["random_flp"]}, "PG103", "transforms[0].random_flp"),
        ({"seed": object()}, "PG104", "seed"),
        ({"seed": float("nan")}, "PG105", "seed"),
        ({"splits": {"parts": {1: 0.5}}}, "PG105", "splits.parts.1"),
        ({"name": "\ud800"}, "PG001", "name"),
    ],
)
def test_findings_carry_the_key_path(change: dict[str, Any], code: str, path: str) -> None:
    finding = next(d for d in load({**GOOD, **change}, env={}).diagnostics if d.code == code)
    assert finding.primary is not None
    assert finding.primary.path == path
    assert finding.span is None
    assert finding.fix is None


def test_a_mapping_that_holds_itself() -> None:
    spec = dict(GOOD)
    spec["params"] = spec
    assert "PG003" in codes(load(spec, env={}))


def test_the_mapping_is_left_alone() -> None:
    given = {"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "runtime": {"cache": "none"}}
    load(given, env={}, runtime={"cache": "memory"})
    assert given == {"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "runtime": {"cache": "none"}}


def test_runtime_from_python_is_laid_over() -> None:
    own = {"threads": 2, "prefetch": {"device": "GPU:0"}, "shard": {"index": 0, "count": 2}}
    loaded = load({**GOOD, "runtime": own}, env={}, runtime={"prefetch": {"device": "auto"}, "shard": "none", "jit": "never"})
    assert loaded.spec is not None
    runtime = loaded.spec.runtime
    assert (runtime.threads, runtime.shard, runtime.jit) == (2, "none", "never")
    assert runtime.prefetch.device == "auto"  # type: ignore[union-attr]


def test_origins() -> None:
    locate = load({**GOOD, "seed": 3}, env={}).locate
    assert locate.origin(("seed",)) == "given"
    assert locate.origin(("batch", "size")) == "default"


def test_params() -> None:
    loaded = load({**GOOD, "params": {"n": {"type": "int"}}, "batch": {"size": "$n"}}, env={})
    assert only(loaded).code == "PG108"
    loaded = load({**GOOD, "params": {"n": {"type": "int"}}, "batch": {"size": "$n"}}, env={}, params={"n": 3})
    assert loaded.spec is not None
    assert loaded.spec.batch.size == 3
