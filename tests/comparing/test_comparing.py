"""What is said of two specs: other numbers, another speed, or nothing, and what becomes of the draws."""

from __future__ import annotations

import re
import subprocess
import time
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from pipegen.comparing import Comparison, RevisionError, UnreadableSideError, compare, render_github, render_text, verdict
from pipegen.spec.changes import _longest_rise, step_changes

SPEC = """\
pipegen: 1
source: {image_folder: {path: photos}}
splits: {parts: {train: 0.8, validation: 0.2}}
transforms:
  - resize: {size: 24}
  - random_flip
  - random_flip: {axis: vertical}
  - random_rotation: {degrees: 10}
  - rescale: {to: [0, 1]}
batch: {size: 8}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(old: str, new: str, **kwargs: Any) -> Comparison:
    Path("a.yaml").write_text("name: same\n" + old)
    Path("b.yaml").write_text("name: same\n" + new)
    return compare("a.yaml", "b.yaml", **kwargs)


def changed(old: str, new: str) -> Comparison:
    assert old in SPEC
    return of(SPEC, SPEC.replace(old, new))


def told(found: Comparison) -> list[tuple[str, str, str, str]]:
    listed = found.as_json()["changes"]
    return [(change["kind"], change["path"], change["text"], change["splits"]) for change in listed]


@pytest.mark.by_day(12)
@pytest.mark.parametrize(
    ("old", "new", "kind", "path", "text", "splits"),
    [
        ("size: 8", "size: 16", "numbers", "batch.size", "8 → 16", ""),
        ("batch:", "seed: 3\nbatch:", "numbers", "seed", "0 → 3", "train"),
        ("batch:", "shuffle: none\nbatch:", "numbers", "shuffle", "global → none", "train"),
        ("size: 8", "size: 8, remainder: {train: keep}", "numbers", "batch.remainder.train", "drop → keep", "train"),
        ("train: 0.8, validation: 0.2", "train: 0.9, validation: 0.1", "numbers", "splits.parts.train", "0.8 → 0.9", ""),
        ("batch:", "output: {channels: first}\nbatch:", "numbers", "output.channels", "last → first", ""),
        ("batch:", "errors: {decode: {skip: {}}}\nbatch:", "numbers", "errors.decode", 'raise → {"skip": {"max_fraction": 0.01}}', ""),
        ("path: photos", "path: photos, pattern: '*.png'", "numbers", "source.image_folder.pattern", "nothing → *.png", ""),
        ("degrees: 10", "degrees: 20", "numbers", "transforms[3].random_rotation.degrees", "10.0 → 20.0", "train"),
        ("degrees: 10", "degrees: 10, when: all", "numbers", "transforms[3].random_rotation.when", "train → all", ""),
        ("size: 24", "size: 32", "numbers", "transforms[0].resize.size", "24 → 32", ""),
        ("validation: 0.2}", "validation: 0.2}, exclude: copies.txt", "perhaps", "splits.exclude", "nothing → copies.txt", ""),
        ("to: [0, 1]", "scale: 0.5", "numbers", "transforms[4].rescale.to", "[0.0, 1.0] → nothing", ""),
        ("  - random_rotation: {degrees: 10}\n", "", "numbers", "transforms[3].random_rotation", "it is no longer there", "train"),
        (
            "  - random_rotation",
            "  - random_grayscale\n  - random_rotation",
            "numbers",
            "transforms[3].random_grayscale",
            "it is new",
            "train",
        ),
        (
            "degrees: 10",
            "degrees: 10, id: turn",
            "numbers",
            "transforms[3].random_rotation",
            "its id was `random_rotation`, and is `turn`",
            "train",
        ),
        ("path: photos", "path: others", "perhaps", "source.image_folder.path", "photos → others", ""),
        ("batch:", "errors: {exclude: bad.txt}\nbatch:", "perhaps", "errors.exclude", "nothing → bad.txt", ""),
        ("batch:", "runtime: {threads: 3}\nbatch:", "speed", "runtime.threads", "auto → 3", ""),
        ("batch:", "runtime: {jit: never}\nbatch:", "speed", "runtime.jit", "auto → never", ""),
        ("name: same", "name: other", "nothing", "name", "same → other", ""),
        ("batch:", "description: words\nbatch:", "nothing", "description", "nothing → words", ""),
        ("to: [0, 1]", "scale: 0.0039215687", "nothing", "transforms[4].rescale", None, ""),
        ("  - resize:", "  - decode: {channels: 3}\n  - resize:", "nothing", "transforms[0].decode", "it is written out", ""),
        ("size: 24", "size: 24, id: small", "nothing", "", "the texts differ", ""),
        ("batch:", "# words\nbatch:", "nothing", "", "the texts differ", ""),
        ("size: 8", "size: 8, remainder: {train: drop}", "nothing", "", "the texts differ", ""),
        ("batch:", "params: {n: {type: int, default: 3}}\nseed: 0\nbatch:", "nothing", "params.n", "it is new", ""),
    ],
)
def test_one_difference(old: str, new: str, kind: str, path: str, text: str | None, splits: str) -> None:
    whole = "name: same\n" + SPEC
    Path("a.yaml").write_text(whole)
    Path("b.yaml").write_text(whole.replace(old, new, 1))
    assert whole.replace(old, new, 1) != whole
    found = compare("a.yaml", "b.yaml")
    kinds = {change.kind for change in found.changes}
    assert kinds == {kind}, told(found)
    first = next(change for change in told(found) if change[1] == path)
    assert first[2] == text or text is None
    assert first[3] == splits
    assert found.same_numbers == (kind != "numbers")
    assert (found.hashes[0] == found.hashes[1]) == found.same_numbers, "the hash and the words agree"
    back = compare("b.yaml", "a.yaml")
    assert back.same_numbers == found.same_numbers
    assert {change.kind for change in back.changes} == {kind}


def test_buckets_that_only_one_spec_has_are_other_numbers() -> None:
    buckets = SPEC.replace("size: 24", "size: bucket").replace("size: 8", "size: 8, buckets: {sizes: [[24, 32], [32, 24]]}")
    for found in (of(SPEC, buckets), of(buckets, SPEC)):
        assert {change.path for change in found.of("numbers")} >= {("batch", "buckets")}


def test_nothing_differs() -> None:
    found = of(SPEC, SPEC)
    assert (found.changes, found.same_numbers, verdict(found)) == ((), True, "Nothing differs.")


def test_a_step_put_in_moves_no_other_draws() -> None:
    found = changed("  - random_rotation", "  - random_hue: {degrees: 5}\n  - random_rotation")
    assert found.of("numbers")[0].effect == "one more step acts; no other step's draws move"
    assert found.draws.kept == ("random_flip", "random_flip#2", "random_rotation")
    assert found.draws.moved == ()


def test_a_step_counted_anew_has_other_draws_and_the_advice_keeps_them() -> None:
    """The first of two flips goes: the second is counted as the first, and `id` brings its draws back."""
    found = changed("  - random_flip\n", "")
    moved = next(change for change in found.changes if "id was" in change.text)
    assert moved.text == "its id was `random_flip#2`, and is `random_flip`"
    assert moved.effect == "its draws differ; `id: random_flip#2` keeps them"
    assert found.draws.moved == (("random_flip", "the id was random_flip#2"),)
    kept = of(SPEC, SPEC.replace("  - random_flip\n", "").replace("axis: vertical", "axis: vertical, id: 'random_flip#2'"))
    assert kept.draws.kept == ("random_flip#2", "random_rotation")
    assert [change.text for change in kept.changes] == ["it is no longer there"]


def test_an_id_that_is_taken_needs_two_changes() -> None:
    found = changed("  - random_flip\n", "  - random_flip: {axis: both}\n  - random_flip\n")
    moved = [change.effect for change in found.changes if "id was" in change.text]
    assert moved[0] == "its draws differ; `id: random_flip` keeps them, with another `id` for the `random_flip` that is `random_flip` now"
    followed = SPEC.replace("  - random_flip\n", "  - random_flip: {axis: both, id: new}\n  - random_flip: {id: random_flip}\n")
    followed = followed.replace("axis: vertical", "axis: vertical, id: 'random_flip#2'")
    assert of(SPEC, followed).draws.kept == ("random_flip", "random_flip#2", "random_rotation")


def test_a_seed_moves_all_draws() -> None:
    found = changed("batch:", "seed: 5\nbatch:")
    assert found.draws.kept == ()
    assert {why for _, why in found.draws.moved} == {"another seed"}


def test_steps_in_another_order() -> None:
    turned = SPEC.replace("  - random_rotation: {degrees: 10}\n", "").replace(
        "  - random_flip\n", "  - random_rotation: {degrees: 10}\n  - random_flip\n"
    )
    found = of(SPEC, turned)
    assert told(found) == [("numbers", "transforms[1].random_rotation", "it comes after `resize` now", "")]
    assert found.draws.moved == ()


def test_as_few_steps_as_possible_are_said_to_have_moved() -> None:
    for order in permutations(range(5)):
        rises = (set(part) for n in range(6) for part in combinations(order, n) if list(part) == sorted(part))
        found = _longest_rise(list(order))
        assert sorted(found) == [number for number in order if number in found]
        assert len(found) == max(map(len, rises))


def test_many_steps_are_compared_at_once() -> None:
    ids = [f"random_hue#{i}" for i in range(2000)]
    steps = [[["random_hue", {"degrees": i}, name] for i, name in enumerate(ids[k:])] for k in (0, 1)]
    old, new = ({"seed": 0, "transforms": own, "effects": [[*step, True] for step in own]} for own in steps)
    started = time.process_time()
    found, draws = step_changes(old, new)
    assert time.process_time() - started < 5
    assert (len(found), len(draws.moved)) == (2000, 1999)


def test_a_line_that_says_much() -> None:
    found = of(SPEC, SPEC.replace("to: [0, 1]", "scale: 0.0039215687").replace("batch:", "runtime: {threads: 2}\nbatch:"))
    text = render_text(found)
    assert text.splitlines()[0] == "a.yaml → b.yaml: The model sees the same numbers; only speed differs."
    assert "  runtime.threads: auto → 2  (b.yaml:11:20)" in text
    assert "  transforms[4].rescale: {to: [0.0, 1.0]} → {scale: 0.0039215687, offset: 0.0}  (b.yaml:10:5)" in text
    assert "the same float32 constants" in text


def test_annotations_stand_beside_the_second_spec() -> None:
    lines = render_github(changed("size: 24", "size: 32")).splitlines()
    assert lines[0].startswith("::warning file=b.yaml,line=6,title=pipegen diff%3A other numbers::transforms[0].resize.size: 24 → 32%0A")
    assert lines[-1].startswith("::notice title=pipegen diff::The model sees other numbers.%0AThe same draws as before: random_flip")


def test_values_from_outside_go_into_both() -> None:
    found = of(SPEC, SPEC.replace("size: 8", "size: 16"), overrides={"batch.size": "4"})
    assert [change.text for change in found.changes] == ["the texts differ"]


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.email=a@b.c", "-c", "user.name=n", *arguments], check=True, capture_output=True, timeout=120)


@pytest.fixture
def repository(here: Path) -> Path:
    """A repository whose first commit has a spec and its base, in folders of their own."""
    git("init", "-q")
    for folder in ("specs", "bases"):
        Path(folder).mkdir()
    Path("bases/base.yaml").write_text(SPEC)
    Path("specs/mine.yaml").write_text("extends: ../bases/base.yaml\ntransforms: {remove: [random_rotation]}\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    return here


def test_a_revision_has_its_own_bases(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bases/base.yaml").write_text(SPEC.replace("size: 24", "size: 32").replace("  - random_flip\n", "", 1))
    found = compare("HEAD:specs/mine.yaml", "specs/mine.yaml")
    assert [(change.text, str(change.span)) for change in found.changes] == [
        ("24 → 32", "bases/base.yaml:5:20"),
        ("its id was `random_flip#2`, and is `random_flip`", "bases/base.yaml:6:5"),
        ("it is no longer there", "HEAD:bases/base.yaml:6:5"),
    ]
    assert found.names == ("HEAD:specs/mine.yaml", "specs/mine.yaml")
    assert compare("HEAD:", "specs/mine.yaml").changes == found.changes
    assert compare("specs/mine.yaml", "specs/mine.yaml").changes == ()
    monkeypatch.chdir("specs")
    assert compare("HEAD:mine.yaml", "mine.yaml").as_json()["summary"] == found.as_json()["summary"], (
        "relative to the working directory, too"
    )


def test_data_beside_the_repository_has_not_moved(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("inner/specs").mkdir(parents=True)
    monkeypatch.chdir("inner")
    git("init", "-q")
    Path("specs/a.yaml").write_text(SPEC.replace("path: photos", "path: ../../photos"))
    git("add", "-A")
    git("commit", "-qm", "one")
    assert compare("HEAD:specs/a.yaml", "specs/a.yaml").changes == ()
    Path("specs/a.yaml").write_text(
        SPEC.replace("path: photos", "path: ../../other") + "splits: {exclude: copies.txt}\n".replace("splits", "errors")
    )
    found = told(compare("HEAD:specs/a.yaml", "specs/a.yaml"))
    assert [change[:2] for change in found] == [("perhaps", "source.image_folder.path"), ("perhaps", "errors.exclude")]
    assert re.fullmatch(r"(…|/).*/photos → (…|/).*/other", found[0][2]), "however long the path to both is"
    assert found[1][2] == "nothing → specs/copies.txt"


def test_findings_name_the_revision(repository: Path) -> None:
    Path("bases/base.yaml").write_text(SPEC.replace("axis", "axes"))
    git("commit", "-qam", "two")
    Path("bases/base.yaml").write_text(SPEC)
    with pytest.raises(UnreadableSideError) as error:
        compare("HEAD:specs/mine.yaml", "specs/mine.yaml")
    assert [str(d.span) for d in error.value.findings] == ["HEAD:bases/base.yaml:7:19"]
    assert "HEAD:bases/base.yaml" in error.value.texts
    assert compare("HEAD~1:specs/mine.yaml", "specs/mine.yaml").changes == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("HEAD~9:specs/mine.yaml", "unknown revision HEAD~9 in"),
        ("HEAD:specs/none.yaml", "specs/none.yaml does not exist at HEAD"),
        ("HEAD:../x.yaml", "../x.yaml does not exist at HEAD"),
        ("HEAD:specs", "specs does not exist at HEAD"),
        ("--help:specs/mine.yaml", "--help is not a revision"),
    ],
)
def test_what_git_does_not_have(repository: Path, name: str, said: str) -> None:
    with pytest.raises(RevisionError, match=said):
        compare(name, "specs/mine.yaml")


def test_nothing_outside_a_repository(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(here.parent))
    Path("b.yaml").write_text(SPEC)
    with pytest.raises(RevisionError, match="not in a working tree of a git repository"):
        compare("HEAD:b.yaml", "b.yaml")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RevisionError, match="git is not installed here"):
        compare("HEAD:b.yaml", "b.yaml")


def test_the_page_about_sharing_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "sharing.md").read_text(encoding="utf-8")
    for title, content in re.findall(r'^```yaml title="([^"]+)" *\n(.*?)^```', text, re.MULTILINE | re.DOTALL):
        Path(title).write_text(content, encoding="utf-8")
    monkeypatch.setenv("TASK_DATA", "photos")
    shown = re.search(r"^\$ pipegen diff (\S+) (\S+)\n```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert render_text(compare(shown[1], shown[2])) == shown[3]


def test_views_and_parts_are_told_by_their_places() -> None:
    source, resize = "pipegen: 1\nsource: {image_folder: {path: p}}\n", "{resize: {size: 8}}"
    views = f"{source}views: {{a: {{transforms: [{resize}, random_flip]}}, b: {{transforms: [{resize}]}}}}\n"
    found = of(views, views.replace("random_flip]", "{rescale: {to: [0, 1]}}]").replace("size: 8}}]}}", "size: 9}}]}}"))
    assert [change[1:3] for change in told(found)] == [
        ("views.a.transforms[1].random_flip", "it is no longer there"),
        ("views.a.transforms[1].rescale", "it is new"),
        ("views.b.transforms[0].resize.size", "8 → 9"),
    ]
    part = "{weight: 1, source: {image_folder: {path: a}}, transforms: [random_flip]}"
    mix = f"pipegen: 1\nsource: {{mix: {{epoch: 8, parts: {{a: {part}}}}}}}\ntransforms: [{{resize: {{size: 8}}}}]\n"
    found = of(mix, mix.replace("weight: 1", "weight: 2").replace("[random_flip]", "[]"))
    assert [change.effect for change in found.of("numbers")] == [
        "an epoch has other shares of the parts",
        "other steps act on the examples of this part",
    ]


def test_a_list_that_is_new_leaves_examples_out_unless_it_is_empty() -> None:
    found = changed("validation: 0.2}", "validation: 0.2}, exclude: copies.txt")
    assert [change.effect for change in found.changes] == ["other numbers, unless the list is empty"]
    assert verdict(found) == "The model may see other numbers: that depends on the data."
