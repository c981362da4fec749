"""The hash by what steps do: the same for other words, another for other numbers, and what was saved under the old one goes on."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from spec_helpers import other_numbers, read

from pipegen.errors import StateError
from pipegen.ops.registry import transforms
from pipegen.ops.transform import Policy
from pipegen.phases.state import make_state, position_from
from pipegen.physical.extent import Extent, Position
from pipegen.spec.load import load
from pipegen.spec.models import PipelineSpec
from pipegen.spec.spec_hash import effects, meaning, spec_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipegen.ops.transform import Transform

SPLITS = "splits: {parts: {train: 0.8, validation: 0.2}}\n"


def spec_of(*steps: str, more: str = SPLITS, **kwargs: Any) -> PipelineSpec:
    loaded = read(more + "transforms:\n" + "".join(f"  - {step}\n" for step in steps), **kwargs)
    assert loaded.spec is not None, loaded.diagnostics.items
    return loaded.spec


NORMALIZE = "normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}"
TINT = "random_brightness: {factor: 0.2}"
SIZE = "resize: {size: 24}"


@pytest.mark.parametrize(
    "same",
    [
        (
            ["rescale: {to: [0, 1]}"],
            ["rescale: {scale: 0.00392156862745098}"],
            ["rescale: {scale: 0.0039215687}"],
            ["normalize: {std: 255}"],
        ),
        (["rescale: {to: [-1, 1]}"], ["normalize: {preset: tf}"], ["normalize: {mean: 127.5, std: 127.5}"]),
        ([TINT, "rescale: {to: [0, 1]}", NORMALIZE], [TINT, "rescale: {scale: 0.00392156862745098}", NORMALIZE]),
        (["rand_augment", "rescale: {to: [0, 1]}"], ["rand_augment", "rescale: {scale: 0.0039215687}"]),
        (["rescale: {scale: 1}"], ["cast: {dtype: float32}"]),
        ([SIZE], ["decode", SIZE], ["decode: {channels: 3, bits: 8}", SIZE], ["decode: {exif: apply, when: all, feature: image}", SIZE]),
        (["decode: {scaled: never}", SIZE], ["decode: {scaled: never, channels: 3, id: files}", SIZE]),
        (["decode: {jpeg: accurate}", SIZE], ["decode: {jpeg: accurate, scaled: never}", SIZE]),
        ([SIZE, "random_flip"], ["resize: {size: 24, id: small, feature: image}", "random_flip: {feature: image, id: random_flip}"]),
    ],
)
def test_other_words_for_the_same_numbers(same: tuple[list[str], ...]) -> None:
    assert len({spec_hash(spec_of(*steps)) for steps in same}) == 1
    first, *others = (meaning(spec_of(*steps)) for steps in same)
    assert [other_numbers(first, other) for other in others] == [[] for _ in others]


@pytest.mark.parametrize(
    "other",
    [
        (["rescale: {to: [0, 1]}"], ["rescale: {scale: 0.00392157}"], ["rescale: {to: [0, 1], when: train}"]),
        (["decode: {scaled: never}", SIZE], ["decode: {exif: ignore}", SIZE], ["decode: {channels: 1}", SIZE], [SIZE]),
        (["random_flip"], ["random_flip: {id: other}"], ["random_flip: {probability: 0.4}"], ["random_flip", "random_flip"]),
        ([TINT, "rescale: {to: [0, 1]}"], ["rescale: {to: [0, 1]}", TINT]),
        (["one_of: {steps: [random_flip, random_invert]}"], ["one_of: {steps: [random_flip, random_invert], id: other}"]),
    ],
)
def test_other_numbers(other: tuple[list[str], ...]) -> None:
    assert len({spec_hash(spec_of(*steps)) for steps in other}) == len(other)


def test_the_range_of_the_source_decides_what_a_range_means() -> None:
    """The same words for files of 16 bits are another factor, and where the data alone says it, words count."""
    deep = effects(spec_of("decode: {bits: 16}", "rescale: {to: [0, 1]}"))[1]
    assert deep == effects(spec_of("decode: {bits: 16}", "rescale: {scale: 0.000015259021896696422}"))[1]
    assert deep != effects(spec_of("rescale: {to: [0, 1]}"))[0]


def _float32(value: float) -> float:
    number: float = struct.unpack("f", struct.pack("f", value))[0]
    return number


FACTORS = st.sampled_from([0.5, 1 / 3, 1 / 255, 0.0039215687, 0.00392157, 0.1]).flatmap(
    lambda v: st.sampled_from([v, v * (1 + 2**-53), v * (1 + 2**-30), v * (1 + 2**-26), v * (1 + 2**-23)])
)


@given(FACTORS, FACTORS, st.sampled_from([0.0, 0.25]))
@example(1 / 255, 0.0039215687, 0.0)
def test_a_factor_counts_as_the_constant_that_it_becomes(a: float, b: float, offset: float) -> None:
    """Against the rounding of the constant alone: the image's range, which decides where later steps clip, follows from it."""
    one, other = (spec_of(f"rescale: {{scale: {v!r}, offset: {offset}}}") for v in (a, b))
    rounded = [(_float32(v), _float32(255 * v + offset)) for v in (a, b)]
    assert (spec_hash(one) == spec_hash(other)) == (rounded[0] == rounded[1])


