"""Schedules: what they say in each epoch, what they mean to the rest of the machine, and what is wrong with them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import pytest
import yaml

from pipegen.ops.arguments.magnitudes import Schedule, factor_range, level_range, symmetric_range
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.registry import transforms
from pipegen.ops.transform import Transform
from pipegen.phases.compilation import inspect
from pipegen.spec.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

LINEAR = {"linear": {"from": 5, "to": 15, "epochs": [2, 6]}}
COSINE = {"cosine": {"from": 0, "to": 10, "epochs": [0, 4]}}
STEP = {"step": {0: 5, 3: [2, 9]}}
TABLE = {"table": [1, 2, 4]}


def rotation(degrees: Any) -> Transform:
    return transforms()["random_rotation"].model_validate({"degrees": degrees})


def ranges(degrees: Any) -> tuple[tuple[float, float], ...]:
    return rotation(degrees).schedules()["degrees"].ranges(symmetric_range)


@pytest.mark.parametrize(("schedule", "expected"), [
    (LINEAR, [(-v, v) for v in (5, 5, 5, 7.5, 10, 12.5, 15)]),
    (COSINE, [(-v, v) for v in (0, 5 - 5 * math.sqrt(0.5), 5, 5 + 5 * math.sqrt(0.5), 10)]),
    (STEP, [(-5, 5), (-5, 5), (-5, 5), (2, 9)]),
    (TABLE, [(-1, 1), (-2, 2), (-4, 4)]),
    ({"linear": {"from": 0, "to": [10, 30], "epochs": [0, 2]}}, [(0, 0), (5, 15), (10, 30)]),
])  # fmt: skip
def test_what_each_epoch_gets(schedule: Any, expected: list[tuple[float, float]]) -> None:
    for got, wanted in zip(ranges(schedule), expected, strict=True):
        assert got == pytest.approx(wanted)


def test_a_factor_lies_around_one() -> None:
    zoom = transforms()["random_zoom"].model_validate({"factor": {"table": [0, 0.5]}})
    assert zoom.schedules()["factor"].ranges(factor_range) == ((1, 1), (0.5, 1.5))


def test_the_rest_of_the_machine_sees_all_epochs() -> None:
    step: Any = rotation({"step": {0: 5, 3: [-20, 2]}})
    assert symmetric_range(step.degrees) == (-20, 5)
    assert not rotation({"table": [0, 0, 3]}).is_identity(None)  # type: ignore[arg-type]
    assert rotation({"table": [0, 0]}).is_identity(None)  # type: ignore[arg-type]
    (lint,) = rotation({"linear": {"from": 0, "to": 400, "epochs": [0, 9]}}).lints(None)  # type: ignore[arg-type]
    assert lint.code == "PG510"
    policy: Any = transforms()["rand_augment"].model_validate({"magnitude": LINEAR})
    assert level_range(policy.magnitude) == (5, 15)


@pytest.mark.parametrize(("one", "other"), [
    (20, {"table": [20]}),
    (20, {"linear": {"from": 20, "to": 20, "epochs": [3, 9]}}),
    ({"table": [1, 1, 4]}, {"step": {0: 1, 2: [-4, 4]}}),
    ({"table": [1, 2, 3]}, {"linear": {"from": 1, "to": 3, "epochs": [0, 2]}}),
])  # fmt: skip
def test_one_form_for_each_meaning(one: Any, other: Any) -> None:
    assert rotation(one).meaning() == rotation(other).meaning()
    assert rotation(one).meaning() != rotation({"table": [1, 5]}).meaning()


def test_equal_schedules_hash_alike() -> None:
    for given in (LINEAR, STEP, TABLE):
        assert hash(rotation(given)) == hash(rotation(given))


SPEC = "pipegen: 1\nsource: {image_folder: {path: photos/}}\ntransforms:\n  - resize: {size: 32}\n  - random_rotation: {degrees: %s}\n"


@pytest.mark.parametrize(("written", "code", "said", "column"), [
    ("{linear: {from: 0, to: 9, epochs: [9, 3]}}", "PG105", "[first, last] with the first before the last, got [9, 3]", 66),
    ("{linear: {from: 0, too: 9, epochs: [1, 3]}}", "PG102", "has no key `too`", 51),
    ("{linear: {from: 0, to: 9}}", "PG101", "needs `epochs`", 33),
    ("{linear: [0, 20]}", "PG104", "`random_rotation.degrees.linear` is `{from: FROM, to: TO, epochs: EPOCHS}`", 41),
    ("{step: {3: 1, 5: 2}}", "PG105", "starts at epoch 3: add a strength for epoch 0", 39),
    ("{step: {a: 1}}", "PG105", "`a` in `random_rotation.degrees.step` is not a whole number from 0 to 9999", 40),
    ("{table: [1, x]}", "PG104", "`random_rotation.degrees.table[1]` is a number or a pair of numbers", 44),
    ("{table: []}", "PG105", "`random_rotation.degrees.table`", 40),
    ("{cosine: {from: -3, to: 2, epochs: [0, 4]}}", "PG105", "is a magnitude where it is a single number, which cannot be negative", 32),
    ("{lineer: {from: 0, to: 9, epochs: [0, 3]}}", "PG105", "`random_rotation.degrees` is a number or a pair of numbers", 32),
    ("{linear: {from: 0, to: 9, epochs: [0, 3]}, table: [1]}", "PG105", "", 32),
])  # fmt: skip
def test_findings(written: str, code: str, said: str, column: int) -> None:
    found = load("s.yaml", text=SPEC % written).diagnostics.items
    (finding,) = [f for f in found if f.code == code]
    assert said in finding.message
    span = finding.primary.span if hasattr(finding.primary, "span") else None
    assert span is None or (span.line, span.column) == (5, column)


def test_a_slip_in_the_name_is_seen() -> None:
    (finding,) = load("s.yaml", text=SPEC % "{lineer: {from: 0, to: 9, epochs: [0, 3]}}").diagnostics.items
    assert "did you mean `linear`?" in finding.help


def plain_types(annotation: Any) -> set[Any]:
    """The plain numbers that an argument is made of; with a schedule's class where it takes one."""
    if annotation in (int, float):
        return {annotation}
    if isinstance(annotation, type):
        return {Schedule} if issubclass(annotation, Schedule) else set()
    return set().union(*map(plain_types, get_args(annotation)))


