"""`draw: group`: 8 consecutive examples of an epoch share the numbers of a step, whatever the batch, the host and the begin."""

from __future__ import annotations

from pipes import at, stream
from typing import Any

import numpy as np
import pytest
import yaml
from planning import checked, load_spec

from pipegen.ops.families.combining import GROUP
from pipegen.ops.registry import transforms
from pipegen.spec.load import load
from pipegen.spec.spec_hash import spec_hash

Array = np.ndarray[Any, Any]
COUNT = 60
TURN: dict[str, Any] = {"random_rotation": {"degrees": 90, "draw": "group"}}
GROUPS = np.arange(COUNT) // GROUP


def pipeline(*steps: Any, size: int = 12, runtime: dict[str, Any] | None = None, images: Any = None, **more: Any) -> Any:
    """Every image is the same, so that the numbers of a step alone tell outputs apart."""
    import pipegen

    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}
    spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "splits": {"parts": {"train": COUNT}},
            "transforms": [*steps], "batch": {"size": size, "remainder": "keep"}, **more}  # fmt: skip
    data = {"image": np.stack([picture] * COUNT), "label": np.arange(COUNT) % 2}
    return pipegen.build(spec, data=data, runtime={"jit": "never", "cache": "none", **(runtime or {})})


def images(pipe: Any, epoch: int = 1, step: int = 0) -> Array:
    return stream(at(pipe, epoch, step))[0]


@pytest.fixture(scope="module")
def plain() -> Any:
    return pipeline(TURN)


