"""Python functions in a spec: called with permission alone, found or explained, and nothing of theirs kept on a disk unasked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from planning import built, checked, compiled, load_spec

import pipegen
from pipegen.cli.common import allowed_code
from pipegen.diagnostics.diagnostic import Label
from pipegen.errors import OpError, SpecError
from pipegen.ops.transforms.python import Python, RandomPython
from pipegen.phases.user_functions import allowed_modules, is_allowed, with_functions
from pipegen.plan.check import check_functions
from pipegen.plan.nodes import Cache, Element
from pipegen.spec.spec_hash import spec_hash
from pipegen.types import ElementType, FeatureType, Interval
from pipegen.views.explanation import explain_text

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """\
pipegen: 1
source: {image_folder: {path: photos/}}
splits: {parts: {train: 0.5, validation: 0.5}}
transforms:
  - resize: {size: 24}
  - STEP
"""


def loaded(tmp_path: Path, step: str) -> pipegen.Spec:
    file = tmp_path / "spec.pipegen.yaml"
    file.write_text(SPEC.replace("STEP", step))
    return pipegen.load(file)


def finding(tmp_path: Path, step: str, *allow_code: str) -> Any:
    with pytest.raises(SpecError) as caught:
        with_functions(loaded(tmp_path, step), allowed_modules(allow_code))
    (found,) = caught.value.diagnostics
    return found


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there as soon as `my_pkg.marked` is imported."""
    monkeypatch.delitem(sys.modules, "my_pkg.marked", raising=False)
    monkeypatch.setenv("MARK", str(tmp_path / "imported"))
    return tmp_path / "imported"


def test_nothing_is_imported_before_it_is_allowed(tmp_path: Path, mark: Path) -> None:
    step = "python: {function: my_pkg.marked:same}"
    for allow_code in ((), ("my_pkg.filters",), ("my",), ("pkg.marked", "marked")):
        found = finding(tmp_path, step, *allow_code)
        assert found.code == "PG240"
        assert "`my_pkg.marked`" in found.message
        assert 'allow_code=["my_pkg"]' in found.help[0]
        assert "--allow-code my_pkg" in found.help[0]
        assert (found.span.line, found.span.column) == (6, 24)
    with pytest.raises(SpecError, match="PG240"):
        pipegen.build(tmp_path / "spec.pipegen.yaml")
    assert not mark.exists()
    for allow_code in (("my_pkg",), ("my_pkg.marked",), ("other", "my_pkg")):
        sys.modules.pop("my_pkg.marked", None)
        (step_now,) = with_functions(loaded(tmp_path, step), allowed_modules(allow_code)).model.transforms[1:]
        assert isinstance(step_now, Python)
        assert step_now.callee(3) == 3
        assert mark.exists()
        mark.unlink()