def given(op: type[Transform]) -> dict[str, Any]:
    """The arguments of a step's example."""
    read = yaml.safe_load(op.examples[0].yaml)
    return {} if isinstance(read, str) else dict(next(iter(read.values())) or {})


def value_of(op: type[Transform], field: str) -> Any:
    """What an argument is in the example, else by default."""
    default = op.model_fields[field].default
    return given(op).get(field, list(default) if isinstance(default, tuple) else default)


NUMBERS = [
    (name, field)
    for name, op in transforms().items()
    for field, info in op.model_fields.items()
    if op.random and plain_types(info.annotation) & {int, float}
]
"""Every argument of a random step that is a number or is made of numbers."""
TAKING = [(name, field) for name, field in NUMBERS if Schedule in plain_types(transforms()[name].model_fields[field].annotation)]
SCHEDULED = [
    (name, field)
    for name, field in TAKING
    if field != "probability" and isinstance(value_of(transforms()[name], field), (int, float, list))
]
SCHEDULES_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schedules.md"


def test_what_takes_no_schedule_is_listed_with_its_reason() -> None:
    """Every number and range of a random step takes a schedule; the reference names the others, less whole numbers, and nothing else."""
    page = SCHEDULES_PAGE.read_text(encoding="utf-8").partition("## What stays as it is")[2]
    listed = set(re.findall(r"`(\w+\.\w+)`", page))
    refused = {(name, field) for name, field in NUMBERS if (name, field) not in TAKING}
    whole = {pair for pair in refused if plain_types(transforms()[pair[0]].model_fields[pair[1]].annotation) == {int}}
    assert listed == {f"{name}.{field}" for name, field in refused - whole}
    assert len(TAKING) > 150, "most take one"


