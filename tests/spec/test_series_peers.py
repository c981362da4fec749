"""Words of tsaug keep their meaning: the same windows, augmented by the library and by the steps that a finding says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import yaml

from docs.generated.other_libraries import answers
from pipegen.diagnostics.diagnostic import Advice
from pipegen.ops.registry import transforms
from pipegen.phases.compilation import inspect
from pipegen.spec.peers.words import shown_arguments
from pipegen.types import FeatureType

COUNT, LENGTH = 400, 40
TSAUG = """
Resize: {size: 17}
Resize: {size: 95}
AddNoise: {normalize: false}
AddNoise: {scale: 0.5, normalize: false, prob: 0.5}
AddNoise: {scale: [0.1, 0.9], normalize: false}
"""
REFUSED = """
AddNoise
AddNoise: {normalize: false, distr: laplace}
AddNoise: {normalize: false, kind: multiplicative}
AddNoise: {normalize: false, repeats: 3}
Resize: {size: 17, prob: 0.5}
"""


def parsed(line: str) -> tuple[str, Any]:
    step = yaml.safe_load(line)
    return (step, None) if isinstance(step, str) else next(iter(step.items()))


def written(word: str, given: Any) -> tuple[list[dict[str, Any]] | None, str]:
    """The steps that a finding about a word says, where it says one thing to write; and all of its help."""
    step = f"tsaug.{word}" if given is None else f"tsaug.{word}: {json.dumps(given)}"
    source = "{series: {csv: {path: a.csv}, window: {length: 40}, features: {x: {kind: series, column: v}}}}"
    text = f"pipegen: 1\nsource: {source}\ntransforms:\n  - {step}\noutput: {{x: x, y: x}}\n"
    (found,) = [d for d in inspect("spec.yaml", text=text).diagnostics if d.code == "PG103"]
    said = "\n".join(map(str, found.help))
    if len(found.help) != 1 or not isinstance(found.help[0], Advice):
        return None, said
    steps = yaml.safe_load(found.help[0].lines)
    return (steps if isinstance(steps, list) else [steps]), said


@pytest.mark.tf
@pytest.mark.peers
@pytest.mark.parametrize("line", [line for line in TSAUG.split("\n") if line])
def test_the_steps_do_what_the_library_does(line: str) -> None:
    import tensorflow as tf

    tsaug = pytest.importorskip("tsaug")
    word, given = parsed(line)
    steps, said = written(word, given)
    assert steps is not None, said
    ((op, arguments),) = steps[0].items()
    values = np.random.default_rng(0).normal(size=(COUNT, LENGTH, 2)).astype(np.float32)
    step: Any = transforms()[op].model_validate(arguments).on(FeatureType("series", "float32", values.shape[1:]))
    u = np.random.default_rng(1).random((COUNT, step.num_draws()))
    ours = step.apply(tf.constant(values), *step.parameters(tf.constant(u), LENGTH, 2)).numpy()
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    theirs = getattr(tsaug, word)(**given, seed=3).augment(values)
    if word == "Resize":
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        return
    chance = given.get("prob", 1.0)
    assert getattr(step, "probability", 1.0) == chance
    added = [(found - values).std((1, 2)) for found in (ours, theirs)]
    kept = added[1] > 1e-6
    assert kept.mean() == pytest.approx(chance, abs=0.08)
    assert np.quantile(added[0], [0.05, 0.5, 0.95]) == pytest.approx(np.quantile(added[1][kept], [0.05, 0.5, 0.95]), rel=0.15)


@pytest.mark.parametrize("line", [line for line in REFUSED.split("\n") if line])
def test_values_without_a_form_are_refused(line: str) -> None:
    steps, said = written(*parsed(line))
    assert steps is None
    assert "pipegen has no form of" in said


def test_every_word_is_compared_or_says_why() -> None:
    with_form = {answer.name for answer in answers("tsaug") if answer.meaning is not None and answer.meaning.steps}
    assert with_form == {parsed(line)[0] for line in TSAUG.split("\n") if line}
    for answer in answers("tsaug"):
        if answer.name not in with_form:
            steps, said = written(answer.name, shown_arguments("tsaug", answer.name) or None)
            assert steps is None
            assert f"pipegen has no form of tsaug's `{answer.name}`" in said or "pipegen has no form of" in said
