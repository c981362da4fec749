"""What is wrong with `sampling` and `order`, found without data, and what their differences mean."""

from __future__ import annotations

from typing import Any

import pytest

from pipegen.phases.compilation import inspect, load
from pipegen.spec.changes import section_changes
from pipegen.spec.spec_hash import meaning, spec_hash

FEATURES = {
    "image": {"kind": "image", "column": "file"},
    "label": {"kind": "label"},
    "tags": {"kind": "label", "separator": ";"},
    "loss": {"kind": "tensor"},
    "place": {"kind": "tensor", "columns": ["x", "y"]},
}
TABLE: dict[str, Any] = {
    "pipegen": 1,
    "source": {"csv": {"path": "photos.csv", "features": FEATURES}},
    "splits": {"parts": {"train": 0.8, "validation": 0.2}},
    "transforms": [{"resize": {"size": 8}}],
    "output": {"x": ["image", "loss", "place"], "y": ["label", "tags"], "encode": {"tags": "multi_hot"}},
}
EASY = {"by": "loss", "pace": 0.5}


def found(**own: Any) -> list[tuple[str, str]]:
    return [(d.code, d.labels[0].path) for d in inspect(TABLE | own).diagnostics if d.labels and d.code != "PG509"]


@pytest.mark.parametrize(
    ("own", "code", "path"),
    [
        ({"sampling": {}}, "PG105", "sampling"),
        ({"sampling": {"balance": "label", "weights": "loss"}}, "PG105", "sampling.balance"),
        ({"sampling": {"balance": {"label": 0.5, "tags": 1}}}, "PG105", "sampling.balance"),
        ({"sampling": {"balance": {"label": 2}}}, "PG105", "sampling.balance.label"),
        ({"sampling": {"weights": "loss", "epoch": "longest"}}, "PG105", "sampling.epoch"),
        ({"sampling": {"balance": "tags"}}, "PG472", "sampling.balance"),
        ({"sampling": {"balance": "loss"}}, "PG472", "sampling.balance"),
        ({"sampling": {"repeat_factor": {"feature": "labels"}}}, "PG217", "sampling.repeat_factor.feature"),
        ({"sampling": {"repeat_factor": {"threshold": 0}}}, "PG105", "sampling.repeat_factor.threshold"),
        ({"sampling": {"weights": "place"}}, "PG472", "sampling.weights"),
        ({"sampling": {"weights": "los"}}, "PG217", "sampling.weights"),
        ({"sampling": {"subset": {}}}, "PG105", "sampling.subset"),
        ({"sampling": {"subset": {"count": 3, "fraction": 0.5}}}, "PG105", "sampling.subset.fraction"),
        ({"sampling": {"subset": {"where": "loss <"}}}, "PG105", "sampling.subset.where"),
        ({"sampling": {"balance": "label"}, "shuffle": "none"}, "PG470", "shuffle"),
        ({"order": EASY, "shuffle": {"window": "1MiB"}}, "PG470", "shuffle"),
        ({"order": EASY, "sampling": {"balance": "label"}}, "PG471", "order"),
        ({"order": EASY | {"by": "image"}}, "PG472", "order.by"),
        ({"order": EASY | {"pace": 1.5}}, "PG105", "order.pace"),
        ({"order": EASY | {"pace": {"linear": {"from": 0, "to": 1, "epochs": [0, 4]}}}}, "PG105", "order.pace"),
        ({"order": {"by": "loss"}}, "PG101", "order"),
        ({"order": EASY, "splits": {"parts": {"test": 0.5, "validation": 0.5}}}, "PG474", "order"),
    ],
)
def test_what_is_wrong_is_found_at_its_place(own: dict[str, Any], code: str, path: str) -> None:
    assert (code, path) in found(**own)


def test_a_feature_that_is_nearly_named_is_suggested_and_else_all_that_fit() -> None:
    (near,) = (d for d in inspect(TABLE | {"order": EASY | {"by": "los"}}).diagnostics if d.code == "PG217")
    (far,) = (d for d in inspect(TABLE | {"order": EASY | {"by": "qqqq"}}).diagnostics if d.code == "PG217")
    assert near.help == ("did you mean `loss`?",)
    assert far.help == ("there is `loss`",)


@pytest.mark.parametrize(
    "own",
    [
        {"sampling": {"repeat_factor": {"feature": "tags"}}},
        {"sampling": {"repeat_factor": {}, "subset": {"where": "loss < 3", "count": 9}}},
        {"sampling": {"subset": {"fraction": 0.5}}, "shuffle": "none"},
        {"sampling": {"subset": {"fraction": 0.5}}, "order": EASY},
        {"order": EASY | {"pace": {"step": {0: 0.5, 3: 1}}}},
    ],
)
def test_what_is_right(own: dict[str, Any]) -> None:
    assert found(**own) == []


def test_epochs_are_numbers_where_a_file_has_them() -> None:
    text = "order: {by: loss, pace: {step: {0: 0.5, 3: 1}}}"
    import yaml

    result = inspect("spec.yaml", text=f"{yaml.safe_dump(TABLE)}{text}\n")
    assert not result.diagnostics.has_errors


def test_other_words_for_the_same_have_one_hash() -> None:
    def of(**own: Any) -> str:
        return spec_hash(load(TABLE | own).model)

    assert of(sampling={"balance": "label"}) == of(sampling={"balance": {"label": 1}})
    assert of(sampling={"repeat_factor": {}}) == of(sampling={"repeat_factor": {"feature": "label", "threshold": 0.001}})
    assert of(order=EASY) == of(order=EASY | {"from": "easy"}) == of(order=EASY | {"from": "low", "pace": {"table": [0.5, 0.5]}})
    every = [{}, {"sampling": {"balance": "label"}}, {"sampling": {"weights": "loss"}}, {"order": EASY}, {"order": EASY | {"from": "high"}}]
    assert len({of(**own) for own in every}) == len(every)


@pytest.mark.parametrize(
    ("own", "path", "effect"),
    [
        ({"sampling": {"balance": "label"}}, ("sampling",), "examples are seen more or less often"),
        ({"sampling": {"subset": {"count": 3}}}, ("sampling",), "examples are seen more or less often"),
        ({"order": EASY}, ("order",), "examples are seen earlier or later in training"),
    ],
)
def test_a_difference_says_what_it_means(own: dict[str, Any], path: tuple[str, ...], effect: str) -> None:
    (change,) = section_changes(meaning(load(TABLE).model), meaning(load(TABLE | own).model))
    assert (change.path, change.effect) == (path, effect)
