"""What the hash of a spec covers, and differences in words."""

from __future__ import annotations

import copy
import json
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from spec_helpers import HEAD, other_numbers, read

from pipegen.cli.show import _leaves, _Origins, plain_spec, resolved_json, resolved_yaml
from pipegen.ops.arguments.magnitudes import Magnitude, canonical_magnitude, factor_range, has_type, symmetric_range
from pipegen.ops.families.sounds import SECOND, SoundTransform
from pipegen.ops.registry import transforms
from pipegen.phases.specs import Spec
from pipegen.spec.load import load
from pipegen.spec.source_map import format_path
from pipegen.spec.spec_hash import canonical, meaning, spec_hash
from pipegen.types import FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.transform import Transform

BODY = """
splits: {parts: {train: 0.8, validation: 0.2}, seed: 3}
transforms:
  - resize: {size: 32}
  - random_rotation: {degrees: 20}
  - random_flip
batch: {size: 64}
"""


def hashed(body: str, head: str = HEAD) -> str:
    spec = read(body, head=head).spec
    assert spec is not None
    return spec_hash(spec)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("path: photos", "path: /mnt/photos"),
        ("batch: {size: 64}", "batch: {size: 64}\nruntime: {cache: none, threads: 3}"),
        ("batch: {size: 64}", "batch: {size: 64}\nname: other\ndescription: words"),
        ("batch: {size: 64}", "batch: {size: 64}\nseed: 0\nshuffle: global"),
        ("batch: {size: 64}", "batch: {size: 64}\nerrors: {exclude: bad.txt}"),
        ("degrees: 20", "degrees: 20.0"),
        ("- random_flip", "- random_flip: {}"),
        ("- random_flip", "- random_flip: {id: random_flip}"),
        ("resize: {size: 32}", "resize: {size: $n}\nparams: {n: {type: int, default: 32}}"),
        ("batch: {size: 64}", "batch: {size: 64}\nparams: {unused: {type: int, default: 32}}"),
        ("- random_flip", "- random_flip: {when: train}"),
        ("- random_flip", "- random_flip: {when: [train]}"),
        ("resize: {size: 32}", "resize: {size: 32, when: all}"),
        ("resize: {size: 32}", "resize: {size: [32, 32]}"),
        ("degrees: 20", "degrees: [-20, 20]"),
        ("batch: {size: 64}", "batch: {size: 64, remainder: {train: drop}}"),
        ("batch: {size: 64}", "batch: {size: 64, remainder: {train: drop, validation: keep}}"),
        ("batch: {size: 64}", "batch: {size: 64}\noutput: {encode: {label: int}}"),
    ],
)
def test_what_leaves_it_alone(old: str, new: str) -> None:
    whole = HEAD + BODY
    if "\nparams" in new:
        new, _, params = new.partition("\n")
        changed = whole.replace(old, new) + params + "\n"
    else:
        changed = whole.replace(old, new)
    assert changed != whole
    assert hashed(changed, head="") == hashed(whole, head="")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("path: photos", "path: photos, labels: none"),
        ("path: photos", "path: photos, classes: [a, b]"),
        ("path: photos", "path: photos, pattern: '*.jpg'"),
        ("batch: {size: 64}", "batch: {size: 32}"),
        ("batch: {size: 64}", "batch: {size: 64}\nseed: 1"),
        ("batch: {size: 64}", "batch: {size: 64}\nerrors: {decode: {skip: {}}}"),
        ("degrees: 20", "degrees: [-20, 21]"),
        ("- random_flip", "- random_flip: {id: other}"),
        ("- random_flip", "- random_flip: {when: all}"),
        ("- random_flip", "- random_flip: {when: eval}"),
        ("resize: {size: 32}", "resize: {size: 32, when: train}"),
        ("resize: {size: 32}", "resize: {size: [32, 33]}"),
        ("degrees: 20", "degrees: [0, 20]"),
        ("batch: {size: 64}", "batch: {size: 64, remainder: keep}"),
        ("batch: {size: 64}", "batch: {size: 64, remainder: {validation: pad}}"),
        ("batch: {size: 64}", "batch: {size: 64}\noutput: {encode: {label: one_hot}}"),
        ("seed: 3", "seed: 4"),
    ],
)
def test_what_changes_it(old: str, new: str) -> None:
    whole = HEAD + BODY
    assert hashed(whole.replace(old, new), head="") != hashed(whole, head="")


def step_hash(step: str) -> str:
    return hashed(f"transforms:\n  - {step}\n")


