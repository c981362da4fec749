"""Tests of data that look at examples: what they say agrees with the examples that the pipeline gives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from pipes import write_photos
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import pipegen
from pipegen.errors import SpecError

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve small photographs of two classes."""
    return write_photos(tmp_path_factory.mktemp("tested") / "photos", ("daisy", "rose"), 6)


def spec_of(photos: Path, tests: list[Any], **sections: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(photos)}},
        "splits": {"parts": {"train": 8, "validation": 5}},
        "transforms": [{"resize": {"size": 16}}, "random_flip", {"random_brightness": {"factor": 0.3}}, {"normalize": {"preset": "torch"}}],
        "batch": {"size": 4},
        "runtime": {"jit": "never"},
        "tests": tests,
        **sections,
    }


CHECKS = "my_pkg.checks"
WIDE = [-1e6, 1e6]


@pytest.fixture(scope="module")
def report(photos: Path) -> Any:
    """One run of tests of every kind that looks at examples, with right and wrong bounds."""
    tests = [
        {"range": {"feature": "image", "within": [-3, 3]}},
        {"range": {"feature": "image", "within": [-3, 1], "id": "narrow"}},
        {"mean": {"feature": "image", "within": WIDE, "per": "channel"}},
        {"std": {"feature": "image", "within": WIDE}},
        {"std": {"feature": "image", "within": [5, 6], "split": "validation", "severity": "warning"}},
        {"mean": {"feature": "image", "within": WIDE, "sample": 3, "id": "few"}},
        {"range": {"feature": "image", "within": WIDE, "sample": 2, "id": "fewer"}},
        {"python": {"function": f"{CHECKS}:is_finite"}},
        {"python": {"function": f"{CHECKS}:both", "feature": ["image", "label"]}},
        {"python": {"function": f"{CHECKS}:writes", "id": "writes"}},
        {"python": {"function": f"{CHECKS}:is_dark", "id": "dark", "split": "train"}},
        {"python": {"function": f"{CHECKS}:in_words", "id": "words", "split": "train"}},
        {"python": {"function": f"{CHECKS}:breaks", "id": "breaks", "split": "train"}},
        "classes",
    ]
    return pipegen.test(spec_of(photos, tests), allow_code=["my_pkg"])


@pytest.fixture(scope="module")
def examples(photos: Path) -> dict[str, Any]:
    """The examples of the first epoch, from the pipeline itself."""
    pipe = pipegen.build(spec_of(photos, []))
    return {split: np.concatenate([x for x, _ in pipe.dataset(split, epoch=0).as_numpy_iterator()]) for split in pipe.splits}


def result(report: Any, test_id: str) -> Any:
    (found,) = [r for r in report.results if r.id == test_id]
    return found


def test_figures_are_those_of_the_first_epoch(report: Any, examples: dict[str, Any]) -> None:
    for split, images in examples.items():
        assert f"{split}: {images.min():.4g} to {images.max():.4g} in {len(images)} examples" in result(report, "range").seen
        means = ", ".join(f"{mean:.4g}" for mean in images.mean((0, 1, 2), dtype=np.float64))
        assert f"{split}: {means} over {len(images)} examples" in result(report, "mean").seen
        assert f"{split}: {images.std(dtype=np.float64):.4g} over" in result(report, "std").seen


def test_values_outside_name_their_examples(report: Any, examples: dict[str, Any]) -> None:
    narrow = result(report, "narrow")
    assert (narrow.status, {f.code for f in narrow.findings}) == ("failed", {"PG713"})
    over = int((examples["train"].max((1, 2, 3)) > 1).sum())
    assert f", above 1, in {over} of 8 examples of `train`: '" in narrow.findings[0].message
    assert narrow.findings[0].primary.path == "tests[1].range.within"


def test_a_smaller_sample_sees_less(report: Any) -> None:
    assert result(report, "few").seen.count("over 3 examples") == 2
    assert result(report, "fewer").seen.count("in 2 examples") == 2


def test_a_warning_passes(report: Any) -> None:
    assert result(report, "std#2").status == "warned"
    assert not report.passed, "others have failed"


def test_python_is_called_for_each_example(report: Any) -> None:
    assert [result(report, i).status for i in ("python", "python#2", "writes")] == ["passed"] * 3
    told = {i: result(report, i).findings[0].message for i in ("words", "breaks")}
    assert told["words"].startswith("8 of 8 examples of `train` fail `my_pkg.checks:in_words`: '")
    assert told["words"].endswith("of the first: not black")
    assert told["breaks"].endswith("of the first: KeyError: 'colour'")
    assert result(report, "dark").status == "passed", "what `writes` has written reached nobody else"


