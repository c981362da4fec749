"""Thousands of findings: the reading ends, and people see the first and gravest of them."""

from __future__ import annotations

import json

import pytest

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics, FullError, Label
from pipegen.diagnostics.machine_readable import render_json
from pipegen.diagnostics.suggest import closest
from pipegen.diagnostics.text import render_text
from pipegen.phases.compilation import inspect
from pipegen.spec.expect import one_of
from pipegen.spec.load import load


def test_people_see_the_gravest_in_order_and_machines_see_all() -> None:
    found = [make("PG107", f"warning {i}", Label(None, path="params")) for i in range(300)]
    found += [make("PG102", f"error {i}", Label(None, path="params")) for i in range(3)]
    shown = render_text(found)
    assert shown.count("\nwarning[") + shown.startswith("warning[") == 197
    assert shown.count("\nerror[") == 3
    assert shown.index("warning 196") < shown.index("error 0")
    assert "\n103 more not shown; `--format json` lists all of them\n" in shown
    assert shown.endswith("3 errors, 300 warnings\n")
    assert len(json.loads(render_json(found))["diagnostics"]) == 303


def test_a_few_are_all_shown() -> None:
    assert "more not shown" not in render_text([make("PG107", f"warning {i}") for i in range(200)])


def test_a_collection_may_be_full_and_a_repeat_is_no_more() -> None:
    out = Diagnostics(most=2)
    for message in ("a", "b", "a"):
        out.add(make("PG102", message))
    with pytest.raises(FullError):
        out.add(make("PG102", "c"))
    assert len(out) == 2


def test_loading_ends_with_what_was_found_so_far() -> None:
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": "x"}}, **{f"secton{i}": 1 for i in range(1100)}}, env={})
    assert loaded.spec is None
    assert sum(d.code == "PG102" for d in loaded.diagnostics) == 1000
    assert [d.message for d in loaded.diagnostics if d.code == "PG003"] == [
        "more than 1,000 findings: the rest of the spec was not checked"
    ]


def test_long_lists_and_long_words_are_cut_in_messages() -> None:
    assert one_of(range(31)).endswith("`29` or `30`")
    assert one_of(range(1000)).endswith("`28`, `29` and 970 more")
    finding = make("PG103", f"there is no step `{'x' * 5000}`", help=f"write {'y' * 5000} here")
    assert len(finding.message) < 450
    assert finding.help[0].endswith("… here")


@pytest.mark.parametrize("word", ["yes", "true", "on"])
def test_where_several_words_say_yes_none_is_suggested(word: str) -> None:
    assert closest(word, ["auto", "always", "never"]) is None
    assert closest(word, ["auto", "memory", "none"]) == "auto"
    assert closest(word, ["global", "none"]) == "global"


def test_where_one_word_says_no_it_is_suggested() -> None:
    assert closest("no", ["auto", "always", "never"]) == "never"
    assert closest("off", ["global", "none"]) == "none"


def test_steps_in_two_places_are_not_checked_for_what_follows_from_them() -> None:
    """Steps under a misspelt section may belong among the others, so that sizes say nothing."""
    spec = {"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "batch": {"size": 4}}
    steps = [{"resize": {"size": 64}}, {"crop": {"size": 80}}]
    assert "PG206" in [d.code for d in inspect({**spec, "transforms": steps}).diagnostics]
    found = inspect({**spec, "transforms": steps, "transfroms": ["random_flip"]}).diagnostics
    assert [d.code for d in found if d.severity.value == "error"] == ["PG102"]
