"""Patterns on relative paths."""

from __future__ import annotations

import pytest

from pipegen.ops.sources.folders.scan import compile_glob


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/*.jpg", "cat/x.jpg", True),
        ("**/*.jpg", "x.jpg", True),
        ("**/*.jpg", "a/b/c/x.jpg", True),
        ("**/*.jpg", "cat/x.JPG", False),
        ("*.jpg", "cat/deep/x.jpg", True),
        ("cat/*.jpg", "cat/x.jpg", True),
        ("cat/*.jpg", "cat/deep/x.jpg", False),
        ("cat/*.jpg", "dog/cat/x.jpg", False),
        ("cat/**", "cat/deep/x.jpg", True),
        ("**/front/*", "cat/front/x.jpg", True),
        ("**/front/*", "cat/infront/x.jpg", False),
        ("img_??.png", "cat/img_07.png", True),
        ("img_??.png", "cat/img_7.png", False),
        ("img_[0-4].png", "img_3.png", True),
        ("img_[!0-4].png", "img_3.png", False),
        ("a[!b]c/x.png", "a/c/x.png", False),
        ("a+(b).jpg", "a+(b).jpg", True),
        ("*.jpg", "x.jpg\n", False),
    ],
)
def test_what_a_pattern_matches(pattern: str, path: str, matches: bool) -> None:
    assert (compile_glob(pattern).match(path) is not None) is matches


def test_an_open_bracket_is_an_error() -> None:
    with pytest.raises(ValueError, match="not closed"):
        compile_glob("img_[0-4.png")