@pytest.mark.by_day(80)
@pytest.mark.parametrize(("name", "field"), NUMBERS)
def test_a_schedule_is_taken_or_refused_in_words(name: str, field: str) -> None:
    op = transforms()[name]
    value = value_of(op, field)
    if value is None:
        return  # beside another argument alone
    table = [value, value]
    spec = {"pipegen": 1, "source": {"image_folder": {"path": "d"}}, "transforms": [{name: given(op) | {field: {"table": table}}}]}
    every = inspect(spec).diagnostics  # lints of the argument among them
    findings = [d for d in every if f"{name}.{field}" in d.labels[0].path and d.code.startswith("PG1")]
    if (name, field) in TAKING and field != "weights":
        assert findings == []
    else:
        assert any("takes no schedule" in line for d in findings for line in d.help), [(d.message, d.help) for d in findings]


def numbers(step: Transform, u: Any) -> list[Any]:
    """What a step makes of its draws."""
    import tensorflow as tf

    side, made = tf.constant(24.0, tf.float64), cast("Any", step)
    whole, boxes = tf.fill([3], 24), tf.constant([[[2.0, 2.0, 20.0, 20.0]]] * 3, tf.float64)
    ways: dict[str, Callable[[], Any]] = {
        "pictures": lambda: made.drawn(u).values(),  # whose table depends on other images
        "table": lambda: [made.table(u, None)],
        "parameters": lambda: made.parameters(u, 24, 24),
        "overlaps": lambda: made.choose(u, boxes, tf.fill([3, 1], True), tf.constant(24), tf.constant(24)),  # which follows boxes
        "choose": lambda: [made.choose(u, 24, 24)],
        "window": lambda: [made.window(u, whole, whole)],
        "weights": lambda: [made.chosen(u, number) for number in range(len(made.steps))],
    }
    for way, call in ways.items():
        if hasattr(made, way):
            return list(call())
    if not hasattr(made, "matrix"):
        return list(made.drawn(u).values())
    try:
        return [made.matrix(u, side, side)]
    except TypeError:
        return list(made.matrix(u, 3))