@pytest.mark.parametrize(
    "same",
    [
        ("random_brightness: {factor: 0.2}", "random_brightness: {factor: [0.8, 1.2]}"),
        ("random_brightness: {factor: 0.3}", "random_brightness: {factor: 0.30000000000000004}"),
        ("random_zoom: {x: 0.1}", "random_zoom: {x: [0.9, 1.1], y: 0}", "random_zoom: {x: 0.1, y: [1, 1]}"),
        ("random_translation: {x: 0.1}", "random_translation: {x: [-0.1, 0.1], y: [0, 0]}", "random_translation: {x: 0.1, y: 0}"),
        ("rescale: {scale: 2}", "rescale: {scale: 2, offset: 0}"),
        ("rescale: {offset: 2}", "rescale: {scale: 1, offset: 2}"),
        ("normalize: {mean: 2}", "normalize: {mean: [2], std: 1}"),
        ("resize: {size: 24, when: [train, test]}", "resize: {size: 24, when: [test, train]}"),
        ("random_resized_crop: {size: 24}", "random_resized_crop: {size: [24, 24], area: [0.08, 1]}"),
    ],
)
def test_forms_of_one_meaning(same: tuple[str, ...]) -> None:
    assert len({step_hash(step) for step in same}) == 1


@pytest.mark.parametrize(
    "other",
    [
        ("random_crop: {size: 24}", "random_crop: {size: 24, when: train}", "random_crop: {size: 24, when: all}"),
        ("random_brightness: {factor: 0.2}", "random_brightness: {factor: [0.8, 1.3]}", "random_brightness: {factor: [0.0, 0.2]}"),
        ("random_zoom: {factor: 0.1}", "random_zoom: {x: 0.1}", "random_zoom: {x: 0.1, y: 0.1}"),
        ("normalize: {mean: 1}", "normalize: {mean: [1, 1, 1]}", "normalize: {std: 1.5}", "normalize: {preset: torch}"),
        ("resize: {size: 24}", "resize: {shorter_side: 24}", "resize: {size: [24, 25]}", "resize: {size: [25, 24]}"),
        ("rescale: {to: [0, 1]}", "rescale: {scale: 1}", "rescale: {offset: 1}"),
    ],
)
def test_different_meanings_stay_different(other: tuple[str, ...]) -> None:
    hashes = [step_hash(step) for step in other]
    assert len(set(hashes)) == len(hashes)


@given(
    st.floats(0, 1e6) | st.sampled_from([0.1, 0.2, 0.3, 1 / 3]),
    st.floats(0, 1e6) | st.sampled_from([0.1, 0.2, 0.3, 0.30000000000000004]),
    st.booleans(),
)
def test_ranges_are_equal_just_when_they_are_written_alike(a: float, b: float, factor: bool) -> None:
    meant = factor_range if factor else symmetric_range
    one, other = (canonical_magnitude(m, factor=factor) for m in (a, b))
    assert canonical_magnitude(meant(a), factor=factor) == one
    assert meant(tuple(one) if isinstance(one, list) else one) == meant(a)
    assert (one == other) == (meant(a) == meant(b))


MAGNITUDES = [(op, name) for op, cls in transforms().items() for name, f in cls.model_fields.items() if has_type(f, Magnitude)]


QUIET: dict[str, dict[str, Any]] = {
    "random_iso_noise": {"std": 0.0},
    "random_stain": {"factor": 0.0},
    "random_photometric_distort": {
        **dict.fromkeys(("brightness_factor", "contrast_factor", "saturation_factor", "hue_degrees"), 0.0),
        "shuffle": False,
    },
}
"""What keeps the other arguments of a step from changing anything."""


@pytest.mark.parametrize(("op", "name"), MAGNITUDES)
def test_a_magnitude_lies_around_what_its_step_says(op: str, name: str) -> None:
    """The range of nothing but the middle changes nothing; a step that has it elsewhere would hash its ranges wrongly."""
    cls = transforms()[op]
    middle = 1.0 if name in cls.factors else 0.0
    floats = FeatureType("image", "float32", (24, 24, 3), Interval(0, 255))
    floats = FeatureType("series", "float32", (24, 3)) if "series" in cls.kinds else floats
    floats = SECOND if issubclass(cls, SoundTransform) else floats
    others = {n: 1.0 for n, f in cls.model_fields.items() if f.is_required() and n != name} | QUIET.get(op, {})

    def step(value: float | tuple[float, float]) -> Transform:
        return cls.model_validate({**others, name: value})

    x = floats.with_(dtype=step((middle, middle)).infer(floats).dtype)  # tables make bytes, which is no identity
    assert step((middle, middle)).is_identity(x)
    assert step(0.0).is_identity(x)
    assert not step(0.25).is_identity(x)


SPECS = [
    BODY,
    "",
    "splits: {folds: {count: 3, fold: 1}}\nerrors: {decode: {skip: {}}}\nshuffle: {window: 1MiB}\nepoch: {steps: 3}\n",
    *(f"transforms:\n  - {cls.examples[0].yaml}\n" for cls in transforms().values()),
]
BY_DAY = len(SPECS)
SPECS += [f"transforms:\n  - {example.yaml}\n" for cls in transforms().values() for example in cls.examples[1:]]


