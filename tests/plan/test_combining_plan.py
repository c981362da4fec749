"""Steps that combine examples: where the batch stands, what follows, and what is told."""

from __future__ import annotations

from typing import Any

import pytest
from planning import built, checked, compiled, load_spec

from pipegen.ops.families.combining import Combine
from pipegen.ops.families.decoder import Decode
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache, Kernel

COMBINED: dict[str, Any] = {
    "transforms": [
        {"resize": {"size": 24}},
        "random_flip",
        "mixup",
        {"random_rotation": {"degrees": 9}},
        {"random_contrast": {"factor": 0.2}},
    ],
    "output": {"encode": {"label": "one_hot"}},
}


def told(*transforms: Any, **sections: Any) -> list[tuple[str, str]]:
    """The codes of the errors, each with the path that it points to."""
    found = checked({"transforms": list(transforms), **sections}).diagnostics
    return [(d.code, d.labels[0].path) for d in found if d.severity.value == "error"]


def test_the_batch_stands_before_the_first_step_that_combines() -> None:
    plan = built(COMBINED, classes=3)
    at = plan.nodes.index(plan.batch)
    before = [type(st) for n in plan.nodes[:at] for st in getattr(n, "stages", ())]
    after = [type(st) for n in plan.nodes[at:] for st in getattr(n, "stages", ())]
    assert before == [Decode, s.Apply, s.Compose, s.Resample, s.EncodeLabel]
    assert after == [Combine, Combine, s.Compose, s.Resample, s.ComposeColour, s.ApplyColour]
    image, label = (st for st in plan.stages() if isinstance(st, Combine))
    assert (image.feature, image.label, image.canvas) == ("image", False, (24, 24))
    assert (label.feature, label.label, label.canvas) == ("label", True, (24, 24))
    assert plan.out["label"].shape == (3,)
    assert plan.out["image"].dtype == "float32"


def test_a_length_that_is_fixed_too_late_is_fixed_before() -> None:
    """Padding would be refused in turn."""
    sounds: dict[str, Any] = {
        "source": {"audio_folder": {"path": "sounds", "rate": 16000}},
        "output": {"x": "audio", "y": "label", "encode": {"label": "one_hot"}},
    }
    steps: list[Any] = [{"crop_or_pad": {"seconds": 1}}, "mixup"]
    (late,) = checked({"transforms": steps[::-1], **sounds}).diagnostics
    assert (late.code, late.help) == ("PG263", ("move `crop_or_pad` before `mixup`, which needs examples of one length",))
    assert not told(*steps, **sounds)
    assert told("mixup", **sounds) == [("PG263", "batch")]
    assert not told("mixup", **sounds, batch={"pad": {"to": "longest"}})


def test_a_length_is_the_same_thing_in_all_splits() -> None:
    """Training pads samples before it mixes them; validation would pad spectra."""
    spec: dict[str, Any] = {
        "source": {"audio_folder": {"path": "sounds", "rate": 16000}},
        "output": {"x": "audio", "y": "label", "encode": {"label": "one_hot"}},
        "splits": {"parts": {"train": 0.8, "validation": 0.2}},
    }
    buckets = {"size": 4, "buckets": {"by": "length", "sizes": [12000, 24000]}}
    for batch in (buckets, {"pad": {"to": 24000}}, {"pad": {"to": "longest"}}):
        assert ("PG264", "batch.buckets" if batch is buckets else "batch.pad") in told("mixup", "mel_spectrogram", **spec, batch=batch)
        assert not told("mixup", {"gain": {"db": 3}}, **spec, batch=batch)
        assert not told("mel_spectrogram", "mixup", **spec, batch=batch)
    assert not told({"crop_or_pad": {"seconds": 1}}, "mixup", "mel_spectrogram", **spec)
    assert not told({"mixup": {"when": "all"}}, "mel_spectrogram", **spec, batch={"pad": {"to": 24000}})


@pytest.mark.parametrize("policy", ["one_of", "some_of"])
def test_a_policy_changes_no_unknown_length(policy: str) -> None:
    sounds: dict[str, Any] = {"source": {"audio_folder": {"path": "sounds", "rate": 16000}}, "batch": {"pad": {"to": 24000}}}
    own = {"count": 1} if policy == "some_of" else {}
    found = told({policy: {"steps": [{"resample": {"rate": 8000}}, "random_polarity"], **own}}, **sounds, output={"x": "audio"})
    assert [code for code, _ in found] == ["PG226"]
    kept = told({policy: {"steps": [{"random_speed": {"factor": 0.1}}, "random_polarity"], **own}}, **sounds, output={"x": "audio"})
    assert kept == []


def test_passes_move_the_batch_further_up_and_never_past() -> None:
    done = compiled(built(COMBINED, classes=3), load_spec(COMBINED), num_examples=50, ram_budget=2**30).plan
    kinds = [type(n) for n in done.nodes]
    assert kinds.index(Batch) == kinds.index(Cache) + 1 == 4
    kernels = [[type(st) for st in n.stages] for n in done.nodes if isinstance(n, Kernel)]
    assert kernels == [[s.Warp, s.EncodeLabel], [Combine, Combine], [s.Warp], [s.Colour]]


