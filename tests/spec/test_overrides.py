"""`--set PATH=VALUE` and `overrides=`: any value by its path, found wrong where it was given, and part of the hash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_helpers import codes, only, text

import pipegen
from pipegen.diagnostics.diagnostic import Severity
from pipegen.diagnostics.text import render_text
from pipegen.phases.compilation import inspect
from pipegen.spec.load import Loaded, load
from pipegen.spec.spec_hash import spec_hash

BODY = """
params: {size: {type: int, default: 32}, batch: {type: int, default: 7}}
splits: {parts: {train: 0.5, validation: 0.5}}
transforms:
  - resize: {size: $size}
  - random_flip
  - random_rotation: {degrees: 5, id: turn}
  - random_flip: {probability: 0.4}
  - one_of: {steps: [random_invert, random_gaussian_blur: {sigma: 1}]}
batch: {size: $batch, remainder: drop}
shuffle: {window: 1GiB}
runtime: {cache: auto}
"""


def with_sets(*sets: str, body: str = BODY) -> Loaded:
    values = dict(s.partition("=")[::2] for s in sets)
    return load("spec.yaml", text=text(body), env={}, overrides=values, overrides_from="--set")


def result(loaded: Loaded) -> Any:
    assert loaded.spec is not None, [d.message for d in loaded.diagnostics]
    return loaded.spec


@pytest.mark.parametrize(
    ("given", "equal"),
    [
        ("batch.size=64", "batch: {size: 64, remainder: drop}"),
        ("batch.remainder.validation=keep", "batch: {size: $batch, remainder: {validation: keep}}"),
        ("seed=3", "seed: 3"),
        ("shuffle=none", "shuffle: none"),
        ("shuffle.window=2GiB", "shuffle: {window: 2GiB}"),
        ("runtime.cache.disk=/tmp/x", "runtime: {cache: {disk: /tmp/x}}"),
        ("splits.parts.validation=0.25", "splits: {parts: {train: 0.5, validation: 0.25}}"),
        ("splits.parts={train: 0.8, test: 0.2}", "splits: {parts: {train: 0.8, test: 0.2}}"),
        ("output.y=null", "output: {y: null}"),
        ("source.image_folder.pattern=*.jpg", "source: {image_folder: {path: photos, pattern: '*.jpg'}}"),
        ("errors.decode.skip.max_fraction=0.1", "errors: {decode: {skip: {max_fraction: 0.1}}}"),
        ("name='12'", "name: '12'"),
        ("params.batch.default=9", "params: {size: {type: int, default: 32}, batch: {type: int, default: 9}}"),
    ],
)  # fmt: skip
def test_it_means_what_the_file_would(given: str, equal: str) -> None:
    key = equal.partition(":")[0]
    head = text("") if key != "source" else "pipegen: 1\n"
    lines = [line for line in BODY.strip().splitlines() if line.partition(":")[0] != key]
    written = load("spec.yaml", text=head + "\n".join([*lines, equal]) + "\n", env={})
    laid = with_sets(given)
    assert result(laid).model_dump() == result(written).model_dump()
    assert spec_hash(result(laid)) == spec_hash(result(written))


@pytest.mark.parametrize(
    ("given", "index", "argument", "value"),
    [
        ("transforms.random_flip.axis=both", 1, "axis", "both"),
        ("transforms[1].axis=both", 1, "axis", "both"),
        ("transforms[1].random_flip.axis=both", 1, "axis", "both"),
        ("transforms.1.axis=both", 1, "axis", "both"),
        ("transforms.random_flip#2.axis=vertical", 3, "axis", "vertical"),
        ("transforms.turn.degrees=30", 2, "degrees", 30),
        ("transforms.resize.size=[16, 24]", 0, "size", (16, 24)),
        ("transforms.random_flip={axis: both, probability: 0.2}", 1, "probability", 0.2),
        ("transforms[1]={random_flip: {axis: vertical}}", 1, "axis", "vertical"),
    ],
)
def test_steps_are_named_by_id_or_number(given: str, index: int, argument: str, value: object) -> None:
    loaded = with_sets(given)
    assert getattr(result(loaded).transforms[index], argument) in (value, [*value] if isinstance(value, tuple) else value)
    others = [i for i in range(5) if i != index]
    plain = result(with_sets())
    assert all(result(loaded).transforms[i] == plain.transforms[i] for i in others)


def test_steps_inside_a_step() -> None:
    one_of = result(with_sets("transforms.one_of.steps.random_gaussian_blur.sigma=2")).transforms[4]
    assert one_of.inner_steps()[1].sigma == result(with_sets("transforms.one_of.steps[1].sigma=2")).transforms[4].inner_steps()[1].sigma
    assert one_of != result(with_sets()).transforms[4]


def test_a_param_of_that_name_wins() -> None:
    loaded = with_sets("batch=9", "size=16")
    assert result(loaded).batch.size == 9
    assert loaded.locate.origin(("batch", "size")) == "--set batch=9"


def test_params_may_stand_in_a_value_and_paths_are_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = with_sets("transforms.turn.degrees=$size", "source.image_folder.path=else/where", body=BODY)
    assert result(loaded).transforms[2].degrees == 32
    assert result(loaded).source.path == str(tmp_path / "else" / "where")


def test_show_says_where_a_value_is_from() -> None:
    loaded = with_sets("batch.size=64", "transforms.random_flip.axis=both")
    assert loaded.locate.origin(("batch", "size")) == "--set batch.size=64"
    assert loaded.locate.origin(("transforms", 1, "random_flip", "axis")) == "--set transforms.random_flip.axis=both"
    assert loaded.locate.origin(("batch", "remainder")).startswith("spec.yaml:")


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("batch.size=many", "PG104", "`batch.size`"),
        ("batch.sise=64", "PG102", "did you mean `size`"),
        ("btach.size=64", "PG102", "did you mean `batch`"),
        ("transforms.random_flop.axis=both", "PG102", "did you mean `random_flip`"),
        ("transforms.random_flip.axes=both", "PG102", "did you mean `axis`"),
        ("transforms.random_flip.axis=bth", "PG105", "`both`"),
        ("transforms[9].axis=both", "PG102", "5 entries"),
        ("batch[0]=1", "PG102", "is not a list"),
        ("transforms.random_flip=both", "PG102", "name the argument"),
        ("splits.parts={train: 0.8", "PG102", "not valid YAML"),
        ("splits.parts.train=0.9", "PG301", "--set splits.parts.train=0.9"),
        ("batch..size=1", "PG102", "invalid path"),
        ("extends=x", "PG102", "cannot be set"),
        ("siz=1", "PG108", "did you mean `size`"),
        ("bathc=1", "PG108", "use its path"),
    ],
)
def test_a_wrong_one_is_found_where_it_was_given(given: str, code: str, said: str) -> None:
    values = dict([given.partition("=")[::2]])
    found = inspect("spec.yaml", text=text(BODY), overrides=values, overrides_from="--set")
    shown = render_text([d for d in found.diagnostics if d.code == code])
    assert said in shown, render_text(found.diagnostics)
    assert f"--set {given}" in shown
    assert len([d for d in found.diagnostics if d.severity.value == "error"]) == 1, render_text(found.diagnostics)


def test_overrides_in_python() -> None:
    spec: dict[str, Any] = {"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 8}}, "random_flip"]}
    loaded = pipegen.load(spec, overrides={"batch.size": 64, "transforms.random_flip.axis": "both", "transforms.resize.size": (8, 16)})
    assert loaded.model.batch.size == 64
    assert (
        loaded.hash
        == pipegen.load(
            {**spec, "batch": {"size": 64}, "transforms": [{"resize": {"size": [8, 16]}}, {"random_flip": {"axis": "both"}}]}
        ).hash
    )
    assert spec["transforms"][1] == "random_flip"
    again = pipegen.load(loaded, overrides={"batch.size": 3})
    assert again.model.batch.size == 3
    with pytest.raises(pipegen.SpecError, match=r"overrides=\{'batch.size': 'x'\}|overrides=|overrides\{"):
        pipegen.load(spec, overrides={"batch.size": "x"})


PARTS = ["batch", "transforms", "random_flip#2", "one_of", "steps", "[0]", "[9]", "0", "runtime", "cache", "params", ".", "'", "[", "x"]


@given(
    st.lists(st.sampled_from(PARTS)),
    st.sampled_from(["1", "null", "[1, 2]", "{a: 1}", "$nope", "'", "[[[", "1e999", "&a [*a]", "!!python/x", "\x1b", "\ud800"]),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_any_path_and_value_end_in_findings(parts: list[str], value: str, dotted: bool) -> None:
    name = (".".join(parts) if dotted else "".join(parts)) or "batch"
    for by in ("--set", "overrides="):
        found = inspect("spec.yaml", text=text(BODY), overrides={name: value}, overrides_from=by)
        assert (found.spec is None) <= any(d.severity is Severity.ERROR for d in found.diagnostics), "what is no spec has a finding"


def test_text_from_the_command_line_that_is_no_yaml_stays_text() -> None:
    assert result(with_sets("name=a: b # c")).name == "a: b # c"
    assert codes(with_sets("description=")) == []
    assert only(with_sets("name=[")).code == "PG102"
