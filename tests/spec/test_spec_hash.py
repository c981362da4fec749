"""What the hash of a spec covers, and differences in words."""

from __future__ import annotations

import pytest
from spec_helpers import HEAD, read

from pipegen.spec.load import load
from pipegen.spec.spec_hash import canonical, explain_difference, spec_hash

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
        ("seed: 3", "seed: 4"),
    ],
)
def test_what_changes_it(old: str, new: str) -> None:
    whole = HEAD + BODY
    assert hashed(whole.replace(old, new), head="") != hashed(whole, head="")


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
        ("degrees: 20", "degrees: 30", ["transforms[1].random_rotation.degrees: 20.0 -> 30.0"]),
        ("batch: {size: 64}", "batch: {size: 32}\nseed: 2", ["seed: 0 -> 2", "batch.size: 64 -> 32"]),
        ("  - random_flip\n", "", ["transforms[2]: random_flip is no longer there"]),
        ("  - random_flip\n", "  - random_hue: {degrees: 5}\n  - random_flip\n", ["transforms[2]: random_hue is new"]),
        ("  - random_flip\n", "  - random_hue: {degrees: 5}\n", ["transforms[2]: random_flip -> random_hue"]),
        ("- random_flip", "- random_flip: {id: other}", ["transforms[2].random_flip.id: nothing -> other"]),
        ("validation: 0.2", "test: 0.2", ["splits.parts.validation: 0.2 -> nothing", "splits.parts.test: nothing -> 0.2"]),
    ],
)
def test_differences_in_words(old: str, new: str, lines: list[str]) -> None:
    a, b = (read(text, head="").spec for text in (HEAD + BODY, (HEAD + BODY).replace(old, new)))
    assert a is not None
    assert b is not None
    assert explain_difference(canonical(a), canonical(b)) == lines
    assert explain_difference(canonical(a), canonical(a)) == []