def test_other_splits_have_nothing_of_it() -> None:
    plan = built(COMBINED, classes=3, split="validation")
    assert not any(isinstance(st, Combine) for st in plan.stages())
    assert plan.out["label"] == built(COMBINED, classes=3).out["label"]


@pytest.mark.parametrize("op", ["mixup", "cutmix"])
def test_a_second_one_is_part_of_the_same_batch(op: str) -> None:
    plan = built({**COMBINED, "transforms": [{"resize": {"size": 24}}, "cutmix", op]}, classes=2)
    assert sum(isinstance(n, Batch) for n in plan.nodes) == 1
    assert [type(st) for st in plan.stages()].count(s.EncodeLabel) == 1
    assert [st.feature for st in plan.stages() if isinstance(st, Combine)] == ["image", "label"] * 2


def test_images_alone_are_combined_alone() -> None:
    unlabelled = {"image_folder": {"path": "photos/", "labels": "none"}}
    plan = built({"source": unlabelled, "transforms": COMBINED["transforms"]})
    assert [st.feature for st in plan.stages() if isinstance(st, Combine)] == ["image"]
    left_out = built({"transforms": COMBINED["transforms"], "output": {"y": None}})
    assert [st.feature for st in left_out.stages() if isinstance(st, Combine)] == ["image"]


def test_binary_labels_are_soft_too() -> None:
    plan = built({**COMBINED, "output": {"encode": {"label": "binary"}}}, classes=2)
    assert plan.out["label"].shape == (1,)
    assert [st.feature for st in plan.stages() if isinstance(st, Combine)] == ["image", "label"]


def test_several_labels_are_soft_too() -> None:
    label = {"kind": "label", "classes": ["a", "b", "c"], "separator": " "}
    table = {"csv": {"path": "x.csv", "features": {"image": {"kind": "image", "column": "file"}, "label": label}}}
    plan = built({**COMBINED, "source": table, "output": {"encode": {"label": "multi_hot"}}})
    assert [(st.feature, st.label) for st in plan.stages() if isinstance(st, Combine)] == [("image", False), ("label", True)]


def test_a_crop_after_the_combining_is_a_segment_of_its_own() -> None:
    steps = [{"resize": {"size": 32}}, "mixup", {"random_crop": {"size": 24}}]
    plan = built({**COMBINED, "transforms": steps}, classes=2)
    assert [type(st) for st in plan.stages()][-3:] == [Combine, s.Compose, s.Resample]
    assert plan.out["image"].shape == (24, 24, 3)


SOFT: dict[str, Any] = {"output": {"encode": {"label": "one_hot"}}}
RESIZED = {"resize": {"size": 24}}


@pytest.mark.parametrize(
    ("transforms", "sections", "expected"),
    [
        ([RESIZED, "mixup"], {}, [("PG223", "transforms[1].mixup")]),
        ([RESIZED, "mixup", "cutmix"], {}, [("PG223", "transforms[1].mixup")]),
        ([RESIZED, "mixup"], {"output": {"encode": {"label": "int"}}}, [("PG223", "transforms[1].mixup")]),
        (["mixup", RESIZED], SOFT, [("PG224", "transforms[1].resize")]),
        ([RESIZED, "mixup", {"resize": {"size": 20}}], SOFT, [("PG224", "transforms[2].resize")]),
        (["mixup"], SOFT, [("PG201", "transforms")]),
        ([RESIZED, {"mixup": {"feature": "label"}}], SOFT, [("PG203", "transforms[1].mixup.feature")]),
        ([RESIZED, "mixup", {"random_flip": {"feature": "imag"}}], SOFT, [("PG217", "transforms[2].random_flip.feature")]),
        ([RESIZED, "mixup", "decode"], SOFT, [("PG215", "transforms[2].decode")]),
    ],
)  # fmt: skip
def test_what_is_told(transforms: list[Any], sections: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert told(*transforms, **sections) == expected


@pytest.mark.parametrize("encoding", ["binary", "multi_hot"])
def test_a_wrong_encoding_is_told_once(encoding: str) -> None:
    three = {"source": {"image_folder": {"path": "photos/", "classes": ["a", "b", "c"]}}, "output": {"encode": {"label": encoding}}}
    assert told(RESIZED, {"mixup": {"when": "all"}}, **three) == [("PG218", "output.encode.label")]


def test_it_may_run_where_it_is_told_to() -> None:
    found = checked({**SOFT, "transforms": [RESIZED, {"mixup": {"when": "all"}}]}, classes=2)
    assert all(any(isinstance(st, Combine) for st in plan.stages()) for plan in found.plans.values())
    assert [d.code for d in found.diagnostics] == ["PG507"]
