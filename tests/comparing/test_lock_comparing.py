"""What is said of locks: what specs mean, and what else decides their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipegen.api.lock import check_specs, lock_specs
from pipegen.comparing import RevisionError, compare
from pipegen.errors import OpError
from pipegen.spec.load import load
from pipegen.spec.spec_hash import meaning, spec_hash

SPEC = """\
pipegen: 1
source: {image_folder: {path: photos}}
splits: {parts: {train: 0.8, validation: 0.2}}
transforms: [{resize: {size: 24}}, random_flip, {rescale: {to: [0, 1]}}]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def entry(text: str = SPEC, **more: Any) -> dict[str, Any]:
    spec = load("spec.yaml", text=text, env={}).spec
    assert spec is not None
    data = {"fingerprint": "a" * 64, "examples": {"train": 80, "validation": 20}, "classes": 3}
    held = {"hash": spec_hash(spec), "texts": {"spec.yaml": "b" * 64}, "meaning": meaning(spec), "data": data}
    return held | {"functions": {"my.f": {"function": "c" * 64, "module": "d" * 64}}, "versions": {"pipegen": "0.1.0"}} | more


def lock(name: str, **entries: Any) -> str:
    value = {"pipegen_lock": 1, "specs": {f"{spec}.yaml": held for spec, held in entries.items()}}
    Path(name).write_text(yaml.safe_dump(value))
    return name


@pytest.mark.parametrize(
    ("more", "kind", "path", "text"),
    [
        (
            {"data": {"fingerprint": "e" * 64, "examples": {"train": 81, "validation": 20}}},
            "numbers",
            "spec.yaml.data",
            "train: 80 → 81 examples",
        ),
        ({"functions": {"my.f": {"function": "e" * 64, "module": "d" * 64}}}, "numbers", "spec.yaml.functions.my.f", "its source differs"),
        ({"functions": {"my.f": {"function": "c" * 64, "module": "e" * 64}}}, "perhaps", "spec.yaml.functions.my.f", "its module differs"),
        ({"versions": {"pipegen": "0.2.0"}}, "perhaps", "spec.yaml.versions.pipegen", "0.1.0 → 0.2.0"),
        ({"texts": {"spec.yaml": "e" * 64}}, "nothing", "spec.yaml.texts", "spec.yaml"),
    ],
)
def test_two_locks(more: dict[str, Any], kind: str, path: str, text: str) -> None:
    found = compare(lock("a.lock", spec=entry()), lock("b.lock", spec=entry(**more)))
    change = found.of(kind)[0]  # type: ignore[arg-type]
    assert (change.as_json()["path"], text in change.text) == (path, True), found.changes
    assert found.same_numbers == (kind != "numbers")


def test_specs_that_moved_within_a_lock() -> None:
    a = lock("a.lock", spec=entry(), other=entry())
    b = lock("b.lock", spec=entry(SPEC.replace("size: 24", "size: 32")), third=entry())
    told = [(change.kind, change.as_json()["path"], change.text) for change in compare(a, b).changes]
    assert told == [
        ("numbers", "spec.yaml.transforms[0].resize.size", "24 → 32"),
        ("nothing", "other.yaml", "it is no longer there"),
        ("nothing", "third.yaml", "it is new"),
    ]


def test_a_spec_and_the_lock_that_knows_it() -> None:
    Path("spec.yaml").write_text(SPEC)
    lock("pipegen.lock", spec=entry())
    assert compare("pipegen.lock", "spec.yaml").changes == ()
    Path("spec.yaml").write_text(SPEC.replace("size: 24", "size: 32"))
    found = compare("pipegen.lock", "spec.yaml")
    assert [(change.text, str(change.span)) for change in found.changes] == [("24 → 32", "spec.yaml:4:30")]
    assert [change.text for change in compare("spec.yaml", "pipegen.lock").changes] == ["32 → 24"]
    assert found.draws.kept == ("random_flip",)
    Path("stranger.yaml").write_text(SPEC)
    with pytest.raises(RevisionError, match=r"pipegen\.lock does not know stranger\.yaml: it has `spec\.yaml`"):
        compare("pipegen.lock", "stranger.yaml")


def test_a_locked_spec_in_other_words() -> None:
    Path("spec.yaml").write_text(SPEC.replace("to: [0, 1]", "scale: 0.00392156862745098"))
    lock_specs(["spec.yaml"])
    Path("spec.yaml").write_text(SPEC)
    assert [finding.code for finding in check_specs(["spec.yaml"]).findings] == ["PG534"], "other words that mean the same"


def test_a_lock_that_is_none() -> None:
    Path("b.lock").write_text("nonsense: [")
    with pytest.raises(OpError):
        compare("b.lock", "b.lock")
    with pytest.raises(RevisionError, match=r"the lock none\.lock does not exist"):
        compare("none.lock", "b.lock")