@pytest.mark.by_day(45)
@pytest.mark.parametrize("each", [4, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.nightly] * (case >= BY_DAY), id=spec) for case, spec in enumerate(SPECS)]
)
def test_what_show_calls_a_default_may_be_written(case: int, each: int) -> None:
    """By day a fourth of what a spec with the first example of a step leaves out is written; the specs take turns."""
    body = SPECS[case]
    loaded = read(body)
    assert loaded.spec is not None
    spec = Spec(loaded.spec, loaded, {}, loaded.diagnostics, {})
    assert hashed(resolved_yaml(spec), head="") == spec.hash, "all of them"
    assert json.loads(json.dumps(canonical(spec.model))) == canonical(spec.model), "a saved state holds it"
    origins, plain = resolved_json(spec)["origins"], plain_spec(spec.model)
    shown = _Origins(spec)
    written, told = 0, yaml.safe_load(HEAD + textwrap.dedent(body))
    for path, value in [*_leaves(plain, ())][case % each :: each]:
        said = shown.unset(path) if value is None else value
        if origins[format_path(path)] != "default" or said is None or any(path[: len(u)] == u for u in shown.unwritten):
            continue
        if value is None and (path[-1] != "when" or said not in ("train", "all")):
            continue  # in words that are no value
        at: Any = (raw := copy.deepcopy(told))
        for key in path[:-1]:
            if isinstance(at, list):
                at[key] = {at[key]: {}} if isinstance(at[key], str) else at[key]
                at = at[key]
            else:
                at = at.setdefault(key, {})
        at[path[-1]] = said
        changed = load(raw, env={})
        assert changed.spec is not None, (path, changed.diagnostics.items)
        assert spec_hash(changed.spec) == spec.hash, path
        written += 1
    assert written > 5 / each


def test_by_split_paths_do_not_count_and_the_splits_do() -> None:
    def one(value: str) -> str:
        return hashed("", head=f"pipegen: 1\nsource: {{by_split: {{{value}}}}}\n")

    assert one("train: {image_folder: {path: a}}, test: {image_folder: {path: b}}") == one(
        "train: {image_folder: {path: c}}, test: {image_folder: {path: d}}"
    )
    assert one("train: {image_folder: {path: a}}") != one("test: {image_folder: {path: a}}")


def test_a_mapping_and_a_file_are_the_same_pipeline() -> None:
    spec = load({"pipegen": 1, "source": {"image_folder": {"path": "x"}}}, env={}).spec
    assert spec is not None
    assert spec_hash(spec) == hashed("")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("degrees: 20", "degrees: 30", ["transforms[1].random_rotation.degrees: 20.0 → 30.0"]),
        ("batch: {size: 64}", "batch: {size: 32}\nseed: 2", ["seed: 0 → 2", "batch.size: 64 → 32"]),
        ("  - random_flip\n", "", ["transforms[2].random_flip: it is no longer there"]),
        ("  - random_flip\n", "  - random_hue: {degrees: 5}\n  - random_flip\n", ["transforms[2].random_hue: it is new"]),
        (
            "  - random_flip\n",
            "  - random_hue: {degrees: 5}\n",
            ["transforms[2].random_flip: it is no longer there", "transforms[2].random_hue: it is new"],
        ),
        ("- random_flip", "- random_flip: {id: other}", ["transforms[2].random_flip: its id was `random_flip`, and is `other`"]),
        ("degrees: 20", "degrees: [0, 20]", ["transforms[1].random_rotation.degrees: 20.0 → [0.0, 20.0]"]),
        ("- random_flip", "- random_flip: {when: all}", ["transforms[2].random_flip.when: train → all"]),
        ("batch: {size: 64}", "batch: {size: 64, remainder: keep}", ["batch.remainder.train: drop → keep"]),
        ("batch: {size: 64}", "batch: {size: 64}\noutput: {encode: {label: one_hot}}", ["output.encode.label: int → one_hot"]),
        ("path: photos", "path: photos, pattern: '*.jpg'", ["source.image_folder.pattern: nothing → *.jpg"]),
        ("validation: 0.2", "test: 0.2", ["splits.parts.validation: 0.2 → nothing", "splits.parts.test: nothing → 0.2"]),
    ],
)
def test_differences_in_words(old: str, new: str, lines: list[str]) -> None:
    a, b = (read(text, head="").spec for text in (HEAD + BODY, (HEAD + BODY).replace(old, new)))
    assert a is not None
    assert b is not None
    assert other_numbers(meaning(a), meaning(b)) == lines
    assert other_numbers(meaning(a), meaning(a)) == []


def test_a_default_choice_keeps_the_hash() -> None:
    plain = {
        "pipegen": 1,
        "source": {"image_folder": {"path": "photos/"}},
        "splits": {"parts": {"train": 0.75, "validation": 0.25}},
        "transforms": [{"decode": {"scaled": "never"}}, {"resize": {"size": 24}}],
    }
    hashes = []
    for jpeg in (None, "fast", "accurate", "tensorflow"):
        steps = [{"decode": {"scaled": "never", **({"jpeg": jpeg} if jpeg else {})}}, {"resize": {"size": 24}}]
        spec = load({**plain, "transforms": steps}).spec
        assert spec is not None
        hashes.append(spec_hash(spec))
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
