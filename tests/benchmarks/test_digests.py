"""The digests that say whether a change of the code changed anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import digests
from pipegen.ops.registry import sources, transforms

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    digests.write_data()


@pytest.mark.nightly
def test_every_step_and_every_source_is_there_and_says_nothing_wrong(data: None) -> None:
    from pipegen.phases.compilation import inspect

    found = dict(digests.every_spec())
    wrong = {name for name, spec in found.items() if inspect("spec.yaml", text=digests.text_of(spec)).plans == {}}
    assert wrong == {"a typing error", "many errors"}
    assert len(found) >= 300
    assert {name.split()[1] for name in found if name.startswith("step ")} == set(transforms())
    read = {op for spec in found.values() for op in spec["source"]}
    assert set(sources()) - read == {"dataframe", "by_split"}, "which take what a program has at hand"


@pytest.mark.nightly
def test_a_digest_is_the_same_each_time_and_another_for_other_draws(data: None) -> None:
    spec = digests.SPECS["floats"]
    one = digests.digest(spec)
    assert "error" not in one
    assert digests.differences({"a": one}, {"a": digests.digest(spec)}) == []
    other = digests.differences({"a": one}, {"a": digests.digest(spec | {"seed": 4})})
    assert {line.split(": ")[1] for line in other if line.startswith("a: ")} >= {"hash differs", "batches of epoch 0 differs"}


def test_what_differs_is_shown() -> None:
    before = {"a": {"hash": "1", "text": "one\ntwo"}, "b": {}, "c": {"bits": ["1", "2"]}}
    after = {"a": {"hash": "1", "text": "one\nthree"}, "c": {"bits": ["1", "3"]}, "d": {}}
    assert digests.differences(before, after) == [
        "b: only before",
        "d: only after",
        "a: text differs",
        "    @@ -2 +2 @@",
        "    -two",
        "    +three",
        "c: bits differs",
        "    ['1', '2'] -> ['1', '3']",
    ]
