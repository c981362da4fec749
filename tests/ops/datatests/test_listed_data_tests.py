"""Tests of data that need no more than the listing: each passes on data that holds what it says, and fails on data that does not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

import pipegen
from pipegen.data.testing import choose, pick
from pipegen.errors import SpecError
from pipegen.ops.registry import datatests
from pipegen.phases.compilation import bind, collect_data, inspect
from pipegen.phases.data_tests import begin, run_cheap
from pipegen.spec.step_list import ids_of

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"
"""What a file of that format begins with."""
HEAD = """\
pipegen: 1
source: {csv: {path: data.csv, features: {image: {kind: image, column: file}, label: {kind: label, column: kind},
  age: {kind: tensor, column: age}, tags: {kind: label, column: tags, separator: " "}}}}
splits: {method: {column: part}, parts: {train: a, test: b}}
transforms: [{resize: {size: 8}}]
output: {y: label, encode: {label: one_hot}}
batch: {size: 2}
tests:
"""
ROWS = """\
file,kind,age,part,who,note,tags
0.jpg,rose,30,a,p1,x,red big
1.jpg,rose,40,a,p1,,red
2.jpg,rose,50,a,p2,y,big
3.jpg,tulip,60,a,p3,x,red
4.jpg,rose,35,b,p3,x,red
5.jpg,tulip,45,b,p4,z,big red
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of six pictures, of which the listing reads no pixel."""
    root = tmp_path_factory.mktemp("listed")
    (root / "data.csv").write_text(ROWS, encoding="utf-8")
    for i in range(6):
        (root / f"{i}.jpg").write_bytes(b"no picture")
    return root


def spec_with(folder: Path, *tests: str, head: str = HEAD) -> Any:
    path = folder / "spec.yaml"
    path.write_text(head + "".join(f"  - {test}\n" for test in tests), encoding="utf-8")
    return inspect(path)


def about_tests(folder: Path, *tests: str) -> list[Any]:
    """The findings, less those about features that nothing uses."""
    return [d for d in spec_with(folder, *tests).diagnostics if d.code != "PG514"]


def ran(folder: Path, *tests: str, head: str = HEAD) -> list[Any]:
    """The results of tests that read nothing but the listing."""
    found = spec_with(folder, *tests, head=head)
    assert found.spec is not None, [(d.code, d.message) for d in found.diagnostics]
    run = begin(bind(found.spec, collect_data(found.spec)))
    assert not run_cheap(run, choose(found.spec.model)), "these need no examples"
    return [run.results[i] for i in range(len(tests))]


@pytest.mark.parametrize(
    ("right", "wrong", "code", "said"),
    [
        ("examples: {min: 6, max: 6}", "examples: {min: 7}", "PG710", "`train` and `test` have 6 examples, fewer than 7"),
        ("examples: {split: test, max: 2}", "examples: {split: test, max: 1}", "PG710", "more than 1"),
        ("examples: {split: test, share: [0.3, 0.4]}", "examples: {split: test, share: [0.4, 1]}", "PG710", "a share of 0.3333"),
        ("classes", "classes: {min: 2}", "PG710", "`train` has fewer than 2 examples of 'tulip' (1)"),
        ("classes: {max: 3}", "classes: {max: 2}", "PG710", "more than 2 examples of 'rose' (3)"),
        ("classes: {min_share: 0.25}", "classes: {min_share: 0.3}", "PG710", "the share of 'tulip' (0.25) is below 0.3"),
        ("classes: {max_share: 0.75}", "classes: {max_share: 0.7}", "PG710", "the share of 'rose' (0.75) is above 0.7"),
        ("classes: {feature: tags, min: 1}", "classes: {feature: tags, split: train, min: 3}", "PG710", "'big' (2)"),
        ("balance: 3", "balance: {max_ratio: 2.9}", "PG712", "'rose' has 3 examples and 'tulip' has 1: 3 times as many"),
        ("range: {column: age, within: [30, 60]}", "range: {column: age, within: [35, 50]}", "PG713", "30, below 35 and 60, above 50"),
        (
            "range: {feature: age, within: [30, 60]}",
            "range: {feature: age, within: [30, 59]}",
            "PG713",
            "1 of 4 examples of `train`: '3.jpg'",
        ),
        ("unique: file", "unique: who", "PG714", "2 values of `who` occur more than once, in 2 examples too many: 'p1', 'p3'"),
        ("unique: image", "unique: {path: '\\.(jpg)$'}", "PG714", "1 value of the part of the path that matches"),
        ("unique: {key: who, split: test}", "unique: {key: who, split: train}", "PG714", "'p1'"),
        ("present: who", "present: note", "PG715", "1 example of 6 has no `note`: '1.jpg'"),
        ("present: {key: who, values: [p1, p4]}", "present: {key: who, values: [p1, p9]}", "PG715", "has `who` 'p9'"),
        ("accepted: {key: note, values: [x, y, z]}", "accepted: {key: note, values: [x, y]}", "PG716", "1 value of `note`, in 1 example"),
        (
            "accepted: {key: who, matches: 'p\\d'}",
            "accepted: {key: who, matches: 'p[12]'}",
            "PG716",
            "2 values of `who`, in 3 examples, do not",
        ),
        ("disjoint: file", "disjoint: who", "PG717", "1 value of `who` is in both `train` and `test`: 'p3'"),
        ("mean: {column: age, within: [40, 45]}", "mean: {column: age, within: [41, 60]}", "PG718", "in `test` is 40"),
        ("std: {feature: age, within: [5, 11.2]}", "std: {feature: age, within: [5, 11.1]}", "PG718", "in `train` is 11.18"),
        ("shape: {feature: image, equals: [8, null, 3]}", "shape: {feature: image, equals: [8, 3]}", "PG719", "is [8, 8, 3] in `train`"),
        ("shape: {feature: label, equals: [2], dtype: float32}", "shape: {feature: label, dtype: int64}", "PG719", "is float32"),
    ],
)
def test_each_test_passes_and_fails(folder: Path, right: str, wrong: str, code: str, said: str) -> None:
    good, bad = ran(folder, right, wrong)
    assert (good.status, good.findings) == ("passed", ())
    assert bad.status == "failed"
    assert {f.code for f in bad.findings} == {code}
    assert said in " ".join(f.message for f in bad.findings)
    op = wrong.partition(":")[0]
    assert bad.path == f"tests[1].{op}"
    finding = bad.findings[0]
    line = (folder / "spec.yaml").read_text(encoding="utf-8").splitlines()[finding.span.line - 1]
    assert line == f"  - {wrong}", "the finding points at the test"


@pytest.mark.parametrize(
    ("test", "code", "said"),
    [
        ("exmaples: {min: 3}", "PG103", "unknown test `exmaples`"),
        ("examples: {mn: 3}", "PG102", "has no argument `mn`"),
        ("examples: {min: many}", "PG104", "`examples.min` is a whole number"),
        ("examples", "PG105", "give `min`, `max` or `share`"),
        ("range: {feature: image}", "PG101", "`range` needs `within`"),
        ("range: {within: [0, 1]}", "PG105", "give `feature` or `column`"),
        ("range: {feature: image, column: age, within: [0, 1]}", "PG105", "and not both"),
        ("range: {feature: image, within: [1, 0]}", "PG105", "in this order"),
        ("range: {feature: imag, within: [0, 1]}", "PG217", "there is no feature `imag` to test"),
        ("range: {feature: label, within: [0, 1]}", "PG700", "class indices"),
        ("mean: {feature: age, within: [0, 1], per: channel}", "PG700", "has no channels"),
        ("examples: {split: tset, min: 3}", "PG220", "there is no split `tset`"),
        ("examples: {split: [train, val], min: 3}", "PG220", "there is no split `val`"),
        ("balance: {feature: image, max_ratio: 2}", "PG700", "`image` is not a label"),
        ("disjoint: {key: who, split: train}", "PG700", "compares splits"),
        ("unique: {key: who, path: x}", "PG105", "give `key` or `path`, and not both"),
        ("unique: {path: '('}", "PG105", "path"),
        ("accepted: {key: who}", "PG105", "give `values` or `matches`"),
        ("no_leak: close", "PG105", "`exact` or `near`"),
        ("python: {function: os.system}", "PG105", "module:function"),
        ("unique:", "PG112", "has no value"),
        ("{classes: {}, unique: who}", "PG112", "single-key map"),
        ("3", "PG112", "a test is a word or a single-key map"),
        ("mean: 3", "PG112", "the arguments of `mean` are a map"),
    ],
)
def test_a_wrong_test_is_a_finding(folder: Path, test: str, code: str, said: str) -> None:
    found = about_tests(folder, test)
    assert [(d.code, said in d.message) for d in found] == [(code, True)], [d.message for d in found]
    (finding,) = found
    assert finding.span.line == HEAD.count("\n") + 1
    assert finding.help or code in ("PG104", "PG105")


def test_a_test_without_what_it_needs_gets_an_example(folder: Path) -> None:
    (finding,) = about_tests(folder, "examples")
    assert any(line.startswith("for example `examples: {") for line in finding.help)


def test_unknown_names_are_suggested(folder: Path) -> None:
    wrong = ("exmaples: {min: 3}", "range: {feature: imag, within: [0, 1]}")
    help_ = [d.help for test in wrong for d in about_tests(folder, test)]
    assert help_ == [("did you mean `examples`?",), ("did you mean `image`?",)]
    (result,) = ran(folder, "classes: {names: [rose, tulpi]}")
    assert result.findings[0].code == "PG701"
    assert result.findings[0].help == ("did you mean 'tulip'?",)


def test_what_the_data_has_not_is_an_error_whatever_the_severity(folder: Path) -> None:
    results = ran(folder, "unique: {key: whom, severity: warning}", "range: {column: who, within: [0, 1], severity: warning}")
    assert [(r.status, r.findings[0].code) for r in results] == [("failed", "PG702")] * 2
    assert "no column 'whom'" in results[0].findings[0].message
    assert "'p1'" in results[1].findings[0].message


def test_a_warning_does_not_fail(folder: Path) -> None:
    (result,) = ran(folder, "examples: {min: 100, severity: warning}")
    assert result.status == "warned"
    assert [f.severity.value for f in result.findings] == ["warning"]


def test_two_tests_of_one_id_are_a_finding(folder: Path) -> None:
    found = spec_with(folder, "classes: {id: a}", "unique: {key: who, id: a}")
    assert [d.code for d in found.diagnostics] == ["PG703"]
    same = spec_with(folder, "classes", "classes: {min: 2}", "classes")
    assert ids_of(same.loaded.spec.tests) == ("classes", "classes#2", "classes#3")


def test_a_source_without_tables_says_so(folder: Path) -> None:
    head = "pipegen: 1\nsource: {image_folder: {path: x/, labels: none}}\ntransforms: [{resize: {size: 8}}]\n"
    head += "splits: {parts: {a: 0.5, b: 0.5}}\ntests:\n"
    tests = ("unique: who", "range: {column: age, within: [0, 1]}", "classes", "balance: 3", "unique: image")
    found = spec_with(folder, *tests, head=head)
    assert [(d.code, d.span.line - 5) for d in found.diagnostics if d.code == "PG700"] == [("PG700", n) for n in (1, 2, 3, 4)]


def test_tests_change_nothing_that_the_model_sees(folder: Path) -> None:
    with_tests = pipegen.load(yaml.safe_load(HEAD + "  - classes\n"))
    without = pipegen.load(yaml.safe_load(HEAD.removesuffix("tests:\n")))
    assert with_tests.hash == without.hash
    assert len(with_tests.model.tests) == 1


def test_tests_of_a_base_are_replaced(folder: Path) -> None:
    (folder / "base.yaml").write_text(HEAD + "  - classes\n  - unique: who\n", encoding="utf-8")
    (folder / "own.yaml").write_text("extends: base.yaml\ntests: [present: who]\n", encoding="utf-8")
    (folder / "heir.yaml").write_text("extends: base.yaml\nseed: 3\n", encoding="utf-8")
    assert [t.op for t in pipegen.load(folder / "own.yaml").model.tests] == ["present"]
    heir = pipegen.load(folder / "heir.yaml")
    assert [t.op for t in heir.model.tests] == ["classes", "unique"]
    assert heir.where(("tests", 1, "unique")).endswith("base.yaml:10:5"), "findings point into the base"


def test_params_and_overrides_reach_tests(folder: Path) -> None:
    text = HEAD.replace("source:", "params: {least: {type: int, default: 3}}\nsource:") + "  - examples: {min: $least}\n"
    plain = yaml.safe_load(text)
    assert pipegen.load(plain, params={"least": 9}).model.tests[0].min == 9
    assert pipegen.load(plain, overrides={"tests.examples.min": 8}).model.tests[0].min == 8


def test_selection(folder: Path) -> None:
    model = spec_with(folder, "classes", "unique: who", "classes: {id: mine, min: 2}").spec.model
    assert [c.index for c in choose(model)] == [0, 1, 2]
    assert [c.index for c in choose(model, ["classes"])] == [0, 2]
    assert [c.index for c in choose(model, ["m*", "unique"])] == [1, 2]
    with pytest.raises(ValueError, match="did you mean 'unique'"):
        choose(model, ["uniqe"])


def test_a_sample_is_the_same_every_time_and_part_of_a_larger_one(folder: Path) -> None:
    root = folder / "many" / "x"
    root.mkdir(parents=True)
    for i in range(400):
        (root / f"{i:03d}.jpg").write_bytes(b"x")
    spec = pipegen.load({"pipegen": 1, "source": {"image_folder": {"path": str(root.parent)}}, "transforms": [{"resize": {"size": 8}}]})
    manifest = collect_data(spec)
    small, large = pick(manifest, "train", 40), pick(manifest, "train", 200)
    assert (len(small), len(large), len(pick(manifest, "train", "all")), len(pick(manifest, "train", 999))) == (40, 200, 400, 400)
    assert set(small.tolist()) <= set(large.tolist())
    assert (small == pick(collect_data(spec), "train", 40)).all()
    # Spread over the whole listing: ranks of a uniform sample of 40 have a mean of 200 with a standard error of 17.
    assert 130 < small.mean() < 270
    (root / "new.jpg").write_bytes(b"x")
    grown = collect_data(spec)
    before, after = ({manifest.keys("train")[i] for i in small}, {grown.keys("train")[i] for i in pick(grown, "train", 40)})
    assert len(before - after) <= 1


def test_figures_agree_with_numpy(folder: Path) -> None:
    ages = np.array([30, 40, 50, 60.0])
    mean, std = ran(folder, "mean: {column: age, within: [0, 99], split: train}", "std: {column: age, within: [0, 99], split: train}")
    assert f"{ages.mean():.4g} over 4 examples" in mean.seen
    assert f"{ages.std():.4g} over 4 examples" in std.seen


def test_every_test_has_examples_that_load(folder: Path) -> None:
    for op, cls in datatests().items():
        assert cls.op == op
        for example in cls.examples:
            found = spec_with(folder, example)
            codes = {d.code for d in found.diagnostics if d.severity.value == "error"}
            assert codes <= {"PG700"}, (example, [d.message for d in found.diagnostics])


def test_the_schema_accepts_what_loads(folder: Path) -> None:
    import jsonschema

    from pipegen.spec.json_schema import json_schema

    validator = jsonschema.Draft202012Validator(json_schema())
    tests = [example for cls in datatests().values() for example in cls.examples]
    assert not list(validator.iter_errors(yaml.safe_load(HEAD + "".join(f"  - {t}\n" for t in tests))))
    for wrong in ("exmaples: {min: 3}", "no_leak: close", "examples: {min: many}", "classes: {least: 3}"):
        assert list(validator.iter_errors(yaml.safe_load(HEAD + f"  - {wrong}\n"))), wrong


def test_show_says_the_tests(folder: Path) -> None:
    from pipegen.cli.show import resolved_json, resolved_yaml

    spec = spec_with(folder, "classes", "no_leak: near", "range: {feature: image, within: [0, 255]}").spec
    text = resolved_yaml(spec)
    assert re.search(r"  - no_leak: near +# .*spec\.yaml:10:14\n", text)
    again = inspect("again.yaml", text=text)
    assert again.spec is not None, [d.message for d in again.diagnostics]
    assert again.spec.model.tests == spec.model.tests
    assert json.dumps(resolved_json(spec))


def test_copies_between_splits(tmp_path: Path) -> None:
    for name, tint in (("train/a/0", 10), ("train/a/1", 60), ("test/a/0", 120), ("test/a/1", 10)):
        path = tmp_path / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(JPEG + bytes([tint]) * 40)
    spec = {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(tmp_path)}},
        "splits": {"method": "folder", "parts": {"train": "train", "test": "test"}},
        "transforms": [{"resize": {"size": 8}}],
        "batch": {"size": 2},
        "tests": [{"no_leak": "exact"}],
    }
    report = pipegen.test(spec)
    assert [f.code for f in report.diagnostics] == ["PG721"]
    assert "'train/a/0.jpg' is the same as 'test/a/1.jpg'" in report.diagnostics[0].message
    assert not report.passed
    with pytest.raises(SpecError, match="PG721"):
        report.raise_if_failed()
    (tmp_path / "test" / "a" / "1.jpg").write_bytes(b"something else")
    assert pipegen.test(spec).passed


def test_classes_of_boxes_are_counted(tmp_path: Path) -> None:
    """A label `with: boxes` has a class for each box; the report of the data counts them, too."""
    (tmp_path / "photos").mkdir()
    for i in range(4):
        Image.new("RGB", (40, 30), (60 * i, 90, 30)).save(tmp_path / "photos" / f"{i}.png")
    boxes = [{"id": k, "image_id": k % 4, "category_id": 1 if k < 9 else 2, "bbox": [k, 2, 9, 8]} for k in range(10)]
    images = [{"id": i, "file_name": f"{i}.png", "width": 40, "height": 30} for i in range(4)]
    names = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    (tmp_path / "boxes.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": names}))
    head = (
        "pipegen: 1\nsource: {coco: {images: photos/, annotations: boxes.json}}\ntransforms: [{resize: {size: 8}}]\n"
        "output: {x: image, y: {boxes: boxes}}\nbatch: {size: 2}\ntests:\n"
    )
    tests = "classes", "classes: {feature: labels, min: 2, min_share: 0.2}", "balance: 3"
    every, few, uneven = ran(tmp_path, *tests, head=head)
    assert (every.status, every.seen) == ("passed", "train: 2 classes of 1 to 9 items")
    assert [d.message for d in few.findings] == [
        "`train` has fewer than 2 items of 'dog' (1)",
        "in `train` the share of 'dog' (0.1) is below 0.2",
    ]
    assert "'cat' has 9 items and 'dog' has 1: 9 times as many" in uneven.findings[0].message
    assert "class_weights" not in str(uneven.findings[0].help), "which weigh examples"
    page = pipegen.report(tmp_path / "spec.yaml")
    assert "Items of each class, by `labels`" in str(page.html())
    assert [d.code for d in page.diagnostics if d.code == "PG739"] == ["PG739"], "9 to 1 is uneven"
    masks = "pipegen: 1\nsource: {files: {features: {m: {kind: mask, path: photos/*.png}}}}\noutput: {x: m}\ntests:\n"
    (finding,) = [d for d in spec_with(tmp_path, "range: {feature: m, within: [0, 1]}", head=masks).diagnostics if d.code == "PG700"]
    assert finding.help == ("remove the test",), "no test counts the classes of pixels"