def numbered(rows: Array) -> list[int]:
    """A number for each different image, in the order in which they come."""
    _, first, number = np.unique(rows.reshape(len(rows), -1), axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[number.ravel()].tolist()


@pytest.mark.tf
def test_eight_examples_share_their_numbers(plain: Any) -> None:
    rows = images(plain)
    assert numbered(rows) == GROUPS.tolist(), "each group has its own, and every epoch"
    assert numbered(np.concatenate([rows[:1], images(plain, 2)[:1]])) == [0, 1]
    assert len(set(numbered(images(pipeline({"random_rotation": {"degrees": 90}}))))) == COUNT


@pytest.mark.tf
@pytest.mark.parametrize("size", [5, 16])
def test_the_batch_size_changes_nothing(plain: Any, size: int) -> None:
    np.testing.assert_array_equal(images(pipeline(TURN, size=size)), images(plain))


@pytest.mark.tf
def test_a_run_goes_on_in_the_middle_of_a_group(plain: Any) -> None:
    rows = images(plain)
    np.testing.assert_array_equal(images(plain, step=1), rows[12:])
    it = iter(at(plain, 1))
    next(it)
    other = pipeline(TURN, size=5)
    other.restore(plain.state())
    np.testing.assert_array_equal(stream(other.train)[0], rows[12:])


@pytest.mark.tf
@pytest.mark.parametrize("count", [2, 3])
def test_the_number_of_hosts_changes_nothing(plain: Any, count: int) -> None:
    rows = images(plain).reshape(5, 12, 16, 16, 3)
    for index in range(count):
        share = np.concatenate([np.asarray(x) for x, _ in plain.dataset("train", epoch=1, shard=(index, count))])
        own = slice(12 * index // count, 12 * (index + 1) // count)
        np.testing.assert_array_equal(share, rows[:, own].reshape(share.shape))


@pytest.mark.tf
def test_other_steps_keep_theirs_and_a_policy_shares_all(plain: Any) -> None:
    """One `id` more changes no number of another step; the steps of a policy share what it shares."""
    own = {"random_brightness": {"factor": 0.5}}
    one_of = {"one_of": {"draw": "group", "steps": [{"random_rotation": {"degrees": 90}}, {"random_zoom": {"factor": 0.5}}]}}
    assert numbered(images(pipeline(one_of))) == GROUPS.tolist()
    assert len(set(numbered(images(pipeline(TURN, own))))) == COUNT
    alone, beside = (images(pipeline(*steps)) for steps in ([own], [{"random_rotation": {"degrees": [0, 0], "draw": "group"}}, own]))
    np.testing.assert_array_equal(alone, beside)
    compiled = images(pipeline(TURN, "random_flip", runtime={"jit": "always"}))
    np.testing.assert_array_equal(compiled, images(pipeline(TURN, "random_flip")))


@pytest.mark.tf
def test_with_epochs_of_a_number_of_steps(plain: Any) -> None:
    """Groups are counted from the begin of each epoch."""
    pipe = pipeline(TURN, epoch={"steps": 3})
    assert numbered(images(pipe, 0)) == GROUPS[:36].tolist()
    np.testing.assert_array_equal(images(pipe, 1), images(plain)[:36])
    np.testing.assert_array_equal(images(pipe, 1, 1), images(plain)[12:36])


@pytest.mark.tf
def test_every_split_counts_its_own_examples() -> None:
    """In stored order; `when: all` lets a random step run there."""
    pipe = pipeline({"random_rotation": {**TURN["random_rotation"], "when": "all"}}, splits={"parts": {"train": 30, "validation": 30}})
    rows = stream(pipe.validation)[0]
    assert numbered(rows) == GROUPS[:30].tolist()
    predicted = pipe.predict_on(np.zeros((20, 16, 16, 3), np.uint8) + np.arange(16, dtype=np.uint8)[:, None]).dataset
    assert numbered(np.concatenate([np.asarray(x) for x in predicted])) == GROUPS[:20].tolist()


@pytest.mark.tf
def test_a_sheet_shows_what_the_model_gets(plain: Any) -> None:
    from pipegen.views.preview import render_example

    executor = plain._engine.executor("train")
    found = executor.order.found(1, executor.order.every_slot()).record.numpy()
    rows = images(plain)
    for slot in (3, 17, COUNT - 1):
        np.testing.assert_array_equal(render_example(executor, int(found[slot]), 1, "image"), np.clip(np.round(rows[slot]), 0, 255))


def test_only_what_draws_can_share() -> None:
    def messages(step: Any) -> list[str]:
        spec = {"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 24}}, step]}
        return [finding.message for finding in load(spec).diagnostics.items]

    assert "`center_crop` draws no random numbers that a `group` could share" in messages({"center_crop": {"size": 9, "draw": "group"}})[0]
    assert "`mixup` pairs the examples of a group by a number that each of them draws" in messages({"mixup": {"draw": "group"}})[0]
    inner = {"one_of": {"steps": ["random_flip", {"random_hue": {"degrees": 9, "draw": "group"}}]}}
    assert messages(inner) == ["`draw` of `random_hue` is decided by the `one_of` around it"]
    assert "`example` or `group`" in messages({"random_flip": {"draw": "batch"}})[0]


def test_the_hash_is_that_of_before() -> None:
    def of(**given: Any) -> str:
        return spec_hash(load_spec(transforms=[{"resize": {"size": 24}}, {"random_flip": given}]))

    assert of(draw="example") == of()
    assert of(draw="group") != of()
    assert "draw" not in load_spec(transforms=[{"random_flip": {}}]).transforms[0].meaning()


def test_every_random_step_may_share() -> None:
    """What draws takes `draw: group`, unless it combines examples."""
    for name, cls in transforms().items():
        first = next(iter(cls.examples), None)
        if not cls.random or first is None or cls.family == "combining":
            continue
        ((_, given),) = (yaml.safe_load(first.yaml) if ":" in first.yaml else {name: {}}).items()
        if cls.model_validate(given).num_draws() or cls.model_validate(given).is_gated():
            assert cls.model_validate({**given, "draw": "group"}).draw == "group", name
    assert not checked(transforms=[{"resize": {"size": 24}}, TURN]).diagnostics.items