def test_the_report_as_text_json_and_junit(report: Any) -> None:
    counts = {"passed": 10, "failed": 3, "warned": 1}
    assert [sum(r.status == s for r in report.results) for s in counts] == list(counts.values())
    assert "14 tests: 10 passed, 3 failed, 1 warned (" in str(report)
    document = json.loads(report.as_json())
    assert document["summary"]["failed"] == 3
    for test in document["tests"]:
        assert (test["status"] in ("failed", "warned")) == bool(test["findings"])
        assert all(document["diagnostics"][i]["labels"][0]["path"].startswith(test["path"]) for i in test["findings"])
    suite = ElementTree.fromstring(report.as_junit())[0]
    assert (suite.get("tests"), suite.get("failures")) == ("14", "3")
    failed = [case for case in suite if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["narrow", "words", "breaks"]
    assert failed[0].find("failure").get("type") == "PG713"
    assert "<b>" in report._repr_html_()


def test_code_has_to_be_allowed(photos: Path) -> None:
    spec = spec_of(photos, [{"python": {"function": f"{CHECKS}:is_finite"}}])
    with pytest.raises(SpecError) as caught:
        pipegen.test(spec)
    assert [d.code for d in caught.value.diagnostics] == ["PG240"]
    spec["tests"][0]["python"]["function"] = f"{CHECKS}:is_finit"
    with pytest.raises(SpecError) as caught:
        pipegen.test(spec, allow_code=["my_pkg"])
    assert [(d.code, d.help) for d in caught.value.diagnostics] == [("PG241", (f"did you mean `{CHECKS}:is_finite`?",))]
    spec["tests"][0]["python"] = {"function": f"{CHECKS}:both"}
    with pytest.raises(SpecError, match="give it those arguments and no more"):
        pipegen.test(spec, allow_code=["my_pkg"])
    pipegen.build(spec_of(photos, [{"python": {"function": f"{CHECKS}:is_finite"}}])), "whoever builds runs no tests"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"transforms": [{"resize": {"size": 16}}, {"mixup": {"alpha": 0.2}}], "output": {"encode": {"label": "one_hot"}}},
            id="combining and encoded labels",
        ),
        pytest.param({"epoch": {"steps": 1}, "batch": {"size": 4, "remainder": "pad"}}, id="epochs of steps", marks=pytest.mark.nightly),
        pytest.param(
            {"output": {"channels": "first", "dtype": "uint8"}, "transforms": [{"resize": {"size": 16}}], "shuffle": {"window": "1MiB"}},
            id="channels first and bytes",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            {
                "runtime": {"cache": "memory", "jit": "never", "shard": {"index": 1, "count": 2}},
                "batch": {"size": 4, "remainder": {"validation": "pad"}},
            },
            id="cache and shards",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_other_pipelines_are_looked_at_whole(photos: Path, changes: dict[str, Any]) -> None:
    tests = [{"range": {"feature": "image", "within": [-300, 300]}}, {"mean": {"feature": "image", "within": WIDE, "per": "channel"}}]
    report = pipegen.test(spec_of(photos, tests, **changes))
    assert report.passed, str(report)
    for found in report.results:
        assert "8 examples" in found.seen
        assert "5 examples" in found.seen
    assert report.results[1].seen.count(",") == 4, "three channels in two splits"


@pytest.mark.parametrize("sample", [4, pytest.param("all", marks=pytest.mark.nightly)])
def test_a_sample_of_a_mix_is_of_every_part(photos: Path, sample: Any) -> None:
    """An epoch of a mix has some examples several times, and others not at all: a test sees each of its sample once."""
    own = {"image_folder": {"path": str(photos)}}
    parts = {
        "few": {"weight": 0.1, "source": own, "splits": {"parts": {"train": 6, "validation": 7}}},
        "many": {"weight": {"linear": {"from": 0.9, "to": 0.1, "epochs": [0, 4]}}, "source": own},
    }
    tests = [{"range": {"feature": "image", "within": WIDE}}, {"range": {"feature": "image", "within": WIDE, "sample": 1}}]
    spec = spec_of(photos, tests, source={"mix": {"epoch": 30, "parts": parts}}, splits={})
    report = pipegen.test(spec, sample=sample) if sample == "all" else pipegen.test(spec, overrides={"tests.range.sample": sample})
    counts = ["19", "7"] if sample == "all" else ["4", "4"]
    assert re.findall(r"in (\d+) example", report.results[0].seen) == counts, report
    if sample != "all":
        assert re.findall(r"in (\d+) example", report.results[1].seen) == ["2", "1"], "one of each part"


def test_arrays_are_tested_where_they_are() -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, "age": {"kind": "tensor"}}}},
        "splits": {"parts": {"train": 3, "test": 3}},
        "output": {"x": "image", "y": None},
        "batch": {"size": 2},
        "runtime": {"jit": "never"},
        "tests": [
            {"range": {"feature": "image", "within": [0, 255]}},
            {"range": {"feature": "age", "within": [0, 4]}},
            {"no_leak": "exact"},
        ],
    }
    data = {"image": images, "age": np.arange(6, dtype=np.float32)}
    report = pipegen.test(spec, data=data)
    assert [r.status for r in report.results] == ["passed", "failed", "passed"], str(report)
    data["image"] = np.repeat(images[:1], 6, 0)
    assert pipegen.test(spec, data=data, select=["no_leak"]).diagnostics[0].code == "PG721"


@pytest.mark.nightly
def test_damaged_files_are_named_or_skipped(photos: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad" / "a"
    bad.mkdir(parents=True)
    whole = (photos / "daisy" / "00.jpg").read_bytes()
    (bad / "0.jpg").write_bytes(whole)
    (bad / "1.jpg").write_bytes(whole[:300])
    torn = spec_of(bad.parent, [{"range": {"feature": "image", "within": WIDE}}, "classes"], splits={}, batch={"size": 2})
    report = pipegen.test(torn)
    assert [r.status for r in report.results] == ["failed", "passed"]
    assert report.diagnostics[0].code == "PG722"
    assert "1.jpg" in report.diagnostics[0].message
    skipping = pipegen.test(torn, overrides={"errors.decode": {"skip": {"report": str(tmp_path / "damaged.jsonl")}}})
    assert skipping.passed, "training would skip it, too"
    assert not (tmp_path / "damaged.jsonl").exists(), "a test writes nothing down"


@pytest.mark.parametrize(
    ("given", "error"), [({"select": "classes"}, TypeError), ({"sample": 0}, ValueError), ({"select": ["x"]}, ValueError)]
)
def test_wrong_arguments(photos: Path, given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        pipegen.test(spec_of(photos, ["classes"]), **given)
