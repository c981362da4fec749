"""Iterators that are made in the rounds of a loop over names: the spec has one of them, and says what it does not know."""

from __future__ import annotations

import pytest

from pipegen.migrate.migration import migrate_code
from pipegen.migrate.reading import parse_code

HEAD = "from keras.preprocessing.image import ImageDataGenerator\ng = ImageDataGenerator()\n"


@pytest.mark.parametrize(
    "code",
    [
        "for d in ('a', 'b'):\n    p = d + '/x'\n    it = g.flow_from_directory(p)\n",
        "for i, d in enumerate(['a', 'b']):\n    it = g.flow_from_directory(f'{i}/{d}')\n",
        "its = {d: g.flow_from_directory(d) for d in ('a', 'b')}\n",
        "[g.flow_from_directory(d) for d in ('a', 'b') if d in x]\n",
        "for s in ('a', 'b'):\n    if s == 'a':\n        it = g.flow_from_directory(s)\n",
        "for d in ('a', 'b'):\n    def f():\n        return g.flow_from_directory(d)\n",
        "prev = 'z'\nfor d in ('a', 'b'):\n    it = g.flow_from_directory(prev)\n    prev = d\n",
    ],
)
def test_the_folder_of_a_round_is_not_known(code: str) -> None:
    result = migrate_code(parse_code("t.py", (HEAD + code).encode()))
    (text,) = result.specs.values()
    assert "data: {type: path, default: path/to/data}" in text
    assert any(f.code == "PG610" and "the folder is not known" in f.message for f in result.findings.items)


def test_a_name_of_a_comprehension_is_another_one() -> None:
    code = "n = 5\nL = [n for n in (1, 2)]\ng.flow_from_directory('e', (n, n))\n"
    (text,) = migrate_code(parse_code("t.py", (HEAD + code).encode())).specs.values()
    assert "size: {type: int, default: 5, min: 1}" in text
