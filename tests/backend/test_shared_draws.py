"""`draw: group`: 8 consecutive examples of an epoch share the numbers of a step, whatever the batch, the host and the begin."""

from __future__ import annotations

from pipes import at, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from planning import load_spec

from pipegen.ops.families.combining import GROUP
from pipegen.plan.check import check
from pipegen.spec.load import load
from pipegen.spec.spec_hash import spec_hash

if TYPE_CHECKING:
    from pathlib import Path

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
@pytest.mark.parametrize("size", [5, pytest.param(16, marks=pytest.mark.nightly)])
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
@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.nightly), 3])
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
def test_a_group_is_mixed_in_one_proportion() -> None:
    """Each example with the next one: labels tell, which alternate."""
    pipe = pipeline({"mixup": {"alpha": 1, "draw": "group"}}, output={"encode": {"label": "one_hot"}}, shuffle="none")
    own = stream(at(pipe, 0))[1].max(-1)[:56].reshape(-1, GROUP)
    assert (own == own[:, :1]).all()
    assert len(np.unique(own[:, 0])) == 7


@pytest.mark.tf
def test_in_a_mix_groups_are_counted_over_all_parts(photo_folder: Path) -> None:
    import pipegen

    part = {"source": {"image_folder": {"path": str(photo_folder)}}, "splits": {"parts": {"train": 40}}}
    steps = [{"resize": {"size": 8}}, {"random_rotation": {"degrees": 90, "draw": "group"}}, {"random_brightness": {"factor": [0, 0]}}]
    spec = {"pipegen": 1, "source": {"mix": {"epoch": 40, "parts": {"a": {"weight": 0.5, **part}, "b": {"weight": 0.5, **part}}}},
            "transforms": steps, "batch": {"size": 6}}  # fmt: skip
    executor = pipegen.build(spec, runtime={"jit": "never", "cache": "none"})._engine.executor("train")
    slots = executor.order.every_slot()
    found = executor.order.found(2, slots)
    drawn = executor.draws(executor.tensors, *found, calendar=slots * 0 + 2, group=executor.order.group(slots)).numpy()
    assert numbered(drawn[:, :1]) == (np.arange(len(drawn)) // GROUP).tolist()
    assert len(np.unique(drawn[:, 1])) == len(drawn)


@pytest.mark.tf
def test_with_buckets_groups_are_counted_in_each(tmp_path: Path) -> None:
    """The batch size changes neither the group of an example nor its numbers, also where crops change some examples only."""
    from PIL import Image

    import pipegen

    for i in range(42):
        Image.fromarray(np.full((20 + 20 * (i % 2), 30, 3), i, np.uint8)).save(tmp_path / f"{i:02}.png")
    steps = [{"resize": {"size": "bucket"}}, {"random_resized_crop": {"size": "bucket", "area": [0.3, 0.5], "probability": 0.5}},
             {"random_brightness": {"factor": 0.5, "draw": "group"}}]  # fmt: skip
    drawn = []
    for size in (3, 8):
        batch = {"size": size, "remainder": "keep", "buckets": {"sizes": [[16, 24], [32, 24]]}}
        spec = {"pipegen": 1, "source": {"image_folder": {"path": str(tmp_path), "labels": "none"}},
                "splits": {"parts": {"train": 42}}, "transforms": steps, "batch": batch}  # fmt: skip
        pipe = pipegen.build(spec, runtime={"jit": "never", "cache": "none"})
        rows = [(row.shape[0], *np.unique(row)) for x in pipe.dataset("train", epoch=1) for row in np.asarray(x)]
        drawn.append(sorted(rows))
        executor = pipe._engine.executor("train")
        slots = executor.order.every_slot()
        assert sorted(np.unique(executor.order.group(slots), return_counts=True)[1]) == [5, 5, 8, 8, 8, 8]
    assert drawn[0] == drawn[1]


@pytest.mark.tf
def test_what_replaces_a_damaged_record_has_the_numbers_of_the_group(tmp_path: Path) -> None:
    from PIL import Image

    import pipegen

    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    for i in range(24):
        Image.fromarray(picture).save(tmp_path / f"{i:02}.png")
    (tmp_path / "05.png").write_bytes((tmp_path / "05.png").read_bytes()[:90])
    spec = {"pipegen": 1, "source": {"image_folder": {"path": str(tmp_path), "labels": "none"}}, "splits": {"parts": {"train": 24}},
            "transforms": [{"resize": {"size": 16}}, TURN], "batch": {"size": 6},
            "errors": {"decode": {"skip": {"max_fraction": 0.1}}}}  # fmt: skip
    pipe = pipegen.build(spec, runtime={"jit": "never", "cache": "none"})
    assert numbered(np.concatenate([np.asarray(x) for x in pipe.dataset("train", epoch=1)])) == GROUPS[:24].tolist()


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


def test_what_is_found() -> None:
    def found(step: Any) -> list[tuple[str, str]]:
        spec = {"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 24}}, step]}
        loaded = load(spec)
        findings = [*loaded.diagnostics.items, *(check(loaded.spec, loaded.locate.label).diagnostics.items if loaded.spec else ())]
        return [(finding.code, finding.message) for finding in findings if finding.code != "PG509"]

    assert found({"center_crop": {"size": 9, "draw": "group"}}) == [("PG515", "`center_crop` draws no numbers that a group could share")]
    assert found({"random_crop": {"size": 9, "draw": "group"}}) == []
    inner = {"one_of": {"steps": ["random_flip", {"random_hue": {"degrees": 9, "draw": "group"}}]}}
    assert found(inner) == [("PG226", "`draw` of `random_hue` is decided by the `one_of` around it")]
    ((code, said),) = found({"random_flip": {"draw": "batch"}})
    assert code == "PG105", said


def test_the_hash_is_that_of_before() -> None:
    def of(**given: Any) -> str:
        return spec_hash(load_spec(transforms=[{"resize": {"size": 24}}, {"random_flip": given}]))

    assert of(draw="example") == of()
    assert of(draw="group") != of()
    assert "draw" not in load_spec(transforms=[{"random_flip": {}}]).transforms[0].meaning()