def test_a_spec_cannot_allow_itself_anything(tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEGEN_ALLOW_CODE", "my_pkg")
    text = SPEC.replace("STEP", "python: {function: my_pkg.marked:same}")
    for section in ("allow_code: [my_pkg]", "runtime: {allow_code: [my_pkg]}"):
        (tmp_path / "own.pipegen.yaml").write_text(f"{text}{section}\n")
        with pytest.raises(SpecError, match="PG102"):
            pipegen.build(tmp_path / "own.pipegen.yaml")
    (tmp_path / "base.yaml").write_text(text)
    (tmp_path / "heir.pipegen.yaml").write_text("pipegen: 1\nextends: base.yaml\n")
    with pytest.raises(SpecError, match="PG240") as caught:
        pipegen.build(tmp_path / "heir.pipegen.yaml")
    assert str(caught.value.diagnostics[0].span).endswith("base.yaml:6:24")
    allowed = with_functions(loaded(tmp_path, "python: {function: my_pkg.marked:same}"), allowed_modules(["my_pkg"]))
    mark.unlink()
    with pytest.raises(SpecError, match="PG240"):
        pipegen.build(allowed)
    assert not mark.exists()


def test_a_permission_is_no_prefix_and_covers_no_borrowed_function(tmp_path: Path) -> None:
    assert finding(tmp_path, "python: {function: my_pkg_evil:f}", "my_pkg").code == "PG240"
    assert "my_pkg_evil" not in sys.modules
    borrowed = finding(tmp_path, "python: {function: my_pkg.filters:system}", "my_pkg")
    assert borrowed.code == "PG240"
    assert borrowed.message.startswith("`my_pkg.filters:system` comes from the module `")


@pytest.mark.parametrize(
    ("function", "message", "help_"),
    [
        ("my_pkg.filter:blur", "module `my_pkg.filter` not found", "did you mean `my_pkg.filters`?"),
        ("my_pkg.filters.sub:blur", "module `my_pkg.filters.sub` not found", "`my_pkg.filters` is a module, not a package"),
        ("my_pkgs.filters:blur", "module `my_pkgs` not found", "did you mean `my_pkg`?"),
        ("my_pkg.filters:blurr", "the module `my_pkg.filters` has no function `blurr`", "did you mean `my_pkg.filters:blur`?"),
        ("my_pkg.filters:TABLE", "`my_pkg.filters:TABLE` is a `dict`, not a function", "name something to call as `fn(image)`"),
        ("my_pkg.needs:f", "it needs `a_module_that_is_not_there`, which is not installed", ""),
        ("my_pkg.fails:f", "`my_pkg.fails` cannot be imported: OSError: no licence for this machine", "shows where"),
        ("my_pkg.filters:two", "and `python` calls it as `fn(image)`", "give it those arguments and no more"),
        ("my_pkg.weather:rain", "and `python` calls it as `fn(image)`", "see `pipegen ops random_python`"),
    ],
)
def test_what_cannot_be_called_is_explained(function: str, message: str, help_: str, tmp_path: Path) -> None:
    found = finding(tmp_path, f"python: {{function: {function}}}", "my_pkg", "my_pkgs")
    assert found.code == "PG241"
    assert message in found.message
    assert any(help_ in line for line in found.help) or (not help_ and not found.help)


def test_every_step_is_looked_at(tmp_path: Path) -> None:
    step = "python: {function: nowhere:f}\n  - random_flip\n  - random_python: {function: my_pkg.weather:snow}"
    with pytest.raises(SpecError) as caught:
        with_functions(loaded(tmp_path, step), allowed_modules(["my_pkg"]))
    assert [(d.code, d.span and d.span.line) for d in caught.value.diagnostics] == [("PG240", 6), ("PG241", 8)]


def test_a_permission_is_a_list_of_modules(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"a list of modules, such as \['my_pkg'\]"):
        pipegen.build(loaded(tmp_path, "random_flip"), allow_code="my_pkg")
    for wrong in ("*", "", "my-pkg", "my_pkg.", "my_pkg:f", "./my_pkg"):
        with pytest.raises(ValueError, match="is not a valid name"):
            allowed_modules([wrong])
    assert is_allowed("my_pkg.filters", allowed_modules(["my_pkg"]))
    assert not is_allowed("my_pkg", allowed_modules(["my_pkg.filters"]))


def test_the_command_line_finds_modules_of_the_working_directory_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    allowed_code([])
    assert str(tmp_path) not in sys.path
    allowed_code(["my_pkg"])
    allowed_code(["my_pkg"])
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


def test_checking_a_spec_calls_nothing_and_says_that_it_asks_for_code(tmp_path: Path, mark: Path) -> None:
    spec = loaded(tmp_path, "python: {function: my_pkg.marked:same}")
    assert [(d.code, d.severity.value) for d in spec.warnings] == [("PG520", "info")]
    assert not mark.exists()
    assert "my_pkg.marked" not in sys.modules


def test_what_is_known_of_the_values() -> None:
    byte = FeatureType("image", "uint8", (24, 32, 3), Interval(0, 255))
    unit = FeatureType("image", "float32", (24, 32, 3), Interval(0, 1))
    narrow = byte.with_(interval=Interval(0, 9))
    fixed = FeatureType("image", "uint8", (None, None, 3), Interval(0, 255), uniform=True)
    assert Python(function="m:f").infer(unit).interval is None
    assert Python(function="m:f").infer(narrow).interval == Interval(0, 255)
    assert Python(function="m:f", dtype="uint16").infer(unit).interval == Interval(0, 65535)
    assert Python(function="m:f", range=(0, 2)).infer(unit).interval == Interval(0, 2)
    assert Python(function="m:f").infer(fixed).uniform
    assert not Python(function="m:f", shape=(None, 9, 3)).infer(fixed).uniform
    assert RandomPython(function="m:f").infer(byte) == byte
    assert RandomPython(function="m:f").infer(unit).interval is None
    assert RandomPython(function="m:f").infer(narrow).interval is None, "evaluation keeps the narrow range"
    wrong = [
        d.code for d in checked("{transforms: [{python: {function: my_pkg.filters:blur, dtype: uint8, range: [0, 300]}}]}").diagnostics
    ]
    assert "PG105" in wrong


def test_what_lives_on_an_image_stays_only_by_declaration() -> None:
    image = FeatureType("image", "uint8", (24, 24, 3), Interval(0, 255))
    mask = FeatureType("mask", "uint8", (24, 24, 1), Interval(0, 1), of="image")
    record = ElementType((("image", image), ("mask", mask)))

    def found(step: str) -> list[tuple[str, str]]:
        spec = load_spec(f"{{transforms: [{step}]}}")
        labels = check_functions(spec, lambda path, **_: Label(None, ".".join(map(str, path))), record)
        return [(d.code, d.message) for d in labels if d.code != "PG520"]

    ((code, message),) = found("{python: {function: my_pkg.filters:blur}}")
    assert code == "PG203"
    assert message == "`python` may move the pixels of `image`, but not those of `mask`, which is aligned with it"
    assert found("{python: {function: my_pkg.filters:blur, moves_pixels: false}}") == []
    assert found("{random_python: {function: my_pkg.weather:rain, feature: image}}")[0][0] == "PG203"
    assert found("{random_python: {function: my_pkg.weather:rain, moves_pixels: false}}") == []
    with pytest.raises(OpError, match="keeps height and width, and `shape` gives others"):
        Python(function="m:f", moves_pixels=False, shape=(22, 22, 3)).infer(image)
    with pytest.raises(OpError, match="has no rule for a feature of kind `mask`"):
        Python(function="m:f", feature="mask").infer(mask)


def test_a_random_function_is_called_in_training_alone() -> None:
    text = "{transforms: [{resize: {size: 24}}, {random_python: {function: my_pkg.weather:rain}}]}"
    assert [r.id for r in built(text).index.draws] == ["random_python"]
    assert built(text).index.num_draws == 2
    assert not built(text, split="validation").index.draws
    assert all(
        ref.step.op != "random_python" for st in built(text, split="validation").stages() for ref in [getattr(st, "ref", None)] if ref
    )


def cached_behind(text: str, cache: str) -> list[str] | None:
    """The steps that the training split's cache stands behind; `None` without a cache."""
    whole = f"{{transforms: [{text}], runtime: {{cache: {cache}}}}}"
    plan = compiled(built(whole), load_spec(whole), num_examples=100, ram_budget=2**30).plan
    at = next((i for i, n in enumerate(plan.nodes) if isinstance(n, Cache)), None)
    if at is None:
        return None
    return [st.ref.step.op for n in plan.nodes[:at] if isinstance(n, Element) for st in n.stages]  # type: ignore[union-attr]


def test_nothing_of_a_function_is_kept_on_a_disk_without_a_version() -> None:
    resize, plain = "{resize: {size: 24}}", "{python: {function: my_pkg.filters:blur}}"
    versioned = "{python: {function: my_pkg.filters:blur, version: 1}}"
    assert cached_behind(f"{resize}, {plain}", "memory") == ["decode", "resize", "python"]
    assert cached_behind(f"{resize}, {plain}", "auto") == ["decode", "resize", "python"]
    assert cached_behind(f"{resize}, {plain}", "{disk: c}") == ["decode", "resize"]
    assert cached_behind(f"{resize}, {versioned}", "{disk: c}") == ["decode", "resize", "python"]
    assert cached_behind(f"{resize}, {versioned}, {plain}", "{disk: c}") == ["decode", "resize", "python"]
    assert cached_behind(f"{plain}, {resize}", "{disk: c}") is None
    text = f"{{transforms: [{plain}, {resize}], runtime: {{cache: CACHE}}}}"
    said = {d.code: d for d in checked(text.replace("CACHE", "{disk: c}")).diagnostics}
    assert "`python` is Python code without a `version`" in said["PG518"].message
    assert "PG518" not in {d.code for d in checked(text.replace("CACHE", "memory")).diagnostics}


def test_an_explanation_says_that_it_is_python() -> None:
    text = "{transforms: [{resize: {size: 24}}, {random_python: {function: my_pkg.weather:rain}}]}"
    spec = load_spec(text)
    said = {split: explain_text(spec, {split: compiled(built(text, split=split), spec)}) for split in ("train", "validation")}
    assert "image: random_python(function: my_pkg.weather:rain)" in said["train"]
    assert "`random_python` calls `my_pkg.weather:rain`, a Python function: calls do not run in parallel" in said["train"]
    assert "python" not in said["validation"].lower()


def test_the_hash_covers_the_name_and_the_version() -> None:
    def hash_of(step: str) -> str:
        return spec_hash(load_spec(f"{{transforms: [{{python: {{function: {step}}}}}, {{resize: {{size: 24}}}}]}}"))

    steps = ("my_pkg.filters:blur", "my_pkg.filters:denoise", "my_pkg.filters:blur, version: 1", "my_pkg.filters:blur, version: 2")
    assert len({hash_of(step) for step in steps}) == 4