@pytest.mark.by_day(30)
@pytest.mark.tf
@pytest.mark.parametrize(("name", "field"), SCHEDULED)
def test_every_number_and_range_takes_a_schedule(name: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each epoch, the numbers are those of the strength that the schedule says."""
    import numpy as np
    import tensorflow as tf

    op = transforms()[name]
    if hasattr(op, "pictures"):
        monkeypatch.setattr(op, "pictures", lambda self, channels: ("one", "two"))
    value = value_of(op, field)
    weaker = [value[0], value[0]] if isinstance(value, list) else value * 0.75
    step = op.model_validate(given(op) | {field: {"table": [weaker, value]}})
    u = tf.constant(np.random.default_rng(5).random((3, step.num_draws())))
    for epoch, strength in enumerate((weaker, value, value)):
        plain = op.model_validate(given(op) | {field: strength})
        for ours, theirs in zip(numbers(step.at(tf.constant(epoch)), u), numbers(plain, u), strict=True):
            if ours.shape == theirs.shape and ours.dtype not in (tf.string, tf.bool):  # a filter is as wide in every epoch as in its widest
                close = 1e-6 if ours.dtype == tf.float32 else 1e-12
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=close, atol=close)


BOXED = {"copy_paste", "random_iou_crop"}
"""Steps that need more than an image."""
RUN_BY_DAY = 30
"""Every so many arguments are run by day."""


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("each", [RUN_BY_DAY, pytest.param(1, marks=pytest.mark.nightly)])
def test_what_runs_reads_the_schedule(each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The images of an epoch are those of the strength that the schedule says, wherever a step reads it."""
    import numpy as np
    from planning import built, interpret, load_spec, photos, records

    data, differ = records(photos(4, 30, 40)), []

    def images(name: str, arguments: dict[str, Any]) -> Any:
        sections: dict[str, Any] = {
            "transforms": [{"resize": {"size": 32}}, {name: arguments}, {"resize": {"size": 16}}],
            "runtime": {"jit": "never"},
        }
        if issubclass(transforms()[name], CombiningTransform):
            sections["transforms"] = sections["transforms"][:2]
        sections["output"] = {"encode": {"label": "one_hot"}}
        return interpret(built(sections, classes=3), load_spec(sections), data)["image"]

    references = np.random.default_rng(3).integers(0, 256, (2, 32, 32, 3), np.uint8)
    for name, field in [pair for pair in SCHEDULED if pair[0] not in BOXED][::each]:
        op = transforms()[name]
        if hasattr(op, "pictures"):
            monkeypatch.setattr(op, "pictures", lambda self, channels: [*references])
        arguments, value = given(op) | ({"size": 24} if "size" in given(op) else {}), value_of(op, field)
        weaker = [value[0], value[0]] if isinstance(value, list) else value * 0.75
        try:
            scheduled = images(name, arguments | {field: {"table": [weaker, value]}})
            if not np.allclose(scheduled, images(name, arguments | {field: weaker}), rtol=1e-6, atol=1e-3):
                differ.append((name, field))
        except (ValueError, TypeError) as error:
            differ.append((name, f"{field}: {error}"))
    assert differ == []


@pytest.mark.tf
def test_each_weight_of_a_choice_takes_a_schedule() -> None:
    import numpy as np
    import tensorflow as tf

    def one_of(*weights: Any) -> Any:
        return transforms()["one_of"].model_validate({"steps": ["random_flip", "random_invert", "random_equalization"], "weights": weights})

    u = tf.constant(np.random.default_rng(5).random((2000, 1)))
    step = one_of(1, {"step": {0: 0, 2: 3}}, {"linear": {"from": 2, "to": 0, "epochs": [0, 2]}})
    for epoch, weights in enumerate(((1, 0, 2), (1, 0, 1), (1, 3, 0), (1, 3, 0))):
        chosen = [[choice.chosen(u, number).numpy() for number in range(3)] for choice in (step.at(tf.constant(epoch)), one_of(*weights))]
        np.testing.assert_array_equal(*chosen)
        assert np.sum(chosen[0], 0).tolist() == [1] * 2000
    assert step.share(0) == pytest.approx((1 / 3 + 1 / 2 + 1 / 4) / 3)
    assert one_of({"table": [2, 2]}, 2, 4).meaning() == one_of(1, 1, 2).meaning() != step.meaning()
    assert step.meaning()["weights"] == {"epochs": [[0, [1 / 3, 0, 2 / 3]], [1, [1 / 2, 0, 1 / 2]], [2, [1 / 4, 3 / 4, 0]]]}
    for wrong in ((0, {"step": {0: 1, 4: 0}}, 0), (1, {"table": [-1]}, 1), (1, {"table": [[1, 2]]}, 1)):
        with pytest.raises(ValueError, match="weights"):
            one_of(*wrong)


PROBABLE = [
    {"random_zoom_out": {}}, {"resize": {"size": 24}}, {"random_flip": {}}, {"random_rotation": {"degrees": 30}},
    {"random_python": {"function": "my_pkg.weather:rain"}}, {"random_brightness": {"factor": 0.5}}, {"random_equalization": {}},
    {"random_solarization": {"threshold": [50, 99]}}, {"random_gaussian_noise": {"std": 30}}, {"rand_augment": {"num_ops": 1}},
    {"one_of": {"steps": ["random_invert", "random_flip"]}}, {"random_erasing": {}}, {"mixup": {}},
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize(("optimised", "compared"), [
    (True, {2: 0.4}), (True, {0: 0, 1: 1}), (False, {0: 0, 1: 1, 2: 0.4}),
])  # fmt: skip
def test_a_probability_takes_a_schedule_wherever_it_is_read(optimised: bool, compared: dict[int, float]) -> None:
    """One step of each way to read it: in an epoch of 0 nothing acts, in one of 1 everything, in one of 0.4 those of a plain 0.4."""
    import numpy as np
    from planning import built, compiled, load_spec, photos, records, run_plan

    def batches(probability: Any) -> list[Any]:
        given = [
            {name: arguments | ({} if name == "resize" else {"probability": probability})}
            for step in PROBABLE
            for name, arguments in step.items()
        ]
        spec = {"transforms": given, "shuffle": "none", "output": {"encode": {"label": "one_hot"}}, "runtime": {"jit": "never"}}
        plan = built(spec, classes=3)
        made = load_spec(spec)
        return run_plan(compiled(plan, made).plan if optimised else plan, made, records(photos(8, 40, 50)), epochs=3)

    scheduled = batches({"step": {0: 0, 1: 1, 2: 0.4}})
    for epoch, plain in compared.items():
        for ours, theirs in zip(scheduled[epoch], batches(plain)[epoch], strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("wrong", [{"step": {0: 0, 1: 1.5}}, {"linear": {"from": [0, 1], "to": 1, "epochs": [0, 5]}}])
def test_a_probability_stays_a_share(wrong: Any) -> None:
    with pytest.raises(ValueError, match="`probability`"):
        transforms()["random_flip"].model_validate({"probability": wrong})


SPANS: dict[str, tuple[dict[str, Any], str, Any, Any]] = {
    "random_resized_crop": ({"size": 16}, "area", [0.2, 0.4], [0.8, 1.0]),
    "random_erasing": ({}, "area", [0.02, 0.05], [0.3, 0.5]),
    "random_posterization": ({}, "bits", [1, 3], [6, 8]),
    "random_jpeg": ({}, "quality", [1, 20], [90, 100]),
}


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("form", ["step", "linear"])
@pytest.mark.parametrize("op", [*SPANS])
def test_an_epoch_of_a_schedule_of_ranges_is_that_of_the_range(photo_folder: Any, op: str, form: str) -> None:
    from pipes import RESIZE, pipeline

    import numpy as np

    own, name, *ranges = SPANS[op]

    made: dict[str, Any] = {}

    def images(value: Any, epoch: int) -> list[Any]:
        if str(value) not in made:
            step = {op: {**own, name: value}}
            made[str(value)] = pipeline(photo_folder, transforms=[step] if "size" in own else [RESIZE, step])
        return [x.numpy() for x, _ in made[str(value)].dataset("train", epoch=epoch)]

    arguments = {"step": {0: ranges[0], 1: ranges[1]}, "linear": {"from": ranges[0], "to": ranges[1], "epochs": [0, 1]}}
    for epoch, value in enumerate(ranges):
        assert all(map(np.array_equal, images({form: arguments[form]}, epoch), images(value, epoch)))
    assert not all(map(np.array_equal, images(ranges[0], 1), images(ranges[1], 1)))


@pytest.mark.parametrize("op", SPANS)
def test_a_schedule_of_ranges_has_a_range_in_each_epoch(op: str) -> None:
    own, name, low, high = SPANS[op]
    made = transforms()[op].model_validate({**own, name: {"table": [low, high]}})
    assert list(made.schedules()) == [name]
    assert made.meaning()[name] == {"epochs": [[0, low], [1, high]]}
    assert transforms()[op].model_validate({**own, name: {"table": [low]}}).meaning()[name] == low
    for wrong in ({"table": [low, low[0]]}, {"step": {0: low, 5: [high[1], low[0]]}}, {"table": [[low[0], 1000]]}):
        with pytest.raises(ValueError, match=name):
            transforms()[op].model_validate({**own, name: wrong})


@pytest.mark.parametrize("step", [{"rotation": {"degrees": LINEAR}}, {"resize": {"size": {"step": {0: 5}}}}])
def test_an_argument_without_schedules_says_so(step: Any) -> None:
    text = yaml.safe_dump({"pipegen": 1, "source": {"image_folder": {"path": "d"}}, "transforms": [step]})
    found = load("s.yaml", text=text)
    assert any("takes no schedule; the `probability` of a step takes one" in line for d in found.diagnostics for line in d.help)
