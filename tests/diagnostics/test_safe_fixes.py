"""Which fixes are safe, and that those keep what was meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from test_typos import SPEC, misspelt

import pipegen
from pipegen.diagnostics.diagnostic import Applicability
from pipegen.diagnostics.fixes import apply_fixes
from pipegen.diagnostics.suggest import is_certain
from pipegen.ops.registry import sources, transforms
from pipegen.spec.load import Loaded, load
from pipegen.spec.spec_hash import spec_hash

ROOT = Path(pipegen.__file__).parent
MAKERS = {
    "data/split_checks.py lint_names": ["SUGGESTION"],
    "diagnostics/fixes.py _removal": ["SAFE", "SAFE"],
    "spec/choices.py _hanging": ["SAFE"],
    "spec/choices.py _unknown": ["SUGGESTION"],
    "spec/choices.py _with_dashes": ["SAFE"],
    "spec/step_list.py _known": ["SUGGESTION"],
    "spec/step_list.py _unknown": ["SUGGESTION"],
    "spec/extends.py _unreadable": ["SUGGESTION"],
    "spec/mismatch.py mismatch": ["SAFE", "SAFE"],
    "spec/mismatch.py _meant_by_word": ["certain"],
    "spec/mismatch.py replacement": ["passed on"],
    "spec/mismatch.py unknown_key": ["certain"],
    "spec/mismatch.py _trap": ["SAFE", "SAFE", "certain"],
    "spec/runtime_fix.py runtime_fix": ["SAFE"],
    "spec/sections.py _version": ["SAFE"],
    "spec/sections.py _odd_keys": ["SAFE"],
    "spec/sections.py _parts": ["certain"],
    "spec/sections.py _bare_sizes": ["certain"],
    "spec/params.py _renamed": ["SUGGESTION"],
    "spec/syntax.py _glued": ["SAFE"],
    "spec/translate.py entry_fix": ["SUGGESTION"],
    "spec/translate.py step_fix": ["SUGGESTION"],
}
"""Every function that makes a fix, and how certain it says each is; `certain` is decided by the words at hand."""


def _makers() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\b(Fix|replacement)\(", text):
            continue
        for function in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)):
            for call in (n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)):
                if call.func.id == "Fix" or (call.func.id == "replacement" and len(call.args) == 3):  # type: ignore[attr-defined]
                    how = call.args[2]
                    name = how.attr if isinstance(how, ast.Attribute) else how.func.id if isinstance(how, ast.Call) else "passed on"  # type: ignore[attr-defined]
                    yield f"{path.relative_to(ROOT).as_posix()} {function.name}", name


def test_every_maker_of_a_fix_says_how_certain_it_is() -> None:
    found: dict[str, list[str]] = {}
    for place, how in _makers():
        found.setdefault(place, []).append(how)
    assert {place: sorted(how) for place, how in found.items()} == MAKERS


def _text(spec: object) -> str:
    return yaml.safe_dump(spec, sort_keys=False)


def _read(text: str) -> Loaded:
    return load("spec.yaml", text=text, env={})


def _meaning(text: str) -> str | None:
    """What a spec comes to, or `None` for one with errors."""
    loaded = _read(text)
    return spec_hash(loaded.spec) if loaded.spec is not None else None


def _mended(text: str) -> tuple[str, int]:
    """The text after `--fix`, and how many fixes went into it."""
    done = 0
    for _ in range(3):
        fixes = [d.fix for d in _read(text).diagnostics.sorted() if d.fix is not None and d.fix.applicability is Applicability.SAFE]
        text, count = apply_fixes(text, fixes, "spec.yaml")
        done += count
    return text, done


@pytest.mark.nightly
@pytest.mark.parametrize("every", [101, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_safe_fix_of_a_typo_gives_back_what_was_meant(every: int) -> None:
    """Every key, word, argument and step of the language, misspelt in four ways; by day one in 101."""
    original = _meaning(_text(SPEC))
    kept: dict[str, str | None] = {}
    mended = 0
    for meant, written, spec in misspelt(every):
        text = _text(spec)
        after, count = _mended(text)
        mended += count
        if spec.get("transforms") == [written]:
            assert count == 0, f"`{written}` is a step's name"
        if count == 0:
            assert after == text
            continue
        # The word itself is right again: where the spec had another value for it, that is another meaning than the first spec's.
        right = text.replace(written, meant)
        if right not in kept:
            kept[right] = _meaning(_mended(right)[0])
        assert _meaning(after) == kept[right], (meant, written)
    assert mended > 400 // every
    assert original is not None
    assert original in kept.values()


DAMAGE = [
    ("pipegen: 1\n", ""),
    ("size: 4", "size: 4.0"),
    ("size: 4", "size: '4'"),
    ("steps: 3", "steps: 1_0"),
    ("follow_links: false", "follow_links: no"),
    ("follow_links: false", "follow_links: 'False'"),
    ("seed: 1", "seed:1"),
    ("name: flowers", "name: 12"),
    ("name: flowers", "name: true"),
    ("train: 0.8", "train: 8/10"),
    ("train: 0.8", "train: 80%"),
    ("method: random", "Method: random"),
    ("shuffle:", "Shuffle:"),
    ("window: 1MiB", "windows: 1MiB"),
    ("- random_flip:", "- grayscale:\n- random_flip:"),
    ("seed: 1\nshuffle", "seed: 1  # pipegen: ignore[PG503]\nshuffle"),
]


@pytest.mark.parametrize(("right", "wrong"), DAMAGE, ids=[w for _, w in DAMAGE])
def test_a_safe_fix_keeps_what_the_text_says(right: str, wrong: str) -> None:
    text = _text(SPEC)
    assert text.count(right) >= 1
    says = {"steps: 3": "steps: 10", "name: flowers": f"name: '{wrong[6:]}'", "- random_flip:": "- grayscale\n- random_flip:"}
    after, count = _mended(text.replace(right, wrong, 1))
    assert _meaning(after) == _meaning(text.replace(right, says.get(right, right), 1)) is not None
    assert count == 1 or "ignore" in wrong  # an idle comment is found once the plan is checked


@pytest.mark.parametrize("value", ["50%", "1,000", "0,5", "4:3"])
def test_a_number_of_several_readings_is_a_suggestion(value: str) -> None:
    text = _text({**SPEC, "transforms": [{"random_posterization": {"bits": 4}}, {"random_flip": {"probability": value}}]})
    made = [d.fix.applicability for d in _read(text).diagnostics if d.fix is not None]
    assert set(made) <= {Applicability.SUGGESTION}
    assert _mended(text) == (text, 0)


def test_a_name_is_never_replaced_unseen() -> None:
    """Steps and sources of similar names do other things, however near they are."""
    words = [*transforms(), "aug_mix", "rotate", "random_rotate", "mix_up", "RandomFlip", "random-flip", "solarise"]
    wrong = [w[:-1] for w in words] + words[len(transforms()) :]
    for form in (lambda word: word, lambda word: {word: {"degrees": 20}}):
        found = _read(_text({**SPEC, "transforms": [form(word) for word in wrong]})).diagnostics
        made = [d.fix.applicability for d in found if d.code == "PG103" and d.fix is not None]
        assert len(made) > len(transforms()) / 2
        assert set(made) == {Applicability.SUGGESTION}
    for word in [*(name[:-1] for name in sources()), "imagefolder", "ImageFolder"]:
        text = _text({"pipegen": 1, "source": {word: {"path": "x"}}, "transforms": SPEC["transforms"]})
        assert _mended(text) == (text, 0), word


def test_a_slip_is_certain_when_nothing_else_is_near() -> None:
    assert is_certain("probabilty", "probability", ["probability", "when"])
    assert is_certain("Follow-Links", "follow_links", ["follow_links"])
    assert not is_certain("propabilty", "probability", ["probability"]), "two slips"
    assert not is_certain("resnet51", "resnet50", ["resnet50", "vgg16"]), "a number"
    assert not is_certain("sixe", "size", ["size"]), "a short word"
    assert not is_certain("median", "medians", ["medians", "medial"]), "another is near"


@pytest.mark.parametrize("step", ["random_flip: null", "{random_flip: }", "{random_flip: ~}", "random_rotation:", "resize:"])
def test_a_colon_stays_where_the_step_would_not_be_right_without_it(step: str) -> None:
    text = f"pipegen: 1\nsource: {{image_folder: {{path: x}}}}\ntransforms:\n  - {step}\n  - grayscale\n"
    assert _mended(text) == (text, 0)


def test_two_keys_never_become_one() -> None:
    text = _text({**SPEC, "transforms": [{"random_flip": {"probabilty": 0.5, "probablity": 0.4}}]})
    after, count = _mended(text)
    assert count == 1
    assert len(re.findall("probability", after)) == 1