STEPS = [
    "decode: {channels: 3}",
    "resize: {size: 24, id: small}",
    "random_flip",
    "random_flip: {axis: vertical}",
    "rescale: {to: [0, 1]}",
    "normalize: {mean: 0.5, std: 0.25}",
]


def extent(spec: PipelineSpec) -> Extent:
    return Extent(320, spec.batch.size, "drop", (0, 1), None)


def saved_with(spec: PipelineSpec, state: dict[str, Any]) -> tuple[int, int]:
    """The epoch and the step that a state leads to."""
    return position_from(state, spec, spec_hash(spec), "f" * 64, lambda _: extent(spec))[:2]


def state_at(spec: PipelineSpec, epoch: int, step: int) -> dict[str, Any]:
    """A state as it comes back from a file."""
    state: dict[str, Any] = json.loads(json.dumps(make_state(spec, spec_hash(spec), "f" * 64, extent(spec), Position(epoch, step))))
    return state


def test_a_state_goes_on_with_another_batch_size() -> None:
    spec = spec_of(*STEPS, more=SPLITS + "batch: {size: 8}\n")
    state = state_at(spec, 3, 2)
    assert saved_with(spec, state) == (3, 2)
    half = spec_of(*STEPS, more=SPLITS + "batch: {size: 4}\n")
    assert saved_with(half, state) == (3, 4)
    with pytest.raises(StateError, match=r"transforms\[4\].rescale.to: \[0.0, 1.0\] → \[-1.0, 1.0\]"):
        saved_with(spec_of(*STEPS[:4], "rescale: {to: [-1, 1]}", STEPS[5], more=SPLITS + "batch: {size: 8}\n"), state)


def test_a_state_goes_on_under_other_words() -> None:
    spec = spec_of(*STEPS)
    state = state_at(spec, 1, 2)
    words = [SIZE, *STEPS[2:4], "rescale: {scale: 0.0039215686274509803}", STEPS[5]]
    assert saved_with(spec_of(*words), state) == (1, 2)
    with pytest.raises(StateError) as told:
        saved_with(spec_of(*words, more=SPLITS + "seed: 4\n"), state)
    assert str(told.value).splitlines()[1:] == ["  seed: 0 → 4"], "other words for the same are no difference"


def test_a_type_that_is_lost_leaves_the_words() -> None:
    """Nothing is said of numbers where the values that a step gets are not known."""
    spec = spec_of(SIZE, "rescale: {to: [0, 1]}")
    source = spec.source

    class Unknown(type(source)):  # type: ignore[misc]
        op = source.op

        def infer(self) -> Any:
            t = source.infer()
            return t.replace(image=replace(t["image"], dtype="float32", shape=(24, 24, 3), interval=None))

    unknown = spec.model_copy(update={"source": Unknown.model_construct(**source.__dict__)})
    assert effects(unknown)[1] == ["rescale", spec.transforms[1].meaning(), "rescale", False]


def test_steps_of_views_and_of_parts_count_by_what_they_do() -> None:
    to, scale, other = "{rescale: {to: [0, 1]}}", "{rescale: {scale: 0.00392156862745098, id: x}}", "{rescale: {to: [-1, 1]}}"
    resize = "transforms: [{resize: {size: 8}}]\n"
    parts = "{a: {weight: 1, source: {image_folder: {path: a}}, transforms: [STEP]}}"
    part = f"source: {{mix: {{epoch: 8, parts: {parts}}}}}\n{resize}"
    branch = f"{SPLITS}{resize}views: {{a: {{transforms: [random_flip, STEP]}}, b: {{transforms: []}}}}\n"
    for text, path in ((part, "source.mix.parts.a.transforms"), (branch, "views.a.transforms[1].rescale.to")):
        specs = []
        for step in (to, scale, other):
            loaded = read(text.replace("STEP", step), **({"head": "pipegen: 1\n"} if "mix" in text else {}))
            assert loaded.spec is not None, loaded.diagnostics.items
            specs.append(loaded.spec)
        assert [spec_hash(spec) == spec_hash(specs[0]) for spec in specs] == [True, True, False]
        state = state_at(specs[0], 1, 2)
        assert saved_with(specs[1], state) == (1, 2)

        with pytest.raises(StateError, match=re.escape(path)):
            saved_with(specs[2], state)


# Where the `id` of a step keys its draws, it is part of the hash, and nowhere else.


