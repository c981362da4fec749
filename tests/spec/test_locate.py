"""From key paths to places."""

from __future__ import annotations

import pytest
from spec_helpers import read

from pipegen.spec.source_map import format_path

BODY = "transforms:\n  - resize: {size: 8}\n  - random_flip\nshuffle: {window: 1GiB}\n"


@pytest.mark.parametrize(
    ("path", "key", "place"),
    [
        (("transforms", 0, "resize", "size"), False, "4:20"),
        (("transforms", 0, "resize", "size"), True, "4:14"),
        (("transforms", 0, "resize", "mode"), False, "4:13"),
        (("transforms", 0, "resize", "mode"), True, "4:5"),
        (("transforms", 1, "random_flip"), False, "5:5"),
        (("transforms", 1, "random_flip", "probability"), True, "5:5"),
        (("shuffle", "WindowShuffle", "window"), False, "6:19"),
        (("shuffle", "function-before[parse_bytes(), int]"), True, "6:1"),
        (("seed",), False, "1:1"),
        ((), False, "1:1"),
    ],
)
def test_nearest_place(path: tuple[str | int, ...], key: bool, place: str) -> None:
    label = read(BODY).locate.label(path, "here", key=key)
    assert str(label.span) == f"spec.yaml:{place}"
    assert label.text == "here"


def test_paths_for_people() -> None:
    assert format_path(("transforms", 2, "random_flip", "probability")) == "transforms[2].random_flip.probability"
    assert format_path(("a",)) == "a"
    assert format_path(()) == ""


def test_origins() -> None:
    locate = read(BODY).locate
    assert locate.origin(("shuffle", "window")) == "spec.yaml:6:19"
    assert locate.origin(("shuffle",)) == "spec.yaml:6:10"
    assert locate.origin(("batch", "size")) == "default"
    assert locate.origin(("transforms", 0, "resize", "mode")) == "default"


def test_settings_from_python_stand_in_no_file() -> None:
    loaded = read("runtime: {cache: none, threads: 2}\n", runtime={"cache": "momory"})
    (finding,) = loaded.diagnostics
    assert finding.primary is not None
    assert finding.span is None
    assert finding.primary.path == "runtime.cache"
    assert loaded.locate.origin(("runtime", "cache")) == "runtime={'cache': 'momory'}"
    assert loaded.locate.origin(("runtime", "threads")) == "spec.yaml:3:33"