def forms_of(op: type[Transform], *, every: bool) -> Iterator[dict[str, Any]]:
    """The arguments of a worked example, or of every one, also with a `probability` that decides, and one that does not."""
    for one in op.examples if every else op.examples[:1]:
        written = yaml.safe_load(one.yaml)
        given = {} if isinstance(written, str) else written[op.op]
        yield given
        if "probability" in op.model_fields:
            for probability in (0.5, 1, *(({"from": 0.5, "to": 1, "epochs": 4}, {"from": 1, "to": 1, "epochs": 4}) if every else ())):
                yield {**given, "probability": probability}


def probability_of(op: type[Transform]) -> Any:
    return op.model_fields["probability"].default if "probability" in op.model_fields else None


def has_draws(step: Transform, probability: Any) -> bool:
    """Tells whether an example's numbers depend on the step's id: what it draws, a coin for it, or a choice among other steps."""
    gated = not step.handles_probability and probability not in (None, 1, {"from": 1, "to": 1, "epochs": 4})
    return step.num_draws() > 0 or gated or bool(step.inner_steps())


def alone(step: dict[str, Any]) -> dict[str, Any]:
    return {"transforms": [step]}


def in_view(step: dict[str, Any]) -> dict[str, Any]:
    return {"views": {"one": {"transforms": [step]}, "other": {"transforms": ["random_flip"]}}}


def in_part(step: dict[str, Any]) -> dict[str, Any]:
    folder, splits = {"image_folder": {"path": "photos"}}, {"parts": {"train": 0.5, "validation": 0.5}}
    part = {"source": folder, "splits": splits, "weight": 0.5}
    return {"source": {"mix": {"epoch": "a", "parts": {"a": {**part, "transforms": [step]}, "b": part}}}}


def in_stages(step: dict[str, Any]) -> dict[str, Any]:
    return {"transforms": [step], "stages": [{"epochs": 1, "batch": 4}, {"epochs": 2}]}


def in_policy(policy: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    more = {"count": 1} if policy == "some_of" else {}
    return lambda step: {"transforms": [{policy: {"steps": [step, "random_invert"], **more}}]}


POLICIES = sorted(name for name, op in transforms().items() if issubclass(op, Policy) and "steps" in op.model_fields)
PLACES = {"alone": alone, "view": in_view, "part": in_part, "stages": in_stages, **{name: in_policy(name) for name in POLICIES}}


def with_id(place: str, name: str, arguments: dict[str, Any], step_id: str) -> PipelineSpec | None:
    values = {"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, **PLACES[place]({name: {**arguments, "id": step_id}})}
    return load("spec.yaml", text=json.dumps(values), env={}).spec


NAMED = {"random_invert", "random_flip", "gaussian_blur"}
BY_DAY = {"alone": 1, "one_of": 1}
"""Where every step is tried by day; elsewhere every tenth is, and those that are named."""


@pytest.mark.by_day(3)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("place", PLACES)
def test_an_id_counts_where_it_keys_draws(place: str, every: bool) -> None:
    """Of every registered step, with and without `probability`, wherever a step can stand. Within a policy each id counts."""
    tried: dict[bool, set[str]] = {True: set(), False: set()}
    each = 1 if every else BY_DAY.get(place, 10)
    for name in sorted({*[*transforms()][::each], *NAMED}):
        op = transforms()[name]
        for arguments in forms_of(op, every=every):
            this = with_id(place, name, arguments, "this")
            that = with_id(place, name, arguments, "that") if this is not None else None
            if this is None or that is None:  # the step may not stand there
                continue
            draws = has_draws(op.model_validate(arguments), arguments.get("probability", probability_of(op)))
            assert (spec_hash(this) != spec_hash(that)) == (draws or place in POLICIES), f"{name}: {arguments}"
            tried[draws].add(name)
    assert len(tried[True]) >= (40 if place in POLICIES else 70) // each
    assert {"random_invert", "random_flip"} <= tried[True]
    assert {"random_invert", "gaussian_blur"} <= tried[False]


@pytest.mark.parametrize("steps", range(1, 7))
def test_how_many_steps_of_arithmetic_count_as_one(steps: int) -> None:
    """Up to four are compared by the constants that they come to, however folded; of more each counts by itself, in float64."""
    spec = spec_of(*(f"rescale: {{scale: 0.{i + 1}}}" for i in range(steps)))
    sizes = [len(effect[1]["features"]["image"]) - 1 for effect in effects(spec) if effect is not None]
    assert sizes == [1, 2, 3, 4, 5, 6][:steps][:4] + [5, 6][: max(0, steps - 4)]
    nudged = spec_of(*(f"rescale: {{scale: {0.1 * (i + 1) * (1 + (i == 0) * 2**-50)!r}}}" for i in range(steps)))
    plain = spec_of(*(f"rescale: {{scale: {0.1 * (i + 1)!r}}}" for i in range(steps)))
    assert (spec_hash(nudged) == spec_hash(plain)) == (steps <= 4), "what float32 cannot tell apart"
